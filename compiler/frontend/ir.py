"""The compiler's own intermediate form: SSA instructions in basic blocks, each with its span.

Every operator is a call of a function of Python's `operator` module, so there are few ops.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import Span
from .calls import Parameters
from .source import Source


class Op(enum.Enum):
    """What an instruction does."""

    CONST = "const"  # attr: the Python object
    ARG = "arg"  # attr: the position
    PHI = "phi"  # args: one a predecessor of the block; attr: the variable's name
    UNDEF = "undef"  # attr: the name that no path has assigned here
    APPLY = "apply"  # attr: the function, known in the syntax (operators); args: its arguments
    CALL = "call"  # args: callee, then arguments; attr: the names of the last ones, by keyword
    ATTR = "attr"  # args: the value; attr: the attribute's name


@dataclass(eq=False, slots=True, repr=False)
class Instr:
    """One instruction, which is also the value that it defines."""

    op: Op
    args: list[Instr]
    attr: Any
    span: Span
    id: int
    block: Block

    def __str__(self) -> str:
        names = " ".join(f"%{a.id}" for a in self.args)
        attr = "" if self.attr is None or self.attr == () else f" {_show(self.attr)}"
        return f"%{self.id} = {self.op.value}{attr} {names}".rstrip()


@dataclass(eq=False, slots=True, repr=False)
class Jump:
    """Control goes to *target*."""

    target: Block


@dataclass(eq=False, slots=True, repr=False)
class Branch:
    """Control goes to *then* if *condition* is true, else to *other*."""

    condition: Instr
    then: Block
    other: Block
    span: Span


@dataclass(eq=False, slots=True, repr=False)
class Return:
    """Control leaves the function, with *value* or None."""

    value: Instr | None
    span: Span


@dataclass(eq=False, slots=True, repr=False)
class Stop:
    """Control does not get here: the thread has ended."""

    span: Span


Terminator = Jump | Branch | Return | Stop


@dataclass(eq=False, slots=True, repr=False)
class Block:
    """A basic block; *preds* is in the order of its phis' arguments."""

    id: int
    instrs: list[Instr] = field(default_factory=list)
    preds: list[Block] = field(default_factory=list)
    terminator: Terminator | None = None

    def phis(self) -> Iterator[Instr]:
        """The phis, which stand first."""
        for instr in self.instrs:
            if instr.op is not Op.PHI:
                return
            yield instr


class Mark(NamedTuple):
    """A name is assigned: in a block, after one of its instructions, or first if that is None."""

    name: str
    value: Instr
    span: Span
    block: Block
    after: Instr | None


@dataclass(eq=False, slots=True, repr=False)
class Function:
    """A function in SSA form, untyped."""

    parameters: Parameters
    source: Source
    span: Span
    blocks: list[Block] = field(default_factory=list)
    size: int = 0
    reads: list[tuple[str, Instr, Span]] = field(default_factory=list)
    writes: list[tuple[str, Instr, Span]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.parameters.name

    def instructions(self) -> Iterator[Instr]:
        """All instructions, in block order."""
        for block in self.blocks:
            yield from block.instrs

    def dump(self) -> str:
        """The text form."""
        lines = [f"function {self.name}({', '.join(self.parameters.names)})"]
        for block in self.blocks:
            preds = " ".join(f"b{p.id}" for p in block.preds)
            lines.append(f"b{block.id}:" + (f"  ; from {preds}" if preds else ""))
            lines += [f"  {instr}" for instr in block.instrs]
            lines.append(f"  {_show_terminator(block.terminator)}")
        return "\n".join(lines)


def _show(attr: Any) -> str:
    return getattr(attr, "__name__", None) or repr(attr)


def _show_terminator(end: Terminator | None) -> str:
    if isinstance(end, Jump):
        return f"jump b{end.target.id}"
    if isinstance(end, Branch):
        return f"branch %{end.condition.id} b{end.then.id} b{end.other.id}"
    if isinstance(end, Return):
        return "return" if end.value is None else f"return %{end.value.id}"
    return "unreachable"
