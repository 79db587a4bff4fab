"""Kernel functions that are one PTX instruction: a form for each list of types, and asm.

FORMS is the table: docs/intrinsics.md is written from it, and a test compiles each of its rows.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import F16, F32, I1, I8, I32, I64, Value, scalar_type
from ..types import Boolean, Float, Integer, Literal, Scalar, Tuple, Type, number, widen
from ..typing.promotion import fits
from ..typing.registry import REGISTRY, Match
from .stub import Stub

I16 = ir.IntType(16)


@dataclass(frozen=True, slots=True)
class Form:
    """One instruction, for one list of types.

    Attributes:
        args: what the arguments are converted to.
        returns: a scalar, a tuple of scalars, or none.
        text: the PTX; $0 and so on are the results, then the arguments. A bool is 0 or 1 in 32
            bits, an 8-bit integer lies in 16.
        cc: the lowest compute capability that has it.
        effects: it does more than compute: it is neither moved nor left out.
        convergent: threads meet there.
    """

    args: tuple[Type, ...]
    returns: Type
    text: str
    cc: tuple[int, int] = (7, 5)
    effects: bool = False
    convergent: bool = False


FORMS: dict[Stub, list[Form]] = {}


def declare(stub: Stub, forms: Sequence[Form], defaults: dict[str, Any] | None = None) -> Stub:
    """Make *stub* the instruction that its argument types choose from *forms*.

    Args:
        defaults: the values of the last parameters, by name, where they are not given.
    """
    FORMS[stub] = list(forms)
    count = len(forms[0].args)
    rest = tuple((defaults or {}).values())
    least = count - len(rest)

    def rule(*given: Type) -> Match | None:
        if not least <= len(given) <= count:
            return None
        missing = tuple(Literal(value) for value in rest[len(given) - least :])
        form = choose(forms, given + missing)
        return Match(form.args[: len(given)], form.returns, data=(form, missing)) if form else None

    rule.__signature__ = _parameters(stub)  # type: ignore[attr-defined]

    def lower(b: Builder, match: Match, *args: Value) -> Value:
        form, missing = match.data
        more = zip(missing, form.args[len(args) :], strict=True)
        return emit(b, stub.__name__, form, [*args, *(b.constant(t, m.value) for m, t in more)])

    lower.__doc__ = stub.__doc__
    REGISTRY.function(stub, rule=rule)(lower)
    return stub


def _parameters(stub: Stub) -> inspect.Signature:
    """The parameters as the stub's text shows them: "name(x, y=0): ..."."""
    shown = re.match(r"[\w.]+\((.*?)\):", stub.__doc__ or "")
    assert shown, stub
    names = [name for name in shown[1].split(", ") if name]
    empty = inspect.Parameter.empty
    kind = inspect.Parameter.POSITIONAL_ONLY
    return inspect.Signature(
        [
            inspect.Parameter(name.partition("=")[0], kind, default=0 if "=" in name else empty)
            for name in names
        ]
    )


def choose(forms: Sequence[Form], given: Sequence[Type]) -> Form | None:
    """The form to which the arguments convert with the least change, the first of equals."""
    best: tuple[int, Form] | None = None
    for form in forms:
        costs = [cost(have, want) for have, want in zip(given, form.args, strict=True)]
        if None in costs:
            continue
        total = sum(c for c in costs if c is not None)
        if best is None or total < best[0]:
            best = total, form
    return best and best[1]


def cost(given: Type, want: Type) -> int | None:
    """How far *given* is from *want*; None if a value could be lost."""
    have = number(given)
    if have is None or not isinstance(want, Scalar):
        return None
    if have == want:
        return 0
    if isinstance(given, Literal) and not fits(given.value, want):
        wide = isinstance(want, Integer) and isinstance(given.value, int)
        if not wide or not -(2 ** (want.bits - 1)) <= given.value < 2**want.bits:
            return None
    if isinstance(want, Boolean):
        return 50 if isinstance(have, Integer) else None
    if have.weak:
        return _weak_cost(have, want)
    return _strong_cost(have, want)


def _weak_cost(have: Scalar, want: Scalar) -> int | None:
    narrow = (64 - want.bits) // 8
    if isinstance(have, Integer) and isinstance(want, Integer):
        return 1 + narrow + (not want.signed)
    if isinstance(want, Float):
        return (20 if isinstance(have, Integer) else 1) + narrow
    return None


