"""What a CUDA array holds: the format of its elements, its shape and its flags."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cudadrv import raw
from cudadrv.device import Device
from cudadrv.view import to_dtype

PREFIX = "CU_AD_FORMAT_"
# Formats of whole elements whose channels are separate numbers, by NumPy's name.
PLAIN = {
    "uint8": "UNSIGNED_INT8",
    "uint16": "UNSIGNED_INT16",
    "uint32": "UNSIGNED_INT32",
    "int8": "SIGNED_INT8",
    "int16": "SIGNED_INT16",
    "int32": "SIGNED_INT32",
    "float16": "HALF",
    "float32": "FLOAT",
}
# Channels of the formats whose number says nothing about them; the others have three.
CHANNELS = {"BC1": 4, "BC2": 4, "BC3": 4, "BC4": 1, "BC5": 2, "BC6H": 3, "BC7": 4}
CHANNELS |= {"AYUV": 4, "Y410": 4, "Y416": 4, "UNORM_INT_101010_2": 4}
FLAGS = {
    "layered": 0x01,
    "surface": 0x02,
    "cubemap": 0x04,
    "gather": 0x08,
    "depth": 0x10,
    "color": 0x20,
    "sparse": 0x40,
    "deferred": 0x80,
    "video": 0x100,
}


class ArrayFormat(NamedTuple):
    """What an element is.

    Attributes:
        name: of the CUarray_format, without CU_AD_FORMAT_.
        dtype: of a channel; None where NumPy has none (compressed and video formats).
        channels: numbers in an element.
    """

    name: str
    dtype: np.dtype[Any] | None
    channels: int

    @property
    def number(self) -> int:
        """The CUarray_format."""
        return int(getattr(raw, PREFIX + self.name))

    @property
    def itemsize(self) -> int | None:
        """Bytes of an element with all its channels; None if it has no dtype."""
        return None if self.dtype is None else self.dtype.itemsize * self.channels

    @property
    def tail(self) -> tuple[int, ...]:
        """The last dimension that arrays of such elements have in NumPy: none for one channel."""
        return (self.channels,) if self.channels > 1 else ()


def element_format(dtype: npt.DTypeLike, channels: int | None = None) -> ArrayFormat:
    """The format of elements of *channels* numbers.

    Args:
        dtype: a NumPy type, or the name of a CUarray_format.
        channels: by default 1, or what the format has.

    Raises:
        TypeError: no format has such numbers.
        ValueError: there are not 1, 2 or 4 of them.
    """
    if channels is not None:
        channels = operator.index(channels)
    if isinstance(dtype, str) and dtype.isupper():
        return named_format(dtype, channels)
    kind = None if dtype is None else to_dtype(dtype)
    if kind is None or kind.name not in PLAIN or not kind.isnative:
        raise TypeError(
            f"a CUDA array cannot hold {kind}: use one of {', '.join(PLAIN)}, or the name of a "
            "format; 64-bit numbers go as two channels of uint32"
        )
    channels = 1 if channels is None else channels
    if channels not in (1, 2, 4):
        raise ValueError(f"channels={channels}: an element has 1, 2 or 4 channels; pad 3 to 4")
    return ArrayFormat(PLAIN[kind.name], kind, channels)


def named_format(name: str, channels: int | None) -> ArrayFormat:
    """The CUarray_format of a name, with or without CU_AD_FORMAT_.

    Raises:
        ValueError: there is no such format.
    """
    name = name.removeprefix(PREFIX)
    known = [member.removeprefix(PREFIX) for member in raw.CUarray_format.__members__]
    if name not in known or name == "MAX":
        raise ValueError(f"there is no format {name!r}; there are {', '.join(known[:-1])}")
    for kind, plain in PLAIN.items():
        if plain == name:
            return element_format(kind, channels)
    found = re.fullmatch(r"([US])NORM_INT(8|16)X(\d)", name)
    if found:
        letter = "u" if found[1] == "U" else "i"
        return ArrayFormat(name, np.dtype(f"{letter}{int(found[2]) // 8}"), int(found[3]))
    fixed = CHANNELS.get(name, CHANNELS.get(name.partition("_")[0], 3))
    return ArrayFormat(name, None, fixed if channels is None else channels)


class ArrayLayout(NamedTuple):
    """Shape, element format and flags of a CUDA array.

    Attributes:
        shape: NumPy's, width last; the layers or faces of a layered array or cubemap first.
        flags: the CUDA_ARRAY3D_... bits.
    """

    shape: tuple[int, ...]
    format: ArrayFormat
    flags: int

    @classmethod
    def of(cls, record: Any) -> ArrayLayout:
        """The layout in a CUDA_ARRAY3D_DESCRIPTOR."""
        names = {member.value: name for name, member in raw.CUarray_format.__members__.items()}
        shape = tuple(n for n in (record.Depth, record.Height, record.Width) if n)
        return cls(shape, named_format(names[record.Format], record.NumChannels), record.Flags)

    @property
    def is_layered(self) -> bool:
        """Whether the first dimension counts layers or faces."""
        return bool(self.flags & (FLAGS["layered"] | FLAGS["cubemap"]))

    @property
    def dimensions(self) -> int:
        """How many dimensions a layer, or without layers the array, has."""
        return len(self.shape) - self.is_layered

    @property
    def extent(self) -> tuple[int, int, int]:
        """(depth or layers, height, width), missing ones 1."""
        layers = (self.shape[0],) if self.is_layered else ()
        inner = self.shape[len(layers) :]
        whole = (*layers, *(1,) * (3 - len(layers) - len(inner)), *inner)
        return whole[0], whole[1], whole[2]

    @property
    def nbytes(self) -> int | None:
        """Bytes of all elements, without what the device adds; None for formats without a dtype."""
        size = self.format.itemsize
        return None if size is None else math.prod(self.shape) * size

    def record(self) -> Any:
        """The CUDA_ARRAY3D_DESCRIPTOR."""
        depth, height, width = self.extent
        return raw.CUDA_ARRAY3D_DESCRIPTOR(
            Width=width,
            Height=height if self.dimensions > 1 else 0,
            Depth=depth if self.is_layered or self.dimensions > 2 else 0,
            Format=self.format.number,
            NumChannels=self.format.channels,
            Flags=self.flags,
        )

    def __str__(self) -> str:
        given = [name for name, bit in FLAGS.items() if self.flags & bit]
        text = f"shape={self.shape}, format={self.format.name}, channels={self.format.channels}"
        return ", ".join([text, *given])


def make_layout(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike,
    channels: int | None,
    flags: Mapping[str, bool],
) -> ArrayLayout:
    """A layout, checked as far as every device agrees.

    Raises:
        TypeError: a wrong type, or a flag that there is not.
        ValueError: a shape that the flags do not allow.
    """
    unknown = sorted(set(flags) - set(FLAGS))
    if unknown:
        raise TypeError(f"there is no option {unknown[0]!r}; there are {', '.join(FLAGS)}")
    bits = sum(FLAGS[name] for name, wanted in flags.items() if wanted)
    layout = ArrayLayout(lengths(shape), element_format(dtype, channels), bits)
    fault = shape_fault(layout, {name for name, wanted in flags.items() if wanted})
    if fault:
        raise ValueError(f"shape {layout.shape}: {fault}")
    return layout


def lengths(shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple of positive ints."""
    try:
        given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        known = tuple(map(operator.index, given))
    except TypeError:
        raise TypeError(f"shape {shape!r}: pass an int or a sequence of ints") from None
    if not known or min(known) < 1:
        raise ValueError(f"shape {shape!r}: a CUDA array has at least one element each way")
    return known


