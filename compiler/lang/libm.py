"""The functions to compile in where there is no libdevice, by the names of libdevice's.

The float32 functions that libm_single does not have are those of float64, rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import float32, float64

from . import libm_fast, libm_single, libm_single_trig
from . import libm_rows as libm_rows
from .libm_bits import fastmath
from .libm_core import copysign
from .libm_exp import (
    acosh,
    asinh,
    atanh,
    cosh,
    exp,
    exp2,
    exp10,
    expm1,
    log,
    log1p,
    log2,
    log10,
    sinh,
    tanh,
)
from .libm_pow import cbrt, fmod, hypot, pow_, remainder
from .libm_special import erf, erfc, lgamma, tgamma
from .libm_trig import acos, asin, atan, atan2, cos, cospi, sin, sinpi, tan

Function = Callable[..., Any]

UNARY: tuple[Function, ...] = (
    acos, acosh, asin, asinh, atan, atanh, cbrt, cos, cosh, cospi, erf, erfc, exp, exp10, exp2,
    expm1, lgamma, log, log10, log1p, log2, sin, sinh, sinpi, tan, tanh, tgamma,
)  # fmt: skip
BINARY: tuple[Function, ...] = (atan2, copysign, fmod, hypot, pow_, remainder)


def _single(double: Function) -> Function:
    """The function of float32 by way of float64."""

    def function(x: Any) -> Any:
        return float32(double(float64(x)))

    return function


def _single_of_two(double: Function) -> Function:
    """The function of two float32 by way of float64."""

    def function(x: Any, y: Any) -> Any:
        return float32(double(float64(x), float64(y)))

    return function


def _unless_fast(fast: Function, precise: Function) -> Function:
    """The float32 function that a module with fastmath has another of."""

    def function(x: Any) -> Any:
        if fastmath():
            return fast(x)
        return precise(x)

    return function


def _unless_fast_of_two(fast: Function, precise: Function) -> Function:
    """The same for two arguments."""

    def function(x: Any, y: Any) -> Any:
        if fastmath():
            return fast(x, y)
        return precise(x, y)

    return function


def _table() -> dict[str, Function]:
    table: dict[str, Function] = {}
    for functions, single, either in (
        (UNARY, _single, _unless_fast),
        (BINARY, _single_of_two, _unless_fast_of_two),
    ):
        for double in functions:
            name = double.__name__
            own = getattr(libm_single, name, None) or getattr(libm_single_trig, name, None)
            fast = getattr(libm_fast, name, None)
            own = own or single(double)
            table[f"__nv_{name.rstrip('_')}"] = double
            table[f"__nv_{name.rstrip('_')}f"] = either(fast, own) if fast else own
    return table


FUNCTIONS: dict[str, Function] = _table()
