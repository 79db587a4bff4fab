"""What float32 functions become with fastmath: a few instructions of the hardware.

They are those that nvcc takes with -use_fast_math, with the errors that its manual gives for
__expf, __logf, __powf, __sinf, __cosf and __tanf.
"""

from __future__ import annotations

from typing import Any

from .libm_bits import ex2, hardware_cos, hardware_sin, lg2
from .libm_poly import LN2, LOG2_10, LOG2_E, LOG10_2


def exp(x: Any) -> Any:
    """e**x."""
    return ex2(x * LOG2_E)


def exp2(x: Any) -> Any:
    """2**x."""
    return ex2(x)


def exp10(x: Any) -> Any:
    """10**x."""
    return ex2(x * LOG2_10)


def log(x: Any) -> Any:
    """The natural logarithm."""
    return lg2(x) * LN2


def log2(x: Any) -> Any:
    """The logarithm to base 2."""
    return lg2(x)


def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    return lg2(x) * LOG10_2


def pow_(x: Any, y: Any) -> Any:
    """x**y; nan for a negative x."""
    return ex2(y * lg2(x))


def sin(x: Any) -> Any:
    """The sine."""
    return hardware_sin(x)


def cos(x: Any) -> Any:
    """The cosine."""
    return hardware_cos(x)


def tan(x: Any) -> Any:
    """The tangent."""
    return hardware_sin(x) / hardware_cos(x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return 1.0 - 2.0 / (ex2(x * (2.0 * LOG2_E)) + 1.0)
