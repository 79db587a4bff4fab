"""Rows of Python's math module, and of NumPy's functions of the same names on scalars.

Functions of a float32 are computed in and return float32, those of a float16 as well; ints are
taken as Python floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from .. import types
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import Value, scalar_type
from ..types import Boolean, Float, Integer, Scalar, Type, number
from ..typing.promotion import promote
from ..typing.registry import REGISTRY, Match
from . import libm, pylib
from .builtin import fabs
from .operators import no_lowering

row = REGISTRY.function

# libdevice's name without "__nv_", Python's function, NumPy's.
_ONE_ARGUMENT: tuple[tuple[str, Any, Any], ...] = (
    ("exp", math.exp, np.exp), ("exp2", getattr(math, "exp2", None), np.exp2),
    ("expm1", math.expm1, np.expm1), ("log", math.log, np.log), ("log2", math.log2, np.log2),
    ("log10", math.log10, np.log10), ("log1p", math.log1p, np.log1p),
    ("sin", math.sin, np.sin), ("cos", math.cos, np.cos), ("tan", math.tan, np.tan),
    ("asin", math.asin, np.arcsin), ("acos", math.acos, np.arccos),
    ("atan", math.atan, np.arctan), ("sinh", math.sinh, np.sinh), ("cosh", math.cosh, np.cosh),
    ("tanh", math.tanh, np.tanh), ("asinh", math.asinh, np.arcsinh),
    ("acosh", math.acosh, np.arccosh), ("atanh", math.atanh, np.arctanh),
    ("erf", math.erf, None), ("erfc", math.erfc, None), ("tgamma", math.gamma, None),
    ("lgamma", math.lgamma, None), ("cbrt", getattr(math, "cbrt", None), np.cbrt),
)  # fmt: skip
_TWO_ARGUMENTS: tuple[tuple[str, Any, Any], ...] = (
    ("pow", math.pow, None), ("atan2", math.atan2, np.arctan2), ("fmod", math.fmod, None),
    ("remainder", math.remainder, None), ("hypot", math.hypot, np.hypot),
    ("copysign", math.copysign, np.copysign),
)  # fmt: skip


def float_type(*args: Type) -> Scalar | None:
    """The float type that a function of these numbers computes in; None if one is no number."""
    common: Scalar | None = None
    for arg in args:
        ty = number(arg)
        if ty is None:
            return None
        ty = ty if isinstance(ty, Float) else types.py_float
        ty = types.float32 if ty == types.float16 else ty
        common = ty if common is None else promote(common, ty)
    return common


def libdevice_name(name: str, ty: Scalar) -> str:
    """The symbol of a function of libdevice for a float type."""
    return f"__nv_{name}f" if ty.bits == 32 else f"__nv_{name}"


def _match(name: str, *args: Type) -> Match | None:
    ty = float_type(*args)
    if ty is None:
        return None
    own = libm.FUNCTIONS.get(libdevice_name(name, ty))
    return Match((ty,) * len(args), ty, python=own, libdevice=own is not None)


def _one(name: str) -> Callable[[Type], Match | None]:
    return lambda x: _match(name, x)


def _two(name: str) -> Callable[[Type, Type], Match | None]:
    return lambda x, y: _match(name, x, y)


def _libdevice(name: str) -> Any:
    def lower(b: Builder, match: Match, *args: Value) -> Value:
        ty = match.returns
        assert isinstance(ty, Scalar)
        symbol = libdevice_name(name, ty)
        return Value(ty, (b.intrinsic(symbol, scalar_type(ty), [a.leaf for a in args]),))

    return lower


for _name, *_callees in _ONE_ARGUMENT:
    row(*(c for c in _callees if c), rule=_one(_name), name=_name)(_libdevice(_name))
for _name, *_callees in _TWO_ARGUMENTS:
    row(*(c for c in _callees if c), rule=_two(_name), name=_name)(_libdevice(_name))


def _pow_of_ints(x: Type, y: Type) -> Match | None:
    whole = all(isinstance(number(ty), Integer | Boolean) for ty in (x, y))
    args = tuple(types.uint64 if number(ty) == types.uint64 else types.py_int for ty in (x, y))
    return Match(args, types.none, python=pylib.pow_of_ints) if whole else None


row(math.pow, rule=_pow_of_ints)(no_lowering)
REGISTRY.rows[id(math.pow)].insert(0, REGISTRY.rows[id(math.pow)].pop())


# What LLVM has as an instruction of the target


def _float(x: Type) -> Match | None:
    ty = float_type(x)
    return Match((ty,), ty) if ty else None


def llvm_function(b: Builder, name: str, x: Value) -> Value:
    """Call an LLVM floating-point intrinsic of one argument, such as floor."""
    bits = x.type.bits  # type: ignore[attr-defined]
    return Value(x.type, (b.intrinsic(f"llvm.{name}.f{bits}", x.leaf.type, [x.leaf]),))


@row(math.sqrt, np.sqrt, rule=_float)
def sqrt(b: Builder, match: Match, x: Value) -> Value:
    """The square root; nan for a negative number"""
    if x.type == types.float32:  # Unlike llvm.sqrt, approximate where the target asks for it.
        return Value(x.type, (b.intrinsic("llvm.nvvm.sqrt.f", x.leaf.type, [x.leaf]),))
    return llvm_function(b, "sqrt", x)


@row(math.fabs, np.fabs, rule=_float)
def lower_fabs(b: Builder, match: Match, x: Value) -> Value:
    """The absolute value, a float"""
    return Value(x.type, (fabs(b, x.leaf),))


def _integral(x: Type) -> Match | None:
    ty = number(x)
    if isinstance(ty, Float):
        return Match((float_type(x),), types.py_int)
    return Match((types.py_int,), types.py_int) if isinstance(ty, Integer) else None


def _declare_rounding(name: str, python: Any, numpy: Any) -> None:
    def to_int(b: Builder, match: Match, x: Value) -> Value:
        if not isinstance(x.type, Float):
            return x
        return cast(b, llvm_function(b, name, x), types.py_int)

    def to_float(b: Builder, match: Match, x: Value) -> Value:
        return llvm_function(b, name, x)

    if python is not None:
        row(python, rule=_integral)(to_int)
    row(numpy, rule=_float)(to_float)


_declare_rounding("floor", math.floor, np.floor)
_declare_rounding("ceil", math.ceil, np.ceil)
_declare_rounding("trunc", math.trunc, np.trunc)
_declare_rounding("rint", None, np.rint)


# Classification: comparisons, which hold in both dialects


def _predicate(x: Type) -> Match | None:
    ty = float_type(x)
    return Match((ty,), types.boolean) if ty else None


@row(math.isnan, np.isnan, rule=_predicate)
def isnan(b: Builder, match: Match, x: Value) -> Value:
    """Whether x is not a number"""
    return Value(types.boolean, (b.llvm.fcmp_unordered("uno", x.leaf, x.leaf),))


def _against_infinity(b: Builder, x: Value, symbol: str) -> ir.Value:
    infinity = ir.Constant(x.leaf.type, float("inf"))
    return b.llvm.fcmp_ordered(symbol, fabs(b, x.leaf), infinity)


@row(math.isinf, np.isinf, rule=_predicate)
def isinf(b: Builder, match: Match, x: Value) -> Value:
    """Whether x is an infinity"""
    return Value(types.boolean, (_against_infinity(b, x, "=="),))


@row(math.isfinite, np.isfinite, rule=_predicate)
def isfinite(b: Builder, match: Match, x: Value) -> Value:
    """Whether x is neither infinite nor not a number"""
    return Value(types.boolean, (_against_infinity(b, x, "<"),))


def _scaled(factor: float) -> Any:
    def lower(b: Builder, match: Match, x: Value) -> Value:
        scale = cast(b, Value(types.Literal(factor)), x.type)
        return Value(x.type, (b.llvm.fmul(x.leaf, scale.leaf),))

    return lower


row(math.radians, np.radians, np.deg2rad, rule=_float)(_scaled(math.pi / 180))
row(math.degrees, np.degrees, np.rad2deg, rule=_float)(_scaled(180 / math.pi))


# What is written in the kernel language


def _declare_python(callee: Any, function: Any, *kinds: str) -> None:
    """A row of *callee* done by *function*; a kind is "float", or "int" for a Python int."""

    def rule(args: tuple[Type, ...]) -> Match | None:
        common = float_type(*(a for a, k in zip(args, kinds, strict=True) if k == "float"))
        wanted = []
        for arg, kind in zip(args, kinds, strict=True):
            ty = number(arg)
            if ty is None or (kind == "int" and not isinstance(ty, Integer)):
                return None
            wanted.append(types.py_int if kind == "int" else common)
        return Match(tuple(wanted), types.none, python=function)

    shape = (lambda x: rule((x,))) if len(kinds) == 1 else (lambda x, y: rule((x, y)))
    row(callee, rule=shape)(no_lowering)


_declare_python(math.log, pylib.log_base, "float", "float")
_declare_python(math.modf, pylib.modf, "float")
_declare_python(math.frexp, pylib.frexp, "float")
_declare_python(math.ldexp, pylib.ldexp, "float", "int")
_declare_python(math.isqrt, pylib.isqrt, "int")
