"""Rows of Python's builtins, of casts, and of the functions behind loops."""

from __future__ import annotations

import builtins
import operator
from types import UnionType
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..frontend import internal
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import Value, scalar_type
from ..types import Boolean, Float, Integer, Literal, Scalar, Stored, Struct, Type, number, widen
from ..typing.promotion import arithmetic, join
from ..typing.registry import REGISTRY, Match
from .operators import no_lowering

row = REGISTRY.function


# Ranges


def _range_start(start: Type) -> Match | None:
    ty = number(start)
    if not isinstance(ty, Integer):
        raise TypingError(f"range takes ints, not {types.widen(start)}")
    return Match((types.py_int,), types.py_int)


@row(internal.range_start, rule=_range_start)
def range_start(b: Builder, match: Match, start: Value) -> Value:
    """The first value of a range"""
    return start


def _range_more(value: Type, stop: Type, step: Type) -> Match | None:
    for bound in (stop, step):
        if not isinstance(number(bound), Integer):
            raise TypingError(f"range takes ints, not {types.widen(bound)}")
    if isinstance(step, Literal) and step.value == 0:
        raise TypingError("the step of range must not be zero")
    sign = (step.value > 0) if isinstance(step, Literal) else None
    return Match((types.py_int,) * 3, types.boolean, data=sign)


@row(internal.range_more, rule=_range_more)
def range_more(b: Builder, match: Match, value: Value, stop: Value, step: Value) -> Value:
    """Whether the range goes on; the sign of a run-time step decides how it ends"""
    up = b.llvm.icmp_signed("<", value.leaf, stop.leaf)
    if match.data is True:
        return Value(types.boolean, (up,))
    down = b.llvm.icmp_signed(">", value.leaf, stop.leaf)
    if match.data is False:
        return Value(types.boolean, (down,))
    positive = b.llvm.icmp_signed(">", step.leaf, b.int64(0))
    negative = b.llvm.icmp_signed("<", step.leaf, b.int64(0))
    more = b.llvm.select(positive, up, b.llvm.and_(negative, down))
    return Value(types.boolean, (more,))


@row(internal.range_next, rule=lambda value, step: Match((types.py_int,) * 2, types.py_int))
def range_next(b: Builder, match: Match, value: Value, step: Value) -> Value:
    """The next value; a range never passes the largest integer"""
    return Value(types.py_int, (b.llvm.add(value.leaf, step.leaf, flags=("nsw",)),))


row(
    internal.range_length,
    rule=lambda start, stop, step: Match(
        (types.py_int,) * 3, types.py_int, python=internal.range_length
    ),
)(no_lowering)


# Casts


def _cast_to(to: Scalar) -> Any:
    def rule(value: Type) -> Match | None:
        return Match((to,), to) if number(value) else None

    return rule


def identity(b: Builder, match: Match, value: Value) -> Value:
    """The argument, which the match has had converted"""
    return value


for _ty in types.SCALARS:
    row(_ty, _ty.dtype.type, rule=_cast_to(_ty), name=_ty.name)(identity)
row(types.bfloat16, rule=_cast_to(types.bfloat16), name="bfloat16")(identity)
row(builtins.float, rule=_cast_to(types.py_float))(identity)
row(builtins.bool, rule=_cast_to(types.boolean))(identity)


def _int(value: Type) -> Match | None:
    ty = number(value)
    to = types.uint64 if ty == types.uint64 else types.py_int
    return Match((to,), to) if ty else None


row(builtins.int, rule=_int)(identity)


# abs, min, max


def _abs(value: Type) -> Match | None:
    ty = number(value)
    return Match((arithmetic(ty),), arithmetic(ty)) if ty else None


@row(builtins.abs, operator.abs, rule=_abs)
def absolute(b: Builder, match: Match, x: Value) -> Value:
    """abs(x)"""
    ty = x.type
    if isinstance(ty, Float):
        return Value(ty, (fabs(b, x.leaf),))
    if isinstance(ty, Integer) and not ty.signed:
        return x
    negative = b.llvm.icmp_signed("<", x.leaf, ir.Constant(x.leaf.type, 0))
    return Value(ty, (b.llvm.select(negative, b.llvm.neg(x.leaf), x.leaf),))


def fabs(b: Builder, leaf: ir.Value) -> ir.Value:
    """The absolute value of a float."""
    if isinstance(leaf.type, ir.HalfType):
        word = ir.IntType(16)
        positive = b.llvm.and_(b.llvm.bitcast(leaf, word), ir.Constant(word, 0x7FFF))
        return b.llvm.bitcast(positive, leaf.type)
    bits = 32 if isinstance(leaf.type, ir.FloatType) else 64
    return b.intrinsic(f"llvm.fabs.f{bits}", leaf.type, [leaf])


def _extreme(*values: Type) -> Match | None:
    if len(values) == 1 and isinstance(values[0], types.Tuple) and values[0].items:
        match = _extreme(*values[0].items)
        return match and Match((types.Tuple(match.args),), match.returns)  # type: ignore[arg-type]
    common: Type | None = values[0] if len(values) > 1 else None
    for value in values:
        if number(value) is None:
            return None
        common = common and join(common, value)
    scalar = common and number(common)
    return Match((scalar,) * len(values), scalar) if scalar else None


