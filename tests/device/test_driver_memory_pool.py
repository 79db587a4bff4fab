"""Memory pools, and memory allocated and freed in the order of a stream."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import driver
from cudadrv.shareable import HANDLE_TYPES
from tests.device.driver_code import library

MIB = 1 << 20


@pytest.fixture
def pool():
    """A pool of its own, which is empty and holds nothing back."""
    if not cu.current_context().device.attributes["MEMORY_POOLS_SUPPORTED"]:
        pytest.skip("the device has no memory pools")
    with cu.MemoryPool() as made:
        yield made


@pytest.fixture
def stream():
    """A stream that waits for no other."""
    return cu.Stream(nonblocking=True)


def used(pool):
    """Bytes that are allocated from the pool."""
    return pool.attributes["USED_MEM_CURRENT"]


def test_memory_in_the_order_of_a_stream(stream):
    """Allocated, filled, read by a kernel, copied and freed without waiting once in between."""
    numbers = cu.mem_alloc_async(40, stream)
    out = np.zeros(10, np.float32)
    cu.memset(numbers, 0x3F800000, width=4, stream=stream)
    library()["scale"].launch(1, 32, numbers, 5.0, numbers, 10, stream=stream)
    cu.memcpy(out, numbers, stream=stream)
    numbers.free()
    stream.synchronize()
    assert out.tolist() == [5.0] * 10
    with pytest.raises(cu.ClosedError):
        numbers.handle  # noqa: B018
    with pytest.raises(cu.ClosedError):
        numbers.free()
    numbers.close()


@pytest.mark.parametrize("how", ["free", "free elsewhere", "close", "garbage", "with"])
def test_every_end_gives_it_back(pool, stream, how):
    """However memory ends, the pool counts it as unused when the stream has got there."""
    other = cu.Stream()
    memory = cu.mem_alloc_async(3 * MIB, stream, pool)
    assert used(pool) >= 3 * MIB
    if how == "free":
        memory.free()
    elif how == "free elsewhere":
        stream.synchronize()
        memory.free(other)
    elif how == "close":
        memory.close()
    elif how == "with":
        with memory:
            pass
    else:
        del memory
        gc.collect()
    stream.synchronize()
    other.synchronize()
    assert used(pool) == 0
    assert pool.attributes["USED_MEM_HIGH"] >= 3 * MIB


def test_memory_outlives_its_stream_and_its_pool(stream):
    """Closing either first loses nothing; the memory goes on the default stream then."""
    pool = cu.MemoryPool()
    memory = cu.mem_alloc_async(64, stream, pool)
    cu.memset(memory, 7, stream=stream)
    stream.synchronize()
    stream.close()
    pool.close()
    out = bytearray(64)
    cu.memcpy(out, memory)
    assert set(out) == {7}
    memory.close()
    assert memory.closed


def test_captured_memory_is_the_graph_s(stream):
    """Freed in the capture it lives in each launch; dropped there it is left to the graph."""
    out = np.zeros(4, np.uint8)
    with stream.capture() as graph:
        memory = cu.mem_alloc_async(4, stream)
        cu.memset(memory, 6, stream=stream)
        cu.memcpy(out, memory, stream=stream)
        memory.free()
    with graph.instantiate() as made:
        for _ in range(2):
            out[:] = 0
            made.launch(stream)
            stream.synchronize()
            assert set(out) == {6}
    with stream.capture() as graph:
        memory = cu.mem_alloc_async(4, stream)
        assert not memory.owned
        del memory
    graph.close()


def test_default_streams_take_it():
    """Without a stream, on the legacy and on the per-thread one."""
    for stream in (None, cu.Stream.legacy, cu.Stream.per_thread, 0):
        memory, out = cu.mem_alloc_async(16, stream), bytearray(16)
        cu.memset(memory, 1, stream=stream)
        cu.memcpy(out, memory, stream=stream)
        cu.current_context().synchronize()
        assert set(out) == {1}
        memory.close()


def test_no_bytes_are_no_memory(stream):
    """An empty one needs no driver."""
    with cu.mem_alloc_async(0, stream) as memory:
        assert memory.nbytes == 0
        cu.memset(memory, 1, stream=stream)
    cu.mem_alloc_async(0).free()


def test_a_pool_holds_memory_back(pool, stream):
    """Up to the threshold freed memory stays reserved, until it is trimmed."""
    pool.attributes["RELEASE_THRESHOLD"] = 1 << 40
    assert pool.attributes["RELEASE_THRESHOLD"] == 1 << 40
    cu.mem_alloc_async(8 * MIB, stream, pool).free()
    stream.synchronize()
    assert used(pool) == 0
    assert pool.attributes["RESERVED_MEM_CURRENT"] >= 8 * MIB
    pool.trim()
    assert pool.attributes["RESERVED_MEM_CURRENT"] == 0
    assert pool.attributes["RESERVED_MEM_HIGH"] >= 8 * MIB
    for name in ("RESERVED_MEM_HIGH", "USED_MEM_HIGH"):
        pool.attributes[name] = 0
        assert pool.attributes[name] == 0


def test_attributes_of_a_pool(pool):
    """Every attribute of the header can be asked; what the driver does not know is None."""
    known = dict(pool.attributes)
    assert set(known) >= {"REUSE_ALLOW_OPPORTUNISTIC", "USED_MEM_CURRENT"}
    assert len(known) == len(pool.attributes)
    for name in ("REUSE_FOLLOW_EVENT_DEPENDENCIES", "REUSE_ALLOW_INTERNAL_DEPENDENCIES"):
        assert pool.attributes[name] == 1
        pool.attributes[name] = 0
        assert pool.attributes[name] == 0
    with pytest.raises(KeyError, match="NO_SUCH"):
        pool.attributes["NO_SUCH"]
    with pytest.raises(ValueError, match="RELEASE_THRESHOLD=-1"):
        pool.attributes["RELEASE_THRESHOLD"] = -1
    with pytest.raises(TypeError, match="deleted"):
        del pool.attributes["RELEASE_THRESHOLD"]
    with pytest.raises(cu.CudaError, match="INVALID_VALUE"):
        pool.attributes["USED_MEM_CURRENT"] = 0


def test_the_current_pool_is_used(pool, stream):
    """make_current decides where allocations without a pool come from."""
    before = cu.MemoryPool.current()
    try:
        pool.make_current()
        assert cu.MemoryPool.current().handle == pool.handle
        memory = cu.mem_alloc_async(MIB, stream)
        assert used(pool) >= MIB
        memory.free()
    finally:
        before.make_current()
    default = cu.MemoryPool.default(0)
    assert default.handle == cu.MemoryPool.default().handle != pool.handle
    assert not default.owned
    default.close()
    assert cu.MemoryPool.default().attributes["RELEASE_THRESHOLD"] is not None


def test_a_pool_may_have_a_limit(stream):
    """More than max_nbytes is OutOfMemory, however much the device has."""
    if driver.driver_version() < (12, 2):
        pytest.skip("the driver is older than 12.2")
    with cu.MemoryPool(max_nbytes=64 * MIB) as pool:
        with pytest.raises(cu.OutOfMemory, match=r"asked for 4\.0 GiB"):
            cu.mem_alloc_async(1 << 32, stream, pool)
        cu.mem_alloc_async(MIB, stream, pool).free()
    stream.synchronize()


def test_access_to_a_pool(pool):
    """The device itself may do everything, and cannot be kept out."""
    assert pool.access(0) == "readwrite"
    pool.set_access(cu.Device(0), "readwrite")
    with pytest.raises(cu.CudaError):
        pool.set_access(0, "none")
    with pytest.raises(ValueError, match="'none', 'read', 'readwrite'"):
        pool.set_access(0, "write")
    with pytest.raises(ValueError, match="no device 4711"):
        pool.access(4711)


def test_parts_of_it_are_memory(stream):
    """Slices are views that end with it."""
    memory = cu.mem_alloc_async(16, stream)
    part = memory[4:8]
    cu.memset(memory, 0, stream=stream)
    cu.memset(part, 9, stream=stream)
    out = bytearray(16)
    cu.memcpy(out, memory, stream=stream)
    stream.synchronize()
    assert bytes(out) == bytes(4) + b"\t" * 4 + bytes(8)
    memory.free()
    assert part.closed


def test_pools_for_other_processes():
    """A pool made for it is exported as a handle; where there are none it cannot be made."""
    supported = cu.Device(0).attributes["MEMPOOL_SUPPORTED_HANDLE_TYPES"] or 0
    if not supported & HANDLE_TYPES["posix_fd"]:
        with pytest.raises(cu.CudaError, match="NOT_SUPPORTED"):
            cu.MemoryPool(handle_type="posix_fd")
        return
    stream = cu.Stream()
    with cu.MemoryPool(handle_type="posix_fd") as pool:
        handle = pool.export("posix_fd")
        assert isinstance(handle, int)
        os.close(handle)
        memory = cu.mem_alloc_async(64, stream, pool)
        stream.synchronize()
        assert len(memory.export()) == 64
        memory.free()
        stream.synchronize()


def test_a_pool_for_this_process_alone_is_not_exported(pool):
    """The driver, or the emulator, says that it cannot be."""
    with pytest.raises(cu.CudaError):
        pool.export("posix_fd")
    with pytest.raises(cu.CudaError):
        cu.mem_alloc_async(64, None, pool).export()


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda p: cu.mem_alloc_async(-1), ValueError, "nbytes=-1"),
        (lambda p: cu.mem_alloc_async(1.5), TypeError, r"nbytes=1\.5"),
        (lambda p: cu.mem_alloc_async(8, "x"), TypeError, "no stream"),
        (lambda p: cu.mem_alloc_async(8, None, 5), TypeError, "pool=5"),
        (lambda p: cu.mem_alloc_async(1 << 50), cu.OutOfMemory, r"1024\.0 TiB"),
        (lambda p: cu.mem_alloc_async(8).free("x"), TypeError, "no stream"),
        (lambda p: cu.MemoryPool("gpu"), TypeError, "no place"),
        (lambda p: cu.MemoryPool(99), ValueError, "no device 99"),
        (lambda p: cu.MemoryPool(max_nbytes=-1), ValueError, "max_nbytes=-1"),
        (lambda p: cu.MemoryPool(handle_type="fd"), ValueError, "'posix_fd'"),
        (lambda p: p.trim(-1), ValueError, "keep=-1"),
        (lambda p: p.export("none"), ValueError, "'posix_fd'"),
        (lambda p: cu.MemoryPool.import_from(b"", "fabric"), ValueError, "64 bytes, not 0"),
        (lambda p: cu.MemoryPool.import_from(7, "fabric"), TypeError, "bytes, not int"),
        (lambda p: cu.MemoryPool.import_from(-1, "posix_fd"), ValueError, "handle=-1"),
        (lambda p: cu.MemoryPool.import_from("f", "posix_fd"), TypeError, "handle='f'"),
        (lambda p: p.import_memory(b"x", 8), ValueError, "64 bytes, not 1"),
        (lambda p: cu.MemoryPool.adopt("x"), TypeError, "handle='x'"),
    ],
)
def test_bad_uses(pool, use, error, message):
    """Sizes, streams, pools, places and handles are checked by name."""
    with pytest.raises(error, match=message):
        use(pool)


def test_closed_pools():
    """Everything that needs the pool says that it was closed."""
    pool = cu.MemoryPool()
    pool.close()
    pool.close()
    for use in (
        lambda: cu.mem_alloc_async(8, None, pool),
        lambda: pool.attributes["RELEASE_THRESHOLD"],
        lambda: pool.trim(),
        lambda: pool.access(0),
        lambda: pool.make_current(),
    ):
        with pytest.raises(cu.ClosedError):
            use()
