"""New device arrays, and copies of host arrays on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cudadrv import checks, dlpack, driver
from cudadrv.array import DeviceArray, as_cuda_array, is_cuda_array
from cudadrv.context import in_context
from cudadrv.layout import extent, lengths, strides_of
from cudadrv.memory import DeviceMemory, mem_alloc
from cudadrv.stream import stream_handle
from cudadrv.view import Shape, device_dtype, to_dtype


def new_layout(
    shape: Shape, dtype: npt.DTypeLike, strides: Any, order: str
) -> tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...], int]:
    """Shape, dtype, strides and bytes of a new array, as NumPy's constructors take them.

    Raises:
        TypeError, ValueError: one of them is wrong.
    """
    kind, known = to_dtype(dtype), lengths(shape)
    known, kind = (*known, *kind.shape), device_dtype(kind.base)
    steps = strides_of(strides, known, kind.itemsize, order)
    low, high = extent(known, steps, kind.itemsize)
    if low < 0:
        raise ValueError(f"strides {steps} of a new array: negative ones come from slices")
    return known, kind, steps, checks.size(high)


def device_array(
    shape: Shape,
    dtype: npt.DTypeLike = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: object = None,
) -> DeviceArray:
    """A new array on the device of the current context, not cleared.

    Args:
        strides: in bytes; by default those of *order*.
        order: "C" or "F".
        stream: what the array's data will be ordered on, see ``DeviceArray.stream``.

    Raises:
        OutOfMemory: the device has not got as much.

    C: cuMemAlloc_v2
    """
    known, kind, steps, nbytes = new_layout(shape, dtype, strides, order)
    ordered = None if stream is None or not stream_handle(stream) else stream
    return DeviceArray(mem_alloc(nbytes, ordered), known, kind, steps, stream=ordered)


def device_array_like(ary: Any, stream: object = None) -> DeviceArray:
    """A new array with the shape and dtype of *ary*, in F order if that one is, else in C order.

    Args:
        ary: on the host or on the device.
    """
    return device_array(*like(ary), stream=stream)


def like(ary: Any) -> tuple[tuple[int, ...], np.dtype[Any], None, str]:
    """Shape, dtype, strides and order for a new array like *ary*, on the host or on the device."""
    if not isinstance(ary, np.ndarray) and is_cuda_array(ary):
        array = as_cuda_array(ary, sync=False)
        return array.shape, array.dtype, None, array.order
    host = np.asarray(ary)
    fortran = host.flags.f_contiguous and not host.flags.c_contiguous
    return host.shape, host.dtype, None, "F" if fortran else "C"


def to_device(
    obj: Any, stream: object = None, copy: bool = True, to: DeviceArray | None = None
) -> DeviceArray:
    """Copy a host array, a scalar or a sequence to a new device array.

    Args:
        obj: its order is kept where it is C or F; any other layout becomes C.
        stream: orders the copy; *obj* must stay unchanged until then.
        copy: False allocates only.
        to: an existing array of this shape and dtype to copy into instead.

    C: cuMemAlloc_v2, cuMemcpyHtoD_v2
    """
    made = device_array_like(obj, stream) if to is None else to
    if not isinstance(made, DeviceArray):
        raise TypeError(f"to={type(made).__name__}: it is a DeviceArray")
    if copy:
        made.copy_to_device(obj, stream)
    return made


def from_dlpack(x: Any, *, stream: object = None, copy: bool | None = None) -> DeviceArray:
    """Take over an array of another library through DLPack; no copy unless asked for.

    Args:
        x: an object with ``__dlpack__`` whose data is in device, managed or pinned memory, or a
            capsule of DLPack.
        stream: that the data will be used on, and that waits for it; None is the default stream,
            -1 waits for nothing.
        copy: True copies.

    Raises:
        TypeError: it has no ``__dlpack__``.
        BufferError: the data is elsewhere, or of a type that NumPy has not.

    C: cuMemHostGetDevicePointer_v2, for pinned memory
    """
    export = getattr(x, "__dlpack__", None)
    if export is None or isinstance(x, type):
        taken = dlpack.take(x)
    else:
        place = tuple(x.__dlpack_device__())
        check_place(place)
        on = None if place[0] == dlpack.CUDA_HOST else consumer(stream)
        try:
            capsule = export(stream=on, max_version=dlpack.VERSION)
        except TypeError:  # from before DLPack 1.0
            capsule = export(stream=on)
        taken = dlpack.take(capsule)
    check_place(taken.device)
    low, high = extent(taken.shape, taken.strides, taken.dtype.itemsize)
    address = taken.address
    if taken.device[0] == dlpack.CUDA_HOST and high:
        address = in_context(driver.cuMemHostGetDevicePointer, address + low, 0) - low
    memory = DeviceMemory(address + low if high else 0, high - low, owner=taken.owner)
    made = DeviceArray(memory, taken.shape, taken.dtype, taken.strides, -low, taken.readonly)
    return made.copy() if copy else made


def check_place(place: tuple[int, ...]) -> None:
    """Refuse memory that no device reaches.

    Raises:
        BufferError: it is, by DLPack's numbers.
    """
    if place[0] not in (dlpack.CUDA, dlpack.CUDA_HOST, dlpack.CUDA_MANAGED):
        raise BufferError(f"the array is on DLPack's device {place}: copy it with to_device()")


def consumer(stream: object) -> int:
    """The stream as the array API standard wants it told: 1 for the legacy default stream."""
    if isinstance(stream, int) and stream == -1:
        return -1
    return stream_handle(stream) or 1
