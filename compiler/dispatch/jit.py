"""The jit decorator, and kernels that are specialised for the arguments of each call."""

from __future__ import annotations

import copyreg
import functools
import inspect
from collections.abc import Callable
from typing import Any, TextIO

import cudadrv

from .. import types
from ..codegen import Target
from ..frontend.program import Program
from ..frontend.source import ALWAYS_INLINE, remember
from ..signature import normalize
from ..types import Signature, Type
from ..typing.promotion import converts
from ..typing.registry import REGISTRY
from .arguments import typeof
from .kernel import CUDAKernel, CUDAKernelBase, target_of
from .options import OPTIONS, settings_of, target_options
from .pipeline import LINKED, compile_kernel, infer_kernel
from .portable import Bundle, found, importable


class AutoJitCUDAKernel(CUDAKernelBase):
    """A kernel compiled for the argument types of each call, or for declared signatures.

    Attributes:
        pyfunc: the Python function.
        definitions: the specialisations by (compute capability, argument types).
        signatures: the declared ones; empty for lazy specialisation.
        extensions: what prepares arguments.
    """

    def __init__(
        self, pyfunc: Callable[..., Any], signatures: tuple[Signature, ...], options: dict[str, Any]
    ) -> None:
        super().__init__()
        self.pyfunc = pyfunc
        self.signatures = signatures
        self.options = options
        self.extensions: list[Any] = list(options.get("extensions", ()))
        self.parameters = tuple(inspect.signature(pyfunc).parameters)
        self.definitions: dict[tuple[tuple[int, int], tuple[Type, ...]], CUDAKernel] = {}
        self._targets: dict[int, Target] = {}
        functools.update_wrapper(self, pyfunc)
        remember(pyfunc)
        for signature in signatures:
            if signature.returns not in (None, types.none):
                raise TypeError(f"the signature {signature} of a kernel must return void")
            infer_kernel(pyfunc, signature.args)  # Errors in the source are shown where it stands.

    def __repr__(self) -> str:
        return f"<kernel {self.pyfunc.__qualname__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as its name where that can be imported, else as its source; nothing compiled."""
        if self.configured:
            return _configured, (self.base, self.griddim, self.blockdim, self.sharedmem)
        return _reduced(self, (self.pyfunc, self.signatures, self.options))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def _launch(self, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._check_configured(self.pyfunc.__name__)
        if named or len(args) != len(self.parameters):
            args = self._bind(args, named)
        context = cudadrv.current_context()
        kernel = self._specialized(args, context)
        if kernel.launch(args, self, context.handle):
            self._note(kernel, context.handle, strict=len(self.signatures) != 1)

    def _bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters."""
        try:
            bound = inspect.signature(self.pyfunc).bind(*args, **named)
        except TypeError as error:
            raise TypeError(
                f"{self.pyfunc.__name__} takes {len(self.parameters)} arguments "
                f"({', '.join(self.parameters)}), {len(args) + len(named)} given: {error}"
            ) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def specialize(self, *args: Any) -> CUDAKernel:
        """The kernel that these arguments would run, with this configuration."""
        kernel: CUDAKernel = self._specialized(args, cudadrv.current_context()).copy()
        kernel.griddim, kernel.blockdim = self.griddim, self.blockdim
        kernel.stream, kernel.sharedmem = self.stream, self.sharedmem
        kernel.configured = self.configured
        return kernel

    def _specialized(self, args: tuple[Any, ...], context: cudadrv.Context) -> CUDAKernel:
        found = []
        for position, arg in enumerate(args):
            try:
                found.append(typeof(arg))
            except (TypeError, OverflowError) as error:
                name = self.parameters[position]
                raise type(error)(f"argument {position} ({name}): {error}") from None
        given = tuple(found)
        if self.signatures:
            given = self._declared(given)
        return self._definition(given, context)

    def _declared(self, given: tuple[Type, ...]) -> tuple[Type, ...]:
        """The argument types of the best declared signature; the only one decides alone."""
        if len(self.signatures) == 1:
            return self.signatures[0].args
        for exact in (True, False):
            for signature in self.signatures:
                pairs = zip(given, signature.args, strict=True)
                if all(g == d if exact else converts(g, d) for g, d in pairs):
                    return signature.args
        declared = "; ".join(map(str, self.signatures))
        raise TypeError(f"{self.pyfunc.__name__} is declared {declared}: no match for {given}")

    def compile(self, signature: Any) -> CUDAKernel:
        """Compile for a signature, or tuple of argument types, on the current device."""
        return self._definition(normalize(signature).args, cudadrv.current_context())

    def _definition(self, args: tuple[Type, ...], context: cudadrv.Context) -> CUDAKernel:
        target = self._target(context)
        kernel = self.definitions.get((target.cc, args))
        if kernel is None:
            compiled = compile_kernel(self.pyfunc, args, target, settings_of(self.options))
            kernel = CUDAKernel(compiled, self.parameters, self.extensions)
            kernel = self.definitions.setdefault((target.cc, args), kernel)
        return kernel

    def _target(self, context: cudadrv.Context) -> Target:
        target = self._targets.get(context.handle)
        if target is None:
            options = target_options(self.options)
            target = self._targets[context.handle] = target_of(context.device, **options)
        return target

    def inspect_llvm(self, signature: Any = None) -> Any:
        """The LLVM IR for a signature, or a dict of all by argument types."""
        return self._inspect(signature, CUDAKernel.inspect_llvm)

    def inspect_ptx(self, signature: Any = None) -> Any:
        """The PTX for a signature, or a dict of all by argument types."""
        return self._inspect(signature, CUDAKernel.inspect_ptx)

    inspect_asm = inspect_ptx

    def get_regs_per_thread(self, signature: Any = None) -> Any:
        """Registers of a thread for a signature, or a dict of all by argument types."""
        return self._inspect(signature, lambda kernel: kernel.regs_per_thread)

    def get_shared_mem_per_block(self, signature: Any = None) -> Any:
        """Bytes of static shared memory of a block, likewise."""
        return self._inspect(signature, lambda kernel: kernel.shared_mem_per_block)

    def get_local_mem_per_thread(self, signature: Any = None) -> Any:
        """Bytes of local memory of a thread, likewise."""
        return self._inspect(signature, lambda kernel: kernel.local_mem_per_thread)

    def get_const_mem_size(self, signature: Any = None) -> Any:
        """Bytes of constant memory, likewise."""
        return self._inspect(signature, lambda kernel: kernel.const_mem_size)

    def get_max_threads_per_block(self, signature: Any = None) -> Any:
        """Threads of a block at most, likewise."""
        return self._inspect(signature, lambda kernel: kernel.max_threads_per_block)

    def _inspect(self, signature: Any, what: Callable[[CUDAKernel], Any]) -> Any:
        if signature is not None:
            return what(self.compile(signature))
        return {args: what(kernel) for (_, args), kernel in self.definitions.items()}

    def inspect_types(self, file: TextIO | None = None) -> None:
        """Print the annotated source of every specialisation."""
        for kernel in self.definitions.values():
            kernel.inspect_types(file)


class DeviceFunction:
    """A function that kernels call; compiled for each call's types, or for its signature."""

    def __init__(self, pyfunc: Callable[..., Any], signature: Signature | None) -> None:
        self.pyfunc = pyfunc
        self.signature = signature
        functools.update_wrapper(self, pyfunc)
        remember(pyfunc)
        if signature is not None:
            Program(REGISTRY).specialize(pyfunc, signature.args)

    def __repr__(self) -> str:
        declared = "" if self.signature is None else f" {self.signature}"
        return f"<device function {self.pyfunc.__qualname__}{declared}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as its name where that can be imported, else as its source."""
        return _reduced(self, self._state())

    def _state(self) -> tuple[Any, ...]:
        """What it is made of."""
        return self.pyfunc, self.signature

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{self.pyfunc.__name__} is a device function: kernels call it; on the host call "
            f"{self.pyfunc.__name__}.pyfunc"
        )


