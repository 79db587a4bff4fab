"""The functions of math in kernels, against the host's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import compiler as cuda

MATH = [
    math.exp, math.expm1, math.log, math.log2, math.log10, math.log1p, math.sin, math.cos,
    math.tan, math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh, math.asinh,
    math.atanh, math.erf, math.erfc, math.gamma, math.lgamma, math.sqrt, math.fabs,
    math.radians, math.degrees,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", MATH, ids=lambda f: f.__name__)
def test_math_functions(function, dtype):
    """Each function of math agrees with the host's within a few units in the last place."""

    @cuda.jit
    def kernel(x, o):
        i = cuda.grid(1)
        if i < x.size:
            o[i] = function(x[i])

    x = np.linspace(0.01, 0.99, 200).astype(dtype)
    out = np.zeros_like(x)
    kernel[2, 128](x, out)
    expected = np.array([function(float(v)) for v in x])
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(out, expected, rtol=8 * eps, atol=4 * eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_math_functions_of_two_arguments(dtype):
    """pow, atan2, fmod, hypot, copysign and remainder."""

    @cuda.jit
    def kernel(x, y, o):
        i = cuda.grid(1)
        if i < x.size:
            o[0, i] = math.pow(abs(x[i]), y[i])
            o[1, i] = math.atan2(x[i], y[i])
            o[2, i] = math.fmod(x[i], y[i])
            o[3, i] = math.hypot(x[i], y[i])
            o[4, i] = math.copysign(x[i], y[i])
            o[5, i] = math.remainder(x[i], y[i])

    x = np.linspace(-5, 5, 101).astype(dtype)
    y = np.linspace(3, -2.9, 101).astype(dtype)
    out = np.zeros((6, 101), dtype)
    kernel[1, 128](x, y, out)
    functions = [
        lambda a, b: math.pow(abs(a), b), math.atan2, math.fmod, math.hypot, math.copysign,
        math.remainder,
    ]  # fmt: skip
    expected = [[f(float(a), float(b)) for a, b in zip(x, y, strict=True)] for f in functions]
    np.testing.assert_allclose(out, expected, rtol=16 * np.finfo(dtype).eps, atol=1e-6)


def test_math_functions_that_return_tuples_and_ints():
    """modf, frexp, ldexp, log with a base, gcd and isqrt, at their special values too."""

    @cuda.jit
    def kernel(x, o, n, m):
        i = cuda.grid(1)
        if i < x.size:
            o[0, i], o[1, i] = math.modf(x[i])
            o[2, i], o[3, i] = math.frexp(x[i])
            o[4, i] = math.ldexp(x[i], n[i])
            o[5, i] = math.log(abs(x[i]), 3)
            m[0, i] = math.gcd(n[i], 60)
            m[1, i] = math.isqrt(abs(n[i]))

    x = np.array([-3.25, 0.75, -10, 5e-324, 1.5, math.inf, -math.inf, 1e308, 3e-310, 81.0, -0.0])
    n = np.array([4, -5, 36, 1074, -1074, 3, 2**53, -2000, 900, 99, 2**62])
    out, ints = np.zeros((6, len(x))), np.zeros((2, len(x)), np.int64)
    kernel[1, 32](x, out, n, ints)
    finite = np.isfinite(x)
    np.testing.assert_array_equal(out[:2, :], np.array([math.modf(v) for v in x]).T)
    np.testing.assert_array_equal(np.signbit(out[0]), np.signbit(x))
    np.testing.assert_array_equal(out[2:4], np.array([math.frexp(v) for v in x]).T)
    np.testing.assert_array_equal(out[4, finite], np.ldexp(x, np.clip(n, -5000, 5000))[finite])
    logs = [math.log(abs(v), 3) if v else math.nan for v in x]
    np.testing.assert_allclose(out[5, :-1], logs[:-1], rtol=1e-14)
    assert ints[0].tolist() == [math.gcd(v, 60) for v in n.tolist()]
    assert ints[1].tolist() == [math.isqrt(abs(v)) for v in n.tolist()]


def test_float32_division_and_square_root_are_correctly_rounded():
    """abs(t)/t is exactly 1 and sqrt(k*k) exactly k."""

    @cuda.jit
    def kernel(t, o):
        i = cuda.grid(1)
        if i < t.size:
            o[i] = int(abs(t[i]) / t[i]) + int(math.sqrt(t[i] * t[i]) == t[i])

    t = np.arange(1, 1025, dtype=np.float32)
    out = np.zeros(1024, np.int32)
    kernel[8, 128](t, out)
    assert (out == 2).all()
