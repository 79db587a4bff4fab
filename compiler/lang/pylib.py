"""What operators and builtins do, written in the kernel language itself.

Each function is compiled for the types that it is called with, as users' device functions are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def float_mod(x: Any, y: Any) -> Any:
    """x % y: the remainder with the sign of y; nan if y is 0."""
    rest = math.fmod(x, y)
    if rest != 0:
        return rest + y if (rest < 0) != (y < 0) else rest
    return math.copysign(rest, y)


def float_floordiv(x: Any, y: Any) -> Any:
    """x // y: the floor of the quotient, exact also where x / y rounds up; x / y if y is 0."""
    if y == 0:
        return x / y
    rest = math.fmod(x, y)
    quotient = (x - rest) / y
    if rest != 0 and (rest < 0) != (y < 0):
        quotient -= 1.0
    if quotient == 0:
        return math.copysign(quotient, x / y)
    whole = np.floor(quotient)
    return whole + 1.0 if quotient - whole > 0.5 else whole


def int_power(base: Any, exponent: Any) -> Any:
    """base ** exponent, wrapping; for a negative exponent the quotient 1 / base**-exponent, cut."""
    result = base * 0 + 1
    if exponent < 0:
        if base == 1:
            return result
        if base == -1:
            return result if exponent % 2 == 0 else -result
        return result - 1
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


def float_power(base: Any, exponent: Any) -> Any:
    """base ** exponent."""
    return math.pow(base, exponent)
