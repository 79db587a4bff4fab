"""Values beyond real numbers: complex numbers, records, named tuples, dataclasses, enums."""

from __future__ import annotations

import cmath
import dataclasses
import enum
from typing import NamedTuple

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError

Z = np.array([1.5 - 2j, -0.5 + 0.25j, 3 + 0j, -2j, -1 - 1j, 0.75 + 4j])


def each(function, columns, out):
    """The results of *function* in a kernel, element by element."""
    results = np.zeros(len(columns[0]), out)

    if len(columns) == 1:

        @cuda.jit(fma=False)
        def kernel(a, o):
            i = cuda.grid(1)
            if i < o.size:
                o[i] = function(a[i])
    else:

        @cuda.jit(fma=False)
        def kernel(a, b, o):
            i = cuda.grid(1)
            if i < o.size:
                o[i] = function(a[i], b[i])

    kernel[1, 64](*columns, results)
    return results


ARITHMETIC = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
    lambda a, b: a * 2 + b * 1.5, lambda a, b: -a + 1j * b, lambda a, b: a.conjugate() * b.real,
    lambda a, b: (a == b) + 2 * (a != b), lambda a, b: a.imag - abs(b), lambda a, b: a**b,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("index", range(len(ARITHMETIC)))
def test_complex_arithmetic(index, dtype):
    """The operators, parts and absolute value agree with NumPy's."""
    a, b = (np.ascontiguousarray(v.ravel()).astype(dtype) for v in np.meshgrid(Z, Z))
    function = ARITHMETIC[index]
    expected = np.array([function(x, y) for x, y in zip(a, b, strict=True)])
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(each(function, [a, b], "c16"), expected, rtol=32 * eps)


FUNCTIONS = [
    cmath.sqrt, cmath.exp, cmath.log, cmath.log10, cmath.sin, cmath.cos, cmath.tan,
    cmath.sinh, cmath.cosh, cmath.tanh, cmath.phase, abs,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_cmath(function):
    """The functions of cmath agree with the host's."""
    expected = np.array([function(complex(z)) for z in Z])
    np.testing.assert_allclose(each(lambda z: function(z), [Z], "c16"), expected, rtol=1e-14)


def test_complex_constructors_and_arguments():
    """complex(re, im), np.complex64(x), literals, and complex scalars as arguments."""

    @cuda.jit
    def kernel(o, z, w):
        o[0] = complex(1.5, z.real)
        o[1] = np.complex64(2) * w
        o[2] = 3j + z
        r, phi = cmath.polar(z)
        o[3] = cmath.rect(r, phi)

    out = np.zeros(4, np.complex128)
    z, w = 2 - 1j, np.complex64(1 + 1j)
    kernel[1, 1](out, z, w)
    np.testing.assert_allclose(out, [1.5 + 2j, 2 + 2j, 2 + 2j, z], rtol=1e-6)


FIELDS = [("a", "i4"), ("x", "f8"), ("flag", "?"), ("inner", [("u", "u2"), ("v", "f4", (3,))])]
PACKED = np.dtype(FIELDS)
ALIGNED = np.dtype(
    [("a", "i4"), ("x", "f8"), ("inner", np.dtype([("u", "u2"), ("v", "f4", (3,))], align=True))],
    align=True,
)


@pytest.mark.parametrize("dtype", [PACKED, ALIGNED], ids=["packed", "aligned"])
def test_record_arrays(dtype):
    """Fields by attribute and item, nested, with arrays in them; columns; whole records."""

    @cuda.jit
    def kernel(r, o):
        i = cuda.grid(1)
        if i < r.size:
            o[i] = r[i].a * 10 + r[i]["x"] + r[i].inner.u + r[i].inner.v[1]
            r[i].x = i + 0.5
            r[i]["a"] += 1
            r[i].inner.v[2] = i
            r.a[i] += 100
            if i == 2:
                r[0] = r[2]

    r = np.zeros(4, dtype)
    r["a"], r["x"], r["inner"]["u"] = np.arange(4), np.arange(4) / 4, 7
    r["inner"]["v"] = np.arange(12).reshape(4, 3)
    before, out = r.copy(), np.zeros(4)
    kernel[1, 4](r, out)
    expected = before["a"] * 10 + before["x"] + 7 + before["inner"]["v"][:, 1]
    np.testing.assert_array_equal(out, expected)
    assert r["a"].tolist()[1:] == [102, 103, 104]
    assert r["x"].tolist()[1:] == [1.5, 2.5, 3.5]
    assert r["inner"]["v"][1:, 2].tolist() == [1, 2, 3]


def test_a_record_as_an_argument():
    """One record is copied in and back."""

    @cuda.jit
    def kernel(r, o):
        o[0] = r.x + r["inner"]["u"]
        r.a = 42

    r = np.zeros(1, PACKED)
    r["x"], r["inner"]["u"] = 1.5, 3
    record, out = r[0], np.zeros(1)
    kernel[1, 1](record, out)
    assert out[0] == 4.5
    assert record["a"] == 42


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Grid:
    origin: Point
    values: np.ndarray
    step: float = 0.5


def test_named_tuples_and_dataclasses():
    """As arguments, made in the kernel, returned; fields by name, items by index."""

    @cuda.jit(device=True)
    def move(p, d):
        return Point(p.x + d, p.y - d)

    @cuda.jit
    def kernel(p, g, o):
        q = move(p, 1)
        o[0] = q.x * 10 + q.y + len(q)
        x, y = g.origin
        o[1] = x + y * g.step + g.values[2] + g.origin[1]
        g.values[0] = 9

    values, out = np.arange(4.0), np.zeros(2)
    kernel[1, 1](Point(2, 3.5), Grid(Point(1, 2), values), out)
    assert out.tolist() == [32.5 + 2, 1 + 1 + 2 + 2]
    assert values[0] == 9


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Level(enum.IntEnum):
    LOW = 3
    HIGH = 5


def test_enums_are_constants():
    """Members compare by identity; IntEnum members are ints."""
    chosen = Color.GREEN

    @cuda.jit
    def kernel(o, level):
        o[0] = 1 if chosen is Color.GREEN else 2
        o[1] = Level.HIGH + Level.LOW.value
        o[2] = level == Level.LOW
        o[3] = chosen.value

    out = np.zeros(4)
    kernel[1, 1](out, Level.LOW)
    assert out.tolist() == [1, 8, 1, 2]


def test_strings_choose_code():
    """A constant string is compared while compiling."""

    @cuda.jit(device=True)
    def apply(x, mode):
        if mode == "double":
            return x * 2
        return x

    @cuda.jit
    def kernel(o):
        o[0] = apply(3, "double") + apply(1, mode="keep")

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 7


BAD = {
    "no such field": (lambda r: r[0].zzz, "has no attribute 'zzz'"),
    "no such item": (lambda r: r[0]["zzz"], "is no field"),
    "record as number": (lambda r: r[0] + 1, "is not supported"),
    "number to record": (lambda r: r.__setitem__, "has no attribute"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_uses_of_records(name):
    """Each a CompileError that names what is wrong."""
    function, words = BAD[name]

    @cuda.jit
    def kernel(r):
        function(r)

    with pytest.raises(CompileError, match=words):
        kernel[1, 1](np.zeros(1, PACKED))


def test_order_of_complex_numbers():
    """Complex numbers have no order."""

    @cuda.jit
    def kernel(z, o):
        o[0] = z[0] < z[1]

    with pytest.raises(CompileError, match="is not supported"):
        kernel[1, 1](Z, np.zeros(1))
