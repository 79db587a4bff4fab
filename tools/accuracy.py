"""Our own functions of math against mpmath -> docs/accuracy.md: the largest errors found."""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

from compiler.lang.libm import FUNCTIONS

OUTPUT = Path(__file__).parents[1] / "docs" / "accuracy.md"
COUNT = 3000
# What is promised, in units in the last place of the exact result.
PROMISED = {"float32": 2.0, "float64": 4.0}
EVERYWHERE = "10**"
_EXPONENTS = {"float32": (-37.0, 38.0), "float64": (-308.0, 308.0)}

Range = Any  # (low, high), or EVERYWHERE: a logarithmic scale; two of them for two arguments


class Case(NamedTuple):
    """A function: its exact counterpart, where it is measured, and arguments known to be hard."""

    exact: Callable[..., Any]
    ranges: Sequence[Range]
    hard: Sequence[Any] = ()


def _near(*points: float) -> list[float]:
    """Each point and the doubles and floats next to it."""
    found = []
    for point in points:
        single = np.float32(point)
        found += [point, math.nextafter(point, math.inf), math.nextafter(point, -math.inf)]
        found += [float(np.nextafter(single, np.float32(side))) for side in (math.inf, -math.inf)]
    return found


_PI_HALVES = [n * math.pi / 2 for n in (1, 2, 3, 7, 22, 355, 104348, 2**20 + 1, 10**9)]
# The doubles nearest to a multiple of pi/2: the worst there is, and known ones below it.
_REDUCED = [6381956970095103.0 * 2.0**797, 5.319372648326541e255, 1e22, 2.0**1023]
_TRIG = [*_near(*_PI_HALVES), *_REDUCED, 1e-300, 5e-324, 16367173.0 * 2.0**72]
_LN2 = [n * math.log(2) / 2 for n in (-2001, -101, -3, -1, 1, 3, 99, 2001)]
CASES = {
    "exp": Case(
        mp.exp, [(-745, 709.7), (-1, 1)],
        [*_near(*_LN2, 1.0), 709.782712893383973096, -745.1, -708.4, 88.7228, -87.3, -103.9, 1e-20],
    ),
    "exp2": Case(
        lambda x: mp.mpf(2) ** x, [(-1074, 1023.9)], [*_near(0.5, -1022.5), -1074.0, 1023.999, -149]
    ),
    "exp10": Case(lambda x: mp.mpf(10) ** x, [(-323, 308.2)], [*_near(0.5, 22.5), 308.25, -323.2]),
    "expm1": Case(
        mp.expm1, [(-50, 709.7), (-2, 2), (-1e-5, 1e-5)],
        [*_near(*_LN2[1:6]), 5e-324, -1e-300, -37.5],
    ),
    "log": Case(mp.log, [EVERYWHERE, (0.5, 2)], [*_near(1.0, math.sqrt(2), 0.5), 5e-324, 1e308]),
    "log2": Case(lambda x: mp.log(x, 2), [EVERYWHERE, (0.5, 2)], [*_near(1.0, 2.0), 5e-324, 1e308]),
    "log10": Case(mp.log10, [EVERYWHERE, (0.5, 2)], [*_near(1.0, 10.0, 1e22), 5e-324, 1e308]),
    "log1p": Case(
        mp.log1p, [(-0.999, 3), EVERYWHERE, (-0.01, 0.01)],
        [-0.9999999999999999, 1e-300, -1e-17, *_near(-0.5, 1.0)],
    ),
    "sinh": Case(mp.sinh, [(-710, 710), (-3, 3), (-0.1, 0.1)], [710.4, 88.7, *_near(1.0, 22.0)]),
    "cosh": Case(mp.cosh, [(-710, 710), (-3, 3)], [710.4, 88.7, 1e-9, *_near(1.0, 22.0)]),
    "tanh": Case(mp.tanh, [(-23, 23), (-2, 2)], [1e-300, 19.0, 9.0, *_near(0.55, 1.0)]),
    "asinh": Case(mp.asinh, [EVERYWHERE, (-5, 5)], [1e-300, 1e308, 2.0**28, *_near(1.0, 2.0)]),
    "acosh": Case(
        mp.acosh, [(1, 1.5), (1, 5), (5, 1e9), (1e10, 1e300)], [1.0000000000000002, 1.0000001, 2.0]
    ),
    "atanh": Case(mp.atanh, [(-1, 1), (-0.01, 0.01)], [0.9999999999999999, 0.9999999, 1e-300, 0.5]),
    "sin": Case(mp.sin, [(-10, 10), (-1e9, 1e9), EVERYWHERE], _TRIG),
    "cos": Case(mp.cos, [(-10, 10), (-1e9, 1e9), EVERYWHERE], _TRIG),
    "tan": Case(mp.tan, [(-10, 10), (-1e9, 1e9), EVERYWHERE], _TRIG),
    "sinpi": Case(mp.sinpi, [(-5, 5)], [*_near(0.25, 0.75, 1.0), 1e-300, 4503599627370495.5]),
    "cospi": Case(mp.cospi, [(-5, 5)], [*_near(0.25, 0.5, 1.5), 1e-300, 4503599627370495.0]),
    "atan": Case(mp.atan, [(-5, 5), EVERYWHERE], [*_near(0.4375, 1.0, 2.4375), 1e-300, 1e300]),
    "asin": Case(mp.asin, [(-1, 1)], [0.9999999999999999, 0.9999999, *_near(0.5), 1e-300]),
    "acos": Case(mp.acos, [(-1, 1)], [0.9999999999999999, -0.9999999, *_near(0.5, -0.5), 1e-300]),
    "erf": Case(mp.erf, [(-6, 6), (-1, 1)], [1e-300, *_near(0.84375, 1.25, 2.0), 5.9]),
    "erfc": Case(mp.erfc, [(-6, 26.5), (-1, 2)], [26.54, *_near(0.84375, 1.25, 10.0), 9.19]),
    "cbrt": Case(mp.cbrt, [EVERYWHERE, (1, 8)], [5e-324, 1e308, *_near(1.0, 8.0, 2.0)]),
    "tgamma": Case(
        mp.gamma, [(0.5, 9), (-8.9, 0.5), (9, 171.6), (-170, -9)],
        [171.62, 1e-300, 34.9, *_near(-0.5, 1.4616321449683622, -1.0000001, -9.9999)],
    ),
    "lgamma": Case(
        mp.loggamma, [(0.001, 0.3), (0.5, 3), (3, 20), (20, 1e10)],
        [1e-300, *_near(1.0, 2.0, 1.4616321449683622, 3.0, 8.0), 1e305],
    ),
    "pow": Case(
        mp.power, [((0, 10), (-50, 50)), ((0.9, 1.1), (-6000, 6000)), (EVERYWHERE, (-1, 1))],
        [(1.0000000000000002, 2.0**53), (0.9999999999999999, 1e17), (10.0, 308.2), (2.0, -1073.5),
         (1.0000001, 2.0**29), (0.99999994, 1e9), (5e-324, 0.5), (1e308, 1.0001), (9.0, -340.0)],
    ),
    "atan2": Case(
        mp.atan2, [((-1, 1), (-1, 1)), ((-1e-3, 1e-3), (-1e3, 1e3))],
        [(1e-300, 1e8), (1e300, 1e-300), (1.0, 1.0000000000000002), (-1e-20, -1.0), (3.0, -4.0)],
    ),
    "hypot": Case(
        mp.hypot, [((-1, 1), (-1, 1)), ((1e300, 1e307), (1e300, 1e307))],
        [(1e-300, 1e-300), (1e154, 1e154), (1.0, 1e-8), (3e-320, 4e-320), (1e308, 1e308)],
    ),
}  # fmt: skip


