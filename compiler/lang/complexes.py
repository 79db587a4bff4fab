"""Rows of complex numbers: arithmetic, parts, constructors, and the functions of cmath."""

from __future__ import annotations

import builtins
import cmath
import operator
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import Value
from ..types import Complex, Scalar, Type, number, widen
from ..typing.promotion import arithmetic, promote, promote_complex
from ..typing.registry import REGISTRY, Match
from . import pycomplex
from .operators import no_lowering

row = REGISTRY.function


def complex_type(ty: Type) -> Complex | None:
    """The complex type of a value, if it is complex."""
    wide = widen(ty)
    return wide if isinstance(wide, Complex) else None


def _two(left: Type, right: Type) -> Match | None:
    if complex_type(left) is None and complex_type(right) is None:
        return None
    both = promote_complex(widen(left), widen(right))
    return Match((both, both), both) if both else None


def _parts(b: Builder, match: Match, real: ir.Value, imag: ir.Value) -> Value:
    return Value(match.returns, (real, imag))


@row(operator.add, operator.iadd, np.add, rule=_two)
def add(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x + y"""
    (a, c), (d, e) = x.leaves, y.leaves
    return _parts(b, match, b.llvm.fadd(a, d), b.llvm.fadd(c, e))


@row(operator.sub, operator.isub, np.subtract, rule=_two)
def sub(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x - y"""
    (a, c), (d, e) = x.leaves, y.leaves
    return _parts(b, match, b.llvm.fsub(a, d), b.llvm.fsub(c, e))


@row(operator.mul, operator.imul, np.multiply, rule=_two)
def mul(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x * y"""
    (a, c), (d, e) = x.leaves, y.leaves
    llvm, flags = b.llvm, b.flags
    real = llvm.fsub(llvm.fmul(a, d, flags=flags), llvm.fmul(c, e, flags=flags), flags=flags)
    imag = llvm.fadd(llvm.fmul(a, e, flags=flags), llvm.fmul(c, d, flags=flags), flags=flags)
    return _parts(b, match, real, imag)


def _python(function: Any, rule: Any) -> Any:
    def with_python(left: Type, right: Type) -> Match | None:
        match = rule(left, right)
        return match and Match(match.args, match.returns, python=function)

    return with_python


row(operator.truediv, operator.itruediv, np.divide, rule=_python(pycomplex.divide, _two))(
    no_lowering
)
row(operator.pow, operator.ipow, np.power, rule=_python(pycomplex.power, _two))(no_lowering)


def _equal(left: Type, right: Type) -> Match | None:
    match = _two(left, right)
    return match and Match(match.args, types.boolean)


def _compare(symbol: str, combine: str) -> Any:
    def lower(b: Builder, match: Match, x: Value, y: Value) -> Value:
        compare = b.llvm.fcmp_ordered if symbol == "==" else b.llvm.fcmp_unordered
        pairs = zip(x.leaves, y.leaves, strict=True)
        real, imag = (compare(symbol, left, right) for left, right in pairs)
        return Value(types.boolean, (getattr(b.llvm, combine)(real, imag),))

    return lower


row(operator.eq, np.equal, rule=_equal)(_compare("==", "and_"))
row(operator.ne, np.not_equal, rule=_equal)(_compare("!=", "or_"))


def _zero(value: Type) -> Match | None:
    ty = complex_type(value)
    return Match((ty,), types.boolean) if ty else None


@row(operator.not_, rule=_zero)
def is_zero(b: Builder, match: Match, x: Value) -> Value:
    """not z: whether both parts are 0"""
    zero = ir.Constant(x.leaves[0].type, 0.0)
    real, imag = (b.llvm.fcmp_ordered("==", leaf, zero) for leaf in x.leaves)
    return Value(types.boolean, (b.llvm.and_(real, imag),))


def _one(value: Type) -> Match | None:
    ty = complex_type(value)
    return Match((ty,), ty) if ty else None


@row(operator.neg, np.negative, rule=_one)
def neg(b: Builder, match: Match, x: Value) -> Value:
    """-x"""
    zero = ir.Constant(x.leaves[0].type, -0.0)
    return _parts(b, match, *(b.llvm.fsub(zero, leaf) for leaf in x.leaves))


@row(operator.pos, rule=_one)
def pos(b: Builder, match: Match, x: Value) -> Value:
    """+x"""
    return x


@row(np.conj, np.conjugate, rule=_one)
def conjugate(b: Builder, match: Match, x: Value) -> Value:
    """The conjugate"""
    zero = ir.Constant(x.leaves[0].type, -0.0)
    return _parts(b, match, x.leaves[0], b.llvm.fsub(zero, x.leaves[1]))


REGISTRY.method(Complex, "conjugate", _one)(conjugate)


def _real(value: Type) -> Match | None:
    ty = number(value)
    return Match((arithmetic(ty),), arithmetic(ty)) if ty else None


@row(np.conj, np.conjugate, rule=_real)
def real_itself(b: Builder, match: Match, x: Value) -> Value:
    """x, a real number"""
    return x


@row(np.imag, rule=_real)
def no_imag(b: Builder, match: Match, x: Value) -> Value:
    """0, of a real number"""
    return b.zero(x.type)


row(np.real, rule=_real)(real_itself)
REGISTRY.method(Scalar, "conjugate", _real)(real_itself)


def _part(position: int) -> Any:
    def lower(b: Builder, owner: Value, ty: Type) -> Value:
        return Value(ty, (owner.leaves[position],))

    return lower


REGISTRY.attribute(Complex, "real", lambda owner: owner.part)(_part(0))
REGISTRY.attribute(Complex, "imag", lambda owner: owner.part)(_part(1))
REGISTRY.attribute(Scalar, "real", arithmetic)(lambda b, owner, ty: cast(b, owner, ty))
REGISTRY.attribute(Scalar, "imag", arithmetic)(lambda b, owner, ty: b.zero(ty))


def _part_of(position: int) -> Any:
    def rule(value: Type) -> Match | None:
        ty = complex_type(value)
        return Match((ty,), ty.part) if ty else None

    def lower(b: Builder, match: Match, x: Value) -> Value:
        return Value(match.returns, (x.leaves[position],))

    return lambda callee: row(callee, rule=rule)(lower)


_part_of(0)(np.real)
_part_of(1)(np.imag)


def _magnitude(value: Type) -> Match | None:
    ty = complex_type(value)
    return Match((ty,), ty.part, python=pycomplex.magnitude) if ty else None


row(builtins.abs, operator.abs, np.abs, rule=_magnitude)(no_lowering)


# Constructors


def _construct(b: Builder, match: Match, *parts: Value) -> Value:
    """complex(re, im), or a number as a complex one"""
    if len(parts) == 1:
        return parts[0]
    return Value(match.returns, (parts[0].leaf, parts[1].leaf))


def _two_parts(to: Complex) -> Any:
    def rule(real: Type, imag: Type) -> Match | None:
        if number(real) is None or number(imag) is None:
            return None
        return Match((to.part, to.part), to)

    return rule


def _one_part(to: Complex) -> Any:
    def rule(value: Type) -> Match | None:
        known = complex_type(value) is not None or number(value) is not None
        return Match((to,), to) if known else None

    return rule


for _ty, *_callees in (
    (types.complex64, types.complex64, np.complex64),
    (types.complex128, types.complex128, np.complex128),
    (types.py_complex, builtins.complex),
):
    assert isinstance(_ty, Complex)
    row(*_callees, rule=_one_part(_ty), name=str(_ty))(_construct)
    row(*_callees, rule=_two_parts(_ty), name=str(_ty))(_construct)


def _pair(real: Type, imag: Type) -> Match | None:
    a, b = number(real), number(imag)
    both = (
        promote_complex(promote(promote(a, b), types.py_float), types.py_complex)
        if a and b
        else None
    )
    return Match((both.part, both.part), both) if both else None


row(pycomplex.pair, rule=_pair)(_construct)


# cmath, and NumPy's functions of the same names on complex numbers


def _function(function: Any, result: str) -> Any:
    def rule(value: Type) -> Match | None:
        ty = complex_type(value) or (types.py_complex if number(value) else None)
        return Match((ty,), types.none, python=function) if ty else None

    def only_complex(value: Type) -> Match | None:
        return rule(value) if complex_type(value) else None

    return rule if result == "cmath" else only_complex


def _logarithm(x: Type, base: Type) -> Match | None:
    ty = _two(x, base) or (_pair(x, base) and Match((types.py_complex,) * 2, types.none))
    return ty and Match(ty.args, types.none, python=pycomplex.log_base)


_NAMES = ("sqrt", "exp", "log", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh")
_INVERSE = ("asin", "acos", "atan", "asinh", "acosh", "atanh")
_TESTS = ("isnan", "isinf", "isfinite")
for _name in (*_NAMES, *_INVERSE, *_TESTS):
    _implementation = getattr(pycomplex, _name)
    _numpy = getattr(np, _name.replace("a", "arc", 1) if _name in _INVERSE else _name)
    row(getattr(cmath, _name), rule=_function(_implementation, "cmath"), name=_name)(no_lowering)
    row(_numpy, rule=_function(_implementation, "numpy"), name=_name)(no_lowering)
for _name in ("phase", "polar"):
    _implementation = getattr(pycomplex, _name)
    row(getattr(cmath, _name), rule=_function(_implementation, "cmath"), name=_name)(no_lowering)
row(cmath.log, rule=_logarithm)(no_lowering)
row(np.angle, rule=_function(pycomplex.phase, "cmath"))(no_lowering)


def _rect(r: Type, phi: Type) -> Match | None:
    a, b = number(r), number(phi)
    if a is None or b is None:
        return None
    both: Scalar = promote(promote(a, b), types.py_float)
    return Match((both, both), types.none, python=pycomplex.rect)


row(cmath.rect, rule=_rect)(no_lowering)
