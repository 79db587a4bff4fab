"""Copies of boxes of bytes between arrays, device and host memory: the driver's records."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from cudadrv import driver, raw
from cudadrv.context import in_context
from cudadrv.stream import stream_handle

HOST, DEVICE, ARRAY = 1, 2, 3  # CUmemorytype


class Box(NamedTuple):
    """What is copied: *width* bytes of each of *height* rows of *depth* planes.

    Attributes:
        dimensions: of the CUDA array on either side, 3 for layers: the larger of the two.
    """

    width: int
    height: int
    depth: int
    dimensions: int


class End(NamedTuple):
    """One side of a copy.

    Attributes:
        kind: HOST, DEVICE or ARRAY.
        where: the address of the first byte, or the handle of the array.
        x, y, z: where the box starts in an array; x in bytes.
        pitch, rows: bytes from row to row, rows from plane to plane, in linear memory.
    """

    kind: int
    where: int
    x: int = 0
    y: int = 0
    z: int = 0
    pitch: int = 0
    rows: int = 0

    def fill(self, record: Any, side: str) -> None:
        """Enter it into a CUDA_MEMCPY2D or CUDA_MEMCPY3D as the side "src" or "dst"."""
        names = {HOST: "Host", DEVICE: "Device", ARRAY: "Array"}
        values = {
            "MemoryType": self.kind,
            names[self.kind]: self.where,
            "XInBytes": self.x,
            "Y": self.y,
            "Pitch": self.pitch,
            "Z": self.z,
            "Height": self.rows,
        }
        known = {name for name, *_ in record._fields_}
        for name, value in values.items():
            if side + name in known:
                setattr(record, side + name, value)


def linear(
    kind: int, where: int, box: Box, steps: tuple[int | None, int | None] | None
) -> End | None:
    """The end of a copy in host or device memory; None if its layout is none that copies take.

    Args:
        steps: bytes from plane to plane and row to row, None for only one; None for any other
            layout.
    """
    if steps is None:
        return None
    plane, row = steps
    pitch = box.width if row is None else row
    if pitch < box.width:
        return None
    rows, rest = (box.height, 0) if plane is None else divmod(plane, pitch)
    if rest or rows < box.height:
        return None
    return End(kind, where, pitch=pitch, rows=rows)


def copy(dst: End, src: End, box: Box, stream: object) -> None:
    """Copy a box, ordered on *stream*; without one, back when it is done.

    C: cuMemcpy2D_v2, cuMemcpy2DUnaligned_v2, cuMemcpy2DAsync_v2, cuMemcpy3D_v2,
        cuMemcpy3DAsync_v2
    """
    if box.dimensions == 1 and copy_row(dst, src, box, stream):
        return
    flat = box.dimensions <= 2
    made = raw.CUDA_MEMCPY2D() if flat else raw.CUDA_MEMCPY3D()
    src.fill(made, "src")
    dst.fill(made, "dst")
    made.WidthInBytes, made.Height = box.width, box.height
    if not flat:
        made.Depth = box.depth
    name = "cuMemcpy2D" if flat else "cuMemcpy3D"
    if stream is not None:
        in_context(getattr(driver, name + "Async"), ctypes.byref(made), stream_handle(stream))
        return
    # Between device memory the plain 2D form refuses pitches that are not the device's own.
    unaligned = flat and src.kind == dst.kind == DEVICE
    in_context(getattr(driver, name + "Unaligned" * unaligned), ctypes.byref(made))


LETTERS = {HOST: "H", DEVICE: "D", ARRAY: "A"}


def copy_row(dst: End, src: End, box: Box, stream: object) -> bool:
    """Copy a box of one row if the driver has a function for just that.

    C: cuMemcpyHtoA_v2, cuMemcpyAtoH_v2, cuMemcpyDtoA_v2, cuMemcpyAtoD_v2, cuMemcpyAtoA_v2,
        cuMemcpyHtoAAsync_v2, cuMemcpyAtoHAsync_v2
    """
    name = f"cuMemcpy{LETTERS[src.kind]}to{LETTERS[dst.kind]}"
    ends = [
        argument
        for end in (dst, src)
        for argument in ((end.where, end.x) if end.kind == ARRAY else (end.where,))
    ]
    if stream is None:
        in_context(getattr(driver, name), *ends, box.width)
        return True
    if HOST not in (dst.kind, src.kind):
        return False
    in_context(getattr(driver, name + "Async"), *ends, box.width, stream_handle(stream))
    return True
