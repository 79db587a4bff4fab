"""Python in kernels beyond operators and loops: functions, tuples, iteration, recursion."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from tests.device.oracle import check


def captures(a, b):
    scale = 2

    def inner(x, y=b):
        return x * scale + y

    first = inner(a)
    scale = 3  # Seen by the next call, as in Python.
    return first * 100 + inner(a, y=1)


def lambdas(a, b):
    add = lambda x: x + b  # noqa: E731
    twice = lambda f, x: f(f(x))  # noqa: E731
    return twice(add, a) + twice(lambda x: x * a, 1)


def nested_twice(a, b):
    def outer(x):
        def inner(y):
            return y * b + a

        return inner(x) + inner(b)

    return outer(a)


def apply(function, value, *rest):
    total = function(value)
    for item in rest:
        total += function(item)
    return total


def functions_as_arguments(a, b):
    return apply(abs, a, b, -3) + apply(lambda x: x - b, a)


def keyword_only(a, *, factor=3, extra):
    return a * factor + extra


def keywords(a, b):
    return keyword_only(a, extra=b) + keyword_only(a, extra=1, factor=b)


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def recursion(a, b):
    return fibonacci(abs(a)) * 2 + is_even(abs(b))


def star_unpacking(a, b):
    first, *middle, last = a, b, a + b, 7
    (p, q), r = (last, first), middle[0]
    return p + 10 * q + 100 * r + 1000 * len(middle) + middle[1]


def star_calls(a, b):
    pair = a, b
    return keyword_only(*(a,), extra=b) + max(*pair, 1) + apply(abs, *pair, *pair)


def enumerates(a, b):
    total = 0
    for i, x in enumerate((a, b, 7)):
        total += i * x
    for i, x in enumerate(range(a, b), 5):
        total += i * x
    return total


def zips(a, b):
    total = 0
    for x, y in zip((a, b, 3), range(b, b + 10, 2), strict=False):
        total = total * 3 + x * y
    for x in reversed((a, b, 5)):
        total = total * 7 + x
    for i, (x, y) in enumerate(zip(range(3), (b, a, b), strict=True)):
        total += i * x - y
    for x in reversed(range(a, b, 2)):
        total = total * 3 + x
    return total


def mixed_break(a, b):
    total = 0
    for item in (a, 2.5, b):
        if item > 4:
            break
        total += item
    else:
        total = -total
    return total


def generators(a, b):
    total = sum(i * i for i in range(a, b) if i % 2)
    total += 100 * any(i == a for i in (1, b, 3)) + 1000 * all(i < b for i in range(a))
    return total + sum(x * y for x, y in zip((a, b), (b, 2), strict=True))


def membership(a, b):
    return (a in (1, b, 5)) + 2 * (b not in (a, 3))


def conditional_function(a, b):
    total = 0
    for i in range(3):
        step = lambda x: x + i  # noqa: B023, E731
        total = step(total) * a
    return total + b


FUNCTIONS = [
    captures, lambdas, nested_twice, functions_as_arguments, keywords, recursion,
    star_unpacking, star_calls, enumerates, zips, mixed_break, generators, membership,
    conditional_function,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::compiler.CompileWarning")
def test_language(function):
    """The kernel gives what CPython gives."""
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(np.arange(-3, 8), np.arange(9)))
    check(function, [a.astype("i8"), b.astype("i8")], "f8")


def test_loops_over_arrays_of_different_types():
    """A loop over a tuple of an int32 and a float64 array is unrolled; each body has its types."""

    @cuda.jit
    def kernel(x, y, o):
        total = 0.0
        for i, array in enumerate((x, y, x)):
            for value in array:
                total += value * (i + 1)
        o[0] = total

    x, y, out = np.arange(5, dtype=np.int32), np.arange(3) + 0.5, np.zeros(1)
    kernel[1, 1](x, y, out)
    assert out[0] == x.sum() * 4 + y.sum() * 2


def test_variable_arguments_of_kernels_device_functions():
    """*args of a device function takes arrays, and passes them on."""

    @cuda.jit(device=True)
    def total(i, *columns):
        result = 0.0
        for column in columns:
            result += column[i]
        return result

    @cuda.jit(device=True)
    def both(i, *columns):
        return total(i, *columns) + total(i, columns[0])

    @cuda.jit
    def kernel(x, y, o):
        i = cuda.grid(1)
        if i < o.size:
            o[i] = both(i, x, y)

    x, y, out = np.arange(8.0), np.arange(8, dtype=np.int32), np.zeros(8)
    kernel[1, 8](x, y, out)
    np.testing.assert_array_equal(out, 2 * x + y)


def test_launch_arguments_by_name_and_default():
    """A kernel is called as the function is: by name, with defaults."""

    @cuda.jit
    def kernel(o, a, b=10, *, c=100):
        o[0] = a + b + c

    out = np.zeros(1)
    for call, expected in (
        (lambda k: k(out, 1), 111),
        (lambda k: k(out, b=2, a=1), 103),
        (lambda k: k(o=out, a=1, c=7), 18),
    ):
        call(kernel[1, 1])
        assert out[0] == expected
    with pytest.raises(TypeError, match=r"takes 4 arguments \(o, a, b, c\)"):
        kernel[1, 1](out, 1, d=3)
