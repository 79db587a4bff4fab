"""Rows of arrays, tuples and slices: indexing, views, attributes, len."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..frontend import internal
from ..lowering.builder import Builder
from ..lowering.casts import cast, shape, strides
from ..lowering.failures import fail_if
from ..lowering.models import I8, Value, memory_type
from ..types import (
    Array,
    Boolean,
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
    number,
    widen,
)
from ..typing.promotion import converts, join
from ..typing.registry import REGISTRY, Match
from . import pylib
from .operators import no_lowering

row = REGISTRY.function


def index_items(index: Type) -> tuple[Type, ...]:
    """The indices, one an axis, that a subscript consists of."""
    if isinstance(index, Literal) and isinstance(index.value, tuple):
        return tuple(Literal(item) for item in index.value)
    return index.items if isinstance(index, Tuple) else (index,)


def check_indices(owner: Array, index: Type) -> tuple[Type, ...]:
    """The indices of *owner*, each an integer or a slice.

    Raises:
        TypingError: one is neither, or there are too many.
    """
    items = index_items(index)
    if len(items) > owner.ndim:
        raise TypingError(f"{len(items)} indices for an array of {owner.ndim} dimensions")
    for item in items:
        ty = number(item)
        if not isinstance(item, Slice) and (not isinstance(ty, Integer) or isinstance(ty, Boolean)):
            raise TypingError(f"{widen(item)} cannot index an array: use an int or a slice")
    return items


def is_element(owner: Array, items: tuple[Type, ...]) -> bool:
    """Whether these indices select one element."""
    return len(items) == owner.ndim and not any(isinstance(i, Slice) for i in items)


def _getitem(owner: Type, index: Type) -> Match | None:
    if not isinstance(owner, Array):
        return None
    items = check_indices(owner, index)
    if is_element(owner, items):
        element = owner.dtype
        if isinstance(element, Record):
            element = element.placed(owner.space, owner.readonly)
        return Match((None, None), element)
    return Match((None, None), _view(owner, items))


def _view(owner: Array, items: tuple[Type, ...]) -> Array:
    ndim = owner.ndim - sum(not isinstance(item, Slice) for item in items)
    return owner.copy(ndim=ndim, layout="C" if _stays_contiguous(owner, items) else "A")


def _stays_contiguous(owner: Array, items: tuple[Type, ...]) -> bool:
    """A C array stays one under integers, then at most one slice of step 1, at the front."""
    if owner.layout != "C":
        return False
    slices = [i for i, item in enumerate(items) if isinstance(item, Slice)]
    if not slices:
        return True
    step = items[slices[0]].items[2]  # type: ignore[attr-defined]
    unit = isinstance(step, Literal) and step.value in (None, 1)
    return len(slices) == 1 and slices[0] == len(items) - 1 and unit


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


def index_values(b: Builder, index: Value) -> list[Value]:
    """The indices of a subscript, one an axis."""
    ty = index.type
    if isinstance(ty, Literal) and isinstance(ty.value, tuple):
        return [Value(Literal(item)) for item in ty.value]
    return b.items(index) if isinstance(ty, Tuple) else [index]


def position(b: Builder, index: Value, length: ir.Value, axis: int = 0) -> ir.Value:
    """An index as 64 bits; a negative one counts from the end."""
    if b.module.options.bounds:
        _check_bounds(b, index, length, axis)
    ty = index.type
    if isinstance(ty, Literal):
        constant = b.int64(int(ty.value))
        return constant if ty.value >= 0 else b.llvm.add(length, constant)
    leaf = cast(b, index, types.int64).leaf
    if not ty.signed:  # type: ignore[attr-defined]
        return leaf
    negative = b.llvm.icmp_signed("<", leaf, b.int64(0))
    return b.llvm.select(negative, b.llvm.add(leaf, length), leaf)


def _check_bounds(b: Builder, index: Value, length: ir.Value, axis: int) -> None:
    """Raise IndexError unless -length <= index < length."""
    ll, zero, place = b.llvm, b.int64(0), cast(b, index, types.int64).leaf
    if not isinstance(index.type, Integer) or index.type.signed:
        place = ll.select(ll.icmp_signed("<", place, zero), ll.add(place, length), place)
    outside = ll.icmp_unsigned(">=", place, length)
    size = Value(types.int64, (length,))
    message = ("index ", index, f" is out of bounds for axis {axis} with size ", size)
    fail_if(b, outside, IndexError, *message)


def element(b: Builder, owner: Value, index: Value) -> ir.Value:
    """The address of one element."""
    ty = owner.type
    assert isinstance(ty, Array)
    lengths = shape(owner)
    indices = zip(index_values(b, index), lengths, strict=True)
    places = [position(b, i, n, axis) for axis, (i, n) in enumerate(indices)]
    pointer = owner.leaves[0]
    if not places:
        return pointer
    if ty.layout == "A":
        return b.offset(pointer, I8, _dot(b, places, strides(b, owner)))
    if ty.layout == "F":
        places, lengths = places[::-1], lengths[::-1]
    linear = places[0]
    for place, length in zip(places[1:], lengths[1:], strict=True):
        linear = b.llvm.add(b.llvm.mul(linear, length, flags=("nsw",)), place, flags=("nsw",))
    return b.offset(pointer, memory_type(ty.dtype), linear)


def _dot(b: Builder, places: list[ir.Value], steps: tuple[ir.Value, ...]) -> ir.Value:
    total: ir.Value = b.int64(0)
    for place, step in zip(places, steps, strict=False):
        total = b.llvm.add(total, b.llvm.mul(place, step))
    return total


def view(b: Builder, owner: Value, index: Value, to: Array) -> Value:
    """The part of an array that integers and slices select."""
    items = index_values(b, index)
    lengths, steps = list(shape(owner)), list(strides(b, owner))
    starts, new_lengths, new_steps = [], lengths[len(items) :], steps[len(items) :]
    kept: list[tuple[ir.Value, ir.Value]] = []
    for axis, (item, length, step) in enumerate(zip(items, lengths, steps, strict=False)):
        if isinstance(item.type, Slice):
            start, count, stride = slice_bounds(b, item, length)
            kept.append((count, b.llvm.mul(step, stride)))
            starts.append(start)
        else:
            starts.append(position(b, item, length, axis))
    pointer = b.offset(owner.leaves[0], I8, _dot(b, starts, tuple(steps)))
    new_lengths = [count for count, _ in kept] + new_lengths
    new_steps = [step for _, step in kept] + new_steps
    return Value(to, (pointer, *new_lengths, *(new_steps if to.layout == "A" else ())))


def slice_bounds(b: Builder, item: Value, length: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Start, count and step of a slice of an axis, clipped as Python's slice.indices does."""
    start, stop, step = b.items(item)
    ll, zero, one = b.llvm, b.int64(0), b.int64(1)
    if isinstance(step.type, Literal) and step.type.value is None:
        step = Value(Literal(1))
    stride = cast(b, step, types.int64).leaf
    backwards = ll.icmp_signed("<", stride, zero)
    low = ll.select(backwards, b.int64(-1), zero)
    high = ll.select(backwards, ll.sub(length, one), length)

    def bound(value: Value, default: ir.Value) -> ir.Value:
        if isinstance(value.type, Literal) and value.type.value is None:
            return default
        place = cast(b, value, types.int64).leaf
        place = ll.select(ll.icmp_signed("<", place, zero), ll.add(place, length), place)
        place = ll.select(ll.icmp_signed("<", place, low), low, place)
        return ll.select(ll.icmp_signed(">", place, high), high, place)

    first = bound(start, ll.select(backwards, high, low))
    last = bound(stop, ll.select(backwards, low, high))
    span = ll.select(backwards, ll.sub(first, last), ll.sub(last, first))
    size = ll.select(backwards, ll.neg(stride), stride)
    count = ll.sdiv(ll.add(span, ll.sub(size, one)), size)
    return first, ll.select(ll.icmp_signed(">", span, zero), count, zero), stride


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
    try:
        row_, match = REGISTRY.resolve(operator.getitem, (owner, index))
    except TypingError:
        wide = widen(owner)
        if not isinstance(wide, Tuple):
            raise TypingError(f"{wide} cannot be gone over by a loop") from None
        assert isinstance(key, Literal)
        raise internal.NeedsUnrollError(key.value, len(wide.items)) from None
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
