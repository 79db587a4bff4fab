"""cuMemcpy..., cuMemset...: done at once, whatever the stream."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import types

from ..arrays import find_array
from ..boundary import exported
from ..state import Context, current, reach
from ..status import require

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
    current()
    _move(reach(target, size), source, size)


@exported("cuMemcpyDtoHAsync_v2")
def cuMemcpyDtoH_v2(target: int, source: int, size: int, *stream: Any) -> None:
    current()
    _move(target, reach(source, size), size)


@exported("cuMemcpyDtoDAsync_v2")
def cuMemcpyDtoD_v2(target: int, source: int, size: int, *stream: Any) -> None:
    current()
    _move(reach(target, size), reach(source, size), size)


@exported("cuMemcpyPeerAsync")
def cuMemcpyPeer(
    target: int, to: Context, source: int, since: Context, size: int, *stream: Any
) -> None:
    require(to and since, "INVALID_CONTEXT")
    _move(to.memory.check(target, size), since.memory.check(source, size), size)


@exported()
def cuMemcpyBatchAsync_v2(
    targets: int, sources: int, sizes: int, count: int, attrs: int, firsts: int, kinds: int, on: Any
) -> None:
    require(targets and sources and sizes and count and attrs and firsts)
    require(0 < kinds <= count and not ctypes.c_size_t.from_address(firsts).value)
    words = (ctypes.c_uint64 * count).from_address
    for target, source, size in zip(words(targets), words(sources), words(sizes), strict=True):
        require(target and source and size)
        _move(target, source, size)


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
        reach(start, (rows - 1) * pitch + width)
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
    at = reach(address, size)
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
