"""What libm takes for granted of the machine: fma, separate products, and the bits of a double."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

INF = float("inf")
NAN = float("nan")


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    if not (np.isfinite(a) and np.isfinite(b)):
        return np.float64(a * b + c)
    if not np.isfinite(c):
        return np.float64(c)
    (an, ad), (bn, bd), (cn, cd) = (float(value).as_integer_ratio() for value in (a, b, c))
    numerator = an * bn * cd + cn * ad * bd
    if numerator == 0:
        return np.float64(a * b + c)
    try:
        # Python rounds the quotient of two integers correctly.
        return np.float64(numerator / (ad * bd * cd))
    except OverflowError:
        return np.float64(INF if numerator > 0 else -INF)


def mul(a: Any, b: Any) -> Any:
    """a * b, rounded by itself: a compiler never makes it part of an fma."""
    return a * b


def double_as_longlong(x: Any) -> Any:
    """The bits of a double as a signed integer."""
    return struct.unpack("<q", struct.pack("<d", x))[0]


def longlong_as_double(bits: Any) -> Any:
    """The double that has these bits."""
    return np.float64(struct.unpack("<d", struct.pack("<q", bits))[0])
