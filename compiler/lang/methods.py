"""Rows of what arrays do beyond indexing: slice assignment, reductions, reshape, ravel, view."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..elements import Elementwise, Flat
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.casts import cast, shape
from ..lowering.models import I64, Value
from ..types import Array, Boolean, Integer, Literal, Stored, Tuple, Type, number
from ..typing.promotion import converts
from ..typing.registry import REGISTRY, Match
from . import elementwise, pyarrays
from .indexing import check_indices, view_ndim
from .memory import constant_dtype
from .operators import no_lowering

row = REGISTRY.function


# Assignment to slices


def _assign(owner: Type, index: Type, value: Type) -> Match | None:
    if not isinstance(owner, Array) or not isinstance(owner.dtype, Stored):
        return None
    if owner.readonly:
        raise TypingError("the array is read-only: its elements cannot be assigned")
    view = view_ndim(owner, check_indices(owner, index))
    ndim = value.ndim if isinstance(value, Array | Elementwise) else 0
    if ndim == 0 and not converts(types.widen(value), owner.dtype):
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
    return Match((None,), Literal(getattr(value, "ndim", 0)))


row(np.ndim, rule=_ndim)(no_lowering)
REGISTRY.method(Array, "fill", rule=lambda owner, value: Match(
    (None, None), types.none, python=pyarrays.assign
))(no_lowering)  # fmt: skip


def _order(value: Type, target: Type) -> Match | None:
    if isinstance(value, Array) and value.ndim > 0:
        return Match((None, None), types.none, python=pyarrays.array_order)
    if isinstance(value, Elementwise):
        return Match((None, None), types.none, python=elementwise.order_of(len(value.items)))
    return Match((None, None), Literal(0))


row(pyarrays.order, rule=_order)(no_lowering)


# Reductions by one thread: a.sum(), np.sum(a), and the builtin where Python has one


def _is_whole(array: Type) -> bool:
    return isinstance(array, Array | Elementwise) and array.ndim > 0


def _whole(function: Callable[..., Any]) -> Callable[[Type], Match | None]:
    return lambda array: Match((None,), types.none, python=function) if _is_whole(array) else None


def _with_ddof(function: Callable[..., Any]) -> Callable[..., Match | None]:
    def rule(array: Type, ddof: Type | None = None) -> Match | None:
        given = (None,) if ddof is None else (None, types.py_int)
        return Match(given, types.none, python=function) if _is_whole(array) else None

    return rule


def _searchsorted(a: Type, v: Type, side: Type | None = None) -> Match | None:
    if not isinstance(a, Array) or a.ndim != 1 or number(v) is None:
        return None
    given = (None, None) if side is None else (None, None, None)
    return Match(given, types.py_int, python=pyarrays.searchsorted)


_REDUCTIONS = (
    ("sum", pyarrays.array_sum, np.sum, builtins.sum),
    ("prod", pyarrays.array_prod, np.prod, None),
    ("mean", pyarrays.array_mean, np.mean, np.average),
    ("any", pyarrays.array_any, np.any, builtins.any),
    ("all", pyarrays.array_all, np.all, builtins.all),
    ("min", pyarrays.array_min, np.min, builtins.min),
    ("max", pyarrays.array_max, np.max, builtins.max),
    ("argmin", pyarrays.argmin, np.argmin, None),
    ("argmax", pyarrays.argmax, np.argmax, None),
)
_OF_NUMPY = (
    (np.ptp, pyarrays.array_ptp), (np.count_nonzero, pyarrays.count_nonzero),
    (np.nansum, pyarrays.nan_sum), (np.nanmean, pyarrays.nan_mean),
    (np.nanmin, pyarrays.nan_min), (np.nanmax, pyarrays.nan_max),
)  # fmt: skip
for _name, _function, *_callees in _REDUCTIONS:
    _rule = _whole(_function)
    row(*(c for c in _callees if c), rule=_rule, name=_name)(no_lowering)
    for _owner in (Array, Elementwise):
        REGISTRY.method(_owner, _name, _rule)(no_lowering)
for _callee, _function in _OF_NUMPY:
    row(_callee, rule=_whole(_function), name=_callee.__name__)(no_lowering)
for _name, _function in (("var", pyarrays.array_var), ("std", pyarrays.array_std)):
    row(getattr(np, _name), rule=_with_ddof(_function), name=_name)(no_lowering)
    for _owner in (Array, Elementwise):
        REGISTRY.method(_owner, _name, _with_ddof(_function))(no_lowering)
row(np.searchsorted, rule=_searchsorted)(no_lowering)
REGISTRY.method(Array, "searchsorted", _searchsorted)(no_lowering)


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


def _flat(owner: Array) -> Type:
    return owner.copy(ndim=1) if owner.layout == "C" and owner.ndim > 0 else Flat(owner)


@REGISTRY.attribute(Array, "flat", _flat)
def flat(b: Builder, owner: Value, ty: Type) -> Value:
    """The elements in C order"""
    return ravel(b, Match((None,), ty), owner) if isinstance(ty, Array) else Value(ty, owner.leaves)


def _flat_item(owner: Type, index: Type) -> Match | None:
    if not isinstance(owner, Flat) or not isinstance(number(index), Integer):
        return None
    return Match((owner.array, types.py_int), types.none, python=pyarrays.flat_item)


def _set_flat_item(owner: Type, index: Type, value: Type) -> Match | None:
    if not isinstance(owner, Flat) or not isinstance(number(index), Integer):
        return None
    return Match((owner.array, types.py_int, None), types.none, python=pyarrays.set_flat_item)


def _flat_length(value: Type) -> Match | None:
    return Match((None,), types.py_int) if isinstance(value, Flat) else None


row(operator.getitem, rule=_flat_item, name="flat[...]")(no_lowering)
row(operator.setitem, rule=_set_flat_item, name="flat[...] = ")(no_lowering)


@row(builtins.len, rule=_flat_length)
def flat_length(b: Builder, match: Match, value: Value) -> Value:
    """The number of elements"""
    lengths = shape(Value(value.type.array, value.leaves))  # type: ignore[attr-defined]
    return Value(types.py_int, (_product(b, list(lengths)),))


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
