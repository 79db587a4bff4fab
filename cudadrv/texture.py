"""Texture and surface objects: how kernels read arrays with filtering, and write them."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cudadrv import checks, driver, raw
from cudadrv.array import as_cuda_array
from cudadrv.array_layout import FLAGS, PLAIN, ArrayFormat, element_format, limit_of
from cudadrv.context import Resource, current_context
from cudadrv.cuda_array import CudaArray, MipmappedArray
from cudadrv.device import Device

MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}  # CUaddress_mode
SMALL_INTEGERS = ("uint8", "uint16", "int8", "int16")


class ResourceView(NamedTuple):
    """Another way to see an array: the format of its elements, and some of its levels or layers.

    Attributes:
        format: a CUresourceViewFormat without CU_RES_VIEW_FORMAT_, such as "UINT_4X8", of as many
            bytes; by default the array's own.
        levels, layers: the first and the last one, which count from 0 then; by default all.
    """

    format: str = "NONE"
    levels: tuple[int, int] | None = None
    layers: tuple[int, int] | None = None

    def record(self, source: CudaArray | MipmappedArray) -> Any:
        """The CUDA_RESOURCE_VIEW_DESC of an array.

        Raises:
            ValueError: there is no such format, or the array has no such levels or layers.
        """
        name = f"CU_RES_VIEW_FORMAT_{self.format}"
        formats = raw.CUresourceViewFormat.__members__
        if name not in formats:
            known = ", ".join(each.removeprefix("CU_RES_VIEW_FORMAT_") for each in formats)
            raise ValueError(f"there is no view format {self.format!r}; there are {known}")
        whole = source.layout.record()
        block = 4 if "BC" in self.format else 1
        number = int(formats[name]) or own_format(source.layout.format)
        made = raw.CUDA_RESOURCE_VIEW_DESC(format=number, depth=whole.Depth)
        made.width, made.height = whole.Width * block, whole.Height * block
        count = len(source) if isinstance(source, MipmappedArray) else 1
        made.firstMipmapLevel, made.lastMipmapLevel = part("levels", self.levels, count)
        count = source.layout.shape[0] if source.layout.is_layered else 1
        made.firstLayer, made.lastLayer = part("layers", self.layers, count)
        return made


def own_format(elements: ArrayFormat) -> int:
    """The CUresourceViewFormat of elements as they are; 0 where there is none.

    An H200 takes no view of levels or layers without one.
    """
    if elements.dtype is None:
        return 0
    kind = {"u": "UINT", "i": "SINT", "f": "FLOAT"}[elements.dtype.kind]
    name = f"CU_RES_VIEW_FORMAT_{kind}_{elements.channels}X{8 * elements.dtype.itemsize}"
    return int(raw.CUresourceViewFormat.__members__.get(name, 0))


def part(name: str, chosen: tuple[int, int] | None, count: int) -> tuple[int, int]:
    """(first, last) of *count* levels or layers.

    Raises:
        ValueError: they are not in order, or more than there are.
    """
    first, last = (0, count - 1) if chosen is None else map(operator.index, chosen)
    if not 0 <= first <= last < count:
        raise ValueError(f"{name}={chosen!r}: the first and the last, from 0 to {count - 1}")
    return first, last


class _Object(Resource):
    """What textures and surfaces share: a source that lives as long as they do."""

    # Its handle is what kernels take.
    __cuda_memory__ = True

    source: Any

    @property
    def handle(self) -> int:
        """The number that kernels take.

        Raises:
            ClosedError: it, or what it reads, was closed.
        """
        handle = super().handle
        _ = self.source.handle
        return handle


class TextureObject(_Object):
    """A way for kernels to read memory: by coordinates, filtered, and safe outside of it.

    It is passed to a kernel as it is.

    Args:
        source: a CudaArray, a MipmappedArray, or a device array of any library. One of one
            dimension is read by integers (``tex1Dfetch``), one of two by x and y; its rows
            must be a multiple of 32 bytes apart, and it must begin at a multiple of 512.
        channels: for device arrays, how many numbers the last dimension holds for each
            element; by default 1, without such a dimension.
        address: what a coordinate outside means: "clamp", "border", and with normalized
            coordinates "wrap" and "mirror"; one for all, or one each for x, y, z.
        linear: blend the neighbouring elements, with weights of 8 bits.
        normalized_coords: coordinates run from 0 to 1.
        normalized_read: give integers of 8 and 16 bits as floats from 0 (-1 if signed) to 1.
            By default as the format of a CudaArray says.
        srgb: of bytes, make sRGB linear.
        border: the colour outside for "border".
        anisotropy: at most that many samples, from 0 to 16.
        mip_linear: blend two levels; without, read the nearest.
        mip_bias, mip_clamp: what is added to the level asked for, and its least and most.
        seamless: filter across the edges of a cubemap.
        trilinear_optimization: let the device filter fewer samples where it hardly shows.
        view: read the array in another format, or some of its levels or layers.

    Attributes:
        source: the CudaArray, MipmappedArray or device array it reads, kept alive.
    """

    RELEASE = "cuTexObjectDestroy"

    def __init__(
        self,
        source: Any,
        *,
        channels: int | None = None,
        address: str | Sequence[str] = "clamp",
        linear: bool = False,
        normalized_coords: bool = False,
        normalized_read: bool | None = None,
        srgb: bool = False,
        border: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        anisotropy: int = 0,
        mip_linear: bool = False,
        mip_bias: float = 0.0,
        mip_clamp: tuple[float, float] = (0.0, math.inf),
        seamless: bool = False,
        trilinear_optimization: bool = True,
        view: ResourceView | None = None,
    ) -> None:
        """Make a texture of *source* in the current context; the class says what may be given.

        Raises:
            TypeError: *source* is nothing of these, or its elements are none that textures read.
            ValueError: a combination that no texture has, or a device array misplaced.

        C: cuTexObjectCreate
        """
        resource, elements = resource_of(source, channels)
        if normalized_read is None:
            normalized_read = elements.name not in PLAIN.values()
        most = checks.bits32(anisotropy, "anisotropy")
        made = raw.CUDA_TEXTURE_DESC(filterMode=int(linear), mipmapFilterMode=int(mip_linear))
        made.addressMode[:] = address_modes(address, normalized_coords, dimensions(source))
        flags = {
            raw.CU_TRSF_READ_AS_INTEGER: not normalized_read,
            raw.CU_TRSF_NORMALIZED_COORDINATES: normalized_coords,
            raw.CU_TRSF_SRGB: srgb,
            raw.CU_TRSF_SEAMLESS_CUBEMAP: seamless,
            raw.CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION: not trilinear_optimization,
        }
        made.flags = sum(bit for bit, wanted in flags.items() if wanted)
        made.maxAnisotropy, made.mipmapLevelBias = most, mip_bias
        seen = view_of(source, view)
        made.minMipmapLevelClamp, made.maxMipmapLevelClamp = level_range(source, seen, mip_clamp)
        made.borderColor[:] = colour(border)
        check_reading(resource, elements, made)
        self.source = source if isinstance(source, Resource) else as_cuda_array(source)
        context, parts = current_context().handle, (resource, made, seen)
        references = (None if part is None else ctypes.byref(part) for part in parts)
        super().__init__(driver.cuTexObjectCreate(*references), context)

    @property
    def texture_descriptor(self) -> Any:
        """The CUDA_TEXTURE_DESC: how it reads. Drivers do not tell the colour of the border.

        C: cuTexObjectGetTextureDesc
        """
        return driver.cuTexObjectGetTextureDesc(self.handle)

    @property
    def resource_descriptor(self) -> Any:
        """The CUDA_RESOURCE_DESC: what it reads.

        C: cuTexObjectGetResourceDesc
        """
        return driver.cuTexObjectGetResourceDesc(self.handle)

    @property
    def view_descriptor(self) -> Any:
        """The CUDA_RESOURCE_VIEW_DESC of one made with ``view=``.

        C: cuTexObjectGetResourceViewDesc
        """
        return driver.cuTexObjectGetResourceViewDesc(self.handle)


class SurfaceObject(_Object):
    """A way for kernels to read and write the elements of a CUDA array, x counted in bytes.

    It is passed to a kernel as it is.

    Attributes:
        source: the array, kept alive.
    """

    RELEASE = "cuSurfObjectDestroy"

    def __init__(self, array: CudaArray) -> None:
        """Make a surface of an array, or of a level of a mipmapped one, in the current context.

        Raises:
            ValueError: the array was not made with ``surface=True``.

        C: cuSurfObjectCreate
        """
        if not isinstance(array, CudaArray):
            raise TypeError(f"a surface is made of a CudaArray, not of {type(array).__name__}")
        if not array.layout.flags & FLAGS["surface"]:
            raise ValueError(f"{array!r} was not made with surface=True, which surfaces need")
        resource, _ = resource_of(array, None)
        self.source = array
        context = current_context().handle
        super().__init__(driver.cuSurfObjectCreate(ctypes.byref(resource)), context)

    @property
    def resource_descriptor(self) -> Any:
        """The CUDA_RESOURCE_DESC: its array.

        C: cuSurfObjectGetResourceDesc
        """
        return driver.cuSurfObjectGetResourceDesc(self.handle)


def resource_of(source: Any, channels: int | None) -> tuple[Any, ArrayFormat]:
    """The CUDA_RESOURCE_DESC of what a texture reads, and what its elements are.

    Raises:
        TypeError: no texture reads such a thing.
        ValueError: a device array in the wrong place, or of a shape or size that does not do.
    """
    made = raw.CUDA_RESOURCE_DESC()
    if isinstance(source, (CudaArray, MipmappedArray)):
        if channels not in (None, source.channels):
            raise ValueError(f"channels={channels}, but the array has {source.channels}")
        if isinstance(source, CudaArray):
            made.resType = raw.CU_RESOURCE_TYPE_ARRAY
            made.res.array.hArray = source.handle
        else:
            made.resType = raw.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
            made.res.mipmap.hMipmappedArray = source.handle
        return made, source.layout.format
    if not hasattr(source, "__cuda_array_interface__"):
        raise TypeError(
            f"a texture reads a CudaArray, a MipmappedArray or a device array, not "
            f"{type(source).__name__}: copy host arrays with cudadrv.CudaArray.from_host()"
        )
    array = as_cuda_array(source)
    elements = element_format(array.dtype, channels)
    fill_linear(made, array, elements, current_context().device)
    return made, elements


def fill_linear(made: Any, array: Any, elements: ArrayFormat, device: Device) -> None:
    """Enter a device array into a CUDA_RESOURCE_DESC.

    Raises:
        ValueError: it is misplaced, has gaps, or a shape or size that does not do.
    """
    tail = len(elements.tail)
    shape = array.shape[: array.ndim - tail]
    if array.shape[len(shape) :] != elements.tail or len(shape) not in (1, 2) or 0 in shape:
        raise ValueError(
            f"a device array of shape {array.shape} with channels={elements.channels} is no line "
            "and no plane of elements: textures read shapes (n,), (height, width), and with "
            "channels these and the channels; use a CudaArray for others"
        )
    size = elements.itemsize or 0
    steps = [array.itemsize] * tail
    if list(array.strides[len(shape) - 1 :]) != [size, *steps]:
        raise ValueError(f"strides {array.strides}: the elements of a row must touch each other")
    alignment = device.attributes["TEXTURE_ALIGNMENT"] or 512
    if array.handle % alignment:
        raise ValueError(
            f"the array begins at {array.handle:#x}: textures begin at multiples of {alignment}"
        )
    flat = len(shape) == 1
    kind = "TEXTURE1D_LINEAR" if flat else "TEXTURE2D_LINEAR"
    for side, length in zip(("WIDTH", "HEIGHT"), reversed(shape), strict=False):
        limit = limit_of(device, f"MAXIMUM_{kind}_{side}")
        if limit and length > limit:
            raise ValueError(f"shape {array.shape}: the device's MAXIMUM_{kind}_{side} is {limit}")
    part = made.res.linear if flat else made.res.pitch2D
    part.devPtr, part.format, part.numChannels = array.handle, elements.number, elements.channels
    if flat:
        made.resType = raw.CU_RESOURCE_TYPE_LINEAR
        part.sizeInBytes = array.nbytes
        return
    made.resType = raw.CU_RESOURCE_TYPE_PITCH2D
    part.height, part.width = shape
    part.pitchInBytes = array.strides[0]
    step = device.attributes["TEXTURE_PITCH_ALIGNMENT"] or 32
    if array.strides[0] % step or array.strides[0] < shape[1] * size:
        raise ValueError(
            f"the rows are {array.strides[0]} bytes apart: textures need a multiple of {step}; "
            "pad them, or copy to a CudaArray"
        )


def dimensions(source: Any) -> int:
    """How many coordinates a texture of *source* takes, a layer not counted."""
    layout = getattr(source, "layout", None)
    return layout.dimensions if layout is not None else 2


def address_modes(address: str | Sequence[str], normalized: bool, count: int) -> list[int]:
    """The CUaddress_mode of each of three dimensions, of which the texture has *count*.

    Dimensions that it has not are clamped: a line would else be blended with the border beside it.

    Raises:
        ValueError: there is no such mode, or it needs normalized coordinates.
    """
    names = [address] * count if isinstance(address, str) else list(address)
    names += ["clamp"] * (3 - len(names))
    if len(names) > 3 or any(name not in MODES for name in names):
        raise ValueError(f"address={address!r}: up to three of {', '.join(MODES)}")
    if not normalized and {"wrap", "mirror"} & set(names):
        raise ValueError(f"address={address!r} needs normalized_coords=True")
    return [MODES[name] for name in names]


def colour(border: Sequence[float]) -> list[float]:
    """Four channels of the colour of the border."""
    values = [float(value) for value in border]
    if len(values) > 4:
        raise ValueError(f"border={border!r}: a colour has at most four channels")
    return values + [0.0] * (4 - len(values))


def view_of(source: Any, view: ResourceView | None) -> Any:
    """The CUDA_RESOURCE_VIEW_DESC, None without a view.

    Raises:
        TypeError: *source* is no CUDA array, of which alone there are views.
    """
    if view is None:
        return None
    if not isinstance(source, (CudaArray, MipmappedArray)):
        raise TypeError(f"view= is for CUDA arrays, not for {type(source).__name__}")
    return view.record(source)


def level_range(source: Any, seen: Any, wanted: tuple[float, float]) -> tuple[float, float]:
    """The least and the most level that is read: those that there are."""
    least, most = wanted
    last = float(len(source) - 1) if isinstance(source, MipmappedArray) else 0.0
    if seen is not None:
        last = float(seen.lastMipmapLevel - seen.firstMipmapLevel)
    if not least <= most:
        raise ValueError(f"mip_clamp={wanted!r}: the first must not be larger than the second")
    return float(least), float(min(most, last))


def check_reading(resource: Any, elements: ArrayFormat, made: Any) -> None:
    """Refuse what the driver refuses without a word.

    Raises:
        ValueError: which combination it is.
    """
    name = "" if elements.dtype is None else elements.dtype.name
    plain = elements.name in PLAIN.values()
    normalized_read = not made.flags & raw.CU_TRSF_READ_AS_INTEGER
    is_float = np.dtype(name).kind == "f" if name else True
    kind = resource.resType
    if plain and normalized_read and name not in SMALL_INTEGERS and not is_float:
        raise ValueError(f"normalized_read=True reads {', '.join(SMALL_INTEGERS)}, not {name}")
    if not plain and not normalized_read:
        raise ValueError(f"elements of {elements.name} are always read as fractions of 1")
    if made.filterMode and plain and not is_float and not normalized_read:
        raise ValueError(f"linear=True on {name} needs normalized_read=True: it gives floats")
    if made.flags & raw.CU_TRSF_SRGB and not (name == "uint8" and normalized_read):
        raise ValueError("srgb=True is for uint8 with normalized_read=True")
    if not 0 <= made.maxAnisotropy <= 16:
        raise ValueError(f"anisotropy={made.maxAnisotropy}: from 0 to 16")
    if kind == raw.CU_RESOURCE_TYPE_LINEAR and (
        made.filterMode or made.flags & raw.CU_TRSF_NORMALIZED_COORDINATES
    ):
        raise ValueError(
            "an array of one dimension is read by integers: neither linear=True nor "
            "normalized_coords=True applies; copy it to a CudaArray"
        )
    if kind == raw.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY and not (
        made.flags & raw.CU_TRSF_NORMALIZED_COORDINATES
    ):
        raise ValueError("a texture of a mipmapped array needs normalized_coords=True")
