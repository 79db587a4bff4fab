"""The choice of a code generator for a target."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import cudadrv.config
from compiler import config

from .target import Dialect, NoCodegen, PtxVersion, Target

if TYPE_CHECKING:
    from .nvvm import NvvmCodegen

CHOICES = ("auto", "nvvm", "nvvm7", "llvm")


class Codegen(Protocol):
    """What makes PTX from LLVM IR for one architecture.

    Attributes:
        name: "nvvm" or "llvm".
        dialect: how the IR must be written.
        libdevice: the file whose functions `compile` links where they are called; None: there is
            none, and a module must not call __nv_* functions that it does not define.
        ptx: the PTX ISA version that it emits.
        identity: what its code depends on besides the IR and the target: versions and files.
    """

    name: str
    dialect: Dialect
    libdevice: Path | None
    ptx: PtxVersion

    @property
    def identity(self) -> str:
        """See above."""

    def compile(self, llvm_ir: str, target: Target) -> str:
        """PTX of a module; raises CodegenError."""
        ...

    def compile_lto(self, llvm_ir: str, target: Target) -> bytes | None:
        """LTO-IR of a module, None where it makes none; raises CodegenError."""


def select(target: Target, force: str | None = None) -> Codegen:
    """The code generator for *target*: libNVVM where one fits, else LLVM.

    The same for every target of one architecture and PTX version, whatever its other options.

    Args:
        force: "nvvm" (its newest pipeline), "nvvm7" (its LLVM 7 dialect where it has a choice),
            "llvm", or "auto": nvvm7 where it fits, else llvm; None: as the variable
            COMPILER_CODEGEN says.

    Raises:
        NoCodegen: none fits; says for each why not. LLVM does not stand in for a libNVVM that the
            variable CUDADRV_NVVM names.
    """
    return _select(Target(target.cc, target.ptx, target.suffix), choice_of(force))


def choice_of(force: str | None) -> str:
    """The choice that *force*, or the environment where that is None, means.

    Raises:
        ValueError: there is no such choice.
    """
    choice = force or config.codegen()
    if choice not in CHOICES:
        raise ValueError(
            f"code generator {choice!r} (COMPILER_CODEGEN): one of {', '.join(CHOICES)}"
        )
    return choice


@cache
def _select(target: Target, choice: str) -> Codegen:
    tried: list[str] = []
    found = _nvvm(target, choice, tried) if choice != "llvm" else None
    overridden = choice == "auto" and cudadrv.config.nvvm() is not None
    # NOTE: the newer pipeline of libNVVM (13.5 at least) computes x * (0 / y) as if 0 / 0 were 0,
    # so by itself only the LLVM 7 pipeline, or LLVM, is taken where there is one.
    if found is not None and (choice != "auto" or overridden or found.dialect.typed_pointers):
        return found
    if choice in ("auto", "llvm") and not overridden:
        from .llvm import LlvmCodegen  # it loads LLVM

        try:
            return LlvmCodegen(target)
        except ValueError as error:
            tried.append(f"llvm: {error}")
    if found is not None:
        return found
    raise NoCodegen(target, tried)


def _nvvm(target: Target, choice: str, tried: list[str]) -> NvvmCodegen | None:
    """The first libNVVM that fits; *tried* gets the reasons why others do not."""
    # What is not chosen, or is on record, is not imported.
    from cudadrv import nvvm

    from .nvvm import NvvmCodegen

    for path in nvvm.candidates(tried):
        library = nvvm.load(path, tried)
        if library is None:
            continue
        for legacy in (True, False) if choice == "auto" else (choice == "nvvm7",):
            try:
                return NvvmCodegen(library, target, legacy=legacy)
            except nvvm.NvvmError as error:
                tried.append(f"{path}: {error.log}")
            except ValueError as error:
                tried.append(f"{path}: {error}")
    return None
