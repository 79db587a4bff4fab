"""Rows of NumPy's functions on scalars: those of operators, and more, one table."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..lowering.builder import Builder
from ..lowering.models import Value
from ..types import Scalar, Type, number
from ..typing.promotion import arithmetic, join, promote
from ..typing.registry import REGISTRY, Match
from . import pyarrays, pylib
from .operators import no_lowering

row = REGISTRY.function

# NumPy's name, and the operator that it is.
_OPERATORS = (
    ("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"),
    ("true_divide", "truediv"), ("floor_divide", "floordiv"), ("mod", "mod"),
    ("remainder", "mod"), ("power", "pow"), ("negative", "neg"),
    ("positive", "pos"), ("absolute", "abs"), ("abs", "abs"), ("bitwise_and", "and_"),
    ("bitwise_or", "or_"), ("bitwise_xor", "xor"), ("bitwise_not", "invert"),
    ("invert", "invert"), ("left_shift", "lshift"), ("right_shift", "rshift"),
    ("equal", "eq"), ("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"),
    ("greater", "gt"), ("greater_equal", "ge"), ("logical_not", "not_"),
)  # fmt: skip
for _name, _operator in _OPERATORS:
    REGISTRY.alias(getattr(np, _name), getattr(operator, _operator))


def _python(function: Callable[..., Any], count: int) -> Callable[..., Match | None]:
    """A rule that has *function* do the work on *count* numbers of the promoted type."""

    def match(*args: Type) -> Match | None:
        common: Scalar | None = None
        for arg in args:
            ty = number(arg)
            if ty is None:
                return None
            common = arithmetic(ty) if common is None else promote(common, ty)
        return Match((common,) * len(args), types.none, python=function)

    if count == 1:
        return lambda x: match(x)
    return (lambda x, y: match(x, y)) if count == 2 else (lambda x, y, z: match(x, y, z))


_PYTHON = (
    (np.minimum, pyarrays.smaller, 2), (np.maximum, pyarrays.larger, 2),
    (np.fmin, pyarrays.smaller_number, 2), (np.fmax, pyarrays.larger_number, 2),
    (np.clip, pyarrays.clip, 3), (np.sign, pyarrays.sign, 1), (np.square, pyarrays.square, 1),
)  # fmt: skip
for _callee, _function, _count in _PYTHON:
    row(_callee, rule=_python(_function, _count))(no_lowering)


def _where(condition: Type, x: Type, y: Type) -> Match | None:
    both = join(x, y)
    ty = both and number(both)
    if number(condition) is None or ty is None:
        return None
    return Match((types.boolean, ty, ty), ty)


@row(np.where, rule=_where)
def where(b: Builder, match: Match, condition: Value, x: Value, y: Value) -> Value:
    """x where the condition holds, else y; both are computed"""
    return Value(match.returns, (b.llvm.select(condition.leaf, x.leaf, y.leaf),))


def _logical(x: Type, y: Type) -> Match | None:
    if number(x) is None or number(y) is None:
        return None
    return Match((types.boolean, types.boolean), types.boolean)


def _declare_logical(callee: Any, name: str) -> None:
    def lower(b: Builder, match: Match, x: Value, y: Value) -> Value:
        return Value(types.boolean, (getattr(b.llvm, name)(x.leaf, y.leaf),))

    row(callee, rule=_logical)(lower)


_declare_logical(np.logical_and, "and_")
_declare_logical(np.logical_or, "or_")
_declare_logical(np.logical_xor, "xor")


def _signbit(x: Type) -> Match | None:
    ty = number(x)
    if ty is None:
        return None
    wide = types.float64 if not isinstance(ty, types.Float) else ty
    return Match((wide,), types.boolean)


@row(np.signbit, rule=_signbit)
def signbit(b: Builder, match: Match, x: Value) -> Value:
    """Whether the sign bit is set"""
    bits = b.llvm.bitcast(x.leaf, ir.IntType(x.type.bits))  # type: ignore[attr-defined]
    return Value(types.boolean, (b.llvm.icmp_signed("<", bits, bits.type(0)),))


# Pairs, and powers of two


def _modf(x: Any) -> Any:
    """Fraction and whole part."""
    return pylib.modf(x)


def _frexp(x: Any) -> Any:
    """As math.frexp, the fraction of the type of x."""
    fraction, exponent = pylib.frexp(x)
    return type(x)(fraction), np.int32(exponent)


def _ldexp(x1: Any, x2: Any) -> Any:
    """As math.ldexp, of the type of x1."""
    return type(x1)(pylib.ldexp(x1, x2))


def _own_float(*args: Type) -> Scalar | None:
    """The float type of the arguments, float16 included; None if one is no number."""
    found: Scalar | None = None
    for arg in args:
        ty = number(arg)
        if ty is None:
            return None
        ty = ty if isinstance(ty, types.Float) else types.float64
        found = ty if found is None else promote(found, ty)
    return found


def _pair(function: Callable[..., Any]) -> Callable[[Type], Match | None]:
    def rule(x: Type) -> Match | None:
        ty = _own_float(x)
        return Match((ty,), types.none, python=function) if ty else None

    return rule


def _ldexp_rule(x1: Type, x2: Type) -> Match | None:
    ty = _own_float(x1)
    if ty is None or not isinstance(number(x2), types.Integer):
        return None
    return Match((ty, types.py_int), types.none, python=_ldexp)


def _float_power(x1: Any, x2: Any) -> Any:
    """x1 ** x2, in float64."""
    return pylib.float_power(x1, x2)


def _two_floats(function: Callable[..., Any], least: Scalar | None = None) -> Any:
    def rule(x1: Type, x2: Type) -> Match | None:
        ty = _own_float(x1, x2)
        ty = ty if least is None or ty is None else promote(ty, least)
        return Match((ty, ty), types.none, python=function) if ty else None

    return rule


row(np.float_power, rule=_two_floats(_float_power, types.float64))(no_lowering)
row(np.logaddexp, rule=_two_floats(pyarrays.logaddexp))(no_lowering)
row(np.modf, rule=_pair(_modf))(no_lowering)
row(np.frexp, rule=_pair(_frexp))(no_lowering)
row(np.ldexp, rule=_ldexp_rule)(no_lowering)


# float16: computed in float32, then rounded

_HALF_ONE = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
    "arccosh arctanh cbrt sqrt fabs floor ceil trunc rint radians degrees deg2rad rad2deg"
)
_HALF_TWO = "arctan2 fmod hypot copysign logaddexp logaddexp2 heaviside"


def _half(name: str, count: int) -> None:
    callee = getattr(np, name)

    def one(x: Any) -> Any:
        return np.float16(callee(np.float32(x)))

    def two(x: Any, y: Any) -> Any:
        return np.float16(callee(np.float32(x), np.float32(y)))

    one.__doc__ = two.__doc__ = f"np.{name} of float16, in float32"

    def match(*args: Type) -> Match | None:
        common = _own_float(*args) if all(number(ty) for ty in args) else None
        if common != types.float16:
            return None
        return Match((common,) * count, common, python=one if count == 1 else two)

    rule = (lambda x: match(x)) if count == 1 else (lambda x, y: match(x, y))
    row(callee, rule=rule, name=name)(no_lowering)
    rows = REGISTRY.rows[id(callee)]
    rows.insert(0, rows.pop())


for _name in _HALF_ONE.split():
    _half(_name, 1)
for _name in _HALF_TWO.split():
    _half(_name, 2)
