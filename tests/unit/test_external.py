"""Memory and semaphores of other APIs: what a driver is asked to import, map, signal and free."""

from __future__ import annotations

import ctypes

import pytest

import cudadrv as cu
from cudadrv import raw
from tests.unit.fake_driver import installed, old_driver, store


def handle_of(number):
    """A function that gives the handle *number* through its first parameter."""
    return lambda out, *rest: store(out, ctypes.c_void_p, number)


def zero(*arguments):
    return 0


@pytest.fixture
def seen():
    """Copies of the records that the driver got, by function."""
    return {}


@pytest.fixture
def driver(seen):
    """A driver that imports everything and notes what it was given."""

    def noting(name, record, result):
        def call(out, *rest):
            seen[name] = record.from_buffer_copy(record.from_address(rest[-1]))
            return store(out, ctypes.c_uint64, result)

        return call

    def queued(name, record):
        def call(handles, parameters, count, stream):
            first = ctypes.c_uint64.from_address(handles).value
            seen[name] = (first, record.from_buffer_copy(record.from_address(parameters)), stream)
            return 0

        return call

    def describe(out, handle):
        made = raw.CUDA_ARRAY3D_DESCRIPTOR(Width=8, Height=4, Format=32, NumChannels=1)
        ctypes.memmove(out, ctypes.byref(made), ctypes.sizeof(made))
        return 0

    fake = old_driver(
        cuImportExternalMemory=noting("memory", raw.CUDA_EXTERNAL_MEMORY_HANDLE_DESC, 101),
        cuImportExternalSemaphore=noting("semaphore", raw.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, 202),
        cuExternalMemoryGetMappedBuffer=noting("map", raw.CUDA_EXTERNAL_MEMORY_BUFFER_DESC, 4096),
        cuExternalMemoryGetMappedMipmappedArray=noting(
            "array", raw.CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, 303
        ),
        cuMipmappedArrayGetLevel=handle_of(404),
        cuArray3DGetDescriptor_v2=describe,
        cuSignalExternalSemaphoresAsync=queued("signal", raw.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS),
        cuWaitExternalSemaphoresAsync=queued("wait", raw.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS),
        cuMemFree_v2=zero,
        cuMipmappedArrayDestroy=zero,
        cuDestroyExternalMemory=zero,
        cuDestroyExternalSemaphore=zero,
    )
    with installed(fake):
        yield fake


def test_memory_is_imported_mapped_and_freed(driver, seen):
    """The descriptor, the size and the offsets arrive; parts are freed apart from the whole."""
    memory = cu.ExternalMemory(7, 1 << 20, "dmabuf_fd", dedicated=True)
    record = seen["memory"]
    assert (record.type, record.handle.fd, record.size, record.flags) == (9, 7, 1 << 20, 1)
    part = memory.map(256, 512)
    assert (seen["map"].offset, seen["map"].size, seen["map"].flags) == (256, 512, 0)
    assert (part.handle, part.nbytes) == (4096, 512)
    assert memory.map(256).nbytes == (1 << 20) - 256
    part.close()
    memory.close()
    assert (4096,) in driver.called("cuMemFree_v2")
    assert driver.called("cuDestroyExternalMemory") == [(101,)]
    with pytest.raises(cu.ClosedError):
        memory.map()


def test_arrays_in_external_memory(driver, seen):
    """A mapped array has the shape that was asked for and is destroyed with close()."""
    memory = cu.ExternalMemory(7, 1 << 20)
    array = memory.map_array((4, 8), "float32", levels=2, offset=1024, surface=True)
    record = seen["array"]
    assert (record.offset, record.numLevels) == (1024, 2)
    described = record.arrayDesc
    assert (described.Width, described.Height, described.Format, described.Flags) == (8, 4, 32, 2)
    assert (array.handle, len(array), array.shape) == (303, 2, (4, 8))
    array.close()
    assert driver.called("cuMipmappedArrayDestroy") == [(303,)]
    with pytest.raises(ValueError, match="from 1 to 4"):
        memory.map_array((4, 8), "float32", levels=5)
    with pytest.raises(ValueError, match="offset=1048576"):
        memory.map_array((4, 8), "float32", offset=1 << 20)


@pytest.mark.parametrize(
    ("offset", "nbytes"), [(-1, 4), (0, 1025), (1024, 1), (1024, None), (0, 0)]
)
def test_parts_that_are_not_inside(driver, offset, nbytes):
    """A part has at least a byte and ends inside."""
    memory = cu.ExternalMemory(7, 1024)
    with pytest.raises(ValueError, match=r"the memory has 1024|nbytes=0"):
        memory.map(offset, nbytes)
    assert not driver.called("cuExternalMemoryGetMappedBuffer")


def test_handles_of_other_systems(driver, seen):
    """Windows has handles and names, NvSci objects."""
    cu.ExternalMemory(0x1234, 64, "opaque_win32")
    assert seen["memory"].handle.win32.handle == 0x1234
    cu.ExternalMemory("shared", 64, "d3d12_heap")
    assert seen["memory"].type == 4 and seen["memory"].handle.win32.name
    cu.ExternalMemory(0x4321, 64, "nvscibuf")
    assert seen["memory"].handle.nvSciBufObject == 0x4321
    with pytest.raises(TypeError):
        cu.ExternalMemory("shared", 64, "opaque_win32_kmt")


def test_semaphores_are_signalled_and_waited_for(driver, seen):
    """Value, key and stream arrive; the semaphore is destroyed with close()."""
    with cu.ExternalSemaphore(5, "timeline_semaphore_fd") as semaphore:
        assert (seen["semaphore"].type, seen["semaphore"].handle.fd) == (9, 5)
        semaphore.signal(11, stream=0x77)
        handle, record, stream = seen["signal"]
        assert (handle, record.params.fence.value, stream) == (202, 11, 0x77)
        semaphore.wait(12, timeout_ms=500)
        handle, record, _ = seen["wait"]
        assert (handle, record.params.fence.value, record.params.keyedMutex.key) == (202, 12, 12)
        assert record.params.keyedMutex.timeoutMs == 500
    assert driver.called("cuDestroyExternalSemaphore") == [(202,)]
    with pytest.raises(cu.ClosedError):
        semaphore.signal()
