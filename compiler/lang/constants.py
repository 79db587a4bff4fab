"""Rows of what is computed while compiling: strings, dictionaries, enums, dtypes."""

from __future__ import annotations

import builtins
import enum
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TypingError
from ..types import Literal, Type, boolean, number
from ..typing.registry import REGISTRY, Match
from .operators import no_lowering

row = REGISTRY.function
ERRORS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


def computed(function: Callable[..., Any], *values: Type) -> Match | None:
    """What *function* gives of constants, itself one; None if not all are constants.

    Raises:
        TypingError: it raises an exception.
    """
    if not all(isinstance(ty, Literal) for ty in values):
        return None
    try:
        result = function(*(ty.value for ty in values))  # type: ignore[attr-defined]
    except ERRORS as error:
        name = getattr(function, "__name__", function)
        raise TypingError(f"{name}: {type(error).__name__}: {error}") from None
    return Match((None,) * len(values), Literal(result))


def _always(function: Callable[..., Any]) -> Callable[..., Match | None]:
    return lambda *values: computed(function, *values)


_FUNCTIONS: tuple[Any, ...] = (
    builtins.callable, builtins.issubclass, builtins.chr, builtins.ord, builtins.str,
    builtins.repr, builtins.hex, builtins.oct, builtins.bin, np.dtype, np.iinfo, np.finfo,
    np.result_type, np.promote_types, np.can_cast,
)  # fmt: skip
for _function in _FUNCTIONS:
    row(_function, rule=_always(_function))(no_lowering)


def _of(kinds: tuple[type, ...], function: Any) -> Callable[..., Match | None]:
    """Where the first argument is a constant of one of these classes."""

    def rule(owner: Type, other: Type) -> Match | None:
        if not isinstance(owner, Literal) or not isinstance(owner.value, kinds):
            return None
        return computed(function, owner, other)

    return rule


_KEYED = (str, bytes, dict, list, enum.EnumMeta, np.ndarray)
row(operator.getitem, rule=_of(_KEYED[:-1], operator.getitem), name="constant[...]")(no_lowering)
row(operator.contains, rule=_of((*_KEYED[:-1], range), operator.contains))(no_lowering)
row(operator.add, rule=_of((str, bytes), operator.add), name="add")(no_lowering)
row(operator.mul, rule=_of((str, bytes), operator.mul), name="mul")(no_lowering)
for _order in (operator.lt, operator.le, operator.gt, operator.ge):
    row(_order, rule=_of((str, bytes), _order), name=_order.__name__)(no_lowering)


def _length(value: Type) -> Match | None:
    known = isinstance(value, Literal) and isinstance(value.value, (str, bytes, dict, list, tuple))
    return computed(len, value) if known else None


row(builtins.len, rule=_length)(no_lowering)


# The truth of what is no number


def _truth(value: Any) -> Any:
    """Whether a value is true: no zero, not empty, no null pointer."""
    return bool(value)


def _truth_of(value: Type) -> Match | None:
    return None if number(value) else Match((None,), boolean, python=_truth)


row(builtins.bool, rule=_truth_of)(no_lowering)
