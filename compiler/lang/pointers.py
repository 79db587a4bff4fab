"""Rows of C pointers: elements, arithmetic, and arrays over the memory at an address."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir

from .. import types
from ..elements import CPointer
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import I64, Value, memory_type
from ..types import Array, Integer, Literal, Tuple, Type, number, widen
from ..typing.promotion import converts
from ..typing.registry import REGISTRY, Match
from .memory import constant_dtype
from .stub import Stub

row = REGISTRY.function
carray = Stub(
    "carray",
    """carray(pointer, shape, dtype=None): the C-ordered array at a pointer or address.

    The memory is the caller's; an address, which is an int, needs a dtype.
    """,
)
farray = Stub("farray", "farray(pointer, shape, dtype=None): as carray, in Fortran's order.")


def _indexed(owner: Type, index: Type) -> bool:
    return isinstance(owner, CPointer) and isinstance(number(index), Integer)


def _element(b: Builder, owner: Value, index: Value) -> ir.Value:
    assert isinstance(owner.type, CPointer)
    return b.offset(owner.leaf, memory_type(owner.type.dtype), index.leaf)


def _getitem(owner: Type, index: Type) -> Match | None:
    if not _indexed(owner, index):
        return None
    return Match((None, types.int64), owner.dtype)  # type: ignore[attr-defined]


@row(operator.getitem, rule=_getitem, name="pointer[...]")
def getitem(b: Builder, match: Match, owner: Value, index: Value) -> Value:
    """p[i]"""
    return b.load(_element(b, owner, index), match.returns)  # type: ignore[arg-type]


def _setitem(owner: Type, index: Type, value: Type) -> Match | None:
    if not _indexed(owner, index):
        return None
    element = owner.dtype  # type: ignore[attr-defined]
    if not converts(widen(value), element):
        raise TypingError(f"{value} cannot be stored at a pointer to {element}")
    return Match((None, types.int64, element), types.none)


@row(operator.setitem, rule=_setitem, name="pointer[...] = ")
def setitem(b: Builder, match: Match, owner: Value, index: Value, value: Value) -> Value:
    """p[i] = value"""
    b.store(_element(b, owner, index), value)
    return Value(types.none)


def _moved(left: Type, right: Type) -> Match | None:
    return Match((None, types.int64), left) if _indexed(left, right) else None


@row(operator.add, operator.iadd, rule=_moved, name="add")
def add(b: Builder, match: Match, left: Value, right: Value) -> Value:
    """p + n: n elements further on"""
    return Value(left.type, (_element(b, left, right),))


@row(operator.sub, operator.isub, rule=_moved, name="sub")
def sub(b: Builder, match: Match, left: Value, right: Value) -> Value:
    """p - n: n elements back"""
    back = Value(types.int64, (b.llvm.neg(right.leaf),))
    return Value(left.type, (_element(b, left, back),))


def _truth(value: Type) -> Match | None:
    return Match((None,), types.boolean) if isinstance(value, CPointer) else None


@row(operator.not_, rule=_truth)
def is_null(b: Builder, match: Match, value: Value) -> Value:
    """not p: whether it is null"""
    address = b.llvm.ptrtoint(value.leaf, I64)
    return Value(types.boolean, (b.llvm.icmp_unsigned("==", address, b.int64(0)),))


def _array(layout: str) -> Any:
    def rule(ptr: Type, shape: Type, dtype: Type | None = None) -> Match | None:
        is_address = isinstance(number(ptr), Integer)
        if not is_address and not isinstance(ptr, CPointer):
            return None
        if dtype is None and is_address:
            raise TypingError("an address alone has no type: give the dtype of the elements")
        wide = widen(shape)
        lengths = wide.items if isinstance(wide, Tuple) else (wide,)
        if not all(isinstance(number(ty), Integer) for ty in lengths):
            raise TypingError("the shape is an int or a tuple of ints")
        element = ptr.dtype if dtype is None else constant_dtype(dtype)  # type: ignore[attr-defined]
        if isinstance(dtype, Literal) and dtype.value is None:
            element = ptr.dtype  # type: ignore[attr-defined]
        whole = Tuple((types.int64,) * len(lengths))
        args = (types.py_int if is_address else None, whole if isinstance(wide, Tuple) else wide)
        rest = () if dtype is None else (None,)
        return Match((*args, *rest), Array(element, len(lengths), layout))

    return rule


def _lower(b: Builder, match: Match, ptr: Value, shape: Value, *dtype: Value) -> Value:
    """The array over memory that is there"""
    pointer = ptr.leaf
    if isinstance(ptr.type, Integer):
        pointer = b.llvm.inttoptr(pointer, b.layout.pointer())
    whole = isinstance(shape.type, Tuple)
    lengths = shape.leaves if whole else (cast(b, shape, types.int64).leaf,)
    return Value(match.returns, (pointer, *lengths))


row(carray, rule=_array("C"))(_lower)
row(farray, rule=_array("F"))(_lower)


def _address_of(owner: Array) -> CPointer:
    return CPointer(owner.dtype)


@REGISTRY.attribute(Array, "ctypes", _address_of)
def address_of(b: Builder, owner: Value, ty: Type) -> Value:
    """The pointer to the first element; .data of it is the address, an int"""
    pointer = owner.leaves[0]
    return Value(ty, (b.to_generic(pointer) if pointer.type.addrspace else pointer,))


@REGISTRY.attribute(CPointer, "data", lambda owner: types.py_int)
def data(b: Builder, owner: Value, ty: Type) -> Value:
    """The address, an int"""
    return Value(ty, (b.llvm.ptrtoint(owner.leaf, I64),))
