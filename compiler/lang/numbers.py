"""Rows of number theory, sums, neighbours of floats, and rounding to digits."""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import I64, Value, scalar_type
from ..types import Array, Boolean, Float, Integer, Literal, Scalar, Struct, Tuple, Type, number
from ..typing.promotion import arithmetic, promote
from ..typing.registry import REGISTRY, Match
from . import libm_bits, pylib, pynumbers
from .mathematics import float_type
from .operators import no_lowering

row = REGISTRY.function
Rule = Callable[..., Match | None]


def _register(rule: Rule, *callees: Any, name: str = "") -> None:
    """Rows of those of *callees* that this Python has."""
    for callee in callees:
        if callee is not None:
            row(callee, rule=rule, name=name)(no_lowering)


def _implementation(function: Any, *args: Type | None) -> Match:
    return Match(args, types.none, python=function)


# Integers


def _ints(function: Any) -> Rule:
    def rule(*integers: Type) -> Match | None:
        if not all(isinstance(number(ty), Integer | Boolean) for ty in integers):
            return None
        return _implementation(function, *(types.py_int,) * len(integers))

    return rule


def _fixed(function: Any) -> Rule:
    """The same for a fixed number of ints: the rule's parameters are the function's."""
    many = _ints(function)
    if function.__code__.co_argcount == 1:
        return lambda n: many(n)
    return lambda n, k: many(n, k)


def _perm(n: Type, k: Type | None = None) -> Match | None:
    return _ints(pynumbers.perm)(n) if k is None else _ints(pynumbers.perm)(n, k)


_register(_ints(pynumbers.gcd_of), math.gcd, name="gcd")
_register(_ints(pynumbers.lcm_of), math.lcm, name="lcm")
_register(_fixed(pynumbers.comb), math.comb)
_register(_perm, math.perm)
_register(_fixed(pynumbers.factorial), math.factorial)


def _power_modulo(base: Type, exp: Type, mod: Type) -> Match | None:
    return _ints(pynumbers.power_modulo)(base, exp, mod)


_register(_power_modulo, builtins.pow)


def _common(*args: Type) -> Scalar | None:
    found: Scalar | None = None
    for arg in args:
        ty = number(arg)
        if ty is None:
            return None
        found = arithmetic(ty) if found is None else promote(found, ty)
    return found


def _two(integer: Any, floating: Any = None) -> Rule:
    def rule(x: Type, y: Type) -> Match | None:
        both = _common(x, y)
        function = floating if isinstance(both, Float) else integer
        return _implementation(function, both, both) if both and function else None

    return rule


def _float_fmod(x: Any, y: Any) -> Any:
    """The remainder with the sign of x."""
    return math.fmod(x, y)


def _float_reciprocal(x: Any) -> Any:
    """1 / x."""
    return 1 / x


def _reciprocal(x: Type) -> Match | None:
    ty = _common(x)
    if ty is None:
        return None
    floating = isinstance(ty, Float)
    return _implementation(_float_reciprocal if floating else pynumbers.int_reciprocal, ty)


def _both(a: Any, b: Any) -> Any:
    """Quotient and remainder, rounded down."""
    return a // b, a % b


def _divmod(a: Type, b: Type) -> Match | None:
    return _implementation(_both, None, None) if number(a) and number(b) else None


_register(_two(pylib.gcd), np.gcd, name="gcd")
_register(_two(pynumbers.lcm), np.lcm, name="lcm")
_register(_two(pynumbers.int_fmod, _float_fmod), np.fmod)
_register(_reciprocal, np.reciprocal)
_register(_divmod, builtins.divmod, np.divmod, name="divmod")


def _bit_count(value: Type) -> Match | None:
    ty = _common(value)
    return Match((ty,), types.py_int) if isinstance(ty, Integer) else None


