"""print in kernels: each type as Python shows it, separators, ends and formats."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError

GENERATORS = ["llvm", "nvvm"]


class Point(NamedTuple):
    """Two coordinates."""

    x: float
    y: int


@pytest.fixture
def printed(capfd):
    """What a kernel printed, once the host has waited for it."""

    def read() -> str:
        cuda.synchronize()
        ctypes.CDLL(None).fflush(None)
        return capfd.readouterr().out

    return read


VALUES = [
    True, np.int8(-128), np.uint8(255), np.int16(-300), np.uint16(65535), np.int32(-(2**31)),
    np.uint32(2**32 - 1), np.int64(-(2**63)), np.uint64(2**64 - 1), np.float16(0.5),
    np.float32(0.1), np.float64(0.1), 1e300, -7, float("inf"), float("nan"), None,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{type(v).__name__} {v}")
def test_each_scalar_prints_as_python_does(value, printed):
    """Between two strings, with a percent sign that printf must not take."""

    @cuda.jit
    def kernel(v):
        print("50%", v, "end")

    kernel[1, 1](value)
    assert printed() == f"50% {value!s} end\n"


@pytest.mark.parametrize("codegen", GENERATORS)
def test_many_values_of_different_sizes_in_one_line(codegen, printed):
    """32-bit and 64-bit arguments alternate, so that each must be aligned."""

    @cuda.jit(codegen=codegen)
    def kernel(a, b, c, d):
        print(a, b, c, d, a, d, c, b, sep="|", end=";\n")

    kernel[1, 1](np.int32(1), np.float64(2.5), np.uint8(3), np.int64(-4))
    assert printed() == "1|2.5|3|-4|1|-4|3|2.5;\n"


def test_tuples_complex_numbers_and_structures(printed):
    """Nested tuples, a string in a tuple in quotes, a named tuple with its names."""

    @cuda.jit
    def kernel(t, z, p):
        print(t, z, (t[0],), ("s", t[1]), p)
        print()
        print("a", "b", sep="", end="")
        print(None, 1.5, flush=True)

    kernel[1, 1]((1, (2.5, False)), 1 - 2j, Point(0.25, 4))
    assert printed() == (
        "(1, (2.5, False)) (1-2j) (1,) ('s', (2.5, False)) Point(x=0.25, y=4)\n\nabNone 1.5\n"
    )


INTEGER_SPECS = ["d", "5", "5d", "<5", ">6", "05", "+d", " d", "x", "X", "08x", "#x", "8.3f", "e"]
FLOAT_SPECS = [".2f", "10.3f", "<10.3f", "+.1e", "g", ".3g", "010.2f", "E", "F", "012.4e"]


@pytest.mark.parametrize("spec", INTEGER_SPECS)
def test_integer_formats_are_pythons(spec, printed):
    """Positive and negative, of 32 and 64 bits."""

    @cuda.jit
    def kernel(a, b):
        print(f"[{a:{spec}}|{b:{spec}}]")

    kernel[1, 1](np.int32(1234), np.int64(-77))
    assert printed() == f"[{1234:{spec}}|{-77:{spec}}]\n"


@pytest.mark.parametrize("spec", FLOAT_SPECS)
def test_float_formats_are_pythons(spec, printed):
    """Both precisions, large and small."""

    @cuda.jit
    def kernel(a, b):
        print(f"{a:{spec}} and {b:{spec}}")

    a, b = np.float32(-1.5), 31415.9265358979
    kernel[1, 1](a, b)
    assert printed() == f"{a:{spec}} and {b:{spec}}\n"


def test_conversions_and_constants_in_f_strings(printed):
    """!r quotes a string; constants are formatted while compiling; fields nest in tuples."""

    @cuda.jit
    def kernel(n):
        name = "k"
        print(f"{name!r:>5}{n!s}{3.14159:.3f} {n}%", f"{(n, name)}")

    kernel[1, 1](7)
    assert printed() == "  'k'73.142 7% (7, 'k')\n"


def test_lines_of_threads_stay_whole(printed):
    """Every thread prints one line, none torn apart."""

    @cuda.jit
    def kernel():
        print("thread", cuda.threadIdx.x, "of", cuda.blockDim.x)

    kernel[1, 64]()
    assert sorted(printed().splitlines()) == sorted(f"thread {i} of 64" for i in range(64))


@cuda.jit
def prints_array(a):
    print(a)


@cuda.jit
def prints_centred(a):
    print(f"{a[0]:^9}")


@cuda.jit
def prints_too_much(a):
    t = (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8])
    print(t, t, t, t)


@cuda.jit
def prints_float_as_hexadecimal(a):
    print(f"{a[0]:x}")


@cuda.jit
def separates_by_number(a):
    print(a[0], sep=a[0])


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (prints_array, "cannot show float64"),
        (prints_centred, r"no format '\^9'"),
        (prints_too_much, "36 numbers, at most 32"),
        (prints_float_as_hexadecimal, "for integers, not for float64"),
        (separates_by_number, "sep must be a constant string"),
    ],
)
def test_what_print_cannot_do_is_refused(kernel, text):
    """Each with a message that says what it can."""
    with pytest.raises(CompileError, match=text) as caught:
        kernel[1, 1](np.zeros(16))
    assert caught.value.line > kernel.pyfunc.__code__.co_firstlineno