def shape_fault(layout: ArrayLayout, flags: set[str]) -> str:
    """What is wrong with a shape under the flags; empty if nothing is."""
    shape = layout.shape
    if "cubemap" in flags:
        if len(shape) != 3 or shape[1] != shape[2]:
            return "a cubemap is (6, n, n), layered (6 * layers, n, n)"
        if shape[0] != 6 and ("layered" not in flags or shape[0] % 6):
            return "a cubemap has 6 faces, with layered=True a multiple of 6"
    elif "layered" in flags and len(shape) not in (2, 3):
        return "layered arrays are (layers, width) or (layers, height, width)"
    elif len(shape) > 3:
        return "an array has at most three dimensions, (depth, height, width)"
    if "gather" in flags and (layout.dimensions != 2 or len(shape) != 2):
        return "gather=True is for two-dimensional arrays"
    return ""


def check_limits(layout: ArrayLayout, device: Device, mipmapped: bool) -> None:
    """Refuse what is larger than the device's textures or surfaces.

    Raises:
        ValueError: naming the attribute of the device that says so.
    """
    kind = f"{layout.dimensions}D"
    if layout.flags & FLAGS["cubemap"]:
        kind = "CUBEMAP"
    if layout.flags & FLAGS["layered"]:
        kind += "_LAYERED"
    if layout.flags & FLAGS["gather"]:
        kind += "_GATHER"
    if mipmapped and kind in ("1D", "2D"):
        kind += "_MIPMAPPED"
    uses = ["TEXTURE", *(["SURFACE"] if layout.flags & FLAGS["surface"] else [])]
    depth, height, width = layout.extent
    sizes = {"WIDTH": width, "HEIGHT": height, "DEPTH": depth, "LAYERS": depth}
    for use in uses:
        for side, size in sizes.items():
            names = [f"MAXIMUM_{use}{kind}_{side}", f"MAXIMUM_{use}{kind}_{side}_ALTERNATE"]
            limit = max((limit_of(device, name) for name in names), default=0)
            if limit and size > limit:
                raise ValueError(
                    f"shape {layout.shape}: the device's {names[0]} is {limit}, asked for {size}"
                )


def limit_of(device: Device, name: str) -> int:
    """The value of a device attribute; 0 where there is no such attribute."""
    if f"CU_DEVICE_ATTRIBUTE_{name}" not in raw.CUdevice_attribute.__members__:
        return 0
    return device.attributes[name] or 0