def inlined(pyfunc: Any) -> None:
    """From now on inline a device function wherever it is called."""
    ALWAYS_INLINE.add(pyfunc.__code__)


def _reduced(made: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
    """How a kernel or device function pickles, made of *state*, the function first."""
    pyfunc = state[0]
    name = importable(pyfunc)
    if name is not None and found(pyfunc.__module__, name) is made:
        return found, (pyfunc.__module__, name)
    cls = getattr(made, "plain_class", type(made))
    return copyreg.__newobj__, (cls,), (Bundle(pyfunc), *state[1:])  # type: ignore[attr-defined]


def _configured(
    kernel: CUDAKernelBase, griddim: Any, blockdim: Any, sharedmem: int
) -> CUDAKernelBase:
    return kernel.configure(griddim, blockdim, None, sharedmem)  # type: ignore[no-any-return]


def jit(func_or_sig: Any = None, /, *, device: bool = False, **options: Any) -> Any:
    """Make a kernel, or a device function, of a Python function.

    ``@jit`` specialises at each call; ``@jit("void(float32[:], int32)")``, or a list of
    signatures, fixes the types, and calls convert to them.

    Args:
        func_or_sig: the function, or its signature or signatures.
        device: make a function that kernels call instead.
        **options: `fma` (contract a*b + c, on by default), `fastmath` (flush denormals,
            approximate division and functions; its parts `ftz`, `prec_div`, `prec_sqrt` override
            it), `debug`, `lineinfo`, `opt` (0 to 3), `codegen` ("nvvm", "llvm"), `link` (files or
            codes such as PTXSource), `lto` (optimise across them), `max_registers`,
            `launch_bounds` (threads of a block, or that and blocks of a multiprocessor), `cache`
            (keep the code on disk for other processes), `inline` (True: a device function is
            always inlined), `extensions` (objects whose ``prepare_args(ty, value, stream=, retr=)``
            gives a type and value to pass in place of each argument, the last of them first; what
            they append to ``retr`` is called after the launch). With
            `debug` what a kernel raises or asserts, and a division by zero, is raised by the
            launch, which then waits for the kernel; with `boundscheck` an index out of range.

    Raises:
        TypeError: an option or signature is unknown.
        CompileError: a declared signature does not compile.
    """
    unknown = set(options) - set(OPTIONS)
    if unknown:
        raise TypeError(f"jit has no option {', '.join(sorted(unknown))}: use {', '.join(OPTIONS)}")
    if inspect.isfunction(func_or_sig):
        return _make(func_or_sig, (), device, options)
    declared = func_or_sig if isinstance(func_or_sig, list) else [func_or_sig]
    signatures = tuple(normalize(each) for each in declared if each is not None)
    return lambda pyfunc: _make(pyfunc, signatures, device, options)


def _make(
    pyfunc: Callable[..., Any],
    signatures: tuple[Signature, ...],
    device: bool,
    options: dict[str, Any],
) -> Any:
    if not device:
        return AutoJitCUDAKernel(pyfunc, signatures, options)
    if len(signatures) > 1:
        raise TypeError("a device function has one signature, or none to take what comes")
    if options.get("inline") in (True, "always"):
        inlined(pyfunc)
    if "link" in options:
        LINKED[pyfunc] = settings_of(options).link
    return DeviceFunction(pyfunc, signatures[0] if signatures else None)
