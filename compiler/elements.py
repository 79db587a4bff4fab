"""Types beyond numbers: dates, short vectors, C pointers, and arrays that a kernel names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import types
from .types import Array, Literal, Scalar, Stored, Type

NAT = -(2**63)
_ATTOSECONDS = {
    "W": 604800 * 10**18, "D": 86400 * 10**18, "h": 3600 * 10**18, "m": 60 * 10**18,
    "s": 10**18, "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1,
}  # fmt: skip
_MONTHS = {"Y": 12, "M": 1}


class Time(Stored):
    """A datetime64 or timedelta64: a count of a unit, or NaT.

    Attributes:
        is_duration: whether it is a timedelta64.
        unit, step: the unit, and how many of it one tick is.
    """

    __slots__ = ("is_duration", "step", "unit")

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__(dtype.name, dtype.str)
        self.dtype = dtype
        self.is_duration = dtype.kind == "m"
        self.unit, self.step = np.datetime_data(dtype)

    def ratio(self, to: Time) -> tuple[int, int] | None:
        """What ticks are multiplied by and divided by to be those of *to*; None: no such factor."""
        if self.is_duration != to.is_duration:
            return None
        if "generic" in (self.unit, to.unit):
            return (1, 1)
        for table in (_ATTOSECONDS, _MONTHS):
            if self.unit in table and to.unit in table:
                own, other = table[self.unit] * self.step, table[to.unit] * to.step
                common = math.gcd(own, other)
                return own // common, other // common
        return None


def _time(dtype: np.dtype[Any]) -> Time | None:
    return Time(dtype) if dtype.kind in "mM" else None


types.FROM_DTYPE.append(_time)


def NPDatetime(unit: str) -> Time:
    """The type of datetime64[unit]."""
    return Time(np.dtype(f"M8[{unit}]"))


def NPTimedelta(unit: str) -> Time:
    """The type of timedelta64[unit]."""
    return Time(np.dtype(f"m8[{unit}]"))


class Vector(Stored):
    """One to four numbers of a type, as CUDA's float4: a value, not an object.

    Attributes:
        base: the type of a component.
        count: how many there are.
    """

    __slots__ = ("base", "count")

    def __init__(self, base: Scalar, count: int) -> None:
        super().__init__(f"{base.name}x{count}", base, count)
        self.base, self.count = base, count
        names = list("xyzw"[:count])
        self.dtype = np.dtype({"names": names, "formats": [base.dtype] * count})

    @property
    def width(self) -> int:
        """How many components one access of memory moves: 16 bytes at most."""
        if self.count == 3:
            return 1
        return min(self.count, 16 // self.base.dtype.itemsize)

    @property
    def alignment(self) -> int:
        """What addresses of such elements are multiples of, in bytes."""
        return self.width * int(self.base.dtype.itemsize)

    def __call__(self, *args: Any) -> Any:
        """A signature if types are given; else the vector of these numbers, to pass to a kernel."""
        if not args or any(isinstance(arg, Type) for arg in args):
            return super().__call__(*args)
        parts: list[Any] = []
        for arg in args:
            parts += arg if isinstance(arg, tuple | list | np.ndarray) else [arg]
        if len(parts) == 1:
            parts *= self.count
        if len(parts) != self.count:
            raise TypeError(f"{self} has {self.count} components, {len(parts)} were given")
        return VectorValue(self, tuple(self.base.dtype.type(part) for part in parts))


class VectorValue(tuple[Any, ...]):
    """A vector on the host: a tuple whose items are also .x .y .z .w.

    Attributes:
        type: the kernel's type of it.
    """

    type: Vector

    def __new__(cls, ty: Vector, parts: tuple[Any, ...]) -> VectorValue:
        """The vector of a type with these components."""
        made = super().__new__(cls, parts)
        made.type = ty
        return made

    def __getattr__(self, name: str) -> Any:
        place = "xyzw".find(name) if len(name) == 1 else -1
        if not 0 <= place < len(self):
            raise AttributeError(f"{self.type} has no component {name!r}")
        return self[place]

    def __repr__(self) -> str:
        return f"{self.type}({', '.join(str(part) for part in self)})"


_BASES = {
    types.int8: "char", types.uint8: "uchar", types.int16: "short", types.uint16: "ushort",
    types.int32: "int", types.uint32: "uint", types.int64: "longlong",
    types.uint64: "ulonglong", types.float32: "float", types.float64: "double",
}  # fmt: skip
# The vector types by both names: float32x4, and CUDA's float4.
VECTORS: dict[str, Vector] = {}
for _base, _alias in _BASES.items():
    for _count in range(1, 5):
        _vector = Vector(_base, _count)
        VECTORS[_vector.name] = VECTORS[f"{_alias}{_count}"] = _vector


class Elementwise(Type):
    """An expression of arrays, such as ``x + 1``: its elements are computed where they are used.

    Attributes:
        function: what is called for each element.
        items: the types of its operands: arrays, such expressions, numbers.
        dtype: the type of an element.
        ndim: the number of dimensions.
    """

    __slots__ = ("dtype", "function", "items", "ndim")

    def __init__(self, function: Any, items: tuple[Type, ...], dtype: Stored, ndim: int) -> None:
        name = getattr(function, "__name__", "function")
        super().__init__(f"{name}({', '.join(ty.name for ty in items)})", id(function), items)
        self.function, self.items, self.dtype, self.ndim = function, items, dtype, ndim


class Flat(Type):
    """The elements of an array in C order, which it does not lie in.

    Attributes:
        array: the type of the array.
    """

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        super().__init__(f"{array.name}.flat", array)
        self.array = array


class CPointer(Type):
    """A C pointer to elements of a type, such as a raw address that a launch passes.

    Attributes:
        dtype: the type of an element.
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        element = types.from_dtype(dtype)
        super().__init__(f"CPointer({element.name})", element)
        self.dtype = element


