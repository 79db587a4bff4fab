"""print in kernels: a format for vprintf, which the driver writes to the host's stdout."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import I8, I32, SPACES, Value
from ..types import Boolean, Complex, Float, Formatted, Integer, Literal, Struct, Text, Tuple, Type
from ..typing.registry import REGISTRY, Match

MAX_ARGUMENTS = 32  # CUDA C++ Programming Guide 13.0, "Formatted Output".
_SPEC = re.compile(r"(?:(.?)([<>=^]))?([-+ ]?)(#?)(0?)(\d*)([,_]?)(?:\.(\d+))?(\w?|%)")
# The digits that a decimal fraction keeps in each type.
_DIGITS = {16: 4, 32: 7, 64: 15}


@dataclass(eq=False, slots=True)
class Printf:
    """A format and the arguments that it takes so far."""

    b: Builder
    text: str = ""
    args: list[ir.Value] = field(default_factory=list)

    def literal(self, text: str) -> None:
        """Print *text* as it stands."""
        self.text += text.replace("%", "%%")

    def take(self, spec: str, *args: ir.Value) -> None:
        """Print numbers, or addresses of strings, in the format *spec*."""
        self.text += spec
        self.args += args

    def call(self) -> None:
        """Emit the call."""
        if len(self.args) > MAX_ARGUMENTS:
            raise TypingError(
                f"print: {len(self.args)} numbers, at most {MAX_ARGUMENTS} go at once"
            )
        b = self.b
        buffer = b.to_generic(self._buffer()) if self.args else self._null()
        b.intrinsic("vprintf", I32, [string(b, self.text), buffer])

    def _null(self) -> ir.Value:
        return ir.Constant(self.b.layout.pointer(), None)

    def _buffer(self) -> ir.Value:
        b = self.b
        offsets, end = [], 0
        for arg in self.args:
            size = 4 if arg.type == I32 else 8
            end = -(-end // size) * size
            offsets.append(end)
            end += size
        with b.llvm.goto_entry_block():
            place = b.llvm.alloca(ir.ArrayType(I8, end))
            place.align = 8
            pointer = b.untyped(place)
        for arg, offset in zip(self.args, offsets, strict=True):
            size = 4 if arg.type == I32 else 8
            b.llvm.store(arg, b.typed(b.bytes_on(pointer, offset), arg.type), align=size)
        return pointer


def string(b: Builder, text: str) -> ir.Value:
    """The address of a constant C string."""
    data = bytearray(text.encode() + b"\0")
    storage = ir.ArrayType(I8, len(data))
    name = b.module.llvm.get_unique_name("text")
    variable = ir.GlobalVariable(b.module.llvm, storage, name, SPACES["global"])
    variable.linkage = "internal"
    variable.global_constant = True
    variable.initializer = ir.Constant(storage, data)
    return b.to_generic(b.untyped(variable))


def write(out: Printf, value: Value, quoted: bool = False) -> None:
    """Print a value as str() shows it; *quoted*: as repr() does."""
    ty = value.type
    if isinstance(ty, Literal):
        out.literal(repr(ty.value) if quoted else str(ty.value))
        return
    for kind, writer in _WRITERS.items():
        if isinstance(ty, kind):
            writer(out, value)
            return
    raise TypingError(f"print cannot show {ty}: give it numbers, strings and tuples of them")


def _boolean(out: Printf, value: Value) -> None:
    b = out.b
    out.take("%s", b.llvm.select(value.leaf, string(b, "True"), string(b, "False")))


def _integer(out: Printf, value: Value, flags: str = "", letter: str = "d") -> None:
    ty = value.type
    assert isinstance(ty, Integer)
    wide = _wide(ty)
    if letter == "d" and not ty.signed:
        letter = "u"
    length = "ll" if wide.bits == 64 else ""
    out.take(f"%{flags}{length}{letter}", cast(out.b, value, wide).leaf)


def _wide(ty: Integer) -> Integer:
    if ty.bits <= 32:
        return types.int32 if ty.signed else types.uint32
    return types.int64 if ty.signed else types.uint64


def _float(out: Printf, value: Value, flags: str = "", letter: str = "g") -> None:
    ty = value.type
    assert isinstance(ty, Float)
    digits = f".{_DIGITS[ty.bits]}" if letter == "g" and "." not in flags else ""
    out.take(f"%{flags}{digits}{letter}", cast(out.b, value, types.float64).leaf)


def _complex(out: Printf, value: Value) -> None:
    assert isinstance(value.type, Complex)
    real, imag = (Value(value.type.part, (leaf,)) for leaf in value.leaves)
    out.literal("(")
    _float(out, real)
    _float(out, imag, "+")
    out.literal("j)")


def _tuple(out: Printf, value: Value) -> None:
    assert isinstance(value.type, Tuple | Struct)
    items = out.b.items(value)
    names = value.type.names if isinstance(value.type, Struct) else ()
    out.literal(value.type.cls.__name__ if isinstance(value.type, Struct) else "")
    out.literal("(")
    for index, item in enumerate(items):
        out.literal((", " if index else "") + (f"{names[index]}=" if names else ""))
        write(out, item, quoted=True)
    out.literal(",)" if len(items) == 1 and not names else ")")


def _text(out: Printf, value: Value) -> None:
    for item in out.b.items(value):
        write(out, item)


def _formatted(out: Printf, value: Value) -> None:
    ty = value.type
    assert isinstance(ty, Formatted)
    (item,) = out.b.items(value)
    if not ty.spec:
        write(out, item, quoted=ty.conversion in ("!r", "!a"))
        return
    found = _SPEC.fullmatch(ty.spec)
    if found is None or ty.conversion or not isinstance(item.type, types.Scalar):
        raise TypingError(f"print cannot show {ty}: the format is for numbers alone")
    fill, align, sign, alternate, zero, width, group, precision, letter = found.groups()
    if fill == "0" and align == "=":
        fill, align, zero = "", "", "0"
    if group or align in ("^", "=") or (fill or " ") != " " or letter not in (*"dxXeEfFgG", ""):
        raise TypingError(
            f"print has no format {ty.spec!r}: use signs, width, precision, dxXeEfFgG"
        )
    flags = (sign if sign != "-" else "") + alternate + ("-" if align == "<" else zero) + width
    flags += "" if precision is None else f".{precision}"
    _number(out, item, flags, letter)


def _number(out: Printf, item: Value, flags: str, letter: str) -> None:
    """Print a number with the flags of C and a letter, which both languages have."""
    ty = item.type
    if isinstance(ty, Boolean):
        item = cast(out.b, item, types.int32)
    if isinstance(ty, Float) or letter in tuple("eEfFgG"):
        if letter and letter in "dxX":
            raise TypingError(f"print: the format {letter} is for integers, not for {ty}")
        wide = item if isinstance(ty, Float) else cast(out.b, item, types.float64)
        if letter in ("g", "G") and "." not in flags:
            flags += ".6"
        _float(out, wide, flags, letter or "g")
        return
    if "." in flags:
        raise TypingError(f"print: an integer has no precision ({flags})")
    if letter in ("x", "X"):
        _hexadecimal(out, item, flags, letter)
    else:
        _integer(out, item, flags)


def _hexadecimal(out: Printf, value: Value, flags: str, letter: str) -> None:
    """Python puts the sign before the digits of the absolute value."""
    b, ty = out.b, value.type
    assert isinstance(ty, Integer)
    if not ty.signed:
        _integer(out, value, flags, letter)
        return
    value = cast(b, value, _wide(ty))
    zero = ir.Constant(value.leaf.type, 0)
    negative = b.llvm.icmp_signed("<", value.leaf, zero)
    size = b.llvm.select(negative, b.llvm.sub(zero, value.leaf), value.leaf)
    unsigned = types.uint64 if value.type == types.int64 else types.uint32
    width = re.search(r"[1-9]\d*$", flags)
    if width is None:
        out.take("%s", b.llvm.select(negative, string(b, "-"), string(b, "")))
        _integer(out, Value(unsigned, (size,)), flags.strip("+ "), letter)
        return
    if "0" not in flags[: width.start()]:
        raise TypingError("print: a width for signed hexadecimals needs zeros, as in 08x")
    less = b.llvm.zext(negative, I32)
    out.take("%s", b.llvm.select(negative, string(b, "-"), string(b, "")))
    room = b.llvm.sub(ir.Constant(I32, int(width.group())), less)
    length = "ll" if unsigned.bits == 64 else ""
    out.take(f"%{flags[: width.start()]}*{length}{letter}", room, size)


_WRITERS: dict[type[Type], Callable[[Printf, Value], None]] = {
    types.NoneType: lambda out, value: out.literal("None"),
    Boolean: _boolean,
    Integer: _integer,
    Float: _float,
    Complex: _complex,
    Tuple: _tuple,
    Struct: _tuple,
    Text: _text,
    Formatted: _formatted,
}


def _constant(name: str, given: Type, default: str) -> str:
    value: Any = given.value if isinstance(given, Literal) else given
    if value is None:
        return default
    if not isinstance(value, str):
        raise TypingError(f"print: {name} must be a constant string, not {value}")
    return value


def _print(
    *values: Type,
    sep: Type = Literal(None),  # noqa: B008
    end: Type = Literal(None),  # noqa: B008
    flush: Type = Literal(None),  # noqa: B008
) -> Match:
    named = sum(part != Literal(None) for part in (sep, end, flush))
    data = (len(values), _constant("sep", sep, " "), _constant("end", end, "\n"))
    return Match((None,) * (len(values) + named), types.none, data=data)


@REGISTRY.function(builtins.print, rule=_print)
def print_(b: Builder, match: Match, *values: Value) -> Value:
    """Print to the host's stdout, a line at once, when the host next waits for the device"""
    count, sep, end = match.data
    out = Printf(b)
    for index, value in enumerate(values[:count]):
        out.literal(sep if index else "")
        write(out, value)
    out.literal(end)
    out.call()
    return Value(types.none)
