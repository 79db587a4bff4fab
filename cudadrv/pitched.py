"""Pitched memory, and copies of rectangles and boxes in linear memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from cudadrv import capture, checks, driver, raw
from cudadrv.boxes import ARRAY, DEVICE, HOST, Box, End, copy
from cudadrv.buffers import interface_itemsize
from cudadrv.context import current_context, in_context
from cudadrv.copies import context_of, span
from cudadrv.interface import described
from cudadrv.layout import MAX_PITCH, strides_of
from cudadrv.memory import DeviceMemory, failure
from cudadrv.stream import stream_handle


class PitchedMemory(DeviceMemory):
    """Rows of bytes on a device, each begun where the device reads fastest.

    Attributes:
        width, height: bytes of a row that count, and rows.
        pitch: bytes from one row to the next.
    """

    def __init__(self, handle: int, width: int, height: int, pitch: int, context: int) -> None:
        """Own memory that cuMemAllocPitch gave; ``mem_alloc_pitch`` makes new one."""
        self.width, self.height, self.pitch = width, height, pitch
        super().__init__(handle, pitch * height, context, owned=True)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The rows as a two-dimensional array of uint8."""
        return {
            "shape": (self.height, self.width),
            "typestr": "|u1",
            "data": (self.handle, False),
            "strides": (self.pitch, 1),
            "version": 3,
        }


def mem_alloc_pitch(width: int, height: int, element: int = 4) -> PitchedMemory:
    """Allocate *height* rows of *width* bytes on the current device, not cleared.

    Args:
        element: the most bytes that one access of a kernel takes: 4, 8 or 16.

    Raises:
        ValueError: a number is out of range.
        OutOfMemory: the device has not got as much.

    C: cuMemAllocPitch_v2
    """
    width, height = checks.size(width, "width", 1), checks.size(height, "height", 1)
    if element not in (4, 8, 16):
        raise ValueError(f"element={element!r}: it is 4, 8 or 16 bytes")
    checks.size(width * height, "width * height")
    context = current_context().handle
    pointer, pitch = ctypes.c_uint64(), ctypes.c_size_t()
    results = (ctypes.byref(pointer), ctypes.byref(pitch))
    code = driver.cuMemAllocPitch.raw(*results, width, height, element)
    if code:
        raise failure(code, "cuMemAllocPitch", width * height)
    return PitchedMemory(pointer.value, width, height, pitch.value, context)


class Rows(NamedTuple):
    """One end of a copy before the box is cut out.

    Attributes:
        end: where it begins; with the pitch and the rows of a plane, 0 if unknown.
        nbytes: the bytes there are, None if unknown; of an array, its Box.
        keep: what must live as long as the copy runs.
    """

    end: End
    nbytes: Any
    keep: object

    @property
    def dimensions(self) -> int:
        """Of a CUDA array, 3 if it has layers; 0 of linear memory."""
        return self.nbytes.dimensions if self.end.kind == ARRAY else 0


def rows_of(thing: Any, writable: bool) -> Rows:
    """Where the rows of *thing* lie: pitched memory and arrays know how far apart they are."""
    part = getattr(thing, "region", thing)
    end = getattr(part, "end", None)
    if isinstance(end, End):
        return Rows(end, part.box, thing)
    found = described(thing)
    if found is not None:
        steps = strided(found.shape, found.strides, found.itemsize)
        where, address, readonly = DEVICE, found.address, found.readonly
    else:
        steps, where = host_strided(thing), HOST
        address, readonly = thing.__array_interface__["data"] if steps else (0, False)
    if steps is None:
        plain = span(thing, writable)
        where = DEVICE if plain.on_device else HOST
        return Rows(End(where, plain.address), plain.nbytes, plain.keep)
    if writable and readonly:
        raise ValueError("the destination is read-only")
    if found is not None:
        found.wait()
    pitch, rows, nbytes = steps
    return Rows(End(where, address, pitch=pitch, rows=rows), nbytes, thing)


def host_strided(thing: Any) -> tuple[int, int, int] | None:
    """What ``strided`` says of a host array; None for any other buffer."""
    interface = getattr(thing, "__array_interface__", None) or {}
    if interface.get("data") is None:
        return None
    shape, itemsize = interface["shape"], interface_itemsize(interface)
    return strided(shape, strides_of(interface.get("strides"), shape, itemsize, "C"), itemsize)


