"""Arrays that a kernel's source names: constants of the host, and arrays of the device."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError, types

TABLE = np.array([[1.5, -2, 3], [4, 5, 6.25]])
BYTES = np.arange(256, dtype=np.uint8)[::-1]
LARGE = np.arange(40000, dtype=np.float32)
PAIR = (np.array([10, 20, 30]), np.array([True, False, True]))
RECORDS = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
COMPLEX = np.array([1 + 2j, 3 - 4j])


def test_arrays_of_the_host_are_constants():
    """Any dtype and strides; in tuples; shapes are constants; also larger than constant memory."""

    @cuda.jit
    def kernel(o):
        i = cuda.threadIdx.x
        s = cuda.shared.array(TABLE.shape, TABLE.dtype)
        s[1, 2] = TABLE[1, 2]
        o[0] = TABLE[i, 1] + TABLE.sum() + len(TABLE) + s.size
        o[1] = BYTES[3] + PAIR[0][i + 1] + PAIR[1][i]
        o[2] = LARGE[i + 39999] + LARGE.size
        o[3] = RECORDS[1].a + RECORDS["b"][0] + COMPLEX[1].imag
        total = 0
        for row in TABLE:
            for value in row:
                total += value
        o[4] = total + s[1, 2]

    out = np.zeros(5)
    kernel[1, 1](out)
    whole = TABLE.sum()
    assert out.tolist() == [
        -2 + whole + 2 + 6, 252 + 20 + 1, 39999 + 40000, 3 + 2.5 - 4, whole + 6.25,
    ]  # fmt: skip


def test_small_arrays_lie_in_constant_memory():
    """The PTX has them in .const, large ones in .global, each once."""

    def kernel(o):
        o[0] = TABLE[o.size - 1, 0] + TABLE[0, o.size - 1] + LARGE[o.size]

    ptx, _ = cuda.compile_ptx(kernel, types.void(types.float64[::1]), cc=(8, 0))
    assert ptx.count(".const .align") == 1
    assert "ld.const" in ptx
    assert ".global .align" in ptx


def test_constants_are_frozen():
    """A kernel keeps the values that it was compiled with; factories make their own."""

    def make(values):
        @cuda.jit
        def kernel(o):
            o[0] = values[0]

        return kernel

    first, second = np.array([2.0]), np.array([3.0])
    one, two = make(first), make(second)
    out = np.zeros(1)
    for kernel, expected in ((one, 2), (two, 3), (one, 2)):
        kernel[1, 1](out)
        first[0] = 99
        assert out[0] == expected


def test_arrays_of_the_device_are_captured_by_reference():
    """What the kernel writes is there afterwards, and what others write is seen."""
    data = cuda.to_device(np.arange(6.0).reshape(2, 3))
    column = data.T

    @cuda.jit
    def kernel(o):
        i = cuda.threadIdx.x
        o[i] = data[1, i] + column[i, 0]
        data[0, i] = -1

    out = np.zeros(3)
    kernel[1, 3](out)
    assert out.tolist() == [3 + 0, 4 + 1, 5 + 2]
    assert data.copy_to_host()[0].tolist() == [-1, -1, -1]
    data.copy_to_device(np.full((2, 3), 7.0))
    kernel[1, 3](out)
    assert out.tolist() == [14, 14, 14]


@pytest.mark.parametrize(
    ("captured", "function", "words"),
    [
        (TABLE, lambda a: a.__setitem__, "has no attribute"),
        (np.array(["a"]), lambda a: a[0], "no element type"),
        (np.array([None]), lambda a: a[0], "no element type"),
    ],
)
def test_bad_captures(captured, function, words):
    """Elements that kernels lack are refused."""

    @cuda.jit
    def kernel(o):
        o[0] = function(captured)

    with pytest.raises(CompileError, match=words):
        kernel[1, 1](np.zeros(1))


def test_constants_are_read_only():
    """An assignment to an element of a constant is refused."""

    @cuda.jit
    def kernel(o):
        TABLE[0, 0] = o[0]

    with pytest.raises(CompileError, match="read-only"):
        kernel[1, 1](np.zeros(1))
