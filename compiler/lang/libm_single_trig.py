"""The trigonometric functions of libm and their inverses in float32 arithmetic."""

from __future__ import annotations

from typing import Any

from numpy import float32, rint, sqrt

from .libm_bits import INF, NAN, float_as_int, fma, mul
from .libm_core import two_sum
from .libm_poly import (
    HALF_PI,
    PI,
    QUARTER_PI,
    SINGLE_HALF_PI0,
    SINGLE_HALF_PI1,
    SINGLE_HALF_PI2,
    TWO_OVER_PI,
    TWO_OVER_PI_NEAREST,
    single_asin_tail,
    single_atan_tail,
    single_cos_tail,
    single_sin_tail,
)
from .libm_single import copysign, is_negative

TINY = 2.0**-12
DIGIT = 0xFFFFFF
# The digits of 2/pi that a float32 can need.
FIRST_DIGITS = TWO_OVER_PI[:5]
LAST_DIGIT = 9
LARGE = 48000.0
HUGE = 2.0**30


def sin_kernel(h: Any, l: Any) -> Any:  # noqa: E741
    """sin(h + l) for |h| < 0.79."""
    z = mul(h, h)
    return h + fma(h * z, single_sin_tail(z), l)


def cos_kernel(h: Any, l: Any) -> Any:  # noqa: E741
    """cos(h + l) for |h| < 0.79."""
    z = mul(h, h)
    half = 0.5 * z
    w = 1.0 - half
    return w + (((1.0 - w) - half) + fma(z * z, single_cos_tail(z), -(h * l)))


def reduced(x: Any) -> Any:
    """The pair of x - n pi/2, and n modulo 4, for finite x."""
    if abs(x) < LARGE:
        n = rint(x * TWO_OVER_PI_NEAREST)
        r = fma(n, -SINGLE_HALF_PI0, x)
        # r is exact. Near a multiple of pi/2 nearly all of it cancels, so the next must be, too.
        w = mul(n, SINGLE_HALF_PI1)
        h, l = two_sum(r, -w)  # noqa: E741
        rest = fma(n, SINGLE_HALF_PI2, fma(n, SINGLE_HALF_PI1, -w))
        return h, l - rest, int(n) & 3
    h, l, n = reduced_by_digits(abs(x))  # noqa: E741
    if x < 0.0:
        return -h, -l, -n & 3
    return h, l, n


def reduced_by_digits(x: Any) -> Any:
    """The same for large x > 0, as libm_trig does it, with a fraction of 62 bits."""
    bits = float_as_int(x)
    m = (bits & 0x7FFFFF) | (1 << 23)
    e = (bits >> 23) - 150
    q = e // 24
    low = m << (e - 24 * q)
    d0 = low & DIGIT
    d1 = low >> 24
    carry = 0
    w1 = 0
    f0, f1, f2, f3 = 0, 0, 0, 0
    for k in range(min(q + 4, LAST_DIGIT), q - 2, -1):
        w0 = digit(k)
        column = carry + d0 * w0 + d1 * w1
        w1 = w0
        carry = column >> 24
        f3, f2, f1, f0 = f2, f1, f0, column & DIGIT
    fraction = (f1 << 38) | (f2 << 14) | (f3 >> 10)
    if fraction >= 1 << 61:
        fraction = fraction - (1 << 62)
        f0 = f0 + 1
    high = float32(fraction)
    low_part = float32(fraction - int(high)) * 2.0**-62
    high = high * 2.0**-62
    h = mul(high, SINGLE_HALF_PI0)
    rest = fma(high, SINGLE_HALF_PI0, -h) + (high * SINGLE_HALF_PI1 + low_part * HALF_PI)
    return h, rest, f0 & 3


def digit(k: Any) -> Any:
    """The digit of 2/pi with the weight 2**(-24 k - 24)."""
    if k < 0:
        return 0
    both = FIRST_DIGITS[k >> 1]
    if k & 1:
        return both & DIGIT
    return both >> 24


def sin_of_quadrant(h: Any, l: Any, n: Any) -> Any:  # noqa: E741
    """sin(h + l + n pi/2)."""
    y = cos_kernel(h, l) if n & 1 else sin_kernel(h, l)
    return -y if n & 2 else y


def sin(x: Any) -> Any:
    """The sine."""
    if abs(x) < TINY:
        return x
    if not abs(x) < INF:
        return NAN
    h, l, n = reduced(x)  # noqa: E741
    return sin_of_quadrant(h, l, n)


def cos(x: Any) -> Any:
    """The cosine."""
    if not abs(x) < INF:
        return NAN
    h, l, n = reduced(x)  # noqa: E741
    return sin_of_quadrant(h, l, n + 1)


