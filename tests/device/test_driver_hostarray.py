"""NumPy arrays in memory that the device reaches: pinned, mapped, managed, registered."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu
from tests.device.driver_code import library

REACHED = [cu.mapped_array, cu.managed_array]


@cuda.jit
def add_one(array):
    """Add one to every element."""
    i = cuda.grid(1)
    if i < array.size:
        array[i] += 1


@pytest.mark.parametrize("make", REACHED)
def test_kernels_write_into_it(make):
    """A kernel works on the array itself and on its slices; the host sees it when synchronised."""
    array = make(8, np.float32)
    array[...] = np.arange(8)
    assert cu.is_cuda_array(array) and cu.is_cuda_array(array[::2])
    add_one[1, 32](array)
    add_one[1, 32](array[1::2])
    add_one[1, 32](array[::-1][:2])
    cu.current_context().synchronize()
    assert array.tolist() == [1, 3, 3, 5, 5, 7, 8, 10]


@pytest.mark.parametrize("make", REACHED)
def test_plain_launches_take_it(make):
    """So do kernels of loaded code, and copies."""
    out, array = make(4, np.float32), make(4, np.float32)
    array[...] = np.arange(4)
    library()["scale"].launch(1, 32, out, 2.0, array, 4)
    cu.current_context().synchronize()
    assert out.tolist() == [0, 2, 4, 6]
    device = cu.to_device(out)
    device.copy_to_host(array)
    assert array.tolist() == [0, 2, 4, 6]
    cu.as_cuda_array(array).fill(3)
    cu.current_context().synchronize()
    assert array.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("make", REACHED)
def test_what_numpy_computes_is_in_ordinary_memory(make):
    """Results, copies and unpickled arrays are no device arrays."""
    array = make(4, np.float32)
    array[...] = 1
    for ordinary in (
        array + 1,
        array.copy(),
        copy.deepcopy(array),
        pickle.loads(pickle.dumps(array)),
    ):
        assert not cu.is_cuda_array(ordinary)
        with pytest.raises(TypeError, match="to_device"):
            library()["scale"].launch(1, 32, ordinary, 2.0, array, 4)


@pytest.mark.parametrize("make", REACHED)
def test_its_memory_outlives_it(make):
    """A view keeps the memory; dtype, order and strides are NumPy's; read-only is told."""
    array = make((3, 4), np.int16, order="F")
    assert array.flags.f_contiguous and array.dtype == np.int16
    array[...] = np.arange(12).reshape(3, 4)
    part = array[1:, ::2]
    interface = part.__cuda_array_interface__
    assert (interface["shape"], interface["strides"]) == (part.shape, part.strides)
    del array
    gc.collect()
    np.testing.assert_array_equal(cu.as_cuda_array(part).copy_to_host(), [[4, 6], [8, 10]])
    part.flags.writeable = False
    assert cu.as_cuda_array(part).readonly
    assert make((2, 0)).size == 0 and make(()).shape == ()
    assert make(2, strides=(16,)).strides == (16,)


def test_likes():
    """Arrays like another one have its shape, dtype and order."""
    host = np.zeros((2, 3), np.int8, "F")
    for made in (cu.pinned_array_like(host), cu.mapped_array_like(cu.to_device(host))):
        assert (made.shape, made.dtype, made.strides) == (host.shape, host.dtype, host.strides)


def test_flags_are_passed_on():
    """Write-combined memory is writable and readable; the flags are the driver's."""
    for array in (cu.pinned_array(4, wc=True), cu.mapped_array(4, portable=True, wc=True)):
        array[...] = 1
        assert array.sum() == 4
    assert cu.managed_array(4, attach_global=False).shape == (4,)


def test_pinned_arrays_inside_with():
    """Arrays are pinned inside ``with``, overlapping ones refused, and released after errors."""
    array, other = np.arange(1000.0), np.arange(64, dtype=np.int32)
    stream = cu.Stream()
    with cu.pinned(array[::-1], other, np.empty(0)):
        flags = cu.driver.cuMemHostGetFlags(array.ctypes.data)
        device = cu.to_device(array, stream)
        stream.synchronize()
        with (
            pytest.raises(ValueError, match="array 1 is pinned already"),
            cu.pinned(np.ones(9999), other),
        ):
            pass
    assert isinstance(flags, int)
    np.testing.assert_array_equal(device.copy_to_host(), array)
    for _ in range(3):
        with pytest.raises(KeyError), cu.pinned(array, other):
            raise KeyError
    with pytest.raises(TypeError, match="of list"), cu.pinned(array, [1, 2]):
        pass


def test_mapped_arrays_inside_with():
    """Kernels work on registered arrays as device arrays; one gives one, several give a list."""
    array, other = np.arange(8, dtype=np.float32), np.arange(4, dtype=np.float32)
    with cu.mapped(array[::-2]) as device:
        assert device.shape == (4,) and device.strides == (-8,)
        add_one[1, 32](device)
        cu.current_context().synchronize()
    assert array.tolist() == [0, 2, 2, 4, 4, 6, 6, 8]
    with cu.mapped(array, other, np.empty(0, np.float32)) as devices:
        add_one[1, 32](devices[1])
        cu.current_context().synchronize()
        assert [each.shape for each in devices] == [(8,), (4,), (0,)]
    assert other.tolist() == [1, 2, 3, 4]
    with cu.pinned(array), cu.pinned(other):
        pass


def test_too_much_is_refused():
    """What no machine has is a MemoryError or a ValueError, before anything wraps around."""
    for make in (cu.pinned_array, cu.mapped_array, cu.managed_array, cu.device_array):
        for size in (2**60, 2**70):
            with pytest.raises((MemoryError, ValueError)):
                make(size, np.uint8)
