"""Texture and surface objects of the emulated device: records that kernels read."""

from __future__ import annotations

import ctypes
import re
import struct
from typing import Any

from cudadrv.raw import table, types

from .arrays import CHANNEL_BYTES, CUBEMAP, SURFACE, Array, Mipmapped, find_array
from .layout import LEVEL, SURFACE_KIND, TEXTURE, TEXTURE_KIND
from .sampling import AS_IS, BORDER, CLAMP, FRACTION, SRGB
from .state import Object, current, find
from .status import require

ARRAY, MIPMAPPED, LINEAR, PITCHED = range(4)  # CUresourcetype
# Flags of a CUDA_TEXTURE_DESC.
READ_AS_INTEGER, NORMALIZED_COORDINATES, TO_LINEAR = 0x01, 0x02, 0x10
ALIGNMENT, PITCH_ALIGNMENT = 512, 32
FORMATS = {
    "UINTX8": 1, "UINTX16": 2, "UINTX32": 3, "SINTX8": 8, "SINTX16": 9, "SINTX32": 10,
    "FLOATX16": 16, "FLOATX32": 32,
}  # fmt: skip
_SMALL_INTEGERS, _FLOATS = (1, 2, 8, 9), (16, 32)
# Format and channels of each CUresourceViewFormat that is not compressed.
VIEW_FORMATS = {
    number: (FORMATS[f"{kind}X{bits}"], int(channels))
    for name, number in table.ENUMS[types.resolve("CUresourceViewFormat")].items()
    for kind, channels, bits in re.findall(r"_([A-Z]+)_(\d)X(\d+)$", name)
}


class Source:
    """What a CUDA_RESOURCE_DESC describes: levels of texels in memory, kept alive."""

    def __init__(self, resource: Any, view: Any = None) -> None:
        self.kind = resource.resType
        self.arrays: list[Array] = []
        if self.kind == ARRAY:
            self.arrays = [find_array(resource.res.array.hArray)]
        elif self.kind == MIPMAPPED:
            self.arrays = find(Mipmapped, resource.res.mipmap.hMipmappedArray).levels
        else:
            require(self.kind in (LINEAR, PITCHED))
        self.keep = [array.memory for array in self.arrays]
        self.normalized = bool(self.arrays) and self.arrays[0].normalized
        self.is_cube = bool(self.arrays) and bool(self.arrays[0].record.Flags & CUBEMAP)
        if self.arrays:
            first = self.arrays[0]
            self.format, self.channels = first.format, first.channels
            self.levels = [level_of(array) for array in self.arrays]
            if view is not None:
                self._view(view)
        else:
            require(view is None)
            self._linear(resource.res.linear if self.kind == LINEAR else resource.res.pitch2D)

    def _view(self, view: Any) -> None:
        """Take some levels and layers, in another format."""
        record, layers = self.arrays[0].record, self.arrays[0].extent[2]
        require((view.width, view.height) == (record.Width, record.Height))
        require(view.depth == record.Depth)
        require(view.firstMipmapLevel <= view.lastMipmapLevel < len(self.levels))
        require(view.firstLayer <= view.lastLayer < (layers if self.arrays[0].layered else 1))
        # As an H200: a view without a format is none.
        require(view.format)
        require(view.format in VIEW_FORMATS, "NOT_SUPPORTED")
        size = CHANNEL_BYTES[self.format] * self.channels
        self.format, self.channels = VIEW_FORMATS[view.format]
        self.normalized = False
        require(CHANNEL_BYTES[self.format] * self.channels == size)
        chosen = self.arrays[view.firstMipmapLevel : view.lastMipmapLevel + 1]
        self.levels = [level_of(a, view.firstLayer, view.lastLayer) for a in chosen]

    def _linear(self, memory: Any) -> None:
        self.format, self.channels = memory.format, memory.numChannels
        require(self.format in CHANNEL_BYTES and self.channels in (1, 2, 4))
        require(memory.devPtr and memory.devPtr % ALIGNMENT == 0)
        size = CHANNEL_BYTES[self.format] * self.channels
        if self.kind == LINEAR:
            width, height, pitch = memory.sizeInBytes // size, 1, memory.sizeInBytes
            require(0 < width <= 1 << 28)
        else:
            width, height, pitch = memory.width, memory.height, memory.pitchInBytes
            require(width and height and pitch % PITCH_ALIGNMENT == 0 and pitch >= width * size)
        current().memory.check(memory.devPtr, (height - 1) * pitch + width * size)
        self.levels = [(memory.devPtr, width, height, 1, pitch, pitch * height)]

    def record(self, kind: int) -> Any:
        """The TEXTURE record, without what says how it is read."""
        self.table = level_table(self.levels)
        made = TEXTURE.ctype()
        made.kind = kind
        made.levels, made.count = ctypes.addressof(self.table), len(self.levels)
        made.format, made.channels = self.format, self.channels
        made.element = CHANNEL_BYTES[self.format] * self.channels
        return made


