"""Contiguous copies, fills of rectangles, copies between contexts and many at once."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import driver, raw


def numbers(count):
    """Bytes 0, 1, 2, ... on the device."""
    memory = cu.mem_alloc(count)
    cu.memcpy(memory, bytes(i % 256 for i in range(count)))
    return memory


def read(memory):
    """All its bytes."""
    out = bytearray(memory.nbytes)
    cu.memcpy(out, memory)
    return bytes(out)


def test_every_kind_of_host_buffer_is_copied():
    """bytes, bytearray, memoryview of either, NumPy of any dtype and order, pinned memory."""
    pinned = cu.PinnedMemory(4)
    pinned.buffer[:] = b"abcd"
    grid = np.frombuffer(b"abcd", np.uint8).reshape(2, 2)
    moment = np.frombuffer(b"abcdabcd", "datetime64[s]")
    frozen = np.frombuffer(b"abcd", np.uint8)
    plain = (b"abcd", bytearray(b"abcd"), memoryview(b"abcd"))
    for source in (*plain, pinned, frozen, moment, grid.T):
        memory = cu.mem_alloc(8)
        cu.memcpy(memory, source)
        assert read(memory)[:4] == b"abcd"


def test_every_kind_of_writable_host_buffer_is_filled():
    """bytearray, its views, NumPy arrays and pinned memory take bytes from the device."""
    memory, pinned, whole = numbers(4), cu.PinnedMemory(4), bytearray(8)
    cu.memcpy(memoryview(whole)[2:6], memory)
    assert whole == b"\0\0\0\1\2\3\0\0"
    cu.memcpy(pinned, memory)
    assert bytes(pinned.buffer) == b"\0\1\2\3"
    frozen = np.zeros(4, np.uint8)
    frozen.flags.writeable = False
    for readonly in (frozen, memoryview(bytes(4))):
        with pytest.raises(ValueError, match="read-only"):
            cu.memcpy(readonly, memory)


@pytest.mark.parametrize("shift", [1, -1, 7, -7])
def test_overlapping_device_copies_are_refused(shift):
    """The device copies in no known order, so bytes that are both source and target are lost."""
    memory = numbers(32)
    dst, src = memory[8 + shift : 16 + shift], memory[8:16]
    with pytest.raises(ValueError, match="overlaps"):
        cu.memcpy(dst, src)
    with pytest.raises(ValueError, match="overlaps"):
        cu.memcpy(dst.handle, src.handle, 8)
    assert read(memory) == bytes(range(32))


def test_touching_device_copies_are_done():
    """Ends that only touch, or are the same, are fine."""
    memory = numbers(32)
    cu.memcpy(memory[16:24], memory[8:16])
    cu.memcpy(memory[0:8], memory[8:16])
    cu.memcpy(memory, memory)
    eight = bytes(range(8, 16))
    assert read(memory) == eight + eight + eight + bytes(range(24, 32))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1, 0, 4), ValueError, "64 bits"),
        ((1 << 64, 0, 4), ValueError, "64 bits"),
        ((0, 0, 1 << 70), ValueError, "nbytes"),
        ((0, 0, 1.5), TypeError, "float"),
        ((True, 0, 4), TypeError, "bool"),
        ((None, b"abcd"), TypeError, "NoneType"),
        (("text", b"abcd"), TypeError, "str"),
        ((np.array([None]), b""), TypeError, "Python objects"),
    ],
)
def test_bad_copies(arguments, error, message):
    """What ctypes would cut to 64 bits, and what is no memory, is refused by name."""
    with pytest.raises(error, match=message):
        cu.memcpy(*arguments)


def test_unknown_addresses_are_refused_by_the_driver():
    """A device address that nothing was allocated at is an error, not a crash."""
    with pytest.raises(cu.CudaError) as caught:
        cu.memcpy(bytearray(4), 1 << 20)
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"


@pytest.mark.parametrize("stream", [None, "own"])
@pytest.mark.parametrize(("element", "value"), [(1, 0xAB), (2, -2), (4, 0x01020304)])
def test_rectangles_are_filled(stream, element, value):
    """Only the rectangle's bytes change, in every width, with and without a stream."""
    on = cu.Stream() if stream else None
    memory = cu.mem_alloc(64)
    cu.memset(memory, 0)
    cu.memset_2d(memory[16:], value, 8, 3, 16, element, on)
    if on:
        on.synchronize()
    row = (value & ((1 << 8 * element) - 1)).to_bytes(element, "little") * (8 // element)
    assert read(memory) == bytes(16) + (row + bytes(8)) * 3


def test_an_empty_rectangle_is_nothing():
    """No width or no height fills nothing."""
    memory = numbers(8)
    cu.memset_2d(memory, 0, 0, 3)
    cu.memset_2d(memory, 0, 3, 0)
    assert read(memory) == bytes(range(8))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 8, 9, 8), ValueError, "up to byte 72"),
        ((0, 8, 2, 4), ValueError, "pitch 4 is less than the width 8"),
        ((0, 6, 2, 8, 4), ValueError, "multiples of element=4"),
        ((0, 8, 2, 8, 3), ValueError, "multiples of element=3"),
        ((256, 8, 2, 8), ValueError, "256 does not fit"),
        ((0, -8, 2), ValueError, "width=-8"),
        ((0, 8, -2), ValueError, "height=-2"),
        ((0, 1 << 66, 2), ValueError, "no memory is as large"),
        ((0.5, 8, 2), TypeError, "value=0.5"),
        ((0, 8), TypeError, "height="),
    ],
)
def test_bad_rectangles(arguments, error, message):
    """Sizes, pitch, value and element that do not fit are named."""
    with pytest.raises(error, match=message):
        cu.memset_2d(cu.mem_alloc(64), *arguments)