def _ones(b: Builder, x: Value) -> ir.Value:
    leaf = x.leaf
    if x.type.signed:  # type: ignore[attr-defined]
        negative = b.llvm.icmp_signed("<", leaf, leaf.type(0))
        leaf = b.llvm.select(negative, b.llvm.neg(leaf), leaf)
    found = b.intrinsic(f"llvm.ctpop.i{leaf.type.width}", leaf.type, [leaf])
    return found if leaf.type == I64 else b.llvm.zext(found, I64)


@row(np.bitwise_count, rule=_bit_count)
def bit_count(b: Builder, match: Match, value: Value) -> Value:
    """The number of ones of the absolute value"""
    return Value(types.py_int, (_ones(b, value),))


@REGISTRY.method(Integer, "bit_count", _bit_count)
def bit_count_method(b: Builder, match: Match, value: Value) -> Value:
    """The number of ones of the absolute value"""
    return Value(types.py_int, (_ones(b, value),))


@REGISTRY.method(Integer, "bit_length", _bit_count)
def bit_length(b: Builder, match: Match, value: Value) -> Value:
    """The bits that the absolute value needs"""
    leaf = cast(b, value, types.int64).leaf
    if value.type.signed:  # type: ignore[attr-defined]
        negative = b.llvm.icmp_signed("<", leaf, b.int64(0))
        leaf = b.llvm.select(negative, b.llvm.neg(leaf), leaf)
    zeros = b.intrinsic("llvm.ctlz.i64", I64, [leaf, ir.Constant(ir.IntType(1), 0)])
    return Value(types.py_int, (b.llvm.sub(b.int64(64), zeros),))


def _is_whole(x: Any) -> Any:
    """Whether a float has no fraction."""
    return math.isfinite(x) and np.floor(x) == x


REGISTRY.method(Float, "is_integer", lambda x: _implementation(_is_whole, None))(no_lowering)


# Sums and products of tuples and arrays


def is_sequence(ty: Type) -> bool:
    """Whether a loop in a kernel can go over values of this type."""
    wide = types.widen(ty)
    named = isinstance(wide, Struct) and issubclass(wide.cls, tuple)
    return named or isinstance(wide, Tuple | Array)


def _iterable(function: Any, arrays: bool = True) -> Rule:
    def rule(iterable: Type) -> Match | None:
        if not is_sequence(iterable) or (isinstance(iterable, Array) and not arrays):
            return None
        return _implementation(function, None)

    return rule


def _with_start(function: Any) -> Rule:
    def rule(iterable: Type, start: Type) -> Match | None:
        return _implementation(function, None, None) if is_sequence(iterable) else None

    return rule


def _fsum(seq: Type) -> Match | None:
    return _implementation(pynumbers.fsum, None) if is_sequence(seq) else None


def _points(function: Any) -> Rule:
    def rule(p: Type, q: Type) -> Match | None:
        return _implementation(function, None, None) if is_sequence(p) and is_sequence(q) else None

    return rule


def _item_types(ty: Type) -> list[Type]:
    wide = types.widen(ty)
    return [wide.dtype] if isinstance(wide, Array) else list(wide.items)  # type: ignore[attr-defined]


def _sumprod(p: Type, q: Type) -> Match | None:
    if not (is_sequence(p) and is_sequence(q)):
        return None
    whole = all(isinstance(number(ty), Integer) for ty in (*_item_types(p), *_item_types(q)))
    return _implementation(pynumbers.total_of_products if whole else pynumbers.sumprod, None, None)


_register(_iterable(pynumbers.total_of, arrays=False), builtins.sum)
_register(_with_start(pynumbers.total_of), builtins.sum)
_register(_iterable(pynumbers.any_of, arrays=False), builtins.any)
_register(_iterable(pynumbers.all_of, arrays=False), builtins.all)
_register(_iterable(pynumbers.prod), math.prod)
_register(_with_start(pynumbers.prod), math.prod)
_register(_fsum, math.fsum)
_register(_points(pynumbers.distance), math.dist)
_register(_sumprod, getattr(math, "sumprod", None))


