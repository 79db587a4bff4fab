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


def sqrt(x: Any) -> Any:
    """The square root with a real part that is not negative."""
    if x.real == 0 and x.imag == 0:
        return pair(x.real * 0, x.imag)
    half = math.sqrt((magnitude(x) + abs(x.real)) * 0.5)
    if x.real >= 0:
        return pair(half, x.imag / (2 * half))
    return pair(abs(x.imag) / (2 * half), math.copysign(half, x.imag))


def exp(x: Any) -> Any:
    """e ** x."""
    size = math.exp(x.real)
    return pair(size * math.cos(x.imag), size * math.sin(x.imag))


def log(x: Any) -> Any:
    """The natural logarithm."""
    return pair(math.log(magnitude(x)), phase(x))


def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    return pair(math.log10(magnitude(x)), phase(x) / 2.302585092994046)


def sin(x: Any) -> Any:
    """The sine."""
    return pair(math.sin(x.real) * math.cosh(x.imag), math.cos(x.real) * math.sinh(x.imag))


def cos(x: Any) -> Any:
    """The cosine."""
    return pair(math.cos(x.real) * math.cosh(x.imag), -math.sin(x.real) * math.sinh(x.imag))


def tan(x: Any) -> Any:
    """The tangent."""
    return divide(sin(x), cos(x))


def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    return pair(math.sinh(x.real) * math.cos(x.imag), math.cosh(x.real) * math.sin(x.imag))


def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    return pair(math.cosh(x.real) * math.cos(x.imag), math.sinh(x.real) * math.sin(x.imag))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return divide(sinh(x), cosh(x))