def _choose(symbol: str) -> Any:
    def lower(b: Builder, match: Match, *values: Value) -> Value:
        if isinstance(values[0].type, types.Tuple):
            values = tuple(b.items(values[0]))
        best = values[0].leaf
        ty = values[0].type
        for value in values[1:]:
            if isinstance(ty, Float):
                better = b.llvm.fcmp_ordered(symbol, value.leaf, best)
            elif isinstance(ty, Integer) and ty.signed:
                better = b.llvm.icmp_signed(symbol, value.leaf, best)
            else:
                better = b.llvm.icmp_unsigned(symbol, value.leaf, best)
            best = b.llvm.select(better, value.leaf, best)
        return Value(match.returns, (best,))

    return lower


row(builtins.min, rule=_extreme)(_choose("<"))
row(builtins.max, rule=_extreme)(_choose(">"))


# A range as a value


RANGE = Struct(range, ("start", "stop", "step"), (types.py_int,) * 3)


def _range(*bounds: Type) -> Match | None:
    if not 1 <= len(bounds) <= 3:
        raise TypingError("range takes one to three ints")
    for bound in bounds:
        _range_start(bound)
    return Match((types.py_int,) * len(bounds), RANGE)


@row(builtins.range, rule=_range)
def range_value(b: Builder, match: Match, *bounds: Value) -> Value:
    """The range itself, to index, to measure and to go over"""
    leaves = [bound.leaf for bound in bounds]
    start, stop = ([b.int64(0), *leaves] if len(leaves) == 1 else leaves)[:2]
    return Value(RANGE, (start, stop, leaves[2] if len(leaves) == 3 else b.int64(1)))


def _length_of(value: Any) -> Any:
    """The number of values of a range."""
    return internal.range_length(value.start, value.stop, value.step)


def _value_at(owner: Any, index: Any) -> Any:
    """The value at an index of a range."""
    return owner.start + (index if index >= 0 else index + len(owner)) * owner.step


def _is_in_range(owner: Any, value: Any) -> Any:
    """Whether an int is one of a range."""
    inside = owner.start <= value < owner.stop
    if owner.step < 0:
        inside = owner.stop < value <= owner.start
    return inside and (value - owner.start) % owner.step == 0


def _of_range(function: Any, count: int) -> Any:
    def match(*args: Type) -> Match | None:
        if args[0] != RANGE or not all(isinstance(number(ty), Integer) for ty in args[1:]):
            return None
        return Match((None,) * count, types.none, python=function)

    if count == 1:
        return lambda value: match(value)
    return lambda owner, value: match(owner, value)


row(builtins.len, rule=_of_range(_length_of, 1))(no_lowering)
row(operator.getitem, rule=_of_range(_value_at, 2), name="range[...]")(no_lowering)
row(operator.contains, rule=_of_range(_is_in_range, 2))(no_lowering)


def _round(value: Type) -> Match | None:
    ty = number(value)
    if isinstance(ty, Integer | Boolean):
        return _int(value)
    wide = types.float32 if ty == types.float16 else ty
    return Match((wide,), types.py_int) if wide else None


@row(builtins.round, rule=_round)
def rounded(b: Builder, match: Match, x: Value) -> Value:
    """round(x), to even where x lies halfway"""
    if not isinstance(x.type, Float):
        return x
    bits = x.type.bits
    whole = b.intrinsic(f"llvm.rint.f{bits}", scalar_type(x.type), [x.leaf])
    return cast(b, Value(x.type, (whole,)), types.py_int)


def python_class(ty: Type) -> type:
    """The class that a value of type *ty* has in Python."""
    plain: dict[Type, type] = {
        types.py_int: int,
        types.py_float: float,
        types.py_complex: complex,
    }
    if ty in plain:
        return plain[ty]
    if isinstance(ty, Stored):
        return ty.dtype.type
    if isinstance(ty, Literal):
        return type(ty.value)
    by_class = {types.Tuple: tuple, types.Array: np.ndarray, types.NoneType: type(None)}
    return ty.cls if isinstance(ty, types.Struct) else by_class.get(type(ty), object)


def _isinstance(value: Type, classes: Type) -> Match | None:
    if not isinstance(classes, Literal):
        return None
    known = [c.dtype.type if isinstance(c, Stored) else c for c in _flat(classes.value)]
    if not all(isinstance(c, type) for c in known):
        return None
    return Match((None, None), Literal(issubclass(python_class(widen(value)), tuple(known))))


def _flat(classes: Any) -> list[Any]:
    if isinstance(classes, tuple):
        return [c for item in classes for c in _flat(item)]
    args = getattr(classes, "__args__", None) if isinstance(classes, UnionType) else None
    return [classes] if args is None else list(args)


row(builtins.isinstance, rule=_isinstance)(no_lowering)


def _union(left: Type, right: Type) -> Match | None:
    """int | float, for isinstance."""
    values = [ty.value for ty in (left, right) if isinstance(ty, Literal)]
    if len(values) < 2 or not all(isinstance(v, type | UnionType) for v in values):
        return None
    return Match((None, None), Literal(values[0] | values[1]))


row(operator.or_, rule=_union)(no_lowering)


# Classes


def _type(value: Type) -> Match | None:
    return Match((None,), Literal(python_class(widen(value))))


row(builtins.type, rule=_type)(no_lowering)


def _hasattr(obj: Type, name: Type) -> Match | None:
    if not isinstance(name, Literal) or not isinstance(name.value, str):
        return None
    wide = widen(obj)
    if isinstance(wide, Literal):
        return Match((None, None), Literal(hasattr(wide.value, name.value)))
    found = REGISTRY.find_attribute(wide, name.value)
    known = found is not None and found.rule(wide) is not None
    known = known or bool(REGISTRY.find_method(wide, name.value))
    return Match((None, None), Literal(known or bool(REGISTRY.find_computed(wide, name.value))))


row(builtins.hasattr, rule=_hasattr)(no_lowering)
