"""Pitched memory, and copies of rectangles and boxes, against NumPy's slices."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv as cu


def grid(*shape):
    """Different bytes on the host."""
    return (np.arange(np.prod(shape)) * 7 % 251).astype(np.uint8).reshape(shape)


def on_device(array):
    """A copy of *array* in plain device memory."""
    array = np.ascontiguousarray(array, np.uint8)
    memory = cu.mem_alloc(array.nbytes)
    cu.memcpy(memory, array)
    return memory


def read(memory, shape):
    """Plain device memory as an array."""
    out = np.empty(shape, np.uint8)
    cu.memcpy(out, memory)
    return out


@pytest.fixture(params=[None, "own"])
def stream(request):
    """Without and with a stream."""
    return cu.Stream() if request.param else None


def wait(stream):
    """Wait for what a copy was ordered on."""
    if stream is not None:
        stream.synchronize()


@pytest.mark.parametrize("element", [4, 8, 16])
def test_pitched_memory_is_what_it_says(element):
    """The pitch is no less than the width, and every row starts aligned."""
    with cu.mem_alloc_pitch(100, 7, element) as memory:
        assert memory.pitch >= memory.width == 100
        assert memory.height == 7
        assert memory.nbytes == memory.pitch * 7
        assert memory.pitch % element == 0
        assert cu.as_cuda_array(memory).strides == (memory.pitch, 1)
        rows = memory[memory.pitch :]
    with pytest.raises(cu.ClosedError):
        rows.handle  # noqa: B018


def test_rows_go_to_pitched_memory_and_back(stream):
    """Pitched memory tells its pitch by itself; what lies between the rows stays."""
    host, back = grid(7, 100), np.zeros((7, 100), np.uint8)
    memory = cu.mem_alloc_pitch(100, 7)
    cu.memset_2d(memory, 255, memory.pitch)
    cu.memcpy_2d(memory, host, 100, 7, stream=stream)
    cu.memcpy_2d(back, memory, 100, 7, stream=stream)
    wait(stream)
    assert np.array_equal(back, host)
    assert set(read(memory, (7, memory.pitch))[:, 100:].flat) <= {255}


def test_parts_of_host_arrays_are_copied(stream):
    """A slice of a NumPy array knows how far apart its rows are, on either side."""
    host = grid(12, 20)
    memory = cu.mem_alloc_pitch(8, 5)
    cu.memcpy_2d(memory, host[3:8, 4:12], 8, 5, stream=stream)
    back = np.zeros((12, 20), np.uint8)
    cu.memcpy_2d(back[1:6, 2:10], memory, 8, 5, stream=stream)
    wait(stream)
    expected = np.zeros((12, 20), np.uint8)
    expected[1:6, 2:10] = host[3:8, 4:12]
    assert np.array_equal(back, expected)


def test_rectangles_inside_device_memory(stream):
    """Positions and pitches choose any rectangle of plain memory, also within one allocation."""
    host = grid(16, 32)
    memory, other = on_device(host), cu.mem_alloc(10 * 64)
    cu.memset(other, 0)
    cu.memcpy_2d(other, memory, 5, 6, 64, 32, (7, 3), (9, 2), stream)
    cu.memcpy_2d(memory, memory, 16, 16, 32, 32, (16, 0), (0, 0), stream)
    cu.memcpy_2d(memory.handle, memory, 4, 3, 32, 32, (0, 5), (8, 1), stream)
    wait(stream)
    expected = np.zeros((10, 64), np.uint8)
    expected[3:9, 7:12] = host[2:8, 9:14]
    assert np.array_equal(read(other, (10, 64)), expected)
    host[:, 16:] = host[:, :16]
    host[5:8, 0:4] = host[1:4, 8:12]
    assert np.array_equal(read(memory, (16, 32)), host)


def test_boxes_are_copied(stream):
    """Host to device, device to device and back, each a box at a place of its own."""
    host = grid(5, 6, 16)
    first, second = on_device(np.zeros((5, 6, 16))), cu.mem_alloc(4 * 7 * 32)
    cu.memset(second, 0)
    cu.memcpy_3d(first, host, 16, 6, 5, stream=stream)
    cu.memcpy_3d(
        second, first, 4, 3, 2, 32, 16, 7, 6, dst_at=(8, 2, 1), src_at=(3, 1, 2), stream=stream
    )
    back = np.zeros((2, 3, 16), np.uint8)
    cu.memcpy_3d(
        back[:, :, 6:10], second, 4, 3, 2, src_pitch=32, src_rows=7, src_at=(8, 2, 1), stream=stream
    )
    wait(stream)
    expected = np.zeros((4, 7, 32), np.uint8)
    expected[1:3, 2:5, 8:12] = host[2:4, 1:4, 3:7]
    assert np.array_equal(read(second, (4, 7, 32)), expected)
    assert np.array_equal(back[:, :, 6:10], host[2:4, 1:4, 3:7])
    assert not back[:, :, :6].any()


def test_cuda_arrays_are_ends_too(stream):
    """A CUDA array, or a part of one, is one end of a rectangle."""
    host = grid(6, 16)
    array = cu.CudaArray.from_host(np.zeros((6, 16), np.uint8))
    cu.memcpy_2d(array, host, 16, 6, stream=stream)
    memory = cu.mem_alloc(3 * 8)
    cu.memcpy_2d(memory, array, 8, 3, src_at=(4, 2), stream=stream)
    back = np.zeros((2, 8), np.uint8)
    cu.memcpy_2d(back, array[1:3, 2:10], 8, 2, stream=stream)
    wait(stream)
    assert np.array_equal(read(memory, (3, 8)), host[2:5, 4:12])
    assert np.array_equal(back, host[1:3, 2:10])
    with pytest.raises(ValueError, match="leaves the array"):
        cu.memcpy_2d(memory, array[1:3, 2:10], 8, 3)


def test_boxes_between_contexts(stream):
    """With contexts= the box goes from the memory of one to that of another."""
    before = cu.current_context()
    host = grid(3, 4, 8)
    source = on_device(host)
    other = cu.Device(0).create_context()
    target = cu.mem_alloc(host.nbytes)
    before.set_current()
    cu.memcpy_3d(target, source, 8, 4, 3, contexts=(None, before), stream=stream)
    wait(stream)
    before.synchronize()
    with other:
        assert np.array_equal(read(target, host.shape), host)
    target.close()
    other.close()
    with pytest.raises(TypeError, match="device to device"):
        cu.memcpy_3d(source, host, 8, 4, 3, contexts=(None, None))


def test_pinned_rows_are_copied(stream):
    """Pinned memory is a host end; it is plain bytes."""
    pinned, memory = cu.PinnedMemory(64), cu.mem_alloc_pitch(16, 4)
    pinned.buffer[:] = bytes(range(64))
    cu.memcpy_2d(memory, pinned, 16, 4, stream=stream)
    out = cu.PinnedMemory(64)
    cu.memcpy_2d(out, memory, 8, 4, dst_pitch=16, src_at=(8, 0), stream=stream)
    wait(stream)
    assert np.array_equal(out.array((4, 16), np.uint8)[:, :8], pinned.array((4, 16), "u1")[:, 8:])


@pytest.mark.parametrize("lengths", [(0, 3), (3, 0)])
def test_no_bytes_are_no_copy(lengths):
    """No width or no height is fine, wherever it lies."""
    memory = on_device(grid(4, 4))
    cu.memcpy_2d(memory, memory, *lengths)
    cu.memcpy_3d(memory, memory, *lengths, 0)
    assert np.array_equal(read(memory, (4, 4)), grid(4, 4))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1, 2), ValueError, "width=-1"),
        ((2, -1), ValueError, "height=-1"),
        ((1 << 64, 1), ValueError, "no memory is as large"),
        ((2.0, 1), TypeError, r"width=2\.0"),
        ((8, 9), ValueError, "dst: the copy ends at byte 72; there are 64"),
        ((8, 2, 4), ValueError, "dst: 8 bytes from byte 0 on do not fit into a row of 4"),
        ((8, 2, 8, 4), ValueError, "src: 8 bytes from byte 0 on do not fit into a row of 4"),
        ((8, 2, 8, -8), ValueError, "src_pitch=-8"),
        ((8, 2, 1 << 31), ValueError, "dst: rows are 2147483648 bytes apart"),
        ((8, 2, 8, 8, (1, 0)), ValueError, "from byte 1 on"),
        ((8, 2, 8, 8, (0, 7)), ValueError, "ends at byte 72"),
        ((8, 2, 8, 8, (0, -1)), ValueError, "dst_at=-1"),
        ((8, 2, 8, 8, (0, 0, 0)), ValueError, "give 2 numbers"),
        ((8, 2, 8, 8, 3), ValueError, "give 2 numbers"),
        ((8, 2, 8, 8, (0, 0), ("a", 0)), TypeError, "src_at='a'"),
        ((8, 2, 8, 8, (0, 0), (0, 0), "s"), TypeError, "no stream"),
    ],
)
def test_bad_rectangles(arguments, error, message):
    """Whatever leaves an end or is no number is named, and nothing is copied."""
    dst, src = on_device(np.zeros((8, 8))), on_device(grid(8, 16))
    with pytest.raises(error, match=message):
        cu.memcpy_2d(dst, src, *arguments)
    assert not read(dst, 64).any()


def test_bad_boxes():
    """Planes that would share rows, and planes outside, are refused."""
    dst, src = on_device(np.zeros(64)), on_device(grid(64))
    for arguments, message in (
        ((4, 4, 5), "dst: the copy ends at byte 80"),
        ((4, 4, 2, 4, 4, 3), "dst: 4 rows from row 0 on do not fit into a plane of 3"),
        ((4, 4, -2), "depth=-2"),
    ):
        with pytest.raises(ValueError, match=message):
            cu.memcpy_3d(dst, src, *arguments)


@pytest.mark.parametrize(
    ("at", "height", "dst_pitch", "apart"),
    [
        ((4, 0), 4, 32, False),
        ((8, 0), 4, 32, True),
        ((0, 1), 4, 32, False),
        ((8, 3), 4, 32, True),
        ((31, 0), 4, 64, False),
        ((0, 4), 4, 32, True),
        ((0, 0), 4, 64, False),
        ((24, 2), 4, 64, True),
    ],
)
def test_only_rectangles_that_share_bytes_overlap(at, height, dst_pitch, apart):
    """Rows that lie between each other's are no overlap; one shared byte is."""
    host = grid(32, 32)
    memory = on_device(host)
    arguments = (memory, memory, 8, height, dst_pitch, 32, at, (0, 0))
    if not apart:
        with pytest.raises(ValueError, match="overlaps"):
            cu.memcpy_2d(*arguments)
        return
    cu.memcpy_2d(*arguments)
    expected = host.copy()
    expected.reshape(-1, dst_pitch)[at[1] : at[1] + height, at[0] : at[0] + 8] = host[:height, :8]
    assert np.array_equal(read(memory, (32, 32)), expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 5), ValueError, "width=0: it must be at least 1"),
        ((5, 0), ValueError, "height=0"),
        ((5, 5, 3), ValueError, "4, 8 or 16"),
        ((5, "a"), TypeError, "height='a'"),
        ((1 << 40, 1 << 40), ValueError, "no memory is as large"),
        ((1 << 25, 1 << 25), cu.CudaError, "cuMemAllocPitch_v2"),
    ],
)
def test_bad_pitched_allocations(arguments, error, message):
    """Each size is checked by name, and together."""
    with pytest.raises(error, match=message):
        cu.mem_alloc_pitch(*arguments)


def test_closed_ends_are_refused():
    """A closed memory on either side is ClosedError."""
    closed, memory = cu.mem_alloc_pitch(8, 8), cu.mem_alloc(64)
    closed.close()
    for ends in ((closed, memory), (memory, closed), (bytearray(64), closed)):
        with pytest.raises(cu.ClosedError):
            cu.memcpy_2d(*ends, 8, 8)
    with pytest.raises(ValueError, match="read-only"):
        cu.memcpy_2d(bytes(64), memory, 8, 8)
