"""Python syntax tree to SSA form: statements and control flow (expressions: expressions.py)."""

from __future__ import annotations

import ast
import builtins
import operator
import types
import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import CompileError, CompileWarning
from . import internal
from .expressions import AUGMENTED, Expressions
from .ir import Block, Function, Instr, Op
from .source import Source
from .ssa import Builder, simplify


def build(pyfunc: Callable[..., Any]) -> Function:
    """The SSA form of a Python function.

    Raises:
        CompileError: the source is not to be had, or uses what kernels cannot.
    """
    if not isinstance(pyfunc, types.FunctionType):
        raise CompileError(f"{pyfunc!r} is not a Python function: only those can be compiled")
    if pyfunc in _BUILT:
        return _BUILT[pyfunc]
    source = Source(pyfunc)
    function = Function(source.name, _parameters(source), source, source.span(source.node))
    Syntax(function, pyfunc).run()
    simplify(function)
    _check_reads(function)
    _BUILT[pyfunc] = function
    return function


# Globals and closure values are frozen here, for all specialisations alike.
_BUILT: WeakKeyDictionary[Callable[..., Any], Function] = WeakKeyDictionary()


def _parameters(source: Source) -> tuple[str, ...]:
    args = source.node.args
    if args.vararg or args.kwarg or args.kwonlyargs:
        extra = args.vararg or args.kwarg or args.kwonlyargs[0]
        raise CompileError(
            "*args, **kwargs and keyword-only parameters are not supported in a kernel: name "
            "each parameter",
            source.span(extra),
        )
    return tuple(arg.arg for arg in (*args.posonlyargs, *args.args))


class _Loop:
    """Where break and continue go."""

    def __init__(self, again: Block, done: Block) -> None:
        self.again, self.done = again, done


