"""Rows of datetime64 and timedelta64: arithmetic as NumPy's, NaT included."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..elements import NAT, Time
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import F64, I64, Value
from ..types import Float, Integer, Literal, Type, number, widen
from ..typing.registry import REGISTRY, Match
from .operators import no_lowering

row = REGISTRY.function


def time_type(ty: Type) -> Time | None:
    """The type of a date or duration; None for anything else."""
    wide = widen(ty)
    return wide if isinstance(wide, Time) else None


def _of(kind: str, dtype: np.dtype[Any]) -> Time:
    unit, step = np.datetime_data(dtype)
    return Time(np.dtype(f"{kind}8[{step}{unit}]" if unit != "generic" else f"{kind}8"))


def _common(left: Time, right: Time) -> np.dtype[Any]:
    """The dtype of the unit that both are counted in."""
    kinds = [_of("m", ty.dtype).dtype for ty in (left, right)]
    try:
        return np.promote_types(*kinds)
    except TypeError:
        raise TypingError(f"{left} and {right} have no common unit") from None


def _is_int(ty: Type) -> bool:
    return isinstance(number(ty), Integer)


def _operands(left: Type, right: Type) -> tuple[Time | None, Time | None] | None:
    """Both as times, None standing for an int; None if they are neither, or two ints."""
    a, b = time_type(left), time_type(right)
    if (a is None and not _is_int(left)) or (b is None and not _is_int(right)):
        return None
    return None if a is None and b is None else (a, b)


def _same_unit(a: Time | None, b: Time | None) -> tuple[Type, Type, np.dtype[Any]]:
    """Both types in one unit; ints are counts of the other's."""
    unit = _common(a or b, b or a)  # type: ignore[arg-type]
    first, second = (
        types.py_int if ty is None else _of("m" if ty.is_duration else "M", unit) for ty in (a, b)
    )
    return first, second, unit


def _kinds(a: Time | None, b: Time | None) -> str:
    return "".join("i" if ty is None else "m" if ty.is_duration else "M" for ty in (a, b))


def _linear(results: dict[str, str]) -> Any:
    def rule(left: Type, right: Type) -> Match | None:
        pair = _operands(left, right)
        kind = pair and results.get(_kinds(*pair))
        if not pair or not kind:
            return None
        first, second, unit = _same_unit(*pair)
        return Match((first, second), _of(kind, unit))

    return rule


def _unknown(b: Builder, *values: Value) -> ir.Value:
    """Whether one of the values is NaT."""
    found: ir.Value = ir.Constant(ir.IntType(1), 0)
    for value in values:
        if isinstance(value.type, Time):
            is_nat = b.llvm.icmp_signed("==", value.leaf, b.int64(NAT))
            found = b.llvm.or_(found, is_nat)
    return found


def _known(b: Builder, match: Match, leaf: ir.Value, *values: Value) -> Value:
    """*leaf*, but NaT if one of *values* is."""
    return Value(match.returns, (b.llvm.select(_unknown(b, *values), b.int64(NAT), leaf),))


_SUMS = {"mm": "m", "Mm": "M", "mM": "M", "mi": "m", "im": "m", "Mi": "M", "iM": "M"}
_DIFFERENCES = {"mm": "m", "MM": "m", "Mm": "M", "mi": "m", "im": "m", "Mi": "M"}


