"""Views of device arrays: fields, reshapes, other dtypes, single elements; as NumPy's."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import cudadrv as cu

RECORD = np.dtype([("a", "i4"), ("b", "f8"), ("c", "i2", (2,))], align=True)


def filled(shape, dtype="f4"):
    """An array in which no two elements are the same."""
    return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)


def same(device, host):
    """Check shape, dtype and elements."""
    assert (device.shape, device.dtype) == (host.shape, host.dtype)
    np.testing.assert_array_equal(device.copy_to_host(), host)


def test_an_element_is_a_scalar():
    """Ints for all dimensions give NumPy's scalar; with ... it is the view, to write to."""
    array, device = filled((3, 4)), cu.to_device(filled((3, 4)))
    assert type(device[1, 2]) is np.float32 and device[1, 2] == array[1, 2]
    assert device[1, ...].shape == (4,) and device[1, 2, ...].shape == ()
    device[1, 2, ...].copy_to_device(np.float32(-1))
    assert device[1, 2] == -1
    single = cu.to_device(np.int64(7))
    assert single[()] == 7 and single[...].shape == ()
    assert (bool(single), int(single), float(single), complex(single)) == (True, 7, 7.0, 7 + 0j)
    for several in (device, device[:0]):
        with pytest.raises(ValueError, match="no single value"):
            bool(several)


def test_fields_of_records():
    """A field is a view of the records; one with a shape adds dimensions; lists give several."""
    array = np.zeros((2, 3), RECORD)
    array["a"], array["b"], array["c"] = filled((2, 3)), filled((2, 3)) / 4, filled((2, 3, 2))
    device = cu.to_device(array)
    for name in ("a", "b", "c"):
        same(device[name], array[name])
        assert device[name].strides == array[name].strides
    same(device[["a", "c"]], array[["a", "c"]])
    assert device[1, 2] == array[1, 2]
    device["b"] = 9
    device[0]["c"][:, 1] = -1
    array["b"] = 9
    array[0]["c"][:, 1] = -1
    np.testing.assert_array_equal(device.copy_to_host(), array)
    for missing in ("d", ["a", "d"]):
        with pytest.raises(IndexError, match="'d'"):
            device[missing]
    with pytest.raises(IndexError, match="no fields"):
        device["a"]["a"]


def test_iteration():
    """Views along the first dimension, scalars of one; nothing without dimensions."""
    array, device = filled((3, 2)), cu.to_device(filled((3, 2)))
    for part, expected in zip(device, array, strict=True):
        same(part, expected)
    assert list(device[:, 1]) == list(array[:, 1])
    assert list(cu.device_array((0, 3))) == []
    with pytest.raises(TypeError, match="without dimensions"):
        iter(cu.to_device(1))


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_reshape_is_numpys_or_refused(data):
    """Whatever NumPy reshapes without a copy is a view; the rest is a ValueError."""
    shape = data.draw(npst.array_shapes(min_dims=1, max_dims=4, max_side=4))
    array, order = filled(shape), data.draw(st.sampled_from(["C", "F"]))
    device = cu.to_device(array)
    axes = data.draw(st.permutations(range(len(shape))))
    key = data.draw(npst.basic_indices(shape, allow_ellipsis=False, min_dims=len(shape)))
    array, device = array[key].transpose(axes), device[key].transpose(axes)
    first = data.draw(st.sampled_from([n for n in range(1, 9) if array.size % n == 0]))
    expected = array.reshape((first, -1) if array.size else (first, 0), order=order)
    try:
        found = device.reshape(expected.shape, order=order)
    except ValueError:
        assert not np.shares_memory(array, expected)
    else:
        same(found, expected)
        assert array.size == 0 or np.shares_memory(array, expected)


def test_squeeze_transpose_and_new_dimensions():
    """The usual ways to add, drop and reorder dimensions, with NumPy's refusals."""
    array, device = filled((2, 1, 3, 1)), cu.to_device(filled((2, 1, 3, 1)))
    same(device.squeeze(), array.squeeze())
    same(device.squeeze(-1), array.squeeze(-1))
    same(device.squeeze((1, 3)), array.squeeze((1, 3)))
    same(device[:, None, ..., None], array[:, None, ..., None])
    same(device.transpose(2, 0, 1, -1), array.transpose(2, 0, 1, -1))
    same(device.transpose((3, 2, 1, 0)), array.T)
    same(cu.to_device(array.T).ravel("F"), array.T.ravel("F"))
    same(cu.to_device(filled(3)).broadcast_to((2, 3)), np.broadcast_to(filled(3), (2, 3)))
    for wrong in (
        lambda: device.squeeze(0),
        lambda: device.squeeze(4),
        lambda: device.transpose(0),
    ):
        with pytest.raises(ValueError, match="ax"):
            wrong()
    with pytest.raises(ValueError, match="broadcast"):
        device.broadcast_to((3, 1, 3, 1))