def strided(
    shape: Sequence[int], strides: Sequence[int], itemsize: int
) -> tuple[int, int, int] | None:
    """(pitch, rows of a plane, bytes) of an array of two or three dimensions.

    None if its rows have gaps, overlap or run backwards, or it has another number of dimensions.
    """
    if len(shape) not in (2, 3) or 0 in shape:
        return None
    pitch, rows = strides[-2], 0
    if len(shape) == 3:
        rows, rest = divmod(strides[0], pitch) if pitch > 0 else (0, 1)
        if rest or rows < shape[1]:
            return None
    if pitch < shape[-1] * itemsize or (shape[-1] > 1 and strides[-1] != itemsize):
        return None
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    return pitch, rows, last + itemsize


def memcpy_2d(
    dst: Any,
    src: Any,
    width: int,
    height: int,
    dst_pitch: int | None = None,
    src_pitch: int | None = None,
    dst_at: Sequence[int] = (0, 0),
    src_at: Sequence[int] = (0, 0),
    stream: object = None,
) -> None:
    """Copy *height* rows of *width* bytes.

    Args:
        dst: pitched or other device memory, pinned memory, a device array of any library, a
            device address, a CUDA array or a part of one, or a writable host buffer or array.
        src: the same, or a read-only host buffer.
        dst_pitch, src_pitch: bytes from one row to the next. By default that of pitched memory, or
            of an array of two or three dimensions whose rows have no gaps, else *width*.
        dst_at, src_at: where the rectangle begins: (byte of the row, row).
        stream: where to order it. Without, the call returns when the copy is done; with, host
            memory must stay unchanged until then.

    Raises:
        ValueError: the rectangle leaves *dst* or *src*, a pitch is less than the width, or the two
            overlap on the device.

    C: cuMemcpy2D_v2, cuMemcpy2DUnaligned_v2, cuMemcpy2DAsync_v2
    """
    to, since = rows_of(dst, True), rows_of(src, False)
    lengths = (checks.size(width, "width"), checks.size(height, "height"))
    box = Box(*lengths, 1, max(2, to.dimensions, since.dimensions))
    target = cut("dst", to, box, (*point(dst_at, 2, "dst_at"), 0), dst_pitch, None)
    source = cut("src", since, box, (*point(src_at, 2, "src_at"), 0), src_pitch, None)
    if box.width and box.height:
        check_apart(target, source, box)
        copy(target, source, box, stream)
        capture.note(stream, dst, src, to.keep, since.keep)


def memcpy_3d(
    dst: Any,
    src: Any,
    width: int,
    height: int,
    depth: int,
    dst_pitch: int | None = None,
    src_pitch: int | None = None,
    dst_rows: int | None = None,
    src_rows: int | None = None,
    dst_at: Sequence[int] = (0, 0, 0),
    src_at: Sequence[int] = (0, 0, 0),
    stream: object = None,
    contexts: tuple[object, object] | None = None,
) -> None:
    """Copy *depth* planes of *height* rows of *width* bytes.

    Args:
        dst, src, dst_pitch, src_pitch, stream: as for ``memcpy_2d``.
        dst_rows, src_rows: rows from one plane to the next; by default those of an array of three
            dimensions, else *height*.
        dst_at, src_at: where the box begins: (byte of the row, row, plane).
        contexts: of *dst* and of *src*, if they differ: each a Context, a handle, or None for the
            one where the memory was allocated.

    Raises:
        ValueError: as for ``memcpy_2d``, or planes would share rows.

    C: cuMemcpy3D_v2, cuMemcpy3DAsync_v2, cuMemcpy3DPeer, cuMemcpy3DPeerAsync
    """
    lengths = (checks.size(width, "width"), checks.size(height, "height"))
    box = Box(*lengths, checks.size(depth, "depth"), 3)
    to, since = rows_of(dst, True), rows_of(src, False)
    target = cut("dst", to, box, point(dst_at, 3, "dst_at"), dst_pitch, dst_rows)
    source = cut("src", since, box, point(src_at, 3, "src_at"), src_pitch, src_rows)
    if not (box.width and box.height and box.depth):
        return
    check_apart(target, source, box)
    if contexts is None:
        copy(target, source, box, stream)
    else:
        copy_peer((target, to.keep), (source, since.keep), box, contexts, stream)
    capture.note(stream, dst, src, to.keep, since.keep)


def point(at: Sequence[int], count: int, name: str) -> tuple[int, ...]:
    """Where a box begins, as *count* sizes."""
    try:
        values = tuple(at)
    except TypeError:
        values = ()
    if len(values) != count:
        raise ValueError(f"{name}={at!r}: give {count} numbers, the byte of the row first")
    return tuple(checks.size(value, name) for value in values)


