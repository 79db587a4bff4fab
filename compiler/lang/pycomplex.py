"""Functions of complex numbers, written in the kernel language."""

from __future__ import annotations

import math
from typing import Any


def magnitude(x: Any) -> Any:
    """The absolute value."""
    return math.hypot(x.real, x.imag)


def divide(x: Any, y: Any) -> Any:
    """x / y, scaled by the larger part of y so that it does not overflow."""
    if abs(y.real) >= abs(y.imag):
        if y.real == 0 and y.imag == 0:
            return pair(x.real / abs(y.real), x.imag / abs(y.real))
        ratio = y.imag / y.real
        scale = 1 / (y.real + y.imag * ratio)
        return pair((x.real + x.imag * ratio) * scale, (x.imag - x.real * ratio) * scale)
    ratio = y.real / y.imag
    scale = 1 / (y.imag + y.real * ratio)
    return pair((x.real * ratio + x.imag) * scale, (x.imag * ratio - x.real) * scale)


def pair(real: Any, imag: Any) -> Any:
    """The complex number of two floats, complex64 if both are float32; the compiler has a row."""
    return (real + imag).dtype.type(0) + complex(real, imag)


def power(x: Any, y: Any) -> Any:
    """x ** y, the principal value."""
    if y.real == 0 and y.imag == 0:
        return pair(x.real * 0 + 1, x.imag * 0)
    if x.real == 0 and x.imag == 0:
        return pair(x.real * 0, x.imag * 0)
    size, angle = magnitude(x), phase(x)
    length = math.pow(size, y.real) * math.exp(-y.imag * angle)
    turned = angle * y.real + y.imag * math.log(size)
    return pair(length * math.cos(turned), length * math.sin(turned))


def phase(x: Any) -> Any:
    """The angle, between -pi and pi."""
    return math.atan2(x.imag, x.real)


def polar(x: Any) -> Any:
    """Absolute value and angle."""
    return magnitude(x), phase(x)


def rect(r: Any, phi: Any) -> Any:
    """The number of an absolute value and an angle."""
    return pair(r * math.cos(phi), r * math.sin(phi))


def isnan(x: Any) -> Any:
    """Whether a part is nan."""
    return math.isnan(x.real) or math.isnan(x.imag)


def isinf(x: Any) -> Any:
    """Whether a part is infinite."""
    return math.isinf(x.real) or math.isinf(x.imag)


def isfinite(x: Any) -> Any:
    """Whether both parts are finite."""
    return math.isfinite(x.real) and math.isfinite(x.imag)


def _turned(x: Any) -> Any:
    """x times the imaginary unit."""
    return pair(-x.imag, x.real)


def _turned_back(x: Any) -> Any:
    """x divided by the imaginary unit."""
    return pair(x.imag, -x.real)


def sqrt(x: Any) -> Any:
    """The square root with a real part that is not negative."""
    if math.isinf(x.imag):
        return pair(abs(x.imag), x.imag)
    if math.isinf(x.real):
        rest = x.imag if math.isnan(x.imag) else x.imag * 0
        return pair(x.real, rest) if x.real > 0 else pair(abs(rest), math.copysign(x.real, x.imag))
    if x.real == 0 and x.imag == 0:
        return pair(abs(x.real), x.imag)
    scaled, low, up = x, 0.5, 1.0
    if abs(x.real) + abs(x.imag) < 1e-30:  # Halves of what follows must not vanish.
        scaled, low, up = x * 1152921504606846976.0, 0.5, 2.0**-30
    a, b = abs(scaled.real) * 0.125, abs(scaled.imag) * 0.125
    half = 2 * math.sqrt(a + math.hypot(a, b))
    rest = abs(scaled.imag) / half * low
    if x.real >= 0:
        return pair(half * up, math.copysign(rest * up, x.imag))
    return pair(rest * up, math.copysign(half * up, x.imag))


def _sized(x: Any, even: Any, odd: Any) -> Any:
    """exp(abs(x.real)) / 2 * (even + odd i), also where the exponential alone overflows."""
    half = math.exp(abs(x.real) - 1.0) * 0.5
    return pair(half * even * 2.718281828459045, half * odd * 2.718281828459045)


def exp(x: Any) -> Any:
    """e ** x."""
    if x.imag == 0:
        return pair(math.exp(x.real), x.imag)
    size = math.exp(x.real)
    if math.isinf(x.real) and not math.isfinite(x.imag):
        return pair(size, size) if size == 0 else pair(size, x.imag - x.imag)
    if math.isinf(size) and not math.isinf(x.real):
        size = math.exp(x.real - 1.0)
        factor = 2.718281828459045
        return pair(size * math.cos(x.imag) * factor, size * math.sin(x.imag) * factor)
    return pair(size * math.cos(x.imag), size * math.sin(x.imag))


def log(x: Any) -> Any:
    """The natural logarithm."""
    large, small = max(abs(x.real), abs(x.imag)), min(abs(x.real), abs(x.imag))
    size = magnitude(x)
    if 0.71 <= size <= 1.73:
        length = math.log1p((large - 1) * (large + 1) + small * small) * 0.5
    elif math.isinf(size) and not math.isinf(large):
        length = math.log(math.hypot(x.real * 0.5, x.imag * 0.5)) + math.log(2.0)
    else:
        length = math.log(size)
    return pair(length, phase(x))


