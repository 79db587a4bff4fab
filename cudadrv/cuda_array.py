"""CUDA arrays: memory in the layout that textures and surfaces read, and copies to and from it."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cudadrv import array_memory, driver, raw
from cudadrv.array_copy import ArrayRegion
from cudadrv.array_layout import FLAGS, ArrayLayout, check_limits, make_layout
from cudadrv.context import Resource, current_context
from cudadrv.errors import ClosedError
from cudadrv.memory import memory_hint

OUT_OF_MEMORY = 2


class _Layered(Resource):
    """What CUDA arrays and mipmapped arrays share: a layout, and what they are a part of."""

    layout: ArrayLayout
    owner: object = None

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.layout})"

    @property
    def handle(self) -> int:
        """The driver's handle.

        Raises:
            ClosedError: it, or what it is a part of, was closed.
        """
        if getattr(self.owner, "closed", False):
            raise ClosedError(f"what this {type(self).__name__} is a part of was closed")
        return super().handle

    @property
    def closed(self) -> bool:
        """Whether it, or what it is a part of, was closed."""
        return self._handle is None or bool(getattr(self.owner, "closed", False))

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths, width last; layers or faces come first."""
        return self.layout.shape

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The type of a channel; None for compressed and video formats."""
        return self.layout.format.dtype

    @property
    def channels(self) -> int:
        """Numbers in an element."""
        return self.layout.format.channels

    def _ask(self, question: str, *more: int) -> Any:
        """What cuArrayGet... or cuMipmappedArrayGet... answers."""
        return getattr(driver, self.RELEASE.replace("Destroy", question))(self.handle, *more)

    @property
    def sparse_properties(self) -> Any:
        """The CUDA_ARRAY_SPARSE_PROPERTIES of an array made with ``sparse=True``.

        C: cuArrayGetSparseProperties, cuMipmappedArrayGetSparseProperties
        """
        return self._ask("GetSparseProperties")

    @property
    def memory_requirements(self) -> tuple[int, int]:
        """Bytes and alignment that an array made with ``deferred=True`` wants mapped to it.

        C: cuArrayGetMemoryRequirements, cuMipmappedArrayGetMemoryRequirements
        """
        device = current_context().device.handle
        answer = self._ask("GetMemoryRequirements", device)
        return answer.size, answer.alignment

    def map_memory(
        self, memory: Any, offset: int = 0, part: Any = ..., level: int = 0, stream: object = None
    ) -> None:
        """Let physical memory hold a part of an array made with ``sparse=True``.

        Args:
            memory: a PhysicalMemory made with ``tiles=True``, or the handle of a tile pool.
            offset: where in the memory, in bytes.
            part: an index as of the array's level, of whole tiles (``sparse_properties``); of
                layered arrays it begins with the layer. An array made with ``deferred=True`` is
                mapped as a whole.
            level: of a mipmapped array.
            stream: orders it before what uses the array.

        Raises:
            ValueError: the array has memory of its own.

        C: cuMemMapArrayAsync
        """
        made = array_memory.operation(self, memory, offset)
        if not self.layout.flags & FLAGS["deferred"]:
            array_memory.enter_part(made, ArrayRegion(self._level(level), part), level)
        array_memory.queue(made, stream)

    def unmap_memory(self, part: Any = ..., level: int = 0, stream: object = None) -> None:
        """Undo ``map_memory`` of the same part.

        C: cuMemMapArrayAsync
        """
        self.map_memory(None, 0, part, level, stream)

    def _level(self, level: int) -> CudaArray:
        raise NotImplementedError


class CudaArray(_Layered):
    """A CUDA array of one, two or three dimensions, or of layers or cube faces.

    ``array[2:5, 1:]`` is a part of it to copy to and from.

    Attributes:
        layout: shape, format and flags together.
        owner: what it is a part of (a mipmapped array, an array of planes), kept alive.
    """

    RELEASE = "cuArrayDestroy"

    def __init__(
        self,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike,
        channels: int | None = None,
        **flags: bool,
    ) -> None:
        """Allocate an array in the current context, not cleared.

        Args:
            shape: (width,), (height, width) or (depth, height, width); with ``layered=True``
                (layers, width) or (layers, height, width); with ``cubemap=True`` (6, n, n).
            dtype: of a channel: an integer of 8 to 32 bits, float16 or float32; or the name of a
                CUarray_format such as "UNORM_INT8X4".
            channels: numbers in an element: 1, 2 or 4; by default 1, or what the format has.
            flags: ``layered``, ``surface`` (surfaces read and write it), ``cubemap``, ``gather``,
                ``depth``, ``color``, ``sparse``, ``deferred``, ``video`` (for formats such as
                NV12): as CUDA_ARRAY3D_...

        Raises:
            TypeError: no format has such elements.
            ValueError: a shape that the flags or the device do not allow.
            OutOfMemory: the device has not got as much.

        C: cuArray3DCreate_v2
        """
        self.layout = make_layout(shape, dtype, channels, flags)
        super().__init__(*create("cuArray3DCreate", self.layout))

    @classmethod
    def from_host(cls, array: Any, channels: int = 1, **flags: bool) -> CudaArray:
        """An array with the shape and the contents of *array*.

        Args:
            channels: 2 or 4 if the last dimension of *array* counts the numbers of an element.
            flags: as of CudaArray.

        Raises:
            ValueError: the last dimension is another.
        """
        host = np.asarray(array)
        shape = host.shape if channels == 1 else host.shape[:-1]
        if channels != 1 and host.shape[-1:] != (channels,):
            raise ValueError(f"channels={channels}, but the array has the shape {host.shape}")
        made = cls(shape, host.dtype, channels, **flags)
        made.copy_from(host)
        return made

    @classmethod
    def adopt(cls, handle: int, owner: object = None) -> CudaArray:
        """Use an array that other code made and owns; *owner* is kept alive.

        C: cuArray3DGetDescriptor_v2
        """
        adopted = cls.__new__(cls)
        context = current_context().handle
        adopted.layout = ArrayLayout.of(driver.cuArray3DGetDescriptor(handle))
        adopted.owner = owner
        Resource.__init__(adopted, handle, context, owned=False)
        return adopted

    @property
    def descriptor(self) -> Any:
        """The CUDA_ARRAY3D_DESCRIPTOR, as the driver has it.

        C: cuArray3DGetDescriptor_v2
        """
        return driver.cuArray3DGetDescriptor(self.handle)

    def plane(self, index: int) -> CudaArray:
        """One plane of an array of a format with several, such as NV12; shares its memory.

        C: cuArrayGetPlane
        """
        index = operator.index(index)
        if index < 0:
            raise ValueError(f"plane {index}: planes count from 0")
        return CudaArray.adopt(self._ask("GetPlane", index), self)

    def __getitem__(self, key: Any) -> ArrayRegion:
        """A part of the array; indices are ints and slices of step 1.

        Raises:
            IndexError: out of range, too many, or of another kind.
        """
        return ArrayRegion(self, key)

    def _level(self, level: int) -> CudaArray:
        if level:
            raise IndexError(f"level {level}: only mipmapped arrays have levels")
        return self

    @property
    def region(self) -> ArrayRegion:
        """All of it as a region."""
        return ArrayRegion(self, ...)

    def copy_from(self, src: Any, stream: object = None) -> None:
        """Copy *src*, a host or device array or a CUDA array of this shape, into it.

        See ``ArrayRegion.copy_from``.
        """
        self.region.copy_from(src, stream)

    def copy_to(self, dst: Any, stream: object = None) -> None:
        """Copy all of it into *dst*, a host or device array or a CUDA array of this shape.

        See ``ArrayRegion.copy_to``.
        """
        self.region.copy_to(dst, stream)

    def copy_to_host(
        self, out: npt.NDArray[Any] | None = None, stream: object = None
    ) -> npt.NDArray[Any]:
        """Copy it to the host and return that; see ``ArrayRegion.copy_to_host``."""
        return self.region.copy_to_host(out, stream)


class MipmappedArray(_Layered):
    """A CUDA array with levels, each half as long in each dimension as the one before.

    Attributes:
        layout: shape, format and flags of level 0.
    """

    RELEASE = "cuMipmappedArrayDestroy"

    def __init__(
        self,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike,
        channels: int | None = None,
        levels: int | None = None,
        **flags: bool,
    ) -> None:
        """Allocate all levels in the current context, not cleared.

        Args:
            shape, dtype, channels, flags: of level 0, as for CudaArray.
            levels: how many; by default down to a single element.

        Raises:
            ValueError: more levels than halvings.

        C: cuMipmappedArrayCreate
        """
        self.layout = make_layout(shape, dtype, channels, flags)
        self._count = level_count(self.layout, levels)
        super().__init__(*create("cuMipmappedArrayCreate", self.layout, self._count))

    @classmethod
    def adopt(
        cls, handle: int, levels: int, owner: object = None, owned: bool = False
    ) -> MipmappedArray:
        """Use a mipmapped array that other code made.

        Args:
            owner: is kept alive.
            owned: whether close() destroys it.

        C: cuMipmappedArrayGetLevel
        """
        adopted = cls.__new__(cls)
        context = current_context().handle
        adopted._count = levels
        adopted.owner = owner
        first = driver.cuMipmappedArrayGetLevel(handle, 0)
        adopted.layout = ArrayLayout.of(driver.cuArray3DGetDescriptor(first))
        Resource.__init__(adopted, handle, context, owned)
        return adopted

    def __len__(self) -> int:
        """The number of levels."""
        return self._count

    def __getitem__(self, level: int) -> CudaArray:
        """One level, sharing the memory.

        Raises:
            IndexError: there is no such level.

        C: cuMipmappedArrayGetLevel
        """
        number = operator.index(level)
        if not -self._count <= number < self._count:
            raise IndexError(f"level {level}: there are {self._count}")
        return CudaArray.adopt(self._ask("GetLevel", number % self._count), self)

    def _level(self, level: int) -> CudaArray:
        return self[level]

    def map_tail(self, memory: Any, offset: int = 0, layer: int = 0, stream: object = None) -> None:
        """Let physical memory hold the levels that are smaller than a tile; None undoes it.

        Args:
            memory, offset, stream: as for ``map_memory``.
            layer: whose tail, where each layer has one.

        C: cuMemMapArrayAsync
        """
        made = array_memory.operation(self, memory, offset)
        made.subresourceType = array_memory.TAIL
        made.subresource.miptail.layer = operator.index(layer)
        made.subresource.miptail.size = self.sparse_properties.miptailSize
        array_memory.queue(made, stream)


def level_count(layout: ArrayLayout, levels: int | None) -> int:
    """How many levels an array is to have, by default down to a single element.

    Raises:
        ValueError: more than there are halvings, or none.
    """
    most = max(layout.shape[layout.is_layered :]).bit_length()
    count = most if levels is None else operator.index(levels)
    if not 1 <= count <= most:
        raise ValueError(f"levels={levels}: shape {layout.shape} has from 1 to {most}")
    return count


def create(function: str, layout: ArrayLayout, *more: int) -> tuple[int, int]:
    """(handle, context) of a new array."""
    context = current_context()
    check_limits(layout, context.device, bool(more))
    found = ctypes.c_void_p()
    record = layout.record()
    code = getattr(driver, function).raw(ctypes.byref(found), ctypes.byref(record), *more)
    if code:
        hint = f"asked for {layout}"
        if layout.format.dtype is None and not layout.flags & FLAGS["video"]:
            hint += "; video formats such as NV12 need video=True"
        if code == OUT_OF_MEMORY:
            hint = f"{hint}; {memory_hint(layout.nbytes or 0)}"
        raise driver.error(code, raw.symbol(function), hint)
    return found.value or 0, context.handle
