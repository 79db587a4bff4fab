"""What other libraries add to the kernel language, without touching this package's files.

`struct` makes a class usable in kernels, `overload` and its kin implement functions, operators,
methods and attributes in Python, and `intrinsic` in LLVM IR. Types of one's own making derive
from `Type` and get a `model`. All of it adds rows to the same table that the built-in ones are in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from . import types
from .dispatch import arguments
from .errors import TypingError
from .lang.operators import no_lowering
from .lang.stub import Stub
from .lowering.builder import Builder
from .lowering.casts import cast
from .lowering.models import MODELS, Value
from .types import Literal, Struct, Type
from .typing.promotion import converts
from .typing.registry import REGISTRY, Match

Chooser = Callable[..., Any]
C = TypeVar("C", bound=Callable[..., Any])


def struct(cls: type, **fields: Any) -> Struct:
    """Make instances of *cls* kernel values with these fields.

    An instance is passed by the attributes of these names; in kernels ``cls(...)`` makes one
    from all fields in order, and the fields can be read.

    Args:
        fields: the type of each, in the order in which the constructor takes them.

    Returns:
        The type; ``type(it)`` is what `overload_method` and `overload_attribute` take.

    Raises:
        TypeError: a field's type is none.
    """
    items = tuple(f if isinstance(f, Type) else types.from_dtype(f) for f in fields.values())
    kind = type(f"{cls.__name__}Type", (Struct,), {"__slots__": ()})
    ty: Struct = kind(cls, tuple(fields), items)

    def construct(*given: Type) -> Match | None:
        fits = len(given) == len(items) and all(map(converts, map(types.widen, given), items))
        return Match(items, ty) if fits else None

    @REGISTRY.function(cls, rule=construct, name=cls.__name__)
    def make(b: Builder, match: Match, *values: Value) -> Value:
        """The fields' leaves, one after the other"""
        return Value(match.returns, tuple(leaf for value in values for leaf in value.leaves))

    typeof(cls)(lambda value: ty)
    return ty


def typeof(cls: type) -> Callable[[C], C]:
    """Decorate what gives the kernel type of an instance of *cls* that a launch gets."""

    def register(function: C) -> C:
        arguments.TYPEOF[cls] = function
        return function

    return register


def model(kind: type[Type], leaves: Callable[[Any], list[Any]], codes: str) -> Callable[[C], C]:
    """Give the values of a class of types a layout, and decorate what packs a launch argument.

    Args:
        kind: a subclass of Type.
        leaves: from a type to the LLVM types (llvmlite.ir) that a value consists of.
        codes: a letter of `struct` for each leaf, as the launch passes it.

    The decorated function takes the type and the value, and returns a number for each leaf.
    """
    MODELS[kind] = lambda layout, ty: leaves(ty)

    def register(function: C) -> C:
        arguments.PACKERS[kind] = (codes, function)
        return function

    return register


def _overloaded(chooser: Chooser) -> Callable[..., Match | None]:
    """A rule that asks *chooser* for an implementation for the argument types."""

    def rule(*given: Type) -> Match | None:
        implementation = chooser(*map(types.widen, given))
        if implementation is None:
            return None
        return Match((None,) * len(given), types.none, python=implementation)

    rule.__signature__ = inspect.signature(chooser)  # type: ignore[attr-defined]
    return rule


def overload(callee: Any) -> Callable[[C], C]:
    """Implement *callee*, a function or an operator of `operator`, in the kernel language.

    The decorated function takes the argument types and returns the implementation for them, a
    Python function of as many parameters, or None if it has none.
    """

    def register(chooser: C) -> C:
        REGISTRY.function(callee, rule=_overloaded(chooser))(no_lowering)
        return chooser

    return register


def overload_method(kind: type[Type], name: str) -> Callable[[C], C]:
    """As `overload`, for a method of values whose type is a *kind*; the owner comes first."""

    def register(chooser: C) -> C:
        REGISTRY.method(kind, name, _overloaded(chooser))(no_lowering)
        return chooser

    return register


def overload_attribute(kind: type[Type], name: str) -> Callable[[C], C]:
    """As `overload`, for an attribute: the implementation takes the owner."""

    def register(chooser: C) -> C:
        REGISTRY.computed[kind, name] = chooser
        return chooser

    return register


def intrinsic(function: Callable[..., Any]) -> Stub:
    """Make a kernel function whose code is LLVM IR.

    The decorated function takes the argument types and returns a `Match` (the types that the
    arguments are cast to, and that of the result) and what emits the code: it takes a `Builder`,
    the match and the arguments as `Value`, and returns a `Value`. None refuses the types.
    """
    stub = Stub(function.__name__, function.__doc__ or function.__name__)

    def rule(*given: Type) -> Match | None:
        found = function(*given)
        if found is None:
            return None
        match, lower = found
        return Match(match.args, match.returns, data=lower)

    rule.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]

    @REGISTRY.function(stub, rule=rule)
    def lower(b: Builder, match: Match, *args: Value) -> Value:
        """What the intrinsic's author emits"""
        result: Value = match.data(b, match, *args)
        return result

    return stub


__all__ = [
    "REGISTRY",
    "Builder",
    "Literal",
    "Match",
    "Type",
    "TypingError",
    "Value",
    "cast",
    "intrinsic",
    "model",
    "overload",
    "overload_attribute",
    "overload_method",
    "struct",
    "typeof",
]
