"""Rows of Python's operators on numbers: arithmetic, bits, comparisons."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .. import types
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.failures import fail_if
from ..lowering.models import Value
from ..types import Boolean, Float, Integer, Literal, Scalar, Type, number
from ..typing.promotion import arithmetic, fits, promote
from ..typing.registry import REGISTRY, Match
from . import pylib

row = REGISTRY.function


def two_numbers(left: Type, right: Type) -> Match | None:
    """Both operands and the result have the promoted type."""
    both = _promoted(left, right)
    return Match((both, both), both) if both else None


def two_integers(left: Type, right: Type) -> Match | None:
    """As two_numbers, for integers."""
    both = _promoted(left, right)
    return Match((both, both), both) if isinstance(both, Integer) else None


def two_floats(left: Type, right: Type) -> Match | None:
    """As two_numbers, for floats."""
    both = _promoted(left, right)
    return Match((both, both), both) if isinstance(both, Float) else None


def _promoted(left: Type, right: Type) -> Scalar | None:
    a, b = number(left), number(right)
    return promote(a, b) if a and b else None


@row(operator.add, operator.iadd, rule=two_numbers)
def add(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x + y"""
    if isinstance(x.type, Float):
        return Value(x.type, (b.llvm.fadd(x.leaf, y.leaf, flags=b.flags),))
    return Value(x.type, (b.llvm.add(x.leaf, y.leaf),))


