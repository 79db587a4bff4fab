"""Number theory, sums, neighbours of floats and rounding, written in the kernel language."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .libm_bits import fma, from_bits, to_bits
from .memory import local
from .pylib import gcd

# Sums of more doubles than this do not overlap: 2,098 bits of range, 53 bits each.
_PARTIALS = 41
# The first factorial that is a multiple of 2**64.
_VANISHES = 66


def gcd_of(*values: Any) -> Any:
    """The greatest common divisor of ints; 0 of none."""
    result = 0
    for value in values:
        result = gcd(result, value)
    return result


def lcm(a: Any, b: Any) -> Any:
    """The least common multiple, not negative."""
    if a == 0 or b == 0:
        return a * 0
    return abs(a // gcd(a, b) * b)


def lcm_of(*values: Any) -> Any:
    """The least common multiple of ints; 1 of none."""
    result = 1
    for value in values:
        result = lcm(result, value)
    return result


def comb(n: Any, k: Any) -> Any:
    """The ways to choose k of n, without order; 0 if a number is negative."""
    if k < 0 or k > n:
        return 0
    k = min(k, n - k)
    result = 1
    for i in range(1, k + 1):
        common = gcd(result, i)
        result = result // common * ((n - k + i) // (i // common))
    return result


def perm(n: Any, k: Any = None) -> Any:
    """The ways to choose k of n in order; 0 if a number is negative."""
    count = n if k is None else k
    if count < 0 or count > n or count >= _VANISHES:
        return 0
    result = 1
    for i in range(count):
        result *= n - i
    return result


def factorial(n: Any) -> Any:
    """1 * 2 * ... * n, wrapping; 0 for a negative number."""
    if n < 0:
        return 0
    result = 1
    for i in range(2, min(n, _VANISHES) + 1):
        result *= i
    return result


def int_fmod(x: Any, y: Any) -> Any:
    """The remainder of integers with the sign of x; 0 if y is 0."""
    rest = x % y
    return rest - y if rest != 0 and (x < 0) != (y < 0) else rest


def int_reciprocal(x: Any) -> Any:
    """1 / x, its fraction cut."""
    return x if x == 1 or x == -1 else x * 0


def power_modulo(base: Any, exp: Any, mod: Any) -> Any:
    """base ** exp % mod, without overflow; 0 for a negative exponent."""
    if mod == 0 or exp < 0:
        return 0
    size = np.uint64(abs(mod))
    base = np.uint64(base % abs(mod))
    result = np.uint64(1) % size
    while exp > 0:
        if exp & 1:
            result = _product_modulo(result, base, size)
        base = _product_modulo(base, base, size)
        exp >>= 1
    rest = int(np.int64(result))
    return rest + mod if mod < 0 and rest != 0 else rest


def _product_modulo(a: Any, b: Any, size: Any) -> Any:
    """a * b % size of uint64 below size, which is at most 2**63."""
    if size <= 2**32:
        return a * b % size
    total = np.uint64(0)
    while b > 0:
        if b & 1:
            total = (total + a) % size
        a = (a + a) % size
        b >>= 1
    return total


def total_of(iterable: Any, start: Any = 0) -> Any:
    """start + the items, in order."""
    total = start
    for item in iterable:
        total = total + item
    return total


def any_of(iterable: Any) -> Any:
    """Whether some item is true."""
    return any(item for item in iterable)


def all_of(iterable: Any) -> Any:
    """Whether every item is true."""
    return all(item for item in iterable)


def prod(iterable: Any, start: Any = 1) -> Any:
    """start * the items, in order."""
    result = start
    for item in iterable:
        result = result * item
    return result


def fsum(seq: Any) -> Any:
    """The sum of floats, rounded once."""
    partials: Any = local.array(_PARTIALS, np.float64)
    count = 0
    special = 0.0
    for item in seq:
        x = float(item)
        if not math.isfinite(x):
            special += x
            continue
        kept = 0
        for i in range(count):
            high, low = _two_sum(x, partials[i])
            if low != 0:
                partials[kept] = low
                kept += 1
            x = high
        partials[kept] = x
        count = kept + 1
    if special != 0:
        return special
    return _rounded(partials, count)


def _two_sum(x: Any, y: Any) -> Any:
    """The rounded sum and its error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _rounded(partials: Any, count: Any) -> Any:
    """The sum of numbers that do not overlap, the largest last, rounded to even."""
    if count == 0:
        return 0.0
    n = count - 1
    high = partials[n]
    low = 0.0
    while n > 0:
        n -= 1
        high, low = _two_sum(high, partials[n])
        if low != 0:
            break
    # What lies below decides where the rest is exactly half of the last place.
    if n > 0 and (low < 0) == (partials[n - 1] < 0) and low != 0:
        twice = low * 2
        other = high + twice
        if twice == other - high:
            high = other
    return high


