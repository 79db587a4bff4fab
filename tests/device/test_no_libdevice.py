"""Kernels on a machine that has llvmlite and a driver alone: no libNVVM, and no libdevice."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

import compiler as cuda
from compiler.codegen import select

FUNCTIONS = (
    "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "erf", "erfc", "gamma", "cbrt", "exp2",
)  # fmt: skip


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """Hide libdevice; generators that were chosen before know it."""
    monkeypatch.setenv("CUDADRV_LIBDEVICE", "/nowhere/libdevice.10.bc")
    monkeypatch.setenv("COMPILER_CODEGEN", "llvm")
    choices = importlib.import_module("compiler.codegen.select")
    choices._select.cache_clear()
    yield
    choices._select.cache_clear()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if hasattr(math, name)])
def test_math_functions_are_compiled_in(name, dtype):
    """Each function of math gives what the host computes, within a few units, by our own code."""
    function = getattr(math, name)

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = function(x[i])

    x = np.linspace(0.05, 0.95, 64).astype(dtype)
    out = np.zeros_like(x)
    kernel[1, 64](x, out)
    expected = np.array([function(float(value)) for value in x]).astype(dtype)
    np.testing.assert_array_max_ulp(out, expected, 5, dtype=dtype)
    assert "__nv_" not in next(iter(kernel.inspect_llvm().values()))


def test_functions_of_two_are_compiled_in():
    """pow, atan2, hypot and fmod too, and NumPy's functions."""

    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] ** y[i]
        out[i, 1] = math.atan2(x[i], y[i])
        out[i, 2] = math.hypot(x[i], y[i])
        out[i, 3] = math.fmod(x[i], y[i])
        out[i, 4] = np.exp(x[i]) + np.sin(y[i])
        out[i, 5] = math.lgamma(x[i] + 3)

    x, y = np.linspace(0.5, 9, 32), np.linspace(-3, 3.1, 32)
    out = np.zeros((32, 6))
    kernel[1, 32](x, y, out)
    columns = [x**y, np.arctan2(x, y), np.hypot(x, y), np.fmod(x, y), np.exp(x) + np.sin(y)]
    columns.append(np.array([math.lgamma(value + 3) for value in x]))
    np.testing.assert_allclose(out, np.stack(columns, 1), rtol=4e-15, atol=1e-15)


def test_what_only_libdevice_has_says_so():
    """A function of libdevice that we have no substitute for is an error that names the file."""

    @cuda.jit
    def kernel(out):
        out[0] = cuda.libdevice.cyl_bessel_i0(out[0])

    with pytest.raises(cuda.CompileError, match=r"libdevice\.10\.bc.*CUDADRV_LIBDEVICE"):
        kernel[1, 1](np.ones(1))


def test_the_generator_knows_of_none():
    """The choice itself says that there is no libdevice."""
    from compiler.codegen import Target

    assert select(Target((9, 0))).libdevice is None
