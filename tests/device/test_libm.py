"""Our own functions of math, compiled: they compute what Python computes on NumPy scalars."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compiler as cuda
from compiler.lang.libm import BINARY, FUNCTIONS

COUNT = 64
TWO_ARGUMENTS = {function.__name__.rstrip("_") for function in BINARY}
# Pairs of numbers, in which a product fused by mistake would be lost.
WITH_PAIRS = [
    f"__nv_{name}"
    for name in ("exp", "log2", "pow", "sin", "tan", "erfc", "tgamma", "lgamma", "powf", "sinf")
]
SINGLE = {name for name in FUNCTIONS if name.endswith("f") and name[:-1] in FUNCTIONS}


def arguments(name: str, dtype: type) -> list[np.ndarray]:
    """Arguments of every size, with special values."""
    rng = random.Random(name)
    limits = (-37.0, 38.0) if dtype is np.float32 else (-307.0, 308.0)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan, 5e-324, 1e-40, 3.0]
    arrays = []
    for _ in range(2):
        small = [rng.uniform(-3.0, 3.0) for _ in range(COUNT // 2)]
        any_size = [rng.choice((1, -1)) * 10.0 ** rng.uniform(*limits) for _ in range(COUNT)]
        values = (special + small + any_size)[:COUNT]
        rng.shuffle(values)
        arrays.append(np.array(values, dtype))
    return arrays


def kernel_of(function: Callable[..., Any], pair: bool) -> Callable[..., Any]:
    """A kernel that calls *function* once a thread."""
    if pair:

        def kernel(x, y, out):
            i = cuda.grid(1)
            out[i] = function(x[i], y[i])
    else:

        def kernel(x, y, out):
            i = cuda.grid(1)
            out[i] = function(x[i])

    return kernel


def run(name: str, fma: bool) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel computes, and what Python computes."""
    function, dtype = FUNCTIONS[name], np.float32 if name in SINGLE else np.float64
    pair = name.removeprefix("__nv_").removesuffix("f" if name in SINGLE else "") in TWO_ARGUMENTS
    x, y = arguments(name, dtype)
    out = np.zeros(COUNT, dtype)
    cuda.jit(kernel_of(function, pair), fma=fma)[1, COUNT](x, y, out)
    with np.errstate(all="ignore"):
        calls = zip(x, y, strict=True) if pair else zip(x, strict=True)
        return out, np.array([function(*call) for call in calls], dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_function_is_the_python_function(name):
    """Without contraction a kernel gives Python's bits, for special values too."""
    result, expected = run(name, fma=False)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize("name", WITH_PAIRS)
def test_contraction_does_no_harm(name):
    """With contraction, which may fuse any plain product and sum, the result is as exact."""
    result, expected = run(name, fma=True)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(result), np.isinf(expected))
    known = np.isfinite(expected)
    np.testing.assert_array_max_ulp(result[known], expected[known], 3)


FAST = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip


@pytest.mark.parametrize("name", FAST)
def test_fastmath_takes_the_hardwares_approximations(name):
    """With fastmath a float32 function is a few instructions, and close."""
    kernel = cuda.jit(kernel_of(FUNCTIONS[f"__nv_{name}f"], pair=False), fastmath=True)
    x = np.linspace(0.1, 1.4, COUNT).astype(np.float32)
    out = np.zeros_like(x)
    kernel[1, COUNT](x, x, out)
    np.testing.assert_allclose(out, FAST[name](x), rtol=2e-5, atol=2e-6)
    (ptx,) = kernel.inspect_ptx().values()
    assert "approx" in ptx
    assert ptx.count("fma.rn") < 4
