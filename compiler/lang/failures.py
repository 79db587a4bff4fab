"""Rows of raise and of f-strings."""

from __future__ import annotations

from .. import types
from ..errors import TypingError
from ..frontend import internal
from ..lowering import failures
from ..lowering.builder import Builder
from ..lowering.models import Value
from ..types import Formatted, Literal, Text, Type, widen
from ..typing.registry import REGISTRY, Match
from .operators import no_lowering

# Inference itself knows what these give.
for _asked in (internal.checking, internal.capability):
    REGISTRY.function(_asked, rule=lambda: Match((), types.py_int))(no_lowering)


def _fail(exception: Type, *args: Type) -> Match:
    cls = exception.value if isinstance(exception, Literal) else None
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        raise TypingError(f"{widen(exception)} is no exception class: raise one, or call one")
    return Match((None,) * (1 + len(args)), types.none, data=cls)


@REGISTRY.function(internal.fail, rule=_fail)
def fail(b: Builder, match: Match, exception: Value, *args: Value) -> Value:
    """raise X(...): the thread ends; jit(debug=True) raises X on the host"""
    failures.fail(b, match.data, args)
    return Value(types.none)


def _formatted(value: Type, conversion: Type, spec: Type) -> Match:
    if not isinstance(spec, Literal):
        raise TypingError("the format of an f-string must be constant")
    assert isinstance(conversion, Literal)
    letter = "" if conversion.value < 0 else f"!{chr(conversion.value)}"
    if isinstance(value, Literal):
        return Match((None,) * 3, Literal(_format(value.value, conversion.value, spec.value)))
    return Match((None,) * 3, Formatted(value, letter, spec.value))


def _format(value: object, conversion: int, spec: str) -> str:
    try:
        return internal.formatted(value, conversion, spec)
    except (ValueError, TypeError) as error:
        raise TypingError(f"f-string: {error}") from None


@REGISTRY.function(internal.formatted, rule=_formatted)
def formatted(b: Builder, match: Match, value: Value, conversion: Value, spec: Value) -> Value:
    """{value!conversion:spec}"""
    return Value(match.returns, value.leaves)


def _text(*parts: Type) -> Match:
    if all(isinstance(part, Literal) for part in parts):
        whole = "".join(part.value for part in parts if isinstance(part, Literal))
        return Match((None,) * len(parts), Literal(whole))
    return Match((None,) * len(parts), Text(parts))


@REGISTRY.function(internal.text, rule=_text)
def text(b: Builder, match: Match, *parts: Value) -> Value:
    """An f-string: constant text and fields"""
    return Value(match.returns, tuple(leaf for part in parts for leaf in part.leaves))
