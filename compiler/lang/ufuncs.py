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
from . import pyarrays
from .operators import no_lowering

row = REGISTRY.function

# NumPy's name, and the operator that it is.
_OPERATORS = (
    ("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"),
    ("true_divide", "truediv"), ("floor_divide", "floordiv"), ("mod", "mod"),
    ("remainder", "mod"), ("power", "pow"), ("float_power", "pow"), ("negative", "neg"),
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
    (np.logaddexp, pyarrays.logaddexp, 2),
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
