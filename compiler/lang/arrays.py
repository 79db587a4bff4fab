"""Rows of arrays, tuples and slices: elements, attributes, len."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..frontend import internal
from ..lowering.builder import Builder
from ..lowering.casts import shape, strides
from ..lowering.models import Value
from ..types import (
    Array,
    Closure,
    Integer,
    Literal,
    Record,
    Slice,
    Star,
    Stored,
    Struct,
    Tuple,
    Type,
    Unrolled,
    number,
    widen,
)
from ..typing.promotion import converts, join
from ..typing.registry import REGISTRY, Match
from . import pylib
from .indexing import check_indices, element, is_element, position, view, view_type
from .operators import no_lowering

row = REGISTRY.function


def _getitem(owner: Type, index: Type) -> Match | None:
    if not isinstance(owner, Array):
        return None
    items = check_indices(owner, index)
    if is_element(owner, items):
        element = owner.dtype
        if isinstance(element, Record):
            element = element.placed(owner.space, owner.readonly)
        return Match((None, None), element)
    return Match((None, None), view_type(owner, items))


@row(operator.getitem, rule=_getitem, name="array[...]")
def getitem(b: Builder, match: Match, owner: Value, index: Value) -> Value:
    """a[i, j], or a view where there are slices or fewer indices"""
    if isinstance(match.returns, Array):
        return view(b, owner, index, match.returns)
    assert isinstance(match.returns, Stored) and isinstance(owner.type, Array)
    return b.load(element(b, owner, index), match.returns, owner.type.align)


def _setitem(owner: Type, index: Type, value: Type) -> Match | None:
    if not isinstance(owner, Array):
        return None
    if owner.readonly:
        raise TypingError("the array is read-only: its elements cannot be assigned")
    if not is_element(owner, check_indices(owner, index)):
        return None
    if not converts(widen(value), owner.dtype):
        raise TypingError(f"{value} cannot be stored in an array of {owner.dtype}")
    return Match((None, None, _stored_type(owner.dtype, value)), types.none)


def _stored_type(element: Stored, value: Type) -> Type:
    """What a value is converted to before it is stored; a record is copied from where it is."""
    return value if isinstance(element, Record) else element


@row(operator.setitem, rule=_setitem, name="array[...] = ")
def setitem(b: Builder, match: Match, owner: Value, index: Value, value: Value) -> Value:
    """a[i, j] = value"""
    assert isinstance(owner.type, Array)
    b.store(element(b, owner, index), value, owner.type.align)
    return Value(types.none)


def _slice(start: Type, stop: Type, step: Type) -> Match | None:
    for part in (start, stop, step):
        absent = isinstance(part, Literal) and part.value is None
        if not absent and not isinstance(number(part), Integer):
            raise TypingError(f"{widen(part)} cannot be a bound of a slice: use an int")
    if isinstance(step, Literal) and step.value == 0:
        raise TypingError("the step of a slice cannot be zero")
    return Match((None, None, None), Slice((start, stop, step)))


def _join_leaves(b: Builder, match: Match, *items: Value) -> Value:
    """A tuple or slice has the leaves of its items."""
    return Value(match.returns, tuple(leaf for item in items for leaf in item.leaves))


row(builtins.slice, rule=_slice)(_join_leaves)
row(internal.make_tuple, rule=lambda *items: Match((None,) * len(items), Tuple(items)))(
    _join_leaves
)


# Tuples


def _tuple_item(owner: Type, index: Type) -> Match | None:
    if isinstance(owner, Literal) and isinstance(owner.value, tuple):
        owner = Tuple(tuple(Literal(item) for item in owner.value))
    if not isinstance(owner, Tuple) or not isinstance(number(index), Integer):
        return None
    if isinstance(index, Literal):
        if not -len(owner.items) <= index.value < len(owner.items):
            raise TypingError(f"index {index.value} is outside a tuple of {len(owner.items)} items")
        return Match((owner, None), owner.items[index.value], data=index.value)
    common: Type | None = widen(owner.items[0]) if owner.items else None
    for item in owner.items:
        common = common and join(common, widen(item))
    if common is None:
        raise TypingError(f"items of {owner} differ in type: index it with a constant")
    return Match((Tuple((common,) * len(owner.items)), types.int64), common)


@row(operator.getitem, rule=_tuple_item, name="tuple[...]")
def tuple_item(b: Builder, match: Match, owner: Value, index: Value) -> Value:
    """t[i]; an index out of range gives the first item"""
    items = b.items(owner)
    known: int | None = match.data
    if known is not None:
        return items[known]
    place = position(b, index, b.int64(len(items)))
    leaves = list(items[0].leaves)
    for number_, item in enumerate(items[1:], 1):
        here = b.llvm.icmp_unsigned("==", place, b.int64(number_))
        leaves = [b.llvm.select(here, x, y) for x, y in zip(item.leaves, leaves, strict=True)]
    return Value(match.returns, tuple(leaves))


def _unpack(value: Type, count: Type, star: Type) -> Match | None:
    assert isinstance(count, Literal) and isinstance(star, Literal)
    value = as_tuple(value, "be unpacked")
    given, names, at = len(value.items), count.value, star.value
    if given != names if at < 0 else given < names - 1:
        raise TypingError(f"{given} values to unpack into {names} names")
    if at < 0:
        return Match((None, None, None), value)
    end = at + given - names + 1
    items = (*value.items[:at], Tuple(value.items[at:end]), *value.items[end:])
    return Match((None, None, None), Tuple(items))


@row(internal.unpack, rule=_unpack)
def unpack(b: Builder, match: Match, value: Value, count: Value, star: Value) -> Value:
    """The same leaves, once the length is known to be right"""
    return Value(match.returns, value.leaves)


def as_tuple(value: Type, what: str) -> Tuple:
    """The type of a tuple or named tuple as a plain tuple; its leaves are the same.

    Raises:
        TypingError: it is neither, and cannot *what*.
    """
    if isinstance(value, Literal) and isinstance(value.value, tuple):
        return Tuple(tuple(Literal(item) for item in value.value))
    if isinstance(value, Struct) and issubclass(value.cls, tuple):
        return Tuple(value.items)
    if not isinstance(value, Tuple):
        raise TypingError(f"{widen(value)} cannot {what}: only tuples can")
    return value


def _star(value: Type) -> Match:
    return Match((None,), Star(as_tuple(value, "follow a *").items))


def _closure(function: Type, *values: Type) -> Match:
    assert isinstance(function, Literal)
    return Match((None,) * (len(values) + 1), Closure(function.value, values))


row(internal.star, rule=_star)(_join_leaves)
row(internal.make_closure, rule=_closure)(_join_leaves)


def _loop_item(owner: Type, index: Type, key: Type) -> Match | None:
    """The item of a loop; a loop over items of different types must be unrolled."""
    if isinstance(owner, Unrolled) and not isinstance(index, Literal):
        assert isinstance(key, Literal)
        raise internal.NeedsUnrollError(key.value, len(owner.items))
    try:
        row_, match = REGISTRY.resolve(operator.getitem, (owner, index))
    except TypingError:
        wide = widen(owner)
        if not isinstance(wide, Tuple):
            raise TypingError(f"{wide} cannot be gone over by a loop") from None
        assert isinstance(key, Literal)
        raise internal.NeedsUnrollError(key.value, len(wide.items)) from None
    if match.python is not None:
        return Match((None, None, None), types.none, python=pylib.item_at)
    return Match((*match.args, None), match.returns, (row_, match))


@row(internal.loop_item, rule=_loop_item)
def loop_item(b: Builder, match: Match, owner: Value, index: Value, key: Value) -> Value:
    """Indexing, by what the loop counts"""
    row_, inner = match.data
    result: Value = row_.lower(b, inner, owner, index)
    return result


def _contains(owner: Type, value: Type) -> Match | None:
    if isinstance(widen(owner), Tuple | Array):
        return Match((None, None), types.boolean, python=pylib.contains)
    return None


row(operator.contains, rule=_contains)(no_lowering)


# Attributes


def _len(value: Type) -> Match | None:
    if isinstance(value, Tuple):
        return Match((None,), Literal(len(value.items)))
    if isinstance(value, Array):
        if value.ndim == 0:
            raise TypingError("an array without dimensions has no len()")
        return Match((None,), types.py_int)
    return None


@row(builtins.len, rule=_len)
def length(b: Builder, match: Match, value: Value) -> Value:
    """len(a): the length of the first dimension"""
    return Value(types.py_int, (shape(value)[0],))


def _ints(owner: Array) -> Tuple:
    return Tuple((types.py_int,) * owner.ndim)


attribute = REGISTRY.attribute


@attribute(Array, "shape", _ints)
def array_shape(b: Builder, owner: Value, ty: Type) -> Value:
    """a.shape"""
    return Value(ty, shape(owner))


@attribute(Array, "strides", _ints)
def array_strides(b: Builder, owner: Value, ty: Type) -> Value:
    """a.strides, in bytes"""
    return Value(ty, strides(b, owner))


@attribute(Array, "size", lambda owner: types.py_int)
def array_size(b: Builder, owner: Value, ty: Type) -> Value:
    """a.size, the number of elements"""
    total: ir.Value = b.int64(1)
    for count in shape(owner):
        total = b.llvm.mul(total, count, flags=("nsw",))
    return Value(ty, (total,))


def _transposed(owner: Array) -> Array:
    return owner.copy(layout={"C": "F", "F": "C", "A": "A"}[owner.layout])


@attribute(Array, "T", _transposed)
def transposed(b: Builder, owner: Value, ty: Type) -> Value:
    """a.T, a view with the axes reversed"""
    lengths = shape(owner)[::-1]
    steps = strides(b, owner)[::-1] if owner.type.layout == "A" else ()  # type: ignore[attr-defined]
    return Value(ty, (owner.leaves[0], *lengths, *steps))


def _constant_attribute(name: str, value: Any) -> None:
    def lower(b: Builder, owner: Value, ty: Type) -> Value:
        return Value(ty)

    attribute(Array, name, lambda owner: Literal(value(owner)))(lower)


_constant_attribute("ndim", lambda owner: owner.ndim)
_constant_attribute("dtype", lambda owner: owner.dtype.dtype)
_constant_attribute("itemsize", lambda owner: owner.dtype.dtype.itemsize)
