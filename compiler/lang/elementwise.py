"""Rows of expressions of arrays, such as ``o[:] = np.sqrt(x) * 2 + y``: no memory for parts."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..elements import Elementwise
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.casts import shape
from ..lowering.models import Value
from ..types import Array, Integer, Literal, Stored, Tuple, Type, number, widen
from ..typing.promotion import promote, promote_complex
from ..typing.registry import REGISTRY, Match
from . import pyarrays, times, ufuncs
from .operators import no_lowering

row = REGISTRY.function
assert times and ufuncs  # What their rows take goes first.


def is_array(ty: Type) -> bool:
    """Whether it is an array of some dimension, or an expression of such."""
    return isinstance(ty, Array | Elementwise) and ty.ndim > 0


def _element(ty: Type) -> Type:
    return ty.dtype if isinstance(ty, Array | Elementwise) else ty


def _common(args: tuple[Type, ...]) -> Stored:
    """The promoted type: what functions that are written in the kernel language give."""
    found: Any = None
    for arg in args:
        ty = number(arg) or widen(arg)
        if found is None:
            found = ty
        elif isinstance(found, types.Scalar) and isinstance(ty, types.Scalar):
            found = promote(found, ty)
        else:
            found = promote_complex(found, ty) or found
    assert isinstance(found, Stored)
    return found


def _expression(function: Any, *args: Type) -> Match | None:
    """The expression that *function* makes of arrays and numbers; None if none is an array."""
    if not any(map(is_array, args)):
        return None
    elements = tuple(_element(arg) for arg in args)
    match = REGISTRY.resolve(function, elements)[1]
    returns = match.returns if isinstance(match.returns, Stored) else _common(elements)
    ndim = max(getattr(arg, "ndim", 0) for arg in args)
    return Match((None,) * len(args), Elementwise(function, args, returns, ndim))


def joined(b: Builder, match: Match, *args: Value) -> Value:
    """Nothing yet: an element is computed where it is used"""
    return Value(match.returns, tuple(leaf for arg in args for leaf in arg.leaves))


def _rule(function: Any, count: int) -> Callable[..., Match | None]:
    if count == 1:
        return lambda x: _expression(function, x)
    if count == 2:
        return lambda x1, x2: _expression(function, x1, x2)
    return lambda x1, x2, x3: _expression(function, x1, x2, x3)


@functools.cache
def _filling(function: Any, count: int) -> Callable[..., Any]:
    def one(x: Any, out: Any) -> None:
        pyarrays.assign(out, function(x))

    def two(x1: Any, x2: Any, out: Any) -> None:
        pyarrays.assign(out, function(x1, x2))

    return one if count == 1 else two


def _out(function: Any, count: int) -> Callable[..., Match | None]:
    """np.add(x, y, out): each element of *out*."""

    def match(*args: Type) -> Match | None:
        if not isinstance(args[-1], Array) or args[-1].ndim == 0:
            return None
        return Match((None,) * len(args), types.none, python=_filling(function, count))

    if count == 1:
        return lambda x, out: match(x, out)
    return lambda x1, x2, out: match(x1, x2, out)


_OPERATORS = (
    "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift eq ne lt le gt ge "
    "neg pos invert abs"
)
_UNARY = ("neg", "pos", "invert", "abs")
for _name in _OPERATORS.split():
    _function = getattr(operator, _name)
    row(_function, rule=_rule(_function, 1 if _name in _UNARY else 2), name=_name)(joined)
row(builtins.abs, rule=_rule(operator.abs, 1))(joined)
row(np.where, rule=_rule(np.where, 3))(joined)
row(np.clip, rule=_rule(np.clip, 3))(joined)
for _name in sorted(vars(np)):
    _ufunc = getattr(np, _name)
    if not isinstance(_ufunc, np.ufunc) or not REGISTRY.knows(_ufunc) or _ufunc.signature:
        continue
    if _ufunc.nout == 1 and _ufunc.nin <= 2:
        row(_ufunc, rule=_rule(_ufunc, _ufunc.nin))(joined)
        row(_ufunc, rule=_out(_ufunc, _ufunc.nin))(no_lowering)


# Its elements


def operand(expression: Any, index: int) -> Any:
    """An operand of an expression; the compiler has a row for it."""
    return expression[index]


def _operand(expression: Type, index: Type) -> Match:
    assert isinstance(expression, Elementwise) and isinstance(index, Literal)
    return Match((None, None), expression.items[index.value], data=index.value)


@row(operand, rule=_operand)
def lower_operand(b: Builder, match: Match, expression: Value, index: Value) -> Value:
    place: int = match.data
    return b.items(expression)[place]


@functools.cache
def _item_of(function: Any, count: int) -> Callable[[Any, Any], Any]:
    """What computes the element, or the part, at an index of the first axis."""
    part = pyarrays.part

    def one(whole: Any, index: Any) -> Any:
        return function(part(operand(whole, 0), index, whole))

    def two(whole: Any, index: Any) -> Any:
        return function(
            part(operand(whole, 0), index, whole),
            part(operand(whole, 1), index, whole),
        )

    def three(whole: Any, index: Any) -> Any:
        return function(
            part(operand(whole, 0), index, whole),
            part(operand(whole, 1), index, whole),
            part(operand(whole, 2), index, whole),
        )

    return (one, two, three)[count - 1]


def _getitem(owner: Type, index: Type) -> Match | None:
    if not isinstance(owner, Elementwise):
        return None
    wide = widen(index)
    if isinstance(wide, Tuple) and len(wide.items) == owner.ndim:
        return Match((None, None), types.none, python=_chained)
    if not isinstance(number(index), Integer):
        raise TypingError(f"an expression of arrays is indexed by ints, not by {wide}")
    function = _item_of(owner.function, len(owner.items))
    return Match((None, types.py_int), types.none, python=function)


def _chained(whole: Any, index: Any) -> Any:
    """whole[i, j]."""
    return whole[index[0]][index[1:]] if len(index) > 1 else whole[index[0]]


row(operator.getitem, rule=_getitem, name="expression[...]")(no_lowering)


@functools.cache
def order_of(count: int) -> Callable[[Any, Any], Any]:
    """What tells how the operands lie to the target of an assignment, see pyarrays.order."""

    def one(value: Any, target: Any) -> Any:
        return pyarrays.order(operand(value, 0), target)

    def two(value: Any, target: Any) -> Any:
        first = pyarrays.order(operand(value, 0), target)
        return first | pyarrays.order(operand(value, 1), target)

    def three(value: Any, target: Any) -> Any:
        first = pyarrays.order(operand(value, 0), target)
        second = pyarrays.order(operand(value, 1), target)
        return first | second | pyarrays.order(operand(value, 2), target)

    return (one, two, three)[count - 1]


# Its shape, that of all operands broadcast


def _lengths(b: Builder, value: Value) -> list[ir.Value]:
    ty = value.type
    if isinstance(ty, Array):
        return list(shape(value))
    if not isinstance(ty, Elementwise):
        return []
    found: list[ir.Value] = [b.int64(1)] * ty.ndim
    for item in b.items(value):
        lengths = _lengths(b, item)
        for axis, length in enumerate(lengths, ty.ndim - len(lengths)):
            is_one = b.llvm.icmp_signed("==", length, b.int64(1))
            found[axis] = b.llvm.select(is_one, found[axis], length)
    return found


@REGISTRY.attribute(Elementwise, "shape", lambda owner: Tuple((types.py_int,) * owner.ndim))
def expression_shape(b: Builder, owner: Value, ty: Type) -> Value:
    """The shape, all operands broadcast"""
    return Value(ty, tuple(_lengths(b, owner)))


@REGISTRY.attribute(Elementwise, "size", lambda owner: types.py_int)
def expression_size(b: Builder, owner: Value, ty: Type) -> Value:
    """The number of elements"""
    total: ir.Value = b.int64(1)
    for length in _lengths(b, owner):
        total = b.llvm.mul(total, length)
    return Value(ty, (total,))


def _length(value: Type) -> Match | None:
    return Match((None,), types.py_int) if isinstance(value, Elementwise) else None


@row(builtins.len, rule=_length)
def length(b: Builder, match: Match, value: Value) -> Value:
    """The length of the first dimension"""
    return Value(types.py_int, (_lengths(b, value)[0],))


for _name in ("ndim", "dtype"):
    REGISTRY.attribute(
        Elementwise,
        _name,
        lambda owner, name=_name: Literal(  # type: ignore[misc]
            owner.ndim if name == "ndim" else owner.dtype.dtype
        ),
    )(lambda b, owner, ty: Value(ty))


# x += value, and its like, on arrays


@functools.cache
def _in_place(function: Any) -> Callable[[Any, Any], Any]:
    def change(target: Any, value: Any) -> Any:
        pyarrays.assign(target, function(target, value))
        return target

    return change


def _augmented(function: Any) -> Callable[[Type, Type], Match | None]:
    def rule(target: Type, value: Type) -> Match | None:
        if not isinstance(target, Array) or target.ndim == 0:
            return None
        if target.readonly:
            raise TypingError("the array is read-only: its elements cannot be assigned")
        return Match((None, None), target, python=_in_place(function))

    return rule


for _name in _OPERATORS.split()[:11]:
    _function = getattr(operator, f"i{_name.rstrip('_')}")
    row(_function, rule=_augmented(getattr(operator, _name)), name=_name)(no_lowering)
