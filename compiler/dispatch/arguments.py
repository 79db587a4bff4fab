"""Kernel arguments: the type of each, and the leaves that a launch passes for it."""

from __future__ import annotations

import ctypes
import dataclasses
import enum
import functools
import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import cudadrv
from cudadrv import DeviceArray

from .. import types
from ..brain import brain_bits
from ..elements import CPointer, Time, Vector, VectorValue, layout
from ..types import (
    Array,
    Boolean,
    Brain,
    Complex,
    Float,
    Integer,
    Literal,
    Record,
    Scalar,
    Struct,
    Tuple,
    Type,
)
from .transfers import InOut, Transfer, Writeback, on_device

# From classes to what gives the types of their instances, and from classes of types to struct
# codes and what gives the leaves of a value: those that extending.py adds.
TYPEOF: dict[type, Callable[[Any], Type]] = {}
PACKERS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {}


def typeof(value: Any) -> Type:
    """The kernel type of a launch argument.

    Raises:
        TypeError: a kernel cannot take such an object.
        OverflowError: an int does not fit in 64 bits.
    """
    known = _PLAIN.get(type(value))
    if known is not None:
        return known
    if type(value) is int:
        return _int_type(value)
    if type(value) is DeviceArray:
        return _device_array_type(value)
    if isinstance(value, Transfer):
        return typeof(value.value)
    if isinstance(value, DeviceArray | np.ndarray):
        if hasattr(value, "mask"):  # numpy.ma, which this would else import
            raise TypeError("kernels know no masks: pass array.filled(value), or array.data")
        return _array_type(value.dtype, value.shape, value.strides, _is_readonly(value))
    if isinstance(value, np.generic):
        return types.from_dtype(value.dtype)
    if isinstance(value, VectorValue):
        return value.type
    for cls in type(value).__mro__:
        if cls in TYPEOF:
            return TYPEOF[cls](value)
    names = field_names(value)
    if names is not None:
        items = tuple(typeof(getattr(value, name)) for name in names)
        return Struct(type(value), names, items)
    if isinstance(value, tuple):
        return Tuple(tuple(typeof(item) for item in value))
    if hasattr(value, "__cuda_array_interface__"):
        array = cudadrv.as_cuda_array(value)
        return _array_type(array.dtype, array.shape, array.strides, _is_readonly(array))
    if isinstance(value, int):  # An IntEnum, for example.
        return _int_type(value)
    if isinstance(value, str | enum.Enum):  # Each value has a specialisation of its own.
        return Literal(value)
    raise TypeError(
        f"{type(value).__name__} is no kernel argument: pass NumPy or device arrays, numbers, "
        f"bools, strings, None or tuples of these"
    )


_PLAIN: dict[type, Type] = {
    bool: types.boolean,
    float: types.py_float,
    complex: types.py_complex,
    np.complex64: types.complex64,
    np.complex128: types.complex128,
    type(None): types.none,
    **{ty.dtype.type: ty for ty in types.SCALARS},
}


def field_names(value: Any) -> tuple[str, ...] | None:
    """The fields of a named tuple or dataclass; None for anything else."""
    if isinstance(value, tuple):
        return getattr(value, "_fields", None)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    return None


def _int_type(value: int) -> Type:
    if -(2**63) <= value < 2**63:
        return types.py_int
    if 0 <= value < 2**64:
        return types.uint64
    raise OverflowError(f"the int {value} does not fit in 64 bits")


def _is_readonly(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    return bool(getattr(value, "readonly", False))


@functools.lru_cache(maxsize=1024)
def _array_type(
    dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], readonly: bool
) -> Array:
    element = types.from_dtype(dtype)
    return Array(element, len(shape), layout(shape, strides, dtype.itemsize), readonly=readonly)


def _device_array_type(array: DeviceArray) -> Array:
    """The type of a device array, which keeps it for the next time."""
    try:
        return array.kernel_type  # type: ignore[no-any-return]
    except AttributeError:
        found = _array_type(array.dtype, array.shape, array.strides, _is_readonly(array))
        return canonical(found)


_CANONICAL: dict[Array, Array] = {}


def canonical(ty: Array) -> Array:
    """The one object that stands for all types equal to *ty*."""
    return _CANONICAL.setdefault(ty, ty)


