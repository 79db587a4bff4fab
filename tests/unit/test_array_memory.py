"""Memory under sparse and deferred arrays: what a driver is asked to map where."""

from __future__ import annotations

import ctypes

import pytest

import cudadrv as cu
from cudadrv import raw
from tests.unit.fake_driver import installed, old_driver, store


@pytest.fixture
def asked():
    """Each CUarrayMapInfo that the driver got, with its stream."""
    return []


@pytest.fixture
def driver(asked):
    """A driver that makes arrays and notes what is mapped into them."""
    made = {}

    def create(out, record, *levels):
        kept = raw.CUDA_ARRAY3D_DESCRIPTOR.from_buffer_copy(
            raw.CUDA_ARRAY3D_DESCRIPTOR.from_address(record)
        )
        made[1000 + len(made)] = kept
        return store(out, ctypes.c_void_p, 999 + len(made))

    def level(out, handle, number):
        kept = raw.CUDA_ARRAY3D_DESCRIPTOR.from_buffer_copy(made[handle])
        kept.Width, kept.Height = kept.Width >> number, kept.Height >> number
        made[handle + 500 + number] = kept
        return store(out, ctypes.c_void_p, handle + 500 + number)

    def describe(out, handle):
        return ctypes.memmove(out, ctypes.byref(made[handle]), ctypes.sizeof(made[handle])) and 0

    def properties(out, handle):
        found = raw.CUDA_ARRAY_SPARSE_PROPERTIES(miptailFirstLevel=3, miptailSize=65536)
        return ctypes.memmove(out, ctypes.byref(found), ctypes.sizeof(found)) and 0

    def note(record, count, stream):
        kind = raw.CUarrayMapInfo
        asked.append((kind.from_buffer_copy(kind.from_address(record)), stream))
        return 0

    fake = old_driver(
        cuDeviceGetAttribute=lambda out, number, device: store(out, ctypes.c_int, 1 << 16),
        cuArray3DCreate_v2=create,
        cuMipmappedArrayCreate=create,
        cuMipmappedArrayGetLevel=level,
        cuArray3DGetDescriptor_v2=describe,
        cuMipmappedArrayGetSparseProperties=properties,
        cuMemMapArrayAsync=note,
        cuArrayDestroy=lambda handle: 0,
        cuMipmappedArrayDestroy=lambda handle: 0,
    )
    with installed(fake):
        yield fake


def place(record):
    """Level, layer, offsets (z, y, x) and extents (z, y, x) of a mapped part."""
    at = record.subresource.sparseLevel
    return (
        at.level, at.layer, (at.offsetZ, at.offsetY, at.offsetX),
        (at.extentDepth, at.extentHeight, at.extentWidth),
    )  # fmt: skip


def test_parts_of_sparse_arrays(driver, asked):
    """Offsets and extents are those of NumPy's index; None of memory unmaps."""
    array = cu.CudaArray((512, 1024), "float32", sparse=True)
    array.map_memory(77, 65536, (slice(128, 256), slice(0, 512)), stream=9)
    record, stream = asked.pop()
    assert (record.resourceType, record.resource.array, stream) == (0, array.handle, 9)
    assert (record.memOperationType, record.memHandle.memHandle, record.offset) == (1, 77, 65536)
    assert record.deviceBitMask == 1
    assert place(record) == (0, 0, (0, 128, 0), (1, 128, 512))
    array.unmap_memory()
    record, _ = asked.pop()
    assert (record.memOperationType, record.memHandle.memHandle) == (2, 0)
    assert place(record) == (0, 0, (0, 0, 0), (1, 512, 1024))


def test_layers_volumes_and_levels(driver, asked):
    """A layer is chosen by an int, a depth by a slice, a level of a mipmapped array by number."""
    layers = cu.CudaArray((4, 512, 1024), "float32", sparse=True, layered=True)
    layers.map_memory(77, 0, (2, slice(None), slice(512, 1024)))
    assert place(asked.pop()[0]) == (0, 2, (0, 0, 512), (1, 512, 512))
    with pytest.raises(IndexError, match="one layer"):
        layers.map_memory(77)
    volume = cu.CudaArray((64, 64, 64), "float32", sparse=True)
    volume.map_memory(77, 0, slice(32, 64))
    assert place(asked.pop()[0]) == (0, 0, (32, 0, 0), (32, 64, 64))
    whole = cu.MipmappedArray((512, 512), "float32", sparse=True)
    whole.map_memory(77, level=1)
    record, _ = asked.pop()
    assert (record.resourceType, record.resource.mipmap) == (1, whole.handle)
    assert place(record) == (1, 0, (0, 0, 0), (1, 256, 256))
    whole.map_tail(77, 131072)
    record, _ = asked.pop()
    assert (record.subresourceType, record.subresource.miptail.size) == (1, 65536)


def test_deferred_arrays_are_mapped_as_a_whole(driver, asked):
    """Only memory and offset count."""
    array = cu.CudaArray((512, 512), "float32", deferred=True)
    array.map_memory(77, 4096)
    record, _ = asked.pop()
    assert (record.memHandle.memHandle, record.offset) == (77, 4096)


def test_arrays_that_take_no_memory(driver, asked):
    """Plain arrays, levels and closed arrays are refused."""
    plain = cu.CudaArray((512, 512), "float32")
    whole = cu.MipmappedArray((512, 512), "float32", sparse=True)
    for array in (plain, whole[0]):
        with pytest.raises(ValueError, match="takes no memory"):
            array.map_memory(77)
    with pytest.raises(IndexError, match="only mipmapped"):
        cu.CudaArray((512, 512), "float32", sparse=True).map_memory(77, level=1)
    with pytest.raises(IndexError, match="level 99"):
        whole.map_memory(77, level=99)
    with pytest.raises(TypeError):
        whole.map_memory("memory")
    whole.close()
    with pytest.raises(cu.ClosedError):
        whole.map_memory(77)
    assert not asked
