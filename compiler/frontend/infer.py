"""Types and constants of an SSA function, found together by one fixpoint.

Types only climb (literal, weak, strong; see typing.promotion.join), and only along edges that
the constants known so far can take, so code behind a false constant is never typed.
"""

from __future__ import annotations

import types as pytypes
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import types
from ..errors import CompileError, Span, TypingError
from ..types import BoundMethod, Literal, Scalar, Signature, Type
from ..typing.promotion import join
from ..typing.registry import Match, Registry, Row
from .folding import fold
from .ir import Block, Branch, Function, Instr, Jump, Op, Return
from .syntax import build

MAX_VISITS = 200


@dataclass(eq=False, slots=True)
class Typed:
    """A function with the types of one specialisation.

    Attributes:
        types: the type of each instruction that control can reach.
        matches: for each call of a registry row, the row and its match.
        callees: for each call of another Python function, its specialisation, and for each of
            its parameters the position of the argument, or the default.
        edges: the control-flow edges that can be taken.
    """

    function: Function
    args: tuple[Type, ...]
    returns: Type = types.none
    types: dict[Instr, Type] = field(default_factory=dict)
    matches: dict[Instr, tuple[Row, Match]] = field(default_factory=dict)
    callees: dict[Instr, tuple[Typed, tuple[int | Literal, ...]]] = field(default_factory=dict)
    edges: set[tuple[Block, Block]] = field(default_factory=set)
    blocks: list[Block] = field(default_factory=list)


class Program:
    """All functions that one kernel consists of, each once a signature."""

    def __init__(self, registry: Registry, libdevice: bool = True) -> None:
        self.registry = registry
        self.libdevice = libdevice
        self.functions: dict[tuple[Any, tuple[Type, ...]], Typed] = {}
        self._active: list[tuple[Any, tuple[Type, ...]]] = []

    def specialize(self, pyfunc: Callable[..., Any], args: tuple[Type, ...]) -> Typed:
        """Type *pyfunc* for the argument types, and all that it calls.

        Raises:
            CompileError: it cannot be compiled; the error shows where.
        """
        key = (pyfunc, args)
        if key in self.functions:
            return self.functions[key]
        function = build(pyfunc)
        if len(args) != len(function.parameters):
            raise CompileError(
                f"{function.name} takes {len(function.parameters)} arguments "
                f"({', '.join(function.parameters)}), not {len(args)}",
                function.span,
            )
        if key in self._active:
            raise CompileError(
                f"{function.name} calls itself: recursion is not supported yet; write a loop",
                function.span,
            )
        self._active.append(key)
        try:
            typed = Inference(self, Typed(function, args)).run()
        finally:
            self._active.pop()
        self.functions[key] = typed
        return typed