@row(operator.add, operator.iadd, np.add, rule=_linear(_SUMS), name="add")
def add(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x + y of dates, durations and counts of their unit"""
    return _known(b, match, b.llvm.add(x.leaf, y.leaf), x, y)


@row(operator.sub, operator.isub, np.subtract, rule=_linear(_DIFFERENCES), name="sub")
def sub(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x - y of dates, durations and counts of their unit"""
    return _known(b, match, b.llvm.sub(x.leaf, y.leaf), x, y)


def _scaled(swap: bool) -> Any:
    """A duration and a number, which the last one is unless *swap* lets it come first."""

    def rule(left: Type, right: Type) -> Match | None:
        pair = (right, left) if swap and time_type(left) is None else (left, right)
        ty, factor = time_type(pair[0]), number(pair[1])
        if ty is None or not ty.is_duration or not isinstance(factor, Integer | Float):
            return None
        to: Type = types.py_float if isinstance(factor, Float) else types.py_int
        return Match((ty, to) if pair[0] is left else (to, ty), ty)

    return rule


def _duration_first(x: Value, y: Value) -> tuple[Value, Value]:
    return (x, y) if isinstance(x.type, Time) else (y, x)


def _by_float(b: Builder, match: Match, x: Value, y: Value, operation: str) -> Value:
    """A duration times or over a float, its fraction cut; NaT where that is no number."""
    result = getattr(b.llvm, operation)(b.llvm.sitofp(x.leaf, F64), y.leaf)
    size = b.intrinsic("llvm.fabs.f64", F64, [result])
    inside = b.llvm.fcmp_ordered("<", size, ir.Constant(F64, 2.0**63))
    safe = b.llvm.select(inside, result, ir.Constant(F64, 0.0))
    leaf = b.llvm.select(inside, b.llvm.fptosi(safe, I64), b.int64(NAT))
    return _known(b, match, leaf, x)


@row(operator.mul, operator.imul, np.multiply, rule=_scaled(swap=True), name="mul")
def mul(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """A duration times a number"""
    x, y = _duration_first(x, y)
    if isinstance(y.type, Float):
        return _by_float(b, match, x, y, "fmul")
    return _known(b, match, b.llvm.mul(x.leaf, y.leaf), x)


@row(operator.truediv, operator.itruediv, operator.floordiv, operator.ifloordiv, np.divide,
     np.floor_divide, rule=_scaled(swap=False), name="truediv")  # fmt: skip
def divide(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """A duration over a number, its fraction cut; NaT if that is 0"""
    if isinstance(y.type, Float):
        return _by_float(b, match, x, y, "fdiv")
    is_zero = b.llvm.icmp_signed("==", y.leaf, b.int64(0))
    leaf = b.llvm.sdiv(x.leaf, b.llvm.select(is_zero, b.int64(1), y.leaf))
    return _known(b, match, b.llvm.select(is_zero, b.int64(NAT), leaf), x)


def _durations(returns: Type | None) -> Any:
    def rule(left: Type, right: Type) -> Match | None:
        a, b = time_type(left), time_type(right)
        if a is None or b is None or not (a.is_duration and b.is_duration):
            return None
        unit = _of("m", _common(a, b))
        return Match((unit, unit), returns or unit)

    return rule


@row(operator.truediv, operator.itruediv, np.divide, rule=_durations(types.float64), name="truediv")
def quotient(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """A duration over another, a float; nan if one is NaT"""
    leaf = b.llvm.fdiv(b.llvm.sitofp(x.leaf, F64), b.llvm.sitofp(y.leaf, F64))
    nan = ir.Constant(F64, float("nan"))
    return Value(match.returns, (b.llvm.select(_unknown(b, x, y), nan, leaf),))


def _whole(b: Builder, x: Value, y: Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Floored quotient, remainder, and whether there is none: NaT, or a divisor of 0."""
    ll = b.llvm
    none = ll.or_(_unknown(b, x, y), ll.icmp_signed("==", y.leaf, b.int64(0)))
    safe = ll.select(none, b.int64(1), y.leaf)
    quotient_, rest = ll.sdiv(x.leaf, safe), ll.srem(x.leaf, safe)
    opposite = ll.icmp_signed("<", ll.xor(rest, safe), b.int64(0))
    down = ll.and_(opposite, ll.icmp_signed("!=", rest, b.int64(0)))
    quotient_ = ll.select(down, ll.sub(quotient_, b.int64(1)), quotient_)
    return quotient_, ll.select(down, ll.add(rest, safe), rest), none


@row(operator.floordiv, operator.ifloordiv, np.floor_divide, rule=_durations(types.int64),
     name="floordiv")  # fmt: skip
def floordiv(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """How often a duration goes into another, rounded down; 0 if one is NaT or 0"""
    found, _, none = _whole(b, x, y)
    return Value(match.returns, (b.llvm.select(none, b.int64(0), found),))


@row(operator.mod, operator.imod, np.remainder, np.mod, rule=_durations(None), name="mod")
def mod(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """What is left of a duration"""
    _, rest, none = _whole(b, x, y)
    return Value(match.returns, (b.llvm.select(none, b.int64(NAT), rest),))


def _compared(left: Type, right: Type) -> Match | None:
    pair = _operands(left, right)
    if pair is None or _kinds(*pair) in ("mM", "Mm", "Mi", "iM"):
        return None
    first, second, _ = _same_unit(*pair)
    return Match((first, second), types.boolean)


def _compare(symbol: str) -> Any:
    def lower(b: Builder, match: Match, x: Value, y: Value) -> Value:
        found = b.llvm.icmp_signed(symbol, x.leaf, y.leaf)
        unknown = _unknown(b, x, y)
        answer = ir.Constant(ir.IntType(1), int(symbol == "!="))
        return Value(types.boolean, (b.llvm.select(unknown, answer, found),))

    return lower


_COMPARISONS: tuple[tuple[Any, ...], ...] = (
    ("==", operator.eq, np.equal), ("!=", operator.ne, np.not_equal),
    ("<", operator.lt, np.less), ("<=", operator.le, np.less_equal),
    (">", operator.gt, np.greater), (">=", operator.ge, np.greater_equal),
)  # fmt: skip
for _symbol, *_callees in _COMPARISONS:
    row(*_callees, rule=_compared, name=_callees[0].__name__)(_compare(_symbol))


def _one(value: Type) -> Match | None:
    ty = time_type(value)
    return Match((ty,), ty) if ty and ty.is_duration else None


@row(operator.neg, np.negative, rule=_one, name="neg")
def neg(b: Builder, match: Match, x: Value) -> Value:
    """-x"""
    return Value(x.type, (b.llvm.neg(x.leaf),))  # NaT is its own negative.


@row(operator.pos, np.positive, rule=_one, name="pos")
def pos(b: Builder, match: Match, x: Value) -> Value:
    """+x"""
    return x


@row(builtins.abs, operator.abs, np.abs, rule=_one, name="abs")
def absolute(b: Builder, match: Match, x: Value) -> Value:
    """abs(x)"""
    negative = b.llvm.icmp_signed("<", x.leaf, b.int64(0))
    return Value(x.type, (b.llvm.select(negative, b.llvm.neg(x.leaf), x.leaf),))


def _is_nat(value: Type) -> Match | None:
    ty = time_type(value)
    return Match((ty,), types.boolean) if ty else None


@row(np.isnat, rule=_is_nat)
def isnat(b: Builder, match: Match, x: Value) -> Value:
    """Whether x is NaT"""
    return Value(types.boolean, (_unknown(b, x),))


def _truth(value: Type) -> Match | None:
    ty = time_type(value)
    return Match((ty,), types.boolean) if ty and ty.is_duration else None


@row(operator.not_, rule=_truth)
def not_(b: Builder, match: Match, x: Value) -> Value:
    """not x"""
    return Value(types.boolean, (b.llvm.icmp_signed("==", x.leaf, b.int64(0)),))


def _extreme(function: Any) -> Any:
    def rule(x: Type, y: Type) -> Match | None:
        a, b = time_type(x), time_type(y)
        if a is None or b is None or a.is_duration != b.is_duration:
            return None
        both = _of("m" if a.is_duration else "M", _common(a, b))
        return Match((both, both), both, python=function)

    return rule


def _least(x: Any, y: Any) -> Any:
    """The first; NaT if one is."""
    return x if x <= y or np.isnat(x) else y


def _greatest(x: Any, y: Any) -> Any:
    """The last; NaT if one is."""
    return x if x >= y or np.isnat(x) else y


def _min(x: Any, y: Any) -> Any:
    """As min(x, y)."""
    return y if y < x else x


def _max(x: Any, y: Any) -> Any:
    """As max(x, y)."""
    return y if y > x else x


_EXTREMES: tuple[tuple[Any, Any], ...] = (
    (np.minimum, _least), (np.maximum, _greatest), (builtins.min, _min), (builtins.max, _max),
)  # fmt: skip
for _callee, _function in _EXTREMES:
    row(_callee, rule=_extreme(_function), name=_callee.__name__)(no_lowering)


# Conversions


def _ticks(value: Type) -> Match | None:
    ty = time_type(value)
    return Match((ty,), types.int64) if ty else None


@row(types.int64, np.int64, rule=_ticks, name="int64")
def ticks(b: Builder, match: Match, value: Value) -> Value:
    """The count of the unit; NaT is -2**63"""
    return Value(types.int64, value.leaves)


def _constant(cls: Any) -> Any:
    def rule(value: Type, unit: Type | None = None) -> Match | None:
        given = [ty for ty in (value, unit) if ty is not None]
        if not all(isinstance(ty, Literal) for ty in given):
            return None
        try:
            made = cls(*(ty.value for ty in given))  # type: ignore[attr-defined]
        except (ValueError, TypeError, OverflowError) as error:
            raise TypingError(f"{cls.__name__}: {error}") from None
        return Match((None,) * len(given), Literal(made))

    return rule


def _counted(kind: str) -> Any:
    def rule(value: Type, unit: Type) -> Match | None:
        ty = time_type(value)
        if not isinstance(unit, Literal) or not (_is_int(value) or ty):
            return None
        try:
            to = Time(np.dtype(f"{kind}8[{unit.value}]"))
        except TypeError as error:
            raise TypingError(str(error)) from None
        return Match((to if ty else types.py_int, None), to)

    return rule


def counted(b: Builder, match: Match, value: Value, unit: Value) -> Value:
    """A count of a unit"""
    return Value(match.returns, value.leaves)


for _class, _kind in ((np.datetime64, "M"), (np.timedelta64, "m")):
    row(_class, rule=_constant(_class))(no_lowering)
    row(_class, rule=_counted(_kind))(counted)


def _astype(value: Time, dtype: Type) -> Match | None:
    if not isinstance(dtype, Literal):
        raise TypingError("the dtype must be a constant")
    try:
        to = types.from_dtype(dtype.value)
    except TypeError as error:
        raise TypingError(str(error)) from None
    if to == types.int64:
        return Match((None, None), to)
    if not isinstance(to, Time) or to.is_duration != value.is_duration:
        return None
    return Match((None, None), to)


@REGISTRY.method(Time, "astype", _astype)
def astype(b: Builder, match: Match, value: Value, dtype: Value) -> Value:
    """The same in another unit, or the count as int64"""
    if match.returns == types.int64:
        return Value(types.int64, value.leaves)
    return cast(b, value, match.returns)
