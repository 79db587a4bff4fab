"""DeviceArray: shapes, orders and views, compared with NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import cudadrv as cu

SHAPES = [(), (1,), (7,), (0,), (3, 0, 2), (2, 3), (4, 1, 5), (2, 3, 4, 5)]
DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[s]", "S3"]
RECORD = np.dtype([("a", "i4"), ("b", "f8"), ("c", "i2", (2,))], align=True)


def filled(shape, dtype="f4"):
    """An array in which no two elements are the same."""
    size = int(np.prod(shape))
    return np.arange(size).astype(dtype).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_of_every_shape(shape):
    """What is copied to the device comes back, also without dimensions or elements."""
    array = filled(shape)
    device = cu.to_device(array)
    assert (device.shape, device.dtype, device.size) == (array.shape, array.dtype, array.size)
    assert (device.ndim, device.nbytes, device.itemsize) == (array.ndim, array.nbytes, 4)
    back = device.copy_to_host()
    assert back.shape == array.shape
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip_of_every_type(dtype):
    """Every element type without Python objects."""
    array = np.arange(6).astype(dtype)
    np.testing.assert_array_equal(cu.to_device(array).copy_to_host(), array)


def test_records():
    """Structured arrays keep their fields."""
    array = np.zeros(4, RECORD)
    array["a"], array["b"] = range(4), 0.5
    back = cu.to_device(array).copy_to_host()
    assert back.dtype == RECORD
    np.testing.assert_array_equal(back, array)


def test_objects_are_refused():
    """Python objects cannot be on a device."""
    with pytest.raises(TypeError, match="objects"):
        cu.to_device(np.array([object()]))
    with pytest.raises(TypeError, match="objects"):
        cu.device_array(3, object)


def test_fortran_order_is_kept():
    """An array in F order stays so on the device and on the way back."""
    array = np.asfortranarray(filled((3, 4)))
    device = cu.to_device(array)
    assert device.strides == array.strides
    assert device.f_contiguous and not device.c_contiguous
    back = device.copy_to_host()
    assert back.flags.f_contiguous
    np.testing.assert_array_equal(back, array)
    into = np.zeros((3, 4), np.float32)
    np.testing.assert_array_equal(device.copy_to_host(into), array)


@pytest.mark.parametrize(
    "array",
    [
        filled((6, 8))[::2, ::-3],
        filled((5,))[::-1],
        np.broadcast_to(filled((3, 1)), (3, 4)),
        filled((2, 3, 4)).transpose(2, 0, 1),
        filled((4, 4))[1:3, 1:3],
    ],
)
def test_host_arrays_with_gaps_are_copied(array):
    """Slices, negative strides, broadcasts and transposes become C order on the device."""
    device = cu.to_device(array)
    assert device.c_contiguous
    np.testing.assert_array_equal(device.copy_to_host(), array)


@pytest.mark.parametrize("value", [5, 2.5, [1, 2, 3], np.float32(2), True])
def test_scalars_and_lists(value):
    """What NumPy makes an array of can be copied."""
    np.testing.assert_array_equal(cu.to_device(value).copy_to_host(), np.asarray(value))


def test_new_arrays():
    """device_array and device_array_like give shape, dtype and order."""
    for order in ("C", "F"):
        array = np.zeros((3, 5), np.int16, order)
        made = cu.device_array((3, 5), np.int16, order=order)
        like = cu.device_array_like(array)
        again = cu.device_array_like(made)
        for device in (made, like, again):
            assert (device.shape, device.dtype, device.strides) == (
                array.shape,
                array.dtype,
                array.strides,
            )
    assert cu.device_array(7).dtype == np.float64
    with pytest.raises(ValueError, match="negative"):
        cu.device_array((3, -1))
    with pytest.raises(ValueError, match="order"):
        cu.device_array(3, order="X")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_basic_indexing_is_that_of_numpy(data):
    """Any basic index gives what NumPy's gives: a scalar, or a view of same shape and strides."""
    shape = data.draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    array = filled(shape)
    device = cu.to_device(array)
    key = data.draw(npst.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    expected, view = array[key], device[key]
    assert view.shape == expected.shape
    if not isinstance(expected, np.ndarray):
        assert type(view) is type(expected) and view == expected
        return
    if expected.size:
        np.testing.assert_array_equal(view.copy_to_host(), expected)
        assert view.c_contiguous == expected.flags.c_contiguous
        assert view.f_contiguous == expected.flags.f_contiguous


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_writing_into_a_view_changes_only_that(data):
    """Assigning to a view leaves the rest of the array as it was."""
    shape = data.draw(npst.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))
    array = filled(shape)
    device = cu.to_device(array)
    key = data.draw(npst.basic_indices(shape))
    values = -1 - filled(np.shape(array[key]))
    device[key] = values
    array[key] = values
    np.testing.assert_array_equal(device.copy_to_host(), array)


def test_assignment_broadcasts():
    """``a[key] = value`` takes scalars, smaller arrays and device arrays."""
    array, device = filled((4, 6)), cu.to_device(filled((4, 6)))
    for key, value in (((1, slice(2, 5)), 9), (slice(None, None, 2), np.arange(6)), ((0, 0), 3.5)):
        array[key] = value
        device[key] = value
    device[3] = device[1]
    array[3] = array[1]
    np.testing.assert_array_equal(device.copy_to_host(), array)


