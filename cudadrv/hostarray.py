"""NumPy arrays in host memory that the device reaches: pinned, mapped, managed, registered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cudadrv.array import DeviceArray
from cudadrv.context import stream_handle
from cudadrv.creation import like, new_layout
from cudadrv.errors import CudaError
from cudadrv.host_memory import PinnedMemory, RegisteredMemory, host_register
from cudadrv.layout import extent
from cudadrv.managed import managed_alloc
from cudadrv.memory import DeviceMemory
from cudadrv.strided import host_pointer
from cudadrv.view import Shape, description

ALREADY_REGISTERED = 712


class MappedArray(np.ndarray[Any, Any]):
    """A NumPy array in memory that the device addresses too: kernels take it without a copy.

    Slices are MappedArrays as well; what NumPy computes from it is in ordinary memory, and counts
    as a host array. The host sees what a kernel wrote after synchronising.
    """

    # Where its memory lies: address on the host, on the device, size.
    _mapping: tuple[int, int, int] | None = None

    def __array_finalize__(self, obj: Any) -> None:
        self._mapping = getattr(obj, "_mapping", None)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for kernels and other libraries; ordinary memory has none."""
        low, high = extent(self.shape, self.strides, self.itemsize)
        at = host_pointer(self)
        host, device, nbytes = self._mapping or (0, 0, 0)
        if self._mapping is None or not (
            high == 0 or host <= at + low <= at + high <= host + nbytes
        ):
            raise AttributeError("this array is in ordinary memory: copy it with to_device()")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": description(self.dtype),
            "data": (at - host + device if self.size else 0, not self.flags.writeable),
            "strides": None if self.flags.c_contiguous else self.strides,
            "version": 3,
        }


def pinned_array(
    shape: Shape,
    dtype: npt.DTypeLike = np.float64,
    strides: Any = None,
    order: str = "C",
    portable: bool = True,
    wc: bool = False,
) -> npt.NDArray[Any]:
    """A NumPy array in pinned host memory, for fast copies that run beside other work.

    The memory lives as long as the array and its views.

    Args:
        portable: whether every context can copy from and to it as fast.
        wc: whether the host's writes bypass its caches: reading it on the host is very slow then.

    C: cuMemHostAlloc
    """
    known, kind, steps, nbytes = new_layout(shape, dtype, strides, order)
    memory = PinnedMemory(nbytes, portable=portable, write_combined=wc)
    return np.ndarray(known, kind, memory.buffer, strides=steps)


def mapped_array(
    shape: Shape,
    dtype: npt.DTypeLike = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: object = None,
    portable: bool = False,
    wc: bool = False,
) -> MappedArray:
    """A NumPy array in pinned host memory that kernels read and write over the bus.

    Args:
        stream: for numba.cuda's sake; mapped memory is on no stream.
        portable, wc: as of ``pinned_array``.

    C: cuMemHostAlloc, cuMemHostGetDevicePointer_v2
    """
    stream_handle(stream)
    known, kind, steps, nbytes = new_layout(shape, dtype, strides, order)
    memory = PinnedMemory(nbytes, portable=portable, mapped=True, write_combined=wc)
    made = MappedArray(known, kind, memory.buffer, strides=steps)
    made._mapping = (memory.handle, memory.device.handle, nbytes)
    return made


def managed_array(
    shape: Shape,
    dtype: npt.DTypeLike = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: object = None,
    attach_global: bool = True,
) -> MappedArray:
    """A NumPy array in managed memory, which moves to the host or the device that touches it.

    Args:
        stream: for numba.cuda's sake; see ``attach_global``.
        attach_global: whether every stream can use it; else only the host, until it is attached
            to a stream.

    C: cuMemAllocManaged
    """
    stream_handle(stream)
    known, kind, steps, nbytes = new_layout(shape, dtype, strides, order)
    memory = managed_alloc(nbytes, "global" if attach_global else "host")
    made = MappedArray(known, kind, memory.buffer, strides=steps)
    made._mapping = (memory.handle, memory.handle, nbytes)
    return made


def pinned_array_like(ary: Any) -> npt.NDArray[Any]:
    """A pinned array with the shape, the dtype and the order of *ary*.

    C: cuMemHostAlloc
    """
    return pinned_array(*like(ary))


def mapped_array_like(
    ary: Any, stream: object = None, portable: bool = False, wc: bool = False
) -> MappedArray:
    """A mapped array with the shape, the dtype and the order of *ary*.

    C: cuMemHostAlloc, cuMemHostGetDevicePointer_v2
    """
    return mapped_array(*like(ary), stream=stream, portable=portable, wc=wc)


@contextlib.contextmanager
def pinned(*arrays: npt.NDArray[Any]) -> Iterator[None]:
    """Pin the memory of NumPy arrays inside ``with``, so that copies of them are fast.

    Wait for copies on streams before it ends.

    Raises:
        TypeError: one is no NumPy array.
        ValueError: the memory of one is pinned already.

    C: cuMemHostRegister_v2, cuMemHostUnregister
    """
    with contextlib.ExitStack() as stack:
        for position, array in enumerate(arrays):
            registered(stack, array, position)
        yield


@contextlib.contextmanager
def mapped(*arrays: npt.NDArray[Any], stream: object = None) -> Iterator[Any]:
    """Let kernels access NumPy arrays inside ``with``, as the device arrays that it gives.

    Of one array it gives one, of several a list. Synchronise before it ends.

    Args:
        stream: what the device arrays' data is ordered on, see ``DeviceArray.stream``.

    Raises:
        TypeError: one is no NumPy array.
        ValueError: the memory of one is pinned already.

    C: cuMemHostRegister_v2, cuMemHostGetDevicePointer_v2, cuMemHostUnregister
    """
    made = []
    with contextlib.ExitStack() as stack:
        for position, array in enumerate(arrays):
            memory, low = registered(stack, array, position), 0
            if memory is not None:
                low = extent(array.shape, array.strides, array.itemsize)[0]
            on_device = DeviceMemory(0, 0) if memory is None else memory.device
            readonly = not array.flags.writeable
            made.append(
                DeviceArray(on_device, array.shape, array.dtype, array.strides, -low, readonly)
            )
        yield [each.bind(stream) for each in made] if len(made) != 1 else made[0].bind(stream)


def registered(
    stack: contextlib.ExitStack, array: npt.NDArray[Any], position: int
) -> RegisteredMemory | None:
    """Pin the memory of an array until *stack* ends; None if there is none."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"array {position} is no NumPy array, but of {type(array).__name__}")
    low, high = extent(array.shape, array.strides, array.itemsize)
    if high == low:
        return None
    try:
        memory = host_register(host_pointer(array) + low, high - low, mapped=True)
    except CudaError as error:
        if error.code != ALREADY_REGISTERED:
            raise
        raise ValueError(f"array {position} is pinned already, or overlaps one") from error
    return stack.enter_context(memory)
