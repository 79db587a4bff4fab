"""Memory of every kind on a real GPU: after many of them, and with work in flight."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import library

CYCLES = 1000
ROOM = 8 << 20  # bytes that caches of the driver and of Python may take
PAGES = 1 << 16


def resident():
    """Bytes of memory that this process has."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def views_outlive():
    """Pinned memory that an array holds when it is closed."""
    with cu.PinnedMemory(PAGES) as memory:
        array = np.asarray(memory)
    array[:] = 1


def managed():
    """Managed memory with advice, touched on both sides."""
    memory = cu.managed_alloc(PAGES)
    memory.advise("set_preferred_location", 0)
    memory.prefetch(0)
    cu.memset(memory, 1)
    cu.current_context().synchronize()
    memory.buffer[0] = 2


def pool():
    """A pool that is closed before its memory."""
    stream = cu.Stream()
    with cu.MemoryPool() as made:
        memory = cu.mem_alloc_async(PAGES, stream, made)
    cu.memset(memory, 1, stream=stream)


def virtual():
    """Virtual memory of two pieces, one of them kept by nothing but the mapping."""
    addresses = cu.VirtualMemory(2 * cu.granularity())
    addresses.map(cu.PhysicalMemory(1))
    addresses.map(cu.PhysicalMemory(1), cu.granularity())
    addresses.set_access()
    cu.memset(addresses, 1)


MAKERS = {
    "device": lambda: cu.mem_alloc(PAGES).close(),
    "device collected": lambda: cu.mem_alloc(PAGES),
    "pitched": lambda: cu.mem_alloc_pitch(1000, 50),
    "pinned": lambda: cu.PinnedMemory(PAGES, mapped=True).device,
    "pinned with views": views_outlive,
    "registered": lambda: cu.host_register(np.zeros(PAGES, np.uint8)),
    "managed": managed,
    "stream": lambda: cu.mem_alloc_async(PAGES),
    "pool": pool,
    "virtual": virtual,
    "virtual in one": lambda: cu.virtual_alloc(1).close(),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_thousand_leave_nothing(alone, make):
    """Memory of the device and of the process is as before."""
    for _ in range(200):
        make()
    gc.collect()
    cu.current_context().synchronize()
    free, rss = cu.current_context().mem_info()[0], resident()
    for _ in range(CYCLES):
        make()
    gc.collect()
    cu.current_context().synchronize()
    assert cu.current_context().mem_info()[0] >= free - ROOM
    assert resident() <= rss + ROOM


@pytest.mark.parametrize("kind", ["device", "stream", "pinned", "managed", "virtual"])
def test_what_is_closed_in_flight_is_still_used(kind):
    """Memory that is closed right after a launch lives until the kernels are done with it."""
    n, repeats = 1 << 22, 50
    stream = cu.Stream(nonblocking=kind == "stream")
    make = {
        "device": cu.mem_alloc,
        "stream": lambda nbytes: cu.mem_alloc_async(nbytes, stream),
        "pinned": lambda nbytes: cu.PinnedMemory(nbytes, mapped=True),
        "managed": cu.managed_alloc,
        "virtual": cu.virtual_alloc,
    }[kind]
    memory = make(4 * n)
    used = memory.device if kind == "pinned" else memory
    out = cu.to_device(np.zeros(n, np.float32))
    cu.current_context().synchronize()
    cu.memset(used, 0x3F800000, 4 * n, 4, stream)
    for _ in range(repeats):
        library()["scale"].launch((n + 255) // 256, 256, out, 2.0, used, n, stream=stream)
    memory.close()
    del memory, used
    gc.collect()
    stream.synchronize()
    assert set(out.copy_to_host()) == {2.0}


def test_host_pages_move_to_the_device_and_back():
    """Managed memory of 64 MiB is prefetched both ways, and keeps its contents."""
    memory, stream = cu.managed_alloc(64 << 20), cu.Stream()
    numbers = memory.array((16 << 20,), np.uint32)
    numbers[:] = np.arange(16 << 20, dtype=np.uint32)
    for where in (0, "host", 0):
        memory.prefetch(where, stream)
        stream.synchronize()
        assert memory.range_attributes["last_prefetch_location"] == where
    assert np.array_equal(numbers, np.arange(16 << 20, dtype=np.uint32))


@pytest.fixture
def peers():
    """The primary contexts of two devices that reach each other's memory."""
    if len(cu.devices()) < 2 or not cu.Device(0).can_access_peer(cu.Device(1)):
        pytest.skip("needs two devices that reach each other")
    before = cu.current_context()
    yield cu.Device(0).primary_context(), cu.Device(1).primary_context()
    before.set_current()


def test_memory_of_one_device_on_another(peers):
    """memcpy_peer, boxes, pools and virtual memory go from device to device."""
    first, second = peers
    data = np.arange(4096, dtype=np.uint8)
    with second:
        there = cu.mem_alloc(4096)
    with first:
        here = cu.mem_alloc(4096)
        cu.memcpy(here, data)
        cu.memcpy_peer(there, here)
        cu.memset(here, 0)
        cu.memcpy_3d(here, there, 64, 8, 8, contexts=(None, None))
        stream = cu.Stream()
        pool = cu.MemoryPool(1)
        pool.set_access(0, "readwrite")
        assert pool.access(0) == "readwrite"
        shared = cu.mem_alloc_async(4096, stream, pool)
        cu.memcpy(shared, here, stream=stream)
        stream.synchronize()
        with cu.virtual_alloc(4096, 1) as virtual:
            virtual.set_access(1)
            cu.memcpy(virtual, shared, 4096)
            out = bytearray(4096)
            cu.memcpy(out, virtual, 4096)
        shared.free()
        stream.synchronize()
    assert bytes(out) == data.tobytes()
