"""Pinned and registered host memory: flags, views that keep it alive, addresses for kernels."""

from __future__ import annotations

import ctypes
import gc
import mmap
import weakref

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import library

PAGE = mmap.PAGESIZE


def live(memory):
    """A reference that dies when the driver's memory behind *memory* was freed."""
    return weakref.ref(memory._block)


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        ({}, 1),
        ({"portable": False}, 0),
        ({"mapped": True}, 3),
        ({"portable": False, "mapped": True}, 2),
        ({"write_combined": True}, 5),
    ],
)
def test_flags_of_pinned_memory(options, bits):
    """The flags asked for are set; the driver may add some."""
    with cu.PinnedMemory(100, **options) as memory:
        assert memory.flags & bits == bits
        memory.buffer[99] = 7
        assert memory.buffer[99] == 7


def test_views_keep_pinned_memory_alive():
    """close() frees only when arrays and buffers are gone; a closed one gives no new ones."""
    memory = cu.PinnedMemory(16)
    array, whole = np.asarray(memory), memory.array((2, 2), np.int32)
    part = memory.buffer[4:8]
    block = live(memory)
    whole[...] = 258
    memory.close()
    assert memory.closed
    assert bytes(part) == b"\2\1\0\0"
    assert array[4] == 2
    with pytest.raises(cu.ClosedError):
        memory.buffer  # noqa: B018
    with pytest.raises(cu.ClosedError):
        memory.handle  # noqa: B018
    del array, part
    assert block() is not None
    whole[...] = 3
    del whole
    gc.collect()
    assert block() is None


def test_pinned_memory_is_an_array():
    """numpy.asarray shares it, numpy.array copies it; shapes that do not fit are refused."""
    memory = cu.PinnedMemory(8)
    shared, copied = np.asarray(memory), np.array(memory)
    shared[...] = 5
    assert set(memory.buffer) == {5}
    copied[...] = 6
    assert set(memory.buffer) == {5}
    assert memory.array(2, np.uint16).tolist() == [0x0505, 0x0505]
    with pytest.raises(ValueError, match="does not fit into 8 bytes"):
        memory.array(3, np.float32)


def test_empty_pinned_memory():
    """No bytes are fine."""
    with cu.PinnedMemory(0) as memory:
        assert memory.nbytes == len(memory.buffer) == 0
        assert np.asarray(memory).size == 0
        cu.memcpy(cu.mem_alloc(4), memory)


@pytest.mark.parametrize(
    ("nbytes", "error"),
    [(-1, ValueError), (1.5, TypeError), (1 << 70, ValueError), (1 << 60, cu.OutOfMemory)],
)
def test_bad_pinned_sizes(nbytes, error):
    """Sizes are checked, and what the host has not got is OutOfMemory."""
    with pytest.raises(error):
        cu.PinnedMemory(nbytes)


def test_kernels_reach_pinned_memory():
    """``device`` is the address for kernels; it closes with the memory."""
    memory = cu.PinnedMemory(40, mapped=True)
    numbers = memory.array(10, np.float32)
    numbers[...] = np.arange(10)
    view = memory.device
    library()["scale"].launch(1, 32, view, 2.0, view, 10)
    cu.current_context().synchronize()
    assert numbers.tolist() == [2.0 * i for i in range(10)]
    assert view.nbytes == 40
    memory.close()
    with pytest.raises(cu.ClosedError):
        view.handle  # noqa: B018


def test_pinned_memory_is_adopted():
    """Memory that other code pinned is used, and not freed."""
    memory = cu.PinnedMemory(16)
    adopted = cu.PinnedMemory.adopt(memory.handle, 16, memory)
    adopted.buffer[3] = 9
    assert memory.buffer[3] == 9
    adopted.close()
    assert memory.flags & 1
    with pytest.raises(cu.CudaError):
        cu.PinnedMemory.adopt(ctypes.addressof(ctypes.c_int()), 4)
    with pytest.raises(ValueError, match="64 bits"):
        cu.PinnedMemory.adopt(-4, 4)