def accepted(ty: Type, strict: bool) -> list[Type]:
    """What a compiled launcher takes for a parameter of type *ty*: see native.body."""
    if not isinstance(ty, Array):
        weak = not isinstance(ty, Scalar) or ty.weak or ty is types.boolean
        return [ty] if weak or not strict else []
    if strict:
        return [canonical(ty)]
    found: list[Type] = []
    for order, readonly in itertools.product("CFA", (False, True)):
        given = Array(ty.dtype, ty.ndim, order, readonly=readonly)
        try:
            check_array(ty, given)
        except TypeError:
            continue
        found.append(canonical(given))
    return found


class Packer:
    """Turns arguments into the leaves of the parameters of one specialisation.

    Attributes:
        codes: a struct code a leaf.
    """

    def __init__(self, names: tuple[str, ...], args: tuple[Type, ...]) -> None:
        self.names = names
        self.args = args
        self.codes = "".join(code for ty in args for code in _codes(ty))

    def pack(
        self,
        values: tuple[Any, ...],
        stream: Any,
        retr: list[Writeback],
        extensions: Sequence[Any] = (),
    ) -> list[Any]:
        """The leaves of *values*; host arrays are copied in, and queue their way back on *retr*.

        Args:
            extensions: the last one sees the arguments first, see jit.

        Raises:
            TypeError, OverflowError: a value does not convert; the message names the argument.
        """
        leaves: list[Any] = []
        for position, (ty, value) in enumerate(zip(self.args, values, strict=True)):
            try:
                for each in reversed(extensions):
                    ty, value = each.prepare_args(ty, value, stream=stream, retr=retr)
                _pack(ty, value, leaves, stream, retr)
            except (TypeError, ValueError, OverflowError) as error:
                kind = type(error)
                raise kind(f"argument {position} ({self.names[position]}): {error}") from None
        return leaves


def _codes(ty: Type) -> str:
    if isinstance(ty, Array):
        return "P" + "q" * (ty.ndim * (2 if ty.layout == "A" else 1))
    if isinstance(ty, Tuple | Struct):
        return "".join(_codes(item) for item in ty.items)
    if isinstance(ty, Complex):
        return _codes(ty.part) * 2
    if isinstance(ty, Record):
        return "P"
    if isinstance(ty, Boolean):
        return "?"
    if isinstance(ty, Vector):
        return _codes(ty.base) * ty.count
    if isinstance(ty, Scalar):
        code = ty.dtype.str[1:]
        return {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I",
                "u8": "Q", "f2": "e", "f4": "f", "f8": "d", "V2": "H"}[code]  # fmt: skip
    return PACKERS[type(ty)][0] if type(ty) in PACKERS else ""


def _pack(ty: Type, value: Any, leaves: list[Any], stream: Any, retr: list[Writeback]) -> None:
    if isinstance(ty, Array):
        leaves += _array_leaves(ty, value, stream, retr)
    elif isinstance(ty, Scalar):
        leaves.append(_number(ty, value))
    elif isinstance(ty, Complex):
        leaves += _complex(ty, value)
    elif type(ty) in PACKERS:
        leaves += PACKERS[type(ty)][1](ty, value)
    elif isinstance(ty, Record):
        leaves.append(_record(ty, value, stream, retr))
    elif isinstance(ty, Struct):
        if not isinstance(value, ty.cls):
            raise TypeError(f"expected {ty}, got {_kind(value)}")
        for item_type, name in zip(ty.items, ty.names, strict=True):
            _pack(item_type, getattr(value, name), leaves, stream, retr)
    elif isinstance(ty, Tuple):
        if not isinstance(value, tuple) or len(value) != len(ty.items):
            raise TypeError(f"expected a tuple {ty}, got {value!r}")
        for item_type, item in zip(ty.items, value, strict=True):
            _pack(item_type, item, leaves, stream, retr)
    elif isinstance(ty, Vector):
        if not isinstance(value, VectorValue) or value.type != ty:
            raise TypeError(f"expected {ty}, got {_kind(value)}")
        leaves += [_number(ty.base, part) for part in value]
    elif isinstance(ty, Literal):
        if Literal(value) != ty:
            raise TypeError(f"expected {ty.value!r}, got {value!r}")
    elif value is not None:
        raise TypeError(f"expected None, got {value!r}")


def _ticks(ty: Time, value: Any) -> list[int]:
    """The count that a date or duration is in the unit of the parameter."""
    try:
        return [int(np.asarray(value).astype(ty.dtype, casting="same_kind").view(np.int64))]
    except TypeError:
        raise TypeError(f"expected {ty}, got {_kind(value)}") from None


