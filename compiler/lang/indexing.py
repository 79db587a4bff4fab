"""What a subscript selects of an array: an element, or a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.casts import cast, shape, strides
from ..lowering.failures import fail_if
from ..lowering.models import I8, Value, memory_type
from ..types import Array, Boolean, Integer, Literal, Slice, Tuple, Type, number, widen

FULL = Slice((Literal(None), Literal(None), Literal(None)))
NEW_AXIS = Literal(None)
_ELLIPSIS = Literal(Ellipsis)


def index_items(index: Type) -> tuple[Type, ...]:
    """The items of a subscript."""
    if isinstance(index, Literal) and isinstance(index.value, tuple):
        return tuple(_plain(Literal(item)) for item in index.value)
    items = index.items if isinstance(index, Tuple) else (index,)
    return tuple(_plain(item) for item in items)


def _plain(item: Type) -> Type:
    """A constant slice as a slice of constants."""
    if isinstance(item, Literal) and isinstance(item.value, slice):
        part = item.value
        return Slice((Literal(part.start), Literal(part.stop), Literal(part.step)))
    return item


def _expanded(items: Sequence[Any], kinds: Sequence[Type], ndim: int, full: Any) -> list[Any]:
    """*items* with as many *full* slices for an ellipsis as it stands for."""
    used = sum(kind not in (_ELLIPSIS, NEW_AXIS) for kind in kinds)
    found: list[Any] = []
    for item, kind in zip(items, kinds, strict=True):
        found += [full] * (ndim - used) if kind == _ELLIPSIS else [item]
    return found


def check_indices(owner: Array, index: Type) -> tuple[Type, ...]:
    """The indices of *owner*: integers, slices, and NEW_AXIS; an ellipsis is slices.

    Raises:
        TypingError: one is neither, or there are too many.
    """
    items = index_items(index)
    used = sum(item not in (_ELLIPSIS, NEW_AXIS) for item in items)
    if used > owner.ndim:
        raise TypingError(f"{used} indices for an array of {owner.ndim} dimensions")
    if list(items).count(_ELLIPSIS) > 1:
        raise TypingError("an index has one ellipsis at most")
    for item in items:
        if item in (_ELLIPSIS, NEW_AXIS) or isinstance(item, Slice):
            continue
        ty = number(item)
        if not isinstance(ty, Integer) or isinstance(ty, Boolean):
            raise TypingError(f"{widen(item)} cannot index an array: use an int or a slice")
    return tuple(_expanded(items, items, owner.ndim, FULL))


def is_element(owner: Array, items: tuple[Type, ...]) -> bool:
    """Whether these indices select one element."""
    return len(items) == owner.ndim and not any(
        isinstance(item, Slice) or item == NEW_AXIS for item in items
    )


def view_type(owner: Array, items: tuple[Type, ...]) -> Array:
    """The type of the view that these indices select."""
    return owner.copy(
        ndim=view_ndim(owner, items), layout="C" if _stays_contiguous(owner, items) else "A"
    )


def view_ndim(owner: Array, items: tuple[Type, ...]) -> int:
    """The number of dimensions that these indices leave."""
    new = sum(item == NEW_AXIS for item in items)
    ints = sum(not isinstance(item, Slice) for item in items) - new
    return owner.ndim - ints + new


def _stays_contiguous(owner: Array, items: tuple[Type, ...]) -> bool:
    """A C array stays one under integers, then at most one slice of step 1, at the front."""
    if owner.layout != "C" or NEW_AXIS in items:
        return False
    slices = [i for i, item in enumerate(items) if isinstance(item, Slice)]
    if not slices:
        return True
    step = items[slices[0]].items[2]  # type: ignore[attr-defined]
    unit = isinstance(step, Literal) and step.value in (None, 1)
    return len(slices) == 1 and slices[0] == len(items) - 1 and unit


def index_values(b: Builder, index: Value, ndim: int) -> list[Value]:
    """The indices of a subscript, as `check_indices` gives their types."""
    ty = index.type
    if isinstance(ty, Literal) and isinstance(ty.value, tuple):
        values = [Value(Literal(item)) for item in ty.value]
    else:
        values = b.items(index) if isinstance(ty, Tuple) else [index]
    values = [Value(_plain(value.type), value.leaves) for value in values]
    return _expanded(values, [value.type for value in values], ndim, Value(FULL))


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
    indices = zip(index_values(b, index, ty.ndim), lengths, strict=True)
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
    """The part of an array that integers and slices select; None is an axis of length 1."""
    assert isinstance(owner.type, Array)
    lengths, steps = shape(owner), strides(b, owner)
    starts: list[ir.Value] = []
    new_lengths: list[ir.Value] = []
    new_steps: list[ir.Value] = []
    for item in index_values(b, index, owner.type.ndim):
        axis = len(starts)
        if item.type == NEW_AXIS:
            new_lengths.append(b.int64(1))
            new_steps.append(b.int64(0))
        elif isinstance(item.type, Slice):
            start, count, stride = slice_bounds(b, item, lengths[axis])
            new_lengths.append(count)
            new_steps.append(b.llvm.mul(steps[axis], stride))
            starts.append(start)
        else:
            starts.append(position(b, item, lengths[axis], axis))
    pointer = b.offset(owner.leaves[0], I8, _dot(b, starts, steps))
    new_lengths += lengths[len(starts) :]
    new_steps += steps[len(starts) :]
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
