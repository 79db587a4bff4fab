"""From a Python function and argument types to PTX: the stages, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import lang, types
from ..codegen import Codegen, Target, select
from ..errors import CompileError
from ..frontend.infer import Typed
from ..frontend.program import Program as Inference
from ..lowering.builder import Module, Options
from ..lowering.function import Program as LoweringProgram
from ..lowering.function import symbol
from ..types import Array, Type
from ..typing.registry import REGISTRY

assert lang  # Importing it fills the registry.
_LOCK = threading.RLock()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel's code, before it is loaded.

    Attributes:
        name: the kernel's name in the PTX.
        args: the types of its arguments.
        typed: the typed function, for inspection.
        llvm_ir: the IR that the code generator was given.
        ptx: the PTX text.
    """

    name: str
    args: tuple[Type, ...]
    typed: Typed
    llvm_ir: str
    ptx: str


def compile_kernel(
    pyfunc: Callable[..., Any], args: tuple[Type, ...], target: Target, codegen: str | None = None
) -> Compiled:
    """Compile *pyfunc* as a kernel for arguments of these types.

    Raises:
        CompileError: the source, or its types, cannot be compiled.
        CodegenError: no code generator fits the target, or it failed.
    """
    with _LOCK:
        generator = select(target, codegen)
        typed = infer_kernel(pyfunc, args, generator.libdevice is not None)
        module = _lower(typed, target, generator)
        text = str(module)
        return Compiled(kernel_name(typed), args, typed, text, generator.compile(text, target))


def infer_kernel(
    pyfunc: Callable[..., Any], args: tuple[Type, ...], libdevice: bool = True
) -> Typed:
    """Type *pyfunc* as a kernel; arrays among its arguments lie in global memory.

    Raises:
        CompileError: it cannot be compiled.
    """
    placed = tuple(_in_global_memory(ty) for ty in args)
    typed = Inference(REGISTRY, libdevice).specialize(pyfunc, placed)
    if typed.returns != types.none:
        raise CompileError(
            f"a kernel returns nothing, this one {typed.returns}: store it in an array",
            typed.function.span,
        )
    return typed


def _in_global_memory(ty: Type) -> Type:
    return ty.copy(space="global") if isinstance(ty, Array) else ty


def kernel_name(typed: Typed) -> str:
    """The name of the entry point."""
    return symbol(typed.function.name)


def _lower(typed: Typed, target: Target, generator: Codegen) -> Any:
    options = Options(
        fma=target.fma,
        fastmath=not target.precise_div,
        libdevice=generator.libdevice is not None,
    )
    module = Module(generator.dialect, options)
    LoweringProgram(module, REGISTRY).kernel(typed, kernel_name(typed))
    return module.llvm
