"""Rows of short vectors, such as float32x4: made from numbers and vectors, arithmetic by parts."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from .. import types
from ..elements import VECTORS, Vector
from ..errors import TypingError
from ..frontend import internal
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import Value
from ..types import Float, Integer, Literal, Scalar, Type, number, widen
from ..typing.promotion import promote
from ..typing.registry import REGISTRY, Match
from .operators import no_lowering

row = REGISTRY.function


def vector_type(ty: Type) -> Vector | None:
    """The type of a vector; None for anything else."""
    wide = widen(ty)
    return wide if isinstance(wide, Vector) else None


def _components(b: Builder, value: Value) -> list[Value]:
    ty = value.type
    assert isinstance(ty, Vector)
    return [Value(ty.base, (leaf,)) for leaf in value.leaves]


# Made from numbers and vectors; one number goes to all places


def _construct(to: Vector) -> Callable[..., Match | None]:
    def rule(*parts: Type) -> Match | None:
        count, wanted = 0, []
        for part in parts:
            vector = vector_type(part)
            if vector is None and number(part) is None:
                return None
            count += 1 if vector is None else vector.count
            wanted.append(to.base if vector is None else vector)
        if count != to.count and not (len(parts) == 1 and count == 1):
            raise TypingError(f"{to} has {to.count} components, {count} were given")
        return Match(tuple(wanted), to)

    return rule


def construct(b: Builder, match: Match, *parts: Value) -> Value:
    """A vector of these numbers, and of the components of these vectors"""
    to = match.returns
    assert isinstance(to, Vector)
    leaves = []
    for part in parts:
        items = _components(b, part) if isinstance(part.type, Vector) else [part]
        leaves += [cast(b, item, to.base).leaf for item in items]
    return Value(to, tuple(leaves * (to.count if len(leaves) == 1 else 1)))


for _vector in dict.fromkeys(VECTORS.values()):
    row(_vector, rule=_construct(_vector), name=_vector.name)(construct)


# Components: v.x, v[0], and v.x = value, which gives the name v a new vector


def _place(name: str, ty: Vector) -> int | None:
    place = "xyzw".find(name) if len(name) == 1 else -1
    return place if 0 <= place < ty.count else None


@REGISTRY.fields(Vector, lambda ty, name: None if _place(name, ty) is None else ty.base)
def component(b: Builder, owner: Value, name: str, ty: Type) -> Value:
    """v.x"""
    assert isinstance(owner.type, Vector)
    place = _place(name, owner.type)
    assert place is not None
    return Value(ty, (owner.leaves[place],))


def _item(owner: Type, index: Type) -> Match | None:
    ty = vector_type(owner)
    if ty is None or not isinstance(number(index), Integer):
        return None
    if not isinstance(index, Literal):
        whole = types.Tuple((ty.base,) * ty.count)
        return Match((ty, None), ty.base, data=REGISTRY.resolve(operator.getitem, (whole, index)))
    if not -ty.count <= index.value < ty.count:
        raise TypingError(f"{ty} has no component {index.value}")
    return Match((ty, None), ty.base, data=index.value)


@row(operator.getitem, rule=_item, name="vector[...]")
def item(b: Builder, match: Match, owner: Value, index: Value) -> Value:
    """v[i]"""
    if isinstance(match.data, int):
        return _components(b, owner)[match.data]
    found, inner = match.data
    base = match.returns
    whole = Value(types.Tuple((base,) * len(owner.leaves)), owner.leaves)
    result: Value = found.lower(b, inner, whole, cast(b, index, inner.args[1]))
    return result


def _length(value: Type) -> Match | None:
    ty = vector_type(value)
    return Match((None,), Literal(ty.count)) if ty else None


row(len, rule=_length)(no_lowering)


def _with_field(owner: Type, name: Type, value: Type) -> Match | None:
    ty = vector_type(owner)
    if ty is None:
        row_, match = REGISTRY.resolve(setattr, (owner, name, value))
        return Match(match.args, owner, data=(row_, match))
    assert isinstance(name, Literal)
    place = _place(name.value, ty)
    if place is None or number(value) is None:
        raise TypingError(f"{widen(value)} cannot be stored in component {name.value!r} of {ty}")
    return Match((ty, None, ty.base), ty, data=place)


@row(internal.with_field, rule=_with_field)
def with_field(b: Builder, match: Match, owner: Value, name: Value, value: Value) -> Value:
    """The owner after its field was assigned: a vector is a new one"""
    if not isinstance(match.data, int):
        found, inner = match.data
        found.lower(b, inner, owner, name, value)
        return owner
    leaves = list(owner.leaves)
    leaves[match.data] = value.leaf
    return Value(match.returns, tuple(leaves))


def _refuse(owner: Type, name: Type, value: Type) -> Match | None:
    if vector_type(owner) is None:
        return None
    raise TypingError("a vector is a value: v = a[i]; v.x = ...; a[i] = v")


row(setattr, rule=_refuse)(no_lowering)


# Arithmetic by components; numbers go to all places


def at(value: Any, index: int) -> Any:
    """A component, or the number itself; the compiler has a row for it."""
    return value[index] if isinstance(value, tuple) else value


def _at(value: Type, index: Type) -> Match | None:
    ty = vector_type(value)
    assert isinstance(index, Literal)
    return Match((None, None), number(value) or types.none if ty is None else ty.base, index.value)


@row(at, rule=_at)
def component_at(b: Builder, match: Match, value: Value, index: Value) -> Value:
    """A component, or the number itself"""
    if isinstance(value.type, Vector):
        place: int = match.data
        return _components(b, value)[place]
    return cast(b, value, match.returns)


@functools.cache
def _by_parts(function: Any, to: Vector) -> Callable[[Any, Any], Any]:
    """What *function* gives of each two components, in the kernel language."""

    def one(left: Any, right: Any) -> Any:
        return to(function(at(left, 0), at(right, 0)))

    def two(left: Any, right: Any) -> Any:
        return to(function(at(left, 0), at(right, 0)), function(at(left, 1), at(right, 1)))

    def three(left: Any, right: Any) -> Any:
        return to(
            function(at(left, 0), at(right, 0)),
            function(at(left, 1), at(right, 1)),
            function(at(left, 2), at(right, 2)),
        )

    def four(left: Any, right: Any) -> Any:
        return to(
            function(at(left, 0), at(right, 0)),
            function(at(left, 1), at(right, 1)),
            function(at(left, 2), at(right, 2)),
            function(at(left, 3), at(right, 3)),
        )

    return (one, two, three, four)[to.count - 1]


def _base(left: Type, right: Type, function: Any) -> Scalar | None:
    """The type of the results' components: narrow ints stay, and weak numbers give way."""
    kinds: list[Any] = []
    for ty in (left, right):
        vector = vector_type(ty)
        kinds.append(number(ty) if vector is None else vector.base)
    if None in kinds:
        return None
    both = promote(kinds[0], kinds[1])
    if function is operator.truediv and isinstance(both, Integer):
        return types.float64
    if both.weak and isinstance(both, Integer):
        widest: Scalar = max((kind for kind in kinds if not kind.weak), key=lambda kind: kind.bits)
        return widest
    return types.float64 if both.weak else both


