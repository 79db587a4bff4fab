"""Types and constants of an SSA function, found together by one fixpoint.

Types only climb (literal, weak, strong; see typing.promotion.join), and only along edges that
the constants known so far can take, so code behind a false constant is never typed.
"""

from __future__ import annotations

import enum
import operator
import types as pytypes
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .. import types
from ..elements import Elementwise, is_captured
from ..errors import CompileError, Span, TypingError
from ..types import Array, BoundMethod, Closure, Literal, Scalar, Signature, Star, Struct, Type
from ..typing.promotion import join
from ..typing.registry import Match, Registry, Row
from . import internal
from .calls import (
    Parameters,
    Source,
    bind,
    check_signature,
    defaults_of,
    exact_type,
    fields_of,
    reordered,
    source_type,
)
from .expressions import AUGMENTED
from .folding import fold
from .ir import Block, Branch, Function, Instr, Jump, Op, Return
from .syntax import build

MAX_VISITS = 200
# Where what is written in the kernel language itself stands.
OWN = __name__.rpartition(".frontend")[0] + ".lang."
OWN_FOLDER = str(Path(__file__).parents[1] / "lang")
# The operators of ``x += y`` and its like where x is no array.
PLAIN = {in_place: function for function, in_place in AUGMENTED.items()}
# Literals whose attributes are those of the kernel type, not of the Python object.
VALUES = (int, float, complex, tuple, np.number)
# Attributes of arrays that the source names which are constants.
FIXED = ("shape", "ndim", "size", "dtype", "itemsize", "nbytes")


@dataclass(eq=False, slots=True, repr=False)
class Typed:
    """A function with the types of one specialisation.

    Attributes:
        captured: the types of the arrays that the source names, by their ids.
        types: the type of each instruction that control can reach.
        matches: for each call of a registry row, the row and its match.
        orders: for each such call, which argument each of the row's parameters gets.
        callees: for each call of another Python function, its specialisation, and what each
            of its parameters gets.
        edges: the control-flow edges that can be taken.
    """

    function: Function
    args: tuple[Type, ...]
    captured: dict[int, Array] = field(default_factory=dict)
    returns: Type = types.none
    types: dict[Instr, Type] = field(default_factory=dict)
    matches: dict[Instr, tuple[Row, Match]] = field(default_factory=dict)
    orders: dict[Instr, tuple[int, ...]] = field(default_factory=dict)
    callees: dict[Instr, tuple[Typed, tuple[Source, ...]]] = field(default_factory=dict)
    edges: set[tuple[Block, Block]] = field(default_factory=set)
    blocks: list[Block] = field(default_factory=list)


class Calls(Protocol):
    """What Inference asks about the functions that are called (program.Program)."""

    registry: Registry
    libdevice: bool
    debug: bool
    cc: int

    def captured_type(self, value: Any) -> Array:
        """The type of an array that the source names."""

    def call(self, function: Any, args: tuple[Type, ...]) -> tuple[Typed, Type | None]:
        """A specialisation, and what it returns if that is known yet."""


