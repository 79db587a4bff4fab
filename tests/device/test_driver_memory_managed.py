"""Managed memory: one address for host and device, advice, prefetching, streams."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import raw
from tests.device.driver_code import library

PAGE = 1 << 16  # no page of any system is larger, so that advice stays where it is given


@pytest.fixture
def memory():
    """Four large pages of managed memory; skips where the host may not touch it meanwhile."""
    device = cu.current_context().device
    if not device.attributes["CONCURRENT_MANAGED_ACCESS"]:
        pytest.skip("the device shares no managed memory with a busy host")
    with cu.managed_alloc(4 * PAGE) as made:
        yield made


@pytest.fixture
def batches():
    """Skip what a driver older than 13.0 has not got."""
    if not raw.available("cuMemPrefetchBatchAsync"):
        pytest.skip(f"driver {cu.driver_version()} has no batches of managed memory")


@pytest.mark.parametrize("attach", ["global", "host"])
def test_host_and_device_share_it(attach):
    """What the host writes the kernel reads, and the other way round, at one address."""
    memory = cu.managed_alloc(40, attach)
    stream = cu.Stream()
    if attach == "host":
        memory.attach(stream)
    numbers = memory.array(10, np.float32)
    numbers[...] = np.arange(10)
    library()["scale"].launch(1, 32, memory, 2.0, memory, 10, stream=stream)
    stream.synchronize()
    assert numbers.tolist() == [2.0 * i for i in range(10)]
    assert np.asarray(memory).ctypes.data == memory.handle


def test_it_is_copied_and_filled_as_device_memory(memory):
    """memset, memcpy and slices work on it as on any device memory."""
    cu.memset(memory, 3)
    cu.memcpy(memory[8:16], b"abcdefgh")
    cu.memcpy(memory[PAGE:], memory[:16])
    cu.current_context().synchronize()
    assert bytes(memory.buffer[PAGE : PAGE + 16]) == b"\3" * 8 + b"abcdefgh"
    assert bytes(memory[8:10].buffer) == b"ab"


def test_views_on_the_host_keep_it_alive():
    """close() frees only when no array is left, also not one of a slice."""
    memory = cu.managed_alloc(64)
    part = memory[8:16]
    array = np.asarray(part)
    block = weakref.ref(memory._block)
    memory.close()
    assert part.closed
    for closed, name in ((part, "handle"), (part, "buffer"), (memory, "buffer")):
        with pytest.raises(cu.ClosedError):
            getattr(closed, name)
    array[...] = 1
    del part
    gc.collect()
    assert block() is not None
    del array
    gc.collect()
    assert block() is None


def test_advice_is_remembered(memory):
    """range_attributes tells what was said of all pages."""
    nothing = memory.range_attributes
    assert not nothing["read_mostly"]
    assert nothing["preferred_location"] is None
    assert nothing["accessed_by"] == ()
    memory.advise("set_read_mostly")
    memory.advise("set_preferred_location", "host")
    memory.advise("set_accessed_by", 0)
    found = memory.range_attributes
    assert found["read_mostly"]
    assert found["preferred_location"] == "host"
    assert 0 in found["accessed_by"]
    memory[:PAGE].advise("unset_read_mostly")
    assert not memory.range_attributes["read_mostly"]
    assert memory[PAGE:].range_attributes["read_mostly"]
    memory.advise("unset_preferred_location")
    memory.advise("unset_accessed_by", cu.Device(0))
    found = memory.range_attributes
    assert found["preferred_location"] is None
    assert 0 not in found["accessed_by"]


@pytest.mark.parametrize("where", [0, "host"])
def test_prefetching_is_remembered(memory, where):
    """The contents come along, and the last place is told."""
    stream = cu.Stream()
    memory.buffer[:4] = b"abcd"
    memory.prefetch(where, stream)
    memory[PAGE:].prefetch(cu.Device(0) if where == 0 else where)
    cu.current_context().synchronize()
    stream.synchronize()
    assert memory.range_attributes["last_prefetch_location"] == where
    assert bytes(memory.buffer[:4]) == b"abcd"


def test_many_at_once(memory, batches):
    """One call prefetches several pieces; discarded ones may have lost their contents."""
    stream = cu.Stream()
    memory.buffer[:4] = b"abcd"
    pieces = [memory[:PAGE], memory[PAGE:PAGE], memory[2 * PAGE :]]
    cu.mem_prefetch(pieces, 0, stream)
    stream.synchronize()
    assert memory[:PAGE].range_attributes["last_prefetch_location"] == 0
    assert bytes(memory.buffer[:4]) == b"abcd"
    cu.mem_discard(pieces, stream)
    cu.mem_discard([memory[PAGE : 2 * PAGE]], stream, prefetch_to=0)
    cu.mem_prefetch([], 0, stream)
    stream.synchronize()
    memory.buffer[:] = bytes(4 * PAGE)


@pytest.mark.parametrize("to", ["single", "global", "host"])
def test_it_is_attached_to_streams(memory, to):
    """Every word is taken; it says who uses the memory, not what is in it."""
    stream = cu.Stream()
    memory.buffer[:4] = b"abcd"
    memory.attach(stream, to)
    stream.synchronize()
    assert bytes(memory.buffer[:4]) == b"abcd"


def test_foreign_managed_memory_is_adopted(memory):
    """It can be advised, and is not freed; other memory is no managed memory."""
    adopted = cu.ManagedMemory.adopt(memory.handle, 2 * PAGE)
    adopted.advise("set_read_mostly")
    assert memory[: 2 * PAGE].range_attributes["read_mostly"]
    assert not adopted.owned
    adopted.buffer[0] = 3
    adopted.close()
    assert memory.buffer[0] == 3
    with pytest.raises(ValueError, match="is not managed"):
        cu.ManagedMemory.adopt(cu.mem_alloc(64))


def test_empty_managed_memory():
    """No bytes are fine, for everything."""
    memory = cu.managed_alloc(0)
    assert len(memory.buffer) == 0
    memory.advise("set_read_mostly")
    memory.prefetch(0)
    cu.memset(memory, 1)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda m: cu.managed_alloc(-1), ValueError, "nbytes=-1"),
        (lambda m: cu.managed_alloc("4"), TypeError, "nbytes='4'"),
        (lambda m: cu.managed_alloc(4, "single"), ValueError, "'global', 'host'"),
        (lambda m: cu.managed_alloc(1 << 62), cu.CudaError, "cuMemAllocManaged"),
        (lambda m: m.advise("read_mostly"), ValueError, "'set_read_mostly'"),
        (lambda m: m.advise(1), ValueError, "advice=1"),
        (lambda m: m.advise("set_read_mostly", 0), TypeError, "takes no place"),
        (lambda m: m.advise("set_accessed_by"), TypeError, "needs the place"),
        (lambda m: m.advise("set_accessed_by", "gpu"), TypeError, "'gpu' is no place"),
        (lambda m: m.advise("set_accessed_by", 4711), ValueError, "no device 4711"),
        (lambda m: m.advise("set_preferred_location", ("host_numa", -1)), ValueError, "node=-1"),
        (lambda m: m.prefetch(None), TypeError, "None is no place"),
        (lambda m: m.prefetch(-1), ValueError, "no device -1"),
        (lambda m: m.prefetch(0, "stream"), TypeError, "no stream"),
        (lambda m: m.attach(None), ValueError, "one of its own"),
        (lambda m: m.attach(cu.Stream(), "all"), ValueError, "'single'"),
        (lambda m: m[8:].attach(cu.Stream()), ValueError, "whole allocation"),
        (lambda m: cu.mem_prefetch([m], 0, None), ValueError, "stream of its own"),
        (lambda m: cu.mem_discard([cu.mem_alloc(4)], cu.Stream()), TypeError, "DeviceMemory is no"),
    ],
)
def test_bad_uses(memory, batches, use, error, message):
    """Wrong words, places, streams and sizes are named."""
    with pytest.raises(error, match=message):
        use(memory)


def test_closed_managed_memory(memory):
    """Everything that needs the memory says that it was closed."""
    memory.close()
    memory.close()
    for use in (
        lambda: memory.advise("set_read_mostly"),
        lambda: memory.prefetch(0),
        lambda: memory.attach(cu.Stream()),
        lambda: memory.range_attributes,
        lambda: memory[:4],
    ):
        with pytest.raises(cu.ClosedError):
            use()