def cut(
    name: str,
    found: Rows,
    box: Box,
    at: tuple[int, ...],
    pitch: int | None,
    rows: int | None,
) -> End:
    """The end of a copy of *box* that begins *at* a byte, a row and a plane of *found*.

    Raises:
        ValueError: the box leaves the memory, or rows or planes would overlap.
    """
    x, y, z = at
    end = found.end
    if end.kind == ARRAY:
        check_inside(name, box, at, found.nbytes)
        return end._replace(x=end.x + x, y=end.y + y, z=end.z + z)
    step = end.pitch or box.width if pitch is None else checks.size(pitch, f"{name}_pitch")
    if x + box.width > step and box.height:
        raise ValueError(
            f"{name}: {box.width} bytes from byte {x} on do not fit into a row of {step}: "
            f"give {name}_pitch="
        )
    if step > MAX_PITCH and box.height > 1:
        raise ValueError(f"{name}: rows are {step} bytes apart; devices take {MAX_PITCH} at most")
    plane = end.rows or box.height if rows is None else checks.size(rows, f"{name}_rows")
    if y + box.height > plane and box.depth > 1:
        raise ValueError(
            f"{name}: {box.height} rows from row {y} on do not fit into a plane of {plane}: "
            f"give {name}_rows="
        )
    start = (z * plane + y) * step + x
    last = start + ((box.depth - 1) * plane + box.height - 1) * step + box.width
    if found.nbytes is not None and last > found.nbytes and 0 not in box[:3]:
        raise ValueError(f"{name}: the copy ends at byte {last}; there are {found.nbytes}")
    return End(end.kind, checks.address(end.where + start, name), pitch=step, rows=plane)


def check_inside(name: str, box: Box, at: tuple[int, ...], whole: Box) -> None:
    """Refuse a box that leaves a CUDA array or the part of it."""
    lengths = (box.width, box.height, box.depth)
    for begin, length, there in zip(at, lengths, whole[:3], strict=True):
        if begin + length > there:
            raise ValueError(f"{name}: {lengths} from {at} on leaves the array of {whole[:3]}")


def check_apart(dst: End, src: End, box: Box) -> None:
    """Refuse a copy within device memory whose ends share bytes: their order is unknown.

    Raises:
        ValueError: they do.
    """
    if not (dst.kind == src.kind == DEVICE) or dst == src:
        return
    if min(dst.where + reach(dst, box), src.where + reach(src, box)) <= max(dst.where, src.where):
        return
    count = box.height * box.depth
    for row in range(count):
        offset = start_of(dst, box, row) - src.where
        plane = min(max(offset // (src.rows * src.pitch), 0), box.depth - 1)
        line = (offset - plane * src.rows * src.pitch) // src.pitch
        nearest = plane * box.height + min(max(line, 0), box.height - 1)
        near = (each for each in (nearest, nearest + 1) if each < count)
        if any(abs(offset + src.where - start_of(src, box, each)) < box.width for each in near):
            raise ValueError("the copy overlaps itself: copy through a third buffer, or in parts")


def start_of(end: End, box: Box, row: int) -> int:
    """The address of a row of the box, rows of all planes counted."""
    plane, line = divmod(row, box.height)
    return end.where + (plane * end.rows + line) * end.pitch


def reach(end: End, box: Box) -> int:
    """Bytes from the first to the last of the box."""
    return start_of(end._replace(where=0), box, box.height * box.depth - 1) + box.width


def copy_peer(
    dst: tuple[End, object],
    src: tuple[End, object],
    box: Box,
    contexts: tuple[object, object],
    stream: object,
) -> None:
    """Copy a box between contexts; each end comes with the memory it lies in.

    Raises:
        TypeError: an end is host memory.

    C: cuMemcpy3DPeer, cuMemcpy3DPeerAsync
    """
    made = raw.CUDA_MEMCPY3D_PEER()
    for side, (end, memory), context in zip(("dst", "src"), (dst, src), contexts, strict=True):
        if end.kind == HOST:
            raise TypeError("copies between contexts are from device to device; leave contexts out")
        end.fill(made, side)
        setattr(made, side + "Context", context_of(context, memory, end.where))
    made.WidthInBytes, made.Height, made.Depth = box[:3]
    if stream is None:
        in_context(driver.cuMemcpy3DPeer, ctypes.byref(made))
    else:
        in_context(driver.cuMemcpy3DPeerAsync, ctypes.byref(made), stream_handle(stream))
