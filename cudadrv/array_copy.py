"""Copies of boxes of elements between CUDA arrays, device memory and host memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cudadrv import driver
from cudadrv.array import DeviceArray, as_cuda_array
from cudadrv.boxes import ARRAY, DEVICE, HOST, Box, End, copy, linear
from cudadrv.capture import capturing_graph
from cudadrv.context import in_context
from cudadrv.stream import stream_handle
from cudadrv.strided import host_array, host_pointer

if TYPE_CHECKING:
    from cudadrv.cuda_array import CudaArray


class ArrayRegion:
    """A box of elements of a CUDA array, to copy to and from.

    Attributes:
        array: what it is a part of.
        shape: its lengths, without those that an int index chose.
        starts, lengths: of each dimension of the array.
    """

    def __init__(self, array: CudaArray, key: Any) -> None:
        """Take what *key*, ints and slices of step 1, chooses; ``array[key]`` is shorter."""
        self.array = array
        keys = whole_key(key, len(array.shape), array.shape)
        self.starts, lengths = zip(*map(cut, keys, array.shape), strict=True)
        self._kept = [isinstance(part, slice) for part in keys]
        self.lengths = lengths
        self.shape = tuple(n for n, kept in zip(lengths, self._kept, strict=True) if kept)

    def __repr__(self) -> str:
        return f"ArrayRegion(shape={self.shape} of {self.array!r})"

    def copy_from(self, src: Any, stream: object = None) -> None:
        """Copy *src* into this part of the array.

        Args:
            src: a host array, a device array of any library, a CUDA array or a part of one, of
                this shape and type, with the channels, if several, as the last dimension; or
                as many bytes (device memory, a host buffer).
            stream: orders the copy; *src* must stay unchanged until then. Without, the call
                returns when the copy is done.

        Raises:
            ValueError: shape or type differ, or a device array has a layout that no copy takes.
            TypeError: it is nothing of these, or the array's format has no dtype.

        C: cuMemcpyHtoA_v2, cuMemcpyDtoA_v2, cuMemcpyAtoA_v2, cuMemcpyHtoAAsync_v2,
            cuMemcpy2DUnaligned_v2, cuMemcpy2DAsync_v2, cuMemcpy3D_v2, cuMemcpy3DAsync_v2
        """
        source = region_of(src)
        if source is not None:
            copy_region(self, source, stream)
            return
        other = linear_array(src)
        if not self._move(other, True, stream):
            check_waiting(stream)
            self._move(np.ascontiguousarray(other), True, stream)
            wait_for(stream)

    def copy_to(self, dst: Any, stream: object = None) -> None:
        """Copy this part of the array into *dst*; see ``copy_from`` for what that may be.

        C: cuMemcpyAtoH_v2, cuMemcpyAtoD_v2, cuMemcpyAtoA_v2, cuMemcpyAtoHAsync_v2,
            cuMemcpy2DUnaligned_v2, cuMemcpy2DAsync_v2, cuMemcpy3D_v2, cuMemcpy3DAsync_v2
        """
        target = region_of(dst)
        if target is not None:
            copy_region(target, self, stream)
            return
        into = writable_array(dst)
        if not self._move(into, False, stream):
            check_waiting(stream)
            copied = np.empty(into.shape, into.dtype)
            self._move(copied, False, stream)
            wait_for(stream)
            into[...] = copied

    def copy_to_host(
        self, out: npt.NDArray[Any] | None = None, stream: object = None
    ) -> npt.NDArray[Any]:
        """Copy this part of the array to the host and return it.

        Args:
            out: a writable array of this shape and dtype to copy into; else a new one.
            stream: orders the copy; *out* is ready when the stream is synchronised.
        """
        if out is None:
            out = np.empty(self.shape + self.array.layout.format.tail, self.dtype)
        self.copy_to(out, stream)
        return out

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a channel.

        Raises:
            TypeError: the format has none that NumPy knows.
        """
        elements = self.array.layout.format
        if elements.dtype is None:
            raise TypeError(
                f"elements of {elements.name} are no numbers: copy a plane, or call "
                "driver.cuMemcpy2D with sizes of your own"
            )
        return elements.dtype

    @property
    def box(self) -> Box:
        """What a copy of it moves."""
        depth, height, width = self._axes(self.lengths, 1)
        itemsize = self.dtype.itemsize * self.array.channels
        dimensions = 3 if self.array.layout.is_layered else len(self.lengths)
        return Box(width * itemsize, height, depth, dimensions)

    @property
    def end(self) -> End:
        """It as one side of a copy."""
        z, y, x = self._axes(self.starts, 0)
        itemsize = self.dtype.itemsize * self.array.channels
        return End(ARRAY, self.array.handle, x * itemsize, y, z)

    def _axes(self, values: Sequence[Any], missing: Any) -> tuple[Any, Any, Any]:
        """(z, y, x) of a value for each dimension of the array; layers are z."""
        layers = self.array.layout.is_layered
        absent = [missing] * (3 - len(values))
        z, y, x = (*values[:layers], *absent, *values[layers:])
        return z, y, x

    def _move(self, other: Any, inwards: bool, stream: object) -> bool:
        """Copy from or to an array in linear memory; False if the host's layout forbids it."""
        own, end = self.end, self.opposite(other)
        if end is not None and 0 not in self.shape:
            copy(*((own, end) if inwards else (end, own)), self.box, stream)
        return end is not None

    def opposite(self, other: Any) -> End | None:
        """The other side of a copy, an array in linear memory.

        Returns:
            None for a host array whose layout no copy takes.

        Raises:
            ValueError: shape or type do not match, or a device array has such a layout.
        """
        other = self._matching(other)
        on_device = isinstance(other, DeviceArray)
        address = other.handle if on_device else host_pointer(other)
        end = linear(DEVICE if on_device else HOST, address, self.box, self._steps(other))
        if end is None and on_device:
            raise ValueError(
                f"a device array of strides {other.strides} cannot be copied to or from a CUDA "
                "array: copy it to a contiguous one first"
            )
        return end

    def _steps(self, other: Any) -> tuple[int | None, int | None] | None:
        """Bytes from plane to plane and row to row, None for only one; None if rows have gaps."""
        tail = len(self.array.layout.format.tail)
        strides = list(other.strides[: other.ndim - tail])
        steps = [strides.pop(0) if kept else None for kept in self._kept]
        steps = [s if n > 1 else None for s, n in zip(steps, self.lengths, strict=True)]
        plane, row, element = self._axes(steps, None)
        itemsize = self.dtype.itemsize
        if tail and other.strides[-1] != itemsize:
            return None
        if element not in (None, itemsize * self.array.channels):
            return None
        return plane, row

    def _matching(self, other: Any) -> Any:
        """*other*, or if it is as many bytes, those as an array of this shape.

        Raises:
            ValueError: shape or type do not match.
        """
        dtype, shape = self.dtype, self.shape + self.array.layout.format.tail
        if other.shape == shape and other.dtype == dtype:
            return other
        nbytes = math.prod(shape) * dtype.itemsize
        if other.dtype == np.uint8 and other.shape == (nbytes,) and other.strides == (1,):
            if isinstance(other, DeviceArray):
                return DeviceArray(other.memory, shape, dtype, None, other.offset)
            return other.view(dtype).reshape(shape)
        raise ValueError(
            f"an array of shape {other.shape} and dtype {other.dtype} does not match shape "
            f"{shape} and dtype {dtype} of this part of the CUDA array: they must be the same"
        )


