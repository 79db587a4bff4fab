"""Which argument of a call each parameter of a Python function gets."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from .. import types
from ..errors import CompileError, Span, TypingError
from ..types import Literal, Signature, Type
from ..typing.promotion import converts

# The position of an argument, a default known beforehand, or the positions of those of *args.
Source = int | Literal | tuple[int, ...]


class Parameters(NamedTuple):
    """The parameters of a function.

    Attributes:
        names: in order; those that it captures first, *args last.
        captured: how many it captures.
        vararg: whether the last one is *args.
        keyword_only: names that are given by keyword only.
        defaults: the names of those that have one, in order.
    """

    name: str
    names: tuple[str, ...]
    captured: int = 0
    vararg: bool = False
    keyword_only: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()


def parameters_of(
    node: ast.FunctionDef | ast.Lambda,
    name: str,
    span: Callable[[ast.AST], Span],
    captured: list[str] | None = None,
) -> Parameters:
    """The parameters that a definition declares, after the names that it captures.

    Raises:
        CompileError: it has **kwargs.
    """
    args = node.args
    if args.kwarg:
        text = "**kwargs is not supported in a kernel: name each parameter"
        raise CompileError(text, span(args.kwarg))
    first = captured or []
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    keywords = [arg.arg for arg in args.kwonlyargs]
    with_default = positional[len(positional) - len(args.defaults) :] if args.defaults else []
    with_default += [
        arg.arg for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value
    ]
    last = [args.vararg.arg] if args.vararg else []
    return Parameters(
        name,
        (*first, *positional, *keywords, *last),
        len(first),
        bool(last),
        tuple(keywords),
        tuple(with_default),
    )


def bind(
    parameters: Parameters,
    count: int,
    names: tuple[str, ...],
    defaults: dict[str, Source],
    span: Span,
) -> tuple[Source, ...]:
    """For each parameter, the argument that it gets.

    Args:
        count: the number of arguments, those for captured names included; the last len(names)
            are given by keyword.
    """
    wanted = parameters.names[:-1] if parameters.vararg else parameters.names
    positional = [name for name in wanted if name not in parameters.keyword_only]
    given: dict[str, Source] = {}
    first_keyword = count - len(names)
    given.update(zip(positional, range(first_keyword), strict=False))
    for position, name in enumerate(names, first_keyword):
        if name not in wanted or name in given:
            raise TypingError(f"{parameters.name} takes no further argument {name!r}", span)
        given[name] = position
    given = defaults | given
    extra = tuple(range(len(positional), first_keyword))
    missing = [name for name in wanted if name not in given]
    if missing or (extra and not parameters.vararg):
        shown = ", ".join(parameters.names[parameters.captured :])
        number = count - parameters.captured
        text = f"{parameters.name}({shown}) cannot be called with {number} arguments"
        raise TypingError(text + (f": {missing[0]} is missing" if missing else ""), span)
    found = tuple(given[name] for name in wanted)
    return (*found, extra) if parameters.vararg else found


def source_type(source: Source, args: tuple[Type, ...]) -> Type:
    """The type of what a parameter gets; numbers lose their literal values."""
    if isinstance(source, Literal):
        return types.widen(source)
    if isinstance(source, int):
        return types.widen(args[source])
    return types.Tuple(tuple(types.widen(args[i]) for i in source))


def exact_type(source: Source, args: tuple[Type, ...]) -> Type:
    """As source_type, literal values kept."""
    if isinstance(source, Literal):
        return source
    if isinstance(source, int):
        return args[source]
    return types.Tuple(tuple(args[i] for i in source))


def reordered(sources: tuple[Source, ...], order: tuple[int, ...]) -> tuple[Source, ...]:
    """*sources*, whose positions are places in *order*, with the positions that stand there."""
    found: list[Source] = []
    for source in sources:
        if isinstance(source, tuple):
            found.append(tuple(order[i] for i in source))
        else:
            found.append(order[source] if isinstance(source, int) else source)
    return tuple(found)


def check_signature(
    name: str, signature: Signature, args: tuple[Type, ...], span: Span
) -> tuple[Type, ...]:
    """The declared argument types, if the given ones convert to them."""
    if len(signature.args) != len(args):
        raise TypingError(f"{name} is declared {signature}: {len(args)} arguments given", span)
    for given, declared in zip(args, signature.args, strict=True):
        if not converts(given, declared):
            text = f"{name} is declared {signature}: {given} is no {declared}"
            raise TypingError(text, span)
    return signature.args


def defaults_of(pyfunc: FunctionType) -> dict[str, Source]:
    """The defaults of a Python function's parameters, as they are now."""
    code = pyfunc.__code__
    values = pyfunc.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    found = dict(zip(names, values, strict=True)) | (pyfunc.__kwdefaults__ or {})
    return {name: Literal(value) for name, value in found.items()}


def fields_of(cls: Any, span: Span) -> tuple[tuple[str, ...], dict[str, Source]]:
    """The fields of a named tuple or dataclass that its class takes, and their defaults.

    Raises:
        TypingError: it does more than store them.
    """
    if hasattr(cls, "_fields"):
        return cls._fields, {n: Literal(v) for n, v in cls._field_defaults.items()}
    missing = dataclasses.MISSING
    found = dataclasses.fields(cls)
    plain = all(f.init and f.default_factory is missing for f in found)
    if not plain or hasattr(cls, "__post_init__"):
        text = f"{cls.__qualname__} does more than keep its fields: a kernel cannot make one"
        raise TypingError(text, span)
    defaults = {f.name: f.default for f in found if f.default is not missing}
    return tuple(f.name for f in found), {n: Literal(v) for n, v in defaults.items()}
