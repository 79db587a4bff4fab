"""Number theory, sums, neighbours of floats, rounding to digits: math, operator and builtins."""

from __future__ import annotations

import cmath
import itertools
import math
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compiler as cuda
from tests.device.oracle import check, kernel_results

INTS = np.array([0, 1, 2, 3, 4, 6, 9, 12, 35, 60, 61])
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.675, 0.125, 1e22, -3e-5, 5e-324, 1.7e308, math.inf, -math.inf]


def pairs(values):
    """All pairs of values, as two columns."""
    a, b = np.meshgrid(values, values)
    return [np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())]


INTEGER_FUNCTIONS = [
    lambda a, b: math.gcd(a, b), lambda a, b: math.gcd(a, b, 12) + math.gcd(a) + math.gcd(),
    lambda a, b: math.lcm(a, b), lambda a, b: math.lcm(a, 4, b) + math.lcm(),
    lambda a, b: math.comb(a, b), lambda a, b: math.perm(a, b), lambda a, b: math.perm(b),
    lambda a, b: math.factorial(a), lambda a, b: pow(a, b, 7) + pow(a, b, mod=1000003),
    lambda a, b: pow(a, b, -5), lambda a, b: a.bit_length() + int(b).bit_length(),
    lambda a, b: round(a * 7, -1) - round(b, 2), lambda a, b: operator.index(a) + operator.inv(b),
    lambda a, b: math.prod((a, b, 2)) + math.prod((a,), start=b) + sum((a, b), 5),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(INTEGER_FUNCTIONS)))
def test_functions_of_ints(index):
    """Each gives CPython's int, wrapped to 64 bits."""
    function = INTEGER_FUNCTIONS[index]
    columns = pairs(INTS)
    expected = [function(a, b) for a, b in zip(*(c.tolist() for c in columns), strict=True)]
    found = kernel_results(function, columns, np.dtype("i8"))
    assert found.tolist() == [(v + 2**63) % 2**64 - 2**63 for v in expected]


def test_negative_arguments_of_combinatorics_give_zero():
    """Where CPython raises ValueError, a kernel gives 0."""
    n, k = np.array([-1, 3, -4]), np.array([2, -1, -2])
    found = kernel_results(
        lambda a, b: math.comb(a, b) + math.perm(a, b) + math.factorial(-1), [n, k], np.dtype("i8")
    )
    assert not found.any()


def test_powers_modulo_large_numbers():
    """Products of 62 bits do not overflow on the way."""
    base, exponent = np.array([3**39, 2**61 + 1]), np.array([2**40 + 1, 12345678901])
    modulus = 2**62 - 57
    found = kernel_results(lambda a, b: pow(a, b, modulus), [base, exponent], np.dtype("i8"))
    assert found.tolist() == [
        pow(int(a), int(b), modulus) for a, b in zip(base, exponent, strict=True)
    ]


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8"])
def test_bit_counts(dtype):
    """The ones of the absolute value: int.bit_count and np.bitwise_count."""
    info = np.iinfo(dtype)
    x = np.array([0, 1, 2, 255, info.max, info.min, info.max - 5], dtype)
    found = kernel_results(lambda a: a.bit_count() * 100 + np.bitwise_count(a), [x], np.dtype("i8"))
    assert found.tolist() == [101 * int(v).bit_count() for v in x]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_neighbours_of_floats(dtype):
    """np.nextafter and np.spacing at the ends of the range and around 0, with NumPy's bits."""
    info = np.finfo(dtype)
    edges = [0.0, -0.0, 1.0, -1.0, 1.5, info.max, info.min, info.tiny, info.smallest_subnormal,
             np.inf, -np.inf, np.nan]  # fmt: skip
    x = np.array(edges, dtype)
    a, b = pairs(x)
    apart = (a != b) | np.isnan(a)  # Of two zeros, NumPy's float16 gives the first.
    check(lambda a, b: np.nextafter(a, b), [a[apart], b[apart]], dtype)
    # NumPy's float16 differs below 0.
    check(lambda a: np.spacing(a), [x[x >= 0] if dtype == "f2" else x], dtype)