def _coordinates(*coordinates: Type) -> Match | None:
    ty = float_type(*coordinates) or types.py_float
    return _implementation(pynumbers.norm, *(ty,) * len(coordinates))


_register(_coordinates, math.hypot, name="hypot")


# Closeness


def _close(function: Any) -> Rule:
    def rule(a: Type, b: Type, *, rel_tol: Any = None, abs_tol: Any = None) -> Match | None:
        given = [ty for ty in (rel_tol, abs_tol) if ty is not None]
        return _implementation(function, *(None,) * (2 + len(given)))

    return rule


def _isclose_to(
    a: Type, b: Type, rtol: Any = None, atol: Any = None, equal_nan: Any = None
) -> Match | None:
    if number(a) is None or number(b) is None:
        return None
    ty = float_type(a, b)
    given = [value for value in (rtol, atol, equal_nan) if value is not None]
    return _implementation(pynumbers.isclose_to, ty, ty, *(None,) * len(given))


_register(_close(pynumbers.isclose), math.isclose, cmath.isclose)
_register(_isclose_to, np.isclose)


# Neighbours, and other functions of floats


def _own_float(*args: Type) -> Scalar | None:
    """As float_type, but float16 stays."""
    both = _common(*args)
    return both if isinstance(both, Float) or both is None else types.py_float


def _nextafter(x: Type, y: Type, *, steps: Type | None = None) -> Match | None:
    both = _own_float(x, y)
    if both is None:
        return None
    rest = () if steps is None else (types.py_int,)
    return _implementation(pynumbers.nextafter, both, both, *rest)


def _one_float(function: Any) -> Rule:
    def rule(x: Type) -> Match | None:
        ty = _own_float(x)
        return _implementation(function, ty) if ty else None

    return rule


def _two_floats(function: Any) -> Rule:
    def rule(x: Type, y: Type) -> Match | None:
        ty = float_type(x, y)
        return _implementation(function, ty, ty) if ty else None

    return rule


_register(_nextafter, math.nextafter, np.nextafter)
_register(_one_float(pynumbers.ulp), math.ulp)
_register(_one_float(pynumbers.spacing), np.spacing)
_register(_one_float(pynumbers.sinc), np.sinc)
_register(_one_float(pynumbers.nan_to_num), np.nan_to_num)
_register(_two_floats(pynumbers.heaviside), np.heaviside)
_register(_two_floats(pynumbers.logaddexp2), np.logaddexp2)


def _fma(x: Type, y: Type, z: Type) -> Match | None:
    ty = float_type(x, y, z)
    return Match((ty,) * 3, ty) if ty else None


if hasattr(math, "fma"):

    @row(math.fma, rule=_fma)
    def fma(b: Builder, match: Match, x: Value, y: Value, z: Value) -> Value:
        """x * y + z, rounded once"""
        ty = match.returns
        assert isinstance(ty, Scalar)
        leaves = [x.leaf, y.leaf, z.leaf]
        return Value(ty, (b.intrinsic(f"llvm.fma.f{ty.bits}", scalar_type(ty), leaves),))


def _to_bits(x: Type) -> Match | None:
    ty = number(x)
    return Match((ty,), types.py_int) if isinstance(ty, Float) else None


@row(libm_bits.to_bits, rule=_to_bits)
def to_bits(b: Builder, match: Match, x: Value) -> Value:
    """The bits of a float"""
    word = ir.IntType(x.type.bits)  # type: ignore[attr-defined]
    bits = b.llvm.bitcast(x.leaf, word)
    return Value(types.py_int, (bits if word == I64 else b.llvm.sext(bits, I64),))


def _from_bits(bits: Type, like: Type) -> Match | None:
    ty = number(like)
    return Match((types.py_int, ty), ty) if isinstance(ty, Float) else None


