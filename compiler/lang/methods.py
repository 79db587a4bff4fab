"""Rows of what arrays do beyond indexing: slice assignment, reductions, reshape, ravel, view."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.casts import cast, shape
from ..lowering.models import I64, Value
from ..types import Array, Boolean, Integer, Literal, Stored, Tuple, Type, number
from ..typing.registry import REGISTRY, Match
from . import arrays, pyarrays
from .memory import constant_dtype
from .operators import no_lowering

row = REGISTRY.function


# Assignment to slices


def _assign(owner: Type, index: Type, value: Type) -> Match | None:
    if not isinstance(owner, Array) or not isinstance(owner.dtype, Stored):
        return None
    if owner.readonly:
        raise TypingError("the array is read-only: its elements cannot be assigned")
    items = arrays.check_indices(owner, index)
    view = owner.ndim - sum(not isinstance(item, types.Slice) for item in items)
    ndim = value.ndim if isinstance(value, Array) else 0
    if not isinstance(value, Array) and number(value) is None:
        return None
    if ndim > view:
        raise TypingError(f"an array of {ndim} dimensions does not fit in {view}")
    return Match((None, None, None), types.none, python=pyarrays.setitem)


row(operator.setitem, rule=_assign)(no_lowering)


@row(pyarrays.address, rule=lambda array: Match((None,), types.py_int))
def address(b: Builder, match: Match, array: Value) -> Value:
    """The address of the first element"""
    return Value(types.py_int, (b.llvm.ptrtoint(array.leaves[0], I64),))


def _ndim(value: Type) -> Match | None:
    if isinstance(value, Array):
        return Match((None,), Literal(value.ndim))
    return Match((None,), Literal(0)) if number(value) else None


row(np.ndim, rule=_ndim)(no_lowering)
REGISTRY.method(Array, "fill", rule=lambda owner, value: Match(
    (None, None), types.none, python=pyarrays.assign
))(no_lowering)  # fmt: skip


# Reductions by one thread: a.sum(), np.sum(a), and the builtin where Python has one


def _whole(function: Callable[..., Any], one: bool = False) -> Callable[[Type], Match | None]:
    def rule(array: Type) -> Match | None:
        if not isinstance(array, Array) or array.ndim == 0:
            return None
        if one and array.ndim != 1:
            raise TypingError(f"{function.__name__} works on arrays of one dimension here")
        return Match((None,), types.none, python=function)

    return rule


_REDUCTIONS = (
    ("sum", pyarrays.array_sum, np.sum, builtins.sum),
    ("prod", pyarrays.array_prod, np.prod, None),
    ("mean", pyarrays.array_mean, np.mean, None),
    ("any", pyarrays.array_any, np.any, builtins.any),
    ("all", pyarrays.array_all, np.all, builtins.all),
    ("min", pyarrays.array_min, np.min, builtins.min),
    ("max", pyarrays.array_max, np.max, builtins.max),
    ("argmin", pyarrays.argmin, np.argmin, None),
    ("argmax", pyarrays.argmax, np.argmax, None),
)
for _name, _function, *_callees in _REDUCTIONS:
    _rule = _whole(_function, one=_name.startswith("arg"))
    row(*(c for c in _callees if c), rule=_rule, name=_name)(no_lowering)
    REGISTRY.method(Array, _name, _rule)(no_lowering)


# Views of contiguous arrays


def _contiguous(owner: Array, what: str) -> None:
    if owner.layout != "C" and owner.ndim > 0:
        raise TypingError(f"{what} works on C-contiguous arrays, not on {owner}")


def _reshape(owner: Array, *lengths: Type) -> Match | None:
    _contiguous(owner, "reshape")
    if len(lengths) == 1 and isinstance(types.widen(lengths[0]), Tuple):
        wide = types.widen(lengths[0])
        lengths = wide.items  # type: ignore[attr-defined]
    for length in lengths:
        if not isinstance(number(length), Integer):
            raise TypingError("reshape takes ints, or a tuple of ints")
    return Match((None,) * (len(lengths) + 1), owner.copy(ndim=len(lengths)))


def _reshape_rule(owner: Type, *lengths: Type) -> Match | None:
    assert isinstance(owner, Array)
    match = _reshape(owner, *lengths)
    return match and Match((None,) * (len(lengths) + 1), match.returns)


@REGISTRY.method(Array, "reshape", _reshape_rule)
def reshape(b: Builder, match: Match, owner: Value, *lengths: Value) -> Value:
    """The same elements in another shape; one length can be -1"""
    if len(lengths) == 1 and isinstance(types.widen(lengths[0].type), Tuple):
        whole = cast(b, lengths[0], types.widen(lengths[0].type))
        lengths = tuple(b.items(whole))
    counts = [cast(b, length, types.int64).leaf for length in lengths]
    size = _product(b, list(shape(owner)))
    minus = [b.llvm.icmp_signed("<", count, b.int64(0)) for count in counts]
    given = _product(
        b, [b.llvm.select(m, b.int64(1), c) for m, c in zip(minus, counts, strict=True)]
    )
    empty = b.llvm.icmp_signed("==", given, b.int64(0))
    rest = b.llvm.sdiv(size, b.llvm.select(empty, b.int64(1), given))
    found = [b.llvm.select(m, rest, c) for m, c in zip(minus, counts, strict=True)]
    return Value(match.returns, (owner.leaves[0], *found))


def _product(b: Builder, factors: list[ir.Value]) -> ir.Value:
    total: ir.Value = b.int64(1)
    for factor in factors:
        total = b.llvm.mul(total, factor)
    return total


def _ravel(owner: Array) -> Match | None:
    _contiguous(owner, "ravel")
    return Match((None,), owner.copy(ndim=1))


@REGISTRY.method(Array, "ravel", _ravel)
def ravel(b: Builder, match: Match, owner: Value) -> Value:
    """The same elements in one dimension"""
    return Value(match.returns, (owner.leaves[0], _product(b, list(shape(owner)))))


@REGISTRY.attribute(Array, "flat", lambda owner: _ravel(owner).returns)  # type: ignore[union-attr]
def flat(b: Builder, owner: Value, ty: Type) -> Value:
    """The elements in order"""
    return ravel(b, Match((None,), ty), owner)


def _view(owner: Type, dtype: Type) -> Match | None:
    assert isinstance(owner, Array) and isinstance(owner.dtype, Stored)
    _contiguous(owner, "view")
    element = constant_dtype(dtype)
    if isinstance(element, Boolean) or owner.ndim == 0:
        raise TypingError(f"an array of {owner.dtype} has no view as {element}")
    return Match((None, None), owner.copy(dtype=element), data=owner.dtype.dtype.itemsize)


@REGISTRY.method(Array, "view", _view)
def view(b: Builder, match: Match, owner: Value, dtype: Value) -> Value:
    """The same bytes as elements of another type; the last length changes"""
    ty = match.returns
    assert isinstance(ty, Array) and isinstance(ty.dtype, Stored)
    *first, last = shape(owner)
    nbytes = b.llvm.mul(last, b.int64(match.data))
    last = b.llvm.sdiv(nbytes, b.int64(ty.dtype.dtype.itemsize))
    return Value(ty, (owner.leaves[0], *first, last))


@REGISTRY.attribute(Array, "nbytes", lambda owner: types.py_int)
def nbytes(b: Builder, owner: Value, ty: Type) -> Value:
    """The number of bytes of all elements"""
    item: Any = owner.type.dtype.dtype.itemsize  # type: ignore[attr-defined]
    return Value(ty, (b.llvm.mul(_product(b, list(shape(owner))), b.int64(item)),))
