"""CUDA arrays that only a real device makes: sparse ones, ones without memory, video formats."""

from __future__ import annotations

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
    whole = cu.CudaArray((64, 128), "NV12", video=True)
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


@pytest.fixture
def tiles(context):
    """4 MiB of physical memory for tiles."""
    with cu.PhysicalMemory(4 << 20, tiles=True) as memory:
        yield memory


def test_sparse_arrays_take_memory(has, tiles):
    """The part that has memory keeps its elements; the memory can be given to another part."""
    has("SPARSE_CUDA_ARRAY_SUPPORTED")
    array = cu.CudaArray((512, 512), np.float32, sparse=True)
    host = np.arange(256 * 512, dtype=np.float32).reshape(256, 512)
    for rows in (slice(0, 256), slice(256, 512)):
        array.map_memory(tiles, 0, rows)
        array[rows].copy_from(host)
        assert np.array_equal(array[rows].copy_to_host(), host)
        array.unmap_memory(rows)
    cu.current_context().synchronize()


def test_sparse_levels_take_memory(has, tiles):
    """A level and the tail of the small levels have memory of their own."""
    has("SPARSE_CUDA_ARRAY_SUPPORTED")
    whole = cu.MipmappedArray((512, 512), np.float32, sparse=True)
    whole.map_memory(tiles, 0, level=0)
    whole.map_tail(tiles, 2 << 20)
    host = np.arange(512 * 512, dtype=np.float32).reshape(512, 512)
    whole[0].copy_from(host)
    last = whole[len(whole) - 1]
    last.copy_from(np.full(last.shape, 7, np.float32))
    assert np.array_equal(whole[0].copy_to_host(), host)
    assert last.copy_to_host().tolist() == [[7]]
    whole.unmap_memory(level=0)
    whole.map_tail(None)
    cu.current_context().synchronize()


def test_deferred_arrays_take_memory(has, tiles):
    """An array made without memory works once it has some."""
    has("DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED")
    array = cu.CudaArray((512, 512), np.float32, deferred=True)
    assert array.memory_requirements[0] <= 4 << 20
    array.map_memory(tiles)
    host = np.arange(512 * 512, dtype=np.float32).reshape(512, 512)
    array.copy_from(host)
    assert np.array_equal(array.copy_to_host(), host)
    array.unmap_memory()
    cu.current_context().synchronize()
