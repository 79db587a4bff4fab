"""LLVM IR -> PTX by libNVVM."""

from __future__ import annotations

import hashlib
import re
import threading
from pathlib import Path

from cudadrv import nvvm
from cudadrv.nvvm import Nvvm, NvvmError, NvvmNotFound, Program

from . import flags
from .target import CodegenError, Dialect, Target, nearest_lower

# PTX versions are chosen freely since CUDA 13.1, from this one on.
_OLDEST_CHOICE = (8, 6)


class NvvmCodegen:
    """libNVVM for one architecture and PTX version.

    Args:
        library: the libNVVM.
        target: whose architecture is known to it.
        legacy: use the LLVM 7 dialect where there is a choice.

    Raises:
        NvvmError: it does not know the architecture.
        ValueError: its PTX is newer than *target* reads.
    """

    name = "nvvm"

    def __init__(self, library: Nvvm, target: Target, *, legacy: bool = False) -> None:
        self.library = library
        self._lock = threading.Lock()
        self._arch, probe = _choose(library, target, legacy)
        self._producer = probe.producer
        self.ptx = probe.ptx
        self.dialect = Dialect(
            nvvm.TRIPLE,
            nvvm.DATA_LAYOUT_LLVM7 if probe.typed_pointers else nvvm.DATA_LAYOUT,
            probe.typed_pointers,
            library.ir_version,
        )
        self.libdevice: Path | None
        try:
            self.libdevice = nvvm.libdevice(library)
            self._libdevice = self.libdevice.read_bytes()
        except NvvmNotFound:
            self.libdevice = None

    def __repr__(self) -> str:
        return f"NvvmCodegen({self.library.path!r}, {' '.join(self._arch)})"

    @property
    def identity(self) -> str:
        """What its code depends on besides IR and target: versions, architecture, libdevice."""
        known = " ".join(map(str, (*self.library.version, *self.library.ir_version)))
        used = hashlib.sha256(self._libdevice).hexdigest() if self.libdevice else "none"
        return f"nvvm {known} {self._producer} {' '.join(self._arch)} libdevice {used}"

    def compile(self, llvm_ir: str, target: Target) -> str:
        """Compile a module to PTX, with what it calls of libdevice.

        Raises:
            CodegenError: libNVVM refused the IR.
        """
        return self._compile(llvm_ir, target, []).decode()

    def compile_lto(self, llvm_ir: str, target: Target) -> bytes:
        """Compile a module to LTO-IR, which nvJitLink links with others.

        Raises:
            CodegenError: libNVVM refused the IR.
        """
        return self._compile(llvm_ir + _kept(llvm_ir), target, ["-gen-lto"])

    def _compile(self, llvm_ir: str, target: Target, more: list[str]) -> bytes:
        source = flags.with_fast_functions(llvm_ir) if target.fastmath else llvm_ir
        source = self._complete(source if target.fma else flags.uncontracted(source))
        with self._lock, Program(self.library) as program:
            try:
                program.add_module(source)
                if self.libdevice and "__nv_" in source:
                    program.lazy_add_module(self._libdevice, "libdevice")
                return program.compile([*self.options(target), *more])
            except NvvmError as error:
                raise CodegenError(self.name, str(error), source) from None

    def options(self, target: Target) -> list[str]:
        """The options of nvvmCompileProgram."""
        return [
            *self._arch,
            f"-opt={3 if target.level else 0}",
            f"-ftz={int(target.flushes)}",
            f"-prec-div={int(target.precise_div)}",
            f"-prec-sqrt={int(target.precise_sqrt)}",
            f"-fma={int(target.fma)}",
            *(["-g"] if target.debug else []),
        ]

    def _complete(self, llvm_ir: str) -> str:
        if "!nvvmir.version" in llvm_ir:
            return llvm_ir
        numbers = ", ".join(f"i32 {number}" for number in self.library.ir_version)
        # The number of the node only has to be free.
        return f"{llvm_ir}\n!nvvmir.version = !{{!99999999}}\n!99999999 = !{{{numbers}}}\n"


_KERNEL = re.compile(r'!\d+ = !\{ *([^@\n{]+?) *(@"?[\w.$]+"?), !"kernel", i32 1 *\}')


def _kept(llvm_ir: str) -> str:
    """What makes a linker that optimises keep the kernels: to it nothing calls them."""
    found = []
    for kind, name in _KERNEL.findall(llvm_ir):
        found.append(f"ptr {name}" if kind == "ptr" else f"i8* bitcast ({kind} {name} to i8*)")
    if not found:
        return ""
    element = found[0].split()[0]
    return (
        f"\n@llvm.used = appending global [{len(found)} x {element}] [{', '.join(found)}], "
        f'section "llvm.metadata"\n'
    )


def _choose(library: Nvvm, target: Target, legacy: bool) -> tuple[list[str], nvvm.Probe]:
    """The options for the nearest known architecture, and what they make."""
    refusal: NvvmError | None = None
    for candidate in nearest_lower(target):
        arch = "-arch=" + candidate.arch.replace("sm", "compute")
        try:
            known = library.probe(arch)
        except NvvmError as error:
            refusal = refusal or error
            continue
        return _choose_version(library, target, arch, known, legacy)
    assert refusal is not None, "the target itself is a candidate"
    raise refusal


def _choose_version(
    library: Nvvm, target: Target, arch: str, known: nvvm.Probe, legacy: bool
) -> tuple[list[str], nvvm.Probe]:
    """Add the options that make PTX which *target* reads, by the newest LLVM unless *legacy*."""
    limit = target.ptx or known.ptx
    choices = [[arch]]
    if not legacy:
        latest = [arch, "-nvvm-latest"] if known.typed_pointers else [arch]
        version = f"-ptx-version-target={limit[0]}{limit[1]}"
        older = _OLDEST_CHOICE <= limit < known.ptx
        choices.insert(0, [*latest, version] if older else latest)
    for options in choices:
        try:
            probe = library.probe(*options)
        except NvvmError:
            continue  # older than CUDA 13.1, where the options of the first choice appeared
        if probe.ptx <= limit:
            return options, probe
    emits = "{}.{}".format(*known.ptx)
    raise ValueError(f"emits PTX {emits}, and {limit[0]}.{limit[1]} is the newest that is read")
