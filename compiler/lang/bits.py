"""Rows of what `libm` takes for granted of the machine: exact products and the bits of a double."""

from __future__ import annotations

from .. import types
from ..lowering.builder import Builder
from ..lowering.models import F64, I64, Value, scalar_type
from ..types import Scalar, Type
from ..typing.registry import REGISTRY, Match
from . import libm_bits
from .mathematics import float_type

row = REGISTRY.function


def _floats(*args: Type) -> Match | None:
    ty = float_type(*args)
    return Match((ty,) * len(args), ty) if ty else None


@row(libm_bits.fma, rule=lambda a, b, c: _floats(a, b, c))
def fma(b: Builder, match: Match, x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded once"""
    ty = match.returns
    assert isinstance(ty, Scalar)
    name = f"llvm.fma.f{ty.bits}"
    return Value(ty, (b.intrinsic(name, scalar_type(ty), [x.leaf, y.leaf, z.leaf]),))


@row(libm_bits.mul, rule=lambda a, b: _floats(a, b))
def mul(b: Builder, match: Match, x: Value, y: Value) -> Value:
    """x * y, rounded by itself whatever follows"""
    ty = match.returns
    assert isinstance(ty, Scalar)
    name = "llvm.nvvm.mul.rn.f" if ty.bits == 32 else "llvm.nvvm.mul.rn.d"
    return Value(ty, (b.intrinsic(name, scalar_type(ty), [x.leaf, y.leaf]),))


@row(libm_bits.double_as_longlong, rule=lambda x: Match((types.py_float,), types.py_int))
def double_as_longlong(b: Builder, match: Match, x: Value) -> Value:
    """The bits of a double"""
    return Value(types.py_int, (b.llvm.bitcast(x.leaf, I64),))


@row(libm_bits.longlong_as_double, rule=lambda bits: Match((types.py_int,), types.py_float))
def longlong_as_double(b: Builder, match: Match, bits: Value) -> Value:
    """The double that has these bits"""
    return Value(types.py_float, (b.llvm.bitcast(bits.leaf, F64),))