@row(libm_bits.from_bits, rule=_from_bits)
def from_bits(b: Builder, match: Match, bits: Value, like: Value) -> Value:
    """The float that has these bits"""
    word = ir.IntType(like.type.bits)  # type: ignore[attr-defined]
    leaf = bits.leaf if word == I64 else b.llvm.trunc(bits.leaf, word)
    return Value(match.returns, (b.llvm.bitcast(leaf, like.leaf.type),))


# Rounding to digits


def _round_digits(number_: Type, ndigits: Type) -> Match | None:
    ty = _common(number_)
    if ty is None or not isinstance(number(ndigits), Integer):
        return None
    if not isinstance(ty, Float):
        return _implementation(pynumbers.round_int, ty, types.py_int)
    function = pynumbers.round_float if ty.weak else pynumbers.round_numpy
    return _implementation(function, ty, None)


def _round_to_none(number: Type, ndigits: Type) -> Match | None:
    if not (isinstance(ndigits, Literal) and ndigits.value is None):
        return None
    return _implementation(_rounded, None, None)


def _rounded(number: Any, ndigits: Any) -> Any:
    """The nearest int."""
    return round(number)


def _round_numpy(a: Type, decimals: Type | None = None) -> Match | None:
    ty = _own_float(a)
    if ty is None:
        return None
    return _implementation(pynumbers.round_numpy, ty, *(() if decimals is None else (None,)))


_register(lambda number, ndigits: _round_digits(number, ndigits), builtins.round)
_register(_round_to_none, builtins.round)
_register(_round_numpy, np.round, np.around)


# What is left of operator


def _truth(obj: Type) -> Match | None:
    return Match((types.boolean,), types.boolean) if number(obj) else None


@row(operator.truth, rule=_truth)
def truth(b: Builder, match: Match, obj: Value) -> Value:
    """bool(x)"""
    return obj


def _index(a: Type) -> Match | None:
    ty = number(a)
    whole = isinstance(ty, Integer | Boolean)
    to = types.uint64 if ty == types.uint64 else types.py_int
    return Match((to,), to) if whole else None


@row(operator.index, rule=_index)
def index(b: Builder, match: Match, a: Value) -> Value:
    """An integer as a Python int"""
    return a


def count_of(a: Any, b: Any) -> Any:
    """How many items equal b."""
    total = 0
    for item in a:
        total += item == b
    return total


def index_of(a: Any, b: Any) -> Any:
    """The index of the first item that equals b; -1 if there is none."""
    for i, item in enumerate(a):
        if item == b:
            return i
    return -1


def search(function: Any) -> Rule:
    """A rule of what to look for in a sequence, done by *function*."""

    def rule(a: Type, b: Type) -> Match | None:
        return _implementation(function, None, None) if is_sequence(a) else None

    return rule


_register(search(count_of), operator.countOf)
_register(search(index_of), operator.indexOf)
REGISTRY.alias(operator.inv, operator.invert)
REGISTRY.alias(operator.length_hint, builtins.len)


def _call(obj: Any, *args: Any) -> Any:
    """obj(*args)."""
    return obj(*args)


_register(lambda obj, *args: _implementation(_call, None, *(None,) * len(args)),
          getattr(operator, "call", None))  # fmt: skip


def _dot(x1: Any, x2: Any) -> Any:
    """The sum of products of two arrays of one dimension."""
    total = x1.dtype.type(0) * x2.dtype.type(0)
    for i in range(min(len(x1), len(x2))):
        total += x1[i] * x2[i]
    return total


def _vectors(x1: Type, x2: Type) -> Match | None:
    both = (x1, x2)
    if not all(isinstance(ty, Array) and ty.ndim == 1 for ty in both):
        return None
    return _implementation(_dot, None, None)


_register(_vectors, operator.matmul, np.matmul, np.dot, np.vdot, np.inner,
          getattr(np, "vecdot", None))  # fmt: skip