# Arrays of the host or the device that a kernel names


def is_array_class(cls: type) -> bool:
    """Whether instances are arrays: NumPy's, or of a library with the CUDA Array Interface."""
    return issubclass(cls, np.ndarray) or hasattr(cls, "__cuda_array_interface__")


def is_captured(ty: Type) -> bool:
    """Whether it is the type of an array that the kernel's source names."""
    return isinstance(ty, Literal) and is_array_class(type(ty.value))


def captured_type(value: Any, space: str) -> Array:
    """The type of a captured array; one of the host is constant, one of the device is itself.

    Args:
        space: the memory in which constants are put.
    """
    if isinstance(value, np.ndarray):
        return Array(types.from_dtype(value.dtype), value.ndim, "C", space, readonly=True)
    found = value.__cuda_array_interface__
    dtype = dtype_of(found)
    order = "C"
    if found.get("strides") is not None:
        order = layout(tuple(found["shape"]), tuple(found["strides"]), dtype.itemsize)
    element = types.from_dtype(dtype)
    return Array(element, len(found["shape"]), order, "global", readonly=bool(found["data"][1]))


def dtype_of(interface: dict[str, Any]) -> np.dtype[Any]:
    """The dtype of a CUDA Array Interface."""
    plain: np.dtype[Any] = np.dtype(interface["typestr"])
    fields = interface.get("descr")
    return np.dtype(fields) if plain.kind == "V" and fields and fields[0][0] else plain


def layout(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> str:
    """'C', 'F' or 'A'; an array that is both C and F contiguous is 'C'."""
    if _is_contiguous(shape[::-1], strides[::-1], itemsize):
        return "C"
    return "F" if _is_contiguous(shape, strides, itemsize) else "A"


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether the first axis moves fastest, and each next as far as those before it reach."""
    if 0 in shape:
        return True
    step = itemsize
    for length, stride in zip(shape, strides, strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True