def level_table(levels: list[tuple[int, ...]]) -> Any:
    """LEVEL records side by side."""
    kind: Any = LEVEL.ctype
    return (kind * len(levels))(*levels)


def level_of(array: Array, first: int = 0, last: int | None = None) -> tuple[int, ...]:
    """The values of a LEVEL record, of some layers of an array that has any."""
    width, height, depth = array.extent
    if array.layered and last is not None:
        depth = last - first + 1
    start = array.address + first * array.plane
    return (start, width, height, depth, array.pitch, array.plane)


class Bound(Object):
    """A texture or surface: its handle is the address of its record."""

    def __init__(self, resource: Any, source: Source, record: Any) -> None:
        self.resource = type(resource).from_buffer_copy(resource)
        self.source = source
        self.memory = record
        super().__init__(ctypes.addressof(record))

    def forget(self) -> None:
        """Make the handle invalid, also for kernels."""
        self.memory.kind = 0
        super().forget()


class Texture(Bound):
    """A texture object, with the descriptors that it was made from."""

    error = "INVALID_VALUE"

    def __init__(self, resource: Any, how: Any, view: Any) -> None:
        source = Source(resource, view)
        record = source.record(TEXTURE_KIND)
        self.how = type(how).from_buffer_copy(how)
        self.view = None if view is None else type(view).from_buffer_copy(view)
        fill(record, source, how)
        super().__init__(resource, source, record)


class Surface(Bound):
    """A surface object."""

    error = "INVALID_VALUE"

    def __init__(self, resource: Any) -> None:
        require(resource.resType == ARRAY)
        source = Source(resource)
        require(source.arrays[0].record.Flags & SURFACE)
        super().__init__(resource, source, source.record(SURFACE_KIND))


def fill(record: Any, source: Source, how: Any) -> None:
    """Enter how a texture is read, after checking what no device does."""
    modes, flags = list(how.addressMode), how.flags
    require(all(mode in range(4) for mode in modes) and not flags & ~0x73)
    require(how.filterMode in (0, 1) and how.mipmapFilterMode in (0, 1))
    normalized = bool(flags & NORMALIZED_COORDINATES) or source.is_cube
    require(normalized or source.kind != MIPMAPPED)
    fraction = source.format in _SMALL_INTEGERS and not flags & READ_AS_INTEGER
    fraction |= source.normalized
    is_float = source.format in _FLOATS
    if flags & TO_LINEAR:
        require(source.format == 1 and fraction)
    if source.kind == LINEAR:
        record.linear = 0
    else:
        require(not how.filterMode or fraction or is_float)
        record.linear = how.filterMode
    record.how = SRGB if flags & TO_LINEAR else FRACTION if fraction else AS_IS
    record.normalized = normalized
    # Other modes are for normalized coordinates.
    modes = [mode if normalized or mode == BORDER else CLAMP for mode in modes]
    record.mode_x, record.mode_y, record.mode_z = modes
    record.mip_linear, record.bias = how.mipmapFilterMode, how.mipmapLevelBias
    record.least, record.most = how.minMipmapLevelClamp, how.maxMipmapLevelClamp
    for i, color in enumerate(how.borderColor):
        as_float = fraction or is_float
        record.border[i] = float_bits(color) if as_float else int(color) & 0xFFFFFFFF


def float_bits(value: float) -> int:
    """The bits of a float."""
    return int(struct.unpack("I", struct.pack("f", value))[0])
