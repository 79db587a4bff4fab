"""The match statement to SSA form: each pattern a chain of branches."""

from __future__ import annotations

import ast
import operator
from typing import Any

from ..errors import CompileError, Span
from . import internal
from .expressions import Expressions
from .ir import Block, Instr, Op

# Classes whose one positional pattern is the value itself.
_WHOLE = (bool, int, float, complex, str, tuple)


class Matching(Expressions):
    """Visitors of match and its patterns."""

    def body(self, statements: list[ast.stmt]) -> None:
        """Walk statements (Syntax does it)."""
        raise NotImplementedError

    # AST: Match(expr subject, match_case* cases)
    def visit_Match(self, node: ast.Match) -> None:
        subject, span = self.visit(node.subject), self.span(node)
        end = self.b.new_block()
        for case in node.cases:
            other = self.b.new_block()
            self.pattern(case.pattern, subject, other)
            if case.guard is not None and self.b.block is not None:
                then = self.b.new_block()
                self.condition(case.guard, then, other)
                self.b.start(then, span)
            self.body(case.body)
            self.b.jump(end)
            if not self.b.start(other, span):
                break
        self.b.jump(end)
        self.b.start(end, span)

    def pattern(self, node: ast.pattern, subject: Instr, other: Block) -> None:
        """Go on where *subject* matches, its names bound; to *other* where it does not."""
        visitor = getattr(self, f"match_{type(node).__name__}", None)
        if visitor is None:
            self.refuse(node)
        visitor(node, subject, other)

    def _require(self, condition: Instr, other: Block, span: Span) -> None:
        then = self.b.new_block()
        self.b.branch(condition, then, other, span)
        self.b.start(then, span)

    def _bind(self, name: str | None, value: Instr, span: Span) -> None:
        if name is not None:
            self.b.env[name] = value
            self.b.function.writes.append((name, value, span))

    # AST: MatchValue(expr value)
    def match_MatchValue(self, node: ast.MatchValue, subject: Instr, other: Block) -> None:
        """A value: the subject equals it."""
        span = self.span(node)
        self._require(
            self.b.apply(operator.eq, [subject, self.visit(node.value)], span), other, span
        )

    # AST: MatchSingleton(constant value)
    def match_MatchSingleton(self, node: ast.MatchSingleton, subject: Instr, other: Block) -> None:
        """None, True or False: the subject is it."""
        span = self.span(node)
        value = self.b.const(node.value, span)
        function = operator.is_ if node.value is None else internal.is_bool
        self._require(self.b.apply(function, [subject, value], span), other, span)

    # AST: MatchAs(pattern? pattern, identifier? name)
    def match_MatchAs(self, node: ast.MatchAs, subject: Instr, other: Block) -> None:
        """A name, or _, or a pattern with a name."""
        if node.pattern is not None:
            self.pattern(node.pattern, subject, other)
        self._bind(node.name, subject, self.span(node))

    # AST: MatchOr(pattern* patterns)
    def match_MatchOr(self, node: ast.MatchOr, subject: Instr, other: Block) -> None:
        """One pattern or another."""
        span, then = self.span(node), self.b.new_block()
        for part in node.patterns[:-1]:
            following = self.b.new_block()
            self.pattern(part, subject, following)
            self.b.jump(then)
            if not self.b.start(following, span):
                break
        else:
            self.pattern(node.patterns[-1], subject, other)
            self.b.jump(then)
        self.b.start(then, span)

    # AST: MatchSequence(pattern* patterns)
    def match_MatchSequence(self, node: ast.MatchSequence, subject: Instr, other: Block) -> None:
        """A tuple of so many items, each matching its pattern."""
        span = self.span(node)
        stars = [i for i, item in enumerate(node.patterns) if isinstance(item, ast.MatchStar)]
        shape = [self.b.const(n, span) for n in (len(node.patterns), stars[0] if stars else -1)]
        fits = self.b.apply(internal.is_sequence, [subject, *shape], span)
        self._require(fits, other, span)
        whole = self.b.apply(internal.unpack, [subject, *shape], span)
        for index, item in enumerate(node.patterns):
            place = self.b.const(index, span)
            part = self.b.apply(operator.getitem, [whole, place], span)
            if isinstance(item, ast.MatchStar):
                self._bind(item.name, part, self.span(item))
            else:
                self.pattern(item, part, other)

    # AST: MatchClass(expr cls, pattern* patterns, identifier* kwd_attrs, pattern* kwd_patterns)
    def match_MatchClass(self, node: ast.MatchClass, subject: Instr, other: Block) -> None:
        """A value of a class, whose attributes match."""
        span = self.span(node)
        cls = self.visit(node.cls)
        test = self.b.const(isinstance, span)
        self._require(self.b.emit(Op.CALL, [test, subject, cls], (), span), other, span)
        if cls.attr in _WHOLE and len(node.patterns) == 1:
            self.pattern(node.patterns[0], subject, other)
            return
        names: Any = getattr(cls.attr, "__match_args__", ())
        if len(node.patterns) > len(names):
            text = f"the class takes {len(names)} positional patterns, {len(node.patterns)} given"
            raise CompileError(text, span)
        pairs = [*zip(names, node.patterns, strict=False)]
        for name, item in [*pairs, *zip(node.kwd_attrs, node.kwd_patterns, strict=True)]:
            self.pattern(item, self.b.emit(Op.ATTR, [subject], name, span), other)
