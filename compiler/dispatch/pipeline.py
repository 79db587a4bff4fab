"""From a Python function and argument types to PTX: the stages, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from llvmlite import ir

from .. import cache, lang, types
from ..codegen import Codegen, NoCodegen, Target, select
from ..codegen.target import Outdated
from ..errors import CompileError
from ..frontend.infer import Typed
from ..frontend.program import Program as Inference
from ..lang.extern import ExternFunction
from ..lowering import cabi
from ..lowering.builder import Failure, Module, Options
from ..lowering.function import Program as LoweringProgram
from ..lowering.function import symbol
from ..types import Array, Type
from ..typing.registry import REGISTRY
from .linkable import wants_lto

assert lang  # Importing it fills the registry.
_LOCK = threading.RLock()
# What device functions need linked, by their Python functions.
LINKED: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()


class Settings(NamedTuple):
    """What is asked of a compilation besides its target.

    Attributes:
        codegen: the code generator to use, as for codegen.select.
        lto: make LTO-IR too; None: if what is called brings code that it can be optimised with.
        link: files and codes to link to it.
        lineinfo: keep the lines of the source in the PTX.
        max_registers: the most registers that a thread may use.
        launch_bounds: the most threads of a block; or that, and how many blocks a multiprocessor
            should hold, and how many a cluster has at most.
        boundscheck: an index out of range is an IndexError.
        cache: keep the code on disk, and take it from there.
    """

    codegen: str | None = None
    lto: bool | None = False
    link: tuple[Any, ...] = ()
    lineinfo: bool = False
    max_registers: int | None = None
    launch_bounds: tuple[int, ...] = ()
    boundscheck: bool = False
    cache: bool = False


class Compiled(NamedTuple):
    """A function's code, before it is loaded.

    Attributes:
        name: its name in the PTX.
        args: the types of its arguments.
        typed: the typed function, for inspection; None after unpickling.
        llvm_ir: the IR that the code generator was given.
        ptx: the PTX text.
        link: what must be linked to it.
        ltoir: the same as LTO-IR, if that was asked for and the generator makes it.
        returns: what it returns.
        too_new: the PTX is newer than the driver reads, so it needs a linker that reads it.
        failures: the exceptions that it reports, by their numbers.
        cooperative: its blocks wait for each other, so all must run at once.
        cached: what is linked from it may be kept on disk.
        lineinfo, debug: what its PTX says of lines, and of variables, is to be kept.
        annotated: the source with its types, where *typed* is None.
    """

    name: str
    args: tuple[Type, ...]
    typed: Typed | None
    llvm_ir: str
    ptx: str
    link: tuple[Any, ...] = ()
    ltoir: bytes | None = None
    returns: Type = types.none
    too_new: bool = False
    failures: tuple[Failure, ...] = ()
    cooperative: bool = False
    cached: bool = False
    lineinfo: bool = False
    debug: bool = False
    annotated: str = ""


def compile_kernel(
    pyfunc: Callable[..., Any],
    args: tuple[Type, ...],
    target: Target,
    settings: Settings | None = None,
) -> Compiled:
    """Compile *pyfunc* as a kernel for arguments of these types.

    Raises:
        CompileError: the source, or its types, cannot be compiled.
        CodegenError: no code generator fits the target, or it failed.
    """
    settings = settings or Settings()

    def make(generator: Codegen) -> Compiled:
        inference = _inference(target, generator, target.debug)
        typed = infer_kernel(pyfunc, args, inference)
        if settings.lto is None:
            lto = wants_lto(tuple(_links(inference)), None)
            return compile_kernel(pyfunc, args, target, settings._replace(lto=lto))
        program = _program(target, settings, generator)
        name = kernel_name(typed)
        _bound(program, program.kernel(typed, name), settings)
        return _finish(Request(name, args, target, settings), typed, program, inference, generator)

    return _with_generator(target, settings, make)


def compile_device(
    pyfunc: Callable[..., Any],
    args: tuple[Type, ...],
    target: Target,
    settings: Settings | None = None,
    name: str | None = None,
    returns: Type | None = None,
) -> Compiled:
    """Compile *pyfunc* as a function that C code can call.

    Args:
        name: its symbol; None: that of the Python function.
        returns: what it returns; None: what it happens to.

    Raises:
        CompileError: the source, or its types, cannot be compiled, or C has no such types.
        CodegenError: no code generator fits the target, or it failed.
    """
    settings = settings or Settings()

    def make(generator: Codegen) -> Compiled:
        inference = _inference(target, generator)
        typed = inference.specialize(pyfunc, args)
        program = _program(target, settings, generator, checks=False)
        symbol_name = name or symbol(typed.function.name)
        result = typed.returns if returns is None else returns
        cabi.export(program, typed, symbol_name, result)
        request = Request(symbol_name, args, target, settings, result)
        return _finish(request, typed, program, inference, generator)

    return _with_generator(target, settings, make)


def lowered(
    pyfunc: Callable[..., Any], args: tuple[Type, ...], target: Target
) -> tuple[Typed, Module]:
    """*pyfunc* typed, and the LLVM module with it as an internal function.

    Raises:
        CompileError: the source, or its types, cannot be compiled.
        CodegenError: no code generator fits the target.
    """
    with _LOCK:
        generator = _generator(target, Settings(), None)
        typed = _inference(target, generator, target.debug).specialize(pyfunc, args)
        program = _program(target, Settings(), generator)
        program.device(typed)
        return typed, program.module


def _with_generator(
    target: Target, settings: Settings, make: Callable[[Codegen], Compiled]
) -> Compiled:
    """What *make* gives for the code generator, which is one on record where there is a cache."""
    store = cache.store(settings.cache)
    with _LOCK:
        try:
            return make(_generator(target, settings, store))
        except Outdated:
            return make(_generator(target, settings, None))


def _generator(target: Target, settings: Settings, store: cache.Store | None) -> Codegen:
    """The code generator; if its PTX is too new, the cubin that is linked from it is not."""

    def chosen(target: Target, choice: str | None) -> Codegen:
        if store is None:
            return select(target, choice)
        from ..codegen.recorded import record

        return record(target, choice, store)

    if settings.lto and settings.codegen != "llvm":
        try:
            # NVRTC's and nvcc's LTO-IR is of this dialect, and one link takes but one.
            return chosen(replace(target, ptx=None), "nvvm7")
        except NoCodegen:
            pass
    try:
        return chosen(target, settings.codegen)
    except NoCodegen:
        if target.ptx is None:
            raise
        return chosen(replace(target, ptx=None), settings.codegen)


class Request(NamedTuple):
    """What is compiled: its name, its argument types, for what, how, and what it returns."""

    name: str
    args: tuple[Type, ...]
    target: Target
    settings: Settings
    returns: Type = types.none


def _inference(target: Target, generator: Codegen, debug: bool = False) -> Inference:
    cc = 10 * target.cc[0] + target.cc[1]
    return Inference(REGISTRY, generator.libdevice is not None, debug, cc)


def _finish(
    request: Request,
    typed: Typed,
    program: LoweringProgram,
    inference: Inference,
    generator: Codegen,
) -> Compiled:
    text = str(program.module.llvm)
    target, settings = request.target, request.settings
    ptx, ltoir = _code(text, target, settings, generator)
    return Compiled(
        request.name,
        request.args,
        typed,
        text,
        ptx,
        tuple(dict.fromkeys((*settings.link, *_links(inference)))),
        ltoir,
        request.returns,
        too_new=target.ptx is not None and generator.ptx > target.ptx,
        failures=tuple(program.module.failures),
        cooperative=program.module.cooperative,
        cached=settings.cache,
        lineinfo=settings.lineinfo,
        debug=target.debug,
    )


def _code(
    text: str, target: Target, settings: Settings, generator: Codegen
) -> tuple[str, bytes | None]:
    """PTX, and LTO-IR if that is asked for, of a module: from the cache, or compiled now."""
    store = cache.store(settings.cache)
    if store is None:
        return _compiled(text, target, settings, generator)
    from ..codegen.recorded import actual, sources

    name = cache.key("code", sources(), generator.identity, repr(target), str(settings.lto), text)
    found = store.get(name)
    if found is not None:
        return found[0].decode(), found[1] or None
    ptx, ltoir = _compiled(text, target, settings, actual(generator))
    store.put(name, ptx.encode(), ltoir or b"")
    return ptx, ltoir


def _compiled(
    text: str, target: Target, settings: Settings, generator: Codegen
) -> tuple[str, bytes | None]:
    ltoir = generator.compile_lto(text, target) if settings.lto else None
    return generator.compile(text, target), ltoir


def _links(inference: Inference) -> list[Any]:
    """What the functions that were typed need linked."""
    found: list[Any] = []
    for (function, _), typed in inference.functions.items():
        found += LINKED.get(getattr(function, "pyfunc", function), ())
        for _, match in typed.matches.values():
            if isinstance(match.data, ExternFunction):
                found += match.data.link
    return found


def infer_kernel(
    pyfunc: Callable[..., Any], args: tuple[Type, ...], inference: Inference | None = None
) -> Typed:
    """Type *pyfunc* as a kernel; arrays among its arguments lie in global memory.

    Raises:
        CompileError: it cannot be compiled.
    """
    placed = tuple(_in_global_memory(ty) for ty in args)
    typed = (inference or Inference(REGISTRY)).specialize(pyfunc, placed)
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


def _program(
    target: Target, settings: Settings, generator: Codegen, checks: bool = True
) -> LoweringProgram:
    options = Options(
        fma=target.fma,
        fastmath=not target.precise_div,
        libdevice=generator.libdevice is not None,
        checks=checks and target.debug,
        bounds=checks and settings.boundscheck,
        cc=target.cc,
        lines=settings.lineinfo or target.debug,
        variables=target.debug,
    )
    return LoweringProgram(Module(generator.dialect, options), REGISTRY)


def _bound(program: LoweringProgram, kernel: ir.Function, settings: Settings) -> None:
    """Annotate a kernel with its launch bounds and its limit of registers."""
    limits = dict(zip(_BOUNDS, settings.launch_bounds, strict=False))
    if settings.max_registers is not None:
        limits["maxnreg"] = settings.max_registers
    llvm = program.module.llvm
    for name, limit in limits.items():
        node = llvm.add_metadata([kernel, name, ir.Constant(ir.IntType(32), limit)])
        llvm.add_named_metadata("nvvm.annotations", node)


_BOUNDS = ("maxntidx", "minctasm", "cluster_max_blocks")
