"""The specification as a test: a kernel computes what the same Python computes on NumPy scalars.

The stated exceptions are encoded here: integers narrower than 32 bits compute as Python ints,
uint64 with a signed integer is uint64, and an integer divided by zero gives 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import compiler as cuda


def narrow_as_int(value: Any) -> Any:
    """A NumPy scalar as kernels compute with it."""
    if isinstance(value, np.bool_ | np.int8 | np.int16 | np.uint8 | np.uint16):
        return int(value)
    return value


def python_results(
    function: Callable[..., Any], columns: Sequence[np.ndarray], out: np.dtype
) -> np.ndarray:
    """What CPython computes, element by element, converted to *out* as a store converts."""
    results = np.zeros(len(columns[0]), out)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i, row in enumerate(zip(*columns, strict=True)):
            value = function(*map(narrow_as_int, row))
            if isinstance(value, int) and results.dtype.kind in "iu":
                bits = results.dtype.itemsize * 8
                value = (value & (2**bits - 1)) if value >= 0 or bits < 64 else value
                value = np.array([value % 2**bits], np.uint64).astype(results.dtype)[0]
            results[i] = value
    return results


def kernel_results(
    function: Callable[..., Any], columns: Sequence[np.ndarray], out: np.dtype, **options: Any
) -> np.ndarray:
    """What a kernel that calls *function* for each element computes, without fused rounding."""
    results = np.zeros(len(columns[0]), out)
    kernel = cuda.jit(fma=False, **options)(KERNELS[len(columns)](function))
    kernel[(len(results) + 63) // 64, 64](*columns, results)
    return results


def check(
    function: Callable[..., Any], columns: Sequence[np.ndarray], out: Any, **options: Any
) -> None:
    """Assert that both agree bit for bit (all nans are alike)."""
    dtype = np.dtype(out)
    expected = python_results(function, columns, dtype)
    actual = kernel_results(function, columns, dtype, **options)
    np.testing.assert_array_equal(actual, expected)
    if dtype.kind == "f":  # The sign of zero counts.
        real = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[real]), np.signbit(expected[real]))


def _kernel1(function: Callable[..., Any]) -> Callable[..., None]:
    def kernel(a, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i])

    return kernel


def _kernel2(function: Callable[..., Any]) -> Callable[..., None]:
    def kernel(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i], b[i])

    return kernel


def _kernel3(function: Callable[..., Any]) -> Callable[..., None]:
    def kernel(a, b, c, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i], b[i], c[i])

    return kernel


KERNELS = {1: _kernel1, 2: _kernel2, 3: _kernel3}
