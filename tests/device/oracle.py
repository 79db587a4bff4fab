"""The specification as a test: a kernel computes what the same Python computes on NumPy scalars.

The stated exceptions are encoded here: integers narrower than 32 bits compute as Python ints, and
where NumPy raises OverflowError for a Python int that does not fit, a kernel wraps: no comparison.
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
) -> tuple[np.ndarray, np.ndarray]:
    """What CPython computes, converted to *out* as a store converts, and where it does compute."""
    results = np.zeros(len(columns[0]), out)
    defined = np.ones(len(results), bool)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i, row in enumerate(zip(*columns, strict=True)):
            try:
                value = function(*map(narrow_as_int, row))
            except OverflowError:
                defined[i] = False
                continue
            if isinstance(value, int) and out.kind in "iu":
                value = np.uint64(value % 2**64).astype(out)
            results[i] = value
    return results, defined


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
    expected, defined = python_results(function, columns, dtype)
    actual = kernel_results(function, columns, dtype, **options)[defined]
    expected = expected[defined]
    assert expected.size > 0
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
