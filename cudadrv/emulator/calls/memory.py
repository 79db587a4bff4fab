"""cuMem..., cuMemcpy..., cuMemset..., cuPointer..."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import table, types

from ..arrays import find_array
from ..boundary import exported
from ..memory import DEVICE, HOST, MANAGED, REGISTERED
from ..state import Context, Object, Stream, current, device, find
from ..status import Status, require

PITCH = 512
_POINTER = {
    name.removeprefix("CU_POINTER_ATTRIBUTE_"): value
    for name, value in table.ENUMS[types.resolve("CUpointer_attribute")].items()
}


@exported()
def cuMemGetInfo_v2() -> tuple[int, int]:
    current()
    return device.free_memory(), device.total_memory


def _allocate(size: int, kind: str, flags: int = 0) -> int:
    context = current()
    require(size > 0)
    require(size <= device.free_memory(), "OUT_OF_MEMORY")
    return context.memory.allocate(size, kind, flags).address


@exported()
def cuMemAlloc_v2(size: int) -> int:
    return _allocate(size, DEVICE)


@exported()
def cuMemAllocAsync(size: int, stream: Stream) -> int:
    return _allocate(size, DEVICE)


@exported()
def cuMemAllocPitch_v2(width: int, height: int, element: int) -> tuple[int, int]:
    require(width and height)
    pitch = -(-width // PITCH) * PITCH
    return _allocate(pitch * height, DEVICE), pitch


@exported()
def cuMemAllocManaged(size: int, flags: int) -> int:
    require(flags in (1, 2))
    return _allocate(size, MANAGED, flags)


@exported()
def cuMemAllocHost_v2(size: int) -> int:
    return _allocate(size, HOST)


@exported()
def cuMemHostAlloc(size: int, flags: int) -> int:
    require(not flags & ~7)
    return _allocate(size, HOST, flags)


@exported("cuMemFreeAsync")
def cuMemFree_v2(address: int, *stream: Any) -> None:
    context = current()
    if address:
        context.memory.free(address, DEVICE, MANAGED)


@exported()
def cuMemFreeHost(address: int) -> None:
    current().memory.free(address, HOST)


@exported("cuMemHostRegister")
def cuMemHostRegister_v2(address: int, size: int, flags: int) -> None:
    memory = current().memory
    require(address and size)
    require(not memory.find(address), "HOST_MEMORY_ALREADY_REGISTERED")
    memory.add(address, size, REGISTERED, flags, None)


@exported()
def cuMemHostUnregister(address: int) -> None:
    memory = current().memory
    found = memory.find(address or 0)
    require(found and found.kind == REGISTERED, "HOST_MEMORY_NOT_REGISTERED")
    memory.free(address, REGISTERED)


@exported()
def cuMemHostGetDevicePointer_v2(address: int, flags: int) -> int:
    require(current().memory.find(address or 0))
    return address


@exported()
def cuMemHostGetFlags(address: int) -> int:
    found = current().memory.find(address or 0)
    require(found and found.kind in (HOST, REGISTERED))
    assert found
    return found.flags


@exported()
def cuMemGetAddressRange_v2(address: int) -> tuple[int, int]:
    found = current().memory.find(address or 0)
    require(found, "NOT_FOUND" if address else "INVALID_VALUE")
    assert found
    return found.address, found.size


# -- copies; a host pointer may be any memory, a device pointer must be an allocation's


def _move(target: int | None, source: int | None, size: int) -> None:
    if size:
        require(target and source)
        assert target and source
        ctypes.memmove(target, source, size)


@exported("cuMemcpyAsync")
def cuMemcpy(target: int, source: int, size: int, *stream: Any) -> None:
    current()
    _move(target, source, size)


@exported("cuMemcpyHtoDAsync_v2")
def cuMemcpyHtoD_v2(target: int, source: int, size: int, *stream: Any) -> None:
    _move(current().memory.check(target, size), source, size)


@exported("cuMemcpyDtoHAsync_v2")
def cuMemcpyDtoH_v2(target: int, source: int, size: int, *stream: Any) -> None:
    _move(target, current().memory.check(source, size), size)


@exported("cuMemcpyDtoDAsync_v2")
def cuMemcpyDtoD_v2(target: int, source: int, size: int, *stream: Any) -> None:
    memory = current().memory
    _move(memory.check(target, size), memory.check(source, size), size)


@exported("cuMemcpyPeerAsync")
def cuMemcpyPeer(
    target: int, to: Context, source: int, since: Context, size: int, *stream: Any
) -> None:
    cuMemcpyDtoD_v2(target, source, size)


def _side(copy: Any, which: str, rows: int, width: int) -> tuple[int, int]:
    """(address of the first byte, pitch) of one side of a 2D or 3D copy, in its first plane."""
    kind = getattr(copy, f"{which}MemoryType")
    require(kind in (1, 2, 3, 4))
    if kind == 3:
        array = find_array(getattr(copy, f"{which}Array"))
        x, y = getattr(copy, f"{which}XInBytes"), getattr(copy, f"{which}Y")
        z, planes = getattr(copy, f"{which}Z", 0), getattr(copy, "Depth", 1)
        return array.start(x, y, z, width, rows, planes) - z * array.plane, array.pitch
    base = getattr(copy, f"{which}Host" if kind == 1 else f"{which}Device") or 0
    pitch = getattr(copy, f"{which}Pitch") or width
    require(pitch >= width)
    start = base + getattr(copy, f"{which}XInBytes") + getattr(copy, f"{which}Y") * pitch
    if kind == 2 and rows and width:
        current().memory.check(start, (rows - 1) * pitch + width)
    return start, pitch


@exported("cuMemcpy2DUnaligned_v2", "cuMemcpy2DAsync_v2")
def cuMemcpy2D_v2(address: int, *stream: Any) -> None:
    current()
    require(address)
    copy = types.record(types.resolve("CUDA_MEMCPY2D")).from_address(address)
    width, rows = copy.WidthInBytes, copy.Height
    target, target_pitch = _side(copy, "dst", rows, width)
    source, source_pitch = _side(copy, "src", rows, width)
    for row in range(rows):
        _move(target + row * target_pitch, source + row * source_pitch, width)


@exported("cuMemcpy3DAsync_v2")
def cuMemcpy3D_v2(address: int, *stream: Any) -> None:
    current()
    require(address)
    copy = types.record(types.resolve("CUDA_MEMCPY3D")).from_address(address)
    width, rows = copy.WidthInBytes, copy.Height
    sides = []
    for which in ("dst", "src"):
        start, pitch = _side(copy, which, rows, width)
        plane = pitch * (getattr(copy, f"{which}Height") or rows)
        if getattr(copy, f"{which}MemoryType") == 3:
            plane = find_array(getattr(copy, f"{which}Array")).plane
        sides.append((start + getattr(copy, f"{which}Z") * plane, pitch, plane))
    (target, target_pitch, target_plane), (source, source_pitch, source_plane) = sides
    for z in range(copy.Depth):
        for row in range(rows):
            to = target + z * target_plane + row * target_pitch
            _move(to, source + z * source_plane + row * source_pitch, width)


def _fill(address: int, value: int, width: int, count: int) -> None:
    size = width * count
    require(not (address or 0) % width)
    at = current().memory.check(address, size)
    if width == 1 and size:
        ctypes.memset(at, value & 255, size)
        return
    pattern = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    done = min(size, width)
    if done:
        ctypes.memmove(at, pattern, done)
    while done < size:
        more = min(done, size - done)
        ctypes.memmove(at + done, at, more)
        done += more


@exported("cuMemsetD8Async")
def cuMemsetD8_v2(address: int, value: int, count: int, *stream: Any) -> None:
    _fill(address, value, 1, count)


@exported("cuMemsetD16Async")
def cuMemsetD16_v2(address: int, value: int, count: int, *stream: Any) -> None:
    _fill(address, value, 2, count)


@exported("cuMemsetD32Async")
def cuMemsetD32_v2(address: int, value: int, count: int, *stream: Any) -> None:
    _fill(address, value, 4, count)


def _fill_2d(address: int, pitch: int, value: int, width: int, count: int, rows: int) -> None:
    require(pitch >= width * count)
    for row in range(rows):
        _fill(address + row * pitch, value, width, count)


@exported("cuMemsetD2D8Async")
def cuMemsetD2D8_v2(at: int, pitch: int, value: int, width: int, height: int, *stream: Any) -> None:
    _fill_2d(at, pitch, value, 1, width, height)


@exported("cuMemsetD2D16Async")
def cuMemsetD2D16_v2(
    at: int, pitch: int, value: int, width: int, height: int, *stream: Any
) -> None:
    _fill_2d(at, pitch, value, 2, width, height)


@exported("cuMemsetD2D32Async")
def cuMemsetD2D32_v2(
    at: int, pitch: int, value: int, width: int, height: int, *stream: Any
) -> None:
    _fill_2d(at, pitch, value, 4, width, height)


# -- what a pointer is


def _describe(address: int) -> dict[str, tuple[Any, int]] | None:
    """The pointer attributes of *address*, each with its ctypes type; None for unknown memory."""
    context = current()
    found = context.memory.find(address or 0)
    if found is None:
        return None
    on_host = found.kind in (HOST, REGISTERED)
    return {
        "CONTEXT": (ctypes.c_void_p, context.handle),
        "MEMORY_TYPE": (ctypes.c_uint, 1 if on_host else 2),
        "DEVICE_POINTER": (ctypes.c_uint64, address),
        "HOST_POINTER": (ctypes.c_void_p, address if on_host or found.kind == MANAGED else 0),
        "SYNC_MEMOPS": (ctypes.c_int, 1),
        "BUFFER_ID": (ctypes.c_uint64, found.number),
        "IS_MANAGED": (ctypes.c_int, int(found.kind == MANAGED)),
        "DEVICE_ORDINAL": (ctypes.c_int, 0),
        "IS_LEGACY_CUDA_IPC_CAPABLE": (ctypes.c_int, 0),
        "RANGE_START_ADDR": (ctypes.c_uint64, found.address),
        "RANGE_SIZE": (ctypes.c_size_t, found.size),
        "MAPPED": (ctypes.c_int, 1),
    }


@exported()
def cuPointerGetAttribute(data: int, attribute: int, address: int) -> None:
    require(data)
    found = _describe(address)
    require(found)
    assert found
    if not _store(found, attribute, data):
        raise Status("NOT_SUPPORTED")


def _store(found: dict[str, tuple[Any, int]], attribute: int, data: int) -> bool:
    for name, (kind, value) in found.items():
        if _POINTER[name] == attribute:
            kind.from_address(data).value = value
            return True
    return False


@exported()
def cuPointerGetAttributes(count: int, attributes: int, data: int, address: int) -> None:
    """Unknown memory is no error here: its attributes are 0 (its device -2)."""
    require(attributes and data)
    found = _describe(address) or {
        "MEMORY_TYPE": (ctypes.c_uint, 0),
        "CONTEXT": (ctypes.c_void_p, 0),
        "IS_MANAGED": (ctypes.c_int, 0),
        "DEVICE_ORDINAL": (ctypes.c_int, -2),
        "DEVICE_POINTER": (ctypes.c_uint64, 0),
    }
    for i in range(count):
        target = ctypes.c_void_p.from_address(data + 8 * i).value
        if target:
            _store(found, ctypes.c_int.from_address(attributes + 4 * i).value, target)


@exported()
def cuPointerSetAttribute(value: int, attribute: int, address: int) -> None:
    require(_describe(address))


@exported("cuMemPrefetchAsync_v2")
def cuMemPrefetchAsync(address: int, size: int, *where: Any) -> None:
    current().memory.check(address, size)


@exported("cuMemAdvise_v2")
def cuMemAdvise(address: int, size: int, *advice: Any) -> None:
    current().memory.check(address, size)


# -- pools: one, the device's, that keeps nothing


class Pool(Object):
    """The memory pool."""


_pool = Pool()


@exported("cuDeviceGetMemPool")
def cuDeviceGetDefaultMemPool(dev: int) -> Pool:
    return _pool


@exported()
def cuMemPoolTrimTo(pool: int, keep: int) -> None:
    find(Pool, pool)


@exported()
def cuMemAllocFromPoolAsync(size: int, pool: int, stream: Stream) -> int:
    find(Pool, pool)
    return _allocate(size, DEVICE)