def test_view_as_another_dtype():
    """Elements of another size change the last dimension, which must be contiguous."""
    array, device = filled((3, 4)), cu.to_device(filled((3, 4)))
    for dtype in ("i4", "u1", "f2", "i8", "c16", "V2"):
        same(device.view(dtype), array.view(dtype))
    same(device[::2].view("u1"), array[::2].view("u1"))
    with pytest.raises(ValueError, match="whole number"):
        device[:, :3].view("f8")
    for view in (device.T, device[:, ::2], cu.to_device(np.float32(1))):
        with pytest.raises(ValueError, match="contiguous"):
            view.view("f8")


def test_numpy_takes_a_copy():
    """np.asarray copies; arithmetic and comparisons refuse, rather than go element by element."""
    array, device = filled(5), cu.to_device(filled(5))
    np.testing.assert_array_equal(np.asarray(device), array)
    assert np.asarray(device, np.int8).dtype == np.int8
    with pytest.raises(ValueError, match="copy"):
        np.array(device, copy=False)
    for refused in (
        lambda: array + device,
        lambda: np.sin(device),
        lambda: device == device,
        lambda: array != device,
        lambda: device < 3,
    ):
        with pytest.raises(TypeError):
            refused()
    assert device in {device}


def test_numba_cudas_methods():
    """split, is_c_contiguous, getitem and setitem do what their names say."""
    array, stream = filled(7), cu.Stream()
    device = cu.to_device(array)
    parts = device.split(3)
    assert [part.copy_to_host().tolist() for part in parts] == [[0, 1, 2], [3, 4, 5], [6]]
    assert device.is_c_contiguous() and device.is_f_contiguous()
    assert not device[::2].is_c_contiguous()
    device.setitem(slice(2, 4), [-1, -2], stream)
    device.setitem(0, 9, stream=stream)
    device.setitem(slice(5, 7), cu.to_device(np.array([4, 3])), stream)
    assert device.getitem(2, stream) == -1
    array[2:4], array[0], array[5:] = [-1, -2], 9, [4, 3]
    same(device.getitem(slice(None)), array)
    for wrong in (lambda: device.split(0), lambda: device.reshape(7, 1).split(1)):
        with pytest.raises(ValueError, match="split"):
            wrong()


def test_pickling_is_refused_and_copying_copies():
    """pickle says what to do; copy and deepcopy give arrays of their own."""
    device = cu.to_device(np.asfortranarray(filled((2, 3))))
    with pytest.raises(TypeError, match="copy_to_host"):
        pickle.dumps(device)
    for made in (
        device.copy(),
        copy.copy(device),
        copy.deepcopy(device),
        device[::-1].copy()[::-1],
    ):
        assert made.handle != device.handle
        same(made, device.copy_to_host())
    assert device.copy().f_contiguous


def test_repr_tells_what_matters():
    """Read-only and closed arrays say so."""
    device = cu.to_device(filled(3))
    assert "readonly" in repr(device.broadcast_to((2, 3)))
    device.close()
    assert "closed" in repr(device)
    for use in (device.copy_to_host, device.copy, lambda: device[0], lambda: device.fill(0)):
        with pytest.raises(cu.ClosedError):
            use()


def test_what_is_no_stream_is_refused():
    """An array is ordered on a stream of ours, of another library, or none."""
    memory = cu.mem_alloc(16)
    for wrong in ("stream", object(), 1.5):
        with pytest.raises(TypeError, match="stream"):
            cu.DeviceArray(memory, 4, "f4", stream=wrong)
    assert cu.DeviceArray(memory, 4, "f4", stream=0).stream is None


@pytest.mark.parametrize("dtype", ["S0", "V0", np.dtype([])])
def test_elements_need_a_size(dtype):
    """dtypes without bytes are refused."""
    with pytest.raises(ValueError, match="size"):
        cu.device_array(3, dtype)


def test_a_dtype_with_a_shape_adds_dimensions():
    """As in NumPy."""
    made = cu.device_array(3, np.dtype(("f4", (2,))))
    assert (made.shape, made.dtype) == ((3, 2), np.float32)