class Inference:
    """The fixpoint over one function."""

    def __init__(self, program: Program, typed: Typed) -> None:
        self.program = program
        self.typed = typed
        self.types = typed.types
        self._users: dict[Instr, list[Instr | Block]] = {}
        self._reached: set[Block] = set()
        self._visits: dict[Instr, int] = {}
        self._work: deque[Instr | Block] = deque()
        self._transfer: dict[Op, Callable[[Instr], Type | None]] = {
            Op.CONST: self._const, Op.ARG: self._arg, Op.PHI: self._phi,
            Op.UNDEF: lambda instr: None, Op.APPLY: self._apply, Op.CALL: self._call,
            Op.ATTR: self._attr,
        }  # fmt: skip

    def run(self) -> Typed:
        """Reach the fixpoint."""
        typed = self.typed
        self._find_users()
        self._reach(typed.function.blocks[0])
        while self._work:
            item = self._work.popleft()
            if isinstance(item, Block):
                self._terminator(item)
            elif item.block in self._reached:
                self._visit(item)
        typed.blocks = [b for b in typed.function.blocks if b in self._reached]
        self._check_types()
        typed.returns = self._returns()
        return typed

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

    @staticmethod
    def _check_condition(condition: Type, span: Span) -> None:
        if not isinstance(condition, Scalar | types.Tuple) and condition != types.none:
            raise TypingError(f"{condition} has no truth value: compare it with something", span)

    def _returns(self) -> Type:
        found: Type | None = None
        for block in self.typed.blocks:
            end = block.terminator
            if not isinstance(end, Return):
                continue
            ty = types.none if end.value is None else types.widen(self.types[end.value])
            ty = types.none if isinstance(ty, Literal) and ty.value is None else ty
            both = ty if found is None else join(found, ty)
            if both is None:
                raise TypingError(f"returns {found} on one path and {ty} on another", end.span)
            found = both
        return found or types.none

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
        found = [self.types.get(arg) for arg in args]
        known = tuple(ty for ty in found if ty is not None)
        return known if len(known) == len(found) else None

    def _apply(self, instr: Instr) -> Type | None:
        args = self._operands(instr.args)
        return None if args is None else self._row(instr, instr.attr, args, ())

    def _row(
        self, instr: Instr, callee: Any, args: tuple[Type, ...], names: tuple[str, ...]
    ) -> Type:
        row, match = self.program.registry.resolve(callee, args, names)
        if match.python is not None and not (match.libdevice and self.program.libdevice):
            wanted = tuple(t if t is not None else a for t, a in zip(match.args, args, strict=True))
            typed = self.program.specialize(match.python, wanted)
            self.typed.callees[instr] = typed, tuple(range(len(args)))
            return fold(callee, args, typed.returns)
        self.typed.matches[instr] = (row, match)
        return fold(callee, args, match.returns)

    def _call(self, instr: Instr) -> Type | None:
        operands = self._operands(instr.args)
        if operands is None:
            return None
        callee, args = operands[0], operands[1:]
        registry = self.program.registry
        if isinstance(callee, BoundMethod):
            rows = registry.find_method(callee.owner, callee.method)
            row, match = registry.select(rows, (callee.owner, *args), instr.attr)
            self.typed.matches[instr] = row, match
            return match.returns
        if not isinstance(callee, Literal):
            raise TypingError(f"a value of type {callee} cannot be called", instr.span)
        if registry.knows(callee.value):
            return self._row(instr, callee.value, args, instr.attr)
        return self._function(instr, callee.value, args)

    def _function(self, instr: Instr, callee: Any, args: tuple[Type, ...]) -> Type:
        pyfunc = getattr(callee, "pyfunc", callee)
        if not isinstance(pyfunc, pytypes.FunctionType):
            raise TypingError(
                f"{_describe(callee)} cannot be called in a kernel: it is neither a Python "
                f"function nor one that the compiler knows",
                instr.span,
            )
        sources = bind(pyfunc, len(args), instr.attr, instr.span)
        bound = tuple(types.widen(s if isinstance(s, Literal) else args[s]) for s in sources)
        signature: Signature | None = getattr(callee, "signature", None)
        if signature is not None:
            bound = check_signature(pyfunc, signature, bound, instr.span)
        try:
            typed = self.program.specialize(pyfunc, bound)
        except CompileError as error:
            error.callers.append(instr.span)
            raise
        self.typed.callees[instr] = typed, sources
        return typed.returns

    def _attr(self, instr: Instr) -> Type | None:
        owner = self.types.get(instr.args[0])
        if owner is None:
            return None
        if isinstance(owner, Literal) and not isinstance(owner.value, int | float | tuple):
            return self._member(instr, owner.value)
        wide = types.widen(owner)
        row = self.program.registry.find_attribute(wide, instr.attr)
        if row is not None:
            found: Type | None = row.rule(wide)
            if found is not None:
                return found
        if self.program.registry.find_method(wide, instr.attr):
            return BoundMethod(wide, instr.attr)
        raise TypingError(f"{wide} has no attribute {instr.attr!r} in a kernel", instr.span)

    def _member(self, instr: Instr, owner: Any) -> Type:
        try:
            return self._object(getattr(owner, instr.attr))
        except AttributeError:
            text = f"{_describe(owner)} has no attribute {instr.attr!r}"
            raise TypingError(text, instr.span) from None


def bind(
    pyfunc: Callable[..., Any], count: int, names: tuple[str, ...], span: Span
) -> tuple[int | Literal, ...]:
    """For each parameter of *pyfunc*, the position of its argument in a call, or its default.

    Args:
        count: the number of arguments, of which the last len(names) are given by keyword.
    """
    code = pyfunc.__code__
    parameters = code.co_varnames[: code.co_argcount]
    positional = count - len(names)
    given: dict[str, int | Literal] = dict(zip(parameters, range(positional), strict=False))
    for position, name in enumerate(names, positional):
        if name not in parameters or name in given:
            raise TypingError(f"{pyfunc.__name__} takes no further argument {name!r}", span)
        given[name] = position
    defaults = pyfunc.__defaults__ or ()
    for name, value in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True):
        given.setdefault(name, Literal(value))
    if positional > len(parameters) or len(given) < len(parameters):
        text = f"{pyfunc.__name__}({', '.join(parameters)}) cannot be called with {count} arguments"
        raise TypingError(text, span)
    return tuple(given[name] for name in parameters)


def check_signature(
    pyfunc: Callable[..., Any], signature: Signature, args: tuple[Type, ...], span: Span
) -> tuple[Type, ...]:
    """The declared argument types, if the given ones convert to them."""
    if len(signature.args) != len(args):
        text = f"{pyfunc.__name__} is declared {signature}: {len(args)} arguments given"
        raise TypingError(text, span)
    for given, declared in zip(args, signature.args, strict=True):
        if not converts(given, declared):
            text = f"{pyfunc.__name__} is declared {signature}: {given} is no {declared}"
            raise TypingError(text, span)
    return signature.args


def converts(given: Type, declared: Type) -> bool:
    """Whether a value of type *given* is converted implicitly to *declared*."""
    if isinstance(given, Scalar) and isinstance(declared, Scalar):
        return True
    if isinstance(given, types.Array) and isinstance(declared, types.Array):
        return join(given, declared) == declared
    return given == declared


def _describe(value: Any) -> str:
    return getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or repr(value)
