"""cuLaunch..., cuOccupancy..."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import table, types

from .. import state
from ..boundary import exported
from ..execute import Dim, execute
from ..program import Kernel
from ..state import Stream, current, device
from ..status import Status, require
from .device import (
    BLOCKS_SM,
    MAX_BLOCK,
    MAX_GRID,
    MAX_THREADS,
    SHARED_BYTES_SM,
    THREADS_SM,
)
from .module import dynamic_limit

_COOPERATIVE = table.ENUMS[types.resolve("CUlaunchAttributeID")]["CU_LAUNCH_ATTRIBUTE_COOPERATIVE"]
_END, _BUFFER, _BUFFER_SIZE = 0, 1, 2  # CU_LAUNCH_PARAM_...


def _launch(
    kernel: Kernel, grid: Dim, block: Dim, dynamic: int, params: Any, cooperative: bool = False
) -> None:
    context = current()
    for sizes, limits in ((grid, MAX_GRID), (block, MAX_BLOCK)):
        require(all(0 < size <= limit for size, limit in zip(sizes, limits, strict=True)))
    threads = block[0] * block[1] * block[2]
    require(threads <= MAX_THREADS)
    require(threads <= kernel.max_threads)
    require(dynamic <= dynamic_limit(kernel))
    if cooperative:
        most = _blocks_per_sm(kernel, threads, dynamic) * device.cores
        require(grid[0] * grid[1] * grid[2] <= most, "COOPERATIVE_LAUNCH_TOO_LARGE")
    failure = execute(kernel, grid, block, dynamic, params, cooperative)
    if failure:
        # As on a GPU, the launch itself went well; the calls after it tell.
        context.failure = failure


def _params(kernel: Kernel, pointers: int | None, extra: int | None) -> Any:
    """The parameters side by side, as the kernel reads them."""
    memory = ctypes.create_string_buffer(kernel.params_size + 16)
    if pointers:
        start = ctypes.addressof(memory)
        table = (ctypes.c_void_p * len(kernel.params)).from_address(pointers)
        for (offset, size), source in zip(kernel.params, table, strict=True):
            require(source)
            ctypes.memmove(start + offset, source, size)
    elif extra:
        source, size = _extra(extra)
        require(source and size >= kernel.params_size)
        ctypes.memmove(memory, source, kernel.params_size)
    else:
        require(not kernel.params)
    return memory


def _extra(address: int) -> tuple[int, int]:
    """(address, size) of the buffer that an `extra` list names."""
    found: dict[int, int] = {}
    while key := ctypes.c_void_p.from_address(address).value:
        found[key] = ctypes.c_void_p.from_address(address + 8).value or 0
        address += 16
    size = found.get(_BUFFER_SIZE, 0)
    require(_BUFFER in found and size)
    return found[_BUFFER], ctypes.c_size_t.from_address(size).value


@exported()
def cuLaunchKernel(
    kernel: Kernel, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
    dynamic: int, stream: Stream, params: int, extra: int,
) -> None:  # fmt: skip
    _launch(kernel, (gx, gy, gz), (bx, by, bz), dynamic, _params(kernel, params, extra))


@exported()
def cuLaunchCooperativeKernel(
    kernel: Kernel, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
    dynamic: int, stream: Stream, params: int,
) -> None:  # fmt: skip
    _launch(kernel, (gx, gy, gz), (bx, by, bz), dynamic, _params(kernel, params, None), True)


@exported()
def cuLaunchKernelEx(address: int, kernel: Kernel, params: int, extra: int) -> None:
    require(address)
    config = types.record("CUlaunchConfig").from_address(address)
    state.stream(config.hStream)
    kind = types.record(types.resolve("CUlaunchAttribute"))
    attributes = (kind * config.numAttrs).from_address(config.attrs) if config.numAttrs else ()
    cooperative = any(a.id == _COOPERATIVE and a.value.cooperative for a in attributes)
    grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
    block = (config.blockDimX, config.blockDimY, config.blockDimZ)
    memory = _params(kernel, params, extra)
    _launch(kernel, grid, block, config.sharedMemBytes, memory, cooperative)


# -- occupancy: by threads, blocks and shared memory; registers cost nothing here


def _blocks_per_sm(kernel: Kernel, threads: int, dynamic: int) -> int:
    if threads > kernel.max_threads:
        return 0
    shared = kernel.plan.shared_bytes + dynamic
    by_shared = SHARED_BYTES_SM // shared if shared else BLOCKS_SM
    warps = -(-threads // 32)
    return min(BLOCKS_SM, THREADS_SM // (32 * warps), by_shared)


@exported("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
def cuOccupancyMaxActiveBlocksPerMultiprocessor(
    kernel: Kernel, threads: int, dynamic: int, *flags: int
) -> int:
    require(threads > 0)
    return _blocks_per_sm(kernel, threads, dynamic)


@exported("cuOccupancyMaxPotentialBlockSizeWithFlags")
def cuOccupancyMaxPotentialBlockSize(
    kernel: Kernel, callback: int, dynamic: int, limit: int, *flags: int
) -> tuple[int, int]:
    """The block size with the most threads running; of equals, the largest."""
    of_block = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(callback) if callback else None
    best = (0, 0, 0)
    largest = min(limit or MAX_THREADS, kernel.max_threads)
    for threads in [*range(32, largest + 1, 32), *([largest] if largest % 32 else [])]:
        shared = of_block(threads) if of_block else dynamic
        blocks = _blocks_per_sm(kernel, threads, shared)
        best = max(best, (blocks * threads, threads, blocks))
    if not best[0]:
        raise Status("INVALID_VALUE")
    return best[2] * device.cores, best[1]


@exported()
def cuOccupancyAvailableDynamicSMemPerBlock(kernel: Kernel, blocks: int, threads: int) -> int:
    require(blocks > 0 and threads > 0)
    return max(min(SHARED_BYTES_SM // blocks - kernel.plan.shared_bytes, dynamic_limit(kernel)), 0)