def _strong_cost(have: Scalar, want: Scalar) -> int | None:
    if isinstance(have, Boolean):
        return 40 + want.bits if isinstance(want, Integer) else None
    wider = want.bits - have.bits
    if isinstance(have, Float):
        return wider if isinstance(want, Float) and wider > 0 else None
    if isinstance(want, Float):
        return 100 + want.bits if want.bits > 16 else None
    assert isinstance(have, Integer) and isinstance(want, Integer)
    if have.signed == want.signed:
        return wider if wider > 0 else None
    return wider + (2 if want.signed else 8) if wider >= 0 else None


def require(b: Builder, name: str, cc: tuple[int, int]) -> None:
    """Refuse what the device that code is made for does not have.

    Raises:
        TypingError: its compute capability is lower than *cc*.
    """
    have = b.module.options.cc
    if have < cc:
        raise TypingError(
            f"{name} needs compute capability {cc[0]}.{cc[1]}; this code is for {have[0]}.{have[1]}"
        )


def emit(b: Builder, name: str, form: Form, args: Sequence[Value]) -> Value:
    """The instruction *form* on *args*, which have its types."""
    require(b, name, form.cc)
    results = form.returns.items if isinstance(form.returns, Tuple) else (form.returns,)
    wanted = [ty for ty in results if isinstance(ty, Scalar)]
    registers = [into_register(b, arg) for arg in args]
    return assemble(b, form.text, wanted, registers, form.returns, form.effects, form.convergent)


def assemble(
    b: Builder,
    text: str,
    results: Sequence[Scalar],
    registers: Sequence[ir.Value],
    returns: Type,
    effects: bool = True,
    convergent: bool = False,
) -> Value:
    """Inline PTX with results of these types, which are the leaves of *returns*."""
    kinds = [register_type(ty) for ty in results]
    letters = [f"={letter(kind)}" for kind in kinds] + [letter(r.type) for r in registers]
    if effects:
        letters.append("~{memory}")
    packed: ir.Type = ir.VoidType()
    if kinds:
        packed = kinds[0] if len(kinds) == 1 else ir.LiteralStructType(kinds)
    made = b.asm(text, ",".join(letters), packed, registers, effects, convergent)
    parts = (
        [made]
        if len(kinds) == 1
        else [b.llvm.extract_value(made, index) for index in range(len(kinds))]
    )
    leaves = (from_register(b, part, ty) for part, ty in zip(parts, results, strict=True))
    return Value(returns, tuple(leaves))


def letter(register: ir.Type) -> str:
    """The constraint of a register of this type; an address is 64 bits."""
    if isinstance(register, ir.PointerType):
        return "l"
    if isinstance(register, ir.IntType):
        return {16: "h", 32: "r", 64: "l"}[register.width]
    return "f" if register == F32 else "d"


def register_type(ty: Scalar) -> ir.Type:
    """The LLVM type of the register that holds *ty*."""
    leaf = scalar_type(ty)
    if leaf == I1:
        return I32
    return I16 if leaf in (I8, F16) or ty.bits == 16 else leaf


def into_register(b: Builder, value: Value) -> ir.Value:
    """A scalar as inline PTX takes it."""
    leaf, ty = value.leaf, value.type
    assert isinstance(ty, Scalar)
    if leaf.type == I1:
        return b.llvm.zext(leaf, I32)
    if leaf.type == I8:
        signed = isinstance(ty, Integer) and ty.signed
        return b.llvm.sext(leaf, I16) if signed else b.llvm.zext(leaf, I16)
    return leaf if leaf.type in (I32, I64) else _bits_of_half(b, leaf)


def _bits_of_half(b: Builder, leaf: ir.Value) -> ir.Value:
    return b.llvm.bitcast(leaf, I16) if leaf.type == F16 else leaf


def from_register(b: Builder, register: ir.Value, ty: Scalar) -> ir.Value:
    """The leaf of a scalar out of a register."""
    leaf = scalar_type(ty)
    if leaf == I1:
        return b.llvm.icmp_unsigned("!=", register, ir.Constant(I32, 0))
    if leaf == I8:
        return b.llvm.trunc(register, I8)
    return register if leaf == register.type else b.llvm.bitcast(register, leaf)


# asm


