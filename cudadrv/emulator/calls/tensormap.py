"""cuTensorMap...: the parameters checked as the driver checks them, and kept in the 128 bytes."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import table, types

from ..boundary import exported
from ..layout import IM2COL, TENSOR_MAP, TILED, WIDE
from ..state import current, device
from ..status import require

_TYPES = {
    name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_"): number
    for name, number in table.ENUMS[types.resolve("CUtensorMapDataType")].items()
}
_U4, _PACKED = _TYPES["16U4_ALIGN8B"], (_TYPES["16U4_ALIGN16B"], _TYPES["16U6_ALIGN16B"])
# Bytes of an element, twice.
_HALVES = {
    number: 1 if number == _U4 else 2 * int("".join(filter(str.isdigit, name))) // 8
    for name, number in _TYPES.items()
    if number not in _PACKED
}
_INTERLEAVE_32B, _SWIZZLE_32B = 2, 1
_CORNERS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}


def _read(kind: Any, address: int | None, count: int) -> list[int]:
    require(address or not count)
    return list((kind * count).from_address(address)) if count else []


def _begin(
    kind: int, tensor: int | None, shape_at: int, strides_at: int, steps_at: int, **fields: int
) -> Any:
    """The record at *tensor* to be, with what all kinds have in common checked and entered."""
    current()
    require(tensor and tensor % 64 == 0)
    made = TENSOR_MAP.ctype(kind=kind, **fields)
    require(made.type in _TYPES.values() and 1 <= fields["rank"] <= 5)
    require(made.interleave < 3 and made.swizzle < 7 and made.promotion < 4 and made.fill < 2)
    require(made.interleave == 0 or made.rank >= 3)
    require(made.interleave != _INTERLEAVE_32B or made.swizzle == _SWIZZLE_32B)
    shape = _read(ctypes.c_uint64, shape_at, made.rank)
    strides = _read(ctypes.c_uint64, strides_at, made.rank - 1)
    steps = _read(ctypes.c_uint32, steps_at, made.rank)
    _check_address(made)
    step = _alignment(made)
    require(all(0 < n <= 1 << 31 for n in shape) and all(0 < n <= 8 for n in steps))
    require(all(n % step == 0 and n < 1 << 40 for n in strides))
    require(shape[0] % (128 if made.type in _PACKED else 2 if made.type == _U4 else 1) == 0)
    floats = {number for name, number in _TYPES.items() if "FLOAT" in name}
    require(not made.fill or made.type in floats)
    for target, values in ((made.shape, shape), (made.strides, strides), (made.steps, steps)):
        target[: len(values)] = values
    return made


def _alignment(made: Any) -> int:
    return 32 if made.interleave == _INTERLEAVE_32B or made.type in _PACKED else 16


def _check_address(made: Any) -> None:
    require(made.address and made.address % _alignment(made) == 0)


def _check_inner(made: Any, count: int) -> None:
    """The innermost length of what is copied."""
    if made.type in _PACKED:
        require(count == 128)
    elif made.interleave == 0 and made.swizzle:
        require(count * _HALVES[made.type] <= 2 * {1: 32, 2: 64}.get(made.swizzle, 128))


def _check_pixels(made: Any, lower: list[int], upper: list[int]) -> None:
    require(made.rank >= 3 and 0 < made.channels <= 256 and 0 < made.pixels <= 1024)
    limit = _CORNERS[made.rank] if made.kind == IM2COL else 1 << 15
    require(all(-limit <= n < limit for n in (*lower, *upper)))
    lengths = list(made.shape)[1 : 1 + len(lower)]
    require(all(n + up > low for n, low, up in zip(lengths, lower, upper, strict=True)))
    _check_inner(made, made.channels)
    made.lower[: len(lower)], made.upper[: len(upper)] = lower, upper


def _store(tensor: int, made: Any) -> None:
    ctypes.memset(tensor, 0, 128)
    ctypes.memmove(tensor, ctypes.addressof(made), ctypes.sizeof(made))


@exported()
def cuTensorMapEncodeTiled(
    tensor: int, type: int, rank: int, address: int, shape: int, strides: int, box: int,
    steps: int, interleave: int, swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    require(device.capability >= (9, 0), "NOT_SUPPORTED")
    made = _begin(
        TILED, tensor, shape, strides, steps, type=type, rank=rank, address=address or 0,
        interleave=interleave, swizzle=swizzle, promotion=promotion, fill=fill,
    )  # fmt: skip
    lengths = _read(ctypes.c_uint32, box, rank)
    require(all(0 < n <= 256 for n in lengths))
    _check_inner(made, lengths[0])
    if interleave == 0 and type not in _PACKED:
        require(lengths[0] * _HALVES[type] % 32 == 0)
    made.box[:rank] = lengths
    _store(tensor, made)


@exported()
def cuTensorMapEncodeIm2col(
    tensor: int, type: int, rank: int, address: int, shape: int, strides: int, lower: int,
    upper: int, channels: int, pixels: int, steps: int, interleave: int, swizzle: int,
    promotion: int, fill: int,
) -> None:  # fmt: skip
    require(device.capability >= (9, 0), "NOT_SUPPORTED")
    require(3 <= rank <= 5 and channels < 1 << 16 and pixels < 1 << 16)
    made = _begin(
        IM2COL, tensor, shape, strides, steps, type=type, rank=rank, address=address or 0,
        interleave=interleave, swizzle=swizzle, promotion=promotion, fill=fill,
        channels=channels, pixels=pixels,
    )  # fmt: skip
    corners = [_read(ctypes.c_int, each, rank - 2) for each in (lower, upper)]
    _check_pixels(made, *corners)
    _store(tensor, made)


@exported()
def cuTensorMapEncodeIm2colWide(
    tensor: int, type: int, rank: int, address: int, shape: int, strides: int, lower: int,
    upper: int, channels: int, pixels: int, steps: int, interleave: int, mode: int,
    swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    require(device.capability >= (10, 0), "NOT_SUPPORTED")
    require(3 <= rank <= 5 and channels < 1 << 16 and pixels < 1 << 16 and mode in (0, 1))
    require(swizzle in (2, 3, 4))
    made = _begin(
        WIDE, tensor, shape, strides, steps, type=type, rank=rank, address=address or 0,
        interleave=interleave, swizzle=swizzle, promotion=promotion, fill=fill,
        channels=channels, pixels=pixels, mode=mode,
    )  # fmt: skip
    _check_pixels(made, [lower], [upper])
    _store(tensor, made)


@exported()
def cuTensorMapReplaceAddress(tensor: int, address: int) -> None:
    require(tensor and tensor % 64 == 0)
    kind: Any = TENSOR_MAP.ctype
    made = kind.from_buffer_copy(ctypes.string_at(tensor, 128))
    require(made.kind in (TILED, IM2COL, WIDE))
    made.address = address or 0
    _check_address(made)
    _store(tensor, made)
