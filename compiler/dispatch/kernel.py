"""Kernels as objects: one specialisation (CUDAKernel) and the configuration of a launch."""

from __future__ import annotations

import copy
import operator
import sys
from collections.abc import Callable
from typing import Any, TextIO

import cudadrv
from cudadrv import driver
from cudadrv.stream import stream_handle

from ..codegen import Target, ptx_version
from . import failures, linking
from .annotate import annotate
from .arguments import Packer, Writeback
from .pipeline import Compiled

Dim = tuple[int, int, int]
KEPT_CONFIGURATIONS = 64


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

    def copy(self) -> Any:
        """A shallow copy: the compiled code is shared."""
        return copy.copy(self)

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
        return clone

    def __getitem__(self, configuration: Any) -> Any:
        """``kernel[griddim, blockdim, stream, sharedmem]``, the last two optional."""
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ValueError("configure a kernel as kernel[griddim, blockdim, stream, sharedmem]")
        return self.configure(*configuration)

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
    """

    def __init__(self, compiled: Compiled, names: tuple[str, ...]) -> None:
        super().__init__()
        self.compiled = compiled
        self.argument_types = compiled.args
        self.entry_name = compiled.name
        self._packer = Packer(names, compiled.args)
        self._loaded: dict[int, cudadrv.Kernel] = {}
        self._runs: dict[Any, Callable[..., None]] = {}

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

    def __call__(self, *args: Any) -> None:
        """Launch; returns once the work is queued, or done if host arrays must come back."""
        self._check_configured(self.entry_name)
        if len(args) != len(self.argument_types):
            raise TypeError(
                f"{self.entry_name} takes {len(self.argument_types)} arguments "
                f"({', '.join(self._packer.names)}), {len(args)} given"
            )
        self.launch(args, self, cudadrv.current_context().handle)

    def launch(self, args: tuple[Any, ...], configured: CUDAKernelBase, context: int) -> None:
        """Launch in the current *context* as *configured*, with the right number of arguments."""
        run = self._prepared(configured, context)
        retr: list[Writeback] = []
        run(*self._packer.pack(args, configured.stream, retr))
        if self.compiled.failures:
            failures.check(self._bound(context), self.compiled.failures, configured.stream)
        if retr:
            driver.cuStreamSynchronize(stream_handle(configured.stream))
        for finish in retr:
            finish()

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
            )
        return run

    def inspect_llvm(self) -> str:
        """The LLVM IR that was given to the code generator."""
        return self.compiled.llvm_ir

    def inspect_ptx(self) -> str:
        """The PTX text."""
        return self.compiled.ptx

    inspect_asm = inspect_ptx

    def inspect_types(self, file: TextIO | None = None) -> None:
        """Print the source, each line with the types of what it assigns."""
        print(annotate(self.compiled.typed), file=file or sys.stdout)


def target_of(device: cudadrv.Device, **options: Any) -> Target:
    """The target of a device, and what its driver reads."""
    reads = None if cudadrv.is_emulator() else ptx_version(cudadrv.driver_version())
    return Target(device.compute_capability, reads, **options)
