"""Rows of structured arrays and records, and of named tuples and dataclasses."""

from __future__ import annotations

import operator
from typing import Any

from .. import types
from ..errors import TypingError
from ..frontend import internal
from ..lowering.builder import Builder
from ..lowering.casts import cast, shape, strides
from ..lowering.models import I8, Value
from ..types import Array, Literal, Record, Stored, Struct, Tuple, Type, widen
from ..typing.promotion import converts
from ..typing.registry import REGISTRY, Match
from .operators import no_lowering

row = REGISTRY.function


# Fields of one record: r.name, r["name"], and assignment to them


def _field(owner: Record, name: str) -> Type | None:
    found = owner.field(name)
    return found and found[0]


@REGISTRY.fields(Record, _field)
def field(b: Builder, owner: Value, name: str, ty: Type) -> Value:
    """The value of a field; an array field is a view"""
    record = owner.type
    assert isinstance(record, Record)
    found = record.field(name)
    assert found is not None
    place = b.bytes_on(owner.leaf, found[1])
    if isinstance(ty, Array):
        lengths = record.dtype[name].shape
        return Value(ty, (place, *(b.int64(n) for n in lengths)))
    assert isinstance(ty, Stored)
    return b.load(place, ty, record.field_align(ty))


def _item(owner: Type, index: Type) -> Match | None:
    if not isinstance(owner, Record):
        return None
    found = _field(owner, index.value) if isinstance(index, Literal) else None
    if found is None:
        raise TypingError(f"{widen(index)} is no field of {owner}")
    return Match((None, None), found, data=index.value)  # type: ignore[attr-defined]


@row(operator.getitem, rule=_item, name="record[...]")
def item(b: Builder, match: Match, owner: Value, index: Value) -> Value:
    """r["name"]"""
    return field(b, owner, match.data, match.returns)


def _assign_field(owner: Type, name: Type, value: Type) -> Match | None:
    if not isinstance(owner, Record):
        return None
    found = _field(owner, name.value) if isinstance(name, Literal) else None
    if found is None:
        raise TypingError(f"{widen(name)} is no field of {owner}")
    if owner.readonly:
        raise TypingError("the record is read-only: its fields cannot be assigned")
    if isinstance(found, Array) or not converts(widen(value), found):
        raise TypingError(f"{widen(value)} cannot be stored in a field of type {found}")
    assert isinstance(name, Literal)
    wanted = None if isinstance(found, Record) else found
    return Match((None, None, wanted), types.none, data=name.value)


@row(setattr, operator.setitem, rule=_assign_field, name="record.field = ")
def assign_field(b: Builder, match: Match, owner: Value, name: Value, value: Value) -> Value:
    """r.name = value, r["name"] = value"""
    record = owner.type
    assert isinstance(record, Record)
    found = record.field(match.data)
    assert found is not None and isinstance(found[0], Stored)
    b.store(b.bytes_on(owner.leaf, found[1]), value, record.field_align(found[0]))
    return Value(types.none)


# Fields of all records of an array: a["name"], a.name


def _column(owner: Type, name: str) -> Array | None:
    if not isinstance(owner, Array) or not isinstance(owner.dtype, Record):
        return None
    found = owner.dtype.field(name)
    if found is None or not isinstance(found[0], Stored):
        return None
    element = found[0]
    align = owner.dtype.field_align(element)
    return owner.copy(dtype=element, layout="A", align=align)


def _column_item(owner: Type, index: Type) -> Match | None:
    if not isinstance(index, Literal) or not isinstance(index.value, str):
        return None
    found = _column(owner, index.value)
    return Match((None, None), found, data=index.value) if found else None


@REGISTRY.fields(Array, _column)
def column(b: Builder, owner: Value, name: str, ty: Type) -> Value:
    """The array of one field of each record"""
    array = owner.type
    assert isinstance(array, Array) and isinstance(array.dtype, Record)
    found = array.dtype.field(name)
    assert found is not None
    pointer = b.offset(owner.leaves[0], I8, b.int64(found[1]))
    return Value(ty, (pointer, *shape(owner), *strides(b, owner)))


@row(operator.getitem, rule=_column_item, name="array[...]")
def column_item(b: Builder, match: Match, owner: Value, index: Value) -> Value:
    """a["name"]"""
    return column(b, owner, match.data, match.returns)


REGISTRY.rows[id(operator.getitem)].insert(0, REGISTRY.rows[id(operator.getitem)].pop())
REGISTRY.rows[id(operator.setitem)].insert(0, REGISTRY.rows[id(operator.setitem)].pop())


# Named tuples and dataclasses


def _member(owner: Struct, name: str) -> Type | None:
    return owner.items[owner.names.index(name)] if name in owner.names else None


@REGISTRY.fields(Struct, _member)
def member(b: Builder, owner: Value, name: str, ty: Type) -> Value:
    """s.name"""
    assert isinstance(owner.type, Struct)
    return b.items(owner)[owner.type.names.index(name)]


def _as_tuple(ty: Type) -> Tuple | None:
    wide = widen(ty)
    return Tuple(wide.items) if isinstance(wide, Struct) and issubclass(wide.cls, tuple) else None


def _struct_item(owner: Type, index: Type) -> Match | None:
    whole = _as_tuple(owner)
    if whole is None:
        return None
    found = REGISTRY.resolve(operator.getitem, (whole, index))
    return Match((widen(owner), found[1].args[1]), found[1].returns, data=(whole, *found))


@row(operator.getitem, rule=_struct_item, name="namedtuple[...]")
def struct_item(b: Builder, match: Match, owner: Value, index: Value) -> Value:
    """s[i]"""
    whole, inner_row, inner = match.data
    value = cast(b, Value(whole, owner.leaves), inner.args[0])
    result: Value = inner_row.lower(b, inner, value, index)
    return result


def _struct_len(value: Type) -> Match | None:
    whole = _as_tuple(value)
    return Match((None,), Literal(len(whole.items))) if whole else None


row(len, rule=_struct_len)(no_lowering)


@row(internal.make_structure, rule=lambda *fields: None)
def make_structure(b: Builder, match: Match, *given: Value) -> Value:
    """cls(...): the fields that are given, and the defaults of the others"""
    leaves: list[Any] = []
    for source, ty in zip(match.data, match.returns.items, strict=True):  # type: ignore[attr-defined]
        value = given[source] if isinstance(source, int) else Value(source)
        leaves += cast(b, value, ty).leaves
    return Value(match.returns, tuple(leaves))
