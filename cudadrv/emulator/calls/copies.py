"""cuMemcpy..., cuMemset...: done at once, whatever the stream."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import types

from ..arrays import find_array
from ..boundary import exported
from ..state import Context, current, find, reach
from ..status import require

# From so many rows on, NumPy copies them faster than a loop.
MANY = 64
MAX_PITCH = 2**31 - 1

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


class _Side:
    """One side of a 2D or 3D copy: where row 0 of plane 0 begins, and the steps from there."""

    def __init__(self, copy: Any, which: str, depth: int) -> None:
        def field(name: str) -> int:
            return getattr(copy, which + name, 0) or 0

        width, rows, kind = copy.WidthInBytes, copy.Height, field("MemoryType")
        x, y, z = field("XInBytes"), field("Y"), field("Z")
        require(kind in (1, 2, 3, 4))
        if kind == 3:
            array = find_array(field("Array"))
            self.start = array.start(x, y, z, width, rows, depth)
            self.pitch, self.plane = array.pitch, array.plane
            return
        self.pitch = field("Pitch") or x + width
        height = field("Height") or y + rows
        require(x + width <= self.pitch and (rows == 1 or self.pitch <= MAX_PITCH))
        require(depth == 1 or y + rows <= height)
        self.plane = self.pitch * height
        base = field("Host" if kind == 1 else "Device")
        self.start = base + x + y * self.pitch + z * self.plane
        last = (depth - 1) * self.plane + (rows - 1) * self.pitch + width
        if kind == 2 and depth and rows and width:
            reach(self.start, last)

    def array(self, depth: int, rows: int, width: int) -> Any:
        """The bytes as a NumPy array, of larger elements where they fit."""
        import numpy as np

        require(self.start)
        nbytes = (depth - 1) * self.plane + (rows - 1) * self.pitch + width
        memory = (ctypes.c_ubyte * nbytes).from_address(self.start)
        item = width if width in (2, 4, 8) else 1
        shape, strides = (depth, rows, width // item), (self.plane, self.pitch, item)
        return np.ndarray(shape, f"u{item}", memory, strides=strides)


def _copy_box(record: str, address: int) -> None:
    current()
    require(address)
    copy = types.record(types.resolve(record)).from_address(address)
    depth = getattr(copy, "Depth", 1)
    to, since = _Side(copy, "dst", depth), _Side(copy, "src", depth)
    if copy.Height * depth > MANY and copy.WidthInBytes:
        shape = (depth, copy.Height, copy.WidthInBytes)
        to.array(*shape)[...] = since.array(*shape)
        return
    for z in range(depth):
        for row in range(copy.Height):
            target = to.start + z * to.plane + row * to.pitch
            _move(target, since.start + z * since.plane + row * since.pitch, copy.WidthInBytes)


@exported("cuMemcpy2DUnaligned_v2", "cuMemcpy2DAsync_v2")
def cuMemcpy2D_v2(address: int, *stream: Any) -> None:
    _copy_box("CUDA_MEMCPY2D", address)


@exported("cuMemcpy3DAsync_v2")
def cuMemcpy3D_v2(address: int, *stream: Any) -> None:
    _copy_box("CUDA_MEMCPY3D", address)


@exported("cuMemcpy3DPeerAsync")
def cuMemcpy3DPeer(address: int, *stream: Any) -> None:
    require(address)
    copy = types.record(types.resolve("CUDA_MEMCPY3D_PEER")).from_address(address)
    for handle in (copy.srcContext, copy.dstContext):
        find(Context, handle)
    _copy_box("CUDA_MEMCPY3D_PEER", address)


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