def test_nextafter_and_ulp_of_math():
    """math.nextafter, with steps too, and math.ulp."""
    x = np.array([*FLOATS, math.nan])
    check(lambda a, b: math.nextafter(a, b), pairs(x), "f8")
    check(lambda a: math.ulp(a), [x], "f8")
    found = kernel_results(lambda a: math.nextafter(a, -math.inf, steps=3), [x], np.dtype("f8"))
    expected = x
    for _ in range(3):
        expected = np.nextafter(expected, -np.inf)
    np.testing.assert_array_equal(found, expected)


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=8, max_size=8))
def test_fsum_rounds_once(values):
    """math.fsum of an array and of a tuple is CPython's."""
    kernel[1, 1](np.array(values), out := np.zeros(2))
    try:
        expected = math.fsum(values)
    except (ValueError, OverflowError):
        return
    np.testing.assert_array_equal(out, [expected, math.fsum(values[:3])])


@cuda.jit
def kernel(x, o):
    o[0] = math.fsum(x)
    o[1] = math.fsum((x[0], x[1], x[2]))


def test_fsum_of_what_cancels():
    """Partial sums that vanish, halves of the last place, and sums near the largest float."""
    for values in (
        [1e100, 1.0, -1e100, 1e-100, 1e50, -1.0, -1e50, 0.0],
        [1.0, 2.0**-53, 2.0**-106, 0, 0, 0, 0, 0],
        [2.0**53, 0.5, 0.5, 2.0**-30, -(2.0**-30), 1.0, 0, 0],
        [0.1] * 8,
    ):
        kernel[1, 1](np.array(values), out := np.zeros(2))
        assert out[0] == math.fsum(values)


def test_sums_of_products_and_distances():
    """math.dist, math.hypot of many, np.dot and the @ of two vectors."""

    @cuda.jit
    def vectors(x, y, o):
        o[0] = math.dist(x, y)
        o[1] = math.dist((x[0], x[1]), (y[0], y[1]))
        o[2] = math.hypot(x[0], x[1], x[2])
        o[3] = math.hypot(x[3]) + math.hypot()
        o[4] = np.dot(x, y)
        o[5] = x @ y
        o[6] = math.prod(x)
        o[7] = math.hypot(1e300, 1e300, 1e300)

    x, y, out = np.array([1.5, -2, 3, -4]), np.array([0.5, 7, -1, 2]), np.zeros(8)
    vectors[1, 1](x, y, out)
    expected = [
        math.dist(x, y), math.dist(x[:2], y[:2]), math.hypot(*x[:3]), 4, x @ y, x @ y,
        math.prod(x), math.sqrt(3) * 1e300,
    ]  # fmt: skip
    np.testing.assert_allclose(out, expected, rtol=1e-15)


@pytest.mark.skipif(not hasattr(math, "sumprod"), reason="math.sumprod is new in Python 3.12")
def test_sumprod():
    """math.sumprod of floats that cancel, and of ints."""

    @cuda.jit
    def products(x, y, o):
        o[0] = math.sumprod(x, y)
        o[1] = math.sumprod((2, 3), (5, 7))

    x, y, out = np.array([1e16, 1.0, -1e16]), np.array([1.0, 1.0, 1.0]), np.zeros(2)
    products[1, 1](x, y, out)
    assert out.tolist() == [math.sumprod(x.tolist(), y.tolist()), 31]


@pytest.mark.skipif(not hasattr(math, "fma"), reason="math.fma is new in Python 3.13")
def test_fma():
    """math.fma rounds once."""
    x = np.array([0.1, 1 + 2**-30, 3.0])
    found = kernel_results(lambda a: math.fma(a, a, -a * a), [x], np.dtype("f8"))
    assert found.tolist() == [math.fma(float(a), float(a), -float(a) * float(a)) for a in x]


def test_closeness():
    """isclose of math, cmath and NumPy, with tolerances by name."""
    columns = pairs(np.array([*FLOATS, 1 + 1e-10, 1 + 1e-6, 1e-9, math.nan]))
    check(lambda a, b: math.isclose(a, b), columns, "b1")
    check(lambda a, b: math.isclose(a, b, abs_tol=1e-8, rel_tol=1e-5), columns, "b1")
    check(lambda a, b: np.isclose(a, b), columns, "b1")
    check(lambda a, b: np.isclose(a, b, equal_nan=True, rtol=0.0), columns, "b1")
    columns = pairs(np.array([1 + 2j, 1 + 2j + 1e-12, 1 - 2j, 0j]))
    check(lambda a, b: cmath.isclose(a, b), columns, "b1")
    check(lambda a, b: cmath.isclose(a, b, abs_tol=10.0), columns, "b1")


