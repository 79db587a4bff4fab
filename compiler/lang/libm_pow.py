"""Powers and roots of libm, and its exact remainders."""

from __future__ import annotations

from typing import Any

from numpy import floor, sqrt

from .libm_bits import INF, NAN, double_as_longlong, fma, mul
from .libm_core import (
    SMALLEST_NORMAL_BITS,
    copysign,
    exp_parts,
    full_log_pair,
    is_negative,
    scale,
)
from .libm_poly import CUBE_ROOT_2, CUBE_ROOT_4, cube_root

TWO_53 = 2.0**53
HALF_ULP = 2.0**-54
FRACTION = (1 << 52) - 1


def pow_infinite(a: Any, y: Any) -> Any:
    """a**y for an infinite y."""
    if a == 1.0:
        return 1.0
    if (a > 1.0) == (y > 0.0):
        return INF
    return 0.0


def pow_positive(a: Any, y: Any) -> Any:
    """a**y for finite a > 0 and y."""
    h, l = full_log_pair(a)  # noqa: E741
    p = mul(y, h)
    if p > 720.0:
        return INF
    if p < -760.0:
        return 0.0
    f, n = exp_parts(p, fma(y, h, -p) + y * l)
    return scale(f, n)


def power(positive: Any, negative: Any) -> Any:
    """The function x**y, from the one for finite x > 0, and the test of the sign bit."""

    def pow_(x: Any, y: Any) -> Any:
        # The special cases of C99, annex F.9.4.4.
        if y == 0.0 or x == 1.0:
            return 1.0
        if x != x or y != y:
            return x + y
        a = abs(x)
        if abs(y) == INF:
            return pow_infinite(a, y)
        whole = abs(y) >= TWO_53 or floor(y) == y
        odd = whole and abs(y) < TWO_53 and (int(y) & 1) != 0
        if x < 0.0 and not whole and a < INF:
            return NAN
        if a == 0.0 or a == INF:
            r = INF if (a == 0.0) != (y > 0.0) else 0.0
        else:
            r = positive(a, y)
        return -r if odd and negative(x) else r

    return pow_


pow_ = power(pow_positive, is_negative)


def cbrt(x: Any) -> Any:
    """The cube root."""
    a = abs(x)
    if not (a > 0.0 and a < INF):
        return x
    bits = double_as_longlong(a)
    shift = 0
    if bits < SMALLEST_NORMAL_BITS:
        bits = double_as_longlong(a * TWO_53 * 2.0)
        shift = 18
    n = (bits >> 52) - 1023
    third = n // 3
    m = scale(a, shift * 3 - n)
    y = cube_root(m)
    rest = n - 3 * third
    if rest == 1:
        m = m * 2.0
        y = y * CUBE_ROOT_2
    elif rest == 2:
        m = m * 4.0
        y = y * CUBE_ROOT_4
    # One step of Halley's iteration takes 20 bits to 60.
    r = m / (y * y)
    y = y + y * ((r - y) / (y + y + r))
    return copysign(scale(y, third - shift), x)


def hypot(x: Any, y: Any) -> Any:
    """sqrt(x*x + y*y), without overflow on the way."""
    a = abs(x)
    b = abs(y)
    if a == INF or b == INF:
        return INF
    if x != x or y != y:
        return x + y
    if a < b:
        a, b = b, a
    if b <= a * HALF_ULP:
        return a + b
    n = (double_as_longlong(a) >> 52) - 1023
    a = scale(a, -n)
    b = scale(b, -n)
    return scale(sqrt(fma(a, a, b * b)), n)


def mantissa(a: Any) -> Any:
    """Integers m and n with a = m * 2**n, for finite a > 0."""
    bits = double_as_longlong(a)
    if bits < SMALLEST_NORMAL_BITS:
        return bits, -1074
    return (bits & FRACTION) | SMALLEST_NORMAL_BITS, (bits >> 52) - 1075


def fmod(x: Any, y: Any) -> Any:
    """x - n*y exactly, with the integer n nearest to x/y towards zero; has the sign of x."""
    a = abs(x)
    b = abs(y)
    if not (a < INF and b > 0.0):
        return NAN
    if a < b:
        return x
    m, n = mantissa(a)
    d, smallest = mantissa(b)
    left = n - smallest
    m = m % d
    while left > 0:
        # m < 2**53 leaves ten bits to shift into.
        step = min(left, 10)
        m = (m << step) % d
        left = left - step
    return copysign(scale(float(m), smallest), x)


def remainder(x: Any, y: Any) -> Any:
    """x - n*y exactly, with the integer n nearest to x/y, even where halfway."""
    b = abs(y)
    if not (abs(x) < INF and b > 0.0):
        return NAN
    if b == INF:
        return x
    a = abs(x)
    if b < 2.0**1022:
        a = fmod(a, b + b)
    # Halves of y may not be exact, doubles of a small one are.
    if b < 2.0**-1000:
        if a + a > b:
            a = a - b
            if a + a >= b:
                a = a - b
    else:
        half = 0.5 * b
        if a > half:
            a = a - b
            if a >= half:
                a = a - b
    if is_negative(x):
        return -a
    return a
