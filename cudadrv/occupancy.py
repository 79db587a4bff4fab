"""Occupancy: how much of a kernel fits on a device at once, and which block uses that best."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cudadrv import checks, driver, raw
from cudadrv.launch_config import config, dim3, require_clusters

if TYPE_CHECKING:
    from cudadrv.kernel import Kernel

NO_GLOBAL_CACHE = 1  # CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE
SharedBytes = int | Callable[[int], int]


class Occupancy:
    """What of a kernel fits on the device of the current context: ``kernel.occupancy``.

    Where a method takes *caching*: False tells what would be if global loads were cached in L1
    though that lowers the occupancy, on devices where they are cached at all.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def max_active_blocks(
        self, block: int | tuple[int, ...], smem: int = 0, caching: bool = True
    ) -> int:
        """How many blocks of this size one multiprocessor runs at once; 0 if not even one.

        Args:
            smem: bytes of dynamic shared memory of a block.

        C: cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        """
        x, y, z = dim3(block, "block", self._kernel.limits.block)
        shared = checks.size(smem, "smem")
        flags = 0 if caching else NO_GLOBAL_CACHE
        ask = driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        return int(ask(self._kernel.function, x * y * z, shared, flags))

    def fraction(self, block: int | tuple[int, ...], smem: int = 0) -> float:
        """The part of a multiprocessor's warps that run at once, from 0 to 1."""
        x, y, z = dim3(block, "block", self._kernel.limits.block)
        attributes = self._kernel.device.attributes
        warp = attributes["WARP_SIZE"] or 32
        most = (attributes["MAX_THREADS_PER_MULTIPROCESSOR"] or 2048) // warp
        return self.max_active_blocks(block, smem) * -(-x * y * z // warp) / most

    def max_potential_block_size(
        self, smem: SharedBytes = 0, limit: int = 0, caching: bool = True
    ) -> tuple[int, int]:
        """The block that keeps a multiprocessor busiest, and the grid that fills the device.

        Args:
            smem: bytes of dynamic shared memory of a block, or a function that gives them for a
                number of threads; what it raises is raised here.
            limit: the largest block wanted; 0 is the kernel's own limit.

        Returns:
            (grid, block): the least number of blocks, and the number of threads of each.

        Raises:
            ValueError: no block fits.

        C: cuOccupancyMaxPotentialBlockSizeWithFlags
        """
        limit = operator.index(limit)
        if limit < 0:
            raise ValueError(f"limit={limit}: it must not be negative; 0 is the kernel's own")
        callback = SharedSize(smem) if callable(smem) else None
        shared = 0 if callable(smem) else checks.size(smem, "smem")
        grid, block = ctypes.c_int(), ctypes.c_int()
        code = raw.cuOccupancyMaxPotentialBlockSizeWithFlags(
            ctypes.byref(grid),
            ctypes.byref(block),
            self._kernel.function,
            callback and callback.address,
            shared,
            min(limit or self._kernel.max_threads, self._kernel.max_threads),
            0 if caching else NO_GLOBAL_CACHE,
        )
        if callback and callback.error:
            raise callback.error
        driver.check(code, "cuOccupancyMaxPotentialBlockSizeWithFlags")
        if not block.value:
            raise ValueError(f"no block of kernel {self._kernel.name!r} fits with smem={smem!r}")
        return grid.value, block.value

    def available_dynamic_smem(self, blocks: int, block: int | tuple[int, ...]) -> int:
        """Bytes of dynamic shared memory that each of *blocks* can have beside the others.

        Args:
            blocks: how many shall run on one multiprocessor at once.
            block: the threads of each.

        C: cuOccupancyAvailableDynamicSMemPerBlock
        """
        x, y, z = dim3(block, "block", self._kernel.limits.block)
        blocks = operator.index(blocks)
        if not 0 < blocks < 1 << 31:
            raise ValueError(f"blocks={blocks}: at least one block")
        ask = driver.cuOccupancyAvailableDynamicSMemPerBlock
        return int(ask(self._kernel.function, blocks, x * y * z))

    def max_active_clusters(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        cluster: int | tuple[int, ...] | None = None,
        smem: int = 0,
        stream: object = None,
        **attributes: Any,
    ) -> int:
        """How many clusters of such a launch the device runs at once.

        Args:
            cluster: blocks of a cluster; None for a kernel that has its size in its code.

        Raises:
            ValueError: the device has no clusters, or the launch would be refused.

        C: cuOccupancyMaxActiveClusters
        """
        require_clusters(self._kernel)
        attributes["cluster"] = cluster
        made = config(self._kernel, grid, block, smem, stream, attributes)
        return int(driver.cuOccupancyMaxActiveClusters(self._kernel.function, made.argument))

    def max_potential_cluster_size(
        self, block: int | tuple[int, ...], smem: int = 0, stream: object = None, **attributes: Any
    ) -> int:
        """How many blocks a cluster can have, eight at most unless the kernel allows more.

        Raises:
            ValueError: the device has no clusters.

        C: cuOccupancyMaxPotentialClusterSize
        """
        require_clusters(self._kernel)
        made = config(self._kernel, 1, block, smem, stream, attributes)
        return int(driver.cuOccupancyMaxPotentialClusterSize(self._kernel.function, made.argument))


class SharedSize:
    """A Python function of the block size as the driver calls it.

    Attributes:
        error: what the function raised; the driver was answered with 0.
    """

    def __init__(self, function: Callable[[int], int]) -> None:
        self._function = function
        self.error: BaseException | None = None
        self._callback = raw.CUoccupancyB2DSize(self._call)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value

    def _call(self, block: int) -> int:
        try:
            return checks.size(self._function(block), "smem")
        except BaseException as error:  # noqa: BLE001 - raised when the driver has returned
            self.error = self.error or error
            return 0
