"""Kernels compute what the same Python computes: operators, types and control flow."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import compiler as cuda
from tests.device.oracle import check

EDGES = {
    "i": [0, 1, -1, 2, -2, 3, 5, -5, 7, -7],
    "u": [0, 1, 2, 3, 5, 7, 11, 100],
    "f": [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.25, 1e-3, -7.0, 1e6, math.inf, -math.inf, math.nan],
    "b": [False, True],
}
DTYPES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
WIDE = ["i4", "i8", "u4", "u8", "f2", "f4", "f8"]


def values(dtype: str) -> np.ndarray:
    """Telling values of a type: small ones, and the ends of its range."""
    kind = np.dtype(dtype).kind
    items = list(EDGES[kind])
    if kind in "iu":
        info = np.iinfo(dtype)
        items += [info.min, info.max, info.max - 1, info.max // 3]
    with np.errstate(over="ignore"):
        return np.array([np.array(item, dtype) for item in items], dtype)


def pairs(left: str, right: str) -> list[np.ndarray]:
    """All pairs of telling values."""
    a, b = np.meshgrid(values(left), values(right))
    return [np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())]


def result_type(function, left: str, right: str) -> str:
    """A dtype that holds the result: the promoted one, 64 bits for Python numbers."""
    kinds = np.dtype(left).kind + np.dtype(right).kind
    if "f" in kinds or function is operator.truediv:
        return "f8"
    return "u8" if "u8" in (left, right) else "i8"


def mixed_uint64(left: str, right: str) -> bool:
    """uint64 beside a signed integer: NumPy makes it float64, kernels uint64 as C does."""
    kinds = {left, right}
    return "u8" in kinds and bool(kinds & {"i4", "i8"})


@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("left", DTYPES)
def test_arithmetic(left, right):
    """+, - and * on all pairs of types give NumPy's bits."""
    if mixed_uint64(left, right):
        pytest.skip("uint64 with a signed integer is uint64 by design; tested on its own")

    out = result_type(None, left, right)
    check(lambda a, b: a + b, pairs(left, right), out)
    check(lambda a, b: a - b, pairs(left, right), out)
    check(lambda a, b: a * b, pairs(left, right), out)