def whole_key(key: Any, dimensions: int, shape: tuple[int, ...]) -> list[Any]:
    """An index with a part for each dimension.

    Raises:
        IndexError: it has more.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    at = next((i for i, part in enumerate(keys) if part is Ellipsis), None)
    missing = dimensions - len(keys) + (at is not None)
    if missing < 0:
        raise IndexError(f"{len(keys)} indices for a CUDA array of shape {shape}")
    at = len(keys) if at is None else at
    keys[at : at + 1] = [slice(None)] * missing
    return keys


def cut(part: Any, length: int) -> tuple[int, int]:
    """(start, length) of what one part of an index chooses.

    Raises:
        IndexError: out of range, or neither an int nor a slice of step 1.
    """
    if isinstance(part, slice):
        if part.step not in (None, 1):
            raise IndexError(f"slice {part}: a CUDA array is cut with steps of 1")
        start, stop, _ = part.indices(length)
        return start, max(stop - start, 0)
    try:
        index = operator.index(part)
    except TypeError:
        raise IndexError(f"index {part!r}: CUDA arrays take ints, slices and ...") from None
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for a length of {length}")
    return index % length, 1


def region_of(thing: Any) -> ArrayRegion | None:
    """A CUDA array or a part of one as a region; None if it is neither."""
    found = getattr(thing, "region", thing)
    return found if isinstance(found, ArrayRegion) else None


def linear_array(thing: Any) -> Any:
    """A view of an array in device or host memory, never a copy.

    Raises:
        TypeError: it is no array and no buffer.
    """
    if hasattr(thing, "__cuda_array_interface__"):
        return as_cuda_array(thing)
    if isinstance(thing, np.ndarray):
        return host_array(thing)
    try:
        return np.asarray(memoryview(thing))
    except TypeError:
        raise TypeError(
            f"{type(thing).__name__} is neither a host nor a device array nor a CUDA array"
        ) from None


def writable_array(thing: Any) -> Any:
    """The same of one that can be written.

    Raises:
        ValueError: it cannot.
    """
    found = linear_array(thing)
    if isinstance(found, DeviceArray):
        found.check_writable()
    elif not found.flags.writeable:
        raise ValueError("the destination is read-only")
    return found


def copy_region(dst: ArrayRegion, src: ArrayRegion, stream: object) -> None:
    """Copy between CUDA arrays."""
    box = common_box(dst, src)
    if 0 not in dst.shape:
        copy(dst.end, src.end, box, stream)


def common_box(dst: ArrayRegion, src: ArrayRegion) -> Box:
    """What a copy between CUDA arrays moves.

    Raises:
        ValueError: shapes or elements differ, or the parts of one array overlap.
    """
    one, other = dst.array.layout.format, src.array.layout.format
    if dst.shape != src.shape or one != other:
        raise ValueError(
            f"the source has shape {src.shape} of {other.channels} x {other.name}, the "
            f"destination {dst.shape} of {one.channels} x {one.name}: they must be the same"
        )
    box, theirs = dst.box, src.box
    if (box.width, box.height, box.depth) != (theirs.width, theirs.height, theirs.depth):
        raise ValueError(
            f"rows and layers do not correspond: {dst!r} and {src!r}; copy them one by one"
        )
    places = zip(dst.starts, src.starts, dst.lengths, strict=False)
    if dst.array.handle == src.array.handle and all(abs(a - b) < n for a, b, n in places):
        raise ValueError("the two parts of the CUDA array overlap: copy through another array")
    return box._replace(dimensions=max(box.dimensions, theirs.dimensions))


def copy_ends(dst: Any, src: Any) -> tuple[End, End, Box]:
    """Both sides of a copy of which at least one is a CUDA array or a part of one.

    Raises:
        TypeError: neither is.
        ValueError: they do not match, or a layout is none that copies take.
    """
    target, source = region_of(dst), region_of(src)
    if target is not None and source is not None:
        return target.end, source.end, common_box(target, source)
    region, other = (target, src) if target is not None else (source, dst)
    if region is None:
        raise TypeError(f"neither {dst!r} nor {src!r} is a CUDA array or a part of one")
    other = writable_array(other) if target is None else linear_array(other)
    end = region.opposite(other)
    if end is None:
        raise ValueError(f"a host array of strides {other.strides} is none that copies take")
    return (region.end, end, region.box) if target is not None else (end, region.end, region.box)


def check_waiting(stream: object) -> None:
    """Refuse a stream that is captured, before a copy that has to be waited for.

    Raises:
        ValueError: it is captured.
    """
    if stream is not None and capturing_graph(stream_handle(stream)):
        raise ValueError(
            "the host array needs a buffer for this copy, which a capture cannot wait for: pass "
            "one made with numpy.ascontiguousarray()"
        )


def wait_for(stream: object) -> None:
    """Wait for what was copied on *stream*, if there is one: a buffer of ours goes away."""
    if stream is not None:
        in_context(driver.cuStreamSynchronize, stream_handle(stream))
