"""What a tensor map describes, and the rules of the hardware for it, in NumPy's order."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cudadrv import raw
from cudadrv.array import as_cuda_array
from cudadrv.memory import DeviceMemory

# NumPy's name: that of the CUtensorMapDataType. Narrow signed integers are copied as bits.
TYPES = {
    "bool": "UINT8",
    "int8": "UINT8",
    "int16": "UINT16",
    **{f"uint{bits}": f"UINT{bits}" for bits in (8, 16, 32, 64)},
    **{f"int{bits}": f"INT{bits}" for bits in (32, 64)},
    **{f"float{bits}": f"FLOAT{bits}" for bits in (16, 32, 64)},
}
# Bits of an element in global memory, where its name does not tell.
BITS = {
    "BFLOAT16": 16, "FLOAT32_FTZ": 32, "TFLOAT32": 32, "TFLOAT32_FTZ": 32,
    "16U4_ALIGN8B": 4, "16U4_ALIGN16B": 4, "16U6_ALIGN16B": 6,
}  # fmt: skip
WIDE_PACKED = ("16U4_ALIGN16B", "16U6_ALIGN16B")
SWIZZLE_BYTES = {1: 32, 2: 64}  # of the CUtensorMapSwizzle; the others have 128
NONE, BYTES_32 = 0, 2  # CUtensorMapInterleave
# The largest corner of a box of pixels, by the number of dimensions.
CORNERS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}


class Tensor(NamedTuple):
    """An array as a tensor map describes it.

    Attributes:
        type: name of the CUtensorMapDataType.
        strides: in bytes, of all dimensions but the last.
    """

    type: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def number(self) -> int:
        """The CUtensorMapDataType."""
        return int(getattr(raw, f"CU_TENSOR_MAP_DATA_TYPE_{self.type}"))

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return BITS.get(self.type) or int("".join(filter(str.isdigit, self.type)))


class Layout(NamedTuple):
    """The options that all kinds of tensor maps have, as the driver counts them."""

    interleave: int
    swizzle: int
    l2_promotion: int
    oob_nan: int


def layout_of(interleave: str, swizzle: str, l2_promotion: str, oob_nan: bool) -> Layout:
    """The options by their names.

    Raises:
        ValueError: there is no such option.
    """
    promotion = l2_promotion if l2_promotion == "none" else f"L2_{l2_promotion}"
    return Layout(
        choice("interleave", interleave, raw.CUtensorMapInterleave),
        choice("swizzle", swizzle, raw.CUtensorMapSwizzle),
        choice("l2_promotion", promotion, raw.CUtensorMapL2promotion),
        int(oob_nan),
    )


def choice(option: str, name: str, enumeration: Any) -> int:
    """The number of an enumerator that ends in *name*.

    Raises:
        TypeError: *name* is no str.
        ValueError: there is none.
    """
    if not isinstance(name, str):
        raise TypeError(f"{option}={name!r}: pass a str")
    members = enumeration.__members__
    names = list(members)
    shared = len(names[0].rpartition("_")[0]) + 1
    known = {member[shared:]: value for member, value in members.items()}
    wanted = name.upper() if name == "none" else name
    if wanted not in known:
        listed = ", ".join(known).replace("NONE", "none").replace("L2_", "")
        raise ValueError(f"{option}={name.removeprefix('L2_')!r}: there are {listed}")
    return int(known[wanted])


def numbers(name: str, values: Any, count: int) -> tuple[int, ...]:
    """A sequence of *count* ints.

    Raises:
        TypeError: it is none of ints.
        ValueError: there are more or fewer.
    """
    try:
        known = tuple(map(operator.index, values))
    except TypeError:
        raise TypeError(f"{name}={values!r}: pass a sequence of ints") from None
    if len(known) != count:
        raise ValueError(f"{name}={values!r}: there must be {count}, one for each dimension")
    return known


def tensor_of(source: Any, dtype: Any, shape: Any, strides: Any) -> Tensor:
    """What is to be described.

    Args:
        source: a device array, device memory or an address.
        dtype, shape, strides: what to take instead of an array's own.

    Raises:
        TypeError: *source* is nothing of these, or type and shape are not known.
        ValueError: the last dimension has gaps, or the memory is too small.
    """
    memory = source
    if not isinstance(source, DeviceMemory) and hasattr(source, "__cuda_array_interface__"):
        array = as_cuda_array(source)
        if shape is None:
            shape = array.shape
            strides = array.strides if strides is None else strides
        memory, dtype = array.memory[array.offset :], array.dtype if dtype is None else dtype
    address = address_of(memory)
    if dtype is None or shape is None:
        raise TypeError("memory without a type: say dtype= and shape=")
    known = type_name(dtype)
    lengths = numbers("shape", shape, len(shape) if hasattr(shape, "__len__") else 1)
    made = Tensor(known, address, lengths, ())
    made = made._replace(strides=outer_strides(made, strides))
    reach = [(n - 1) * step for n, step in zip(lengths, made.strides, strict=False)]
    needs = sum(reach) + (lengths[-1] * made.bits + 7) // 8 if lengths else 0
    if isinstance(memory, DeviceMemory) and needs > memory.nbytes:
        raise ValueError(f"shape {lengths} needs {needs} bytes, the memory has {memory.nbytes}")
    return made


def type_name(dtype: Any) -> str:
    """The name of the CUtensorMapDataType.

    Raises:
        TypeError: no tensor map has such elements.
    """
    if f"CU_TENSOR_MAP_DATA_TYPE_{dtype}" in raw.CUtensorMapDataType.__members__:
        return str(dtype)
    try:
        return TYPES[np.dtype(dtype).name]
    except (KeyError, TypeError):
        known = [name[24:] for name in raw.CUtensorMapDataType.__members__]
        raise TypeError(
            f"a tensor map cannot describe {dtype}: use one of {', '.join(TYPES)}, or of "
            f"{', '.join(known)}"
        ) from None


def outer_strides(tensor: Tensor, strides: Any) -> tuple[int, ...]:
    """The strides of all dimensions but the last, C order if none are given.

    Raises:
        ValueError: the elements of the last dimension do not touch.
    """
    shape = tensor.shape
    if not shape:
        return ()
    if strides is None:
        row = (shape[-1] * tensor.bits + 7) // 8
        return tuple(row * math.prod(shape[i + 1 : -1]) for i in range(len(shape) - 1))
    known = numbers("strides", strides, len(strides))
    if len(known) == len(shape):
        if known[-1] * 8 != tensor.bits:
            raise ValueError(
                f"strides {known}: the elements of the last dimension must touch each other"
            )
        known = known[:-1]
    return numbers("strides", known, len(shape) - 1)


def address_of(source: Any) -> int:
    """The device address of memory, an array or an address.

    Raises:
        TypeError: it is none of these.
        ClosedError: it was closed.
    """
    if isinstance(source, DeviceMemory):
        return source.handle
    if hasattr(source, "__cuda_array_interface__"):
        return int(as_cuda_array(source).handle)
    if isinstance(source, int) and not isinstance(source, bool):
        if not 0 <= source < 1 << 64:
            raise ValueError(f"{source:#x} is no address")
        return source
    raise TypeError(
        f"a tensor map describes a device array, device memory or an address, not "
        f"{type(source).__name__}"
    )


def element_steps(given: Sequence[int] | None, tensor: Tensor) -> tuple[int, ...]:
    """The steps from element to element in each dimension, by default 1."""
    rank = len(tensor.shape)
    return (1,) * rank if given is None else numbers("element_strides", given, rank)


def require(rule: bool, text: str) -> None:
    """Raise ValueError with *text* unless the *rule* is kept."""
    if not rule:
        raise ValueError(text)


def within(name: str, values: Iterable[int], least: int, most: int) -> None:
    """Refuse a value below *least* or above *most*."""
    values = tuple(values)
    require(
        all(least <= value <= most for value in values),
        f"{name}={values}: from {least} to {most} are allowed",
    )


def check_address(tensor: Tensor, layout: Layout) -> None:
    """The rule of where the array begins.

    Raises:
        ValueError: it is broken.
    """
    step = 32 if layout.interleave == BYTES_32 or tensor.type in WIDE_PACKED else 16
    require(
        tensor.address % step == 0 and tensor.address != 0,
        f"the array begins at {tensor.address:#x}: this map needs a multiple of {step}",
    )


def check_tensor(tensor: Tensor, layout: Layout, steps: Sequence[int]) -> None:
    """The rules that all kinds of tensor maps have.

    Raises:
        ValueError: one is broken.
    """
    shape, strides, rank = tensor.shape, tensor.strides, len(tensor.shape)
    wide = tensor.type in WIDE_PACKED
    require(1 <= rank <= 5, f"shape {shape}: a tensor map has 1 to 5 dimensions")
    require(
        layout.interleave == NONE or rank >= 3,
        f"shape {shape}: interleaved arrays have at least 3 dimensions",
    )
    check_address(tensor, layout)
    within("shape", shape, 1, 1 << 31)
    packed = 128 if wide else 2 if tensor.type == "16U4_ALIGN8B" else 1
    require(
        shape[-1] % packed == 0,
        f"shape {shape}: the last length of {tensor.type} is a multiple of {packed}",
    )
    step = 32 if layout.interleave == BYTES_32 or wide else 16
    require(
        all(stride % step == 0 and 0 < stride < 1 << 40 for stride in strides),
        f"strides={strides}: these must be multiples of {step} below 2**40; pad the rows",
    )
    within("element_strides", steps, 1, 8)
    require(
        layout.interleave != BYTES_32 or layout.swizzle == 1,
        'interleave="32B" needs swizzle="32B"',
    )
    require(
        layout.interleave == NONE or tensor.type != "16U6_ALIGN16B",
        "16U6_ALIGN16B is never interleaved",
    )
    floating = "FLOAT" in tensor.type
    require(not layout.oob_nan or floating, f"oob_nan=True is for floats, not {tensor.type}")


def check_inner(name: str, count: int, tensor: Tensor, layout: Layout) -> None:
    """The rules of the innermost length of what is copied.

    Raises:
        ValueError: one is broken.
    """
    if tensor.type in WIDE_PACKED:
        require(count == 128, f"{name}={count}: {tensor.type} is copied 128 values at a time")
        return
    nbytes = count * tensor.bits // 8
    limit = SWIZZLE_BYTES.get(layout.swizzle, 128)
    require(
        layout.interleave != NONE or layout.swizzle == 0 or nbytes <= limit,
        f"{name}={count} of {tensor.type} is {nbytes} bytes: this swizzle allows {limit}",
    )


def check_box(tensor: Tensor, box: Sequence[int], layout: Layout) -> None:
    """The rules of the boxes of a tiled map.

    Raises:
        ValueError: one is broken.
    """
    within("box", box, 1, 256)
    check_inner("box[-1]", box[-1], tensor, layout)
    bits = box[-1] * tensor.bits
    require(
        layout.interleave != NONE or tensor.type in WIDE_PACKED or bits % 128 == 0,
        f"box[-1]={box[-1]} of {tensor.type} is {bits / 8:g} bytes: it must be a multiple of 16",
    )


def check_pixels(
    tensor: Tensor, corners: Sequence[Sequence[int]], channels: int, pixels: int, layout: Layout
) -> None:
    """The rules of the columns of an im2col map.

    Args:
        corners: the lower and the upper one; one number each for wide maps.

    Raises:
        ValueError: one is broken.
    """
    rank = len(tensor.shape)
    require(3 <= rank <= 5, f"shape {tensor.shape}: im2col is for 3 to 5 dimensions")
    limit = CORNERS[rank] if len(corners[0]) == rank - 2 else CORNERS[3]
    for name, corner in zip(("lower", "upper"), corners, strict=True):
        within(name, corner, -limit, limit - 1)
    within("channels", (operator.index(channels),), 1, 256)
    within("pixels", (operator.index(pixels),), 1, 1024)
    check_inner("channels", channels, tensor, layout)
    inner = tensor.shape[-1 - len(corners[0]) : -1]
    sizes = [n + up - low for n, low, up in zip(inner, *corners, strict=True)]
    require(min(sizes) > 0, f"lower={corners[0]}, upper={corners[1]}: no pixel is left of {inner}")


def uints(values: Sequence[int]) -> Any:
    """C's cuuint32_t array of *values*, innermost first."""
    return (ctypes.c_uint32 * len(values))(*reversed(values))


def ints(values: Sequence[int]) -> Any:
    """C's int array of *values*, innermost first."""
    return (ctypes.c_int * len(values))(*reversed(values))
