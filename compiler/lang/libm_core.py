"""What the functions of libm share: pairs of doubles, scaling, the kernels of exp and log.

All of libm is in the kernel language and computes float64. A pair (h, l) is the unevaluated sum
of two doubles, l less than a unit in the last place of h. A product that is added to something
is `mul` where fusing the two would break an identity, `fma` where they should be one.
"""

from __future__ import annotations

from typing import Any

from numpy import rint

from .libm_bits import double_as_longlong, fma, longlong_as_double, mul
from .libm_poly import (
    LN2_HI,
    LN2_LO,
    LOG2_E,
    THIRD,
    THIRD_TAIL,
    atanh_tail,
    exp_tail,
    log_tail,
)

SIGN = -(1 << 63)
MAGNITUDE = (1 << 63) - 1
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
SMALLEST_NORMAL_BITS = 1 << 52
TWO_54 = 2.0**54


def two_sum(a: Any, b: Any) -> Any:
    """The pair a + b, exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def quick_two_sum(a: Any, b: Any) -> Any:
    """The pair a + b, exactly, for |a| >= |b| (Dekker)."""
    s = a + b
    return s, b - (s - a)


def copysign(x: Any, y: Any) -> Any:
    """|x| with the sign of y."""
    return longlong_as_double((double_as_longlong(x) & MAGNITUDE) | (double_as_longlong(y) & SIGN))


def is_negative(x: Any) -> Any:
    """Whether the sign bit is set."""
    return double_as_longlong(x) < 0


def power_of_two(n: Any) -> Any:
    """2**n, for a normal result."""
    return longlong_as_double((n + 1023) << 52)


def scale(x: Any, n: Any) -> Any:
    """x * 2**n, rounded once, for -2044 <= n <= 2046."""
    half = n >> 1
    return (x * power_of_two(half)) * power_of_two(n - half)


def exp_kernel(h: Any, l: Any) -> Any:  # noqa: E741
    """exp(h + l) for |h| < 0.35."""
    return 1.0 + (h + fma(mul(h, h), exp_tail(h), l))


def exp_reduced(h: Any, l: Any) -> Any:  # noqa: E741
    """The pair of h + l - n ln 2, and the n that makes it small (Cody and Waite)."""
    n = rint(h * LOG2_E)
    r = h - mul(n, LN2_HI)
    c = mul(n, LN2_LO)
    reduced = r - c
    h, l = quick_two_sum(reduced, ((r - reduced) - c) + l)  # noqa: E741
    return h, l, int(n)


def exp_parts(h: Any, l: Any) -> Any:  # noqa: E741
    """Numbers f and n with exp(h + l) = f * 2**n and f about 1, for |h| < 800."""
    h, l, n = exp_reduced(h, l)  # noqa: E741
    return exp_kernel(h, l), n


def log_parts(x: Any) -> Any:
    """Numbers m and n with x = m * 2**n and m*m between 1/2 and 2, for finite x > 0."""
    bits = double_as_longlong(x)
    shift = 0
    if bits < SMALLEST_NORMAL_BITS:
        bits = double_as_longlong(x * TWO_54)
        shift = 54
    n = (bits - SQRT_HALF_BITS) >> 52
    return longlong_as_double(bits - (n << 52)), n - shift


def log_kernel(f: Any, n: Any, c: Any) -> Any:
    """log(1 + f) + n ln 2 + c, for a small c.

    With s = f / (2 + f), log(1 + f) = 2 atanh(s), and 2 s = f - f*f/2 + s f*f/2.
    """
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    t = s * (half + z * log_tail(z))
    k = float(n)
    return k * LN2_HI - ((half - (t + (k * LN2_LO + c))) - f)


def log_pair(m: Any) -> Any:
    """The pair log(m), within 2**-65 of it, for m*m between 1/2 and 2."""
    f = m - 1.0
    d, dl = quick_two_sum(2.0, f)
    s = f / d
    sl = (fma(-s, d, f) - s * dl) / d
    z = mul(s, s)
    zl = fma(s, s, -z) + 2.0 * s * sl
    # log(m) = 2 s (1 + z c) with c = 1/3 + z/5 + ...
    c, cl = quick_two_sum(THIRD, mul(z, atanh_tail(z)))
    cl = cl + THIRD_TAIL
    p = mul(z, c)
    pl = fma(z, c, -p) + (z * cl + zl * c)
    t = mul(s, p)
    tl = fma(s, p, -t) + (s * pl + sl * p)
    h, l = quick_two_sum(s, t)  # noqa: E741
    return 2.0 * h, 2.0 * (l + (tl + sl))


def full_log_pair(x: Any) -> Any:
    """The pair log(x), for finite x > 0."""
    m, n = log_parts(x)
    h, l = log_pair(m)  # noqa: E741
    k = float(n)
    s, e = two_sum(mul(k, LN2_HI), h)
    return quick_two_sum(s, e + (k * LN2_LO + l))
