"""cuModule..., cuLibrary..., cuKernel..., cuFunc...: loading PTX and asking about kernels."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

from cudadrv.raw import table, types

from ..boundary import CONVERTERS, exported
from ..errors import PtxError
from ..memory import MODULE
from ..program import Kernel, Program
from ..state import current, device, find
from ..status import Status, require
from .device import SHARED_BYTES, SHARED_BYTES_OPTIN

for _kind in ("CUmodule", "CUlibrary"):
    CONVERTERS[_kind] = partial(find, Program)
for _kind in ("CUfunction", "CUkernel"):
    CONVERTERS[_kind] = partial(find, Kernel)

_OPTIONS = table.ENUMS[types.resolve("CUjit_option")]
_ATTRIBUTES = {
    name.removeprefix("CU_FUNC_ATTRIBUTE_"): value
    for name, value in table.ENUMS[types.resolve("CUfunction_attribute")].items()
}
ELF = b"\x7fELF"
FATBIN = b"\x50\xed\x55\xba"


class Log:
    """A log buffer that the caller gave in the JIT options."""

    def __init__(self, options: dict[int, tuple[int, int]], kind: str) -> None:
        self.address, _ = options.get(_OPTIONS[f"CU_JIT_{kind}_LOG_BUFFER"], (0, 0))
        size = options.get(_OPTIONS[f"CU_JIT_{kind}_LOG_BUFFER_SIZE_BYTES"], (0, 0))
        self.size, self.size_at = size

    def write(self, text: str) -> None:
        """Put *text* there, cut to fit, and its length where the size was."""
        if not self.address or not self.size:
            return
        data = text.encode()[: self.size - 1] + b"\0"
        ctypes.memmove(self.address, data, len(data))
        ctypes.c_void_p.from_address(self.size_at).value = len(data)


def read_options(count: int, names: int, values: int) -> dict[int, tuple[int, int]]:
    """JIT options: each value, and where it stands."""
    found = {}
    for i in range(count):
        at = values + 8 * i
        name = ctypes.c_int.from_address(names + 4 * i).value
        found[name] = (ctypes.c_void_p.from_address(at).value or 0, at)
    return found


def _load(image: bytes, options: dict[int, tuple[int, int]] | None = None) -> Program:
    options = options or {}
    log = Log(options, "ERROR")
    Log(options, "INFO").write("")
    # Variables on the host, for those that the code only declares.
    symbols, _ = options.get(_OPTIONS["CU_JIT_GLOBAL_SYMBOL_COUNT"], (0, 0))
    require(not symbols, "NOT_SUPPORTED")
    if image.startswith((ELF, FATBIN)):
        log.write("the emulator runs PTX; this image is machine code (cubin or fatbin)")
        raise Status("NO_BINARY_FOR_GPU")
    try:
        program = Program(image.decode(errors="replace"))
    except PtxError as error:
        log.write(str(error))
        raise Status("INVALID_PTX") from None
    log.write("")
    _announce(program)
    return program


def _announce(program: Program) -> None:
    """Make the module's variables memory that can be copied to and from."""
    for name, address in program.addresses.items():
        if program.sizes[name]:
            current().memory.add(address, program.sizes[name], MODULE, 0, program)


def image_at(address: int | None) -> bytes:
    """The text at an address, or the first bytes of what is no text."""
    require(address)
    assert address
    start = ctypes.string_at(address, 4)
    return start if start in (ELF, FATBIN) else ctypes.string_at(address)


def read_file(path: str) -> bytes:
    """The text of a file."""
    try:
        return Path(path).read_bytes().split(b"\0")[0]
    except OSError:
        raise Status("FILE_NOT_FOUND") from None


@exported()
def cuModuleLoad(path: str) -> Program:
    current()
    return _load(read_file(path))


@exported("cuModuleLoadFatBinary")
def cuModuleLoadData(image: int) -> Program:
    current()
    return _load(image_at(image))


@exported()
def cuModuleLoadDataEx(image: int, count: int, options: int, values: int) -> Program:
    current()
    return _load(image_at(image), read_options(count, options, values))


@exported()
def cuLibraryLoadData(image: int, options: int, values: int, count: int, *others: int) -> Program:
    current()
    return _load(image_at(image), read_options(count, options, values))


@exported()
def cuLibraryLoadFromFile(
    path: str, options: int, values: int, count: int, *others: int
) -> Program:
    current()
    return _load(read_file(path), read_options(count, options, values))


@exported("cuLibraryUnload")
def cuModuleUnload(program: Program) -> None:
    for address in program.addresses.values():
        if current().memory.find(address):
            current().memory.free(address, MODULE)
    program.unload()


@exported()
def cuModuleGetLoadingMode(address: int) -> None:
    require(address)
    ctypes.c_int.from_address(address).value = 2


@exported("cuLibraryGetKernel")
def cuModuleGetFunction(program: Program, name: str) -> Kernel:
    require(name in program.kernels, "NOT_FOUND")
    return program.kernels[name]


