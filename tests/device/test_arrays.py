"""What arrays do in kernels beyond indexing, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from tests.device.oracle import check

M = np.arange(24, dtype=np.float64).reshape(4, 6)


def run(function, *arrays):
    """Run *function* by one thread, as a kernel on copies, and by CPython; compare all arrays."""
    ours, theirs = [a.copy() for a in arrays], [a.copy() for a in arrays]
    cuda.jit(function)[1, 1](*ours)
    function(*theirs)
    for mine, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, expected)


def scalar(a, b):
    a[1:3, ::2] = 7
    a[-1] = b[0, 0]
    a[:, 0] = 1.5


def rows(a, b):
    a[1:3] = b[2]
    a[0, ::-1] = b[1]


def blocks(a, b):
    a[0:2, 0:3] = b[2:4, ::2]
    a[2:, 1:2] = b[0:2, 3:4]


def broadcast(a, b):
    a[:, :] = b[:1]
    a[1:, 2:4] = b[1:, 5:6]


def overlapping(a, b):
    a[0, 1:] = a[0, :-1]
    a[1, :-1] = a[1, 1:]
    a[1:] = a[:-1]


def empty(a, b):
    a[2:2] = b[0]
    a[:, 4:2] = 3


def filled(a, b):
    a.fill(2.5)
    a[1].fill(b[1, 1])


@pytest.mark.parametrize(
    "function",
    [scalar, rows, blocks, broadcast, overlapping, empty, filled],
    ids=lambda f: f.__name__,
)
def test_slice_assignment(function):
    """Scalars, rows and blocks, broadcast, overlapping and empty."""
    run(function, M, M * 10 + 1)


def reductions(a, o):
    o[0] = a.sum()
    o[1] = np.sum(a[1])
    o[2] = a.min() + 100 * np.max(a[:, 1:3])
    o[3] = a[0].argmin() + 10 * np.argmax(a[2])
    o[4] = a.mean()
    o[5] = a.any() + 2 * a.all() + 4 * np.any(a[0, :1])
    o[6] = a[1, 1:4].prod()
    o[7] = len(a[0]) + a[:, ::-1].sum()
    o[8] = sum(a[0]) + min(a[1]) + max(a[2])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8", "u4"])
def test_reductions_by_one_thread(dtype):
    """Methods, NumPy functions and builtins agree with NumPy on small numbers."""
    a = (np.arange(24).reshape(4, 6) * 7 % 11).astype(dtype)
    run(reductions, a, np.zeros(9))


def test_reductions_of_nan():
    """min and max give nan where there is one, argmin and argmax its place."""

    def kernel(a, o):
        o[0], o[1], o[2], o[3] = a.min(), a.max(), a.argmin(), a.argmax()

    for values in ([1, np.nan, 0], [np.nan, 1], [3, 1, np.nan]):
        run(kernel, np.array(values), np.zeros(4))


def views(a, o):
    flat = a.ravel()
    o[0] = flat[7] + a.reshape(6, 4)[1, 2] + a.reshape((2, -1))[1, 3] + a.reshape(24)[5]
    o[1] = a.reshape(2, 3, 4)[1, 2, 3] + a.flat[9] + a.nbytes
    a.reshape(3, 8)[2, 7] = -1
    for x in a.flat:
        o[2] += x


def test_reshaped_views():
    """reshape, ravel and flat share the elements."""
    run(views, M, np.zeros(3))


def test_views_of_other_types():
    """view reads the same bytes as another type; the last length follows."""

    def kernel(a, o):
        bits = a.view(np.int32)
        o[0] = bits.shape[0]
        o[1] = bits[3]
        bytes_ = a.view(np.uint8)
        o[2] = bytes_[5]
        o[3] = bytes_.size

    run(kernel, np.arange(4) + 0.3, np.zeros(4))


UFUNCS = [
    np.add, np.subtract, np.multiply, np.divide, np.minimum, np.maximum, np.fmin, np.fmax,
    np.less, np.greater_equal, np.equal, np.logical_and, np.logical_xor, np.copysign,
]  # fmt: skip
EDGES = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 3.0])


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_ufuncs_of_two_scalars(ufunc, dtype):
    """NumPy's functions on scalars, at special values."""
    x, y = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(EDGES, EDGES))
    out = "b1" if ufunc.types[0].endswith("?") else dtype
    check(lambda a, b: ufunc(a, b), [x.astype(dtype), y.astype(dtype)], out)


@pytest.mark.parametrize(
    "ufunc", [np.sign, np.square, np.negative, np.absolute, np.signbit, np.isnan, np.floor, np.rint]
)
def test_ufuncs_of_one_scalar(ufunc):
    """Likewise of one."""
    check(lambda a: ufunc(a), [EDGES], "f8")


def test_where_and_clip():
    """np.where selects, np.clip bounds."""
    x, y = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(EDGES[:6], EDGES[:6]))
    check(lambda a, b: np.where(a > b, a, b), [x, y], "f8")
    check(lambda a, b: np.clip(a, -1.0, 2.0) + np.where(b > 0, 1, 2), [x, y], "f8")


def increment(out, x):
    for i in range(out.size):
        out[i] = x[i] + 1


def test_an_array_passed_twice():
    """Both parameters are the same memory, whichever of them the kernel writes."""
    for pair in (lambda a: (a, a), lambda a: (a, a[:]), lambda a: (a[::2], a[::2])):
        ours, theirs = np.arange(6.0), np.arange(6.0)
        cuda.jit(increment)[1, 1](*pair(ours))
        increment(*pair(theirs))
        np.testing.assert_array_equal(ours, theirs)


def test_arrays_that_overlap():
    """Each is a copy while the kernel runs; what it wrote to either comes back."""
    array = np.arange(8.0)
    cuda.jit(increment)[1, 1](array[:4], array[2:6])
    assert array.tolist() == [3, 4, 5, 6, 4, 5, 6, 7]
    array = np.arange(8.0)
    cuda.jit(increment)[1, 1](array[2:6], array[:4])
    assert array.tolist() == [0, 1, 1, 2, 3, 4, 6, 7]
