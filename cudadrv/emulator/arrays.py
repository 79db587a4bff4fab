"""CUDA arrays of the emulated device: rows of elements one after another, level by level."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from cudadrv.raw import table, types

from .state import Object, current, device, find
from .status import require

# Bytes of a channel, by CUarray_format.
CHANNEL_BYTES = {1: 1, 2: 2, 3: 4, 8: 1, 9: 2, 10: 4, 16: 2, 32: 4}
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8
SPARSE, DEFERRED = 0x40, 0x80
LIMITS = {
    "TEXTURE1D": (131072,), "TEXTURE2D": (131072, 65536), "TEXTURE3D": (16384, 16384, 16384),
    "TEXTURE1D_LAYERED": (32768, 0, 2048), "TEXTURE2D_LAYERED": (32768, 32768, 2048),
    "TEXTURECUBEMAP": (32768,), "TEXTURECUBEMAP_LAYERED": (32768, 0, 2046),
    "TEXTURE2D_GATHER": (32768, 32768), "TEXTURE1D_LINEAR": (268435456,),
    "TEXTURE2D_LINEAR": (131072, 65000), "TEXTURE2D_MIPMAPPED": (32768, 32768),
    "TEXTURE1D_MIPMAPPED": (32768,), "SURFACE1D": (32768,), "SURFACE2D": (131072, 65536),
    "SURFACE3D": (16384, 16384, 16384), "SURFACE1D_LAYERED": (32768, 0, 2048),
    "SURFACE2D_LAYERED": (32768, 32768, 2048), "SURFACECUBEMAP": (32768,),
    "SURFACECUBEMAP_LAYERED": (32768, 0, 2046),
}  # fmt: skip
# Formats of 8 and 16 bits that textures read as fractions of 1: (plain format, channels).
NORMALIZED = {
    table.ENUMS[types.resolve("CUarray_format")][f"CU_AD_FORMAT_{s}NORM_INT{bits}X{n}"]: (plain, n)
    for s, bits, plain in (("U", 8, 1), ("U", 16, 2), ("S", 8, 8), ("S", 16, 9))
    for n in (1, 2, 4)
}


def attributes() -> dict[str, int]:
    """The device attributes that say how large arrays may be."""
    found = {"MAXIMUM_TEXTURE2D_LINEAR_PITCH": 2097120}
    for name, sizes in LIMITS.items():
        sides = ("WIDTH", "HEIGHT", "LAYERS" if "LAYERED" in name else "DEPTH")
        for side, size in zip(sides, sizes, strict=False):
            found[f"MAXIMUM_{name}_{side}"] = size
    return {name: size for name, size in found.items() if size}


class Array(Object):
    """An array, or a level of a mipmapped one.

    Attributes:
        record: its CUDA_ARRAY3D_DESCRIPTOR.
        format, channels: of its elements, as plain numbers.
        extent: (width, height, depth or layers), missing ones 1.
        pitch, plane: bytes of a row, and of a layer or plane.
    """

    def __init__(self, record: Any, is_level: bool = False) -> None:
        self.record = record
        self.is_level = is_level
        self.format, self.channels = NORMALIZED.get(
            record.Format, (record.Format, record.NumChannels)
        )
        self.element = CHANNEL_BYTES[self.format] * self.channels
        self.extent = (record.Width, record.Height or 1, record.Depth or 1)
        self.pitch = self.extent[0] * self.element
        self.plane = self.pitch * self.extent[1]
        self.size = self.plane * self.extent[2]
        require(self.size <= device.free_memory(), "OUT_OF_MEMORY")
        try:
            self.memory: mmap.mmap | None = mmap.mmap(-1, self.size)
        except (OSError, ValueError, OverflowError, MemoryError):
            require(False, "OUT_OF_MEMORY")
        assert self.memory
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        super().__init__()
        self.context = current()
        self.context.owned.add(self)
        self.context.memory.used += self.size

    def forget(self) -> None:
        """Make the handle invalid; the memory goes with the last texture of it."""
        super().forget()
        if self.memory is not None:
            self.memory = None
            self.context.memory.used -= self.size

    @property
    def normalized(self) -> bool:
        """Whether its integers are fractions of 1."""
        return self.record.Format in NORMALIZED

    @property
    def layered(self) -> bool:
        """Whether its depth counts layers or faces."""
        return bool(self.record.Flags & (LAYERED | CUBEMAP))

    def start(self, x: int, y: int, z: int, width: int, rows: int, planes: int) -> int:
        """The address of a box inside it; *x* and *width* are in bytes."""
        require(x + width <= self.pitch)
        require(y + rows <= self.extent[1] and z + planes <= self.extent[2])
        return int(self.address + z * self.plane + y * self.pitch + x)


class Mipmapped(Object):
    """A mipmapped array: its levels, and the descriptor of the first."""

    def __init__(self, record: Any, count: int) -> None:
        self.record = record
        self.levels = [Array(level_record(record, level), True) for level in range(count)]
        super().__init__()
        current().owned.add(self)

    def forget(self) -> None:
        """Make its handle and those of its levels invalid."""
        for level in self.levels:
            level.forget()
        super().forget()


def level_record(record: Any, level: int) -> Any:
    """The descriptor of a level of a mipmapped array."""
    made = type(record).from_buffer_copy(record)
    made.Width = max(record.Width >> level, 1)
    made.Height = max(record.Height >> level, 1) if record.Height else 0
    if not record.Flags & (LAYERED | CUBEMAP):
        made.Depth = max(record.Depth >> level, 1) if record.Depth else 0
    return made


def checked(record: Any) -> Any:
    """A copy of a CUDA_ARRAY3D_DESCRIPTOR that the device takes."""
    fixed = NORMALIZED.get(record.Format)
    if fixed:
        require(record.NumChannels == fixed[1])
    known = set(table.ENUMS[types.resolve("CUarray_format")].values())
    require(record.Format in known)
    require(fixed or record.Format in CHANNEL_BYTES, "NOT_SUPPORTED")
    require(record.NumChannels in (1, 2, 4) and record.Width)
    width, height, depth, flags = record.Width, record.Height, record.Depth, record.Flags
    require(not flags & ~0x1FF)
    require(not flags & (SPARSE | DEFERRED), "NOT_SUPPORTED")
    kind = f"{3 if depth and height else 2 if height else 1}D"
    if flags & CUBEMAP:
        require(width == height and depth and depth % 6 == 0)
        require(depth == 6 or flags & LAYERED)
        kind = "CUBEMAP"
    elif flags & LAYERED:
        require(depth)
        kind = "2D" if height else "1D"
    else:
        require(height or not depth)
    require(not flags & GATHER or kind == "2D")
    kind += "_LAYERED" if flags & LAYERED else "_GATHER" if flags & GATHER else ""
    for use in ("TEXTURE", "SURFACE")[: 2 if flags & SURFACE and not flags & GATHER else 1]:
        for size, limit in zip((width, height, depth), LIMITS[use + kind], strict=False):
            require(not limit or size <= limit)
    return type(record).from_buffer_copy(record)


def find_array(handle: int | None) -> Array:
    """The array behind a handle."""
    return find(Array, handle)
