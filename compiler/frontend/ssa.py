"""Builds SSA form in the order of the syntax: an environment a path, phis where paths meet."""

from __future__ import annotations

from typing import Any

from ..errors import Span
from .ir import Block, Branch, Function, Instr, Jump, Mark, Op, Return, Stop

Env = dict[str, Instr]


class Builder:
    """Appends instructions to a current block; `block` is None where control cannot come."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.env: Env = {}
        self.entry = self.new_block()
        self.block: Block | None = self.entry
        self._incoming: dict[Block, list[Env]] = {}
        self._undefined: dict[str, Instr] = {}
        function.blocks.append(self.entry)

    def new_block(self) -> Block:
        """A block, not yet placed: `start` places it."""
        block = Block(self.function.size)
        self.function.size += 1
        return block

    def emit(self, op: Op, args: list[Instr], attr: Any, span: Span) -> Instr:
        """Append an instruction to the current block."""
        assert self.block is not None
        instr = Instr(op, args, attr, span, self.function.size, self.block)
        self.function.size += 1
        self.block.instrs.append(instr)
        return instr

    def apply(self, function: Any, args: list[Instr], span: Span) -> Instr:
        """Append a call of a function that the syntax itself names."""
        return self.emit(Op.APPLY, args, function, span)

    def const(self, value: Any, span: Span) -> Instr:
        """Append a constant."""
        return self.emit(Op.CONST, [], value, span)

    def assign(self, name: str, value: Instr, span: Span) -> None:
        """Let *name* mean *value* from here on, for debuggers too."""
        assert self.block is not None
        self.env[name] = value
        instrs = self.block.instrs
        after = instrs[-1] if instrs and instrs[-1].op is not Op.PHI else None
        self.function.marks.append(Mark(name, value, span, self.block, after))

    def undefined(self, name: str) -> Instr:
        """The value of a name that was never assigned, one a name, in the entry block."""
        if name not in self._undefined:
            span = self.function.span
            instr = Instr(Op.UNDEF, [], name, span, self.function.size, self.entry)
            self.function.size += 1
            self.entry.instrs.insert(0, instr)
            self._undefined[name] = instr
        return self._undefined[name]

    def jump(self, target: Block) -> None:
        """End the current block with a jump."""
        if self.block is not None:
            self.block.terminator = Jump(target)
            self._edge(self.block, target)
            self.block = None

    def branch(self, condition: Instr, then: Block, other: Block, span: Span) -> None:
        """End the current block with a branch."""
        if self.block is not None:
            self.block.terminator = Branch(condition, then, other, span)
            self._edge(self.block, then)
            self._edge(self.block, other)
            self.block = None

    def leave(self, value: Instr | None, span: Span) -> None:
        """End the current block with a return."""
        if self.block is not None:
            self.block.terminator = Return(value, span)
            self.block = None

    def stop(self, span: Span) -> None:
        """End the current block where the thread ends."""
        if self.block is not None:
            self.block.terminator = Stop(span)
            self.block = None

    def _edge(self, source: Block, target: Block) -> None:
        target.preds.append(source)
        self._incoming.setdefault(target, []).append(self.env)

    def start(self, block: Block, span: Span) -> bool:
        """Go on in *block*, merging the paths that lead there; False if none does."""
        incoming = self._incoming.get(block, [])
        if not incoming:
            self.block = None
            return False
        self.function.blocks.append(block)
        self.block = block
        self.env = dict(incoming[0])
        if len(incoming) > 1:
            names = dict.fromkeys(name for env in incoming for name in env)
            for name in names:
                self._merge(name, incoming, span)
        return True

    def _merge(self, name: str, incoming: list[Env], span: Span) -> None:
        values = [env.get(name) or self.undefined(name) for env in incoming]
        same = all(value is values[0] for value in values)
        self.env[name] = values[0] if same else self.emit(Op.PHI, values, name, span)

    def start_loop(self, header: Block, names: list[str], span: Span) -> bool:
        """Go on in a loop's *header*; *names* are those that the loop assigns."""
        if not self.start(header, span):
            return False
        for name in names:
            before = self.env.get(name) or self.undefined(name)
            self.env[name] = self.emit(Op.PHI, [before], name, span)
        return True

    def close_loop(self, header: Block) -> None:
        """Complete the header's phis once all jumps back to it are known."""
        for env in self._incoming[header][1:]:
            for phi in header.phis():
                phi.args.append(env.get(phi.attr) or self.undefined(phi.attr))


def simplify(function: Function) -> None:
    """Remove phis whose arguments are one value, and those that nothing needs."""
    replaced = _trivial_phis(function)
    for instr in function.instructions():
        if instr.args:
            instr.args = [_resolve(replaced, arg) for arg in instr.args]
    for block in function.blocks:
        end = block.terminator
        if isinstance(end, Branch):
            end.condition = _resolve(replaced, end.condition)
        elif isinstance(end, Return) and end.value is not None:
            end.value = _resolve(replaced, end.value)
    function.reads = [(n, _resolve(replaced, v), span) for n, v, span in function.reads]
    function.writes = [(n, _resolve(replaced, v), span) for n, v, span in function.writes]
    marks = function.marks
    function.marks = [mark._replace(value=_resolve(replaced, mark.value)) for mark in marks]
    live = _live_phis(function)
    for block in function.blocks:
        block.instrs = [
            i for i in block.instrs if i.op is not Op.PHI or (i in live and i not in replaced)
        ]


def _resolve(replaced: dict[Instr, Instr], value: Instr) -> Instr:
    while value in replaced:
        value = replaced[value]
    return value


def _trivial_phis(function: Function) -> dict[Instr, Instr]:
    replaced: dict[Instr, Instr] = {}
    phis = [phi for block in function.blocks for phi in block.phis()]
    changed = True
    while changed:
        changed = False
        rest = []
        for phi in phis:
            others = {_resolve(replaced, arg) for arg in phi.args} - {phi}
            if len(others) == 1:
                replaced[phi] = others.pop()
                changed = True
            else:
                rest.append(phi)
        phis = rest
    return replaced


def _live_phis(function: Function) -> set[Instr]:
    work = [a for i in function.instructions() if i.op is not Op.PHI for a in i.args]
    for block in function.blocks:
        end = block.terminator
        if isinstance(end, Branch):
            work.append(end.condition)
        elif isinstance(end, Return) and end.value is not None:
            work.append(end.value)
    live: set[Instr] = set()
    while work:
        value = work.pop()
        if value.op is Op.PHI and value not in live:
            live.add(value)
            work += value.args
    return live
