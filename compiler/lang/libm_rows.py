"""Rows of what only libm uses: the bits of a float32, and the hardware's approximations."""

from __future__ import annotations

from typing import Any

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


@row(libm_bits.fastmath, rule=lambda: Match((), types.boolean))
def fastmath(b: Builder, match: Match) -> Value:
    """Whether this module may approximate, a constant"""
    return b.constant(types.boolean, b.module.options.fastmath)


def _approximation(name: str) -> Any:
    def lower(b: Builder, match: Match, x: Value) -> Value:
        # fastmath flushes denormals, and these forms are one instruction.
        return Value(types.float32, (b.intrinsic(f"llvm.nvvm.{name}.approx.ftz.f", F32, [x.leaf]),))

    return lower


for _name, _function in {
    "ex2": libm_bits.ex2,
    "lg2": libm_bits.lg2,
    "sin": libm_bits.hardware_sin,
    "cos": libm_bits.hardware_cos,
}.items():
    row(_function, rule=lambda x: Match((types.float32,), types.float32))(_approximation(_name))
