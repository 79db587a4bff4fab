"""The float32 functions of libm that kernels call most, in float32 arithmetic.

Like the float64 ones, with pairs (h, l) and shorter polynomials. float64 would be more exact, but
most GPUs have one float64 unit for 32 or 64 of float32.
"""

from __future__ import annotations

from typing import Any

from numpy import float32, rint, sqrt

from .libm_bits import INF, NAN, float_as_int, fma, int_as_float, mul
from .libm_core import quick_two_sum, two_sum
from .libm_poly import (
    CUBE_ROOT_2,
    CUBE_ROOT_4,
    LN2,
    LN10,
    LOG2_10,
    LOG2_E,
    LOG10_E,
    SINGLE_LN2_HI,
    SINGLE_LN2_LO,
    SINGLE_LOG2_E1,
    SINGLE_LOG10_2_0,
    SINGLE_LOG10_2_1,
    SINGLE_LOG10_E1,
    SINGLE_THIRD0,
    SINGLE_THIRD1,
    cube_root,
    single_atanh_tail,
    single_erf_tail,
    single_erfc_log,
    single_exp_tail,
    single_log_tail,
    single_sinh_tail,
    single_tanh_tail,
)
from .libm_pow import power

SIGN = -(1 << 31)
MAGNITUDE = (1 << 31) - 1
SQRT_HALF_BITS = 0x3F3504F3
SMALLEST_NORMAL_BITS = 1 << 23
TWO_24 = 2.0**24
HALF_ULP = 2.0**-25
TINY = 2.0**-13


def copysign(x: Any, y: Any) -> Any:
    """|x| with the sign of y."""
    return int_as_float((float_as_int(x) & MAGNITUDE) | (float_as_int(y) & SIGN))


def is_negative(x: Any) -> Any:
    """Whether the sign bit is set."""
    return float_as_int(x) < 0


def scale(x: Any, n: Any) -> Any:
    """x * 2**n, rounded once, for -252 <= n <= 254."""
    half = n >> 1
    return (x * int_as_float((half + 127) << 23)) * int_as_float((n - half + 127) << 23)


def exp_reduced(x: Any) -> Any:
    """x - n ln 2, and the n that makes it small."""
    n = rint(x * LOG2_E)
    return fma(n, -SINGLE_LN2_LO, fma(n, -SINGLE_LN2_HI, x)), int(n)


def expm1_kernel(h: Any) -> Any:
    """exp(h) - 1 for |h| < 0.35."""
    return fma(mul(h, h), single_exp_tail(h), h)


def exp_scaled(x: Any, n: Any) -> Any:
    """exp(x) * 2**n for small n."""
    if x != x:
        return x
    if x > 90.0:
        return INF
    if x < -105.0:
        return 0.0
    h, k = exp_reduced(x)
    return scale(1.0 + expm1_kernel(h), k + n)


def exp(x: Any) -> Any:
    """e**x."""
    return exp_scaled(x, 0)


def exp2(x: Any) -> Any:
    """2**x."""
    if x != x:
        return x
    if x > 129.0:
        return INF
    if x < -151.0:
        return 0.0
    n = rint(x)
    return scale(1.0 + expm1_kernel(mul(x - n, LN2)), int(n))


def exp10(x: Any) -> Any:
    """10**x."""
    if x != x:
        return x
    if x > 39.0:
        return INF
    if x < -46.0:
        return 0.0
    n = rint(x * LOG2_10)
    r = fma(n, -SINGLE_LOG10_2_1, fma(n, -SINGLE_LOG10_2_0, x))
    return scale(1.0 + expm1_kernel(mul(r, LN10)), int(n))


def expm1(x: Any) -> Any:
    """e**x - 1."""
    if x != x or abs(x) < HALF_ULP:
        return x
    if x > 90.0:
        return INF
    if x < -30.0:
        return -1.0
    h, n = exp_reduced(x)
    e = expm1_kernel(h)
    if n == 0:
        return e
    if n > 30:
        return scale(1.0 + e, n)
    s = scale(1.0, n)
    return fma(s, e, s - 1.0)


def log_parts(x: Any) -> Any:
    """Numbers m and n with x = m * 2**n and m*m between 1/2 and 2, for finite x > 0."""
    bits = float_as_int(x)
    shift = 0
    if bits < SMALLEST_NORMAL_BITS:
        bits = float_as_int(x * TWO_24)
        shift = 24
    n = (bits - SQRT_HALF_BITS) >> 23
    return int_as_float(bits - (n << 23)), n - shift


def log1p_kernel(f: Any) -> Any:
    """log(1 + f) for (1 + f)**2 between 1/2 and 2."""
    return fma(mul(f, f), fma(f, single_log_tail(f), -0.5), f)


