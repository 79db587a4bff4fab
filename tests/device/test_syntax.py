"""Match statements, comprehensions, static unrolling, ranges as values, order of evaluation."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError
from tests.device.oracle import check


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Circle:
    center: Point
    radius: float = 2.5


class Codes:
    STOP = 3
    GO = 4


def values(a, b):
    match a:
        case 0:
            return 100
        case 1 | -2:
            return 200 + b
        case Codes.STOP if b > 4:
            return 300
        case Codes.STOP | Codes.GO as code:
            return 400 + code
        case other if other > 5:
            result = other * b
        case _:
            result = -1
    return result


def sequences(a, b):
    total = 0
    for item in ((a, b), (a, b, 3), (1, (a, b)), a, (a,), (2, a, b, 4)):
        match item:
            case (1, (x, 2 | 3)):
                total += 7 * x
            case (x, y):
                total += x - 1 if y is None else x * 2
            case (2, *rest):
                total += len(rest) * 1000
            case (x, *_, 3):
                total += x * 100
            case [x]:
                total += x * 10000
            case _:
                total -= item
    return total


def classes(a, b):
    total = 0
    shapes = (Point(a, b), Circle(Point(b, 1), radius=a), Circle(Point(a, b)), a, 2.5, a > b)
    for shape in shapes:
        match shape:
            case Point(3, y):
                total += y * 50
            case Point(x, y=0):
                total += x
            case Circle(center=Point(x=x), radius=r) if r > 2:
                total += x * r * 1000
            case bool():
                total += 5
            case int(n):
                total += n * 3
            case float():
                total += 9
            case None:
                total += 1
    return total


def bools(a, b):
    match bool(a > b):
        case True:
            return 1
        case False:
            return 2
    return 3


def patterns_in_loops(a, b):
    total, state = 0, 0
    for i in range(10):
        match (state, i % 3):
            case (0, 1):
                state = 1
                continue
            case (1, step) if step == 2:
                state = a
            case (s, _) if s == b:
                break
            case (s, step):
                total += s * step
    return total * 100 + state


def comprehensions(a, b):
    squares = tuple(x * x for x in (a, b, 2.5))
    sums = [i + x for i, x in enumerate(squares)]
    nested = tuple(x + y for x, y in zip(squares, range(3), strict=True))
    total = sum(sums) + max(nested) + len(squares)
    return total + sum(tuple(i * a for i in range(1, 9, 3)))


def own_names(a, b):
    i = a
    total = sum(i for i in range(b))
    items = tuple(i * 2 for i in (1, 2))
    return total * 1000 + i * 10 + items[1]


def ranges(a, b):
    steps = range(a, b, 2)
    total = len(steps) + (a in steps) + 2 * (b in range(b, a, -1)) + 4 * (3 in range(7))
    for i in steps:
        total = total * 3 + i
    for i, j in zip(steps, range(9), strict=False):
        total += i * j
    if len(steps) > 1:
        total += steps[1] * 5 + steps[-1] + steps.start + steps.stop
    return total


def maps(a, b):
    total = 0
    for x in map(lambda v: v * a, range(b)):  # noqa: C417
        total += x
    for x in map(max, (a, b, 3), (b, 2, a)):
        total = total * 2 + x
    return total


def attributes(a, b):
    p = Point(a, b)
    total = getattr(p, "x") * 2  # noqa: B009
    if hasattr(p, "z"):
        total += p.z
    return total + hasattr(p, "y")


def walrus(a, b):
    total = 0
    while (c := a + total) < 9 and (total := total + 1) < 30:
        total += c > b
    return total * 100 + c


def chained(a, b):
    calls = 0
    if 0 < (calls := calls + a) < b < (calls := calls + 1):
        return calls + 50
    return calls


def star_arguments(a, b):
    def collect(x, *rest, scale=1):
        return x * scale + len(rest) * 10 + sum(rest)

    pair = (a, b)
    return collect(*pair) + collect(1, *pair, 2, scale=b) + collect(*pair, *(3, 4))


def positional_only(a, b):
    def f(x, /, y, *, z=a):
        return x + y * 10 + z * 100

    return f(1, y=b) + f(2, 3, z=4)


FUNCTIONS = [
    values, sequences, classes, bools, patterns_in_loops, comprehensions, own_names, ranges, maps,
    attributes, walrus, chained, star_arguments, positional_only,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::compiler.CompileWarning")
def test_syntax(function):
    """The kernel gives what CPython gives."""
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(np.arange(-3, 8), np.arange(7)))
    check(function, [a.astype("i8"), b.astype("i8")], "f8")


def test_strings_are_matched_while_compiling():
    """Only the case of the constant is compiled: the others may be ill-typed."""

    @cuda.jit
    def kernel(mode, x, o):
        match mode:
            case "sum":
                o[0] = x.sum()
            case "first" | "head":
                o[0] = x[0]
            case _:
                o[0] = x.nothing

    x, out = np.arange(1.0, 5), np.zeros(1)
    for mode, expected in (("sum", 10), ("head", 1)):
        kernel[1, 1](mode, x, out)
        assert out[0] == expected
    with pytest.raises(CompileError, match="nothing"):
        kernel[1, 1]("other", x, out)


def test_literal_unroll():
    """Each turn has its own constants and types: shapes of local arrays, fields, functions."""
    names = ("u", "v")

    @cuda.jit
    def kernel(r, o):
        total = 0
        for n in cuda.literal_unroll((1, 2, 3)):
            t = cuda.local.array(n, np.int32)
            t[n - 1] = n
            total += t[n - 1] * len(t)
        for name in cuda.literal_unroll(names):
            total += r[0][name]
        for f in cuda.literal_unroll((abs, lambda x: x * 2)):
            total += f(-3)
        o[0] = total

    out = np.zeros(1)
    kernel[1, 1](np.array([(10, 0.5)], [("u", "i4"), ("v", "f8")]), out)
    assert out[0] == 1 + 4 + 9 + 10.5 + 3 - 6


def test_kernels_with_variable_arguments():
    """*args of a kernel is a tuple of what the launch passes beyond."""

    @cuda.jit(device=True)
    def both(o, *columns):
        o[0] = columns[0][0] + columns[1][1]

    @cuda.jit
    def kernel(o, *columns):
        both(o, *columns)
        o[1] = len(columns)

    out = np.zeros(2)
    kernel[1, 1](out, np.arange(3.0), np.arange(3) + 5)
    assert out.tolist() == [6, 2]
