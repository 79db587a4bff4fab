"""What the driver tells of addresses."""

from __future__ import annotations

import mmap
import os

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import raw


def test_attributes_of_device_memory():
    """Type, place, range, context and owner of what cuMemAlloc gave."""
    memory = cu.mem_alloc(4096)
    found = cu.pointer_attributes(memory)
    assert found["MEMORY_TYPE"] == raw.CU_MEMORYTYPE_DEVICE
    assert found["DEVICE_POINTER"] == memory.handle
    assert found["CONTEXT"] == memory.context
    assert found["DEVICE_ORDINAL"] == 0
    assert found["IS_MANAGED"] is False
    assert found["RANGE_START_ADDR"] <= memory.handle
    assert found["RANGE_SIZE"] >= 4096
    assert found["HOST_POINTER"] is None
    inside = cu.pointer_attributes(memory.handle + 100)
    assert inside["BUFFER_ID"] == found["BUFFER_ID"]
    assert inside["CU_POINTER_ATTRIBUTE_DEVICE_POINTER"] == memory.handle + 100


def test_attributes_of_other_memory():
    """Pinned and managed memory have a host pointer; pool memory has its pool."""
    pinned, managed = cu.PinnedMemory(64), cu.managed_alloc(64)
    pool = cu.MemoryPool()
    stored = cu.mem_alloc_async(64, None, pool)
    assert cu.pointer_attributes(pinned)["MEMORY_TYPE"] == raw.CU_MEMORYTYPE_HOST
    assert cu.pointer_attributes(pinned)["HOST_POINTER"] == pinned.handle
    assert cu.pointer_attributes(managed)["IS_MANAGED"] is True
    assert cu.pointer_attributes(managed)["HOST_POINTER"] == managed.handle
    assert cu.pointer_attributes(stored)["MEMPOOL_HANDLE"] == pool.handle
    stored.free()
    cu.current_context().synchronize()


def test_every_attribute_can_be_asked():
    """All of the header are there; unknown memory has none of them."""
    found = cu.pointer_attributes(cu.mem_alloc(64))
    assert len(dict(found)) == len(found) == len(raw.CUpointer_attribute.__members__)
    known = {name for name, value in found.items() if value is not None}
    assert known >= {"CONTEXT", "MEMORY_TYPE", "BUFFER_ID", "MAPPED", "ACCESS_FLAGS"}
    plain = bytearray(64)
    assert cu.pointer_attributes(plain)["BUFFER_ID"] is None


def test_copies_of_an_allocation_can_be_synchronous():
    """SYNC_MEMOPS is set and read back; nothing else can be set."""
    memory = cu.mem_alloc(64)
    found = cu.pointer_attributes(memory)
    assert found["SYNC_MEMOPS"] is False
    found["SYNC_MEMOPS"] = True
    assert found["SYNC_MEMOPS"] is True
    found["SYNC_MEMOPS"] = False
    assert found["SYNC_MEMOPS"] is False
    with pytest.raises(TypeError, match="only SYNC_MEMOPS"):
        found["MAPPED"] = False
    with pytest.raises(TypeError, match="deleted"):
        del found["SYNC_MEMOPS"]
    with pytest.raises(KeyError, match="NO_SUCH"):
        found["NO_SUCH"]


def test_kinds_of_memory():
    """One word for each kind, None for what the driver has not seen."""
    buffer = np.zeros(mmap.PAGESIZE, np.uint8)
    assert cu.pointer_kind(cu.mem_alloc(8)) == "device"
    assert cu.pointer_kind(cu.to_device(np.zeros(8))[2:]) == "device"
    assert cu.pointer_kind(cu.PinnedMemory(8)) == "host"
    assert cu.pointer_kind(cu.managed_alloc(8)) == "managed"
    with cu.host_register(buffer) as registered:
        assert cu.pointer_kind(registered) == cu.pointer_kind(buffer) == "host"


def test_the_range_of_an_allocation():
    """Any address inside gives all of it; others are an error of the driver."""
    memory = cu.mem_alloc(1000)
    start, nbytes = cu.address_range(memory[500:600])
    assert start == memory.handle
    assert nbytes >= 1000
    with pytest.raises(cu.CudaError):
        cu.address_range(bytearray(8))


def test_descriptors_for_other_drivers():
    """dma_buf gives a file descriptor where there are some, else NOT_SUPPORTED; pages only."""
    memory = cu.mem_alloc(4 << 20)
    with pytest.raises(ValueError, match="not whole pages"):
        cu.dma_buf(memory[:100])
    with pytest.raises(TypeError, match="known size"):
        cu.dma_buf(memory.handle)
    with pytest.raises(TypeError, match="device memory"):
        cu.dma_buf(bytearray(4096))
    if not cu.Device(0).attributes["DMA_BUF_SUPPORTED"]:
        with pytest.raises(cu.CudaError, match="NOT_SUPPORTED"):
            cu.dma_buf(memory)
        return
    os.close(cu.dma_buf(memory))


@pytest.mark.parametrize(
    ("thing", "error"), [("text", TypeError), (None, TypeError), (-1, ValueError), (1.5, TypeError)]
)
@pytest.mark.parametrize("ask", [cu.pointer_attributes, cu.pointer_kind, cu.address_range])
def test_what_is_no_memory(ask, thing, error):
    """It is refused before the driver is asked."""
    with pytest.raises(error):
        ask(thing)


def test_closed_memory_has_no_attributes():
    """The error is that of every other use."""
    memory = cu.mem_alloc(8)
    memory.close()
    for ask in (cu.pointer_attributes, cu.pointer_kind, cu.address_range, cu.dma_buf):
        with pytest.raises(cu.ClosedError):
            ask(memory)