@pytest.mark.parametrize(
    "make", [bytearray, lambda n: np.zeros(n, np.uint8), lambda n: mmap.mmap(-1, n)]
)
def test_any_buffer_is_registered(make):
    """A registered buffer is an end of copies like any, until it is closed."""
    buffer = make(3 * PAGE)
    memory = cu.mem_alloc(3 * PAGE)
    cu.memset(memory, 7)
    with cu.host_register(buffer) as registered:
        assert registered.nbytes == 3 * PAGE
        stream = cu.Stream()
        cu.memcpy(registered, memory, stream=stream)
        stream.synchronize()
        assert set(memoryview(buffer)) == {7}
        with pytest.raises(cu.CudaError, match="ALREADY_REGISTERED"):
            cu.host_register(buffer)
    assert registered.closed
    with cu.host_register(buffer, 2 * PAGE, mapped=True) as registered:
        assert registered.nbytes == 2 * PAGE
    del registered
    gc.collect()


def test_kernels_reach_registered_memory():
    """``device`` of a registered array is the address for kernels."""
    numbers = np.zeros(1024, np.float32)
    numbers[:10] = np.arange(10)
    with cu.host_register(numbers, mapped=True) as registered:
        library()["scale"].launch(1, 32, registered.device, 3.0, registered.device, 10)
        cu.current_context().synchronize()
    assert numbers[:10].tolist() == [3.0 * i for i in range(10)]


def test_a_registered_buffer_lives_as_long():
    """The buffer is kept alive by the registration and its views, and no longer."""
    buffer = np.zeros(PAGE, np.uint8)
    alive = weakref.ref(buffer)
    registered = cu.host_register(buffer)
    view = registered.buffer
    del buffer
    registered.buffer[5] = 5
    registered.close()
    registered.close()
    gc.collect()
    assert view[5] == 5
    del view
    gc.collect()
    assert alive() is None


def test_garbage_is_unregistered():
    """A registration that is dropped ends: the buffer can be registered again."""
    buffer = np.zeros(PAGE, np.uint8)
    for _ in range(3):
        cu.host_register(buffer)
        gc.collect()
    cu.host_register(buffer).close()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((b"",), ValueError, "read-only memory needs read_only=True"),
        ((bytes(PAGE),), ValueError, "read-only memory needs read_only=True"),
        ((bytearray(),), ValueError, "the memory has 0"),
        ((bytearray(8), 9), ValueError, "cannot register 9 bytes: the memory has 8"),
        ((bytearray(8), -1), ValueError, "nbytes=-1"),
        ((bytearray(8), "x"), TypeError, "nbytes='x'"),
        ((4096,), TypeError, "needs nbytes="),
        ((-4096, 10), ValueError, "64 bits"),
        ((None,), TypeError, "NoneType"),
        ((np.zeros((4, 4))[:, 1],), ValueError, "not contiguous"),
    ],
)
def test_bad_registrations(arguments, error, message):
    """What cannot be pinned is refused before the driver is asked."""
    with pytest.raises(error, match=message):
        cu.host_register(*arguments)


def test_device_memory_is_not_registered():
    """The error says what can be."""
    with pytest.raises(TypeError, match="is device memory"):
        cu.host_register(cu.mem_alloc(8))


def test_the_driver_knows_what_is_registered():
    """An address that is not registered cannot be unregistered, nor mapped."""
    buffer = ctypes.create_string_buffer(64)
    address = ctypes.addressof(buffer)
    with pytest.raises(cu.CudaError, match="NOT_REGISTERED"):
        cu.driver.cuMemHostUnregister(address)
    with pytest.raises(cu.CudaError, match="INVALID_VALUE"):
        cu.driver.cuMemHostGetDevicePointer(address, 0)
    with pytest.raises(cu.CudaError, match="INVALID_VALUE"):
        cu.driver.cuMemFreeHost(address)