def _arithmetic(function: Any, integers: bool) -> Callable[[Type, Type], Match | None]:
    def rule(left: Type, right: Type) -> Match | None:
        vectors = [ty for ty in (vector_type(left), vector_type(right)) if ty is not None]
        base = _base(left, right, function) if vectors else None
        if base is None or (integers and isinstance(base, Float)):
            return None
        if len({vector.count for vector in vectors}) != 1:
            raise TypingError(f"{vectors[0]} and {vectors[1]} differ in length")
        to = VECTORS[f"{base.name}x{vectors[0].count}"]
        return Match((None, None), to, python=_by_parts(function, to))

    return rule


_BITS = ("and_", "or_", "xor", "lshift", "rshift")
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", *_BITS):
    _function = getattr(operator, _name)
    _callees = (_function, getattr(operator, f"i{_name.rstrip('_')}"))
    row(*_callees, rule=_arithmetic(_function, _name in _BITS), name=_name)(no_lowering)


def _all_equal(left: Any, right: Any) -> Any:
    """Whether all components are equal."""
    return all(left[i] == right[i] for i in range(len(left)))


def _some_differ(left: Any, right: Any) -> Any:
    """Whether some components differ."""
    return not _all_equal(left, right)


def _compared(function: Any) -> Callable[[Type, Type], Match | None]:
    def rule(left: Type, right: Type) -> Match | None:
        a, b = vector_type(left), vector_type(right)
        if a is None or b is None or a.count != b.count:
            return None
        return Match((None, None), types.boolean, python=function)

    return rule


row(operator.eq, rule=_compared(_all_equal), name="eq")(no_lowering)
row(operator.ne, rule=_compared(_some_differ), name="ne")(no_lowering)


def _one(value: Type) -> Match | None:
    ty = vector_type(value)
    return Match((ty,), ty) if ty else None


def _unary(function: Any) -> Any:
    def lower(b: Builder, match: Match, value: Value) -> Value:
        leaves = []
        for part in _components(b, value):
            found, inner = REGISTRY.resolve(function, (part.type,))
            result = found.lower(b, inner, cast(b, part, inner.args[0] or part.type))
            leaves.append(cast(b, result, part.type).leaf)
        return Value(match.returns, tuple(leaves))

    return lower


for _name in ("neg", "pos", "abs"):
    row(getattr(operator, _name), rule=_one, name=_name)(_unary(getattr(operator, _name)))
row(abs, rule=_one)(_unary(abs))
