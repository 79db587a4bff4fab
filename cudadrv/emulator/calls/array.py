"""cuArray..., cuMipmappedArray... and the copies of one row of an array."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import types

from ..arrays import Array, Mipmapped, checked, find_array
from ..boundary import exported
from ..state import current, find
from ..status import Status, require


def _record(name: str, address: int | None) -> Any:
    require(address)
    return types.record(types.resolve(name)).from_address(address)


@exported()
def cuArray3DCreate_v2(address: int) -> Array:
    current()
    return Array(checked(_record("CUDA_ARRAY3D_DESCRIPTOR", address)))


@exported()
def cuArrayCreate_v2(address: int) -> Array:
    current()
    flat = _record("CUDA_ARRAY_DESCRIPTOR", address)
    record = types.record(types.resolve("CUDA_ARRAY3D_DESCRIPTOR"))()
    record.Width, record.Height = flat.Width, flat.Height
    record.Format, record.NumChannels = flat.Format, flat.NumChannels
    return Array(checked(record))


@exported()
def cuArray3DGetDescriptor_v2(handle: int) -> Any:
    return find_array(handle).record


@exported()
def cuArrayGetDescriptor_v2(handle: int) -> Any:
    record = find_array(handle).record
    flat = types.record(types.resolve("CUDA_ARRAY_DESCRIPTOR"))()
    flat.Width, flat.Height = record.Width, record.Height
    flat.Format, flat.NumChannels = record.Format, record.NumChannels
    return flat


@exported()
def cuArrayDestroy(handle: int) -> None:
    found = find_array(handle)
    require(not found.is_level, "INVALID_HANDLE")
    found.forget()


@exported()
def cuArrayGetPlane(handle: int, index: int) -> Array:
    """No format with several planes can be made here."""
    find_array(handle)
    raise Status("INVALID_VALUE")


@exported()
def cuArrayGetMemoryRequirements(handle: int, dev: int) -> Any:
    """Only arrays whose memory comes later have requirements."""
    find_array(handle)
    raise Status("INVALID_VALUE")


@exported()
def cuArrayGetSparseProperties(handle: int) -> Any:
    find_array(handle)
    raise Status("INVALID_VALUE")


@exported()
def cuMipmappedArrayCreate(address: int, levels: int) -> Mipmapped:
    current()
    record = checked(_record("CUDA_ARRAY3D_DESCRIPTOR", address))
    layers = record.Flags & 5
    longest = max(record.Width, record.Height, 0 if layers else record.Depth)
    return Mipmapped(record, min(max(levels, 1), longest.bit_length()))


@exported()
def cuMipmappedArrayGetLevel(handle: int, level: int) -> Array:
    found = find(Mipmapped, handle)
    require(level < len(found.levels))
    return found.levels[level]


@exported()
def cuMipmappedArrayDestroy(handle: int) -> None:
    find(Mipmapped, handle).forget()


@exported()
def cuMipmappedArrayGetMemoryRequirements(handle: int, dev: int) -> Any:
    find(Mipmapped, handle)
    raise Status("INVALID_VALUE")


@exported()
def cuMipmappedArrayGetSparseProperties(handle: int) -> Any:
    find(Mipmapped, handle)
    raise Status("INVALID_VALUE")


# -- copies of a row: the array has one dimension


def _row(handle: int, offset: int, size: int) -> int:
    found = find_array(handle)
    require(found.extent[1:] == (1, 1))
    return found.start(offset, 0, 0, size, 1, 1)


def _move(target: int, source: int, size: int) -> None:
    require((target and source) or not size)
    if size:
        ctypes.memmove(target, source, size)


@exported("cuMemcpyHtoAAsync_v2")
def cuMemcpyHtoA_v2(handle: int, offset: int, source: int, size: int, *stream: Any) -> None:
    _move(_row(handle, offset, size), source, size)


@exported("cuMemcpyAtoHAsync_v2")
def cuMemcpyAtoH_v2(target: int, handle: int, offset: int, size: int, *stream: Any) -> None:
    _move(target, _row(handle, offset, size), size)


@exported()
def cuMemcpyDtoA_v2(handle: int, offset: int, source: int, size: int) -> None:
    _move(_row(handle, offset, size), current().memory.check(source, size), size)


@exported()
def cuMemcpyAtoD_v2(target: int, handle: int, offset: int, size: int) -> None:
    _move(current().memory.check(target, size), _row(handle, offset, size), size)


@exported()
def cuMemcpyAtoA_v2(target: int, to: int, source: int, since: int, size: int) -> None:
    _move(_row(target, to, size), _row(source, since, size), size)
