"""ForAll: a kernel launched with a thread for each task, the block size chosen for it."""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any

from cudadrv import CudaError, NotSupportedByDriver

from .autotune import AutoTuner

if TYPE_CHECKING:
    from .kernel import CUDAKernel, CUDAKernelBase

LARGEST, USUAL = 1024, 128


class ForAll:
    """A launch over tasks 0, 1, ..., one thread each; what ``kernel.forall(ntasks)`` gives.

    The kernel takes its task from ``grid(1)`` and must check that it is below *ntasks*: the last
    block may have threads to spare.

    Args:
        ntasks: how many; with 0 a call does nothing.
        tpb: threads of a block; 0 lets the driver choose for this kernel.
        stream, sharedmem: as of a launch.

    Raises:
        ValueError: a number is negative, or no block has so many threads.
        TypeError: a number is no int.
    """

    def __init__(
        self,
        kernel: CUDAKernelBase,
        ntasks: int,
        tpb: int = 0,
        stream: Any = None,
        sharedmem: int = 0,
    ) -> None:
        self.kernel = kernel
        self.ntasks = operator.index(ntasks)
        self.tpb = operator.index(tpb)
        self.stream = stream
        self.sharedmem = operator.index(sharedmem)
        if self.ntasks < 0:
            raise ValueError(f"ntasks={ntasks}: the number of tasks cannot be negative")
        if not 0 <= self.tpb <= LARGEST:
            raise ValueError(f"tpb={tpb}: a block has 1 to {LARGEST} threads; 0 chooses a number")

    def __call__(self, *args: Any) -> None:
        """Launch with these arguments, ordered on the stream."""
        if not self.ntasks:
            return
        kernel = self.kernel.specialize(*args)
        tpb = self.tpb or self.best_block(kernel)
        blocks = -(-self.ntasks // tpb)
        self.kernel[blocks, tpb, self.stream, self.sharedmem](*args)

    def best_block(self, kernel: CUDAKernel) -> int:
        """The threads of a block that keep a multiprocessor busiest, as the driver says.

        C: cuOccupancyMaxPotentialBlockSizeWithFlags
        """
        ask = kernel.bind().occupancy.max_potential_block_size
        try:
            return ask(self.sharedmem, LARGEST)[1]
        except (CudaError, NotSupportedByDriver) as error:
            tuner = AutoTuner(kernel.resources, kernel.device.compute_capability)
            threads = tuner.best() or USUAL
            message = f"the driver cannot choose a block size ({error}): taking {threads} threads"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
            return threads