def tan(x: Any) -> Any:
    """The tangent."""
    if abs(x) < TINY:
        return x
    if not abs(x) < INF:
        return NAN
    h, l, n = reduced(x)  # noqa: E741
    z = mul(h, h)
    rest = fma(h * z, single_sin_tail(z), l)
    s = h + rest
    s_low = (h - s) + rest
    half = 0.5 * z
    w = 1.0 - half
    rest = ((1.0 - w) - half) + fma(z * z, single_cos_tail(z), -(h * l))
    c = w + rest
    c_low = (w - c) + rest
    if n & 1:
        return -ratio(c, c_low, s, s_low)
    return ratio(s, s_low, c, c_low)


def ratio(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    """(a + a_low) / (b + b_low), rounded nearly once."""
    inverse = 1.0 / b
    q = mul(a, inverse)
    return q + (fma(-q, b, a) + (a_low - q * b_low)) * inverse


def reduced_turns(x: Any) -> Any:
    """The pair of pi x - n pi/2, and n modulo 4, for finite x."""
    r = x - 2.0 * rint(0.5 * x)
    n = rint(2.0 * r)
    t = r - 0.5 * n
    h = mul(t, 2.0 * SINGLE_HALF_PI0)
    return h, fma(t, 2.0 * SINGLE_HALF_PI0, -h) + t * (2.0 * SINGLE_HALF_PI1), int(n) & 3


def sinpi(x: Any) -> Any:
    """sin(pi x)."""
    if not abs(x) < INF:
        return NAN
    if x == 0.0:
        return x
    h, l, n = reduced_turns(x)  # noqa: E741
    y = sin_of_quadrant(h, l, n)
    return copysign(0.0, x) if y == 0.0 else y


def cospi(x: Any) -> Any:
    """cos(pi x)."""
    if not abs(x) < INF:
        return NAN
    h, l, n = reduced_turns(x)  # noqa: E741
    return sin_of_quadrant(h, l, n + 1) + 0.0


def atan(x: Any) -> Any:
    """The inverse of tan."""
    a = abs(x)
    if a < TINY or x != x:
        return x
    if a > HUGE:
        return copysign(HALF_PI, x)
    base = 0.0
    tail = 0.0
    t = a
    if a > 2.414213562373095:  # tan(3 pi / 8)
        base = SINGLE_HALF_PI0
        tail = SINGLE_HALF_PI1
        t = -1.0 / a
    elif a > 0.41421356237309503:  # tan(pi / 8)
        base = 0.5 * SINGLE_HALF_PI0
        tail = 0.5 * SINGLE_HALF_PI1
        t = (a - 1.0) / (a + 1.0)
    z = t * t
    return copysign(base + (t + fma(t * z, single_atan_tail(z), tail)), x)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y)."""
    if x != x or y != y:
        return x + y
    a = abs(x)
    b = abs(y)
    if b == 0.0 or (a == INF and b < INF):
        return copysign(PI if is_negative(x) else 0.0, y)
    if a == INF:
        return copysign(3.0 * QUARTER_PI if x < 0.0 else QUARTER_PI, y)
    if a == 0.0 or b == INF:
        return copysign(HALF_PI, y)
    angle = atan(b / a)
    if x < 0.0:
        h, l = two_sum(2.0 * SINGLE_HALF_PI0, -angle)  # noqa: E741
        angle = h + (l + 2.0 * SINGLE_HALF_PI1)
    return copysign(angle, y)


def asin(x: Any) -> Any:
    """The inverse of sin."""
    a = abs(x)
    if a < TINY:
        return x
    if not a <= 1.0:
        return NAN
    if a <= 0.5:
        z = a * a
        return fma(x * z, single_asin_tail(z), x)
    z = 0.5 * (1.0 - a)
    s = sqrt(z)
    # The second term is what the rounded root lacks.
    y = s + fma(s * z, single_asin_tail(z), fma(-s, s, z) / (s + s) if s > 0.0 else 0.0)
    return copysign(SINGLE_HALF_PI0 - (2.0 * y - SINGLE_HALF_PI1), x)


def acos(x: Any) -> Any:
    """The inverse of cos."""
    a = abs(x)
    if not a <= 1.0:
        return NAN
    if a <= 0.5:
        z = x * x
        return SINGLE_HALF_PI0 - (x - fma(-(x * z), single_asin_tail(z), SINGLE_HALF_PI1))
    z = 0.5 * (1.0 - a)
    s = sqrt(z)
    y = 2.0 * fma(s * z, single_asin_tail(z), s)
    return 2.0 * SINGLE_HALF_PI0 - (y - 2.0 * SINGLE_HALF_PI1) if x < 0.0 else y
