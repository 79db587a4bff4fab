"""Host arrays as arguments: In, Out and InOut, and the copies on the device that a launch uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cudadrv
from cudadrv import DeviceArray

Writeback = Callable[[], None]


class Transfer:
    """A host array as a kernel's argument; device arrays are passed as they are.

    Attributes:
        value: the array.
        copies_in, copies_out: whether it is copied to the device before the launch, and back after.
    """

    copies_in = copies_out = True

    def __init__(self, value: Any) -> None:
        if not hasattr(value, "dtype"):
            kind = type(value).__name__
            raise TypeError(f"{type(self).__name__}({kind}): give an array; numbers need none")
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class In(Transfer):
    """An array that the kernel only reads: it is not copied back."""

    copies_out = False


class Out(Transfer):
    """An array that the kernel fills: it is not copied in, so what nothing writes is undefined."""

    copies_in = False


class InOut(Transfer):
    """An array that is copied both ways, as a bare one is."""


def on_device(
    array: np.ndarray[Any, Any], way: Any, stream: Any, retr: list[Writeback]
) -> DeviceArray:
    """A device copy of a host array, queued on *retr*; an array passed twice is copied once.

    Args:
        way: an In, Out or InOut, or its class.
    """
    copies = [each for each in retr if isinstance(each, _Copy)]
    for earlier in copies:
        if _is_same(earlier.array, array) and earlier.copies_in >= way.copies_in:
            earlier.copies_out |= way.copies_out
            return earlier.device
    if way.copies_in:
        device = cudadrv.to_device(array, stream=stream)
    else:
        device = cudadrv.device_array_like(array)
    made = _Copy(array, device, way)
    for earlier in copies:
        if np.may_share_memory(earlier.array, array):
            earlier.keep()
            made.keep()
    retr.append(made)
    return made.device


def _is_same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays are the same elements of the same memory."""
    return a is b or (
        a.ctypes.data == b.ctypes.data
        and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)
        and a.flags.writeable == b.flags.writeable
    )


class _Copy:
    """A host array on the device; calling it, once the launch is done, is the way back.

    Attributes:
        copies_in, copies_out: which ways it travels.
        before: what the array held, if it overlaps another one of the launch. Then only what the
            kernel changed goes back, so that it is not undone by the other one's way back.
    """

    def __init__(self, array: np.ndarray[Any, Any], device: DeviceArray, way: Any) -> None:
        self.array = array
        self.device = device
        self.copies_in, self.copies_out = way.copies_in, way.copies_out
        self.before: np.ndarray[Any, Any] | None = None

    def keep(self) -> None:
        """Remember what the array holds."""
        if self.before is None and self.copies_in:
            self.before = self.array.copy()

    def __call__(self) -> None:
        if self.copies_out and self.array.flags.writeable:
            found = self.device.copy_to_host()
            changed = True if self.before is None else found != self.before
            np.copyto(self.array, found, where=changed)
        self.device.close()
