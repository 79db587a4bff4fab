"""Rows of tuples beyond indexing: slices, sums, products, order, and conversion to a tuple."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from .. import types
from ..errors import TypingError
from ..frontend import internal
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import Value
from ..types import (
    Boolean,
    Integer,
    Literal,
    Slice,
    Struct,
    Tuple,
    Type,
    Unrolled,
    number,
    widen,
)
from ..typing.registry import REGISTRY, Match
from .arrays import as_tuple
from .numbers import count_of, index_of, search
from .operators import no_lowering
from .stub import Stub

row = REGISTRY.function


def is_tuple(ty: Type) -> bool:
    """Whether values of this type are tuples, named ones too."""
    wide = widen(ty)
    return isinstance(wide, Tuple) or (isinstance(wide, Struct) and issubclass(wide.cls, tuple))


def _exact(ty: Type) -> Tuple:
    return as_tuple(ty, "be a tuple")


def _items(b: Builder, value: Value) -> list[Value]:
    return b.items(cast(b, value, _exact(value.type)))


def _made(match: Match, items: list[Value]) -> Value:
    return Value(match.returns, tuple(leaf for item in items for leaf in item.leaves))


def _sum(left: Type, right: Type) -> Match | None:
    if not (is_tuple(left) and is_tuple(right)):
        return None
    return Match((None, None), Tuple((*_exact(left).items, *_exact(right).items)))


@row(operator.add, operator.iadd, operator.concat, operator.iconcat, rule=_sum, name="concat")
def concat(b: Builder, match: Match, left: Value, right: Value) -> Value:
    """The items of both tuples"""
    return _made(match, [*_items(b, left), *_items(b, right)])


def _repeated(left: Type, right: Type) -> Match | None:
    pair = (left, right) if is_tuple(left) else (right, left)
    if not is_tuple(pair[0]) or not isinstance(number(pair[1]), Integer):
        return None
    if not isinstance(pair[1], Literal):
        raise TypingError("a tuple is repeated a constant number of times only")
    count: int = max(pair[1].value, 0)
    return Match((None, None), Tuple(_exact(pair[0]).items * count), data=(count, pair[0] is left))


@row(operator.mul, operator.imul, rule=_repeated, name="repeat")
def repeat(b: Builder, match: Match, left: Value, right: Value) -> Value:
    """A tuple, several times"""
    count, is_first = match.data
    return _made(match, _items(b, left if is_first else right) * count)


def _slice(owner: Type, index: Type) -> Match | None:
    if not is_tuple(owner) or not isinstance(index, Slice):
        return None
    if not all(isinstance(item, Literal) for item in index.items):
        raise TypingError("the bounds of a slice of a tuple must be constants")
    part = slice(*(item.value for item in index.items))  # type: ignore[attr-defined]
    return Match((None, None), Tuple(_exact(owner).items[part]), data=part)


@row(operator.getitem, rule=_slice, name="tuple[...]")
def tuple_slice(b: Builder, match: Match, owner: Value, index: Value) -> Value:
    """t[start:stop:step], the bounds constants"""
    return _made(match, _items(b, owner)[match.data])


def _tuple(iterable: Type) -> Match | None:
    return Match((None,), _exact(iterable)) if is_tuple(iterable) else None


@row(builtins.tuple, rule=_tuple)
def to_tuple(b: Builder, match: Match, iterable: Value) -> Value:
    """The items of a tuple or named tuple"""
    return _made(match, _items(b, iterable))


row(builtins.tuple, rule=lambda: Match((), Tuple(())))(lambda b, match: Value(match.returns))


def _truth(value: Type) -> Match | None:
    return Match((None,), Literal(not _exact(value).items)) if is_tuple(value) else None


row(operator.not_, rule=_truth)(no_lowering)


# Order: that of the first items that differ


def _equal(left: Any, right: Any) -> Any:
    """Whether all items are equal."""
    return all(x == y for x, y in zip(left, right, strict=True))


def _differ(left: Any, right: Any) -> Any:
    """Whether some items differ."""
    return any(x != y for x, y in zip(left, right, strict=True))


def _less(left: Any, right: Any) -> Any:
    """Whether left comes first."""
    for x, y in zip(left, right, strict=False):
        if x != y:
            return x < y
    return len(left) < len(right)


def _less_equal(left: Any, right: Any) -> Any:
    """Whether right does not come first."""
    return not _less(right, left)


def _greater(left: Any, right: Any) -> Any:
    """Whether right comes first."""
    return _less(right, left)


def _greater_equal(left: Any, right: Any) -> Any:
    """Whether left does not come first."""
    return not _less(left, right)


def _ordered(function: Any, unequal: bool | None = None) -> Any:
    def rule(left: Type, right: Type) -> Match | None:
        if not (is_tuple(left) and is_tuple(right)):
            return None
        same = len(_exact(left).items) == len(_exact(right).items)
        if unequal is not None and not same:
            return Match((None, None), Literal(unequal))
        return Match((None, None), types.none, python=function)

    return rule


for _callee, _function, *_unequal in (
    (operator.eq, _equal, False), (operator.ne, _differ, True), (operator.lt, _less),
    (operator.le, _less_equal), (operator.gt, _greater), (operator.ge, _greater_equal),
):  # fmt: skip
    row(_callee, rule=_ordered(_function, *_unequal), name=_callee.__name__)(no_lowering)
for _owner in (Tuple, Struct):
    REGISTRY.method(_owner, "count", search(count_of))(no_lowering)
    REGISTRY.method(_owner, "index", search(index_of))(no_lowering)


# What the syntax asks


def _is_sequence(value: Type, count: Type, star: Type) -> Match:
    assert isinstance(count, Literal) and isinstance(star, Literal)
    size = len(_exact(value).items) if is_tuple(value) else -1
    fits = size == count.value if star.value < 0 else size >= count.value - 1
    return Match((None,) * 3, Literal(fits))


def _is_bool(value: Type, wanted: Type) -> Match:
    assert isinstance(wanted, Literal)
    if isinstance(value, Literal):
        return Match((None, None), Literal(value.value is wanted.value))
    if not isinstance(value, Boolean):
        return Match((None, None), Literal(False))
    return Match((None, None), types.boolean, data=wanted.value)


@row(internal.is_bool, rule=_is_bool)
def is_bool(b: Builder, match: Match, value: Value, wanted: Value) -> Value:
    """Whether a bool is True, or False"""
    return value if match.data else Value(types.boolean, (b.llvm.not_(value.leaf),))


def _known_length(length: Type, key: Type) -> Match:
    if not isinstance(length, Literal):
        raise TypingError("the length of a tuple must be known: go over a tuple or a fixed range")
    assert isinstance(key, Literal)
    raise internal.NeedsUnrollError(key.value, length.value)


row(internal.is_sequence, rule=_is_sequence)(no_lowering)
row(internal.known_length, rule=_known_length)(no_lowering)
literal_unroll = Stub(
    "literal_unroll",
    """literal_unroll(tuple): a loop over it is unrolled, each item a constant where it is one.""",
)


def _unrolled(items: Type) -> Match | None:
    return Match((None,), Unrolled(_exact(items).items)) if is_tuple(items) else None


@row(literal_unroll, rule=_unrolled)
def lower_unrolled(b: Builder, match: Match, items: Value) -> Value:
    return _made(match, _items(b, items))
