"""Converts a value from one type to another: the only place that does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..brain import brain_bits
from ..elements import NAT, Flat, Time
from ..errors import TypingError
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
from .builder import Builder
from .models import F16, F32, F64, I32, I64, Value, scalar_type


def cast(b: Builder, value: Value, to: Type) -> Value:
    """*value* as type *to*.

    Raises:
        TypingError: there is no such conversion, or a literal does not fit.
    """
    given = value.type
    if given == to or isinstance(to, Literal):
        return value
    if isinstance(given, Literal):
        return _literal(b, given.value, to)
    if isinstance(given, Scalar) and isinstance(to, Scalar):
        return Value(to, (_scalar(b, value.leaf, given, to),))
    both = (given, to)
    if any(all(isinstance(ty, kind) for ty in both) for kind in (Tuple, Closure, Struct)):
        items = zip(b.items(value), to.items, strict=True)  # type: ignore[attr-defined]
        return Value(to, tuple(leaf for item, ty in items for leaf in cast(b, item, ty).leaves))
    if isinstance(to, Complex):
        return _complex(b, value, to)
    if isinstance(given, Time) and isinstance(to, Time):
        return _time(b, value, given, to)
    if isinstance(given, Integer) and isinstance(to, Time):
        return Value(to, cast(b, value, types.int64).leaves)
    if isinstance(given, Record) and isinstance(to, Record) and given.dtype == to.dtype:
        pointer = value.leaf if given.space == to.space else b.to_generic(value.leaf)
        return Value(to, (pointer,))
    if isinstance(given, Flat):
        value, given = Value(given.array, value.leaves), given.array
    if isinstance(given, Array) and isinstance(to, Array):
        return value if given == to else _array(b, value, given, to)
    raise TypingError(f"{given} cannot be converted to {to}")


def _literal(b: Builder, value: Any, to: Type) -> Value:
    if isinstance(to, Scalar):
        return Value(to, (constant(value, to),))
    if isinstance(to, Complex) and isinstance(value, int | float | complex | np.generic):
        parts = (constant(n, to.part) for n in (complex(value).real, complex(value).imag))
        return Value(to, tuple(parts))
    if isinstance(to, Tuple | Struct) and isinstance(value, tuple):
        items = [cast(b, Value(Literal(v)), ty) for v, ty in zip(value, to.items, strict=True)]
        return Value(to, tuple(leaf for item in items for leaf in item.leaves))
    if value is None and to == types.none:
        return Value(to)
    if isinstance(to, Time) and isinstance(value, np.datetime64 | np.timedelta64):
        return Value(to, (ir.Constant(I64, int(value.astype(to.dtype).view(np.int64))),))
    if isinstance(to, Time) and isinstance(value, int | np.integer):
        return Value(to, (constant(value, types.int64),))
    raise TypingError(f"{value!r} cannot be converted to {to}")


def constant(value: Any, to: Scalar) -> ir.Constant:
    """A Python or NumPy number as a constant of type *to*."""
    if not isinstance(value, int | float | np.generic):
        raise TypingError(f"{value!r} cannot be converted to {to}")
    if isinstance(to, Boolean):
        return ir.Constant(scalar_type(to), int(bool(value)))
    if isinstance(to, Brain):
        return ir.Constant(scalar_type(to), brain_bits(value))
    if isinstance(to, Integer):
        return ir.Constant(scalar_type(to), _integer(value, to))
    number = float(value)
    if to.bits < 64:
        with np.errstate(over="ignore"):
            number = float(to.dtype.type(value))
    return ir.Constant(scalar_type(to), number)


def _integer(value: Any, to: Integer) -> int:
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        raise TypingError(f"{value} cannot be converted to {to}")
    number = int(value)  # Cuts the fraction.
    low, high = -(2 ** (to.bits - 1)), 2**to.bits - 1
    if to.signed and not to.weak:
        high = 2**to.bits - 1  # Hexadecimal masks such as 0xFFFFFFFF are bit patterns.
    elif to.weak:
        high = 2 ** (to.bits - 1) - 1
    if not low <= number <= high:
        raise TypingError(f"the integer {number} does not fit in {to.bits} bits: {to}")
    half: int = 2 ** (to.bits - 1)
    wrapped: int = number & (2 * half - 1)
    return wrapped - 2 * half if to.signed and wrapped >= half else wrapped


def _scalar(b: Builder, leaf: ir.Value, given: Scalar, to: Scalar) -> ir.Value:
    if isinstance(given, Brain):
        bits = b.llvm.shl(b.llvm.zext(leaf, I32), ir.Constant(I32, 16))
        return _scalar(b, b.llvm.bitcast(bits, F32), types.float32, to)
    if isinstance(to, Brain):
        return _to_brain(b, _scalar(b, leaf, given, types.float32))
    target = scalar_type(to)
    if isinstance(to, Boolean):
        if isinstance(given, Float):
            return b.llvm.fcmp_unordered("!=", leaf, ir.Constant(leaf.type, 0.0))
        return b.llvm.icmp_unsigned("!=", leaf, ir.Constant(leaf.type, 0))
    if isinstance(given, Float):
        return _from_float(b, leaf, to, target)
    signed = isinstance(given, Integer) and given.signed
    if isinstance(to, Float):
        convert = b.llvm.sitofp if signed else b.llvm.uitofp
        return convert(leaf, target)
    if to.bits < leaf.type.width:
        return b.llvm.trunc(leaf, target)
    if to.bits == leaf.type.width:
        return leaf
    extend = b.llvm.sext if signed else b.llvm.zext
    return extend(leaf, target)


def _to_brain(b: Builder, leaf: ir.Value) -> ir.Value:
    """The upper half of a float32, rounded to even; nan stays one."""
    bits = b.llvm.bitcast(leaf, I32)
    upper = b.llvm.lshr(bits, ir.Constant(I32, 16))
    odd = b.llvm.and_(upper, ir.Constant(I32, 1))
    rounded = b.llvm.add(bits, b.llvm.add(odd, ir.Constant(I32, 0x7FFF)))
    is_nan = b.llvm.fcmp_unordered("uno", leaf, leaf)
    quiet = b.llvm.or_(upper, ir.Constant(I32, 0x40))
    half = b.llvm.lshr(rounded, ir.Constant(I32, 16))
    return b.llvm.trunc(b.llvm.select(is_nan, quiet, half), ir.IntType(16))


def _from_float(b: Builder, leaf: ir.Value, to: Scalar, target: ir.Type) -> ir.Value:
    if isinstance(to, Integer):
        # Through 64 bits: a narrow integer then wraps, as NumPy's does.
        wide = I64 if to.bits < 32 else target
        convert = b.llvm.fptosi if to.signed or to.bits < 32 else b.llvm.fptoui
        result = convert(leaf, wide)
        return result if wide is target else b.llvm.trunc(result, target)
    if target == leaf.type:
        return leaf
    widths = {F16: 16, F32: 32, F64: 64}
    resize = b.llvm.fpext if widths[target] > widths[leaf.type] else b.llvm.fptrunc
    return resize(leaf, target)


def _complex(b: Builder, value: Value, to: Complex) -> Value:
    given = value.type
    if isinstance(given, Complex):
        parts = (_scalar(b, leaf, given.part, to.part) for leaf in value.leaves)
        return Value(to, tuple(parts))
    if not isinstance(given, Scalar):
        raise TypingError(f"{given} cannot be converted to {to}")
    return Value(to, (_scalar(b, value.leaf, given, to.part), constant(0.0, to.part)))


def _time(b: Builder, value: Value, given: Time, to: Time) -> Value:
    """A date or a duration in another unit: exact in a finer one, rounded down in a coarser."""
    ratio = given.ratio(to)
    if ratio is None:
        raise TypingError(f"{given} cannot be converted to {to} in a kernel: do it on the host")
    up, down = ratio
    ticks = b.llvm.mul(value.leaf, b.int64(up)) if up > 1 else value.leaf
    if down > 1:
        rest = b.llvm.srem(ticks, b.int64(down))
        below = b.llvm.icmp_signed("<", rest, b.int64(0))
        quotient = b.llvm.sdiv(ticks, b.int64(down))
        ticks = b.llvm.select(below, b.llvm.sub(quotient, b.int64(1)), quotient)
    unknown = b.llvm.icmp_signed("==", value.leaf, b.int64(NAT))
    return Value(to, (b.llvm.select(unknown, b.int64(NAT), ticks),))


def _array(b: Builder, value: Value, given: Array, to: Array) -> Value:
    if (given.dtype, given.ndim) != (to.dtype, to.ndim) or to.layout not in (given.layout, "A"):
        raise TypingError(f"{given} cannot be converted to {to}")
    if to.space not in (given.space, "generic") or (given.readonly and not to.readonly):
        raise TypingError(f"{given} cannot be converted to {to}")
    pointer = value.leaves[0]
    if given.space != to.space:
        pointer = b.to_generic(pointer)
    leaves = (pointer, *value.leaves[1:])
    if given.layout != to.layout:
        leaves = (pointer, *shape(value), *strides(b, value))
    return Value(to, leaves)


def shape(array: Value) -> tuple[ir.Value, ...]:
    """The lengths of an array's dimensions."""
    ty = array.type
    assert isinstance(ty, Array)
    return array.leaves[1 : 1 + ty.ndim]


def strides(b: Builder, array: Value) -> tuple[ir.Value, ...]:
    """The strides of an array in bytes; computed where its layout implies them."""
    ty = array.type
    assert isinstance(ty, Array)
    if ty.layout == "A":
        return array.leaves[1 + ty.ndim :]
    step: ir.Value = b.int64(ty.dtype.dtype.itemsize)
    found = []
    lengths = shape(array)
    for length in reversed(lengths) if ty.layout == "C" else lengths:
        found.append(step)
        step = b.llvm.mul(step, length, flags=("nsw",))
    return tuple(reversed(found) if ty.layout == "C" else found)