asm = Stub(
    "asm",
    """asm(text, constraints, *args, returns=None, volatile=True): inline PTX.

    *text* has $0, $1 and so on for the operands, results first, and $$ for a dollar. *constraints*
    is a letter for each, "=" before that of a result: h 16, r 32, l 64 bits, f float32, d float64;
    "memory" says that it writes memory. A result is an unsigned integer or a float, or *returns*,
    a type or a tuple of types; several results are a tuple. An array as "l" is its address.
    """,
)
_LETTERS: dict[str, Scalar] = {
    "h": types.uint16, "r": types.uint32, "l": types.uint64, "f": types.float32, "d": types.float64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Code:
    """What asm was given: the text, the results' types, and whether it has effects."""

    text: str
    results: tuple[Scalar, ...]
    effects: bool


def _asm(
    text: Type,
    constraints: Type,
    *args: Type,
    returns: Type | None = None,
    volatile: Type | None = None,
) -> Match:
    for name, part in (("text", text), ("constraints", constraints)):
        if not isinstance(part, Literal) or not isinstance(part.value, str):
            raise TypingError(f"asm: the {name} must be a constant string")
    if volatile is not None and not isinstance(volatile, Literal):
        raise TypingError("asm: volatile must be a constant")
    assert isinstance(text, Literal) and isinstance(constraints, Literal)
    parts = [part.strip() for part in constraints.value.split(",") if part.strip()]
    effects = "memory" in parts or volatile is None or bool(volatile.value)
    parts = [part for part in parts if part != "memory"]
    outs = [_lettered(part[1:]) for part in parts if part.startswith("=")]
    wanted = [_lettered(part) for part in parts[len(outs) :]]
    if len(wanted) != len(args):
        raise TypingError(f"asm: {len(args)} arguments for {len(wanted)} constraints")
    if re.search(r'["\\]', text.value):
        raise TypingError("asm: PTX has no quotes and no backslashes")
    results = _results(outs, returns)
    named = sum(part is not None for part in (returns, volatile))
    given = tuple(_given(have, want) for have, want in zip(args, wanted, strict=True))
    whole: Type = types.none
    if results:
        whole = results[0] if len(results) == 1 else Tuple(results)
    data = Code(text.value.replace("\n", "\\0A"), results, effects)
    return Match((None, None, *given, *(None,) * named), whole, data=data)


def _lettered(text: str) -> Scalar:
    if text not in _LETTERS:
        raise TypingError(f"asm: the constraint {text!r} is none of {', '.join(_LETTERS)}")
    return _LETTERS[text]


def _given(have: Type, want: Scalar) -> Type | None:
    """What an argument is converted to; arrays go as they are, integers of either sign."""
    if isinstance(have, types.Array) and want == types.uint64:
        return None
    ty = number(have)
    half = ty == types.float16 and want == types.uint16
    lossy = ty is not None and ty.bits > want.bits and not ty.weak
    if ty is None or lossy or (isinstance(ty, Float) and isinstance(want, Integer) and not half):
        raise TypingError(f"asm: {widen(have)} does not fit a constraint of {want}: convert it")
    return ty if half else want


def _results(outs: list[Scalar], returns: Type | None) -> tuple[Scalar, ...]:
    if returns is None or returns == Literal(None):
        return tuple(outs)
    given = returns.items if isinstance(returns, Tuple) else (returns,)
    if isinstance(returns, Literal) and isinstance(returns.value, tuple):
        given = tuple(Literal(item) for item in returns.value)
    found = []
    for item, out in zip(given, outs, strict=False):
        ty = types.scalar_from_dtype(item.value) if isinstance(item, Literal) else None
        if ty is None or register_type(ty) != scalar_type(out):
            raise TypingError(f"asm: {item} is no type for a result of {out.bits} bits")
        found.append(ty)
    if len(given) != len(outs):
        raise TypingError(f"asm: {len(given)} types for {len(outs)} results")
    return tuple(found)


@REGISTRY.function(asm, rule=_asm)
def lower_asm(b: Builder, match: Match, text: Value, constraints: Value, *args: Value) -> Value:
    """The text as it stands"""
    code: Code = match.data
    registers = []
    for arg in args:
        if isinstance(arg.type, types.Array):
            registers.append(b.llvm.ptrtoint(address(b, arg), I64))
        elif isinstance(arg.type, Scalar):
            registers.append(into_register(b, arg))
    effects = code.effects
    return assemble(b, code.text, code.results, registers, match.returns, effects, effects)


def address(b: Builder, array: Value) -> ir.Value:
    """The generic address of an array's first element."""
    assert isinstance(array.type, types.Array)
    pointer = array.leaves[0]
    return pointer if array.type.space == "generic" else b.to_generic(pointer)