def test_fills_must_be_aligned():
    """An address that is no multiple of the width is refused before the driver sees it."""
    memory = cu.mem_alloc(64)
    for fill in (
        lambda: cu.memset(memory[2:10], 0, width=4),
        lambda: cu.memset_2d(memory[1:], 0, 4, 2, element=2),
    ):
        with pytest.raises(ValueError, match="no multiple of the width"):
            fill()
    with pytest.raises(TypeError, match="host memory"):
        cu.memset(cu.PinnedMemory(8), 0)


@pytest.mark.parametrize("stream", [None, "own"])
def test_copies_between_contexts(stream):
    """memcpy_peer takes the contexts from the memory, or as they are given."""
    before = cu.current_context()
    source = numbers(16)
    other = cu.Device(0).create_context()
    target = cu.mem_alloc(16)
    before.set_current()
    on = cu.Stream() if stream else None
    cu.memcpy_peer(target, source, stream=on)
    cu.memcpy_peer(target[:8], source[8:], 8, other, before.handle, on)
    before.synchronize()
    with other:
        assert read(target) == bytes(range(8, 16)) + bytes(range(8, 16))
    target.close()
    other.close()


def test_bad_copies_between_contexts():
    """Host memory and sizes that do not fit are refused."""
    memory = numbers(16)
    with pytest.raises(TypeError, match="memcpy"):
        cu.memcpy_peer(memory, bytes(16))
    with pytest.raises(ValueError, match="the destination has 8"):
        cu.memcpy_peer(memory[:8], memory)
    with pytest.raises(TypeError, match="context"):
        cu.memcpy_peer(memory[:8], memory[8:], dst_context="here")


@pytest.fixture
def batch():
    """Skip what a driver older than 12.8 has not got."""
    if not raw.available("cuMemcpyBatchAsync"):
        pytest.skip(f"driver {driver.driver_version()} has no batched copies")


@pytest.mark.parametrize("order", ["stream", "call", "any"])
def test_many_copies_at_once(batch, order):
    """Pairs of any kinds are copied by one call; empty ones are left out."""
    stream = cu.Stream(nonblocking=True)
    memory, pinned = cu.mem_alloc(16), cu.PinnedMemory(8)
    cu.memset(memory, 9)
    out = cu.PinnedMemory(4)
    source = numbers(4)
    pinned.buffer[:] = b"abcdefgh"
    cu.current_context().synchronize()
    pairs = [(memory[:8], pinned), (memory[8:8], b""), (memory[8:12], source), (out, source)]
    cu.memcpy_batch(pairs, stream, order)
    stream.synchronize()
    assert read(memory) == b"abcdefgh\0\1\2\3\t\t\t\t"
    assert bytes(out.buffer) == b"\0\1\2\3"
    cu.memcpy_batch([], stream)


def test_bad_batches(batch):
    """The stream, the order and every pair are checked before anything is copied."""
    stream, memory = cu.Stream(), numbers(8)
    with pytest.raises(ValueError, match="stream of its own"):
        cu.memcpy_batch([(memory, b"x")], None)
    with pytest.raises(ValueError, match="'stream', 'call', 'any'"):
        cu.memcpy_batch([(memory, b"x")], stream, "soon")
    with pytest.raises(ValueError, match="the destination has 8"):
        cu.memcpy_batch([(memory, b"xyz"), (memory, bytes(9))], stream)
    assert read(memory) == bytes(range(8))


def test_foreign_memory_is_adopted():
    """An address gets the size of the rest of its allocation; closing it frees nothing."""
    memory = numbers(1024)
    adopted = cu.DeviceMemory.adopt(memory.handle + 1000)
    assert adopted.nbytes >= 24
    assert read(adopted[:4]) == bytes(range(1000 % 256, 1000 % 256 + 4))
    assert not adopted.owned
    adopted.close()
    array = cu.to_device(np.arange(4, dtype=np.int32))
    assert read(cu.DeviceMemory.adopt(array)) == np.arange(4, dtype=np.int32).tobytes()
    assert cu.DeviceMemory.adopt(memory, 8).nbytes == 8


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("text",), TypeError),
        ((-1,), ValueError),
        ((1 << 70,), ValueError),
        ((1 << 20,), cu.CudaError),
    ],
)
def test_bad_adoptions(arguments, error):
    """What is no address, or nobody's, is not adopted."""
    with pytest.raises(error):
        cu.DeviceMemory.adopt(*arguments)
    memory = numbers(16)
    with pytest.raises(ValueError, match="there are"):
        cu.DeviceMemory.adopt(memory, 17)
    memory.close()
    with pytest.raises(cu.ClosedError):
        cu.DeviceMemory.adopt(memory)
