"""Arithmetic of float16 by name, against NumPy's."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import compiler as cuda
from compiler import fp16

GENERATORS = ["llvm", "nvvm"]
RNG = np.random.default_rng(13)
X, Y, Z = (RNG.normal(scale=8, size=64).astype(np.float16) for _ in range(3))
ONE = {
    "hneg": np.negative, "habs": np.abs, "hfloor": np.floor, "hceil": np.ceil, "hrint": np.rint,
    "htrunc": np.trunc, "hrcp": lambda x: np.float16(1) / x,
}  # fmt: skip
ROOTS = {
    "hsqrt": np.sqrt, "hrsqrt": lambda x: 1 / np.sqrt(x), "hsin": np.sin, "hcos": np.cos,
    "hlog": np.log, "hlog2": np.log2, "hlog10": np.log10, "hexp": np.exp, "hexp2": np.exp2,
    "hexp10": lambda x: 10**x,
}  # fmt: skip
TWO = {
    "hadd": operator.add, "hsub": operator.sub, "hmul": operator.mul, "hdiv": operator.truediv,
    "hmax": np.fmax, "hmin": np.fmin,
}  # fmt: skip
TESTS = {f"h{name}": getattr(operator, name) for name in ("eq", "ne", "gt", "ge", "lt", "le")}


def one(function, x, codegen=None):
    """*function* of each number."""

    @cuda.jit(codegen=codegen)
    def kernel(x, o):
        i = cuda.grid(1)
        o[i] = function(x[i])

    out = np.zeros_like(x)
    kernel[1, x.size](x, out)
    return out


def two(function, x, y, dtype, codegen=None):
    """*function* of each pair."""

    @cuda.jit(codegen=codegen)
    def kernel(x, y, o):
        i = cuda.grid(1)
        o[i] = function(x[i], y[i])

    out = np.zeros(x.size, dtype)
    kernel[1, x.size](x, y, out)
    return out


@pytest.mark.parametrize("codegen", GENERATORS)
def test_what_is_exact_or_rounded_once(codegen):
    """Signs, whole numbers, sums, products, quotients and hfma, bit for bit."""
    for name, function in ONE.items():
        np.testing.assert_array_equal(one(getattr(fp16, name), X, codegen), function(X), name)
    for name, function in TWO.items():
        result = two(getattr(fp16, name), X, Y, np.float16, codegen)
        np.testing.assert_array_equal(result, function(X, Y), name)

    @cuda.jit(codegen=codegen)
    def fused(x, y, z, o):
        i = cuda.grid(1)
        o[i] = fp16.hfma(x[i], y[i], z[i])

    out = np.zeros_like(X)
    fused[1, 64](X, Y, Z, out)
    exact = X.astype(np.float64) * Y + Z
    np.testing.assert_array_equal(out, exact.astype(np.float16))


def test_comparisons_with_nan():
    """NaN is unequal to everything and in no order."""
    x, y = X.copy(), X.copy()
    x[:8], y[4:12] = np.nan, np.nan
    y[20:40] = Y[20:40]
    for name, function in TESTS.items():
        result = two(getattr(fp16, name), x, y, np.bool_)
        np.testing.assert_array_equal(result, function(x, y), name)


@pytest.mark.parametrize("name", ROOTS)
def test_functions(name):
    """Within two units in the last place."""
    x = np.abs(X) / np.float16(8) + np.float16(0.25)
    wanted = ROOTS[name](x.astype(np.float64))
    np.testing.assert_allclose(one(getattr(fp16, name), x), wanted, rtol=2e-3, atol=1e-3)