def sumprod(p: Any, q: Any) -> Any:
    """The sum of products: exact in ints, floats as if in three times their precision."""
    high, low, tiny = 0.0, 0.0, 0.0
    for x, y in zip(p, q, strict=True):
        product = float(x) * float(y)
        error = fma(float(x), float(y), -product)
        high, rest = _two_sum(high, product)
        low, first = _two_sum(low, error)
        low, second = _two_sum(low, rest)
        tiny += first + second
    if not math.isfinite(high):
        return total_of_products(p, q)
    sum_, rest = _two_sum(high, low)
    return sum_ + (rest + tiny)


def total_of_products(p: Any, q: Any) -> Any:
    """The sum of products, in order."""
    total = 0
    for x, y in zip(p, q, strict=True):
        total = total + x * y
    return total


def norm(*coordinates: Any) -> Any:
    """The Euclidean norm, scaled so that it does not overflow."""
    largest = 0.0
    unknown = False
    for x in coordinates:
        if math.isinf(x):
            return abs(x)
        unknown = unknown or math.isnan(x)
        largest = max(largest, abs(x))
    if unknown:
        return largest * math.nan
    if largest == 0:
        return largest
    total = 0.0
    for x in coordinates:
        part = x / largest
        total += part * part
    return largest * math.sqrt(total)


def distance(p: Any, q: Any) -> Any:
    """The Euclidean distance of two points."""
    largest = 0.0
    unknown = False
    for x, y in zip(p, q, strict=True):
        part = abs(x - y)
        if math.isinf(part):
            return part
        unknown = unknown or math.isnan(part)
        largest = max(largest, part)
    if unknown:
        return largest * math.nan
    if largest == 0:
        return largest
    total = 0.0
    for x, y in zip(p, q, strict=True):
        part = (x - y) / largest
        total += part * part
    return largest * math.sqrt(total)


def isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    """Whether two numbers are close."""
    if a == b:
        return True
    difference = abs(a - b)
    if not difference < math.inf:
        return False
    return difference <= abs_tol or difference <= rel_tol * max(abs(a), abs(b))


