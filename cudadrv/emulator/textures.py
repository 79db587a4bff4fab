"""Texture and surface objects of the emulated device: records that kernels read."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from .arrays import CHANNEL_BYTES, CUBEMAP, SURFACE, Array, Mipmapped, find_array
from .layout import LEVEL, SURFACE_KIND, TEXTURE, TEXTURE_KIND
from .sampling import AS_IS, BORDER, CLAMP, FRACTION, SRGB
from .state import Object, current, find
from .status import require

ARRAY, MIPMAPPED, LINEAR, PITCHED = range(4)  # CUresourcetype
# Flags of a CUDA_TEXTURE_DESC.
READ_AS_INTEGER, NORMALIZED_COORDINATES, TO_LINEAR = 0x01, 0x02, 0x10
ALIGNMENT, PITCH_ALIGNMENT = 512, 32
_SMALL_INTEGERS, _FLOATS = (1, 2, 8, 9), (16, 32)


class Source:
    """What a CUDA_RESOURCE_DESC describes: levels of texels in memory, kept alive."""

    def __init__(self, resource: Any) -> None:
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
        else:
            self._linear(resource.res.linear if self.kind == LINEAR else resource.res.pitch2D)

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


def level_of(array: Array) -> tuple[int, ...]:
    """The values of a LEVEL record."""
    return (array.address, *array.extent, array.pitch, array.plane)


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
    """A texture object, with the descriptor of how it is read."""

    error = "INVALID_VALUE"

    def __init__(self, resource: Any, how: Any) -> None:
        source = Source(resource)
        record = source.record(TEXTURE_KIND)
        self.how = type(how).from_buffer_copy(how)
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
