"""View: where the elements of an array lie in device memory, and the views of its parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from cudadrv import driver
from cudadrv.context import Resource, in_context
from cudadrv.layout import (
    broadcast_strides,
    c_strides,
    extent,
    filled_in,
    is_contiguous,
    lengths,
    reshaped,
    strides_of,
)
from cudadrv.memory import DeviceMemory
from cudadrv.process_local import ProcessLocal
from cudadrv.stream import stream_handle

if TYPE_CHECKING:
    from typing_extensions import Self

Shape = SupportsIndex | Sequence[int]
Order = Literal["C", "F"]


class View(ProcessLocal):
    """Memory with a shape, a dtype and strides; what indexing and reshaping give shares it.

    Attributes:
        memory: the DeviceMemory it lies in, kept alive; close() of it or of the array frees it.
        shape, strides, dtype, size, nbytes: as NumPy's; strides are in bytes.
        offset: of the first element in the memory, in bytes.
        extent: the lowest and the end of the highest byte, counted from the first element.
        c_contiguous, f_contiguous: whether the elements lie one after another, the last or the
            first index running fastest.
        readonly: whether copies into it, and kernels that may write to it, are refused.
        stream: what the data is ordered on, told to other libraries that take the array; None if
            it needs no waiting for. ``to_device(x, stream)`` sets it.
        kernel_type, leaves: a compiler's type of the array, and what a launch passes for it.
    """

    # Slots, so that compiled launchers find them.
    __slots__ = ("__dict__", "__weakref__", "kernel_type", "leaves", "memory")
    kernel_type: Any
    leaves: bytes

    def __init__(
        self,
        memory: Any,
        shape: Shape,
        dtype: npt.DTypeLike,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        readonly: bool = False,
        stream: object = None,
    ) -> None:
        """Describe memory that exists as an array.

        Args:
            strides: in bytes; None is C order.
            offset: of the first element, in bytes.

        Raises:
            ValueError: the array does not fit into the memory.
            TypeError: *dtype* holds Python objects, or *memory* is none.
        """
        if not isinstance(memory, DeviceMemory):
            kind = type(memory).__name__
            raise TypeError(f"{kind} is no DeviceMemory: see mem_alloc() and as_cuda_array()")
        self.memory = memory
        self.dtype = device_dtype(dtype)
        self.shape = lengths(shape)
        itemsize = self.dtype.itemsize
        self.strides = strides_of(strides, self.shape, itemsize, "C")
        (self.offset,) = strides_of(offset, (0,), 1, "C")
        self.size = math.prod(self.shape)
        self.nbytes = self.size * itemsize
        self.c_contiguous = is_contiguous(self.shape, self.strides, itemsize)
        self.f_contiguous = is_contiguous(self.shape[::-1], self.strides[::-1], itemsize)
        self.readonly = readonly
        # Its handle is asked for only now, so that what is no stream is refused at once.
        self.stream = stream if stream is None or stream_handle(stream) else None
        self.extent = extent(self.shape, self.strides, itemsize)
        low, high = self.extent
        if self.size and (self.offset + low < 0 or self.offset + high > memory.nbytes):
            raise ValueError(
                f"an array of shape {self.shape}, dtype {self.dtype} and strides {self.strides} "
                f"does not fit into {memory.nbytes} bytes at {self.offset}"
            )

    def __repr__(self) -> str:
        more = ", readonly" if self.readonly else ""
        closed = ", closed" if self.memory.closed else ""
        return (
            f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, strides={self.strides}"
            f"{more}{closed})"
        )

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def order(self) -> Order:
        """How a copy is laid out: "F" if this one is contiguous in F order only, else "C"."""
        return "F" if self.f_contiguous and not self.c_contiguous else "C"

    @property
    def handle(self) -> int:
        """The device address of the first element.

        Raises:
            ClosedError: the memory was closed.
        """
        return self.memory.handle + self.offset

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Self:
        return self._viewed(self.dtype, shape, strides, offset)

    def _viewed(
        self, dtype: Any, shape: Sequence[int], strides: Sequence[int], offset: int = 0
    ) -> Self:
        at = self.offset + offset
        view = type(self)(self.memory, shape, dtype, strides, at, self.readonly)
        view.stream = self.stream
        return view

    def ordered_on(self) -> object:
        """What the data is ordered on, see ``stream``; if that was closed, all work is waited for.

        C: cuCtxSynchronize, for a closed stream
        """
        if isinstance(self.stream, Resource) and self.stream.closed:
            in_context(driver.cuCtxSynchronize)
            self.stream = None
        return self.stream

    def bind(self, stream: object) -> Self:
        """A view whose data is said to be ordered on *stream*, see ``stream``."""
        view = self._view(self.shape, self.strides)
        view.stream = stream if stream is None or stream_handle(stream) else None
        return view

    @property
    def T(self) -> Self:
        """The view with the dimensions reversed."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Self:
        """The view with the dimensions in another order, by default reversed.

        Args:
            axes: the old dimension of each new one, one by one or as a tuple.

        Raises:
            ValueError: they are not all the dimensions, each once.
        """
        given = axes[0] if len(axes) == 1 else axes
        order = list(range(self.ndim))[::-1]
        if given is not None and given != ():
            order = axes_of(given, self.ndim)
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"axes {given!r} are not the {self.ndim} dimensions, each once")
        shape, strides = self.shape, self.strides
        return self._view([shape[axis] for axis in order], [strides[axis] for axis in order])

    def squeeze(self, axis: Any = None) -> Self:
        """The view without dimensions of length 1: all of them, or those in *axis*.

        Raises:
            ValueError: one of *axis* has another length.
        """
        ones = [i for i, length in enumerate(self.shape) if length == 1]
        gone = set(ones if axis is None else axes_of(axis, self.ndim))
        if not gone <= set(ones):
            raise ValueError(f"axis {axis!r} of shape {self.shape} is not of length 1")
        kept = [i for i in range(self.ndim) if i not in gone]
        return self._view([self.shape[i] for i in kept], [self.strides[i] for i in kept])

    def reshape(self, *shape: Any, order: str = "C") -> Self:
        """The view with another shape; one length may be -1.

        Args:
            order: "C" or "F", in which elements are counted.

        Raises:
            ValueError: the sizes differ, or the elements lie so that it would need a copy.
        """
        given = lengths(shape[0] if len(shape) == 1 else shape, unknown=True)
        wanted = filled_in(given, self.size, self.shape)
        step = -1 if order == "F" else 1
        strides_of(None, (), 1, order)
        strides = reshaped(self.shape[::step], self.strides[::step], self.itemsize, wanted[::step])
        if strides is None:
            raise ValueError(
                f"reshape of shape {self.shape} and strides {self.strides} to {wanted} is no view: "
                "copy() gives an array that is contiguous"
            )
        return self._view(wanted, strides[::step])

    def ravel(self, order: str = "C") -> Self:
        """The view with one dimension.

        Raises:
            ValueError: the elements lie so that it would need a copy.
        """
        return self.reshape(self.size, order=order)

    def view(self, dtype: npt.DTypeLike) -> Self:
        """The same bytes as elements of another type.

        With another size of elements the length of the last dimension changes.

        Raises:
            ValueError: it does not come out even, or the last dimension is not contiguous.
        """
        kind, size = device_dtype(dtype), self.itemsize
        if kind.itemsize == size:
            return self._viewed(kind, self.shape, self.strides)
        if not self.shape or (self.strides[-1] != size and self.shape[-1] != 1):
            raise ValueError(
                f"a view of {self.dtype} as {kind} needs a last dimension that is contiguous"
            )
        last, rest = divmod(self.shape[-1] * size, kind.itemsize)
        if rest:
            raise ValueError(f"{self.shape[-1]} times {self.dtype} is no whole number of {kind}")
        strides = (*self.strides[:-1], kind.itemsize)
        return self._viewed(kind, (*self.shape[:-1], last), strides)

    def is_c_contiguous(self) -> bool:
        """Whether the elements lie one after another, the last index running fastest."""
        return self.c_contiguous

    def is_f_contiguous(self) -> bool:
        """Whether the elements lie one after another, the first index running fastest."""
        return self.f_contiguous

    def split(self, section: SupportsIndex) -> list[Self]:
        """Views of *section* elements each of an array with one dimension; the last may be shorter.

        Raises:
            ValueError: it has several dimensions, or *section* is less than 1.
        """
        step = operator.index(section)
        if self.ndim != 1 or step < 1:
            raise ValueError(f"split of shape {self.shape} into {step}: one dimension, 1 or more")
        return [self.view_of(slice(i, i + step)) for i in range(0, self.size, step)]

    def broadcast_to(self, shape: Shape) -> Self:
        """The read-only view in which dimensions are repeated, with strides of 0.

        Raises:
            ValueError: the shape does not broadcast to that.
        """
        wanted = lengths(shape)
        view = self._view(wanted, broadcast_strides(self.shape, self.strides, wanted))
        view.readonly = True
        return view

    def view_of(self, key: Any) -> Self:
        """The view that a basic index gives, of an element too: as ``a[key]``, never a scalar.

        Raises:
            IndexError: out of range, too many indices, or not basic indexing.
        """
        names = key if isinstance(key, list) else [key]
        if names and all(isinstance(name, str) for name in names):
            return self._fields(key)
        parts = tuple(map(index_part, key if isinstance(key, tuple) else (key,)))
        if Ellipsis not in parts:
            parts = (*parts, Ellipsis)  # then NumPy gives a view, never a scalar
        # NumPy does the arithmetic on an array of the same layout whose bytes are never touched.
        base = np.lib.stride_tricks.as_strided(
            np.empty(0, self.dtype), self.shape, self.strides, writeable=False
        )
        view = base[parts]
        moved = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return self._view(view.shape, view.strides, moved if view.size else 0)

    def _fields(self, names: Any) -> Self:
        """The view of one field of records, or of several."""
        fields = self.dtype.fields
        if fields is None:
            raise IndexError(f"index {names!r}: an array of {self.dtype} has no fields")
        if isinstance(names, list):
            try:
                return self._viewed(self.dtype[names], self.shape, self.strides)
            except KeyError as error:
                raise IndexError(f"the records have no field {error}: {list(fields)}") from None
        if names not in fields:
            raise IndexError(f"the records have no field {names!r}, only {list(fields)}")
        kind, at = fields[names][:2]
        strides = (*self.strides, *c_strides(kind.shape, kind.base.itemsize))
        return self._viewed(kind.base, (*self.shape, *kind.shape), strides, at)


