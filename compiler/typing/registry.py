"""The table of everything a kernel can call: one row a callable and type rule.

A row's *rule* takes the argument types, under the parameter names that the user writes, and
returns a Signature-like `Match` or None; its *lower* emits the code. Operators are rows under
the functions of `operator`; attributes and methods are rows under a type class and a name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

from ..errors import TypingError
from ..types import Literal, Type, widen

Rule = Callable[..., "Match | None"]
Lower = Callable[..., Any]
L = TypeVar("L", bound=Lower)
# When it is asked for: making all of them takes a good part of the time of the import.
_signature = cache(inspect.signature)


class Match(NamedTuple):
    """What a rule decides.

    Attributes:
        args: the types that the arguments are cast to, in the order of the rule's parameters;
            None leaves one as it comes.
        returns: the type of the result.
        data: what the rule tells the lowering.
        python: an implementation in the kernel language, compiled for *args* and called; its
            parameters have the names of the rule's.
        libdevice: *python* is only for targets without libdevice.
    """

    args: tuple[Type | None, ...]
    returns: Type
    data: Any = None
    python: Callable[..., Any] | None = None
    libdevice: bool = False


class Row(NamedTuple):
    """One callable for one family of types."""

    name: str
    rule: Rule
    lower: Lower

    @property
    def parameters(self) -> inspect.Signature:
        """The parameters of the rule."""
        return _signature(self.rule)

    def match(self, args: tuple[Type, ...], names: tuple[str, ...]) -> Match | None:
        """The rule's answer; the last len(names) arguments are given by keyword."""
        split = len(args) - len(names)
        try:
            bound = self.parameters.bind(
                *args[:split], **dict(zip(names, args[split:], strict=True))
            )
        except TypeError:
            return None
        return self.rule(*bound.args, **bound.kwargs)

    def order(self, count: int, names: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Which of *count* arguments each parameter gets, and the names of the last parameters.

        Args:
            names: of the last arguments, which are given by keyword.
        """
        split = count - len(names)
        bound = self.parameters.bind(
            *range(split), **dict(zip(names, range(split, count), strict=True))
        )
        return (*bound.args, *bound.kwargs.values()), tuple(bound.kwargs)


class Attribute(NamedTuple):
    """One attribute of a type class: its rule (owner type -> type) and lowering."""

    name: str
    rule: Callable[[Any], Type | None]
    lower: Lower


class Registry:
    """Rows by callable, values by object, attributes and methods by type class."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Row]] = {}
        self.values: dict[int, tuple[Type, Lower]] = {}
        self.attributes: dict[tuple[type, str], Attribute] = {}
        self.computed: dict[tuple[type, str], Callable[[Any], Any]] = {}
        self.open: dict[type, tuple[Callable[[Any, str], Type | None], Lower]] = {}
        self.methods: dict[tuple[type, str], list[Row]] = {}
        self._kept: list[Any] = []  # Objects are known by id, so they must live.
        self._cache: dict[Any, tuple[Row, Match]] = {}

    def function(self, *callees: Any, rule: Rule, name: str = "") -> Callable[[L], L]:
        """Decorate the lowering of *callees*; rows are tried in the order of registration."""

        def register(lower: L) -> L:
            for callee in callees:
                self._kept.append(callee)
                shown = name or getattr(callee, "__name__", str(callee))
                self.rows.setdefault(id(callee), []).append(Row(shown, rule, lower))
            self._cache.clear()
            return lower

        return register

    def alias(self, callee: Any, of: Any) -> None:
        """Give *callee*, under any of its names, the rows that *of* has."""
        self._kept.append(callee)
        self.rows[id(callee)] = list(self.rows[id(of)])

    def value(self, ty: Type, *objects: Any) -> Callable[[L], L]:
        """Decorate the lowering of *objects* that stand for a run-time value of type *ty*.

        The lowering takes the builder and the object.
        """

        def register(lower: L) -> L:
            for item in objects:
                self._kept.append(item)
                self.values[id(item)] = (ty, lower)
            return lower

        return register

    def attribute(
        self, owner: type, name: str, rule: Callable[[Any], Type | None]
    ) -> Callable[[L], L]:
        """Decorate the lowering of an attribute; *rule* takes the owner's type."""

        def register(lower: L) -> L:
            self.attributes[owner, name] = Attribute(name, rule, lower)
            return lower

        return register

    def fields(self, owner: type, rule: Callable[[Any, str], Type | None]) -> Callable[[L], L]:
        """Decorate the lowering of all attributes that *rule* knows for a type and a name.

        The lowering takes the builder, the owner, the attribute's name and its type.
        """

        def register(lower: L) -> L:
            self.open[owner] = (rule, lower)
            return lower

        return register

    def method(self, owner: type, name: str, rule: Rule) -> Callable[[L], L]:
        """Decorate the lowering of a method; *rule* takes the owner's type first."""

        def register(lower: L) -> L:
            self.methods.setdefault((owner, name), []).append(Row(name, rule, lower))
            return lower

        return register

    def callees(self) -> list[Any]:
        """Everything that has rows, in the order of registration."""
        return [item for item in self._kept if id(item) in self.rows]

    def value_objects(self) -> list[Any]:
        """Every object that stands for a run-time value."""
        return [item for item in self._kept if id(item) in self.values]

    def knows(self, callee: Any) -> bool:
        """Whether there is any row for *callee*."""
        return id(callee) in self.rows

    def find_attribute(self, owner: Type, name: str) -> Attribute | None:
        """The attribute row for a value of type *owner*."""
        for cls in type(owner).__mro__:
            found = self.attributes.get((cls, name))
            if found:
                return found
            if cls in self.open:
                return _named(name, *self.open[cls])
        return None

    def find_computed(self, owner: Type, name: str) -> Callable[..., Any] | None:
        """The function in the kernel language that computes an attribute, if one does."""
        for cls in type(owner).__mro__:
            choose = self.computed.get((cls, name))
            if choose is not None:
                found: Callable[..., Any] | None = choose(owner)
                return found
        return None

    def find_method(self, owner: Type, name: str) -> list[Row]:
        """The rows of a method of a value of type *owner*; empty if there is none."""
        for cls in type(owner).__mro__:
            found = self.methods.get((cls, name))
            if found:
                return found
        return []

    def resolve(
        self, callee: Any, args: tuple[Type, ...], names: tuple[str, ...] = ()
    ) -> tuple[Row, Match]:
        """The row of *callee* that takes these argument types.

        Raises:
            TypingError: no row does (without a span: the caller adds it).
        """
        key = (id(callee), args, names)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self.select(self.rows[id(callee)], args, names)
        return found

    def select(
        self, rows: list[Row], args: tuple[Type, ...], names: tuple[str, ...] = ()
    ) -> tuple[Row, Match]:
        """The first of *rows* that takes these argument types."""
        for row in rows:
            match = row.match(args, names)
            if match is not None:
                return row, match
        given = [str(widen(t)) if isinstance(t, Literal) else str(t) for t in args]
        split = len(given) - len(names)
        given[split:] = [f"{n}={t}" for n, t in zip(names, given[split:], strict=True)]
        expected = " or ".join(f"{row.name}{_plain(row.parameters)}" for row in rows)
        raise TypingError(f"{rows[0].name}({', '.join(given)}) is not supported; it is {expected}")


def _named(name: str, rule: Callable[[Any, str], Type | None], lower: Lower) -> Attribute:
    """The row of one attribute out of `Registry.open`."""
    return Attribute(
        name, lambda ty: rule(ty, name), lambda b, value, ty: lower(b, value, name, ty)
    )


def _plain(signature: inspect.Signature) -> str:
    """The parameter list without annotations."""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))


REGISTRY = Registry()
