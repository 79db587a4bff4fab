"""Atomic operations on array elements; each returns the old value."""

from __future__ import annotations

from typing import Any

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import Value, scalar_type
from ..types import Array, Float, Integer, Type, number
from ..typing.registry import REGISTRY, Match
from . import arrays
from .stub import Stub

# Name, the LLVM operation on signed and on unsigned integers, on floats, and what it does.
_TABLE = (
    ("add", "add", "add", "fadd", "old + value"),
    ("sub", "sub", "sub", "fsub", "old - value"),
    ("max", "max", "umax", None, "the larger of old and value"),
    ("min", "min", "umin", None, "the smaller of old and value"),
    ("and_", "and", "and", None, "old & value"),
    ("or_", "or", "or", None, "old | value"),
    ("xor", "xor", "xor", None, "old ^ value"),
    ("exch", "xchg", "xchg", None, "value"),
)


class _Atomic:
    """atomic.add(array, index, value) and its like: change an element in one step."""


atomic: Any = _Atomic()


def _rule(name: str, floats: bool) -> Any:
    def rule(array: Type, index: Type, value: Type) -> Match | None:
        if not isinstance(array, Array) or number(value) is None:
            return None
        if not arrays.is_element(array, arrays.check_indices(array, index)):
            raise TypingError(f"atomic.{name} takes one index for each of {array.ndim} dimensions")
        dtype = array.dtype
        wide = isinstance(dtype, Integer | Float) and dtype.bits >= 32
        if not wide or (isinstance(dtype, Float) and not floats):
            kinds = "int32, uint32, int64, uint64" + (", float32, float64" if floats else "")
            raise TypingError(f"atomic.{name} works on {kinds}, not on {dtype}")
        if array.readonly:
            raise TypingError("the array is read-only: its elements cannot be changed")
        return Match((None, None, dtype), dtype)

    return rule


def _declare(name: str, signed: str, unsigned: str, floating: str | None, doc: str) -> None:
    stub = Stub(f"atomic.{name}", f"atomic.{name}(array, index, value): store {doc}; return old.")
    setattr(_Atomic, name, stub)

    def lower(b: Builder, match: Match, array: Value, index: Value, value: Value) -> Value:
        place = arrays.element(b, array, index)
        if isinstance(value.type, Float):
            return _float_add(b, place, value, negate=floating == "fsub")
        operation = signed if value.type.signed else unsigned  # type: ignore[attr-defined]
        typed = b.typed(place, scalar_type(value.type))  # type: ignore[arg-type]
        return Value(value.type, (b.llvm.atomic_rmw(operation, typed, value.leaf, "monotonic"),))

    REGISTRY.function(stub, rule=_rule(name, floating is not None))(lower)


def _float_add(b: Builder, place: Any, value: Value, negate: bool) -> Value:
    leaf = b.llvm.fneg(value.leaf) if negate and not b.layout.typed_pointers else value.leaf
    if not b.layout.typed_pointers:
        return Value(value.type, (b.llvm.atomic_rmw("fadd", place, leaf, "monotonic"),))
    if negate:
        leaf = b.llvm.fsub(leaf.type(-0.0), leaf)
    bits = value.type.bits  # type: ignore[attr-defined]
    name = f"llvm.nvvm.atomic.load.add.f{bits}.p{place.type.addrspace}f{bits}"
    return Value(value.type, (b.intrinsic(name, leaf.type, [b.typed(place, leaf.type), leaf]),))


for _row in _TABLE:
    _declare(*_row)


def _cas_rule(array: Type, index: Type, old: Type, value: Type) -> Match | None:
    match = _rule("cas", floats=False)(array, index, value)
    return match and Match((None, None, match.returns, match.returns), match.returns)


atomic_cas = Stub(
    "atomic.cas",
    "atomic.cas(array, index, old, value): store value if the element is old; return what it was.",
)
_Atomic.cas = atomic_cas  # type: ignore[attr-defined]


@REGISTRY.function(atomic_cas, rule=_cas_rule)
def lower_cas(
    b: Builder, match: Match, array: Value, index: Value, old: Value, value: Value
) -> Value:
    """Compare and swap"""
    place = arrays.element(b, array, index)
    typed = b.typed(place, scalar_type(value.type))  # type: ignore[arg-type]
    pair = b.llvm.cmpxchg(typed, old.leaf, value.leaf, "monotonic", "monotonic")
    return Value(types.widen(match.returns), (b.llvm.extract_value(pair, 0),))
