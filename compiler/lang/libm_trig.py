"""The trigonometric functions of libm and their inverses."""

from __future__ import annotations

from typing import Any

from numpy import rint, sqrt

from .libm_bits import INF, NAN, double_as_longlong, fma, mul
from .libm_core import copysign, is_negative, quick_two_sum, two_sum
from .libm_poly import (
    HALF_PI,
    HALF_PI_TAIL,
    HALF_PI_TAIL2,
    PI,
    PI_TAIL,
    QUARTER_PI,
    QUARTER_PI_TAIL,
    TWO_OVER_PI,
    TWO_OVER_PI_NEAREST,
    asin_tail,
    atan_tail,
    cos_tail,
    sin_tail,
)

TINY = 2.0**-27
DIGIT = 0xFFFFFF
LAST_DIGIT = 49
LARGE = 1.0e9
HUGE = 2.0**60


def sin_kernel(h: Any, l: Any) -> Any:  # noqa: E741
    """sin(h + l) for |h| < 0.79."""
    z = mul(h, h)
    return h + fma(h * z, sin_tail(z), l * fma(-0.5, z, 1.0))


def cos_kernel(h: Any, l: Any) -> Any:  # noqa: E741
    """cos(h + l) for |h| < 0.79."""
    z = mul(h, h)
    half = 0.5 * z
    w = 1.0 - half
    return w + (((1.0 - w) - half) + fma(z * z, cos_tail(z), -(h * l)))


def reduced(x: Any) -> Any:
    """The pair of x - n pi/2, and n modulo 4, for finite x."""
    a = abs(x)
    if a < QUARTER_PI:
        return x, 0.0 * x, 0
    if a < LARGE:
        return reduced_by_parts(x)
    h, l, n = reduced_by_digits(a)  # noqa: E741
    if x < 0.0:
        return -h, -l, -n & 3
    return h, l, n


def reduced_by_parts(x: Any) -> Any:
    """The same with pi/2 in three doubles, for |x| < 2**30 (Cody and Waite)."""
    n = rint(x * TWO_OVER_PI_NEAREST)
    p = mul(n, HALF_PI)
    q = mul(n, HALF_PI_TAIL)
    # x - p is exact: they are within a factor of two.
    h, a = two_sum(x - p, -fma(n, HALF_PI, -p))
    h, b = two_sum(h, -q)
    rest = (a + b) - fma(n, HALF_PI_TAIL, -q) - n * HALF_PI_TAIL2
    h, l = quick_two_sum(h, rest)  # noqa: E741
    return h, l, int(n) & 3


def reduced_by_digits(x: Any) -> Any:
    """The same for large x > 0, by those digits of 2/pi that matter (Payne and Hanek).

    x = m * 2**s * B**q with digits to the base B = 2**24. Of the product of m * 2**s and 2/pi, all
    that is a multiple of B * B**-q is dropped, and seven digits after the point are kept.
    """
    bits = double_as_longlong(x)
    m = (bits & 0xFFFFFFFFFFFFF) | (1 << 52)
    e = (bits >> 52) - 1075
    q = e // 24
    s = e - 24 * q
    low = (m & DIGIT) << s
    middle = (((m >> 24) & DIGIT) << s) + (low >> 24)
    high = ((m >> 48) << s) + (middle >> 24)
    d0 = low & DIGIT
    d1 = middle & DIGIT
    d2 = high & DIGIT
    d3 = high >> 24
    carry = 0
    w1, w2, w3 = 0, 0, 0
    f0, f1, f2, f3, f4, f5, f6 = 0, 0, 0, 0, 0, 0, 0
    # From low digits to high; the first columns are partial, and only their carries count. The
    # bound, which holds anyway, keeps compilers from unrolling the loop.
    for k in range(min(q + 9, LAST_DIGIT), q - 2, -1):
        w0 = digit(k)
        column = carry + d0 * w0 + d1 * w1 + d2 * w2 + d3 * w3
        w1, w2, w3 = w0, w1, w2
        carry = column >> 24
        f6, f5, f4, f3, f2, f1, f0 = f5, f4, f3, f2, f1, f0, column & DIGIT
    return from_digits(f0, (f1 << 24) | f2, (f3 << 24) | f4, (f5 << 24) | f6)


def digit(k: Any) -> Any:
    """The digit of 2/pi with the weight B**(-k - 1); two of them lie in a number."""
    if k < 0:
        return 0
    both = TWO_OVER_PI[k >> 1]
    if k & 1:
        return both & DIGIT
    return both >> 24


def from_digits(n: Any, first: Any, second: Any, third: Any) -> Any:
    """The pair of pi/2 times a fraction in three numbers of 48 bits; n is what stood before it."""
    if first >= 1 << 47:
        first = first - (1 << 48)
        n = n + 1
    h, l = two_sum(float(first) * 2.0**-48, float(second) * 2.0**-96)  # noqa: E741
    h, l = quick_two_sum(h, l + float(third) * 2.0**-144)  # noqa: E741
    p = mul(h, HALF_PI)
    rest = fma(h, HALF_PI, -p) + (h * HALF_PI_TAIL + l * HALF_PI)
    h, l = quick_two_sum(p, rest)  # noqa: E741
    return h, l, n & 3


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
    s = sin_kernel(h, l)
    c = cos_kernel(h, l)
    return -c / s if n & 1 else s / c


def reduced_turns(x: Any) -> Any:
    """The pair of pi x - n pi/2, and n modulo 4, for finite x."""
    r = x - 2.0 * rint(0.5 * x)
    n = rint(2.0 * r)
    t = r - 0.5 * n
    h = mul(t, PI)
    return h, fma(t, PI, -h) + t * PI_TAIL, int(n) & 3


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
        base = HALF_PI
        tail = HALF_PI_TAIL
        t = -1.0 / a
    elif a > 0.41421356237309503:  # tan(pi / 8)
        base = QUARTER_PI
        tail = QUARTER_PI_TAIL
        t = (a - 1.0) / (a + 1.0)
    z = t * t
    return copysign(base + (t + fma(t * z, atan_tail(z), tail)), x)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y)."""
    if x != x or y != y:
        return x + y
    a = abs(x)
    b = abs(y)
    if b == 0.0 or (a == INF and b < INF):
        if is_negative(x):
            return copysign(PI, y)
        return copysign(0.0, y)
    if a == INF:
        return copysign(3.0 * QUARTER_PI if x < 0.0 else QUARTER_PI, y)
    if a == 0.0 or b == INF:
        return copysign(HALF_PI, y)
    angle = atan(b / a)
    if x < 0.0:
        angle = PI - (angle - PI_TAIL)
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
        return x + x * z * asin_tail(z)
    z = 0.5 * (1.0 - a)
    s = sqrt(z)
    return copysign(HALF_PI - (2.0 * fma(s * z, asin_tail(z), s) - HALF_PI_TAIL), x)


def acos(x: Any) -> Any:
    """The inverse of cos."""
    a = abs(x)
    if not a <= 1.0:
        return NAN
    if a <= 0.5:
        z = x * x
        return HALF_PI - (x - fma(-(x * z), asin_tail(z), HALF_PI_TAIL))
    z = 0.5 * (1.0 - a)
    s = sqrt(z)
    y = 2.0 * fma(s * z, asin_tail(z), s)
    return PI - (y - PI_TAIL) if x < 0.0 else y
