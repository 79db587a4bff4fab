"""Extending the kernel language from outside: interval arithmetic as a type of its own."""

import operator
import sys
from dataclasses import dataclass

import numpy as np
from report import Report

import compiler as cuda
from compiler import extending
from compiler.types import float64


@dataclass(frozen=True)
class Interval:
    """All numbers from lo to hi."""

    lo: float
    hi: float


interval = extending.struct(Interval, lo=float64, hi=float64)


@extending.overload(operator.add)
def _add(x, y):
    if x == interval and y == interval:
        return lambda x, y: Interval(x.lo + y.lo, x.hi + y.hi)
    return None


@extending.overload(operator.mul)
def _mul(x, y):
    if x != interval or y != interval:
        return None

    def product(x, y):
        a, b, c, d = x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi
        return Interval(min(a, b, c, d), max(a, b, c, d))

    return product


@extending.overload_attribute(type(interval), "width")
def _width(owner):
    return lambda owner: owner.hi - owner.lo


@extending.overload_method(type(interval), "contains")
def _contains(owner, value):
    return lambda owner, value: owner.lo <= value <= owner.hi


@cuda.jit
def bounds(lo, hi, unit, width, inside):
    """Bound x*x + x where x lies between lo and hi, in units of *unit*."""
    i = cuda.grid(1)
    if i < lo.size:
        x = Interval(lo[i], hi[i])
        y = (x * x + x) * unit
        width[i] = y.width
        inside[i] = y.contains(0.0)


def main() -> bool:
    """Run it on 2**18 intervals; True if NumPy agrees."""
    n = 2**18
    random = np.random.default_rng(4)
    lo = random.uniform(-3, 3, n)
    hi = lo + random.random(n)
    report = Report(f"interval arithmetic, {n:,} intervals")
    arrays = [cuda.to_device(a) for a in (lo, hi, np.zeros(n), np.zeros(n, bool))]
    dlo, dhi, width, inside = arrays
    unit = Interval(2.0, 2.0)
    report.time(lambda: bounds[(n + 255) // 256, 256](dlo, dhi, unit, width, inside))
    products = np.stack([lo * lo, lo * hi, hi * hi])
    low, high = 2 * (products.min(0) + lo), 2 * (products.max(0) + hi)
    report.check(width.copy_to_host(), high - low, rtol=1e-12)
    report.check(inside.copy_to_host(), (low <= 0) & (high >= 0))
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
