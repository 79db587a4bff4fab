"""DeviceArray: device memory with a shape, as a NumPy array is host memory with one."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from cudadrv.buffers import interface_nbytes
from cudadrv.copies import memcpy, transfer
from cudadrv.host_memory import PinnedMemory
from cudadrv.memory import DeviceMemory, mem_alloc

if TYPE_CHECKING:
    from typing_extensions import Self

Order = Literal["C", "F"]
Shape = int | Sequence[int]


class DeviceArray:
    """An array on a device: an owner of memory, or a view into another's.

    Attributes:
        memory: the DeviceMemory it lies in, kept alive; close() of it or of the array frees it.
        shape, strides, dtype, size, nbytes: as NumPy's; strides are in bytes.
        offset: of the first element in the memory, in bytes.
        c_contiguous, f_contiguous: whether the elements lie one after another, the last or the
            first index running fastest.
    """

    __cuda_memory__ = True
    __array_priority__ = 1000

    def __init__(
        self,
        memory: DeviceMemory,
        shape: Shape,
        dtype: npt.DTypeLike,
        strides: Sequence[int] | None = None,
        offset: int = 0,
    ) -> None:
        """Describe memory that exists as an array.

        Args:
            strides: in bytes; None is C order.
            offset: of the first element, in bytes.

        Raises:
            ValueError: the array does not fit into the memory.
            TypeError: *dtype* holds Python objects.
        """
        self.memory = memory
        self.dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise TypeError(f"dtype {self.dtype} holds Python objects, which no device can read")
        self.shape = lengths(shape)
        itemsize = self.dtype.itemsize
        self.strides = c_strides(self.shape, itemsize) if strides is None else tuple(strides)
        self.offset = offset
        self.size = math.prod(self.shape)
        self.nbytes = self.size * itemsize
        self.c_contiguous = is_contiguous(self.shape, self.strides, itemsize)
        self.f_contiguous = is_contiguous(self.shape[::-1], self.strides[::-1], itemsize)
        low, high = extent(self.shape, self.strides, itemsize)
        if self.size and (offset + low < 0 or offset + high > memory.nbytes):
            raise ValueError(
                f"an array of shape {self.shape}, dtype {self.dtype} and strides {self.strides} "
                f"does not fit into {memory.nbytes} bytes at {offset}"
            )

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, strides={self.strides})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def handle(self) -> int:
        """The device address of the first element.

        Raises:
            ClosedError: the memory was closed.
        """
        return self.memory.handle + self.offset

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for other libraries, version 3 of the CUDA Array Interface."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "data": (self.handle if self.size else 0, False),
            "strides": None if self.c_contiguous else self.strides,
            "version": 3,
        }

    @property
    def T(self) -> DeviceArray:
        """The view with the dimensions reversed."""
        return self._view(self.shape[::-1], self.strides[::-1], self.offset)

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> DeviceArray:
        return DeviceArray(self.memory, shape, self.dtype, strides, offset)

    def __getitem__(self, key: Any) -> DeviceArray:
        """The view that basic indexing (ints, slices, ``...``, None) gives; shares the memory.

        An element is an array of no dimensions; ``a[i].copy_to_host()`` reads it.

        Raises:
            IndexError: out of range, too many indices, or not basic indexing.
        """
        parts = tuple(map(index_part, key if isinstance(key, tuple) else (key,)))
        if Ellipsis not in parts:
            parts = (*parts, Ellipsis)  # then NumPy gives a view, never a scalar
        # NumPy does the arithmetic on an array of the same layout whose bytes are never touched.
        base = np.lib.stride_tricks.as_strided(
            np.empty(0, self.dtype), self.shape, self.strides, writeable=False
        )
        view = base[parts]
        moved = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return self._view(view.shape, view.strides, self.offset + moved if view.size else 0)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Copy *value*, a host array or scalar of a shape that broadcasts, into a view."""
        view = self[key]
        if isinstance(value, DeviceArray):
            view.copy_to_device(value)
            return
        view.copy_to_device(np.broadcast_to(np.asarray(value, self.dtype), view.shape))

    def reshape(self, *shape: Any) -> DeviceArray:
        """The view with another shape, in C order; one length may be -1.

        Raises:
            ValueError: the sizes differ, or the array is not C-contiguous.
        """
        wanted = lengths(shape[0] if len(shape) == 1 else shape, unknown=True)
        if -1 in wanted:
            rest = math.prod(length for length in wanted if length != -1)
            filled = self.size // rest if rest else 0
            wanted = tuple(filled if length == -1 else length for length in wanted)
        if math.prod(wanted) != self.size:
            raise ValueError(f"an array of shape {self.shape} cannot be reshaped to {wanted}")
        if not self.c_contiguous:
            raise ValueError("reshape() needs a C-contiguous array: copy it first")
        return self._view(wanted, c_strides(wanted, self.dtype.itemsize), self.offset)

    def ravel(self) -> DeviceArray:
        """The view with one dimension, in C order."""
        return self.reshape(self.size)

    def view(self, dtype: npt.DTypeLike) -> DeviceArray:
        """The same bytes as elements of another type of the same size."""
        if np.dtype(dtype).itemsize != self.dtype.itemsize:
            raise ValueError(f"a view of {self.dtype} as {np.dtype(dtype)} needs equal sizes")
        return DeviceArray(self.memory, self.shape, dtype, self.strides, self.offset)

    def copy_to_host(
        self, out: npt.NDArray[Any] | None = None, stream: object = None
    ) -> npt.NDArray[Any]:
        """Copy the array to the host and return it.

        Args:
            out: a writable array of this shape and dtype to copy into; else a new one.
            stream: orders the copy; *out* is ready when the stream is synchronised. An array that
                is not contiguous is waited for.

        Raises:
            ValueError: shape or dtype of *out* differ.

        C: cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2
        """
        if out is None:
            order: Order = "F" if self.f_contiguous and not self.c_contiguous else "C"
            out = np.empty(self.shape, self.dtype, order)
        elif out.shape != self.shape or out.dtype != self.dtype or not out.flags.writeable:
            raise ValueError(
                f"out has shape {out.shape} and dtype {out.dtype}, the device array {self.shape} "
                f"and {self.dtype}: pass a writable array that matches, or none"
            )
        if self.size == 0:
            return out
        if self._same_layout(out):
            transfer("DtoH", host_pointer(out), self.handle, self.nbytes, stream)
        else:
            out[...] = self._fetch(stream)[1]
        return out

    def copy_to_device(self, src: Any, stream: object = None) -> None:
        """Copy *src* into this array.

        Args:
            src: an array of this shape and dtype, on the host or on the device.
            stream: orders the copy; *src* must stay unchanged until then.

        Raises:
            ValueError: shape or dtype differ.

        C: cuMemcpyHtoD_v2, cuMemcpyDtoD_v2 and their Async forms
        """
        if not isinstance(src, np.ndarray) and hasattr(src, "__cuda_array_interface__"):
            self._copy_from_device(as_cuda_array(src), stream)
            return
        host = np.asarray(src)
        self._check_same(host.shape, host.dtype)
        if self.size == 0:
            return
        if self.c_contiguous or self.f_contiguous:
            if not self._same_layout(host):
                host = np.array(host, order="C" if self.c_contiguous else "F")
            transfer("HtoD", self.handle, host_pointer(host), self.nbytes, stream)
            return
        block, view = self._fetch(stream)
        view[...] = host
        memcpy(self._span(), block, block.nbytes, None)

    def _copy_from_device(self, src: DeviceArray, stream: object) -> None:
        self._check_same(src.shape, src.dtype)
        if self.size == 0:
            return
        contiguous = self.c_contiguous or self.f_contiguous
        if contiguous and self.strides == src.strides:
            transfer("DtoD", self.handle, src.handle, self.nbytes, stream)
        else:
            self.copy_to_device(src.copy_to_host(stream=stream), stream)

    def _check_same(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if shape != self.shape or dtype != self.dtype:
            raise ValueError(
                f"the source has shape {shape} and dtype {dtype}, the device array {self.shape} "
                f"and {self.dtype}: they must be the same"
            )

    def _same_layout(self, host: npt.NDArray[Any]) -> bool:
        return (self.c_contiguous and host.flags.c_contiguous) or (
            self.f_contiguous and host.flags.f_contiguous
        )

    def _span(self) -> DeviceMemory:
        """All the bytes from the lowest to the highest element."""
        low, high = extent(self.shape, self.strides, self.dtype.itemsize)
        return self.memory[self.offset + low : self.offset + high]

    def _fetch(self, stream: object) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """A copy of those bytes on the host, and this array as a view into it."""
        low, high = extent(self.shape, self.strides, self.dtype.itemsize)
        block = np.empty(high - low, np.uint8)
        if stream is not None:
            synchronize = getattr(stream, "synchronize", None)
            if synchronize is not None:
                synchronize()
        memcpy(block, self._span())
        return block, np.ndarray(self.shape, self.dtype, block, -low, self.strides)

    def close(self) -> None:
        """Free the memory, also under every view of it; using one then raises ClosedError."""
        self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def index_part(part: Any) -> Any:
    """One part of a basic index: a slice, ``...``, None, or anything that is an int.

    Raises:
        IndexError: it is a list, a mask, a name or a number with a fraction.
    """
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    try:
        if not isinstance(part, (bool, np.bool_)):
            return part.__index__()
    except (AttributeError, TypeError):
        pass
    raise IndexError(
        f"index {part!r}: device arrays take ints, slices, ... and None; copy to the host for "
        "other indexing"
    )


def host_pointer(array: npt.NDArray[Any]) -> int:
    """The address of a host array's first element."""
    return int(array.__array_interface__["data"][0])


def lengths(shape: Any, unknown: bool = False) -> tuple[int, ...]:
    """A shape as a tuple of ints.

    Raises:
        ValueError: a length is negative (-1 is allowed if *unknown*).
        TypeError: it is neither an int nor a sequence of ints.
    """
    try:
        given = (shape,) if hasattr(shape, "__index__") else tuple(shape)
        result = tuple(operator.index(length) for length in given)
    except TypeError:
        raise TypeError(f"shape {shape!r}: give an int or a tuple of ints") from None
    if any(length < (-1 if unknown else 0) for length in result):
        raise ValueError(f"shape {shape!r} has a negative length")
    return result


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of an array in C order."""
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether the elements lie one after another in C order; lengths of 1 have no say."""
    if 0 in shape:
        return True
    step = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The lowest and the end of the highest byte, counted from the first element."""
    if 0 in shape:
        return 0, 0
    reach = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    return sum(min(each, 0) for each in reach), sum(max(each, 0) for each in reach) + itemsize


def device_array(
    shape: Shape, dtype: npt.DTypeLike = np.float64, order: Order = "C"
) -> DeviceArray:
    """A new array on the device of the current context, not cleared.

    Args:
        order: "C" or "F".

    Raises:
        OutOfMemory: the device has not got as much.

    C: cuMemAlloc_v2
    """
    kind, known = np.dtype(dtype), lengths(shape)
    if kind.hasobject:
        raise TypeError(f"dtype {kind} holds Python objects, which no device can read")
    if order not in ("C", "F"):
        raise ValueError(f"order={order!r}: it is 'C' or 'F'")
    strides = c_strides(known, kind.itemsize)
    if order == "F":
        strides = c_strides(known[::-1], kind.itemsize)[::-1]
    memory = mem_alloc(math.prod(known) * kind.itemsize)
    return DeviceArray(memory, known, kind, strides)


def device_array_like(array: Any) -> DeviceArray:
    """A new array with the shape and dtype of *array*, in F order if that one is, else in C order.

    Args:
        array: on the host or on the device.
    """
    if hasattr(array, "__cuda_array_interface__"):
        array = as_cuda_array(array)
        fortran = array.f_contiguous and not array.c_contiguous
    else:
        array = np.asarray(array)
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return device_array(array.shape, array.dtype, "F" if fortran else "C")


def to_device(array: Any, stream: object = None) -> DeviceArray:
    """Copy a host array, a scalar or a sequence to a new device array.

    Args:
        array: its order is kept where it is C or F; any other layout becomes C.
        stream: orders the copy; *array* must stay unchanged until then.

    C: cuMemAlloc_v2, cuMemcpyHtoD_v2
    """
    made = device_array_like(array)
    made.copy_to_device(array, stream)
    return made


def is_cuda_array(thing: object) -> bool:
    """Whether *thing* is a device array of any library: it has ``__cuda_array_interface__``."""
    return hasattr(thing, "__cuda_array_interface__")


def as_cuda_array(thing: Any) -> DeviceArray:
    """A view of another library's device array, or the memory itself as bytes; no copy.

    Raises:
        TypeError: it has no ``__cuda_array_interface__``.
    """
    if isinstance(thing, DeviceArray):
        return thing
    interface = getattr(thing, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{type(thing).__name__} is no device array: copy it with to_device()")
    described = interface.get("descr")
    typestr = interface["typestr"]
    dtype = np.dtype(described if described and typestr.startswith("|V") else typestr)
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    if strides is None:
        memory = DeviceMemory(interface["data"][0] or 0, interface_nbytes(interface), owner=thing)
        return DeviceArray(memory, shape, dtype)
    low, high = extent(shape, strides, dtype.itemsize)
    memory = DeviceMemory((interface["data"][0] or 0) + low, high - low, owner=thing)
    return DeviceArray(memory, shape, dtype, strides, -low)


def pinned_array(shape: Shape, dtype: npt.DTypeLike = np.float64, order: Order = "C") -> Any:
    """A NumPy array in pinned host memory, for fast copies that run beside other work.

    The memory lives as long as the array and its views.

    C: cuMemHostAlloc
    """
    known, kind = lengths(shape), np.dtype(dtype)
    nbytes = math.prod(known) * kind.itemsize
    block = np.asarray(PinnedMemory(nbytes))
    return np.ndarray(known, kind, block, order=order)
