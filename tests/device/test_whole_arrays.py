"""reduce, vectorize and guvectorize: the same as NumPy, of host and device arrays."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import compiler as cuda

RNG = np.random.default_rng(12)


@cuda.reduce
def total(a, b):
    return a + b


largest = cuda.Reduce(lambda a, b: a if a > b else b)


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 5000, 600_000])
@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.complex128])
def test_sums_of_every_length(size, dtype):
    """Whole numbers, so that the order of the additions does not show."""
    a = RNG.integers(-50, 50, size).astype(dtype)
    assert total(a) == a.sum()
    assert total(cuda.to_device(a), init=7) == a.sum() + 7
    assert total(a, size=size // 2) == a[: size // 2].sum()


def test_reductions_by_other_functions():
    """A lambda, a device function, and a result that stays on the device."""

    @cuda.jit(device=True)
    def either(a, b):
        return a | b

    a = RNG.integers(-(2**40), 2**40, 1000)
    assert largest(a, init=a[0]) == a.max()
    assert cuda.Reduce(either)(a) == functools.reduce(operator.or_, a.tolist())
    result = cuda.to_device(np.zeros(2, a.dtype))
    assert total(a, res=result) is None
    np.testing.assert_array_equal(result.copy_to_host(), [a.sum(), 0])
    assert total(a[:0], init=5) == 5


def test_bad_reductions_are_refused():
    """Two dimensions, and more elements than there are."""
    with pytest.raises(ValueError, match="2 dimensions"):
        total(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="has 3 elements"):
        total(np.zeros(3), size=4)


@cuda.vectorize(["int64(int64, int64)", "float32(float32, float32)", "float64(float64, float64)"])
def distance(a, b):
    return abs(a - b)


@cuda.vectorize
def polynomial(x, c0, c1):
    return c0 + c1 * x * x


def test_vectorize_chooses_the_first_signature_that_fits():
    """int32 goes to int64, float32 stays, a mixture goes to float64."""
    for kind, other, result in (
        (np.int32, np.int64, np.int64), (np.float32, np.float32, np.float32),
        (np.float32, np.float64, np.float64), (np.int64, np.float32, np.float64),
    ):  # fmt: skip
        a, b = np.arange(300).astype(kind), np.full(300, 7).astype(other)
        got = distance(a, b)
        assert got.dtype == result
        np.testing.assert_array_equal(got, np.abs(a.astype(result) - b.astype(result)))


def test_vectorize_broadcasts():
    """Scalars, rows and columns, empty arrays; scalars alone give a scalar."""
    a, b = RNG.normal(size=(3, 1, 5)), RNG.normal(size=(4, 1))
    np.testing.assert_array_equal(distance(a, b), np.abs(a - b))
    np.testing.assert_allclose(polynomial(a, 2.0, np.float64(3)), 2 + 3 * a * a, rtol=1e-14)
    np.testing.assert_array_equal(distance(a.T, 1.0), np.abs(a.T - 1))
    assert distance(2, 5) == 3 and np.ndim(distance(2, 5)) == 0
    assert distance(a[:0], b).shape == (0, 4, 5)
    with pytest.raises(ValueError, match="broadcast"):
        distance(np.zeros(3), np.zeros(4))


def test_vectorize_on_the_device():
    """Device arrays in give device arrays out; out= takes either kind."""
    a = RNG.normal(size=(6, 7))
    on_device = cuda.to_device(a)
    result = distance(on_device, on_device)
    assert isinstance(result, cuda.DeviceArray) and not result.copy_to_host().any()
    host = np.empty_like(a)
    assert distance(on_device, 1.0, out=host) is host
    np.testing.assert_array_equal(host, np.abs(a - 1))
    distance(a, 2.0, out=on_device)
    np.testing.assert_array_equal(on_device.copy_to_host(), np.abs(a - 2))


def test_vectorized_functions_reduce():
    """By the function itself."""

    @cuda.vectorize(["int64(int64, int64)"])
    def plus(a, b):
        return a + b

    assert plus.reduce(np.arange(1000)) == 499500


def test_no_signature_takes_complex_numbers():
    """The error names what was given and what is declared."""
    with pytest.raises(TypeError, match=r"no match for .*complex128, float64"):
        distance(np.zeros(3, complex), np.zeros(3))


@cuda.guvectorize(["void(float64[:,:], float64[:,:], float64[:,:])"], "(m,n),(n,p)->(m,p)")
def product(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


@cuda.guvectorize(["void(int64[:], int64, int64[:], int64[:])"], "(n),()->(n),()")
def shifted(a, by, moved, count):
    count[0] = 0
    for i in range(a.size):
        moved[i] = a[i] + by
        count[0] += a[i] > 0


def test_guvectorize_loops_over_the_first_dimensions():
    """Loop dimensions are broadcast; results can be given."""
    a, b = RNG.integers(-9, 9, (5, 1, 2, 3)) * 1.0, RNG.integers(-9, 9, (4, 3, 6)) * 1.0
    np.testing.assert_array_equal(product(a, b), a @ b)
    out = np.zeros((5, 4, 2, 6))
    assert product(a, b, out) is out
    np.testing.assert_array_equal(out, a @ b)
    on_device = product(cuda.to_device(a), b)
    np.testing.assert_array_equal(on_device.copy_to_host(), a @ b)


def test_guvectorize_with_scalars_and_two_results():
    """A scalar argument, and a result of one element."""
    a, by = RNG.integers(-9, 9, (4, 5)), np.array([1, 2, 3, 4])
    moved, count = shifted(a, by)
    np.testing.assert_array_equal(moved, a + by[:, None])
    np.testing.assert_array_equal(count, (a > 0).sum(1))


def test_shapes_that_do_not_fit_the_layout_are_refused():
    """The message names the dimension, or the layout."""
    with pytest.raises(ValueError, match="n is 3 and 4"):
        product(np.zeros((2, 3)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="too small"):
        product(np.zeros(3), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="is no layout"):
        cuda.guvectorize([], "m,n->m")(lambda a, b, c: None)
