"""Handles of memory for other processes: file descriptors, fabric handles, Windows handles."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cudadrv import checks
from cudadrv.context import in_context

HANDLE_TYPES = {"none": 0, "posix_fd": 1, "win32": 2, "win32_kmt": 4, "fabric": 8}
FABRIC_BYTES = 64


def handle_number(handle_type: str) -> int:
    """The CUmemAllocationHandleType of a word, "none" excluded."""
    known = {word: number for word, number in HANDLE_TYPES.items() if number}
    return checks.choice(handle_type, known, "handle_type")


def export(call: Callable[..., Any], handle: int, handle_type: str) -> int | bytes:
    """What a driver function that exports *handle* writes: an int, or of a fabric handle bytes."""
    number = handle_number(handle_type)
    written: Any = ctypes.create_string_buffer(FABRIC_BYTES)
    in_context(call, written, handle, number, 0)
    if handle_type == "fabric":
        return bytes(written.raw)
    kind = ctypes.c_int if handle_type == "posix_fd" else ctypes.c_void_p
    return int(kind.from_buffer(written).value or 0)


def import_argument(handle: int | bytes, handle_type: str) -> tuple[Any, int]:
    """(what a driver function that imports takes as a pointer, CUmemAllocationHandleType).

    Raises:
        TypeError: a fabric handle is bytes, any other an int.
        ValueError: it has another size.
    """
    number = handle_number(handle_type)
    if handle_type == "fabric":
        if not isinstance(handle, (bytes, bytearray)):
            raise TypeError(f"a fabric handle is bytes, not {type(handle).__name__}")
        if len(handle) != FABRIC_BYTES:
            raise ValueError(f"a fabric handle has {FABRIC_BYTES} bytes, not {len(handle)}")
        return ctypes.create_string_buffer(bytes(handle), FABRIC_BYTES), number
    return ctypes.c_void_p(checks.size(handle, "handle")), number