def log(x: Any) -> Any:
    """The natural logarithm."""
    if x > 0.0 and x < INF:
        m, n = log_parts(x)
        k = float32(n)
        return fma(k, SINGLE_LN2_HI, fma(k, SINGLE_LN2_LO, log1p_kernel(m - 1.0)))
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
        s, e = two_sum(float32(n), y)
        return s + (e + (fma(h, LOG2_E, -y) + (h * SINGLE_LOG2_E1 + l * LOG2_E)))
    return log_special(x)


def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    if x > 0.0 and x < INF:
        m, n = log_parts(x)
        k = float32(n)
        h, l = log_pair(m)  # noqa: E741
        y = mul(h, LOG10_E)
        rest = fma(h, LOG10_E, -y) + (h * SINGLE_LOG10_E1 + l * LOG10_E)
        t = mul(k, SINGLE_LOG10_2_0)
        s, e = two_sum(t, y)
        return s + (e + (rest + (fma(k, SINGLE_LOG10_2_0, -t) + k * SINGLE_LOG10_2_1)))
    return log_special(x)


def log1p(x: Any) -> Any:
    """log(1 + x)."""
    if abs(x) < HALF_ULP or x == INF:
        return x
    if x > -0.29 and x < 0.41:
        return log1p_kernel(x)
    u = 1.0 + x
    if not u > 0.0:
        return log_special(u)
    lost = x - (u - 1.0)
    if u > 2.0:
        lost = 1.0 - (u - x)
    m, n = log_parts(u)
    k = float32(n)
    return fma(k, SINGLE_LN2_HI, fma(k, SINGLE_LN2_LO, lost / u + log1p_kernel(m - 1.0)))


def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    a = abs(x)
    if a < 1.0:
        z = a * a
        return fma(x * z, single_sinh_tail(z), x)
    if a > 10.0:
        return copysign(exp_scaled(a, -1), x)
    t = exp(a)
    return copysign(0.5 * t - 0.5 / t, x)


def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    a = abs(x)
    if a > 10.0:
        return exp_scaled(a, -1)
    t = exp(a)
    return 0.5 * t + 0.5 / t


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    a = abs(x)
    if a < TINY:
        return x
    if a < 0.6:
        z = a * a
        return fma(x * z, single_tanh_tail(z), x)
    if a > 10.0:
        return copysign(1.0, x)
    return copysign(1.0 - 2.0 / (exp(2.0 * a) + 1.0), x)


def erf(x: Any) -> Any:
    """The error function."""
    a = abs(x)
    if a < 1.0:
        return fma(x, single_erf_tail(x * x), x)
    if a > 4.0:
        return copysign(1.0, x)
    return copysign(1.0 - exp(-single_erfc_log(a)), x)


def log_pair(m: Any) -> Any:
    """The pair log(m), within 2**-34 of it, for m*m between 1/2 and 2."""
    f = m - 1.0
    d, dl = quick_two_sum(2.0, f)
    s = f / d
    sl = (fma(-s, d, f) - s * dl) / d
    z = mul(s, s)
    zl = fma(s, s, -z) + 2.0 * s * sl
    c, cl = quick_two_sum(SINGLE_THIRD0, mul(z, single_atanh_tail(z)))
    cl = cl + SINGLE_THIRD1
    p = mul(z, c)
    pl = fma(z, c, -p) + (z * cl + zl * c)
    t = mul(s, p)
    tl = fma(s, p, -t) + (s * pl + sl * p)
    h, l = quick_two_sum(s, t)  # noqa: E741
    return 2.0 * h, 2.0 * (l + (tl + sl))


def pow_positive(a: Any, y: Any) -> Any:
    """a**y for finite a > 0 and y."""
    m, n = log_parts(a)
    h, l = log_pair(m)  # noqa: E741
    k = float32(n)
    s, e = two_sum(mul(k, SINGLE_LN2_HI), h)
    h, l = quick_two_sum(s, e + fma(k, SINGLE_LN2_LO, l))  # noqa: E741
    p = mul(y, h)
    if p > 90.0:
        return INF
    if p < -105.0:
        return 0.0
    rest = fma(y, h, -p) + y * l
    n = rint(p * LOG2_E)
    r = p - mul(n, SINGLE_LN2_HI)
    h, l = two_sum(r, fma(n, -SINGLE_LN2_LO, rest))  # noqa: E741
    return scale(1.0 + (h + fma(mul(h, h), single_exp_tail(h), l)), int(n))


pow_ = power(pow_positive, is_negative)


def cbrt(x: Any) -> Any:
    """The cube root."""
    a = abs(x)
    if not (a > 0.0 and a < INF):
        return x
    bits = float_as_int(a)
    shift = 0
    if bits < SMALLEST_NORMAL_BITS:
        bits = float_as_int(a * TWO_24)
        shift = 8
    n = (bits >> 23) - 127
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
    # One step of Newton's iteration takes 18 bits to 24; the fma keeps its residual exact.
    y = y - fma(mul(y, y), y, -m) / (3.0 * y * y)
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
    n = (float_as_int(a) >> 23) - 127
    a = scale(a, -n)
    b = scale(b, -n)
    return scale(sqrt(fma(a, a, b * b)), n)
