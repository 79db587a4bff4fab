"""Rows of the bits of a float32, which libm takes apart."""

from __future__ import annotations

from .. import types
from ..lowering.builder import Builder
from ..lowering.casts import cast
from ..lowering.models import F32, I32, Value
from ..typing.registry import REGISTRY, Match
from . import libm_bits

row = REGISTRY.function


@row(libm_bits.float_as_int, rule=lambda x: Match((types.float32,), types.py_int))
def float_as_int(b: Builder, match: Match, x: Value) -> Value:
    """The bits of a float32"""
    return cast(b, Value(types.int32, (b.llvm.bitcast(x.leaf, I32),)), types.py_int)


@row(libm_bits.int_as_float, rule=lambda bits: Match((types.int32,), types.float32))
def int_as_float(b: Builder, match: Match, bits: Value) -> Value:
    """The float32 that has these bits"""
    return Value(types.float32, (b.llvm.bitcast(bits.leaf, F32),))