@pytest.mark.parametrize("key", [[0, 1], np.array([True, False]), 1.5, True])
def test_other_indexing_is_refused(key):
    """Lists, masks and fractions are an IndexError that says what to do."""
    with pytest.raises(IndexError, match="copy to the host"):
        cu.to_device(filled((2, 2)))[key]


def test_indices_out_of_range():
    """As with NumPy, an IndexError."""
    device = cu.to_device(filled((2, 2)))
    for key in (2, (0, -3), (0, 0, 0)):
        with pytest.raises(IndexError):
            device[key]


def test_reshape_ravel_and_transpose():
    """The usual views; what would need a copy is refused."""
    array, device = filled((2, 6)), cu.to_device(filled((2, 6)))
    np.testing.assert_array_equal(device.reshape(3, 4).copy_to_host(), array.reshape(3, 4))
    np.testing.assert_array_equal(device.reshape((4, -1)).copy_to_host(), array.reshape(4, -1))
    np.testing.assert_array_equal(device.ravel().copy_to_host(), array.ravel())
    np.testing.assert_array_equal(device.T.copy_to_host(), array.T)
    np.testing.assert_array_equal(device.view(np.int32).copy_to_host(), array.view(np.int32))
    for bad in ((5,), (5, -1), (2, 2)):
        with pytest.raises(ValueError, match="reshape"):
            device.reshape(bad)
    with pytest.raises(ValueError, match="contiguous"):
        device.T.ravel()


def test_copies_between_device_arrays():
    """Device to device, also between different orders and views."""
    array = filled((4, 5))
    source = cu.to_device(array)
    for target in (
        cu.device_array((4, 5), np.float32),
        cu.device_array((4, 5), np.float32, order="F"),
    ):
        target.copy_to_device(source)
        np.testing.assert_array_equal(target.copy_to_host(), array)
    target = cu.to_device(np.zeros((4, 5), np.float32))
    target[::2].copy_to_device(source[1::2])
    np.testing.assert_array_equal(target.copy_to_host()[::2], array[1::2])


def test_mismatches_are_refused():
    """Shape and dtype must agree; both are shown."""
    device = cu.to_device(filled((2, 3)))
    for bad in (filled((3, 2)), filled((6,)), filled((2, 3), "f8")):
        with pytest.raises(ValueError, match=r"\(2, 3\)"):
            device.copy_to_device(bad)
        with pytest.raises(ValueError, match=r"\(2, 3\)"):
            device.copy_to_host(bad)
        with pytest.raises(ValueError, match=r"\(2, 3\)"):
            device.copy_to_device(cu.to_device(bad))
    frozen = np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        device.copy_to_host(frozen)


def test_array_interface():
    """The CUDA Array Interface describes arrays and views, and is understood."""
    device = cu.to_device(filled((4, 6)))
    interface = device.__cuda_array_interface__
    assert interface["version"] == 3
    assert (interface["shape"], interface["typestr"]) == ((4, 6), "<f4")
    assert interface["strides"] is None
    view = device[::2, 1:]
    assert view.__cuda_array_interface__["strides"] == view.strides
    for each in (device, view, device[::-1], device.T):

        class Foreign:
            __cuda_array_interface__ = each.__cuda_array_interface__

        taken = cu.as_cuda_array(Foreign())
        np.testing.assert_array_equal(taken.copy_to_host(), each.copy_to_host())
    assert cu.device_array(0).__cuda_array_interface__["data"][0] == 0
    with pytest.raises(TypeError, match="to_device"):
        cu.as_cuda_array(np.zeros(3))
    assert cu.is_cuda_array(device) and not cu.is_cuda_array(np.zeros(3))


def test_an_array_must_fit_its_memory():
    """Describing more than the memory has is refused."""
    memory = cu.mem_alloc(64)
    assert cu.DeviceArray(memory, (4, 4), np.float32).size == 16
    for shape, strides, offset in (((4, 5), None, 0), ((4, 4), None, 4), ((2,), (64,), 0)):
        with pytest.raises(ValueError, match="does not fit"):
            cu.DeviceArray(memory, shape, np.float32, strides, offset)


def test_pinned_arrays():
    """A pinned array is a NumPy array whose memory lives as long as a view of it."""
    array = cu.pinned_array((3, 4), np.int32, order="F")
    array[...] = np.arange(12).reshape(3, 4)
    assert array.flags.f_contiguous
    stream = cu.Stream()
    device = cu.to_device(array, stream)
    part = array[1]
    del array
    stream.synchronize()
    assert part.tolist() == [4, 5, 6, 7]
    assert device.copy_to_host()[1].tolist() == [4, 5, 6, 7]


def test_copies_on_a_stream():
    """With a stream the copies are done when it is."""
    stream, array = cu.Stream(), filled((100,))
    device = cu.to_device(array, stream)
    out = np.zeros_like(array)
    device.copy_to_host(out, stream)
    stream.synchronize()
    np.testing.assert_array_equal(out, array)
    np.testing.assert_array_equal(device[::3].copy_to_host(stream=stream), array[::3])


def test_len_and_repr():
    """len() is that of the first dimension; a repr shows shape and type, also when closed."""
    device = cu.to_device(filled((2, 3)))
    assert len(device) == 2
    with pytest.raises(TypeError):
        len(cu.to_device(1.0))
    device.close()
    assert "(2, 3)" in repr(device) and "float32" in repr(device)