class Inference:
    """The fixpoint over one function."""

    def __init__(self, program: Calls, typed: Typed) -> None:
        self.program = program
        self.typed = typed
        self.types = typed.types
        self._users: dict[Instr, list[Instr | Block]] = {}
        self._reached: set[Block] = set()
        self._visits: dict[Instr, int] = {}
        self._work: deque[Instr | Block] = deque()
        self._waits = False  # For what a call in progress returns.
        self._transfer: dict[Op, Callable[[Instr], Type | None]] = {
            Op.CONST: self._const, Op.ARG: self._arg, Op.PHI: self._phi,
            Op.UNDEF: lambda instr: None, Op.APPLY: self._apply, Op.CALL: self._call,
            Op.ATTR: self._attr,
        }  # fmt: skip

    def run(self) -> Type | None:
        """Reach the fixpoint; what is returned, None if only calls in progress know."""
        typed = self.typed
        self._find_users()
        self._reach(typed.function.blocks[0])
        while self._work:
            item = self._work.popleft()
            if isinstance(item, Block):
                if item in self._reached:
                    self._terminator(item)
            elif item.block in self._reached:
                self._visit(item)
        typed.blocks = [b for b in typed.function.blocks if b in self._reached]
        self._check_names()
        if not self._waits:
            self._check_types()
        return self._returns()

    def _check_names(self) -> None:
        """Refuse names for expressions of arrays, which would be computed too late."""
        if self.typed.function.source.file.startswith(OWN_FOLDER):
            return
        for name, value, span in self.typed.function.writes:
            if isinstance(self.types.get(value), Elementwise):
                raise TypingError(
                    f"{name} would need memory for an array: assign to a slice of one, as in "
                    f"y[:] = ..., or reduce it in the same statement",
                    span,
                )

    def _check_types(self) -> None:
        """Refuse values that no path gives a type."""
        for block in self.typed.blocks:
            for instr in block.instrs:
                if instr.op is not Op.UNDEF and instr not in self.types:
                    name = instr.attr if instr.op is Op.PHI else "this"
                    raise TypingError(f"no path that can be taken assigns {name}", instr.span)

    def _find_users(self) -> None:
        for block in self.typed.function.blocks:
            for instr in block.instrs:
                for arg in instr.args:
                    self._users.setdefault(arg, []).append(instr)
            if isinstance(block.terminator, Branch):
                self._users.setdefault(block.terminator.condition, []).append(block)

    def _reach(self, block: Block) -> None:
        # A loop over the blocks reached, not a recursion: functions can have thousands.
        self._reached.add(block)
        for instr in block.instrs:
            self._visit(instr)
        self._work.append(block)

    def _visit(self, instr: Instr) -> None:
        count = self._visits[instr] = self._visits.get(instr, 0) + 1
        if count > MAX_VISITS:
            raise TypingError("the type of this does not settle: give it with a cast", instr.span)
        try:
            found = self._transfer[instr.op](instr)
        except CompileError as error:
            if error.span is None:
                error.span = instr.span
            raise
        if found is not None and found != self.types.get(instr):
            self.types[instr] = found
            self._work.extend(self._users.get(instr, ()))

    def _terminator(self, block: Block) -> None:
        end = block.terminator
        targets: tuple[Block, ...] = ()
        if isinstance(end, Jump):
            targets = (end.target,)
        elif isinstance(end, Branch):
            condition = self.types.get(end.condition)
            if isinstance(condition, Literal):
                targets = (end.then if condition.value else end.other,)
            elif condition is not None:
                self._check_condition(condition, end.span)
                targets = (end.then, end.other)
        for target in targets:
            if (block, target) in self.typed.edges:
                continue
            self.typed.edges.add((block, target))
            if target in self._reached:
                self._work.extend(target.phis())
            else:
                self._reach(target)

    def _check_condition(self, condition: Type, span: Span) -> None:
        if isinstance(condition, Scalar | types.Tuple) or condition == types.none:
            return
        try:
            self.program.registry.resolve(operator.not_, (condition,))
        except TypingError:
            text = f"{condition} has no truth value: compare it with something"
            raise TypingError(text, span) from None

    def _returns(self) -> Type | None:
        found: Type | None = None
        for block in self.typed.blocks:
            end = block.terminator
            if not isinstance(end, Return):
                continue
            given = Literal(None) if end.value is None else self.types.get(end.value)
            if given is None:
                continue
            ty = types.widen(given)
            ty = types.none if isinstance(ty, Literal) and ty.value is None else ty
            both = ty if found is None else join(found, ty)
            if both is None:
                raise TypingError(f"returns {found} on one path and {ty} on another", end.span)
            found = both
        return found if found is not None or self._waits else types.none

    # Transfer functions: the type of one instruction, None as long as it is not known.

    def _const(self, instr: Instr) -> Type:
        return self._object(instr.attr)

    def _object(self, value: Any) -> Type:
        """The type of a Python object that the source names."""
        known = self.program.registry.values.get(id(value))
        return Literal(value) if known is None else known[0]

    def _arg(self, instr: Instr) -> Type:
        position: int = instr.attr
        return self.typed.args[position]

    def _phi(self, instr: Instr) -> Type | None:
        found = self.types.get(instr)
        for pred, arg in zip(instr.block.preds, instr.args, strict=True):
            ty = self.types.get(arg)
            if ty is None or (pred, instr.block) not in self.typed.edges:
                continue
            both = ty if found is None else join(found, ty)
            if both is None:
                name = "the value" if instr.attr.startswith(".") else instr.attr
                raise TypingError(
                    f"{name} is {types.widen(found or ty)} on one path to here and "
                    f"{types.widen(ty)} on another: use two names",
                    instr.span,
                )
            found = both
        return found

    def _operands(self, args: list[Instr]) -> tuple[Type, ...] | None:
        """The types of operands, those of ``*tuple`` spliced in; None if one is not known."""
        found: list[Type] = []
        for arg in args:
            ty = self.types.get(arg)
            if ty is None:
                return None
            found += ty.items if isinstance(ty, Star) else (ty,)
        return tuple(self._settled(ty) for ty in found)

    def _settled(self, ty: Type) -> Type:
        """*ty*, but that of the array where it is an array that the source names."""
        if isinstance(ty, Literal) and is_captured(ty):
            return self.program.captured_type(ty.value)
        return ty

    def _apply(self, instr: Instr) -> Type | None:
        args = self._operands(instr.args)
        if args is None:
            return None
        in_place = instr.attr in PLAIN and not isinstance(args[0], Array)
        return self._row(instr, PLAIN[instr.attr] if in_place else instr.attr, args, ())

    def _row(
        self, instr: Instr, callee: Any, args: tuple[Type, ...], names: tuple[str, ...]
    ) -> Type | None:
        if callee is internal.checking:
            return Literal(self.program.debug)
        if callee is internal.capability:
            return Literal(self.program.cc)
        row, match = self.program.registry.resolve(callee, args, names)
        return self._matched(instr, callee, row, match, args, names)

    def _matched(
        self,
        instr: Instr,
        callee: Any,
        row: Row,
        match: Match,
        args: tuple[Type, ...],
        names: tuple[str, ...] = (),
    ) -> Type | None:
        order: tuple[int, ...] = tuple(range(len(args)))
        if names:
            order, names = row.order(len(args), names)
        if match.python is not None and not (match.libdevice and self.program.libdevice):
            returns = self._implemented(instr, match, args, order, names)
        else:
            self.typed.matches[instr] = (row, match)
            self.typed.orders[instr] = order
            returns = match.returns
        return returns if returns is None or names else fold(callee, args, returns)

    def _implemented(
        self,
        instr: Instr,
        match: Match,
        args: tuple[Type, ...],
        order: tuple[int, ...],
        names: tuple[str, ...],
    ) -> Type | None:
        """The call of the Python function that implements a row."""
        function = match.python
        assert isinstance(function, pytypes.FunctionType)
        wanted = zip(match.args, order, strict=True)
        given = tuple(args[place] if want is None else want for want, place in wanted)
        parameters = build(function).parameters
        sources = bind(parameters, len(given), names, defaults_of(function), instr.span)
        bound = tuple(exact_type(source, given) for source in sources)
        return self._specialize(instr, function, bound, reordered(sources, order))

    def _call(self, instr: Instr) -> Type | None:
        operands = self._operands(instr.args)
        if operands is None:
            return None
        callee, args = operands[0], operands[1:]
        registry = self.program.registry
        if isinstance(callee, BoundMethod):
            rows = registry.find_method(callee.owner, callee.method)
            args = (callee.owner, *args)
            row, match = registry.select(rows, args, instr.attr)
            return self._matched(instr, None, row, match, args, instr.attr)
        if isinstance(callee, Closure):
            return self._closure(instr, callee, args)
        if not isinstance(callee, Literal):
            raise TypingError(f"a value of type {callee} cannot be called", instr.span)
        if registry.knows(callee.value):
            return self._row(instr, callee.value, args, instr.attr)
        return self._function(instr, callee.value, args)

    def _closure(self, instr: Instr, callee: Closure, args: tuple[Type, ...]) -> Type | None:
        parameters = callee.function.parameters
        split = parameters.captured
        operands = (*callee.items[:split], *args, *callee.items[split:])
        first_default = split + len(args)
        defaults: dict[str, Source] = {
            name: position for position, name in enumerate(parameters.defaults, first_default)
        }
        sources = bind(parameters, first_default, instr.attr, defaults, instr.span)
        bound = tuple(source_type(source, operands) for source in sources)
        return self._specialize(instr, callee.function, bound, sources)

    def _function(self, instr: Instr, callee: Any, args: tuple[Type, ...]) -> Type | None:
        if isinstance(callee, type) and (hasattr(callee, "_fields") or is_dataclass(callee)):
            return self._structure(instr, callee, args)
        if isinstance(getattr(callee, "__self__", None), str | bytes | dict):
            return self._computed(instr, callee, args)
        pyfunc = getattr(callee, "pyfunc", callee)
        if not isinstance(pyfunc, pytypes.FunctionType):
            raise TypingError(
                f"{_describe(callee)} cannot be called in a kernel: it is neither a Python "
                f"function nor one that the compiler knows",
                instr.span,
            )
        parameters = build(pyfunc).parameters
        own = (pyfunc.__module__ or "").startswith(OWN)
        if not own and any(isinstance(arg, Elementwise) for arg in args):
            text = f"{parameters.name} takes arrays, not {', '.join(map(str, args))}"
            raise TypingError(f"{text}: assign the expression to a slice of one first", instr.span)
        sources = bind(parameters, len(args), instr.attr, defaults_of(pyfunc), instr.span)
        bound = tuple(source_type(source, args) for source in sources)
        signature: Signature | None = getattr(callee, "signature", None)
        if signature is not None:
            bound = check_signature(parameters.name, signature, bound, instr.span)
        return self._specialize(instr, pyfunc, bound, sources)

    def _computed(self, instr: Instr, callee: Any, args: tuple[Type, ...]) -> Type:
        """The call of a method of a constant, with constants."""
        values = [arg.value for arg in args if isinstance(arg, Literal)]
        if instr.attr or len(values) != len(args):
            text = f"{callee.__name__} of a constant takes constants by position in a kernel"
            raise TypingError(text, instr.span)
        try:
            result = callee(*values)
        except (TypeError, ValueError, LookupError) as error:
            raise TypingError(f"{callee.__name__}: {error}", instr.span) from None
        return self._constant(instr, result)

    def _constant(self, instr: Instr, value: Any) -> Type:
        """The type of a constant; that which it had before if it is the same one."""
        before = self.types.get(instr)
        same = isinstance(before, Literal) and type(before.value) is type(value)
        return before if before and same and before.value == value else self._object(value)  # type: ignore[attr-defined]

    def _structure(self, instr: Instr, cls: Any, args: tuple[Type, ...]) -> Type:
        """The call of a named tuple's class, or of a dataclass."""
        names, defaults = fields_of(cls, instr.span)
        parameters = Parameters(cls.__name__, names)
        sources = bind(parameters, len(args), instr.attr, defaults, instr.span)
        items = tuple(exact_type(source, args) for source in sources)
        row = self.program.registry.rows[id(internal.make_structure)][0]
        match = Match((None,) * len(args), Struct(cls, names, items), data=sources)
        self.typed.matches[instr] = row, match
        self.typed.orders[instr] = tuple(range(len(args)))
        return match.returns

    def _specialize(
        self, instr: Instr, function: Any, bound: tuple[Type, ...], sources: tuple[Source, ...]
    ) -> Type | None:
        try:
            typed, returns = self.program.call(function, bound)
        except CompileError as error:
            error.callers.append(instr.span)
            raise
        self.typed.callees[instr] = typed, sources
        self._waits = self._waits or returns is None
        return returns

    def _attr(self, instr: Instr) -> Type | None:
        owner = self.types.get(instr.args[0])
        if owner is None:
            return None
        if instr.attr not in FIXED:
            owner = self._settled(owner)
        if isinstance(owner, Literal) and (
            isinstance(owner.value, enum.Enum) or not isinstance(owner.value, VALUES)
        ):
            return self._member(instr, owner.value)
        wide = types.widen(owner)
        row = self.program.registry.find_attribute(wide, instr.attr)
        if row is not None:
            found: Type | None = row.rule(wide)
            if found is not None:
                return found
        computed = self.program.registry.find_computed(wide, instr.attr)
        if computed is not None:
            return self._specialize(instr, computed, (wide,), (0,))
        if self.program.registry.find_method(wide, instr.attr):
            return BoundMethod(wide, instr.attr)
        raise TypingError(f"{wide} has no attribute {instr.attr!r} in a kernel", instr.span)

    def _member(self, instr: Instr, owner: Any) -> Type:
        try:
            return self._constant(instr, getattr(owner, instr.attr))
        except AttributeError:
            text = f"{_describe(owner)} has no attribute {instr.attr!r}"
            raise TypingError(text, instr.span) from None


def _describe(value: Any) -> str:
    return getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or repr(value)