def test_rounding_to_digits():
    """round(x, n) of Python floats is correctly rounded, of NumPy floats as NumPy's."""
    x = np.array([*FLOATS, 1.005, 2.5, 1234.5678, -0.045, 1e15 + 0.3, 25.0, 35.0, -15.0])
    for digits in (2, 1, 0, -1, 5, -3):
        check(lambda a, n=digits: round(a, n), [x], "f8")
        check(lambda a, n=digits: np.round(a, n), [x], "f8")
        found = kernel_results(lambda a, n=digits: round(float(a), n), [x], np.dtype("f8"))
        expected = [round(float(a), digits) for a in x]
        np.testing.assert_array_equal(found, expected)
    single = np.array([1.005, 2.5, 1234.567, -0.045], "f4")
    check(lambda a: round(a, 2), [single], "f4")
    check(lambda a: round(a, None), [x[:4]], "i8")


def test_search_and_truth():
    """operator.countOf, indexOf, truth, concat and call; tuple.count and index; divmod."""

    def function(a, b):
        items = (a, b, a, 3)
        joined = operator.concat(operator.concat(items, (b,)), (a,))
        found = operator.indexOf(items, 3) * 10 + operator.countOf(items, a) + len(joined)
        quotient, rest = divmod(a, b + 1)
        return found + items.count(b) + items.index(a) + operator.truth(b) + quotient * 3 + rest

    check(function, pairs(INTS[:6]), "i8")


CMATH = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10",
         "sin", "sinh", "sqrt", "tan", "tanh"]  # fmt: skip
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3e-200, 1e200, -1e300, 710.0, -710.0, math.inf, -math.inf]
Z = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)])


@pytest.mark.parametrize("name", CMATH)
def test_functions_of_cmath_at_the_ends(name):
    """Signed zeros, infinities, branch cuts and parts whose square overflows, as CPython's."""
    function = getattr(cmath, name)
    found = kernel_results(lambda z: function(z), [Z], np.dtype("c16"))
    for z, value in zip(Z.tolist(), found.tolist(), strict=True):
        try:
            expected = function(z)
        except (ValueError, OverflowError):
            continue
        for got, want in ((value.real, expected.real), (value.imag, expected.imag)):
            size = math.hypot(expected.real, expected.imag)
            size = size if math.isfinite(size) else abs(want)
            assert same(got, want, 1e-13 * size), (z, value, expected)


def same(got, want, tolerance):
    """Whether two parts agree: nans, signs of zeros, or within a tolerance."""
    if math.isnan(want):
        return math.isnan(got)
    if got == want:
        return want != 0 or math.copysign(1, got) == math.copysign(1, want)
    return abs(got - want) <= tolerance


def test_complex_functions_of_numpy():
    """np.arcsin and its kin of complex64 stay complex64; log has a base; isnan, isinf, angle."""
    z = np.array([1.5 - 2j, -0.5 + 0.25j, 3 + 0j, -2j, 0.75 + 4j], "c8")
    for function in (np.arcsin, np.arccosh, np.arctan, np.arctanh, np.tan, np.log10):
        found = kernel_results(lambda a, f=function: f(a), [z], np.dtype("c8"))
        np.testing.assert_allclose(found, function(z), rtol=2e-6)
    found = kernel_results(lambda a: cmath.log(a, 2.5 + 1j), [z.astype("c16")], np.dtype("c16"))
    expected = [cmath.log(complex(a), 2.5 + 1j) for a in z]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    check(lambda a: cmath.isnan(a) + 2 * np.isinf(a) + 4 * cmath.isfinite(a), [z], "i8")
    np.testing.assert_allclose(
        kernel_results(lambda a: np.angle(a), [z], np.dtype("f4")), np.angle(z), rtol=1e-6
    )
