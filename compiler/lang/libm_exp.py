"""The exponential functions and logarithms of libm, and the hyperbolic functions."""

from __future__ import annotations

from typing import Any

from numpy import rint, sqrt

from .libm_bits import INF, NAN, fma, mul
from .libm_core import (
    copysign,
    exp_kernel,
    exp_parts,
    exp_reduced,
    log_kernel,
    log_pair,
    log_parts,
    power_of_two,
    scale,
    two_sum,
)
from .libm_poly import (
    LN2,
    LN2_TAIL,
    LN10,
    LN10_TAIL,
    LOG2_10,
    LOG2_E,
    LOG2_E_TAIL,
    LOG10_2_HI,
    LOG10_2_LO,
    LOG10_E,
    LOG10_E_TAIL,
    exp_tail,
)

TINY = 2.0**-28
HALF_ULP = 2.0**-54
HUGE = 2.0**28


def exp_scaled(x: Any, n: Any) -> Any:
    """exp(x) * 2**n for small n."""
    if x != x:
        return x
    if x > 720.0:
        return INF
    if x < -760.0:
        return 0.0
    f, k = exp_parts(x, 0.0)
    return scale(f, k + n)


def exp(x: Any) -> Any:
    """e**x."""
    return exp_scaled(x, 0)


def exp2(x: Any) -> Any:
    """2**x."""
    if x != x:
        return x
    if x > 1030.0:
        return INF
    if x < -1080.0:
        return 0.0
    n = rint(x)
    r = x - n
    h = mul(r, LN2)
    return scale(exp_kernel(h, fma(r, LN2, -h) + r * LN2_TAIL), int(n))


def exp10(x: Any) -> Any:
    """10**x."""
    if x != x:
        return x
    if x > 310.0:
        return INF
    if x < -330.0:
        return 0.0
    n = rint(x * LOG2_10)
    exact = x - mul(n, LOG10_2_HI)
    c = mul(n, LOG10_2_LO)
    r = exact - c
    rest = (exact - r) - c
    h = mul(r, LN10)
    return scale(exp_kernel(h, fma(r, LN10, -h) + (r * LN10_TAIL + rest * LN10)), int(n))


def expm1(x: Any) -> Any:
    """e**x - 1."""
    if x != x or abs(x) < HALF_ULP:
        return x
    if x > 720.0:
        return INF
    if x < -60.0:
        return -1.0
    h, l, n = exp_reduced(x, 0.0)  # noqa: E741
    e = h + fma(mul(h, h), exp_tail(h), l)
    if n == 0:
        return e
    if n > 60:
        return scale(1.0 + e, n)
    s = power_of_two(n)
    return fma(s, e, s - 1.0)


def log(x: Any) -> Any:
    """The natural logarithm."""
    if x > 0.0 and x < INF:
        m, n = log_parts(x)
        return log_kernel(m - 1.0, n, 0.0)
    return log_special(x)


def log_special(x: Any) -> Any:
    """The logarithm to any base of what is not finite and positive."""
    if x == 0.0:
        return -INF
    if x < 0.0:
        return NAN
    return x


def log2(x: Any) -> Any:
    """The logarithm to base 2."""
    if x > 0.0 and x < INF:
        m, n = log_parts(x)
        h, l = log_pair(m)  # noqa: E741
        y = mul(h, LOG2_E)
        rest = fma(h, LOG2_E, -y) + (h * LOG2_E_TAIL + l * LOG2_E)
        s, e = two_sum(float(n), y)
        return s + (e + rest)
    return log_special(x)


def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    if x > 0.0 and x < INF:
        m, n = log_parts(x)
        h, l = log_pair(m)  # noqa: E741
        k = float(n)
        y = mul(h, LOG10_E)
        rest = fma(h, LOG10_E, -y) + (h * LOG10_E_TAIL + l * LOG10_E)
        s, e = two_sum(mul(k, LOG10_2_HI), y)
        return s + (e + (rest + k * LOG10_2_LO))
    return log_special(x)


def log1p(x: Any) -> Any:
    """log(1 + x)."""
    if abs(x) < HALF_ULP or x == INF:
        return x
    if x > -0.29 and x < 0.41:
        return log_kernel(x, 0, 0.0)
    u = 1.0 + x
    if not u > 0.0:
        return log_special(u)
    # What the sum has lost, relative to it.
    lost = x - (u - 1.0)
    if u > 2.0:
        lost = 1.0 - (u - x)
    m, n = log_parts(u)
    return log_kernel(m - 1.0, n, lost / u)


def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    a = abs(x)
    if a < TINY or x != x:
        return x
    if a > 22.0:
        return copysign(exp_scaled(a, -1), x)
    t = expm1(a)
    if a < 1.0:
        return copysign(0.5 * (2.0 * t - t * t / (t + 1.0)), x)
    return copysign(0.5 * (t + t / (t + 1.0)), x)


def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    a = abs(x)
    if a > 22.0:
        return exp_scaled(a, -1)
    t = exp(a)
    return 0.5 * t + 0.5 / t


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    a = abs(x)
    if a < TINY or x != x:
        return x
    if a > 22.0:
        return copysign(1.0, x)
    if a < 1.0:
        t = expm1(-2.0 * a)
        return copysign(-t / (t + 2.0), x)
    return copysign(1.0 - 2.0 / (expm1(2.0 * a) + 2.0), x)


def asinh(x: Any) -> Any:
    """The inverse of sinh."""
    a = abs(x)
    if a < TINY or x != x:
        return x
    if a > HUGE:
        return copysign(log(a) + LN2, x)
    if a > 2.0:
        return copysign(log(2.0 * a + 1.0 / (sqrt(a * a + 1.0) + a)), x)
    t = a * a
    return copysign(log1p(a + t / (1.0 + sqrt(1.0 + t))), x)


def acosh(x: Any) -> Any:
    """The inverse of cosh."""
    if x < 1.0:
        return NAN
    if x > HUGE:
        return log(x) + LN2
    if x > 2.0:
        return log(2.0 * x - 1.0 / (x + sqrt(x * x - 1.0)))
    t = x - 1.0
    return log1p(t + sqrt(2.0 * t + t * t))


def atanh(x: Any) -> Any:
    """The inverse of tanh."""
    a = abs(x)
    if a < TINY or x != x:
        return x
    if a > 1.0:
        return NAN
    if a == 1.0:
        return copysign(INF, x)
    t = 2.0 * a
    if a < 0.5:
        return copysign(0.5 * log1p(t + t * a / (1.0 - a)), x)
    return copysign(0.5 * log1p(t / (1.0 - a)), x)
