"""NumPy's ufuncs on scalars: all of them, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from compiler.typing.registry import REGISTRY

# Of arrays alone, and dates have tests of their own.
ELSEWHERE = {"matmul", "matvec", "vecmat", "vecdot", "isnat"}
NAMES = sorted(
    name
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).__name__ not in ELSEWHERE
)
VALUES = {
    "f": [0.5, -0.25, 1.0, 2.0, -3.0, 0.0, 1.5, 0.75, 7.0, np.inf, np.nan],
    "i": [0, 1, 2, 3, 5, 7, 12, 31],
    "u": [0, 1, 2, 3, 5, 7, 12, 31],
    "b": [False, True],
}
FORWARD = {"nextafter", "spacing", "ldexp"}


def columns(ufunc, dtype):
    """All pairs of telling values, or the values themselves."""
    values = np.array(VALUES[np.dtype(dtype).kind], dtype)
    if ufunc.nin == 1:
        return [values]
    a, b = np.meshgrid(values, values)
    second = np.ascontiguousarray(b.ravel())
    if ufunc.__name__ == "ldexp" and second.dtype.kind == "f":
        second = (np.arange(second.size) % 9 - 4).astype(np.int32)
    return [np.ascontiguousarray(a.ravel()), second]


def of_scalars(ufunc, inputs, dtype):
    """What NumPy gives scalar by scalar, narrow ints as Python's, each output a column."""
    with np.errstate(all="ignore"):
        rows = [ufunc(*row) for row in zip(*inputs, strict=True)]
    return [rows] if ufunc.nout == 1 else list(zip(*rows, strict=True))


def kernel_of(ufunc):
    """A kernel of one or two columns in and out."""

    @cuda.jit(fma=False)
    def one(a, o):
        i = cuda.grid(1)
        if i < a.size:
            o[0, i] = ufunc(a[i])

    @cuda.jit(fma=False)
    def two(a, b, o):
        i = cuda.grid(1)
        if i < a.size:
            o[0, i] = ufunc(a[i], b[i])

    @cuda.jit(fma=False)
    def one_pair(a, o):
        i = cuda.grid(1)
        if i < a.size:
            o[0, i], o[1, i] = ufunc(a[i])

    @cuda.jit(fma=False)
    def two_pair(a, b, o):
        i = cuda.grid(1)
        if i < a.size:
            o[0, i], o[1, i] = ufunc(a[i], b[i])

    return {(1, 1): one, (2, 1): two, (1, 2): one_pair, (2, 2): two_pair}[ufunc.nin, ufunc.nout]


def takes(ufunc, dtype):
    """Whether NumPy has the function for this type (np.ldexp takes ints second)."""
    kind = np.dtype(dtype).kind
    if ufunc.__name__ == "ldexp":
        return kind == "f"
    try:
        with np.errstate(all="ignore"):
            ufunc(*([np.ones(1, dtype)[0]] * ufunc.nin))
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "i8", "u4", "u8", "b1"])
@pytest.mark.parametrize("name", NAMES)
def test_ufunc(name, dtype):
    """Every ufunc that NumPy has for a type gives NumPy's numbers in a kernel."""
    ufunc = getattr(np, name)
    assert REGISTRY.knows(ufunc)
    if not takes(ufunc, dtype):
        return
    inputs = columns(ufunc, dtype)
    if np.dtype(dtype).kind in "iu":  # Division by zero gives 0, and NumPy's conversions vary.
        inputs = [column[inputs[-1] != 0] for column in inputs]
    expected = of_scalars(ufunc, inputs, dtype)
    wide = np.float64 if np.asarray(expected[0]).dtype.kind == "f" else np.asarray(expected).dtype
    out = np.zeros((len(expected), len(inputs[0])), wide)
    if dtype == "b1" and wide != np.bool_:
        return  # Bools compute as Python ints, and NumPy's narrow results differ by design.
    kernel_of(ufunc)[4, 64](*inputs, out)
    eps = np.finfo(dtype).eps if np.dtype(dtype).kind == "f" else 2.3e-16
    for found, wanted in zip(out, expected, strict=True):
        np.testing.assert_allclose(found, np.array(wanted, wide), rtol=8 * eps, atol=eps)
