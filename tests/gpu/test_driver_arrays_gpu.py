"""CUDA arrays that only a real device makes: sparse ones, ones without memory, video formats."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import raw


@pytest.fixture
def has(context):
    """Skip unless the device has an attribute."""

    def check(attribute):
        if not context.device.attributes[attribute]:
            pytest.skip(f"the device says {attribute} = 0")

    return check


def test_sparse_arrays_tell_their_tiles(has):
    """A sparse array has tiles, and a sparse mipmapped one a tail of small levels."""
    has("SPARSE_CUDA_ARRAY_SUPPORTED")
    tile = cu.CudaArray((1024, 1024), np.float32, sparse=True).sparse_properties.tileExtent
    assert tile.width * tile.height * tile.depth * 4 == 65536
    whole = cu.MipmappedArray((1024, 1024), np.float32, sparse=True)
    found = whole.sparse_properties
    assert 0 < found.miptailFirstLevel <= len(whole)
    assert found.miptailSize > 0


def test_deferred_arrays_tell_what_they_need(has):
    """An array without memory says how much, and how aligned, it wants."""
    has("DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED")
    array = cu.CudaArray((1024, 1024), np.float32, deferred=True)
    size, alignment = array.memory_requirements
    assert size >= 1024 * 1024 * 4 and alignment > 0 and size % alignment == 0
    whole = cu.MipmappedArray((1024, 1024), np.float32, deferred=True)
    assert whole.memory_requirements[0] >= size


def test_planes(context):
    """The planes of a video format are arrays of their own, which keep the whole."""
    whole = cu.CudaArray((64, 128), "NV12")
    luma, chroma = whole.plane(0), whole.plane(1)
    assert (luma.shape, luma.dtype, luma.channels) == ((64, 128), np.uint8, 1)
    assert (chroma.shape, chroma.dtype, chroma.channels) == ((32, 64), np.uint8, 2)
    del whole
    for plane in (luma, chroma):
        shape = plane.shape + plane.layout.format.tail
        host = np.random.default_rng(4).integers(0, 256, shape, np.uint8)
        plane.copy_from(host)
        assert np.array_equal(plane.copy_to_host(), host)


def test_compressed_formats(context):
    """A compressed array is made; its elements are not copied as numbers."""
    array = cu.CudaArray((64, 64), "BC1_UNORM")
    assert array.dtype is None and array.descriptor.Format == raw.CU_AD_FORMAT_BC1_UNORM
    with pytest.raises(TypeError, match="no numbers"):
        array.copy_to_host()


def test_arrays_of_other_code(context):
    """An array that was made by a raw call is adopted, used and left to its maker."""
    record = raw.CUDA_ARRAY_DESCRIPTOR(Width=8, Height=4, Format=32, NumChannels=2)
    made = ctypes.c_void_p()
    assert raw.cuArrayCreate(ctypes.byref(made), ctypes.byref(record)) == 0
    adopted = cu.CudaArray.adopt(made.value)
    host = np.arange(64, dtype=np.float32).reshape(4, 8, 2)
    adopted.copy_from(host)
    assert np.array_equal(adopted.copy_to_host(), host)
    adopted.close()
    assert raw.cuArrayDestroy(made.value) == 0
