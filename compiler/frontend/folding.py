"""Computes while compiling what depends on literals alone."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np

from .. import types
from ..types import Literal, Type
from . import internal

_OPERATORS = (
    "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor neg pos invert not_ "
    "eq ne lt le gt ge getitem"
)
_FOLDABLE = (
    {getattr(operator, name) for name in _OPERATORS.split()}
    | {builtins.len, builtins.min, builtins.max, builtins.abs, builtins.int, builtins.float}
    | {builtins.bool, builtins.round, internal.unpack, internal.range_length}
    | {t.dtype.type for t in types.SCALARS}
)
_MAX_BITS = 4096


def fold(callee: Any, args: tuple[Type, ...], returns: Type) -> Type:
    """*returns*, or the literal of that type if *callee* can be computed now."""
    if isinstance(returns, Literal):
        return returns
    if isinstance(callee, types.Scalar):
        callee = callee.dtype.type
    if not args or not all(isinstance(arg, Literal) for arg in args):
        return returns
    try:
        if callee not in _FOLDABLE:
            return returns
    except TypeError:  # An unhashable callee.
        return returns
    values = [arg.value for arg in args if isinstance(arg, Literal)]
    if not _is_small(callee, values):
        return returns
    try:
        with np.errstate(all="ignore"):
            result = callee(*values)
    except (ArithmeticError, ValueError, TypeError, IndexError):
        return returns
    literal = Literal(result)
    return literal if types.widen(literal) == types.widen(returns) else returns


def _is_small(callee: Any, values: list[Any]) -> bool:
    """Refuse to compute integers that nobody wants, such as 10**10**10."""
    if callee not in (operator.pow, operator.lshift) or not isinstance(values[1], int):
        return True
    base = values[0]
    bits = int(base).bit_length() if isinstance(base, int) else 1
    growth = bits * abs(values[1]) if callee is operator.pow else bits + abs(values[1])
    return growth <= _MAX_BITS
