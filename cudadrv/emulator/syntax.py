"""What a PTX module is once parsed: plain data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Name:
    """A register, symbol, label or special register, with a constant added (`sym+8`)."""

    text: str
    offset: int = 0


@dataclass(frozen=True)
class Integer:
    """An integer literal."""

    value: int


@dataclass(frozen=True)
class Float:
    """A floating point literal: its bits, in *width* bits (32 or 64)."""

    bits: int
    width: int


@dataclass(frozen=True)
class Negated:
    """`!p`"""

    name: Name


@dataclass(frozen=True)
class Address:
    """`[base+offset]`; items beyond the first are in *more* (`[tensor, {x, y}]`)."""

    base: Name | Integer
    offset: int = 0
    more: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Vector:
    """`{a, b, c, d}`"""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """`d|p`"""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Group:
    """`(a, b)` of a call."""

    items: tuple[Operand, ...]


Operand = Name | Integer | Float | Negated | Address | Vector | Pair | Group


@dataclass(frozen=True)
class Reference:
    """An address in an initialiser: `generic(sym)+offset`, or some bytes of it, `0xFF00(sym)`."""

    name: str
    offset: int = 0
    generic: bool = False
    mask: int = 0


@dataclass
class Variable:
    """A variable or parameter of a state space; *count* is None for a scalar, 0 for `x[]`."""

    space: str
    type: str
    name: str
    line: int
    align: int = 0
    count: int | None = None
    vector: int = 1
    init: list[Integer | Float | Reference] = field(default_factory=list)
    linkage: str = ""
    managed: bool = False


@dataclass
class Instruction:
    """`@guard opcode.modifiers operands;`; *source* is (file number, line) of `.loc`."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    line: int
    guard: Name | Negated | None = None
    source: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The instruction with its modifiers, as it is written."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass
class Label:
    """`name:`"""

    name: str
    line: int


@dataclass
class Prototype:
    """`name: .callprototype (returns) _ (params);`"""

    returns: list[Variable]
    params: list[Variable]


@dataclass
class Block:
    """`{ ... }`: declarations of its own and statements in order."""

    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)
    items: list[Instruction | Label | Block] = field(default_factory=list)


@dataclass
class Function:
    """`.entry` or `.func`; *body* is None for a declaration."""

    name: str
    is_entry: bool
    line: int
    linkage: str = ""
    returns: list[Variable] = field(default_factory=list)
    params: list[Variable] = field(default_factory=list)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    body: Block | None = None


@dataclass
class Module:
    """A module: its directives, variables and functions."""

    version: tuple[int, int] = (0, 0)
    target: tuple[str, ...] = ()
    address_size: int = 64
    files: dict[int, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
