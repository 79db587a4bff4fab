"""Which type two types give: `promote` for arithmetic, `join` where control flow meets."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import types
from ..elements import Time
from ..types import (
    Array,
    Boolean,
    Brain,
    Closure,
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


def arithmetic(ty: Scalar) -> Scalar:
    """The type that *ty* computes in: bools and integers narrower than 32 bits are weak ints.

    bfloat16 is float32.
    """
    if isinstance(ty, Brain):
        return types.float32
    if isinstance(ty, Boolean) or (isinstance(ty, Integer) and ty.bits < 32):
        return types.py_int
    return ty


@functools.cache
def promote(left: Scalar, right: Scalar) -> Scalar:
    """The type of ``left + right``, as NumPy 2 (NEP 50) has it for scalars.

    Differs on purpose in two ways: narrow integers compute as weak ints, and uint64 with a
    signed integer is uint64, as in C.
    """
    left, right = arithmetic(left), arithmetic(right)
    if left == right:
        return left
    if left.weak or right.weak:
        return _promote_weak(left, right)
    if isinstance(left, Integer) and isinstance(right, Integer):
        return _promote_integers(left, right)
    return types.scalar_from_dtype(np.promote_types(left.dtype, right.dtype))


@functools.cache
def promote_complex(left: Type, right: Type) -> Complex | None:
    """The type of ``left + right`` where one at least is complex; None for other types."""
    parts = []
    for ty in (left, right):
        if isinstance(ty, Complex):
            parts.append(ty.part)
        elif isinstance(ty, Scalar):
            parts.append(arithmetic(ty))  # type: ignore[arg-type]
        else:
            return None
    part = promote(parts[0], parts[1])
    if not isinstance(part, Float):
        return None
    kinds = {types.float32: types.complex64, types.float64: types.complex128}
    return kinds.get(part, types.py_complex)


def _promote_weak(left: Scalar, right: Scalar) -> Scalar:
    weak, other = (left, right) if left.weak else (right, left)
    if isinstance(weak, Float) and isinstance(other, Integer):
        return types.py_float if other.weak else types.float64
    return other


def _promote_integers(left: Integer, right: Integer) -> Integer:
    if left.signed == right.signed:
        return left if left.bits >= right.bits else right
    unsigned = right if left.signed else left
    return types.uint64 if unsigned.bits == 64 else types.int64


def fits(value: Any, ty: Type) -> bool:
    """Whether the number *value* is held by *ty* without loss (floats: without overflow)."""
    if isinstance(value, np.timedelta64):  # NumPy holds it a signed integer.
        return False
    if isinstance(ty, Boolean):
        return isinstance(value, bool | np.bool_)
    if isinstance(ty, Integer):
        if not isinstance(value, int | np.integer):
            return False
        info = np.iinfo(ty.dtype)
        return info.min <= int(value) <= info.max
    if isinstance(ty, Float) and isinstance(value, int | float | np.number):
        if isinstance(value, float | np.floating) and not np.isfinite(value):
            return True
        size: Any = abs(value)
        return bool(size <= float(np.finfo(ty.dtype).max))
    return False


@functools.lru_cache(maxsize=4096)
def join(left: Type, right: Type) -> Type | None:
    """The type of a variable that holds *left* on one path and *right* on another.

    None if there is none. Literals of Python numbers take the other side's type if they fit;
    a weak int of unknown value stays 64 bits wide beside a narrower integer.
    """
    if left == right:
        return left
    wide_left, wide_right = types.widen(left), types.widen(right)
    if isinstance(wide_left, Scalar) and isinstance(wide_right, Scalar):
        return _join_scalars(left, right, wide_left, wide_right)
    if isinstance(wide_left, Tuple) and isinstance(wide_right, Tuple):
        return _join_tuples(wide_left, wide_right)
    if isinstance(left, Array) and isinstance(right, Array):
        return _join_arrays(left, right)
    if isinstance(wide_left, Complex) or isinstance(wide_right, Complex):
        return promote_complex(wide_left, wide_right)
    if isinstance(wide_left, Struct) and isinstance(wide_right, Struct):
        joined = _join_tuples(Tuple(wide_left.items), Tuple(wide_right.items))
        same = wide_left.cls is wide_right.cls
        return Struct(wide_left.cls, wide_left.names, joined.items) if same and joined else None
    if isinstance(left, Record) and isinstance(right, Record) and left.dtype == right.dtype:
        return left.placed("generic", left.readonly or right.readonly)
    if isinstance(left, Closure) and isinstance(right, Closure):
        items = _join_tuples(Tuple(left.items), Tuple(right.items))
        same = left.function is right.function
        return Closure(left.function, items.items) if same and items else None
    return wide_left if wide_left == wide_right else None


def _join_scalars(left: Type, right: Type, wide_left: Scalar, wide_right: Scalar) -> Scalar:
    if wide_left == wide_right:
        return wide_left
    for literal, wide, other in ((left, wide_left, wide_right), (right, wide_right, wide_left)):
        if isinstance(literal, Literal) and wide.weak and fits(literal.value, other):
            return other
    if isinstance(wide_left, Boolean) or isinstance(wide_right, Boolean):
        other = wide_right if isinstance(wide_left, Boolean) else wide_left
        return types.py_int if isinstance(other, Integer) and other.bits < 32 else other
    if arithmetic(wide_left) != wide_left or arithmetic(wide_right) != wide_right:
        # Narrow integers compute as Python ints, so that is what a variable of both holds.
        return _join_scalars(left, right, arithmetic(wide_left), arithmetic(wide_right))
    weak, other = (wide_left, wide_right) if wide_left.weak else (wide_right, wide_left)
    if weak.weak and isinstance(weak, Integer) and isinstance(other, Integer):
        return other if other.bits == 64 else weak
    if weak.weak and isinstance(weak, Float) and isinstance(other, Float):
        return other
    if isinstance(wide_left, Integer) and isinstance(wide_right, Integer) and not weak.weak:
        return _promote_integers(wide_left, wide_right)
    return promote(wide_left, wide_right)


def _join_tuples(left: Tuple, right: Tuple) -> Tuple | None:
    if len(left.items) != len(right.items):
        return None
    items = [join(a, b) for a, b in zip(left.items, right.items, strict=True)]
    found = tuple(item for item in items if item is not None)
    return Tuple(found) if len(found) == len(items) else None


def _join_arrays(left: Array, right: Array) -> Array | None:
    if (left.dtype, left.ndim) != (right.dtype, right.ndim):
        return None
    return left.copy(
        layout=left.layout if left.layout == right.layout else "A",
        space=left.space if left.space == right.space else "generic",
        readonly=left.readonly or right.readonly,
        align=min(left.align, right.align) or max(left.align, right.align),
    )


def converts(given: Type, declared: Type) -> bool:
    """Whether a value of type *given* is converted implicitly to *declared*."""
    if isinstance(given, Scalar) and isinstance(declared, Scalar):
        return True
    if isinstance(given, Record) and isinstance(declared, Record):
        return given.dtype == declared.dtype
    if isinstance(declared, Complex):
        return isinstance(given, Scalar | Complex)
    if isinstance(given, Array) and isinstance(declared, Array):
        return join(given, declared) == declared
    if isinstance(given, Time) and isinstance(declared, Time):
        return given.ratio(declared) is not None
    if isinstance(declared, Time):  # As NumPy, which takes an int as a count of the unit.
        return isinstance(given, Integer)
    return given == declared
