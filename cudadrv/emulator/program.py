"""A loaded PTX module: its global variables, its kernels, and their native code when needed."""

from __future__ import annotations

import ctypes
import struct
import threading
from itertools import chain

from cudadrv import config

from .analysis import Plan, address_taken, alignment, byte_size, instructions, param_layout
from .check import check
from .errors import PtxError
from .jit import Code, compiled
from .parser import parse
from .state import Object, device
from .syntax import Float, Function, Integer, Reference, Variable
from .translate import translate
from .types import TYPES


class Kernel(Object):
    """A kernel; as in the driver, a CUkernel is also a CUfunction."""

    def __init__(self, program: Program, entry: Function) -> None:
        super().__init__()
        self.program = program
        self.entry = entry
        self.name = entry.name
        self.params = param_layout(entry.params)
        self.params_size = max((offset + size for offset, size in self.params), default=0)
        self.attributes: dict[int, int] = {}
        self.plan = Plan(program.module, entry, program.addressed, config.emulator_check())
        self._lock = threading.Lock()
        self._code: Code | None = None

    @property
    def max_threads(self) -> int:
        """Threads a block may have."""
        limit = 1
        for value in self.entry.directives.get("maxntid", (1024,)):
            limit *= value
        return min(limit, 1024)

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """Blocks of the clusters that the code asks for; None if it does not."""
        needed = self.entry.directives.get("reqnctapercluster")
        if not needed:
            return None
        x, y, z = (*needed, 1, 1)[:3]
        return x, y, z

    def llvm_ir(self) -> str:
        """The LLVM IR it is translated to."""
        try:
            return translate(self.plan, self.program.addresses)
        except PtxError as error:
            raise self.program.explain(error) from None

    def code(self) -> Code:
        """Its native code, compiled on first use."""
        with self._lock:
            if self._code is None:
                self._code = compiled(self.llvm_ir())
            return self._code


class Program(Object):
    """A module or library.

    Raises:
        PtxError: the text is not PTX, or uses what the emulator does not have.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.module = parse(text)
        self.addresses: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        try:
            check(self.module, device.capability)
            self.addressed = address_taken(self.module)
            self._place_variables()
            entries = [f for f in self.module.functions.values() if f.is_entry and f.body]
            self.kernels = {entry.name: Kernel(self, entry) for entry in entries}
        except PtxError as error:
            raise self.explain(error) from None
        super().__init__()

    def explain(self, error: PtxError) -> PtxError:
        """*error* with the text of its line."""
        lines = self.text.split("\n")
        if 0 < error.line <= len(lines):
            error.text = lines[error.line - 1]
        return error

    def locate(self, line: int) -> str:
        """A line of the PTX, and where in the source it comes from if the PTX tells."""
        text = f"line {line}: {self.text.splitlines()[line - 1].strip()}"
        bodies = [f.body for f in self.module.functions.values() if f.body]
        for found in chain.from_iterable(map(instructions, bodies)):
            if found.line == line and found.source:
                file, at = found.source
                return f"{text}\n  source {self.module.files.get(file, file)}:{at}"
        return text

    def unload(self) -> None:
        """Make its handles invalid."""
        for kernel in self.kernels.values():
            kernel.forget()
        self.forget()

    def _place_variables(self) -> None:
        """Give every global variable memory, then fill it."""
        placed = [v for v in self.module.variables.values() if v.space in ("global", "const")]
        at = 0
        for variable in placed:
            if variable.linkage == "extern":
                raise PtxError(f"variable {variable.name} is not defined", variable.line)
            align = max(alignment(variable), 16)
            at = -(-at // align) * align
            self.addresses[variable.name] = at
            self.sizes[variable.name] = byte_size(variable)
            at += byte_size(variable)
        self.memory = ctypes.create_string_buffer(at + 256)
        base = -(-ctypes.addressof(self.memory) // 256) * 256
        for variable in placed:
            self.addresses[variable.name] += base
        for variable in placed:
            self._fill(variable)

    def _fill(self, variable: Variable) -> None:
        size = TYPES[variable.type].bytes
        data = b"".join(self._bytes(variable, value, size) for value in variable.init)
        if len(data) > byte_size(variable):
            raise PtxError(f"too many initial values for {variable.name}", variable.line)
        ctypes.memmove(self.addresses[variable.name], data, len(data))

    def _bytes(self, variable: Variable, value: Integer | Float | Reference, size: int) -> bytes:
        if isinstance(value, Integer):
            if TYPES[variable.type].is_float:
                return _float_bytes(float(value.value), size)
            return (value.value & ((1 << size * 8) - 1)).to_bytes(size, "little")
        if isinstance(value, Float):
            if value.width == size * 8:
                return value.bits.to_bytes(size, "little")
            code, width = ("<f", 4) if value.width == 32 else ("<d", 8)
            return _float_bytes(struct.unpack(code, value.bits.to_bytes(width, "little"))[0], size)
        address = self._address(variable, value.name) + value.offset
        if value.mask:
            address = (address & value.mask) // (value.mask & -value.mask)
        return (address & ((1 << size * 8) - 1)).to_bytes(size, "little")

    def _address(self, variable: Variable, name: str) -> int:
        if name in self.addresses:
            return self.addresses[name]
        name = self.module.aliases.get(name, name)
        if name not in self.addressed:
            raise PtxError(f"{name} is not defined", variable.line)
        return self.addressed.index(name) + 1


def _float_bytes(value: float, size: int) -> bytes:
    return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], value)
