"""LLVM IR -> PTX by llvmlite's own NVPTX generator."""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from cudadrv import nvvm
from cudadrv.nvvm import NvvmNotFound

from . import flags, libdevice
from .requirements import refusal
from .target import CodegenError, Dialect, PtxVersion, Target, nearest_lower, oldest_ptx

# What "+ptxNN" of LLVM 22 knows, from the oldest that a supported architecture needs.
_PTX_VERSIONS: tuple[PtxVersion, ...] = (
    *((6, minor) for minor in (3, 4, 5)),
    *((7, minor) for minor in range(9)),
    *((8, minor) for minor in range(9)),
    (9, 0),
)

# LLVM contexts and pass managers belong to one thread at a time. The context is our own, so that
# other users of llvmlite in the process and we do not see each other's types.
LOCK = threading.RLock()


@cache
def context() -> llvm.ContextRef:
    """The LLVM context of all modules here; hold `LOCK` while using it."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.create_context()


@cache
def _machine(arch: str, ptx: PtxVersion, level: int) -> llvm.TargetMachine:
    context()
    try:
        generator = llvm.Target.from_triple(nvvm.TRIPLE)
    except RuntimeError as error:
        raise ValueError(f"llvmlite was built without the NVPTX target ({error})") from None
    return generator.create_target_machine(
        cpu=arch, features=f"+ptx{ptx[0]}{ptx[1]}", opt=level, reloc="default"
    )


class LlvmCodegen:
    """LLVM's NVPTX target for one architecture and PTX version.

    Raises:
        ValueError: LLVM knows no architecture and PTX version that fit *target*.
    """

    name = "llvm"

    def __init__(self, target: Target) -> None:
        self.target, self.ptx = _choose(target)
        self.arch = self.target.arch
        with LOCK:
            layout = str(_machine(self.arch, self.ptx, 3).target_data)
        self.dialect = Dialect(nvvm.TRIPLE, layout)
        self.libdevice: Path | None
        try:
            self.libdevice = nvvm.libdevice()
        except NvvmNotFound:
            self.libdevice = None

    def __repr__(self) -> str:
        return f"LlvmCodegen({self.arch!r}, {self.ptx})"

    @property
    def identity(self) -> str:
        """What its code depends on besides IR and target: versions, architecture, libdevice."""
        version = ".".join(map(str, llvm.llvm_version_info))
        data = self.libdevice.read_bytes() if self.libdevice else None
        used = "none" if data is None else hashlib.sha256(data).hexdigest()
        made = f"llvm {version} llvmlite {llvmlite.__version__}"
        return f"{made} {self.arch} {self.ptx} libdevice {used}"

    def compile(self, llvm_ir: str, target: Target) -> str:
        """Compile a module to PTX, with what it calls of libdevice.

        Raises:
            CodegenError: LLVM refused the IR.
        """
        with LOCK:
            module = self._optimized(llvm_ir, target)
            ptx: str = self._machine(target).emit_assembly(module)
            return ptx

    def compile_lto(self, llvm_ir: str, target: Target) -> bytes | None:
        """None: only libNVVM writes LTO-IR."""

    def compile_bitcode(self, bitcode: bytes, target: Target) -> str:
        """Compile a module that comes as LLVM bitcode.

        Raises:
            CodegenError: it is no bitcode, or LLVM refused it.
        """
        with LOCK:
            try:
                text = str(llvm.parse_bitcode(bitcode, context()))
            except RuntimeError as error:
                raise CodegenError(self.name, f"not LLVM bitcode: {error}") from None
            return self.compile(text, target)

    def optimize(self, llvm_ir: str, target: Target) -> str:
        """The module after optimisation, to be looked at."""
        with LOCK:
            return str(self._optimized(llvm_ir, target))

    def _machine(self, target: Target) -> llvm.TargetMachine:
        return _machine(self.arch, self.ptx, target.level)

    def _optimized(self, llvm_ir: str, target: Target) -> llvm.ModuleRef:
        source = flags.with_fast_functions(llvm_ir) if target.fastmath else llvm_ir
        if self.libdevice and "__nv_" in source:
            source = libdevice.link(source, self.libdevice, target, context())
        source = flags.annotated(source, target)
        try:
            module = llvm.parse_assembly(source, context())
            module.verify()
        except RuntimeError as error:
            raise CodegenError(self.name, str(error), source) from None
        if reason := refusal(source, self.target, self.ptx):
            raise CodegenError(self.name, reason, source)
        tuning = llvm.create_pipeline_tuning_options(target.level)
        tuning.loop_vectorization = False
        builder = llvm.create_pass_builder(self._machine(target), tuning)
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        return module


def _choose(target: Target) -> tuple[Target, PtxVersion]:
    """The nearest architecture whose oldest PTX *target* reads, and the newest PTX it reads."""
    known = [ptx for ptx in _PTX_VERSIONS if target.ptx is None or ptx <= target.ptx]
    for candidate in nearest_lower(target):
        oldest = oldest_ptx(candidate)
        if oldest and known and oldest <= known[-1]:
            return candidate, known[-1]
    raise ValueError(
        "LLVM 22 writes PTX {}.{} to {}.{}".format(*_PTX_VERSIONS[0], *_PTX_VERSIONS[-1])
    )
