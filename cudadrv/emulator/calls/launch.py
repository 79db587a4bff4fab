"""cuLaunch..., cuOccupancy..."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from cudadrv.raw import table, types

from .. import state
from ..boundary import exported
from ..execute import Dim, execute
from ..program import Kernel
from ..state import DISABLE_TIMING, Stream, current, device
from ..status import Status, require
from .device import (
    MAX_BLOCK,
    MAX_GRID,
    MAX_THREADS,
    MULTIPROCESSOR,
)
from .module import dynamic_limit, largest_cluster

_ATTRIBUTES = {
    number: name.removeprefix("CU_LAUNCH_ATTRIBUTE_")
    for name, number in table.ENUMS[types.resolve("CUlaunchAttributeID")].items()
}
_END, _BUFFER, _BUFFER_SIZE = 0, 1, 2  # CU_LAUNCH_PARAM_...


def check(kernel: Kernel, grid: Dim, block: Dim, dynamic: int, given: dict[str, Any]) -> bool:
    """Refuse what the device cannot launch; whether the launch is cooperative."""
    cooperative = "COOPERATIVE" in given and bool(given["COOPERATIVE"].cooperative)
    for sizes, limits in ((grid, MAX_GRID), (block, MAX_BLOCK)):
        require(all(0 < size <= limit for size, limit in zip(sizes, limits, strict=True)))
    threads = block[0] * block[1] * block[2]
    require(threads <= MAX_THREADS)
    require(threads <= kernel.max_threads)
    require(dynamic <= dynamic_limit(kernel))
    if cooperative:
        most = _blocks_per_sm(kernel, threads, dynamic) * device.cores
        require(grid[0] * grid[1] * grid[2] <= most, "COOPERATIVE_LAUNCH_TOO_LARGE")
    return cooperative


def start(
    kernel: Kernel,
    grid: Dim,
    block: Dim,
    dynamic: int,
    params: Any,
    attributes: dict[str, Any] | None = None,
) -> None:
    """Run a kernel; *params* are its arguments side by side."""
    context = current()
    given = attributes or {}
    cooperative = check(kernel, grid, block, dynamic, given)
    cluster = _cluster(kernel, grid, given)
    failure = execute(kernel, grid, block, dynamic, params, cooperative, cluster)
    if failure:
        # As on a GPU, the launch itself went well; the calls after it tell.
        context.failure = failure


def _cluster(kernel: Kernel, grid: Dim, attributes: dict[str, Any]) -> Dim:
    """The blocks of a cluster: those of the launch, or those that the kernel was built for."""
    cluster = kernel.cluster or (1, 1, 1)
    if "CLUSTER_DIMENSION" in attributes:
        given = attributes["CLUSTER_DIMENSION"].clusterDim
        asked = (given.x, given.y, given.z)
        require(all(asked) and kernel.cluster in (None, asked), "INVALID_CLUSTER_SIZE")
        cluster = asked
    size = cluster[0] * cluster[1] * cluster[2]
    require(size == 1 or device.capability >= (9, 0), "NOT_SUPPORTED")
    mode = attributes.get("PORTABLE_CLUSTER_SIZE_MODE")
    largest = 16 if mode and mode.portableClusterSizeMode == 2 else largest_cluster(kernel)
    require(size <= largest, "INVALID_CLUSTER_SIZE")
    divides = all(blocks % each == 0 for blocks, each in zip(grid, cluster, strict=True))
    require(divides, "INVALID_CLUSTER_SIZE")
    return cluster


def parameters(kernel: Kernel, pointers: int | None, extra: int | None) -> Any:
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
    start(kernel, (gx, gy, gz), (bx, by, bz), dynamic, parameters(kernel, params, extra))


@exported()
def cuLaunchCooperativeKernel(
    kernel: Kernel, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
    dynamic: int, stream: Stream, params: int,
) -> None:  # fmt: skip
    together = types.record("CUlaunchAttributeValue")(cooperative=1)
    memory = parameters(kernel, params, None)
    start(kernel, (gx, gy, gz), (bx, by, bz), dynamic, memory, {"COOPERATIVE": together})


@exported()
def cuLaunchKernelEx(address: int, kernel: Kernel, params: int, extra: int) -> None:
    require(address)
    config = types.record("CUlaunchConfig").from_address(address)
    state.stream(config.hStream)
    given = attributes(config)
    grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
    block = (config.blockDimX, config.blockDimY, config.blockDimZ)
    memory = parameters(kernel, params, extra)
    start(kernel, grid, block, config.sharedMemBytes, memory, given)
    for name, field in _EVENTS.items():
        if name in given:
            _event(getattr(given[name], field).event).record()


_EVENTS = {
    "PROGRAMMATIC_EVENT": "programmaticEvent",
    "LAUNCH_COMPLETION_EVENT": "launchCompletionEvent",
}


def attributes(config: Any) -> dict[str, Any]:
    """The launch attributes of a CUlaunchConfig, by name; those that are hints do nothing here."""
    kind = types.record(types.resolve("CUlaunchAttribute"))
    given = (kind * config.numAttrs).from_address(config.attrs) if config.numAttrs else ()
    require(all(each.id in _ATTRIBUTES for each in given))
    found = named({each.id: each.value for each in given})
    # One is for streams, one for the nodes of graphs.
    require(not found.keys() & {"MAX", "SYNCHRONIZATION_POLICY", "DEVICE_UPDATABLE_KERNEL_NODE"})
    for name in _EVENTS.keys() & found.keys():
        event = _event(getattr(found[name], _EVENTS[name]).event)
        require(event.flags & DISABLE_TIMING)
    return found


def named(attributes: dict[int, Any]) -> dict[str, Any]:
    """Launch attributes by name instead of by number."""
    return {_ATTRIBUTES[number]: value for number, value in attributes.items()}


def _event(handle: int) -> state.Event:
    return state.find(state.Event, handle)


# -- occupancy: by threads, blocks and shared memory; registers cost nothing here


def _blocks_per_sm(kernel: Kernel, threads: int, dynamic: int) -> int:
    if threads > kernel.max_threads:
        return 0
    return MULTIPROCESSOR.run(threads, 1, kernel.plan.shared_bytes + dynamic).blocks


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


def _config(address: int) -> tuple[Any, dict[str, Any]]:
    require(address)
    config = types.record("CUlaunchConfig").from_address(address)
    return config, attributes(config)


@exported()
def cuOccupancyMaxActiveClusters(kernel: Kernel, address: int) -> int:
    config, attributes = _config(address)
    require(kernel.cluster or "CLUSTER_DIMENSION" in attributes, "INVALID_CLUSTER_SIZE")
    x, y, z = _cluster(kernel, (config.gridDimX, config.gridDimY, config.gridDimZ), attributes)
    threads = config.blockDimX * config.blockDimY * config.blockDimZ
    blocks = _blocks_per_sm(kernel, threads, config.sharedMemBytes) * device.cores
    return blocks // (x * y * z)


@exported()
def cuOccupancyMaxPotentialClusterSize(kernel: Kernel, address: int) -> int:
    config, _ = _config(address)
    require(device.capability >= (9, 0), "NOT_SUPPORTED")
    threads = config.blockDimX * config.blockDimY * config.blockDimZ
    require(_blocks_per_sm(kernel, threads, config.sharedMemBytes))
    return math.prod(kernel.cluster) if kernel.cluster else largest_cluster(kernel)


@exported()
def cuOccupancyAvailableDynamicSMemPerBlock(kernel: Kernel, blocks: int, threads: int) -> int:
    require(blocks > 0 and threads > 0)
    room = MULTIPROCESSOR.shared // blocks - MULTIPROCESSOR.reserved - kernel.plan.shared_bytes
    return max(min(room, dynamic_limit(kernel)), 0)
