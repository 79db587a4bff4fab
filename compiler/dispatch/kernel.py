"""Kernels as objects: one specialisation (CUDAKernel) and the configuration of a launch."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import cudadrv
from cudadrv import driver, launch_config
from cudadrv.launch import retry
from cudadrv.stream import stream_handle

from ..codegen import Target, ptx_version
from . import failures, linking, native
from .annotate import annotate
from .arguments import Packer, accepted
from .autotune import AutoTuner, Resources
from .forall import ForAll
from .pipeline import Compiled
from .transfers import Writeback

Dim = tuple[int, int, int]
KEPT_CONFIGURATIONS = 64
# Launches after which a launcher is compiled; and where LLVM is not even loaded yet.
HOT, HOT_COLD = 8, 1000


def dimensions(value: Any, name: str) -> Dim:
    """A grid or block size as three ints.

    Raises:
        TypeError: *value* is neither an int nor a tuple of one to three ints.
        ValueError: a size is less than one.
    """
    items = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(items) <= 3:
        raise ValueError(f"{name} {value!r}: give one to three sizes")
    try:
        sizes = [operator.index(item) for item in items]
    except TypeError:
        raise TypeError(f"{name} {value!r}: give an int or a tuple of ints") from None
    if min(sizes) < 1:
        raise ValueError(f"{name} {value!r}: every size must be at least 1")
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


class CUDAKernelBase:
    """A kernel with the configuration of its next launch.

    Attributes:
        griddim, blockdim: sizes of grid and block; (1, 1, 1) until configured.
        stream: where it launches; None for the default stream.
        sharedmem: bytes of dynamic shared memory.
    """

    def __init__(self) -> None:
        self.griddim: Dim = (1, 1, 1)
        self.blockdim: Dim = (1, 1, 1)
        self.stream: Any = None
        self.sharedmem = 0
        self.configured = False
        self._configurations: dict[Any, tuple[CUDAKernelBase, type, type]] = {}
        self._launches = 0
        self._base: CUDAKernelBase | None = None

    @property
    def base(self) -> CUDAKernelBase:
        """The kernel that this is a configured clone of; itself if it is none."""
        return self if self._base is None else self._base

    # The class of kernels without a compiled launcher: those with one have a subclass of their own.
    plain_class: type[CUDAKernelBase]

    def __init_subclass__(cls, launcher: Callable[..., None] | None = None) -> None:
        if launcher is None:
            cls.plain_class = cls

    def copy(self) -> Any:
        """A shallow copy: the compiled code is shared."""
        made = self.plain_class.__new__(self.plain_class)
        made.__dict__.update(self.__dict__)
        return made

    def configure(self, griddim: Any, blockdim: Any, stream: Any = None, sharedmem: int = 0) -> Any:
        """A copy that launches with this configuration."""
        clone = self.copy()
        clone.griddim = dimensions(griddim, "griddim")
        clone.blockdim = dimensions(blockdim, "blockdim")
        clone.stream = stream or None
        clone.sharedmem = operator.index(sharedmem)
        if clone.sharedmem < 0:
            raise ValueError(f"sharedmem {sharedmem}: the number of bytes cannot be negative")
        clone.configured = True
        clone._launches = 0
        clone._base = self.base
        return clone

    def __getitem__(self, configuration: Any) -> Any:
        """``kernel[griddim, blockdim, stream, sharedmem]``, the last two optional."""
        try:
            known, first, second = self._configurations[configuration]
        except (KeyError, TypeError):  # Not seen yet, or a list.
            return self._configured(configuration)
        # 2.0 equals 2, but is no size.
        if configuration[0].__class__ is first and configuration[1].__class__ is second:
            return known
        return self._configured(configuration)

    def _configured(self, configuration: Any) -> Any:
        """A new clone with this configuration, kept for the next time."""
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ValueError("configure a kernel as kernel[griddim, blockdim, stream, sharedmem]")
        clone = self.configure(*configuration)
        if not any(isinstance(each, list) for each in configuration):
            if len(self._configurations) >= KEPT_CONFIGURATIONS:
                self._configurations.clear()
            kinds = type(configuration[0]), type(configuration[1])
            self._configurations[configuration] = (clone, *kinds)
        return clone

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch with the configuration; done when host arrays are copied back, else only queued.

        Raises:
            ValueError: there is no configuration.
            TypeError, OverflowError: the arguments do not fit; the message names the argument.
            CudaError: the driver refused the launch, or an earlier kernel failed.
        """
        self._launch(args, named)

    def _launch(self, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Launch by way of Python."""
        raise NotImplementedError

    def _slow(self, *args: Any, **named: Any) -> None:
        """What the compiled launcher calls for arguments that it leaves to Python."""
        self._launch(args, named)

    def _note(self, kernel: CUDAKernel, context: int, strict: bool) -> None:
        """After some launches of the same *kernel* by way of Python, compile their launcher."""
        self._launches += 1
        if self._launches < (HOT if "llvmlite.binding" in sys.modules else HOT_COLD):
            return
        self._launches = 0
        launcher = kernel.launcher(self, context, strict)
        if launcher is not None:
            # A call then reaches the C function without any of Python in between.
            plain = self.plain_class
            members = {"__call__": launcher, "__doc__": plain.__doc__}
            self.__class__ = type(plain.__name__, (plain,), members, launcher=launcher)

    def specialize(self, *args: Any) -> CUDAKernel:
        """The kernel that these arguments would run, with this configuration."""
        raise NotImplementedError

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = None, sharedmem: int = 0) -> Any:
        """A launch of one thread for each of *ntasks* tasks: see ForAll."""
        return ForAll(self, ntasks, tpb, stream, sharedmem)

    def _check_configured(self, name: str) -> None:
        if not self.configured:
            raise ValueError(
                f"{name} has no launch configuration: call it as {name}[griddim, blockdim](...)"
            )


class CUDAKernel(CUDAKernelBase):
    """One specialisation of a kernel: its code, and a launchable function a context.

    Attributes:
        argument_types: the types that it takes.
        entry_name: its name in the PTX.
        extensions: what prepares arguments, see jit.
    """

    def __init__(
        self, compiled: Compiled, names: tuple[str, ...], extensions: Sequence[Any] = ()
    ) -> None:
        super().__init__()
        self.extensions = extensions
        self.compiled = compiled
        self.argument_types = compiled.args
        self.entry_name = compiled.name
        self._packer = Packer(names, compiled.args)
        self._loaded: dict[int, cudadrv.Kernel] = {}
        self._runs: dict[Any, Callable[..., None]] = {}
        self._launchers: dict[bool, native.Launcher] = {}
        self._tuners: dict[Any, AutoTuner] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as code and configuration; what was loaded, and the stream, stay here."""
        compiled = self.compiled._replace(typed=None, annotated=self.annotated)
        configuration = (self.griddim, self.blockdim, None, self.sharedmem)
        return _unpickled, (
            compiled, self._packer.names, self.extensions, self.configured and configuration,
        )  # fmt: skip

    def specialize(self, *args: Any) -> CUDAKernel:
        """Itself: it has its types."""
        return self

    def __repr__(self) -> str:
        return f"<CUDAKernel {self.entry_name}({', '.join(map(str, self.argument_types))})>"

    @property
    def ptx(self) -> str:
        """The PTX text."""
        return self.compiled.ptx

    def bind(self) -> cudadrv.Kernel:
        """The function loaded in the current context, loading it at first use."""
        return self._bound(cudadrv.current_context().handle)

    def _bound(self, context: int) -> cudadrv.Kernel:
        kernel = self._loaded.get(context)
        if kernel is None:
            kernel = linking.load(self.compiled)[self.entry_name]
            self._loaded[context] = kernel
        return kernel

    def _launch(self, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._check_configured(self.entry_name)
        if named:
            raise TypeError(f"{self.entry_name}: a compiled kernel takes its arguments by position")
        if len(args) != len(self.argument_types):
            raise TypeError(
                f"{self.entry_name} takes {len(self.argument_types)} arguments "
                f"({', '.join(self._packer.names)}), {len(args)} given"
            )
        context = cudadrv.current_context().handle
        if self.launch(args, self, context):
            self._note(self, context, strict=False)

    def launcher(
        self, configured: CUDAKernelBase, context: int, strict: bool
    ) -> Callable[..., None] | None:
        """A compiled launcher for a configuration; None if these arguments need Python.

        Args:
            strict: take arguments of just the kernel's types, none that could be converted.
        """
        if self.compiled.failures or self.extensions or not native.can_launch(self.argument_types):
            return None
        if strict not in self._launchers:
            takes = [accepted(ty, strict) for ty in self.argument_types]
            self._launchers[strict] = native.Launcher(self.argument_types, takes)
        kernel = self._bound(context)
        made = launch_config.config(
            kernel, configured.griddim, configured.blockdim, configured.sharedmem,
            configured.stream, {"cooperative": self.compiled.cooperative},
        )  # fmt: skip

        def failed(code: int) -> None:
            retry(kernel, code, made, None)

        return self._launchers[strict].bind(kernel, made, context, configured._slow, failed)

    def launch(self, args: tuple[Any, ...], configured: CUDAKernelBase, context: int) -> bool:
        """Launch in the current *context* as *configured*, with the right number of arguments.

        Returns:
            whether nothing had to be copied.
        """
        run = self._prepared(configured, context)
        retr: list[Writeback] = []
        run(*self._packer.pack(args, configured.stream, retr, self.extensions))
        if self.compiled.failures:
            failures.check(self._bound(context), self.compiled.failures, configured.stream)
        if retr:
            driver.cuStreamSynchronize(stream_handle(configured.stream))
        for finish in retr:
            finish()
        return not retr

    def _prepared(self, configured: CUDAKernelBase, context: int) -> Callable[..., None]:
        """What launches in *context* with this configuration; the last are kept."""
        key = (
            context,
            configured.griddim,
            configured.blockdim,
            stream_handle(configured.stream),
            configured.sharedmem,
        )
        run = self._runs.get(key)
        if run is None:
            if len(self._runs) >= KEPT_CONFIGURATIONS:
                self._runs.clear()
            run = self._runs[key] = self._bound(context).prepare(
                self._packer.codes,
                grid=configured.griddim,
                block=configured.blockdim,
                stream=configured.stream,
                smem=configured.sharedmem,
                cooperative=self.compiled.cooperative,
            )
        return run

    def max_cooperative_grid_blocks(self, blockdim: Any, dynsmemsize: int = 0) -> int:
        """The most blocks of a grid that waits for itself: as many as run at once.

        C: cuOccupancyMaxActiveBlocksPerMultiprocessor
        """
        kernel = self.bind()
        x, y, z = dimensions(blockdim, "blockdim")
        blocks = kernel.occupancy.max_active_blocks(x * y * z, dynsmemsize)
        return blocks * (kernel.device.attributes["MULTIPROCESSOR_COUNT"] or 1)

    @property
    def annotated(self) -> str:
        """The source, each line with the types of what it assigns."""
        typed = self.compiled.typed
        return self.compiled.annotated if typed is None else annotate(typed)

    @property
    def device(self) -> cudadrv.Device:
        """The device of the current context."""
        return cudadrv.current_context().device

    @property
    def resources(self) -> Resources:
        """What it needs on the current device, and the threads of a block at most."""
        attributes = self.bind().attributes
        return Resources(
            attributes["NUM_REGS"],
            attributes["SHARED_SIZE_BYTES"],
            attributes["LOCAL_SIZE_BYTES"],
            attributes["CONST_SIZE_BYTES"],
            attributes["MAX_THREADS_PER_BLOCK"],
        )

    @property
    def regs_per_thread(self) -> int:
        """Registers of a thread."""
        return self.resources.regs

    @property
    def shared_mem_per_block(self) -> int:
        """Bytes of static shared memory of a block."""
        return self.resources.shared

    @property
    def local_mem_per_thread(self) -> int:
        """Bytes of local memory of a thread."""
        return self.resources.local

    @property
    def const_mem_size(self) -> int:
        """Bytes of constant memory."""
        return self.resources.const

    @property
    def max_threads_per_block(self) -> int:
        """Threads of a block at most."""
        return self.resources.maxthreads

    @property
    def autotune(self) -> AutoTuner:
        """Deprecated: the occupancies by table; ``bind().occupancy`` asks the driver."""
        warnings.warn(
            "kernel.autotune is deprecated: kernel.bind().occupancy asks the driver",
            DeprecationWarning,
            stacklevel=2,
        )
        return self._tuner()

    @property
    def occupancy(self) -> float:
        """Deprecated: the occupancy of the configured block; see ``bind().occupancy.fraction``."""
        warnings.warn(
            "kernel.occupancy is deprecated: see kernel.bind().occupancy.fraction(block)",
            DeprecationWarning,
            stacklevel=2,
        )
        x, y, z = self.blockdim
        return self._tuner().closest(x * y * z)

    def _tuner(self) -> AutoTuner:
        """The tuner for the configured dynamic shared memory, made once."""
        key = self.device.compute_capability, self.sharedmem
        if key not in self._tuners:
            self._tuners[key] = AutoTuner(self.resources, key[0], dynsmem=self.sharedmem)
        return self._tuners[key]

    def inspect_llvm(self) -> str:
        """The LLVM IR that was given to the code generator."""
        return self.compiled.llvm_ir

    def inspect_ptx(self) -> str:
        """The PTX text."""
        return self.compiled.ptx

    inspect_asm = inspect_ptx

    def inspect_types(self, file: TextIO | None = None) -> None:
        """Print the source, each line with the types of what it assigns."""
        print(self.annotated, file=file or sys.stdout)


def _unpickled(
    compiled: Compiled, names: tuple[str, ...], extensions: Sequence[Any], configuration: Any
) -> CUDAKernel:
    kernel = CUDAKernel(compiled, names, extensions)
    return kernel.configure(*configuration) if configuration else kernel


def target_of(device: cudadrv.Device, **options: Any) -> Target:
    """The target of a device, and what its driver reads."""
    reads = None if cudadrv.is_emulator() else ptx_version(cudadrv.driver_version())
    return Target(device.compute_capability, reads, **options)