class Error(NamedTuple):
    """An error in units in the last place of the exact result, and the arguments that have it."""

    ulps: float
    args: tuple[float, ...]


def draw(rng: random.Random, where: Range, kind: str) -> float:
    """A number of the range."""
    if where == EVERYWHERE:
        return float(10.0 ** rng.uniform(*_EXPONENTS[kind]))
    return rng.uniform(*where)


def arguments(case: Case, kind: str, count: int, seed: int = 1) -> Iterable[tuple[float, ...]]:
    """The hard arguments, then *count* of each range."""
    for hard in case.hard:
        yield hard if isinstance(hard, tuple) else (hard,)
    rng = random.Random(seed)
    for where in case.ranges:
        parts = where if isinstance(where[0], tuple) or where[0] == EVERYWHERE else (where,)
        for _ in range(count):
            yield tuple(draw(rng, part, kind) for part in parts)


def error(name: str, kind: str, args: tuple[float, ...]) -> Error:
    """The error of one call; arguments and results beyond the range of *kind* have none."""
    number = np.dtype(kind).type
    function = FUNCTIONS[f"__nv_{name}" + ("f" if kind == "float32" else "")]
    with np.errstate(all="ignore"):
        given = [number(arg) for arg in args]
        if not np.all(np.isfinite(given)):
            return Error(0.0, args)
        result = function(*given)
    big = max(abs(float(arg)) for arg in given)
    with mp.workprec(1300 if big > 1e15 or 0 < big < 1e-15 else 250):
        try:
            exact = CASES[name].exact(*(mp.mpf(float(arg)) for arg in given))
        except ValueError:
            return Error(0.0, args)  # a pole
        if not isinstance(exact, mp.mpf):
            return Error(0.0, args)
        return Error(_distance(result, exact, number), args)


