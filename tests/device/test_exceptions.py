"""Exceptions that kernels raise: what the host gets, and that the kernel goes on to work."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError
from compiler.dispatch.failures import KernelError

GENERATORS = ["llvm", "nvvm"]


class OwnError(ValueError):
    """An exception of the user's."""


def launched(kernel, *args, grid=1, block=1):
    """What the launch raises."""
    with pytest.raises(Exception) as caught:
        kernel[grid, block](*args)
    return caught.value


@pytest.mark.parametrize("codegen", GENERATORS)
def test_an_exception_names_class_message_values_line_block_and_thread(codegen):
    """All of it arrives, and the kernel runs again afterwards."""

    @cuda.jit(debug=True, codegen=codegen)
    def kernel(a, out):
        i = cuda.grid(1)
        if a[i] < 0:
            raise OwnError(f"a[{i}] is {a[i]:.2f}", i, (a[i], True), None)
        out[i] = a[i] + 1

    a, out = np.arange(8.0), np.zeros(8)
    a[5] = -2.5
    error = launched(kernel, a, out, grid=2, block=4)
    assert type(error) is OwnError
    assert error.args[0].startswith("a[5] is -2.50\n")
    assert error.args[1:] == (5, (-2.5, True), None)
    cause = error.__cause__
    assert isinstance(cause, KernelError)
    assert (cause.block, cause.thread) == ((1, 0, 0), (1, 0, 0))
    line = kernel.pyfunc.__code__.co_firstlineno + 4
    assert cause.place == f"{__file__}:{line}, in kernel"
    assert cause.place in error.args[0]
    a[5] = 5
    kernel[2, 4](a, out)
    np.testing.assert_array_equal(out, a + 1)


def test_device_functions_raise_and_assert():
    """The place is that in the device function; it returns a value on other paths."""

    @cuda.jit(device=True)
    def root(x):
        assert x < 100, "too large"
        if x < 0:
            raise ValueError("negative")
        return x / 3

    @cuda.jit(debug=True)
    def kernel(a):
        a[0] = root(a[0])

    a = np.array([9.0])
    kernel[1, 1](a)
    assert a[0] == 3
    error = launched(kernel, np.array([-1.0]))
    assert type(error) is ValueError and "negative" in str(error) and "in root" in str(error)
    error = launched(kernel, np.array([100.0]))
    assert type(error) is AssertionError and str(error).startswith("too large\n")


@pytest.mark.parametrize("form", ["class", "empty", "number"])
def test_every_form_of_raise(form):
    """A class, a call without arguments, and one with numbers alone."""

    @cuda.jit(debug=True)
    def kernel(x):
        if form == "class":
            raise KeyError
        if form == "empty":
            raise OwnError()  # noqa: RSE102
        raise IndexError(x, np.float32(0.5), 1 + 2j)

    error = launched(kernel, np.uint64(2**64 - 1))
    assert type(error) is {"class": KeyError, "empty": OwnError, "number": IndexError}[form]
    if form == "number":
        assert error.args == (2**64 - 1, 0.5, 1 + 2j)
    assert isinstance(error.__cause__, KernelError)


def test_division_by_zero_in_debug_mode():
    """Both // and % of integers; without debug the answer is 0."""

    def kernel(a, b, out):
        out[0] = a // b if a > 0 else a % b

    out = np.ones(1, np.int64)
    checked = cuda.jit(debug=True)(kernel)
    for a in (5, -5):
        assert type(launched(checked, a, 0, out)) is ZeroDivisionError
    checked[1, 1](7, 2, out)
    assert out[0] == 3
    cuda.jit(kernel)[1, 1](5, 0, out)
    assert out[0] == 0


@pytest.mark.parametrize("codegen", GENERATORS)
def test_without_debug_a_raise_ends_the_thread_alone(codegen):
    """The other threads go on over a barrier; assertions are not compiled."""

    @cuda.jit(codegen=codegen)
    def kernel(out):
        i = cuda.threadIdx.x
        assert i < 0, "never"
        if i == 3:
            raise ValueError("three")
        cuda.syncthreads()
        out[i] = i + 1

    out = np.zeros(8)
    kernel[1, 8](out)
    np.testing.assert_array_equal(out, [1, 2, 3, 0, 5, 6, 7, 8])
    assert "atom" not in next(iter(kernel.inspect_ptx().values()))


@pytest.mark.parametrize("index", [4, -5, 100, np.uint64(2**63)])
def test_boundscheck_names_index_axis_size_and_thread(index):
    """Reads outside raise IndexError; the ends themselves are fine."""

    @cuda.jit(boundscheck=True)
    def kernel(m, i, out):
        if cuda.threadIdx.x == 2:
            out[0] = m[1, i]

    m, out = np.arange(8.0).reshape(2, 4), np.zeros(1)
    for inside in (3, -4):
        kernel[1, 4](m, inside, out)
        assert out[0] == m[1, inside]
    error = launched(kernel, m, index, out, block=4)
    assert type(error) is IndexError
    assert str(error).startswith(f"index {index} is out of bounds for axis 1 with size 4\n")
    assert error.__cause__.thread == (2, 0, 0)


def test_boundscheck_of_stores_views_and_local_arrays():
    """A store, a row of a matrix, and an array of the thread's own."""

    @cuda.jit(boundscheck=True)
    def kernel(a, which, i):
        own = cuda.local.array(3, cuda.float32)
        if which == 0:
            a[i, 0] = 1
        elif which == 1:
            a[0, 0] = a[i][0]
        else:
            own[i] = 2

    a = np.zeros((3, 2))
    for which, size in ((0, 3), (1, 3), (2, 3)):
        error = launched(kernel, a, which, 3)
        assert str(error).startswith(f"index 3 is out of bounds for axis 0 with size {size}")
    kernel[1, 1](a, 0, 2)
    assert a[2, 0] == 1


def test_what_cannot_be_raised_is_refused():
    """Numbers, bare raise and arrays as arguments, each with the line."""

    @cuda.jit(debug=True)
    def number(a):
        raise 3  # noqa: B016

    @cuda.jit(debug=True)
    def bare(a):
        raise  # noqa: PLE0704

    @cuda.jit(debug=True)
    def array(a):
        raise ValueError(a)

    for kernel, text in ((number, "no exception class"), (bare, "name it"), (array, "hold")):
        with pytest.raises(CompileError, match=text):
            kernel[1, 1](np.zeros(1))