@row(operator.sub, operator.isub, rule=two_numbers)
def sub(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x - y"""
    if isinstance(x.type, Float):
        return Value(x.type, (b.llvm.fsub(x.leaf, y.leaf, flags=b.flags),))
    return Value(x.type, (b.llvm.sub(x.leaf, y.leaf),))


@row(operator.mul, operator.imul, rule=two_numbers)
def mul(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x * y"""
    if isinstance(x.type, Float):
        return Value(x.type, (b.llvm.fmul(x.leaf, y.leaf, flags=b.flags),))
    return Value(x.type, (b.llvm.mul(x.leaf, y.leaf),))


def _division(left: Type, right: Type) -> Match | None:
    both = _promoted(left, right)
    if isinstance(both, Integer):
        both = types.py_float if both.weak else types.float64
    return Match((both, both), both) if both else None


@row(operator.truediv, operator.itruediv, rule=_division)
def truediv(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x / y, always a float"""
    if x.type == types.float16:  # In float32 the rounded quotient is the same; all targets have it.
        wide = (cast(b, x, types.float32).leaf, cast(b, y, types.float32).leaf)
        return cast(b, Value(types.float32, (b.llvm.fdiv(*wide),)), types.float16)
    return Value(x.type, (b.llvm.fdiv(x.leaf, y.leaf, flags=b.division_flags),))


def _divide(b: Builder, x: Value, y: Value) -> tuple[ir.Value, ir.Value]:
    """Floored quotient and remainder; both 0 for a zero divisor; no case undefined in LLVM."""
    ll, ty, n, d = b.llvm, x.leaf.type, x.leaf, y.leaf
    zero, one = ir.Constant(ty, 0), ir.Constant(ty, 1)
    is_zero = ll.icmp_unsigned("==", d, zero)
    if b.module.options.checks:
        fail_if(b, is_zero, ZeroDivisionError, "integer division or modulo by zero")
    assert isinstance(x.type, Integer)
    if not x.type.signed:
        safe = ll.select(is_zero, one, d)
        quotient, remainder = ll.udiv(n, safe), ll.urem(n, safe)
        return ll.select(is_zero, zero, quotient), ll.select(is_zero, zero, remainder)
    is_minus = ll.icmp_unsigned("==", d, ir.Constant(ty, -1))
    safe = ll.select(ll.or_(is_zero, is_minus), one, d)
    quotient, remainder = ll.sdiv(n, safe), ll.srem(n, safe)
    inexact = ll.icmp_unsigned("!=", remainder, zero)
    opposite = ll.icmp_signed("<", ll.xor(remainder, d), zero)
    down = ll.and_(inexact, opposite)
    quotient = ll.select(down, ll.sub(quotient, one), quotient)
    remainder = ll.select(down, ll.add(remainder, d), remainder)
    quotient = ll.select(is_minus, ll.sub(zero, n), quotient)
    return ll.select(is_zero, zero, quotient), ll.select(is_zero, zero, remainder)


@row(operator.floordiv, operator.ifloordiv, rule=two_integers)
def floordiv(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x // y for integers, rounded down; 0 if y is 0"""
    return Value(x.type, (_divide(b, x, y)[0],))


@row(operator.mod, operator.imod, rule=two_integers)
def mod(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x % y for integers, with the sign of y; 0 if y is 0"""
    return Value(x.type, (_divide(b, x, y)[1],))


def in_python(function: Callable[..., Any], rule: Callable[..., Match | None]) -> Any:
    """A rule that has *function*, in the kernel language, do the work."""

    def with_python(left: Type, right: Type) -> Match | None:
        match = rule(left, right)
        if match is None:
            return None
        # NumPy computes these of halves in float32.
        done = HALF.get(function, function) if match.returns == types.float16 else function
        return Match(match.args, match.returns, python=done)

    return with_python


HALF = {pylib.float_floordiv: pylib.half_floordiv, pylib.float_mod: pylib.half_mod}


def no_lowering(b: Builder, match: Match, *args: Value) -> Value:
    """The lowering of rows that are implemented in the kernel language."""
    raise AssertionError(f"{match} is implemented in Python")


row(operator.floordiv, operator.ifloordiv, rule=in_python(pylib.float_floordiv, two_floats))(
    no_lowering
)
row(operator.mod, operator.imod, rule=in_python(pylib.float_mod, two_floats))(no_lowering)


def _power(base: Type, exponent: Type) -> Match | None:
    both = _promoted(base, exponent)
    if both is None:
        return None
    count = exponent.value if isinstance(exponent, Literal) else None
    small = isinstance(count, int) and not isinstance(count, bool) and abs(count) <= 64
    if small and isinstance(both, Integer) and count is not None and count < 0:
        both = types.py_float if both.weak else types.float64
    if small:
        return Match((both, None), both, data=count)
    function = pylib.int_power if isinstance(both, Integer) else pylib.float_power
    if both == types.float16:
        function = pylib.half_power
    return Match((both, both), both, python=function)


@row(operator.pow, operator.ipow, builtins.pow, rule=_power)
def power(b: Builder, match: Match, x: Value, exponent: Value) -> Value:
    """x ** y, by multiplications where y is a small literal integer"""
    count = abs(match.data)
    result, square = None, x
    while count:
        if count & 1:
            result = square if result is None else mul(b, match, result, square)
        count >>= 1
        if count:
            square = mul(b, match, square, square)
    assert isinstance(x.type, Scalar)
    one = cast(b, Value(Literal(1)), x.type)
    if result is None:
        return one
    return truediv(b, match, one, result) if match.data < 0 else result


# Bits


def _bits(left: Type, right: Type) -> Match | None:
    if isinstance(number(left), Boolean) and isinstance(number(right), Boolean):
        return Match((types.boolean, types.boolean), types.boolean)
    return two_integers(left, right)


def _bitwise(*callees: Any) -> Any:
    def register(name: str) -> None:
        def lower(b: Builder, match: Match, x: Value, y: Value) -> Value:
            return Value(x.type, (getattr(b.llvm, name)(x.leaf, y.leaf),))

        row(*callees, rule=_bits)(lower)

    return register


_bitwise(operator.and_, operator.iand)("and_")
_bitwise(operator.or_, operator.ior)("or_")
_bitwise(operator.xor, operator.ixor)("xor")


@row(operator.lshift, operator.ilshift, rule=two_integers)
def lshift(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x << y; 0 where y is at least the number of bits"""
    width = ir.Constant(x.leaf.type, x.leaf.type.width)
    inside = b.llvm.icmp_unsigned("<", y.leaf, width)
    safe = b.llvm.select(inside, y.leaf, ir.Constant(x.leaf.type, 0))
    shifted = b.llvm.shl(x.leaf, safe)
    return Value(x.type, (b.llvm.select(inside, shifted, ir.Constant(x.leaf.type, 0)),))


@row(operator.rshift, operator.irshift, rule=two_integers)
def rshift(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x >> y; the sign, or 0, where y is at least the number of bits"""
    ll, ty = b.llvm, x.leaf.type
    inside = ll.icmp_unsigned("<", y.leaf, ir.Constant(ty, ty.width))
    last = ir.Constant(ty, ty.width - 1)
    assert isinstance(x.type, Integer)
    if x.type.signed:
        return Value(x.type, (ll.ashr(x.leaf, ll.select(inside, y.leaf, last)),))
    shifted = ll.lshr(x.leaf, ll.select(inside, y.leaf, last))
    return Value(x.type, (ll.select(inside, shifted, ir.Constant(ty, 0)),))


# Unary


def _one_number(value: Type) -> Match | None:
    ty = number(value)
    return Match((arithmetic(ty),), arithmetic(ty)) if ty else None


@row(operator.neg, rule=_one_number)
def neg(b: Builder, match: Match, x: Value) -> Value:
    """-x"""
    if isinstance(x.type, Float):
        return Value(x.type, (b.llvm.fsub(ir.Constant(x.leaf.type, -0.0), x.leaf),))
    return Value(x.type, (b.llvm.neg(x.leaf),))


@row(operator.pos, rule=_one_number)
def pos(b: Builder, match: Match, x: Value) -> Value:
    """+x"""
    return x


def _one_integer(value: Type) -> Match | None:
    ty = number(value)
    if isinstance(ty, Boolean):
        return Match((ty,), ty)
    return _one_number(value) if isinstance(ty, Integer) else None


@row(operator.invert, rule=_one_integer)
def invert(b: Builder, match: Match, x: Value) -> Value:
    """~x; the opposite of a bool"""
    return Value(x.type, (b.llvm.not_(x.leaf),))


def _truth(value: Type) -> Match | None:
    if isinstance(value, Literal) and (value.value is None or isinstance(value.value, str | tuple)):
        return Match((None,), Literal(not value.value))
    return Match((types.boolean,), types.boolean) if number(value) else None


@row(operator.not_, rule=_truth)
def not_(b: Builder, match: Match, x: Value) -> Value:
    """not x"""
    return Value(types.boolean, (b.llvm.not_(x.leaf),))


# Comparisons


def _comparison(left: Type, right: Type) -> Match | None:
    a, b = number(left), number(right)
    if a is None or b is None:
        return None
    both = promote(a, b)
    if isinstance(both, Float):
        return Match((both, both), types.boolean)
    return Match(_compared(left, right, arithmetic(a), arithmetic(b)), types.boolean)


def _compared(left: Type, right: Type, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The integer types in which a comparison gives the answer for the values."""
    if isinstance(left, Literal) and fits(left.value, b):
        return b, b
    if isinstance(right, Literal) and fits(right.value, a):
        return a, a
    assert isinstance(a, Integer) and isinstance(b, Integer)
    if a.signed == b.signed:
        wide = a if a.bits >= b.bits else b
        return wide, wide
    unsigned = b if a.signed else a
    if unsigned.bits < 64:
        return types.int64, types.int64
    return (types.int64, types.uint64) if a.signed else (types.uint64, types.int64)


def _compare(symbol: str) -> Callable[..., Value]:
    def lower(b: Builder, match: Match, x: Value, y: Value) -> Value:
        if isinstance(x.type, Float):
            compare = b.llvm.fcmp_unordered if symbol == "!=" else b.llvm.fcmp_ordered
            return Value(types.boolean, (compare(symbol, x.leaf, y.leaf),))
        assert isinstance(x.type, Integer) and isinstance(y.type, Integer)
        if x.type.signed and y.type.signed:
            return Value(types.boolean, (b.llvm.icmp_signed(symbol, x.leaf, y.leaf),))
        result = b.llvm.icmp_unsigned(symbol, x.leaf, y.leaf)
        if x.type.signed != y.type.signed:
            result = _mixed(b, symbol, x, y, result)
        return Value(types.boolean, (result,))

    return lower


def _mixed(b: Builder, symbol: str, x: Value, y: Value, unsigned: ir.Value) -> ir.Value:
    """Compare a signed with an unsigned 64-bit integer: a negative one is the smaller."""
    assert isinstance(x.type, Integer)
    signed = x if x.type.signed else y
    negative = b.llvm.icmp_signed("<", signed.leaf, b.int64(0))
    if symbol in ("==", "!="):
        answer = symbol == "!="
    else:
        answer = (symbol in ("<", "<=")) == (signed is x)
    return b.llvm.select(negative, ir.Constant(ir.IntType(1), int(answer)), unsigned)


for _callee, _symbol in (
    (operator.eq, "=="), (operator.ne, "!="), (operator.lt, "<"),
    (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">="),
):  # fmt: skip
    row(_callee, rule=_comparison)(_compare(_symbol))


def _constants_equal(left: Type, right: Type) -> Match | None:
    """Strings and other constants are compared while compiling."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Match((None, None), Literal(bool(left.value == right.value)))
    return None


def _constants_differ(left: Type, right: Type) -> Match | None:
    match = _constants_equal(left, right)
    return match and Match(match.args, Literal(not match.returns.value))  # type: ignore[attr-defined]


row(operator.eq, rule=_constants_equal)(no_lowering)
row(operator.ne, rule=_constants_differ)(no_lowering)


def _is(left: Type, right: Type) -> Match | None:
    """Identity with None, or of constants, is known from the types."""
    a, b = (types.none if _is_none(ty) else ty for ty in (left, right))
    if types.none in (a, b):
        return Match((None, None), Literal(a == b))
    if isinstance(a, Literal) and isinstance(b, Literal):
        return Match((None, None), Literal(a == b))
    return None


def _is_none(ty: Type) -> bool:
    return ty == types.none or (isinstance(ty, Literal) and ty.value is None)


def _is_not(left: Type, right: Type) -> Match | None:
    match = _is(left, right)
    return match and Match(match.args, Literal(not match.returns.value))  # type: ignore[attr-defined]


row(operator.is_, rule=_is)(no_lowering)
row(operator.is_not, rule=_is_not)(no_lowering)
