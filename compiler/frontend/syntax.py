"""Python syntax tree to SSA form: statements and control flow (expressions: expressions.py)."""

from __future__ import annotations

import ast
import operator
import types
import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import CompileError, CompileWarning, Span
from . import internal
from .calls import parameters_of
from .expressions import AUGMENTED, BINARY, stored
from .functions import Functions, defined
from .ir import Function, Instr, Op
from .loops import Loops
from .matching import Matching
from .source import Source
from .ssa import Builder, simplify


def build(pyfunc: Callable[..., Any], unroll: dict[str, int] | None = None) -> Function:
    """The SSA form of a Python function.

    Args:
        unroll: loops to unroll, by the key that NeedsUnroll names them with, and how often.

    Raises:
        CompileError: the source is not to be had, or uses what kernels cannot.
    """
    if not isinstance(pyfunc, types.FunctionType):
        raise CompileError(f"{pyfunc!r} is not a Python function: only those can be compiled")
    forms = _BUILT.setdefault(pyfunc, {})
    key = frozenset((unroll or {}).items())
    if key not in forms:
        source = Source(pyfunc)
        shape = parameters_of(source.node, source.name, source.span)
        forms[key] = walk(Function(shape, source, source.span(source.node)), pyfunc, unroll)
    return forms[key]


# Globals and closure values are frozen here, for all specialisations alike.
_BUILT: WeakKeyDictionary[Callable[..., Any], dict[frozenset[tuple[str, int]], Function]] = (
    WeakKeyDictionary()
)


def walk(function: Function, pyfunc: Callable[..., Any], unroll: dict[str, int] | None) -> Function:
    """Fill *function* from its syntax; *pyfunc* is where globals are looked up."""
    Syntax(function, pyfunc, unroll or {}).run()
    simplify(function)
    _check_reads(function)
    return function


