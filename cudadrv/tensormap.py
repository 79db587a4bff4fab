"""Tensor maps: how the Tensor Memory Accelerator of compute capability 9.0 sees an array."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from cudadrv import driver, raw
from cudadrv.context import current_context
from cudadrv.copies import memcpy
from cudadrv.memory import DeviceMemory, mem_alloc
from cudadrv.process_local import ProcessLocal
from cudadrv.tensor_rules import (
    Layout,
    Tensor,
    address_of,
    check_address,
    check_box,
    check_pixels,
    check_tensor,
    choice,
    element_steps,
    ints,
    layout_of,
    numbers,
    tensor_of,
    uints,
)

NBYTES = 128
ALIGNMENT = 128
NOT_SUPPORTED = 801


class TensorMap(ProcessLocal):
    """A tensor map of 128 bytes, passed to a kernel by value as it is.

    Shapes, boxes and strides are in NumPy's order, the innermost dimension last.

    Attributes:
        source: the array it describes, kept alive.
        tensor: type, address, shape and strides of that.
    """

    def __init__(self, tensor: Tensor, source: object, layout: Layout) -> None:
        """Make room for a map; ``tiled``, ``im2col`` and ``im2col_wide`` make maps."""
        # ctypes aligns nothing beyond 16 bytes.
        self._memory = ctypes.create_string_buffer(NBYTES + ALIGNMENT)
        start = ctypes.addressof(self._memory)
        self._offset = -start % ALIGNMENT
        self.tensor = tensor
        self.source = source
        self._layout = layout

    def __repr__(self) -> str:
        return f"TensorMap({self.tensor.type}, shape={self.tensor.shape})"

    def __bytes__(self) -> bytes:
        self._check_open()
        return self._memory.raw[self._offset : self._offset + NBYTES]

    def _check_open(self) -> None:
        """Raise ClosedError if the memory that it describes is gone."""
        address_of(self.source)

    def __cuda_argument__(self) -> bytes:
        """What a kernel gets."""
        return bytes(self)

    @property
    def address(self) -> int:
        """Where the map lies in host memory, a multiple of 128."""
        return ctypes.addressof(self._memory) + self._offset

    @classmethod
    def tiled(
        cls,
        source: Any,
        box: Sequence[int],
        *,
        element_strides: Sequence[int] | None = None,
        dtype: Any = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        interleave: str = "none",
        swizzle: str = "none",
        l2_promotion: str = "none",
        oob_nan: bool = False,
    ) -> TensorMap:
        """A map of which kernels copy boxes.

        Args:
            source: a device array, whose dtype, shape and strides are taken; or device memory or
                an address, with these given.
            box: elements to copy in each dimension, at most 256.
            element_strides: from 1 to 8, 1 for every element.
            dtype: a NumPy type, or the name of a CUtensorMapDataType such as "BFLOAT16".
            strides: in bytes, of every dimension or of all but the last; by default C order.
            interleave: "none", "16B" or "32B".
            swizzle: "none", "32B", "64B", "128B", "128B_ATOM_32B", ...
            l2_promotion: "none", "64B", "128B" or "256B".
            oob_nan: fill what lies outside with a NaN instead of zeros.

        Raises:
            ValueError: a rule of the hardware is broken; the message says which.
            NotSupported: the device is older than compute capability 9.0.

        C: cuTensorMapEncodeTiled
        """
        tensor = tensor_of(source, dtype, shape, strides)
        layout = layout_of(interleave, swizzle, l2_promotion, oob_nan)
        steps = element_steps(element_strides, tensor)
        sizes = numbers("box", box, len(tensor.shape))
        check_tensor(tensor, layout, steps)
        check_box(tensor, sizes, layout)
        rest = (uints(sizes), uints(steps), *layout)
        return cls(tensor, source, layout)._encode("cuTensorMapEncodeTiled", (9, 0), *rest)

    @classmethod
    def im2col(
        cls,
        source: Any,
        lower: Sequence[int],
        upper: Sequence[int],
        channels: int,
        pixels: int,
        *,
        element_strides: Sequence[int] | None = None,
        dtype: Any = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        interleave: str = "none",
        swizzle: str = "none",
        l2_promotion: str = "none",
        oob_nan: bool = False,
    ) -> TensorMap:
        """A map of which kernels copy columns of pixels, for convolutions of NWC to NDHWC arrays.

        Args:
            source, element_strides, dtype, shape, strides, interleave, swizzle, l2_promotion,
                oob_nan: as for ``tiled``; three to five dimensions.
            lower, upper: offsets of the corners of the box of pixels, one for each dimension
                between the first and the last, in their order.
            channels: how many for each pixel, at most 256.
            pixels: how many at a time, at most 1024.

        Raises:
            ValueError: a rule of the hardware is broken; the message says which.
            NotSupported: the device is older than compute capability 9.0.

        C: cuTensorMapEncodeIm2col
        """
        tensor = tensor_of(source, dtype, shape, strides)
        layout = layout_of(interleave, swizzle, l2_promotion, oob_nan)
        steps = element_steps(element_strides, tensor)
        inner = len(tensor.shape) - 2
        corners = [
            numbers(name, each, inner) for name, each in (("lower", lower), ("upper", upper))
        ]
        check_tensor(tensor, layout, steps)
        check_pixels(tensor, corners, channels, pixels, layout)
        rest = (*map(ints, corners), int(channels), int(pixels), uints(steps), *layout)
        return cls(tensor, source, layout)._encode("cuTensorMapEncodeIm2col", (9, 0), *rest)

    @classmethod
    def im2col_wide(
        cls,
        source: Any,
        lower: int,
        upper: int,
        channels: int,
        pixels: int,
        *,
        mode: str = "W",
        element_strides: Sequence[int] | None = None,
        dtype: Any = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        interleave: str = "none",
        swizzle: str = "128B",
        l2_promotion: str = "none",
        oob_nan: bool = False,
    ) -> TensorMap:
        """A map like that of ``im2col``, whose columns run along the width alone.

        Args:
            lower, upper: offsets of the box of pixels along the width.
            mode: "W", or "W128" for always 128 pixels.
            swizzle: "64B", "128B" or "128B_ATOM_32B".

        Raises:
            ValueError: a rule of the hardware is broken; the message says which.
            NotSupported: the device is older than compute capability 10.0.

        C: cuTensorMapEncodeIm2colWide
        """
        tensor = tensor_of(source, dtype, shape, strides)
        layout = layout_of(interleave, swizzle, l2_promotion, oob_nan)
        if swizzle not in ("64B", "128B", "128B_ATOM_32B"):
            raise ValueError(f"swizzle={swizzle!r}: wide maps have 64B, 128B or 128B_ATOM_32B")
        steps = element_steps(element_strides, tensor)
        corners = [numbers("lower", (lower,), 1), numbers("upper", (upper,), 1)]
        check_tensor(tensor, layout, steps)
        check_pixels(tensor, corners, channels, pixels, layout)
        which = choice("mode", mode, raw.CUtensorMapIm2ColWideMode)
        first, *others = layout
        sizes = (int(lower), int(upper), int(channels), int(pixels))
        rest = (*sizes, uints(steps), first, which, *others)
        return cls(tensor, source, layout)._encode("cuTensorMapEncodeIm2colWide", (10, 0), *rest)

    def _encode(self, function: str, needs: tuple[int, int], *rest: Any) -> TensorMap:
        """Let the driver fill the map in; returns it."""
        tensor = self.tensor
        has = current_context().device.compute_capability
        if has < needs:
            text = "this map needs compute capability {}.{}, the device has {}.{}"
            raise driver.error(NOT_SUPPORTED, function, text.format(*needs, *has))
        rank = len(tensor.shape)
        code = getattr(raw, function)(
            self.address,
            tensor.number,
            rank,
            tensor.address,
            (ctypes.c_uint64 * rank)(*reversed(tensor.shape)),
            (ctypes.c_uint64 * rank)(*reversed(tensor.strides)),
            *rest,
        )
        driver.check(code, function, f"{self!r}, strides={tensor.strides}: refused by the driver")
        return self

    def replace_address(self, source: Any) -> None:
        """Let the map describe other memory of the same shape, strides and type.

        Args:
            source: a device array, device memory, or an address; kept alive.

        Raises:
            ValueError: it is not aligned, or an array that differs.

        C: cuTensorMapReplaceAddress
        """
        tensor = self.tensor
        if isinstance(source, (int, DeviceMemory)):
            new = tensor._replace(address=address_of(source))
        else:
            new = tensor_of(source, tensor.type, None, None)
            if new._replace(address=0) != tensor._replace(address=0):
                raise ValueError(
                    f"the map describes shape {tensor.shape} and strides {tensor.strides}, the "
                    f"array has {new.shape} and {new.strides}: make a new map"
                )
        check_address(new, self._layout)
        driver.cuTensorMapReplaceAddress(self.address, new.address)
        self.tensor, self.source = new, source

    def set_allocation_class(self, wanted: str = "auto") -> str:
        """Say how much memory around the array the hardware may touch; returns what holds now.

        Args:
            wanted: "small" for 4 KiB, "large" for 128 KiB, which must all be memory then, or "auto"
                for what the driver thinks safe.

        Raises:
            NotSupportedByDriver: the driver is older than 13.5.

        C: cuTensorMapSetAllocationClass
        """
        kinds = raw.CUtensorMapAllocClass
        number = choice("wanted", wanted.upper() if isinstance(wanted, str) else wanted, kinds)
        found = driver.cuTensorMapSetAllocationClass(self.address, number)
        return str(kinds(found).name.rpartition("_")[2].lower())

    def copy_to_device(self) -> DeviceMemory:
        """The map in device memory of its own, for kernels that take its address."""
        memory = mem_alloc(NBYTES)
        memcpy(memory, bytes(self))
        return memory