def _distance(result: Any, exact: Any, number: Any) -> float:
    """How far a result is from the exact one; infinity if only one of them is finite."""
    with np.errstate(all="ignore"):
        rounded = number(float(exact))
    if not np.isfinite(rounded) or not np.isfinite(result):
        return 0.0 if result == rounded else math.inf
    return float(abs(mp.mpf(float(result)) - exact) / mp.mpf(float(np.spacing(abs(rounded)))))


def worst(name: str, kind: str, count: int, seed: int = 1) -> Error:
    """The largest error of a function: of the hard arguments and *count* in each range."""
    cases = arguments(CASES[name], kind, count, seed)
    return max(error(name, kind, args) for args in cases)


HEAD = """\
<!-- GENERATED by tools/accuracy.py with mpmath. Do not edit. -->
# Accuracy of the functions of math

Where libdevice is found, `math` and NumPy's functions call it, and NVIDIA's CUDA C++ programming
guide states its errors. Where it is not, these are compiled in instead, written in the kernel
language (`compiler/lang/libm.py`). Promised are {float32:g} units in the last place for float32
and {float64:g} for float64. The table has the largest error that was found, and the arguments,
among {count} random ones in each of the ranges and some that are known to be hard. With
`fma=False` a kernel gives the very bits of this table on any device.

Not included: lgamma of negative numbers, whose error is small beside 1 but not beside a result
near one of its zeros, and `fastmath=True`, which asks for the hardware's approximations.

| function | float32: error | at | float64: error | at | ranges |
|---|---|---|---|---|---|
"""


def _shown(where: Range) -> str:
    if where == EVERYWHERE:
        return "all, logarithmic"
    if isinstance(where[0], tuple) or where[0] == EVERYWHERE:
        return " × ".join(map(_shown, where))
    return "{:g} to {:g}".format(*where)


def row(name: str, count: int) -> str:
    """The row of a function."""
    cells = [f"`{name}`"]
    for kind in PROMISED:
        found = worst(name, kind, count)
        number = np.dtype(kind).type
        cells += [f"{found.ulps:.2f}", ", ".join(f"{number(arg)!s}" for arg in found.args)]
    cells.append("; ".join(map(_shown, CASES[name].ranges)))
    return f"| {' | '.join(cells)} |"


def problems(text: str) -> list[str]:
    """What is wrong with the document: a function that it lacks, or an error above the promise."""
    found = [f"{name} is missing" for name in CASES if f"| `{name}` |" not in text]
    for name, single, double in re.findall(r"^\| `(\w+)` \| (\S+) \|.*?\| (\S+) \|", text, re.M):
        for value, (kind, limit) in zip((single, double), PROMISED.items(), strict=True):
            if not float(value) <= limit:
                found.append(f"{name} of {kind} has an error of {value} units")
    return found


def main(given: list[str] | None = None) -> int:
    """Measure and write, or with --check read what was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check the written table")
    parser.add_argument("--count", type=int, default=COUNT, help="random arguments a range")
    options = parser.parse_args(given)
    if not options.check:
        rows = [row(name, options.count) for name in CASES]
        head = HEAD.format(count=options.count, **PROMISED)
        OUTPUT.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    wrong = problems(OUTPUT.read_text(encoding="utf-8"))
    print("\n".join(wrong) or f"{OUTPUT.name}: all of {len(CASES)} functions keep the promise")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
