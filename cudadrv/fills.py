"""Fills device memory with a value, repeated: contiguous bytes and rectangles."""

from __future__ import annotations

from typing import Any

from cudadrv import capture, checks, driver
from cudadrv.buffers import Span
from cudadrv.context import in_context
from cudadrv.copies import span
from cudadrv.stream import stream_handle

WIDTHS = (1, 2, 4)


def memset(
    dst: Any, value: int, nbytes: int | None = None, width: int = 1, stream: object = None
) -> None:
    """Fill device memory with a value of *width* bytes, repeated.

    Args:
        dst: device memory or a contiguous device array; a device address needs *nbytes*.
        value: signed or unsigned, of *width* bytes.
        nbytes: how much to fill, a multiple of *width*; by default all.
        width: 1, 2 or 4.

    Raises:
        ValueError: the size, the width, the value or the alignment does not fit.
        TypeError: *dst* is host memory.

    C: cuMemsetD8_v2, cuMemsetD16_v2, cuMemsetD32_v2, cuMemsetD8Async, cuMemsetD16Async,
    cuMemsetD32Async
    """
    target = device_span(dst)
    count = target.nbytes if nbytes is None else checks.size(nbytes)
    if count is None or width not in WIDTHS or count % width:
        raise ValueError(f"cannot fill {count} bytes with values of width {width} (1, 2 or 4)")
    if target.nbytes is not None and count > target.nbytes:
        raise ValueError(f"cannot fill {count} bytes: the destination has {target.nbytes}")
    pattern = fitting(value, width)
    if count == 0:
        return
    check_aligned(target.address, width)
    run(f"cuMemsetD{8 * width}", (target.address, pattern, count // width), stream)
    capture.note(stream, dst)


def memset_2d(
    dst: Any,
    value: int,
    width: int | None = None,
    height: int | None = None,
    pitch: int | None = None,
    element: int = 1,
    stream: object = None,
) -> None:
    """Fill *height* rows of *width* bytes, *pitch* bytes from one to the next.

    Args:
        dst: device memory, a contiguous device array or a device address. Pitched memory knows
            *width*, *height* and *pitch*.
        value: signed or unsigned, of *element* bytes.
        pitch: by default that of the memory, else *width*.
        element: bytes of a value: 1, 2 or 4; *width*, *pitch* and the address are multiples of it.

    Raises:
        ValueError: a number does not fit.
        TypeError: *dst* is host memory, or a number is missing.

    C: cuMemsetD2D8_v2, cuMemsetD2D16_v2, cuMemsetD2D32_v2, cuMemsetD2D8Async, cuMemsetD2D16Async,
    cuMemsetD2D32Async
    """
    target = device_span(dst)
    columns = checks.size(known(dst, "width", width), "width")
    rows = checks.size(known(dst, "height", height), "height")
    step = checks.size(getattr(dst, "pitch", columns) if pitch is None else pitch, "pitch")
    if element not in WIDTHS or columns % element or step % element:
        raise ValueError(f"width {columns}, pitch {step}: not multiples of element={element}")
    if step < columns:
        raise ValueError(f"pitch {step} is less than the width {columns}")
    pattern = fitting(value, element)
    if not (columns and rows):
        return
    last = (rows - 1) * step + columns
    if target.nbytes is not None and last > target.nbytes:
        raise ValueError(f"cannot fill up to byte {last}: the destination has {target.nbytes}")
    check_aligned(target.address, element)
    arguments = (target.address, step, pattern, columns // element, rows)
    run(f"cuMemsetD2D{8 * element}", arguments, stream)
    capture.note(stream, dst)


def device_span(dst: Any) -> Span:
    """Where *dst* lies, on the device."""
    target = span(dst, True)
    if not target.on_device:
        raise TypeError("memset fills device memory; this is host memory: write to it instead")
    return target


def known(dst: Any, name: str, given: int | None) -> Any:
    """A number as given, or as the memory knows it."""
    found = getattr(dst, name, None) if given is None else given
    if found is None:
        raise TypeError(f"give {name}=: only pitched memory knows it by itself")
    return found


def fitting(value: int, width: int) -> int:
    """*value* as an unsigned number of *width* bytes."""
    number = checks.integer(value, "value")
    if not -(1 << (8 * width - 1)) <= number < 1 << (8 * width):
        raise ValueError(f"{number} does not fit into {width} bytes")
    return number & ((1 << 8 * width) - 1)


def check_aligned(address: int, width: int) -> None:
    """Refuse an address that is no multiple of *width*, as the device does."""
    if address % width:
        raise ValueError(f"address {address:#x} is no multiple of the width {width}")


def run(name: str, arguments: tuple[int, ...], stream: object) -> None:
    """Call the driver function *name*, or its Async form if there is a stream."""
    if stream is None:
        in_context(getattr(driver, name), *arguments)
    else:
        in_context(getattr(driver, name + "Async"), *arguments, stream_handle(stream))
