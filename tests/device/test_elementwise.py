"""Expressions of arrays, reductions, `.flat`, and indices of every kind, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError


def check_assignment(kernel, *arrays):
    """Run a plain function as a kernel of one thread and by NumPy; all arrays must agree."""
    expected = [array.copy() for array in arrays]
    kernel(*expected)
    found = [array.copy() for array in arrays]
    cuda.jit(fma=False)(kernel)[1, 1](*found)
    for got, want in zip(found, expected, strict=True):
        if want.dtype.kind == "m":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-15)


A = np.arange(1.0, 13).reshape(3, 4)
B = np.linspace(-2, 2, 12).reshape(3, 4)


def scalars_and_arrays(o, x, y):
    o[:] = x * 2 + y
    o[0, 1:3] = -x[1, :2] / 4 - abs(y[2, 1:3])


def broadcasts(o, x, y):
    o[:] = x[0] * y[:, 1:2] + 1
    o[1] = x[1:2, 3] ** 2


def functions(o, x, y):
    o[:] = np.sqrt(x) + np.maximum(x, y) * np.exp(y) - np.arctan2(x, y)
    o[2] = np.where(y[2] > 0.5, x[2], -1) + np.clip(x[0], 2, 3)


def strided(o, x, y):
    o[::2, ::-1] = x[1:, :] % 5 + y.T[::-1, :2].T
    o.T[1] = x[:, 0] // 2


def in_place(o, x, y):
    o += x
    o *= 2
    o[1:] -= y[:2]
    o[0, ::2] /= 4
    x[...] = y + x
    y[0] **= 2


def with_outputs(o, x, y):
    np.add(x, y, o)
    np.multiply(x[0], 3, o[1])
    np.negative(x[:, 1], out=o[:, 2])


def shifted(o, x, y):
    x[1:] = x[:-1] + 1
    y[:-1] = y[1:] * 2
    o[0, 1:] = o[0, :-1]
    o[1] = o[1] + o[1]


def comparisons(o, x, y):
    o[0, 0] = (x > y).sum()
    o[0, 1] = (x == x).all() + (x < y).any()
    o[0, 2] = np.sum(x * y) + np.max(x - y) + (x + y).mean() + np.prod(x[0] / 2)
    o[0, 3] = (x * y).argmin() + (x[1] - 2 * y[1]).argmax()
    o[1, 0] = (x + 1)[1, 2] + (x * y)[0][1] + len(x + y) + (x + 1).shape[1] + (x + y).size


def rows_of_axes(o, x, y):
    o[...] = x[None, 0]
    o[..., 1] = y[:, 0]
    o[0, ...] = x[np.newaxis, 2][0]
    o[2] = x[..., None][1, :, 0]


def reductions(o, x, y):
    o[0, 0] = x.var() + np.std(y) + np.ptp(x) + x.std(ddof=1)
    o[0, 1] = np.count_nonzero(x > 3) + y.argmin() + y.T.argmax() + np.argmax(x[:, ::-1])


def reductions_of_numbers(o, x, y):
    o[0, 2] = np.nansum(x) + np.nanmin(y) + np.nanmax(y) + np.nanmean(y)
    o[0, 3] = np.searchsorted(x[0], 2.5) + np.searchsorted(x[1], 6.0, side="right")


FUNCTIONS = [
    scalars_and_arrays, broadcasts, functions, strided, in_place, with_outputs, shifted,
    comparisons, rows_of_axes, reductions, reductions_of_numbers,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_expressions(function):
    """The kernel gives what NumPy gives."""
    check_assignment(function, np.ones((3, 4)), A, B)


@pytest.mark.parametrize("dtype", ["i4", "f4", "u1", "c16", "m8[s]"])
def test_types_of_elements(dtype):
    """Integers, floats, complex numbers and durations, with the types of the operators."""

    def kernel(o, x, y):
        o[:] = x + y
        o[1:] = x[1:] - y[:-1] * 2

    x = np.arange(6).astype(dtype)
    check_assignment(kernel, np.zeros_like(x), x, x[::-1].copy())


def test_local_and_shared_arrays():
    """Fixed-shape arrays of a thread and of a block take part."""

    @cuda.jit
    def kernel(x, o):
        t, s = cuda.local.array(4, np.float64), cuda.shared.array((2, 4), np.float64)
        t[:] = x[0] * 2
        s[:] = t + x[:2]
        t += s[1] - 1
        o[:] = t

    out = np.zeros(4)
    kernel[1, 1](A, out)
    np.testing.assert_array_equal(out, A[0] * 2 + A[0] * 2 + A[1] - 1)


def test_overlap_in_another_order_raises():
    """What would need a copy is an exception in debug mode, no wrong result."""

    @cuda.jit(debug=True, opt=False)
    def kernel(x):
        x[1:-1] = x[:-2] + x[2:]

    with pytest.raises(ValueError, match="copy that first"):
        kernel[1, 1](np.arange(6.0))


def test_flat():
    """The elements in C order, read, assigned and counted, of any layout."""

    @cuda.jit
    def kernel(x, o):
        flat = x.T.flat
        total = 0.0
        for i in range(len(flat)):
            total = total * 1.5 + flat[i]
        x[::2, ::-1].flat[1] = 99
        x.flat[5] += 1
        for value in x[:, 1].flat:
            total -= value
        for value in x[:, ::2].flat:
            total += value
        o[0] = total

    found, expected, out = A.copy(), A.copy(), np.zeros(1)
    kernel[1, 1](found, out)
    total = 0.0
    for value in expected.T.flat:
        total = total * 1.5 + value
    expected[::2, ::-1].flat[1] = 99
    expected.flat[5] += 1
    total += expected[:, ::2].sum() - expected[:, 1].sum()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(out[0], total)


def test_eight_dimensions():
    """Indices, views, strides and reductions of arrays of eight dimensions."""

    @cuda.jit
    def kernel(a, o):
        o[0] = a[1, 0, 1, 0, 1, 0, 1, 0] + a.ndim
        o[1] = a[1][0].sum() + a[..., ::-1].T.strides[0]
        o[2] = a[1, ..., 0, 0, 0, 0, 0].max() + (a * 2)[1, 1, 1, 1, 1, 1, 1, 1]

    a, out = np.arange(256.0).reshape((2,) * 8), np.zeros(3)
    kernel[1, 1](a, out)
    assert out.tolist() == [
        a[1, 0, 1, 0, 1, 0, 1, 0] + 8, a[1][0].sum() - 8, a[1, ..., 0, 0, 0, 0, 0].max() + 510,
    ]  # fmt: skip


def named(x, o):
    y = x + 1
    o[0] = y[0]


def returned(x, o):
    def double(v):
        return v * 2

    o[:] = double(x)[1:]


@cuda.jit(device=True)
def first(v):
    return v[0]


def passed(x, o):
    o[0] = first(x + 1)


BAD = {
    "named": (named, "y would need memory"),
    "passed": (passed, "takes arrays"),
    "truth": (lambda x, o: 1 if x == x else 2, "no truth value"),
    "slice": (lambda x, o: (x + 1)[1:], "indexed by ints"),
    "dimensions": (lambda x, o: o.__setitem__, "no attribute"),
    "two ellipses": (lambda x, o: x[..., ...], "one ellipsis"),
    "too many": (lambda x, o: x[..., 1, 1], "2 indices"),
    "bitwise": (lambda x, o: (x & 1)[0], "is not supported"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_expressions(name):
    """What would need memory, or NumPy refuses, is a CompileError."""
    function, words = BAD[name]

    @cuda.jit
    def kernel(x, o):
        function(x, o)

    with pytest.raises(CompileError, match=words):
        kernel[1, 1](np.ones(4), np.ones(4))