def log_base(x: Any, base: Any) -> Any:
    """The logarithm to a base."""
    return divide(log(x), log(base))


def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    whole = log(x)
    return pair(whole.real / 2.302585092994046, whole.imag / 2.302585092994046)


def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    if x.imag == 0:
        return pair(math.sinh(x.real), x.imag)
    if x.real == 0 or not math.isinf(math.sinh(x.real)) or math.isinf(x.real):
        return pair(math.cos(x.imag) * math.sinh(x.real), math.sin(x.imag) * math.cosh(x.real))
    return _sized(x, math.copysign(1.0, x.real) * math.cos(x.imag), math.sin(x.imag))


def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    if x.imag == 0:
        return pair(math.cosh(x.real), x.imag * math.copysign(1.0, x.real))
    if x.real == 0 or not math.isinf(math.cosh(x.real)) or math.isinf(x.real):
        return pair(math.cos(x.imag) * math.cosh(x.real), math.sin(x.imag) * math.sinh(x.real))
    return _sized(x, math.cos(x.imag), math.copysign(1.0, x.real) * math.sin(x.imag))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    if abs(x.real) > 50.0:
        turn = 0.0 if math.isinf(x.imag) else math.sin(x.imag) * math.cos(x.imag)
        return pair(math.copysign(1.0, x.real), 4.0 * turn * math.exp(-2.0 * abs(x.real)))
    a, b = math.tanh(x.real), math.tan(x.imag)
    c = 1 / math.cosh(x.real)
    scale = 1.0 + a * b * a * b
    return pair(a * (1.0 + b * b) / scale, b / scale * c * c)


def sin(x: Any) -> Any:
    """The sine."""
    return _turned_back(sinh(_turned(x)))


def cos(x: Any) -> Any:
    """The cosine."""
    return cosh(_turned(x))


def tan(x: Any) -> Any:
    """The tangent."""
    return _turned_back(tanh(_turned(x)))


# W. Kahan, "Branch cuts for complex elementary functions", 1987


def _is_large(x: Any) -> Any:
    """Whether a square overflows, or comes near."""
    return abs(x.real) > 1e18 or abs(x.imag) > 1e18


def _long(x: Any) -> Any:
    """log(2 * abs(x)) of a large number."""
    return math.log(math.hypot(x.real * 0.5, x.imag * 0.5)) + 1.3862943611198906


def acos(x: Any) -> Any:
    """The arc cosine."""
    if _is_large(x):
        return pair(math.atan2(abs(x.imag), x.real), -math.copysign(_long(x), x.imag))
    minus, plus = sqrt(pair(1.0 - x.real, -x.imag)), sqrt(pair(1.0 + x.real, x.imag))
    rest = math.asinh(plus.real * minus.imag - plus.imag * minus.real)
    return pair(2.0 * math.atan2(minus.real, plus.real), rest)


def acosh(x: Any) -> Any:
    """The hyperbolic arc cosine."""
    if _is_large(x):
        return pair(_long(x), math.atan2(x.imag, x.real))
    minus, plus = sqrt(pair(x.real - 1.0, x.imag)), sqrt(pair(x.real + 1.0, x.imag))
    length = math.asinh(minus.real * plus.real + minus.imag * plus.imag)
    return pair(length, 2.0 * math.atan2(minus.imag, plus.real))


def asinh(x: Any) -> Any:
    """The hyperbolic arc sine."""
    if _is_large(x):
        return pair(math.copysign(_long(x), x.real), math.atan2(x.imag, abs(x.real)))
    one, two = sqrt(pair(1.0 + x.imag, -x.real)), sqrt(pair(1.0 - x.imag, x.real))
    length = math.asinh(one.real * two.imag - two.real * one.imag)
    return pair(length, math.atan2(x.imag, one.real * two.real - one.imag * two.imag))


def asin(x: Any) -> Any:
    """The arc sine."""
    return _turned_back(asinh(_turned(x)))


def atanh(x: Any) -> Any:
    """The hyperbolic arc tangent."""
    if math.copysign(1.0, x.real) < 0:
        y = atanh_right(pair(-x.real, -x.imag))
        return pair(-y.real, -y.imag)
    return atanh_right(x)


def atanh_right(x: Any) -> Any:
    """The hyperbolic arc tangent of a number with a real part that is not negative."""
    right = math.copysign(1.5707963267948966, x.imag)
    if _is_large(x):
        return pair(_over_square(x), right)
    if x.real == 1 and abs(x.imag) < 1e-18:
        turn = x.imag if x.imag == 0 else math.copysign(0.7853981633974483, x.imag)
        return pair((math.log(2.0) - math.log(abs(x.imag))) * 0.5, turn)
    below, square = 1.0 - x.real, x.imag * x.imag
    length = math.log1p(4.0 * x.real / (below * below + square)) * 0.25
    return pair(length, 0.5 * math.atan2(2.0 * x.imag, below * (1.0 + x.real) - square))


def _over_square(x: Any) -> Any:
    """x.real / abs(x)**2 of a large number."""
    size = math.hypot(x.real * 0.5, x.imag * 0.5)
    return x.real * 0.25 / size / size if math.isfinite(x.real) else 0.0


def atan(x: Any) -> Any:
    """The arc tangent."""
    return _turned_back(atanh(_turned(x)))