@pytest.mark.parametrize("signed", ["i4", "i8"])
def test_uint64_with_a_signed_integer_is_uint64(signed):
    """The sum wraps modulo 2**64, as in C."""
    a, b = pairs("u8", signed)
    out = np.zeros(len(a), np.uint64)

    @cuda.jit
    def add(x, y, o):
        i = cuda.grid(1)
        if i < o.size:
            o[i] = x[i] + y[i]

    add[(len(a) + 63) // 64, 64](a, b, out)
    expected = [(int(x) + int(y)) % 2**64 for x, y in zip(a, b, strict=True)]
    assert out.tolist() == expected


@pytest.mark.parametrize("right", WIDE)
@pytest.mark.parametrize("left", WIDE)
def test_division(left, right):
    """/, // and % floor as Python's do; an integer divided by zero gives 0."""
    if mixed_uint64(left, right):
        pytest.skip("uint64 with a signed integer is uint64 by design")
    a, b = pairs(left, right)
    integers = "f" not in np.dtype(left).kind + np.dtype(right).kind
    keep = np.ones(len(a), bool)
    if integers:
        keep = b != 0
        if np.dtype(left).kind == "i":  # NumPy warns of this overflow, and wraps.
            keep &= ~((a == np.iinfo(left).min) & (b.astype("f8") == -1))
    columns = [np.ascontiguousarray(a[keep]), np.ascontiguousarray(b[keep])]
    check(lambda x, y: x / y, columns, "f8")
    check(lambda x, y: x // y, columns, result_type(operator.floordiv, left, right))
    check(lambda x, y: x % y, columns, result_type(operator.mod, left, right))


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8"])
def test_integer_division_by_zero_gives_zero(dtype):
    """The thread goes on, and both quotient and remainder are 0."""
    x = values(dtype)
    zero = np.zeros_like(x)
    out = np.full((2, len(x)), 9, dtype)

    @cuda.jit
    def divide(a, b, o):
        i = cuda.grid(1)
        if i < a.size:
            o[0, i] = a[i] // b[i]
            o[1, i] = a[i] % b[i]

    divide[1, 64](x, zero, out)
    assert not out.any()


@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("left", DTYPES)
def test_comparisons(left, right):
    """All six comparisons compare values, whatever the signedness."""

    def compare(a, b):
        return (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b)

    a, b = pairs(left, right)
    expected = [compare(*(v.item() for v in row)) for row in zip(a, b, strict=True)]
    if "f" in np.dtype(left).kind + np.dtype(right).kind:
        expected = [int(compare(*row)) for row in _promoted(a, b)]
    out = np.zeros(len(a), np.int64)

    @cuda.jit
    def kernel(x, y, o):
        i = cuda.grid(1)
        if i < o.size:
            o[i] = compare(x[i], y[i])

    kernel[(len(a) + 63) // 64, 64](a, b, out)
    assert out.tolist() == expected


def _promoted(a: np.ndarray, b: np.ndarray) -> list[tuple[float, float]]:
    """Pairs as NumPy compares them when one is a float; narrow integers count as Python ints."""
    narrow = [x.dtype.kind in "biu" and x.dtype.itemsize < 4 for x in (a, b)]
    if any(narrow):
        common = b.dtype if narrow[0] else a.dtype
    else:
        common = np.promote_types(a.dtype, b.dtype)
    with np.errstate(over="ignore"):
        return list(zip(a.astype(common).tolist(), b.astype(common).tolist(), strict=True))


@pytest.mark.parametrize("dtype", ["b1", "i1", "i4", "i8", "u1", "u4", "u8"])
def test_bits(dtype):
    """&, | and ^ on equal types, and ~."""
    out = "i8" if np.dtype(dtype).kind != "u" else "u8"
    columns = pairs(dtype, dtype)
    check(lambda a, b: a & b, columns, out)
    check(lambda a, b: a | b, columns, out)
    check(lambda a, b: a ^ b, columns, out)
    if dtype != "b1":
        check(lambda a: ~a, [values(dtype)], "i8" if dtype != "u8" else "u8")


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8"])
def test_shifts(dtype):
    """<< fills with 0, >> with the sign; counts of the width and above shift everything out."""
    counts = np.array([0, 1, 5, 31, 32, 33, 63, 64, 100], dtype)
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(values(dtype), counts))
    check(lambda x, y: x << y, [a, b], dtype)
    check(lambda x, y: x >> y, [a, b], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unary(dtype):
    """-x, +x, abs and not."""
    columns = [values(dtype)]
    out = {"f": "f8", "u": "u8"}.get(np.dtype(dtype).kind, "i8")
    if dtype not in ("u1", "u2"):
        check(lambda a: -a, columns, out)
    check(lambda a: +a, columns, out)
    check(lambda a: abs(a), columns, out)
    check(lambda a: not a, columns, "b1")


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "f4", "f8"])
def test_powers(dtype):
    """x ** n for literal n multiplies; for ints it wraps."""
    kind = np.dtype(dtype).kind
    columns = [np.array([0, 1, 2, 3, 7, 47], dtype)]
    out = {"f": "f8", "u": "u8"}.get(kind, "i8")
    check(lambda a: a**2, columns, out)
    check(lambda a: a**3, columns, out)
    check(lambda a: a**0, columns, out)
    if kind != "f":
        check(lambda a, b: a**b, pairs_of(columns[0], np.array([0, 1, 2, 5, 20], dtype)), out)


def pairs_of(left: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
    """All pairs of two arrays' elements."""
    a, b = np.meshgrid(left, right)
    return [np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())]


@pytest.mark.parametrize("dtype", WIDE)
def test_min_and_max(dtype):
    """min and max return the first where neither is better, also for nan."""
    columns = pairs(dtype, dtype)
    check(lambda a, b: min(a, b), columns, dtype)
    check(lambda a, b: max(a, b), columns, dtype)
    check(lambda a, b: max(a, b, 1), columns, dtype)


@pytest.mark.parametrize("function", [math.floor, math.ceil, math.trunc, round, int])
def test_rounding_gives_ints(function):
    """floor, ceil, trunc, round and int return ints, exactly also above 2**31."""
    x = np.array([1.2, -1.7, 2.5, 3.5, -0.5, -2.8e-14, 3e9, -3e9, 0.0], "f8")
    check(lambda a: function(a), [x], "i8")
    if function is not math.trunc:  # NumPy's float32 does not have it.
        check(lambda a: function(a), [x.astype("f4")], "i8")


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source, target):
    """A cast, and a store, convert as NumPy's astype does where the value fits."""
    x = values(source)
    x = x[np.isfinite(x.astype("f8"))]
    if np.dtype(source).kind == "f" and np.dtype(target).kind in "iu":
        info = np.iinfo(target)
        wide = x.astype("f8")
        x = x[(wide > max(float(info.min), -1e6)) & (wide < min(float(info.max), 1e9))]
        x = x[x >= 0] if np.dtype(target).kind == "u" else x
    cast = np.dtype(target).type
    stored, converted = np.zeros((2, len(x)), target)

    @cuda.jit
    def kernel(a, o, p):
        i = cuda.grid(1)
        if i < a.size:
            o[i] = a[i]
            p[i] = cast(a[i])

    kernel[1, 64](x, stored, converted)
    with np.errstate(over="ignore"):
        expected = x.astype(target)
    np.testing.assert_array_equal(stored, expected)
    np.testing.assert_array_equal(converted, expected)


