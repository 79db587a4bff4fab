"""The instruction table: what each PTX instruction is called, takes, and becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ..errors import PtxError, unsupported
from ..syntax import Instruction, Operand
from ..types import TYPES, Type

if TYPE_CHECKING:
    from ..frame import Frame

Emit = Callable[..., "str | None"]
Fault = Callable[["Op"], str]
F = TypeVar("F", bound=Emit)


@dataclass(frozen=True)
class Row:
    """An instruction family.

    Attributes:
        dest: code of the destination, "" if there is none.
        sources: a code per source; optional ones end in "?".
        types: the type modifiers it may have; empty for none.
        flags: the other modifiers it may have, and for which types; empty for all.
        emit: writes the LLVM IR: emit(frame, op, *sources) gives the value for the destination.
        barrier, warp: the thread may have to wait there for others of its block or warp.
        exits: the thread may end there.
        needs: modifiers of which it has one.
        fault: says what is wrong with an Op's combination of types and modifiers, or "".

    The codes: t the instruction's type, T its first type where it has two, w twice as wide as t,
    b the bits of t, x the operand as it stands, otherwise the name of a PTX type.
    """

    name: str
    dest: str
    sources: tuple[str, ...]
    types: frozenset[str]
    flags: dict[str, frozenset[str]]
    emit: Emit
    barrier: bool = False
    warp: bool = False
    exits: bool = False
    needs: frozenset[str] = frozenset()
    fault: Fault | None = None


TABLE: dict[str, list[Row]] = {}


def instruction(
    names: str,
    signature: str,
    types: str = "",
    flags: str = "",
    *,
    barrier: bool = False,
    warp: bool = False,
    exits: bool = False,
    needs: str = "",
    fault: Fault | None = None,
) -> Callable[[F], F]:
    """Add the rows *names* to the table: `@instruction("shl", "t = t u32", "b16 b32 b64")`.

    A name may have modifiers of its own ("mul.wide"); the longest that fits is taken. Of rows of
    the same name, the one whose types fit. A flag may be for some types only ("sat=s32").
    """
    dest, _, sources = signature.rpartition("=")

    def add(emit: F) -> F:
        for name in names.split():
            row = Row(
                name,
                dest.strip(),
                tuple(sources.split()),
                frozenset(types.split()),
                _flags(flags),
                emit,
                barrier,
                warp,
                exits,
                frozenset(needs.split()),
                fault,
            )
            TABLE.setdefault(name, []).append(row)
        return emit

    return add


def _flags(text: str) -> dict[str, frozenset[str]]:
    pairs = (word.partition("=") for word in text.split())
    return {name: frozenset(types.split(",") if types else ()) for name, _, types in pairs}


def find(raw: Instruction) -> tuple[Row, tuple[str, ...]]:
    """The row of an instruction and the modifiers that the row's name leaves over.

    Raises:
        PtxError: there is none.
    """
    parts = [raw.opcode, *raw.modifiers]
    for length in range(len(parts), 0, -1):
        rows = TABLE.get(".".join(parts[:length]), [])
        rest = parts[length:]
        for row in rows:
            if row is rows[-1] or all(m in row.types for m in rest if m in TYPES):
                return row, tuple(rest)
    raise unsupported(f"instruction {raw.name!r} is unknown", raw.line)


class Op:
    """An instruction met in a program, with its row, types and flags sorted out."""

    def __init__(self, raw: Instruction) -> None:
        self.raw = raw
        self.row, modifiers = find(raw)
        row = self.row
        self.types: list[Type] = []
        self.flags: set[str] = set()
        for modifier in modifiers:
            self._modifier(modifier)
        if row.types and not self.types:
            raise unsupported(f"{raw.name!r} has no type", raw.line)

    def _modifier(self, modifier: str) -> None:
        if modifier in self.row.types:
            self.types.append(TYPES[modifier])
        elif modifier in self.row.flags:
            self.flags.add(modifier)
        else:
            what = "type" if modifier in TYPES else "modifier"
            raise unsupported(f"{what} .{modifier} of {self.raw.name!r}", self.raw.line)

    @property
    def type(self) -> Type:
        """The last of its types, which the operation works in."""
        return self.types[-1]

    def has(self, flag: str) -> bool:
        """Whether it has the modifier *flag*."""
        return flag in self.flags

    def one_of(self, names: str, default: str = "") -> str:
        """The flag of *names* that it has."""
        for name in names.split():
            if name in self.flags:
                return name
        return default

    def resolve(self, code: str) -> Type:
        """The type that an operand code of the row stands for."""
        if code == "t":
            return self.types[-1]
        if code == "T":
            return self.types[0]
        if code == "w":
            kind = self.type.kind
            return TYPES[f"{kind}{self.type.bits * 2}"]
        if code == "b":
            return TYPES[f"b{self.type.bits}"]
        return TYPES[code]

    def check_operands(self) -> None:
        """Raise unless there are as many operands as the row takes."""
        codes, count = self.row.sources, len(self.raw.operands) - bool(self.row.dest)
        least = sum(not code.endswith("?") for code in codes)
        if not least <= count <= len(codes):
            raise PtxError(f"{self.raw.name!r} does not take {count} sources", self.raw.line)

    def check_modifiers(self) -> None:
        """Raise unless PTX has this combination of types and modifiers."""
        fault = self.row.fault(self) if self.row.fault else self._fault()
        if fault:
            raise PtxError(f"{self.raw.name!r}: {fault}", self.raw.line)

    def _fault(self) -> str:
        for flag in sorted(self.flags):
            types = self.row.flags[flag]
            if types and self.type.name not in types:
                return f"no .{flag} for .{self.type.name}"
        if self.row.needs and not self.row.needs & self.flags:
            return f"needs one of {', '.join(sorted(self.row.needs))}"
        return ""

    def emit(self, frame: Frame) -> None:
        """Write the instruction into *frame*."""
        row, operands = self.row, list(self.raw.operands)
        dest: Operand | None = operands.pop(0) if row.dest else None
        values = []
        for code, operand in zip(row.sources, operands, strict=False):
            code = code.rstrip("?")
            values.append(operand if code == "x" else frame.read(operand, self.resolve(code)))
        if row.dest == "x":
            row.emit(frame, self, dest, *values)
            return
        result = row.emit(frame, self, *values)
        if dest is not None and result is not None:
            frame.write(dest, self.resolve(row.dest), result)