def to_dtype(dtype: Any) -> np.dtype[Any]:
    """What NumPy makes of a dtype.

    Raises:
        TypeError: nothing; for some texts NumPy raises SyntaxError.
    """
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except SyntaxError:
        raise TypeError(f"data type {dtype!r} not understood") from None
    return found


def device_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of elements on a device.

    Raises:
        TypeError: it is no dtype, or holds Python objects.
        ValueError: its elements have no bytes, or several of them are meant.
    """
    kind = to_dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"dtype {kind} holds Python objects, which no device can read")
    if not kind.itemsize or kind.subdtype is not None:
        raise ValueError(f"dtype {kind}: elements need a size, and a shape goes to the array")
    return kind


def description(dtype: np.dtype[Any]) -> list[Any]:
    """The field ``descr`` of array interfaces; just bytes for records with fields out of order."""
    try:
        return dtype.descr
    except ValueError:
        return [("", dtype.str)]


def axes_of(axes: Any, ndim: int) -> list[int]:
    """Dimensions counted from the front; negative ones are counted from the end.

    Raises:
        ValueError: there is no such dimension.
        TypeError: they are no ints.
    """
    try:
        given = [axes] if hasattr(type(axes), "__index__") else list(axes)
        numbers = [operator.index(axis) for axis in given]
    except TypeError:
        raise TypeError(f"axes {axes!r}: give ints") from None
    if any(not -ndim <= axis < ndim for axis in numbers):
        raise ValueError(f"axes {axes!r}: the array has {ndim} dimensions")
    return [axis % ndim for axis in numbers]


def index_part(part: Any) -> Any:
    """One part of a basic index: a slice, ``...``, None, or anything that is an int.

    Raises:
        IndexError: it is a list, a mask, a name or a number with a fraction.
    """
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    try:
        if not isinstance(part, (bool, np.bool_)):
            return operator.index(part)
    except TypeError:
        pass
    raise IndexError(
        f"index {part!r}: device arrays take ints, slices, ... and None, and those of records "
        "the names of fields; copy to the host for other indexing"
    )
