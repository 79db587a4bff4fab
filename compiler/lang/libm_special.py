"""The error functions and gamma functions of libm."""

from __future__ import annotations

from typing import Any

from numpy import floor

from .libm_bits import INF, NAN, fma, mul
from .libm_core import copysign, exp_parts, full_log_pair, quick_two_sum, scale, two_sum
from .libm_exp import log
from .libm_poly import (
    HALF_LOG_2PI,
    HALF_LOG_2PI_TAIL,
    PI,
    erf_tail,
    erfc_scaled,
    lgamma_at_2,
    reciprocal_gamma,
    stirling,
)
from .libm_trig import sinpi

TINY = 2.0**-60
# From here on Stirling's series with the terms fitted is exact enough.
STIRLING_FROM = 9.0


def erf(x: Any) -> Any:
    """The error function."""
    a = abs(x)
    if a < 1.0:
        return x + x * erf_tail(x * x)
    if x != x:
        return x
    if a > 6.0:
        return copysign(1.0, x)
    return copysign(1.0 - erfc_positive(a), x)


def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    if x != x:
        return x
    if x < -1.0:
        if x < -6.0:
            return 2.0
        return 2.0 - erfc_positive(-x)
    if x < 0.25:
        return 1.0 - (x + x * erf_tail(x * x))
    if x > 28.0:
        return 0.0
    return erfc_positive(x)


def erfc_positive(x: Any) -> Any:
    """erfc(x) for 0.25 <= x <= 28."""
    p = erfc_scaled((x - 3.0) / (x + 3.0)) / (1.0 + 2.0 * x)
    h = mul(x, x)
    f, n = exp_parts(-h, -fma(x, x, -h))
    return scale(f * p, n)


def tgamma(x: Any) -> Any:
    """The gamma function."""
    if x != x or x == INF:
        return x
    if x == 0.0:
        return copysign(INF, x)
    if x < 0.0 and floor(x) == x:
        return NAN
    if x > 172.0:
        return INF
    if x < -186.0:
        return 0.0 * sinpi(x)
    if abs(x) < STIRLING_FROM:
        return gamma_by_recurrence(x)
    h, l = log_gamma_pair(abs(x))  # noqa: E741
    f, n = exp_parts(h, l)
    if x < 0.0:
        # gamma(x) gamma(-x) = -pi / (x sin(pi x))
        return scale(-PI / (x * sinpi(x) * f), -n)
    return scale(f, n)


def gamma_by_recurrence(x: Any) -> Any:
    """gamma(x) from gamma(1 + t), |t| <= 1/2, by gamma(1 + t) = t gamma(t)."""
    p = 1.0
    pl = 0.0
    t = x
    while t > 1.5:
        t = t - 1.0
        p, pl = pair_times(p, pl, t)
    while t < 0.5:
        p, pl = pair_times(p, pl, t)
        t = t + 1.0
    g = reciprocal_gamma(t - 1.0)
    if x < 0.5:
        return 1.0 / (p * g)
    return p / g


def pair_times(h: Any, l: Any, t: Any) -> Any:  # noqa: E741
    """The pair (h + l) t."""
    p = mul(h, t)
    return quick_two_sum(p, fma(h, t, -p) + l * t)


def log_gamma_pair(x: Any) -> Any:
    """The pair log(gamma(x)) for x >= 9 (Stirling)."""
    h, l = full_log_pair(x)  # noqa: E741
    a = x - 0.5
    p = mul(a, h)
    rest = fma(a, h, -p) + a * l
    s, e = two_sum(p, -x)
    s, c = two_sum(s, HALF_LOG_2PI)
    r = 1.0 / x
    return quick_two_sum(s, (e + c) + (rest + HALF_LOG_2PI_TAIL) + r * stirling(r * r))


def lgamma(x: Any) -> Any:
    """log(|gamma(x)|)."""
    if x != x:
        return x
    a = abs(x)
    if a > 2.5e305 or (x <= 0.0 and floor(x) == x):
        return INF
    if a < TINY:
        return -log(a)
    if x > 0.0:
        return lgamma_positive(x)
    # |gamma(x) gamma(-x)| = pi / |x sin(pi x)|
    return log(PI / abs(x * sinpi(x))) - lgamma_positive(a)


def lgamma_positive(x: Any) -> Any:
    """log(gamma(x)) for finite x > 0."""
    if x >= STIRLING_FROM:
        h, l = log_gamma_pair(x)  # noqa: E741
        return h + l
    if x < 0.25:
        return x * lgamma_at_2(x) - log(x * (1.0 + x))
    if x < 1.25:
        t = x - 1.0
        return t * lgamma_at_2(t) - log(x)
    p = 1.0
    while x >= 3.0:
        x = x - 1.0
        p = p * x
    t = x - 2.0
    return t * lgamma_at_2(t) + log(p)
