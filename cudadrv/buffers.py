"""Where the bytes of an array or a buffer lie, whichever library made it."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from cudadrv.layout import is_contiguous, strides_of

FULL_READ_ONLY = 0x11C  # PyBUF_FULL_RO


class Span:
    """One end of a copy: an address with its size, on the device or on the host.

    Attributes:
        nbytes: None if unknown.
        keep: what must live as long as the address is used.
    """

    def __init__(self, address: int, nbytes: int | None, on_device: bool, keep: object) -> None:
        self.address = address
        self.nbytes = nbytes
        self.on_device = on_device
        self.keep = keep


class PyBuffer(ctypes.Structure):
    """Py_buffer of Python's C API."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


# Functions of our own: the types of those that ``pythonapi`` hands out belong to everyone.
_get = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)
_release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyBuffer_Release", ctypes.pythonapi))


def view_address(view: memoryview) -> int:
    """The address of a view's first byte; it holds as long as the view lives."""
    found = PyBuffer()
    _get(view, ctypes.byref(found), FULL_READ_ONLY)
    _release(ctypes.byref(found))
    return found.buf or 0


def host_span(thing: Any, writable: bool, refusal: str = "the destination is read-only") -> Span:
    """Where the bytes of a host array or buffer lie.

    Args:
        refusal: what to say of one that is read-only where it must be written.

    Raises:
        TypeError: it has no bytes that can be copied.
        ValueError: they are not contiguous, or read-only where they must be written.
    """
    if getattr(getattr(thing, "dtype", None), "hasobject", False):
        raise TypeError("the host array holds Python objects, which no device can read")
    try:
        view = memoryview(thing)
    except (TypeError, ValueError):  # NumPy exports no times
        address, readonly, nbytes = described_span(thing)
        keep = thing
    else:
        if not (view.c_contiguous or view.f_contiguous):
            raise ValueError(GAPS)
        address, readonly, nbytes, keep = view_address(view), view.readonly, view.nbytes, view
    if writable and readonly:
        raise ValueError(refusal)
    return Span(address, nbytes, False, keep)


GAPS = "the host array is not contiguous: copy numpy.ascontiguousarray(array)"


def described_span(thing: Any) -> tuple[int, bool, int]:
    """Address, whether it is read-only, and size of what has an ``__array_interface__``."""
    interface = getattr(thing, "__array_interface__", None) or {}
    if interface.get("data") is None:
        raise TypeError(f"{type(thing).__name__}: it is neither device memory nor a host buffer")
    address, readonly = interface["data"]
    return address, readonly, host_nbytes(interface)


def host_nbytes(interface: dict[str, Any]) -> int:
    """The size of a contiguous host array, from its ``__array_interface__``.

    Raises:
        ValueError: it is not contiguous.
    """
    shape, itemsize = interface["shape"], interface_itemsize(interface)
    strides = strides_of(interface.get("strides"), shape, itemsize, "C")
    backwards = is_contiguous(shape[::-1], strides[::-1], itemsize)
    if not backwards and not is_contiguous(shape, strides, itemsize):
        raise ValueError(GAPS)
    nbytes: int = itemsize * math.prod(shape)
    return nbytes


def interface_itemsize(interface: dict[str, Any]) -> int:
    """Bytes of an element, from an ``__array_interface__``."""
    # "<f4"; of times "<M8[s]"; of strings "<U3", of 4 bytes each.
    kind, size = interface["typestr"][1], interface["typestr"][2:].partition("[")[0]
    return int(size) * (4 if kind == "U" else 1)