@exported("cuLibraryGetKernelCount")
def cuModuleGetFunctionCount(program: Program) -> int:
    return len(program.kernels)


@exported("cuLibraryEnumerateKernels")
def cuModuleEnumerateFunctions(address: int, count: int, program: Program) -> None:
    require(address)
    for i, kernel in enumerate(list(program.kernels.values())[:count]):
        ctypes.c_void_p.from_address(address + 8 * i).value = kernel.handle


@exported()
def cuModuleGetGlobal_v2(program: Program, name: str) -> tuple[int, int]:
    require(name in program.addresses, "NOT_FOUND")
    return program.addresses[name], program.sizes[name]


@exported()
def cuLibraryGetGlobal(program: Program, name: str) -> tuple[int, int]:
    return cuModuleGetGlobal_v2(program, name)  # type: ignore[no-any-return]


@exported()
def cuLibraryGetManaged(program: Program, name: str) -> tuple[int, int]:
    variable = program.module.variables.get(name)
    require(variable and variable.managed, "NOT_FOUND")
    return program.addresses[name], program.sizes[name]


@exported()
def cuLibraryGetUnifiedFunction(program: Program, name: str) -> int:
    raise Status("NOT_FOUND")


@exported()
def cuLibraryGetModule(program: Program) -> Program:
    return program


@exported("cuFuncGetModule")
def cuKernelGetLibrary(kernel: Kernel) -> Program:
    return kernel.program


@exported()
def cuKernelGetFunction(kernel: Kernel) -> Kernel:
    current()
    return kernel


@exported("cuFuncGetName")
def cuKernelGetName(kernel: Kernel) -> str:
    return kernel.name


@exported("cuFuncGetParamInfo")
def cuKernelGetParamInfo(kernel: Kernel, index: int) -> tuple[int, int]:
    require(index < len(kernel.params))
    return kernel.params[index]


def _attribute(kernel: Kernel, attribute: int) -> int:
    require(0 <= attribute < _ATTRIBUTES["MAX"])
    version = kernel.program.module.version
    shared = kernel.plan.shared_bytes
    values = {
        "MAX_THREADS_PER_BLOCK": kernel.max_threads,
        "SHARED_SIZE_BYTES": shared,
        "NUM_REGS": 32,
        "PTX_VERSION": version[0] * 10 + version[1],
        "BINARY_VERSION": device.capability[0] * 10 + device.capability[1],
        "MAX_DYNAMIC_SHARED_SIZE_BYTES": max(SHARED_BYTES - shared, 0),
        "PREFERRED_SHARED_MEMORY_CARVEOUT": -1,
    }
    if kernel.cluster:
        axes = ("WIDTH", "HEIGHT", "DEPTH")
        values |= {
            f"REQUIRED_CLUSTER_{axis}": blocks
            for axis, blocks in zip(axes, kernel.cluster, strict=True)
        }
    known = {_ATTRIBUTES[name]: value for name, value in values.items()}
    return kernel.attributes.get(attribute, known.get(attribute, 0))


def _set_attribute(kernel: Kernel, attribute: int, value: int) -> None:
    if attribute == _ATTRIBUTES["MAX_DYNAMIC_SHARED_SIZE_BYTES"]:
        require(0 <= value <= SHARED_BYTES_OPTIN - kernel.plan.shared_bytes)
    else:
        require(_ATTRIBUTES["BINARY_VERSION"] < attribute < _ATTRIBUTES["MAX"])
    kernel.attributes[attribute] = value


@exported()
def cuFuncGetAttribute(attribute: int, kernel: Kernel) -> int:
    return _attribute(kernel, attribute)


@exported()
def cuKernelGetAttribute(attribute: int, kernel: Kernel, dev: int) -> int:
    return _attribute(kernel, attribute)


@exported()
def cuFuncSetAttribute(kernel: Kernel, attribute: int, value: int) -> None:
    _set_attribute(kernel, attribute, value)


@exported()
def cuKernelSetAttribute(attribute: int, value: int, kernel: Kernel, dev: int) -> None:
    _set_attribute(kernel, attribute, value)


@exported("cuKernelSetCacheConfig")
def cuFuncSetCacheConfig(kernel: Kernel, config: int, *dev: Any) -> None:
    require(0 <= config <= 3)


@exported()
def cuFuncIsLoaded(kernel: Kernel) -> int:
    return 1


@exported()
def cuFuncLoad(kernel: Kernel) -> None:
    kernel.code()


def largest_cluster(kernel: Kernel) -> int:
    """Blocks that a cluster of *kernel* may have."""
    allowed = _attribute(kernel, _ATTRIBUTES["NON_PORTABLE_CLUSTER_SIZE_ALLOWED"])
    return 16 if allowed else 8


def dynamic_limit(kernel: Kernel) -> int:
    """Bytes of dynamic shared memory that a launch of *kernel* may have."""
    return _attribute(kernel, _ATTRIBUTES["MAX_DYNAMIC_SHARED_SIZE_BYTES"])
