"""Compilation in steps, by the names of the original numba.cuda compiler module.

``jit`` does all of it by itself; these are for programs that compile for given types, keep code,
or hand it to other compilers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cudadrv

from .. import config
from ..codegen import Target, select
from ..lowering.builder import Failure
from ..types import Signature, Type
from .annotate import annotate
from .jit import DeviceFunction, inlined
from .kernel import CUDAKernel, target_of
from .options import settings_of
from .pipeline import compile_device as compile_c
from .pipeline import compile_kernel as compile_for
from .pipeline import lowered


class CompileResult(NamedTuple):
    """A typed and lowered function, before code generation.

    Attributes:
        signature: its types.
        typed: the typed form.
        target: what it is for.
        library: the text of its LLVM module.
        type_annotation: the source, each line with the types of what it assigns.
        call_helper: the exceptions that it may report, in debug mode, by number.
    """

    signature: Signature
    typed: Any
    target: Target
    library: str
    type_annotation: str
    call_helper: tuple[Failure, ...]


def _current(**options: Any) -> Target:
    return target_of(cudadrv.current_context().device, **options)


def compile_cuda(
    pyfunc: Callable[..., Any],
    return_type: Type | None,
    args: Sequence[Type],
    debug: bool = False,
    inline: bool = False,
) -> CompileResult:
    """Type and lower a function for the current device; no machine code is made.

    Safe to call from several threads.

    Args:
        return_type: what it returns; None for what it happens to.
        debug: with debug information, and exceptions reported.
        inline: mark it to be inlined wherever it is called.

    Raises:
        CompileError: it cannot be compiled.
        TypeError: it returns something else.
    """
    if inline:
        inlined(pyfunc)
    target = _current(debug=debug)
    typed, module = lowered(pyfunc, tuple(args), target)
    if return_type is not None and typed.returns != return_type:
        raise TypeError(f"{pyfunc.__name__} returns {typed.returns}, not {return_type}")
    signature = Signature(typed.returns, tuple(args))
    failures = tuple(module.failures)
    return CompileResult(signature, typed, target, str(module.llvm), annotate(typed), failures)


def compile_kernel(
    pyfunc: Callable[..., Any],
    args: Sequence[Type],
    link: Sequence[Any] = (),
    debug: bool = False,
    inline: bool = False,
    fastmath: bool = False,
    extensions: Sequence[Any] = (),
    max_registers: int | None = None,
) -> CUDAKernel:
    """Compile a kernel for arguments of these types, on the current device.

    Args:
        link, debug, inline, fastmath, extensions, max_registers: as for ``jit``.

    Raises:
        CompileError: it cannot be compiled, or returns something.
    """
    if inline:
        inlined(pyfunc)
    settings = settings_of({"link": list(link), "max_registers": max_registers})
    target = _current(debug=debug, fastmath=fastmath)
    made = compile_for(pyfunc, tuple(args), target, settings)
    return CUDAKernel(made, tuple(inspect.signature(pyfunc).parameters), tuple(extensions))


class DeviceFunctionTemplate(DeviceFunction):
    """A device function that is compiled for the argument types of each call."""

    def __init__(
        self, pyfunc: Callable[..., Any], debug: bool = False, inline: bool = False
    ) -> None:
        super().__init__(pyfunc, None)
        self.debug = debug
        self.inline = inline
        self._compiled: dict[tuple[Type, ...], CompileResult] = {}
        if inline:
            inlined(pyfunc)

    def _state(self) -> tuple[Any, ...]:
        return self.pyfunc, self.debug, self.inline

    def compile(self, args: Sequence[Type]) -> CompileResult:
        """Type and lower it for these types, once.

        Raises:
            CompileError: it cannot be compiled.
        """
        key = tuple(args)
        if key not in self._compiled:
            self._compiled[key] = compile_cuda(self.pyfunc, None, key, self.debug)
        return self._compiled[key]

    def inspect_llvm(self, args: Sequence[Type]) -> str:
        """The LLVM IR for these types."""
        return self.compile(args).library

    def inspect_ptx(
        self, args: Sequence[Type], nvvm_options: dict[str, Any] | None = None
    ) -> bytes:
        """The PTX of the function for these types, on the current device, as C code calls it.

        Args:
            nvvm_options: attributes of the target, such as ``opt`` and ``fastmath``.
        """
        target = _current(debug=self.debug, **(nvvm_options or {}))
        return compile_c(self.pyfunc, tuple(args), target).ptx.encode()


def compile_device_template(
    pyfunc: Callable[..., Any], debug: bool = False, inline: bool = False
) -> DeviceFunctionTemplate:
    """A device function that kernels call with whatever types they have."""
    return DeviceFunctionTemplate(pyfunc, debug, inline)


def compile_device(
    pyfunc: Callable[..., Any],
    return_type: Type | None,
    args: Sequence[Type],
    inline: bool = True,
    debug: bool = False,
) -> DeviceFunction:
    """A device function with one signature; calls convert to its types.

    Raises:
        CompileError: it cannot be compiled.
        TypeError: it returns something else than *return_type*.
    """
    if inline:
        inlined(pyfunc)
    found = compile_cuda(pyfunc, return_type, args, debug)
    return DeviceFunction(pyfunc, found.signature)


class CachedPTX:
    """LLVM IR, and the PTX made of it for each compute capability that was asked for.

    Args:
        name: of the kernel, for the dump.
        llvmir: in the dialect of the current code generator.
        options: attributes of the target, such as ``fastmath``.
    """

    def __init__(self, name: str, llvmir: str, options: dict[str, Any] | None = None) -> None:
        self.name = name
        self.llvmir = llvmir
        self.options = dict(options or {})
        self.cache: dict[tuple[int, int], str] = {}

    def get(self) -> str:
        """The PTX for the current device, compiled once; COMPILER_DUMP_ASSEMBLY=1 prints it."""
        device = cudadrv.current_context().device
        ptx = self.cache.get(device.compute_capability)
        if ptx is None:
            target = target_of(device, **self.options)
            ptx = self.cache[target.cc] = select(target).compile(self.llvmir, target)
            if config.dump_assembly():
                print(f"{f' assembly of {self.name} ':-^80}\n{ptx}\n{'':-<80}")
        return ptx


class CachedCUFunction:
    """PTX with the files to link, loaded once in each context.

    Args:
        entry_name: of the kernel.
        ptx: what it is in.
        linking: files and codes as for ``jit(link=...)``.
    """

    def __init__(
        self,
        entry_name: str,
        ptx: CachedPTX,
        linking: Sequence[Any] = (),
        max_registers: int | None = None,
    ) -> None:
        self.entry_name = entry_name
        self.ptx = ptx
        self.linking = tuple(linking)
        self.max_registers = max_registers
        self._loaded: dict[int, tuple[cudadrv.Kernel, str]] = {}

    def get(self) -> cudadrv.Kernel:
        """The kernel in the current context."""
        return self._entry()[0]

    def get_info(self) -> str:
        """What the linker, or the driver's compiler, remarked."""
        return self._entry()[1]

    def _entry(self) -> tuple[cudadrv.Kernel, str]:
        context = cudadrv.current_context().handle
        found = self._loaded.get(context)
        if found is None:
            found = self._loaded[context] = self._load()
        return found

    def _load(self) -> tuple[cudadrv.Kernel, str]:
        text = self.ptx.get()
        if not self.linking and self.max_registers is None:
            library = cudadrv.load(text)
            return library[self.entry_name], library.log
        linker = cudadrv.Linker(max_registers=self.max_registers)
        linker.add_ptx(text, self.entry_name)
        for each in self.linking:
            linker.add_file_guess_ext(each)
        library = cudadrv.load(linker.link())
        return library[self.entry_name], linker.info_log

    def __reduce__(self) -> tuple[Any, ...]:
        if self.linking:
            raise RuntimeError(
                f"{self.entry_name} is linked with {', '.join(map(str, self.linking))}, files that "
                "another machine may not have: it does not pickle"
            )
        return type(self), (self.entry_name, self.ptx, (), self.max_registers)
