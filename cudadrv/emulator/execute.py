"""Runs a launch: blocks spread over worker threads that hold no GIL while they compute."""

from __future__ import annotations

import ctypes
import queue
import sys
import threading
import time
from typing import Any

from . import runtime
from .guard import NOWHERE
from .layout import LAUNCH, WORKSPACE_BYTES
from .program import Kernel
from .state import current, device

Dim = tuple[int, int, int]
# Handing blocks to other threads costs about this; less work than that stays on the caller's.
_WORTH_SPREADING_NS = 60_000
_CHUNK_NS = 50_000


class Pool:
    """Threads that run jobs; grows to the number of cores, and lives as long as the process."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Any, int, Any]] = queue.SimpleQueue()
        self._size = 0
        self._lock = threading.Lock()

    def start(self, run: Any, record: int, count: int) -> queue.SimpleQueue[None]:
        """Run *run*(*record*) on *count* threads; the queue gets an item from each at its end."""
        with self._lock:
            while self._size < count:
                self._size += 1
                threading.Thread(target=self._work, name="cudadrv-emulator", daemon=True).start()
        done: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(count):
            self._jobs.put((run, record, done))
        return done

    def _work(self) -> None:
        while True:
            run, record, done = self._jobs.get()
            run(record)
            done.put(None)


_pool = Pool()


def execute(
    kernel: Kernel,
    grid: Dim,
    block: Dim,
    dynamic: int,
    params: Any,
    cooperative: bool,
    cluster: Dim = (1, 1, 1),
) -> int:
    """Run all blocks; gives the CUresult that the kernel ended with, 0 if it is well."""
    shared = runtime.install()
    code = kernel.code()
    record = LAUNCH.ctype()
    record.block = code.address("block") or shared.block
    record.thread = code.address("thread")
    record.has_warp_operations = kernel.plan.has_warp_operations
    record.params = ctypes.addressof(params)
    record.grid_x, record.grid_y, record.grid_z = grid
    record.block_x, record.block_y, record.block_z = block
    record.cluster_x, record.cluster_y, record.cluster_z = cluster
    record.dynamic_bytes = dynamic
    record.shared_bytes = kernel.plan.shared_bytes + dynamic
    ranges = current().memory.ranges() if kernel.plan.checked else None
    if ranges:
        record.ranges, record.range_count = ctypes.addressof(ranges), len(ranges) // 2
    run = shared.run
    total = grid[0] * grid[1] * grid[2]
    if cooperative:
        workspace = ctypes.create_string_buffer(WORKSPACE_BYTES)
        record.workspace = ctypes.addressof(workspace)
        _run_together(run, record, total)
    else:
        _run(run, record, total)
    if record.error:
        _report(kernel, record)
    return int(record.error)


def _run(run: Any, record: Any, total: int) -> None:
    """Time the first block on this thread, then share out the rest if that is worth it."""
    address = ctypes.addressof(record)
    record.chunk = 1
    record.limit = 1
    started = time.perf_counter_ns()
    run(address)
    if total == 1:
        return
    each = max(time.perf_counter_ns() - started - 1000, 20)
    workers = min(current().cores or device.cores, total - 1)
    if each * (total - 1) < _WORTH_SPREADING_NS:
        workers = 1
    record.next, record.limit = 1, total
    record.chunk = max(1, min(total // (4 * workers), _CHUNK_NS // each))
    done = _pool.start(run, address, workers - 1)
    run(address)
    for _ in range(workers - 1):
        done.get()


def _run_together(run: Any, record: Any, total: int) -> None:
    """A cooperative launch: every block on a thread of its own, so that they can wait."""
    record.chunk, record.limit = 1, total
    address = ctypes.addressof(record)
    threads = [threading.Thread(target=run, args=(address,)) for _ in range(total - 1)]
    for thread in threads:
        thread.start()
    run(address)
    for thread in threads:
        thread.join()


_REASONS = {
    700: "access to memory outside of all allocations",
    702: "all remaining threads wait for threads that do not come",
    710: "assertion failed",
    716: "access at an address that is not a multiple of its size",
    717: "call of an address that is not a function",
    719: "trap, a handle of no texture or surface, or an access outside of a surface",
}


def _report(kernel: Kernel, record: Any) -> None:
    """One line on stderr: the CUresult alone does not say where."""
    reason = _REASONS.get(record.error, f"error {record.error}")
    block, thread = tuple(record.error_block), tuple(record.error_thread)
    place = f"block {block}" if record.error == 702 else f"block {block}, thread {thread}"
    if block[0] == NOWHERE:
        place = "some block (CUDADRV_EMULATOR_CHECK=1 tells which)"
    print(f"cudadrv emulator: kernel {kernel.name}, {place}: {reason}", file=sys.stderr)
    if record.error_address:
        print(f"  address {record.error_address:#x}", file=sys.stderr)
    if record.error_line:
        print(f"  PTX {kernel.program.locate(record.error_line)}", file=sys.stderr)
