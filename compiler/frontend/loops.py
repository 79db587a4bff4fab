"""Loops to SSA form: while, for over ranges, arrays and tuples, and what comprehensions become."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import CompileError, Span
from . import internal
from .expressions import Expressions, changed, stored
from .ir import Block, Instr, Op

Item = Callable[[Instr], Instr]
REDUCTIONS: dict[Any, str] = {builtins.sum: "sum", builtins.any: "any", builtins.all: "all"}


class Target(NamedTuple):
    """Where break and continue go."""

    again: Block
    done: Block


class Iteration(NamedTuple):
    """What a for loop goes over: how many items, and the item of an index.

    Attributes:
        length: the number of items.
        item: emits the item of an index.
        bounds: start, stop and step, where the index itself is the item: a plain range.
    """

    length: Instr | None
    item: Item
    bounds: tuple[Instr, Instr, Instr] | None = None


class Loops(Expressions):
    """Visitors of loops."""

    loops: list[Target]
    unroll: dict[str, int]

    def body(self, statements: list[ast.stmt]) -> None:
        """Walk statements (Syntax does it)."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Instr) -> None:
        """Store a value (Syntax does it)."""
        raise NotImplementedError

    # AST: While(expr test, stmt* body, stmt* orelse)
    def visit_While(self, node: ast.While) -> None:
        header, body = self.b.new_block(), self.b.new_block()
        exhausted, done = self.b.new_block(), self.b.new_block()
        span = self.span(node.test)
        self.b.jump(header)
        self.b.start_loop(header, self.carried(node), span)
        self.condition(node.test, body, exhausted)
        self.loops.append(Target(header, done))
        if self.b.start(body, span):
            self.body(node.body)
            self.b.jump(header)
        self.loops.pop()
        self.b.close_loop(header)
        self._finish(node, exhausted, done)

    def carried(self, node: ast.While | ast.For) -> list[str]:
        """The names whose value may differ from one turn of a loop to the next."""
        fields = [name for name in changed(node) if name in self.b.env]
        return list(dict.fromkeys([*stored(node), *fields]))

    def _finish(self, node: ast.While | ast.For, exhausted: Block, done: Block) -> None:
        span = self.span(node)
        if self.b.start(exhausted, span):
            self.body(node.orelse)
            self.b.jump(done)
        self.b.start(done, span)

    # AST: For(expr target, expr iter, stmt* body, stmt* orelse, string? type_comment)
    def visit_For(self, node: ast.For) -> None:
        exhausted, done = self.b.new_block(), self.b.new_block()

        def body(value: Instr) -> None:
            self.assign(node.target, value)
            self.body(node.body)

        self.loop(node, node.iter, self.carried(node), body, exhausted, done)
        self._finish(node, exhausted, done)

    # AST: Break
    def visit_Break(self, node: ast.Break) -> None:
        self.b.jump(self.loops[-1].done)

    # AST: Continue
    def visit_Continue(self, node: ast.Continue) -> None:
        self.b.jump(self.loops[-1].again)

    def loop(
        self,
        node: ast.For | ast.GeneratorExp,
        source: ast.expr,
        names: list[str],
        body: Callable[[Instr], None],
        exhausted: Block,
        done: Block,
    ) -> None:
        """Emit *body* for each item of *source*, then go to *exhausted*; break goes to *done*.

        Args:
            names: the names that the loop assigns.
        """
        key = f"{node.lineno}.{node.col_offset}"
        iteration = self.iteration(source, key)
        if key in self.unroll:
            self._unrolled(iteration, self.unroll[key], body, exhausted, done, self.span(source))
            return
        span = self.span(source)
        start, stop, step = iteration.bounds or (
            self.b.const(0, span), iteration.length, self.b.const(1, span),
        )  # fmt: skip
        assert stop is not None
        counter = f".counter{key}"
        self.b.env[counter] = self.b.apply(internal.range_start, [start], span)
        header, inside, latch = self.b.new_block(), self.b.new_block(), self.b.new_block()
        self.b.jump(header)
        self.b.start_loop(header, [*names, counter], span)
        value = self.b.env[counter]
        more = self.b.apply(internal.range_more, [value, stop, step], span)
        self.b.branch(more, inside, exhausted, span)
        self.loops.append(Target(latch, done))
        self.b.start(inside, span)
        body(iteration.item(value))
        self.b.jump(latch)
        self.loops.pop()
        if self.b.start(latch, span):
            now = self.b.env[counter]
            self.b.env[counter] = self.b.apply(internal.range_next, [now, step], span)
            self.b.jump(header)
        self.b.close_loop(header)

    def _unrolled(
        self,
        iteration: Iteration,
        count: int,
        body: Callable[[Instr], None],
        exhausted: Block,
        done: Block,
        span: Span,
    ) -> None:
        """The body *count* times, the index a constant each time."""
        for index in range(count):
            after = self.b.new_block()
            self.loops.append(Target(after, done))
            body(iteration.item(self.b.const(index, span)))
            self.b.jump(after)
            self.loops.pop()
            if not self.b.start(after, span):
                return
        self.b.jump(exhausted)

    def iteration(self, node: ast.expr, key: str) -> Iteration:
        """What a loop over *node* goes over; *key* names the loop, should it be unrolled."""
        function = self._called_builtin(node)
        if function is not None:
            assert isinstance(node, ast.Call)
            make = {
                range: self._range, enumerate: self._enumerate, zip: self._zip, map: self._map,
                reversed: self._reversed,
            }  # fmt: skip
            return make[function](node, key)
        span = self.span(node)
        sequence = self.visit(node)
        name = self.b.const(key, span)
        return Iteration(
            self.b.apply(builtins.len, [sequence], span),
            lambda index: self.b.apply(internal.loop_item, [sequence, index, name], span),
        )

    def _called_builtin(self, node: ast.expr) -> Any:
        """range, enumerate, zip, map or reversed, if *node* is a call of that builtin."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            return None
        if node.func.id not in ("range", "enumerate", "zip", "map", "reversed"):
            return None
        if node.func.id in self.locals:
            return None
        function = self.lookup(node.func.id, node.func)
        return function if function in (range, enumerate, zip, map, reversed) else None

    def _range(self, node: ast.Call, key: str) -> Iteration:
        span = self.span(node)
        if node.keywords or not 1 <= len(node.args) <= 3:
            raise CompileError("range takes one to three positional arguments", span)
        values = [self.visit(arg) for arg in node.args]
        if len(values) == 1:
            values.insert(0, self.b.const(0, span))
        if len(values) == 2:
            values.append(self.b.const(1, span))
        return Iteration(None, lambda index: index, (values[0], values[1], values[2]))

    def _indexed(self, node: ast.expr, key: str) -> Iteration:
        """As iteration, with a length and items by index also for a range."""
        inner = self.iteration(node, key)
        if inner.bounds is None:
            return inner
        span = self.span(node)
        start, stop, step = inner.bounds

        def item(index: Instr) -> Instr:
            offset = self.b.apply(operator.mul, [index, step], span)
            return self.b.apply(operator.add, [start, offset], span)

        return Iteration(self.b.apply(internal.range_length, [start, stop, step], span), item)

    def _enumerate(self, node: ast.Call, key: str) -> Iteration:
        span = self.span(node)
        extra = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "start")]
        if not node.args or len(node.args) + len(node.keywords) > 2 or len(extra) > 1:
            raise CompileError("enumerate takes what to go over, and a start", span)
        start = self.visit(extra[0]) if extra else self.b.const(0, span)
        inner = self._indexed(node.args[0], key)

        def item(index: Instr) -> Instr:
            number = self.b.apply(operator.add, [index, start], span)
            return self.b.apply(internal.make_tuple, [number, inner.item(index)], span)

        return Iteration(inner.length, item)

    def _zip(self, node: ast.Call, key: str) -> Iteration:
        span = self.span(node)
        strict = [k.value for k in node.keywords if k.arg != "strict"]
        if not node.args or strict:
            raise CompileError("zip takes what to go over, each positional", span)
        inner = [self._indexed(arg, key) for arg in node.args]
        lengths = [each.length for each in inner if each.length is not None]
        length = lengths[0] if len(lengths) == 1 else self.b.apply(builtins.min, lengths, span)
        return Iteration(
            length,
            lambda index: self.b.apply(
                internal.make_tuple, [each.item(index) for each in inner], span
            ),
        )

    def _map(self, node: ast.Call, key: str) -> Iteration:
        span = self.span(node)
        if len(node.args) < 2 or node.keywords:
            raise CompileError("map takes a function, and what to go over", span)
        function = self.visit(node.args[0])
        inner = [self._indexed(arg, key) for arg in node.args[1:]]
        lengths = [each.length for each in inner if each.length is not None]
        length = lengths[0] if len(lengths) == 1 else self.b.apply(builtins.min, lengths, span)
        return Iteration(
            length,
            lambda index: self.b.emit(
                Op.CALL, [function, *(each.item(index) for each in inner)], (), span
            ),
        )

    def _reversed(self, node: ast.Call, key: str) -> Iteration:
        span = self.span(node)
        if len(node.args) != 1 or node.keywords:
            raise CompileError("reversed takes one argument", span)
        inner = self._indexed(node.args[0], key)
        assert inner.length is not None
        last = self.b.apply(operator.sub, [inner.length, self.b.const(1, span)], span)
        return Iteration(
            inner.length,
            lambda index: inner.item(self.b.apply(operator.sub, [last, index], span)),
        )

    # Generator expressions, as the one argument of sum, any, all and tuple

    def generator(self, callee: Instr, node: ast.Call) -> Instr:
        """sum, any, all or tuple of a generator expression."""
        source = node.args[0]
        assert isinstance(source, ast.GeneratorExp)
        if callee.attr not in (sum, any, all, tuple) or node.keywords:
            self.refuse(source)
        if len(source.generators) != 1 or source.generators[0].is_async:
            text = "a generator expression has one `for` in a kernel"
            raise CompileError(text, self.span(source))
        outside = dict(self.b.env)
        make = self._tuple if callee.attr is tuple else self._reduction
        result = make(callee.attr, source)
        # Its names are its own.
        for name in stored(source):
            self.b.env.pop(name, None)
            if name in outside:
                self.b.env[name] = outside[name]
        return result

    # AST: ListComp(expr elt, comprehension* generators)
    def visit_ListComp(self, node: ast.ListComp) -> Instr:
        source = ast.copy_location(ast.GeneratorExp(node.elt, node.generators), node)
        call = ast.copy_location(ast.Call(ast.Name("tuple", ast.Load()), [source], []), node)
        return self.generator(self.b.const(tuple, self.span(node)), call)

    def _tuple(self, function: Any, node: ast.GeneratorExp) -> Instr:
        """The items of a comprehension whose length is known while compiling."""
        span, part = self.span(node), node.generators[0]
        if part.ifs:
            text = "the length of a tuple must be known: no `if` in its comprehension"
            raise CompileError(text, self.span(part.ifs[0]))
        key = f"{node.lineno}.{node.col_offset}"
        iteration = self._indexed(part.iter, key)
        assert iteration.length is not None
        if key not in self.unroll:
            name = self.b.const(key, span)
            return self.b.apply(internal.known_length, [iteration.length, name], span)
        items = []
        for index in range(self.unroll[key]):
            self.assign(part.target, iteration.item(self.b.const(index, span)))
            items.append(self.visit(node.elt))
        return self.b.apply(internal.make_tuple, items, span)

    def _reduction(self, function: Any, node: ast.GeneratorExp) -> Instr:
        span = self.span(node)
        (part,) = node.generators
        kind = REDUCTIONS[function]
        result = f".result{node.lineno}.{node.col_offset}"
        self.b.env[result] = self.b.const(0 if kind == "sum" else kind == "all", span)
        exhausted, done = self.b.new_block(), self.b.new_block()

        def body(value: Instr) -> None:
            self.assign(part.target, value)
            self._filtered(part.ifs, lambda: self._accumulate(kind, result, node.elt, done))

        names = [*stored(node), result]
        self.loop(node, part.iter, names, body, exhausted, done)
        self.b.start(exhausted, span)
        self.b.jump(done)
        self.b.start(done, span)
        return self.b.env.pop(result)

    def _filtered(self, tests: list[ast.expr], emit: Callable[[], None]) -> None:
        end = self.b.new_block()
        span = None
        for test in tests:
            go_on, span = self.b.new_block(), self.span(test)
            self.condition(test, go_on, end)
            self.b.start(go_on, span)
        emit()
        if span is not None:
            self.b.jump(end)
            self.b.start(end, span)

    def _accumulate(self, kind: str, result: str, node: ast.expr, done: Block) -> None:
        span = self.span(node)
        value = self.visit(node)
        if kind == "sum":
            self.b.env[result] = self.b.apply(operator.add, [self.b.env[result], value], span)
            return
        found, go_on = self.b.new_block(), self.b.new_block()
        then, other = (found, go_on) if kind == "any" else (go_on, found)
        self.b.branch(value, then, other, span)
        self.b.start(found, span)
        self.b.env[result] = self.b.const(kind == "any", span)
        self.b.jump(done)
        self.b.start(go_on, span)