def _address(ty: CPointer, value: Any) -> list[int]:
    """An int, a ctypes pointer or a device array as an address; None is null."""
    if hasattr(value, "__cuda_array_interface__"):
        return [value.__cuda_array_interface__["data"][0]]
    if value is None or hasattr(value, "__index__"):
        return [0 if value is None else value.__index__()]
    if isinstance(value, ctypes.c_void_p):
        return [value.value or 0]
    raise TypeError(f"expected an address for {ty}, got {_kind(value)}")


PACKERS[Time] = ("q", _ticks)
PACKERS[CPointer] = ("P", _address)


def _number(ty: Scalar, value: Any) -> Any:
    if isinstance(ty, Boolean):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"expected a bool, got {_kind(value)}")
        return bool(value)
    if isinstance(ty, Integer):
        if not hasattr(value, "__index__"):
            raise TypeError(f"expected an int for {ty}, got {_kind(value)}")
        number = value.__index__()
        bits = ty.bits
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if ty.signed else (0, 2**bits)
        if not low <= number < high:
            raise OverflowError(f"{number} does not fit in {ty}")
        return number
    if isinstance(ty, Brain):
        return brain_bits(_number(types.float32, float(value)))
    assert isinstance(ty, Float)
    if not isinstance(value, int | float | np.number) or isinstance(value, np.complexfloating):
        raise TypeError(f"expected a number for {ty}, got {_kind(value)}")
    number = float(value)
    if ty.bits < 64:
        try:
            struct.pack("<f" if ty.bits == 32 else "<e", number)
        except OverflowError:
            raise OverflowError(f"{number} does not fit in {ty}") from None
    return number


def _complex(ty: Complex, value: Any) -> tuple[float, float]:
    if not isinstance(value, int | float | complex | np.number):
        raise TypeError(f"expected a number for {ty}, got {_kind(value)}")
    number = complex(value)
    return _number(ty.part, number.real), _number(ty.part, number.imag)


def _record(ty: Record, value: Any, stream: Any, retr: list[Writeback]) -> int:
    """The address of a device copy of a record, which is copied back after the launch."""
    if not isinstance(value, np.void) or value.dtype != ty.dtype:
        raise TypeError(f"expected {ty}, got {_kind(value)}")
    device = cudadrv.to_device(np.array(value).reshape(1), stream=stream)

    def finish() -> None:
        result = device.copy_to_host()[0]
        for name in value.dtype.names or ():
            value[name] = result[name]
        device.close()

    retr.append(finish)
    return device.handle


def _kind(value: Any) -> str:
    try:
        return (
            f"{typeof(value)} ({value!r})" if isinstance(value, int | float) else str(typeof(value))
        )
    except (TypeError, OverflowError):
        return type(value).__name__


def _array_leaves(ty: Array, value: Any, stream: Any, retr: list[Writeback]) -> list[Any]:
    way = value if isinstance(value, Transfer) else InOut
    value = value.value if isinstance(value, Transfer) else value
    if not isinstance(value, DeviceArray):
        if isinstance(value, np.ndarray) and not cudadrv.is_cuda_array(value):
            check_array(ty, typeof(value))
            value = on_device(value, way, stream, retr)
        elif hasattr(value, "__cuda_array_interface__"):
            value = cudadrv.as_cuda_array(value)
        else:
            raise TypeError(f"expected an array {ty}, got {_kind(value)}")
    given = typeof(value)
    if given is not ty:
        check_array(ty, given)
    leaves = [value.handle, *value.shape, *value.strides]
    if type(value) is DeviceArray:
        # From now on a compiled launcher knows it.
        value.leaves = struct.pack(f"Q{2 * value.ndim}q", *leaves)
        value.kernel_type = given
    return leaves if ty.layout == "A" else leaves[: 1 + ty.ndim]


def check_array(expected: Array, given: Type) -> None:
    """Raise TypeError unless an array of type *given* can be passed as *expected*."""
    if not isinstance(given, Array):
        raise TypeError(f"expected an array {expected}, got {given}")
    if given.dtype != expected.dtype:
        raise TypeError(f"expected an array of {expected.dtype}, got one of {given.dtype}")
    if given.ndim != expected.ndim:
        raise TypeError(f"expected {expected.ndim} dimensions ({expected}), got {given.ndim}")
    if (expected.layout not in ("A", given.layout) and given.ndim > 1) or (
        expected.layout != "A" and given.layout == "A"
    ):
        raise TypeError(
            f"expected a contiguous array ({expected}), got strides that are not: copy it with "
            f"np.ascontiguousarray, or declare it with ':' instead of '::1'"
        )
    if given.readonly and not expected.readonly:
        raise TypeError("the array is read-only, and the kernel's signature may write to it")
