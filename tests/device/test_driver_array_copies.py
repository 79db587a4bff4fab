"""Copies into, out of and between device arrays of any layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import cudadrv as cu


def filled(shape, dtype="f4"):
    """An array in which no two elements are the same."""
    return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)


@st.composite
def layouts(draw, shape):
    """A function that gives a view of *shape* of a new array, and that array, in some layout."""
    axes = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -3])) for _ in shape]
    pads = [draw(st.integers(0, 2)) for _ in shape]

    def make(fill):
        base = fill([shape[axis] * abs(steps[axis]) + pads[axis] for axis in axes])
        key = tuple(slice(0, shape[axis] * abs(steps[axis]), abs(steps[axis])) for axis in axes)
        turn = tuple(slice(None, None, -1 if steps[axis] < 0 else 1) for axis in axes)
        view = base[key or ...][turn or ...]
        return base, view.transpose([int(axis) for axis in np.argsort(axes)])

    return make


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_copies_between_any_two_layouts(data):
    """Host to device, device to device and device to host, each side a view of any strides."""
    shape = data.draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    left, right = data.draw(layouts(shape)), data.draw(layouts(shape))
    whole, expected = left(lambda size: np.full(size, -1, np.int32))
    device, target = left(lambda size: cu.to_device(np.full(size, -1, np.int32)))
    _, source = right(lambda size: filled(size, "i4"))
    _, other = right(lambda size: cu.to_device(filled(size, "i4")))
    expected[...] = source
    target.copy_to_device(source)
    np.testing.assert_array_equal(device.copy_to_host(), whole)
    target.copy_to_device(other)
    np.testing.assert_array_equal(device.copy_to_host(), whole)
    out = right(lambda size: np.zeros(size, np.int32))[1]
    np.testing.assert_array_equal(target.copy_to_host(out), source)
    np.testing.assert_array_equal(target.copy_to_host(), source)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_overlapping_copies_take_the_source_as_it_was(data):
    """A part of an array is copied to another part of it as NumPy does."""
    length = data.draw(st.integers(1, 12))
    array, device = filled(20), cu.to_device(filled(20))
    parts = []
    for _ in range(2):
        step = data.draw(st.sampled_from([1, -1, 1 if length > 10 else 2]))
        start = data.draw(st.integers(0, 20 - (length - 1) * abs(step) - 1))
        part = slice(start, start + (length - 1) * abs(step) + 1, abs(step))
        parts.append((part, slice(None, None, 1 if step > 0 else -1)))
    (to, to_turn), (since, since_turn) = parts
    device[to][to_turn].copy_to_device(device[since][since_turn])
    array[to][to_turn] = array[since][since_turn].copy()
    np.testing.assert_array_equal(device.copy_to_host(), array)


def test_a_source_around_its_target():
    """An array whose ends are on both sides of the target is copied through memory of its own."""
    device = cu.to_device(filled(12))
    device[4:7].copy_to_device(device[1::5])
    assert device.copy_to_host().tolist() == [0, 1, 2, 3, 1, 6, 11, 7, 8, 9, 10, 11]


def test_assignment_broadcasts_device_arrays():
    """A device array of fewer dimensions, or of another dtype, is assigned as by NumPy."""
    array, device = filled((3, 4)), cu.to_device(filled((3, 4)))
    row, column = np.full(4, 7, "f4"), filled((3, 1)) * 10
    for key, value in ((..., row), (slice(1, None), column[1:]), ((0, slice(2)), filled((1, 2)))):
        device[key] = cu.to_device(value)
        array[key] = value
        np.testing.assert_array_equal(device.copy_to_host(), array)
    device[1] = cu.to_device(np.arange(4, dtype="i8"))
    array[1] = np.arange(4)
    np.testing.assert_array_equal(device.copy_to_host(), array)
    for wrong in (np.zeros(3, "f4"), cu.to_device(np.zeros(3, "f4")), np.zeros((2, 3, 4))):
        with pytest.raises(ValueError, match="broadcast"):
            device[...] = wrong


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16", "S3"])
@pytest.mark.parametrize("value", [0, 1])
def test_fill(dtype, value):
    """Every element of contiguous arrays and of views gets the value."""
    array = np.zeros((4, 6), dtype)
    device = cu.to_device(array)
    device.fill(value)
    array[...] = value
    np.testing.assert_array_equal(device.copy_to_host(), array)
    device[1:, ::2].fill(3)
    array[1:, ::2] = 3
    device[2] = value
    array[2] = value
    np.testing.assert_array_equal(device.copy_to_host(), array)


def test_a_write_touches_only_its_elements():
    """Between the elements of a view, what a stream writes meanwhile is not undone."""
    device = cu.to_device(np.zeros(4096, np.int32))
    device[::2].copy_to_device(np.ones(2048, np.int32))
    assert device.copy_to_host().sum() == 2048
    assert device[1::2].copy_to_host().sum() == 0


def test_read_only_arrays_are_not_written_to():
    """Copies, assignments and fills are refused; so are targets with repeated elements."""
    device = cu.to_device(filled(4))
    frozen = device.broadcast_to((3, 4))
    np.testing.assert_array_equal(frozen.copy_to_host(), np.broadcast_to(filled(4), (3, 4)))
    for write in (
        lambda: frozen.copy_to_device(np.zeros((3, 4), "f4")),
        lambda: frozen.__setitem__(0, 1),
        lambda: frozen.fill(0),
        lambda: cu.memset(device.broadcast_to((1, 4)), 0),
    ):
        with pytest.raises(ValueError, match="read-only"):
            write()
    repeated = cu.DeviceArray(device.memory, (3, 4), "f4", (0, 4))
    with pytest.raises(ValueError, match="several elements at one address"):
        repeated.copy_to_device(np.zeros((3, 4), "f4"))


def test_copies_of_views_on_a_stream():
    """With a stream, strided copies are done when it is."""
    stream, array = cu.Stream(), filled((8, 8))
    device = cu.to_device(array, stream)
    made = cu.device_array((8, 8), "f4", stream=stream)
    made[:, ::-1].copy_to_device(device, stream)
    made[1:4, 2:5].copy_to_device(device[:3, :3], stream)
    out = made.copy_to_host(stream=stream)
    stream.synchronize()
    array[:, ::-1], array[1:4, 2:5] = array.copy(), array[:3, :3].copy()
    np.testing.assert_array_equal(out, array)


def test_copies_without_a_stream_wait_for_the_arrays_own():
    """What was copied on a stream that is not blocking is there, also when that was closed."""
    host = cu.pinned_array(1 << 22, np.uint8)
    host[...] = 3
    with cu.Stream(nonblocking=True) as stream:
        open_, closed = cu.to_device(host, stream), cu.to_device(host, stream)
        assert (open_.copy_to_host() == 3).all()
    made = cu.device_array_like(closed)
    assert closed[1:].T.shape == (closed.size - 1,)
    made.copy_to_device(closed)
    assert (made.copy_to_host() == 3).all()
    assert open_.__cuda_array_interface__["stream"] is None and closed.stream is None
    assert cu.from_dlpack(cu.to_device(host, stream.__class__(nonblocking=True)))[-1] == 3


def test_stream_zero_waits():
    """As numba.cuda's default, 0 is no stream: the copy is done when the call returns."""
    array = filled(1000)
    device = cu.to_device(array, stream=0)
    np.testing.assert_array_equal(device.copy_to_host(stream=0), array)
    with pytest.raises(TypeError, match="stream"):
        device.copy_to_host(stream="0")


def test_to_device_into_an_existing_array():
    """``to`` is copied into and returned; ``copy=False`` leaves it alone."""
    made = cu.to_device(np.zeros(3, "f4"))
    assert cu.to_device(filled(3), to=made) is made
    cu.to_device(np.ones(3, "f4"), copy=False, to=made)
    np.testing.assert_array_equal(made.copy_to_host(), filled(3))
    with pytest.raises(TypeError, match="to="):
        cu.to_device(filled(3), to=filled(3))


def test_new_arrays_with_strides():
    """Strides may leave gaps; they are in bytes, one a dimension."""
    made = cu.device_array((3, 2), "f4", strides=(16, 4))
    made.copy_to_device(filled((3, 2)))
    np.testing.assert_array_equal(made.copy_to_host(), filled((3, 2)))
    for strides in ((16,), (-16, 4)):
        with pytest.raises(ValueError, match="strides"):
            cu.device_array((3, 2), "f4", strides)
    with pytest.raises(TypeError, match="strides"):
        cu.device_array((3, 2), "f4", "ab")