class Syntax(Functions, Loops, Matching):
    """One walk over a function's statements."""

    def __init__(
        self, function: Function, pyfunc: Callable[..., Any], unroll: dict[str, int]
    ) -> None:
        super().__init__(Builder(function), function.source, pyfunc)
        node = function.source.node
        self.locals = set(function.parameters.names) | set(stored(node))
        self.functions = defined(node)
        self.locals_made = {}
        self.walk = walk
        self.loops = []
        self.unroll = unroll

    def run(self) -> None:
        """Walk the whole function."""
        function, node = self.b.function, self.source.node
        for index, name in enumerate(function.parameters.names):
            value = self.b.emit(Op.ARG, [], index, function.span)
            self.b.assign(name, value, function.span)
        if isinstance(node, ast.Lambda):
            self.b.leave(self.visit(node.body), self.span(node.body))
            return
        self.body(node.body)
        self.b.leave(None, self.span(node.body[-1]))

    def body(self, statements: list[ast.stmt]) -> None:
        """Walk statements; those that control cannot reach are dropped."""
        for statement in statements:
            if self.b.block is None:
                return
            self.visit_statement(statement)

    def visit_statement(self, node: ast.stmt) -> None:
        """Walk one statement."""
        visitor = getattr(self, f"visit_{type(node).__name__}", None)
        if visitor is None:
            self.refuse(node)
        visitor(node)

    # AST: Pass
    def visit_Pass(self, node: ast.Pass) -> None: ...

    # AST: Expr(expr value)
    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    # AST: Assign(expr* targets, expr value)
    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        for target in node.targets:
            self.assign(target, value)

    # AST: AnnAssign(expr target, expr annotation, expr? value, int simple)
    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.visit(node.value))

    # AST: AugAssign(expr target, operator op, expr value)
    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        function = BINARY[type(node.op)]
        span = self.span(node)
        if isinstance(node.target, ast.Subscript):
            owner, index = self.visit(node.target.value), self.visit(node.target.slice)
            old = self.b.apply(operator.getitem, [owner, index], self.span(node.target))
            new = self.b.apply(function, [old, self.visit(node.value)], span)
            self.b.apply(operator.setitem, [owner, index, new], span)
            return
        if isinstance(node.target, ast.Attribute):
            owner, name = self.visit(node.target.value), node.target.attr
            old = self.b.emit(Op.ATTR, [owner], name, self.span(node.target))
            new = self.b.apply(function, [old, self.visit(node.value)], span)
            self.assign_field(node.target, owner, new, span)
            return
        old = self.read(node.target.id, node.target)
        args = [old, self.visit(node.value)]
        self.assign(node.target, self.b.apply(AUGMENTED[function], args, span))

    def assign(self, target: ast.expr, value: Instr) -> None:
        """Store *value* to a name, an element, or each name of a tuple."""
        if isinstance(target, ast.Name):
            self.b.assign(target.id, value, self.span(target))
            self.b.function.writes.append((target.id, value, self.span(target)))
        elif isinstance(target, ast.Subscript):
            args = [self.visit(target.value), self.visit(target.slice), value]
            self.b.apply(operator.setitem, args, self.span(target))
        elif isinstance(target, ast.Attribute):
            self.assign_field(target, self.visit(target.value), value, self.span(target))
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, value)
        else:
            self.refuse(target)

    def assign_field(self, target: ast.Attribute, owner: Instr, value: Instr, span: Span) -> None:
        """Store *value* to an attribute of *owner*; a name of a vector gets the new vector."""
        args = [owner, self.b.const(target.attr, span), value]
        if isinstance(target.value, ast.Name) and target.value.id in self.b.env:
            self.b.env[target.value.id] = self.b.apply(internal.with_field, args, span)
        else:
            self.b.apply(setattr, args, span)

    def unpack(self, target: ast.Tuple | ast.List, value: Instr) -> None:
        """Store the items of a tuple."""
        span = self.span(target)
        stars = [i for i, item in enumerate(target.elts) if isinstance(item, ast.Starred)]
        star = stars[0] if stars else -1
        shape = [self.b.const(n, span) for n in (len(target.elts), star)]
        whole = self.b.apply(internal.unpack, [value, *shape], span)
        for index, item in enumerate(target.elts):
            place = self.b.const(index, span)
            part = self.b.apply(operator.getitem, [whole, place], span)
            self.assign(item.value if isinstance(item, ast.Starred) else item, part)

    # AST: Delete(expr* targets)
    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.refuse(target)
            self.read(target.id, target)
            self.b.env.pop(target.id, None)

    # AST: Return(expr? value)
    def visit_Return(self, node: ast.Return) -> None:
        value = self.visit(node.value) if node.value is not None else None
        self.b.leave(value, self.span(node))

    # AST: Raise(expr? exc, expr? cause)
    def visit_Raise(self, node: ast.Raise) -> None:
        if node.exc is None:
            text = "raise without an exception is not supported in a kernel: name it"
            raise CompileError(text, self.span(node))
        call = node.exc if isinstance(node.exc, ast.Call) else None
        if call is not None and call.keywords:
            text = "an exception takes no keywords in a kernel"
            raise CompileError(text, self.span(call.keywords[0]))
        parts = [node.exc] if call is None else [call.func, *call.args]
        self.fail([self.visit(part) for part in parts], self.span(node))

    def fail(self, parts: list[Instr], span: Span) -> None:
        """Raise the exception of *parts*, class and arguments: the thread ends."""
        self.b.apply(internal.fail, parts, span)
        self.b.stop(span)

    # AST: Assert(expr test, expr? msg)
    def visit_Assert(self, node: ast.Assert) -> None:
        test, bad, end = self.b.new_block(), self.b.new_block(), self.b.new_block()
        span = self.span(node)
        self.b.branch(self.b.apply(internal.checking, [], span), test, end, span)
        self.b.start(test, span)
        self.condition(node.test, end, bad)
        if self.b.start(bad, span):
            message = [] if node.msg is None else [self.visit(node.msg)]
            self.fail([self.b.const(AssertionError, span), *message], span)
        self.b.start(end, span)

    # AST: If(expr test, stmt* body, stmt* orelse)
    def visit_If(self, node: ast.If) -> None:
        then, other, end = self.b.new_block(), self.b.new_block(), self.b.new_block()
        span = self.span(node.test)
        self.condition(node.test, then, other)
        for block, statements in ((then, node.body), (other, node.orelse)):
            if self.b.start(block, span):
                self.body(statements)
                self.b.jump(end)
        self.b.start(end, span)


def _check_reads(function: Function) -> None:
    """Refuse names that no path assigns; warn of those that some path does not."""
    doubtful = _maybe_undefined(function)
    warned = set()
    for name, value, span in function.reads:
        if value.op is Op.UNDEF:
            raise CompileError(f"{name} is read here, but no path assigns it before", span)
        if value in doubtful and (name, span.line) not in warned:
            warned.add((name, span.line))
            text = (
                f"{span}: {name} may be unassigned here; it then reads as zero. Assign it before "
                f"the branch or loop.\n{span.excerpt()}"
            )
            warnings.warn_explicit(text, CompileWarning, span.file, span.line)


def _maybe_undefined(function: Function) -> set[Instr]:
    """The phis that on some path have the value of a name that was never assigned."""
    users: dict[Instr, list[Instr]] = {}
    phis = [phi for block in function.blocks for phi in block.phis()]
    for phi in phis:
        for arg in phi.args:
            users.setdefault(arg, []).append(phi)
    work = [phi for phi in phis if any(arg.op is Op.UNDEF for arg in phi.args)]
    found: set[Instr] = set()
    while work:
        phi = work.pop()
        if phi not in found:
            found.add(phi)
            work += users.get(phi, [])
    return found
