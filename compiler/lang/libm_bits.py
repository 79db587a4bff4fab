"""What libm takes for granted of the machine: fma, separate products, and the bits of numbers."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

INF = float("inf")
NAN = float("nan")


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once; in float32 if one of them is that."""
    single = any(type(value) is np.float32 for value in (a, b, c))
    number = np.float32 if single else np.float64
    a, b, c = number(a), number(b), number(c)
    if not (np.isfinite(a) and np.isfinite(b)):
        return a * b + c
    if not np.isfinite(c):
        return c
    (an, ad), (bn, bd), (cn, cd) = (value.as_integer_ratio() for value in (a, b, c))
    numerator, denominator = an * bn * cd + cn * ad * bd, ad * bd * cd
    if numerator == 0:
        return a * b + c
    try:
        # Python rounds the quotient of two integers correctly.
        quotient = numerator / denominator
    except OverflowError:
        return number(INF if numerator > 0 else -INF)
    return np.float32(_to_odd(quotient, numerator, denominator)) if single else number(quotient)


def _to_odd(quotient: float, numerator: int, denominator: int) -> float:
    """The last bit set if the quotient is not exact, so that rounding again is right."""
    n, d = quotient.as_integer_ratio()
    rest = numerator * d - n * denominator
    if rest == 0 or double_as_longlong(quotient) & 1:
        return quotient
    return math.nextafter(quotient, INF if rest > 0 else -INF)


def mul(a: Any, b: Any) -> Any:
    """a * b, rounded by itself: a compiler never makes it part of an fma."""
    return a * b


def double_as_longlong(x: Any) -> Any:
    """The bits of a double as a signed integer."""
    return struct.unpack("<q", struct.pack("<d", x))[0]


def longlong_as_double(bits: Any) -> Any:
    """The double that has these bits."""
    return np.float64(struct.unpack("<d", struct.pack("<q", bits))[0])


def float_as_int(x: Any) -> Any:
    """The bits of a float32 as a signed integer."""
    return struct.unpack("<i", struct.pack("<f", x))[0]


def int_as_float(bits: Any) -> Any:
    """The float32 that has these bits."""
    return np.float32(struct.unpack("<f", struct.pack("<i", bits))[0])


def fastmath() -> Any:
    """Whether the kernel may approximate; to Python it may not."""
    return False


def ex2(x: Any) -> Any:
    """2**x in float32, as the hardware approximates it."""
    return np.exp2(np.float32(x))


def lg2(x: Any) -> Any:
    """The logarithm to base 2 in float32, as the hardware approximates it."""
    return np.log2(np.float32(x))


def hardware_sin(x: Any) -> Any:
    """The sine in float32, as the hardware approximates it."""
    return np.sin(np.float32(x))


def hardware_cos(x: Any) -> Any:
    """The cosine in float32, as the hardware approximates it."""
    return np.cos(np.float32(x))


def to_bits(x: Any) -> Any:
    """The bits of a float of any width as a signed integer."""
    return int(np.asarray(x).view(f"i{np.asarray(x).itemsize}")[()])


def from_bits(bits: Any, like: Any) -> Any:
    """The float of the type of *like* that has these bits."""
    dtype = np.asarray(like).dtype
    return np.array(bits, f"i{dtype.itemsize}").view(dtype)[()]
