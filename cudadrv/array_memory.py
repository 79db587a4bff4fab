"""Physical memory under CUDA arrays that were made without: sparse and deferred ones."""

from __future__ import annotations

import ctypes
import operator
from typing import Any

from cudadrv import driver, raw
from cudadrv.array_copy import ArrayRegion
from cudadrv.array_layout import FLAGS
from cudadrv.context import current_context
from cudadrv.process_local import only
from cudadrv.stream import stream_handle

LEVEL, TAIL = 0, 1  # CUarraySparseSubresourceType
MAP, UNMAP = 1, 2  # CUmemOperationType


def operation(array: Any, memory: Any, offset: int) -> Any:
    """A CUarrayMapInfo of an array, without the part of it; *memory* None unmaps.

    Raises:
        ValueError: the array has memory of its own, or is a part of another.
    """
    layout = array.layout
    if not layout.flags & (FLAGS["sparse"] | FLAGS["deferred"]) or array.owner is not None:
        raise ValueError(
            f"{array!r} takes no memory: only arrays made with sparse=True or deferred=True do, "
            "mipmapped ones as a whole"
        )
    made = raw.CUarrayMapInfo(memHandleType=raw.CU_MEM_HANDLE_TYPE_GENERIC)
    if hasattr(array, "__len__"):
        made.resourceType = raw.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
        made.resource.mipmap = array.handle
    else:
        made.resourceType, made.resource.array = raw.CU_RESOURCE_TYPE_ARRAY, array.handle
    made.memOperationType = UNMAP if memory is None else MAP
    if memory is not None:
        only(memory, "PhysicalMemory")
        made.memHandle.memHandle = operator.index(getattr(memory, "handle", memory))
    made.offset = operator.index(offset)
    made.deviceBitMask = 1 << current_context().device.ordinal
    return made


def enter_part(made: Any, region: ArrayRegion, level: int) -> None:
    """Enter a part of a level, of one layer where there are any, into a CUarrayMapInfo.

    Raises:
        IndexError: the part is of several layers.
    """
    layered = region.array.layout.is_layered
    starts, lengths = region.starts, region.lengths
    if layered and lengths[0] != 1:
        raise IndexError("a part of one layer is mapped at a time: begin the index with an int")
    place = made.subresource.sparseLevel
    place.level, place.layer = level, starts[0] if layered else 0
    inner = [*zip(starts, lengths, strict=True)][layered:]
    (z, depth), (y, height), (x, width) = [(0, 1)] * (3 - len(inner)) + inner
    place.offsetX, place.offsetY, place.offsetZ = x, y, z
    place.extentWidth, place.extentHeight, place.extentDepth = width, height, depth


def queue(made: Any, stream: object) -> None:
    """Order the operation on *stream*.

    C: cuMemMapArrayAsync
    """
    driver.cuMemMapArrayAsync(ctypes.byref(made), 1, stream_handle(stream))