class Syntax(Expressions):
    """One walk over a function's statements."""

    def __init__(self, function: Function, pyfunc: Callable[..., Any]) -> None:
        super().__init__(Builder(function), function.source, pyfunc)
        self.locals = set(function.parameters) | set(_stored(function.source.node))
        self.loops: list[_Loop] = []

    def run(self) -> None:
        """Walk the whole function."""
        function, node = self.b.function, self.source.node
        for index, name in enumerate(function.parameters):
            self.b.env[name] = self.b.emit(Op.ARG, [], index, function.span)
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
        function = AUGMENTED[type(node.op)]
        span = self.span(node)
        if isinstance(node.target, ast.Subscript):
            owner, index = self.visit(node.target.value), self.visit(node.target.slice)
            old = self.b.apply(operator.getitem, [owner, index], self.span(node.target))
            new = self.b.apply(function, [old, self.visit(node.value)], span)
            self.b.apply(operator.setitem, [owner, index, new], span)
            return
        if not isinstance(node.target, ast.Name):
            self.refuse(node.target)
        old = self.read(node.target.id, node.target)
        self.assign(node.target, self.b.apply(function, [old, self.visit(node.value)], span))

    def assign(self, target: ast.expr, value: Instr) -> None:
        """Store *value* to a name, an element, or each name of a tuple."""
        if isinstance(target, ast.Name):
            self.b.env[target.id] = value
            self.b.function.writes.append((target.id, value, self.span(target)))
        elif isinstance(target, ast.Subscript):
            args = [self.visit(target.value), self.visit(target.slice), value]
            self.b.apply(operator.setitem, args, self.span(target))
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, value)
        else:
            self.refuse(target)

    def unpack(self, target: ast.Tuple | ast.List, value: Instr) -> None:
        """Store the items of a tuple."""
        span = self.span(target)
        for item in target.elts:
            if isinstance(item, ast.Starred):
                self.refuse(item)
        count = self.b.const(len(target.elts), span)
        whole = self.b.apply(internal.unpack, [value, count], span)
        for index, item in enumerate(target.elts):
            place = self.b.const(index, span)
            self.assign(item, self.b.apply(operator.getitem, [whole, place], span))

    # AST: Delete(expr* targets)
    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.refuse(target)
            self.read(target.id, target)
            del self.b.env[target.id]

    # AST: Return(expr? value)
    def visit_Return(self, node: ast.Return) -> None:
        value = self.visit(node.value) if node.value is not None else None
        self.b.leave(value, self.span(node))

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

    # AST: While(expr test, stmt* body, stmt* orelse)
    def visit_While(self, node: ast.While) -> None:
        header, body = self.b.new_block(), self.b.new_block()
        exhausted, done = self.b.new_block(), self.b.new_block()
        span = self.span(node.test)
        self.b.jump(header)
        self.b.start_loop(header, _stored(node), span)
        self.condition(node.test, body, exhausted)
        self.loops.append(_Loop(header, done))
        if self.b.start(body, span):
            self.body(node.body)
            self.b.jump(header)
        self.loops.pop()
        self.b.close_loop(header)
        self._finish_loop(node, exhausted, done)

    def _finish_loop(self, node: ast.While | ast.For, exhausted: Block, done: Block) -> None:
        span = self.span(node)
        if self.b.start(exhausted, span):
            self.body(node.orelse)
            self.b.jump(done)
        self.b.start(done, span)

    # AST: For(expr target, expr iter, stmt* body, stmt* orelse, string? type_comment)
    def visit_For(self, node: ast.For) -> None:
        span = self.span(node.iter)
        bounds = self._range(node.iter)
        if bounds is None:
            sequence = self.visit(node.iter)
            stop = self.b.apply(builtins.len, [sequence], span)
            start, step = self.b.const(0, span), self.b.const(1, span)
        else:
            sequence, (start, stop, step) = None, bounds
        counter = f".counter{node.lineno}.{node.col_offset}"
        self.b.env[counter] = self.b.apply(internal.range_start, [start], span)

        header, body, latch = self.b.new_block(), self.b.new_block(), self.b.new_block()
        exhausted, done = self.b.new_block(), self.b.new_block()
        self.b.jump(header)
        self.b.start_loop(header, [*_stored(node), counter], span)
        value = self.b.env[counter]
        more = self.b.apply(internal.range_more, [value, stop, step], span)
        self.b.branch(more, body, exhausted, span)
        self.loops.append(_Loop(latch, done))
        self.b.start(body, span)
        if sequence is not None:
            value = self.b.apply(operator.getitem, [sequence, value], span)
        self.assign(node.target, value)
        self.body(node.body)
        self.b.jump(latch)
        self.loops.pop()
        if self.b.start(latch, span):
            self.b.env[counter] = self.b.apply(
                internal.range_next, [self.b.env[counter], step], span
            )
            self.b.jump(header)
        self.b.close_loop(header)
        self._finish_loop(node, exhausted, done)

    def _range(self, node: ast.expr) -> tuple[Instr, Instr, Instr] | None:
        """The bounds, if *node* is a call of the builtin range."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            return None
        if node.func.id in self.locals or self.lookup(node.func.id, node.func) is not range:
            return None
        span = self.span(node)
        if node.keywords or not 1 <= len(node.args) <= 3:
            raise CompileError("range takes one to three positional arguments", span)
        values = [self.visit(arg) for arg in node.args]
        if len(values) == 1:
            values.insert(0, self.b.const(0, span))
        if len(values) == 2:
            values.append(self.b.const(1, span))
        return values[0], values[1], values[2]

    # AST: Break
    def visit_Break(self, node: ast.Break) -> None:
        self.b.jump(self.loops[-1].done)

    # AST: Continue
    def visit_Continue(self, node: ast.Continue) -> None:
        self.b.jump(self.loops[-1].again)


def _stored(node: ast.AST) -> list[str]:
    """The names that *node* assigns, without those of functions defined inside it."""
    names: dict[str, None] = {}
    work = list(ast.iter_child_nodes(node))
    while work:
        child = work.pop()
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store | ast.Del):
            names[child.id] = None
        if isinstance(child, ast.For):
            names[f".counter{child.lineno}.{child.col_offset}"] = None
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            work += ast.iter_child_nodes(child)
    return list(names)


def _check_reads(function: Function) -> None:
    """Refuse names that no path assigns; warn of those that some path does not."""
    warned = set()
    for name, value, span in function.reads:
        if value.op is Op.UNDEF:
            raise CompileError(f"{name} is read here, but no path assigns it before", span)
        if value.op is Op.PHI and (name, span.line) not in warned and _may_be_undefined(value):
            warned.add((name, span.line))
            text = (
                f"{span}: {name} may be unassigned here; it then reads as zero. Assign it before "
                f"the branch or loop.\n{span.excerpt()}"
            )
            warnings.warn_explicit(text, CompileWarning, span.file, span.line)


def _may_be_undefined(phi: Instr) -> bool:
    seen, work = {phi}, [phi]
    while work:
        for arg in work.pop().args:
            if arg.op is Op.UNDEF:
                return True
            if arg.op is Op.PHI and arg not in seen:
                seen.add(arg)
                work.append(arg)
    return False
