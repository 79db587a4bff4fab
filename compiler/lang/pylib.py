"""What operators and builtins do, written in the kernel language itself.

Each function is compiled for the types that it is called with, as users' device functions are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .libm_bits import double_as_longlong, longlong_as_double

_EXPONENT = 0x7FF
_SUBNORMAL_SCALE = 2.0**64


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


def half_mod(x: Any, y: Any) -> Any:
    """x % y of float16, in float32."""
    return np.float16(float_mod(np.float32(x), np.float32(y)))


def half_floordiv(x: Any, y: Any) -> Any:
    """x // y of float16, in float32."""
    return np.float16(float_floordiv(np.float32(x), np.float32(y)))


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


def pow_of_ints(x: Any, y: Any) -> Any:
    """math.pow of ints: exact as long as the power fits 53 bits."""
    result = math.pow(float(x), float(y))
    if y < 0 or y > 53 or not abs(result) <= 9.1e15:
        return result
    result, base, n = 1.0, float(x), y
    while n > 0:
        if n & 1:
            result *= base
        base *= base
        n >>= 1
    return result


def log_base(x: Any, base: Any) -> Any:
    """The logarithm of x to a base."""
    return math.log(x) / math.log(base)


def modf(x: Any) -> Any:
    """Fraction and whole part, both with the sign of x."""
    whole = np.trunc(x)
    fraction = 0.0 if math.isinf(x) else x - whole
    return math.copysign(fraction, x), whole


def frexp(x: Any) -> Any:
    """(m, e) with x == m * 2**e and 0.5 <= abs(m) < 1; (x, 0) for 0, infinities and nan."""
    y = float(x)
    if y == 0.0 or not math.isfinite(y):
        return y, 0
    bias = 1022
    if abs(y) < 2.0**-1022:
        y *= _SUBNORMAL_SCALE
        bias += 64
    bits = double_as_longlong(y)
    exponent = (bits >> 52) & _EXPONENT
    mantissa = (bits & ~(_EXPONENT << 52)) | (1022 << 52)
    return longlong_as_double(mantissa), exponent - bias


def ldexp(x: Any, exponent: Any) -> Any:
    """x * 2**exponent, rounded once."""
    y = float(x)
    n = int(exponent)
    for _ in range(2):
        if n > 1023:
            y *= 2.0**1023
            n -= 1023
        elif n < -1022:
            y *= 2.0**-969  # Stays normal as long as the result does not round to zero.
            n += 969
    n = min(max(n, -1022), 1023)
    return y * longlong_as_double((n + 1023) << 52)


def gcd(a: Any, b: Any) -> Any:
    """The greatest common divisor, not negative."""
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


def isqrt(n: Any) -> Any:
    """The whole part of the square root of an int; 0 for a negative one."""
    if n <= 0:
        return 0
    root = int(math.sqrt(n))
    while root > n // root:
        root -= 1
    while root + 1 <= n // (root + 1):
        root += 1
    return root


def contains(items: Any, value: Any) -> Any:
    """Whether one of the items equals value."""
    return any(item == value for item in items)


def half_power(base: Any, exponent: Any) -> Any:
    """base ** exponent of float16, in float32."""
    return np.float16(math.pow(np.float32(base), np.float32(exponent)))


def item_at(owner: Any, index: Any, key: Any) -> Any:
    """The item at an index of what a loop goes over."""
    return owner[index]