def isclose_to(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    """Whether a is close to b, as numpy.isclose has it."""
    if a == b:
        return True
    if math.isnan(a) and math.isnan(b):
        return equal_nan
    return math.isfinite(b) and abs(a - b) <= atol + rtol * abs(b)


# Neighbours


def nextafter(x: Any, y: Any, *, steps: Any = 1) -> Any:
    """The float that is *steps* floats from x on the way to y."""
    if x != x or y != y:
        return x + y
    lowest = to_bits(-from_bits(0, x))
    start, end = _ordinal(to_bits(x), lowest), _ordinal(to_bits(y), lowest)
    gap = np.uint64(end - start) if end > start else np.uint64(start - end)
    if start == end or (np.uint64(steps) >= gap and y != 0):
        return y
    place = start + steps if end > start else start - steps
    if place == 0 or np.uint64(steps) >= gap:
        return math.copysign(from_bits(0, x), x)
    return from_bits(place if place > 0 else lowest - place, x)


def _ordinal(bits: Any, lowest: Any) -> Any:
    """The place of a float among all floats; *lowest*: the bits of -0.0."""
    return bits if bits >= 0 else lowest - bits


def ulp(x: Any) -> Any:
    """What the last bit of x is worth."""
    x = abs(x)
    if not math.isfinite(x):
        return x
    up = from_bits(to_bits(x) + 1, x)
    return x - from_bits(to_bits(x) - 1, x) if math.isinf(up) else up - x


def spacing(x: Any) -> Any:
    """The distance to the next float away from 0, with the sign of x; nan for infinities."""
    return ulp(x) if x == 0 else nextafter(x, math.copysign(math.inf, x)) - x


# Other functions of NumPy


def heaviside(x: Any, y: Any) -> Any:
    """0 below 0, 1 above, y at 0; nan for nan."""
    if x == 0 or x != x:
        return y if x == 0 else x
    return 0.0 if x < 0 else 1.0


def logaddexp2(x: Any, y: Any) -> Any:
    """log2(2**x + 2**y), without overflow."""
    if x == y:
        return x + 1.0
    high, low = (x, y) if x > y or x != x else (y, x)
    return high + math.log1p(np.exp2(low - high)) * 1.4426950408889634


def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x); 1 at 0."""
    angle = math.pi * x
    return angle * 0 + 1 if x == 0 else math.sin(angle) / angle


def nan_to_num(x: Any) -> Any:
    """x; 0 for nan, the largest float for an infinity."""
    if x != x:
        return from_bits(0, x)
    if not math.isinf(x):
        return x
    return math.copysign(from_bits(to_bits(abs(x)) - 1, x), x)


# Rounding to digits


def round_float(number: Any, ndigits: Any) -> Any:
    """A Python float rounded to decimal digits: the nearest, to even where it lies halfway."""
    if ndigits > 22 or ndigits < -22 or not math.isfinite(number):
        return number if ndigits > 0 or not math.isfinite(number) else number * 0
    scale = math.pow(10.0, float(abs(ndigits)))
    if ndigits < 0:
        whole = np.rint(number / scale)
        rest = fma(-whole, scale, number)
        half = scale * 0.5
        if rest > half or (rest == half and whole % 2 != 0):
            whole += 1.0
        if -rest > half or (-rest == half and whole % 2 != 0):
            whole -= 1.0
        return whole * scale
    scaled = number * scale
    if not abs(scaled) < 4503599627370496.0:
        return number
    error = fma(number, scale, -scaled)
    whole = np.floor(scaled)
    part = scaled - whole
    if part > 0.5 or (part == 0.5 and (error > 0 or (error == 0 and whole % 2 != 0))):
        whole += 1.0
    elif part == 0 and error < 0 and scaled != whole:
        whole -= 1.0
    return math.copysign(whole / scale, number)


def round_numpy(number: Any, ndigits: Any = 0) -> Any:
    """A NumPy float rounded to decimal digits as numpy.round does: scaled, rounded and back."""
    if ndigits == 0 or not math.isfinite(number):
        return np.rint(number)
    scale = math.pow(10.0, float(abs(ndigits)))
    if ndigits > 0:
        return np.rint(number * float(scale)) / float(scale)
    return np.rint(number / float(scale)) * float(scale)


def round_int(number: Any, ndigits: Any) -> Any:
    """An int rounded to tens, hundreds, ..., to even where it lies halfway."""
    if ndigits >= 0:
        return number
    if ndigits < -18:
        return number * 0
    scale = 1
    for _ in range(-ndigits):
        scale *= 10
    low = number // scale
    rest = number - low * scale
    if rest * 2 > scale or (rest * 2 == scale and low % 2 != 0):
        low += 1
    return low * scale