def test_bools_of_any_byte_are_true():
    """Bytes other than 0 and 1 in a bool array read as True, and are written as 1."""
    source = np.arange(5, dtype="u1").view("?")
    out = np.zeros(5, "?")

    @cuda.jit
    def copy(a, o):
        i = cuda.grid(1)
        if i < a.size:
            o[i] = a[i]

    copy[1, 8](source, out)
    assert out.view("u1").tolist() == [0, 1, 1, 1, 1]


def test_literals_are_weak():
    """x * 0.1 with a float32 x is the float32 product."""
    x = [np.array([0.1, 3.3, 1e10], "f4")]
    check(lambda a: a * 0.1 + 2, x, "f4")
    check(lambda a: a * 0.1 + 2, x, "f8")


# Control flow, each function also run by CPython


def breaks(n):
    count = 0
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            if (i + j) % 2:
                continue
            count += 10 * i + j
    return count


def for_else(n, t):
    for i in range(n):
        if i == t:
            r = i * 10
            break
    else:
        r = -1
    return r


def outer_variable(x, y):
    r = 2
    for _ in range(1):
        q = x
        if q != x:
            if q != x:
                q = y
            continue
        if q == x:
            r = q
    return r


def steps(a, b):
    total = 0
    for i in range(a, b, 3):
        total += i
    for i in range(b, a, -2):
        total -= i
    step = b - a
    if step != 0:
        for i in range(a, b, step):
            total += 1000 * i
    return total


def while_else(n, t):
    i = 0
    while i < n:
        if i == t:
            break
        i += 1
    else:
        i = -i
    return i


def chained(a, b):
    x = 1 if 0 <= a < b <= 10 else 2
    y = a or b
    z = a and b
    return x + 10 * y + 1000 * z + (not (a > 3 and b > 3))


def swapped(a, b):
    for _ in range(3):
        a, b = b, a + b
    return a * 100 + b


def walrus(a, b):
    total = 0
    while (v := a - total) > b:
        total += 1
    return v + total


def early_return(a, b):
    if a > b:
        return a
    for i in range(b):
        if i * i > a:
            return i
    return -1


CONTROL = [
    breaks, for_else, outer_variable, steps, while_else, chained, swapped, walrus, early_return,
]  # fmt: skip


@pytest.mark.parametrize("function", CONTROL, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::compiler.CompileWarning")
def test_control_flow(function):
    """Loops, else clauses, break, continue, chains and early returns as in Python."""
    count = function.__code__.co_argcount
    grid = np.array(np.meshgrid(*[np.arange(-3, 9)] * count)).reshape(count, -1).astype("i8")
    check(function, list(grid), "i8")


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(
    data=st.lists(
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)),
        min_size=1, max_size=50,
    )
)  # fmt: skip
def test_integer_identities(data):
    """(a // b) * b + a % b == a in int32, as computed by the kernel itself."""
    a, b = (np.array(column, "i4") for column in zip(*data, strict=True))
    b[b == 0] = 1
    b[b == -1] = 1
    _identity(a, b)


@cuda.jit
def identity_kernel(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = (a[i] // b[i]) * b[i] + a[i] % b[i]


def _identity(a, b):
    out = np.zeros_like(a)
    identity_kernel[1, 64](a, b, out)
    np.testing.assert_array_equal(out, a)
