"""Elements beyond numbers: bfloat16, dates and durations, short vectors, pointers, enums."""

from __future__ import annotations

import enum
import itertools
import operator

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError, types


def test_bfloat16_is_the_upper_half_of_float32():
    """Stores round to even, nan stays nan, and arithmetic is that of float32."""

    @cuda.jit
    def kernel(x, h, o, p):
        i = cuda.grid(1)
        if i < x.size:
            half = h.view(cuda.bfloat16)
            half[i] = x[i]
            o[i] = half[i]
            p[i] = half[i] * 3 + cuda.bfloat16(x[i])

    edges = [1.0, 1 / 3, -2.71828, 3.0e38, 3.4e38, np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, 257.0]
    x = np.array([*edges, *np.linspace(-4, 4, 300)], "f4")
    half, out, product = np.zeros(x.size, "u2"), np.zeros_like(x), np.zeros_like(x)
    kernel[(x.size + 127) // 128, 128](x, half, out, product)
    with np.errstate(over="ignore"):
        expected = np.array([cuda.bfloat16(v) for v in x])
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(half.astype("u4") << 16, expected.view("u4"))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(product, expected * np.float32(3) + expected)


def test_bfloat16_shared_arrays_functions_and_branches():
    """Shared arrays hold it, functions of math take it, and it joins with float32."""

    @cuda.jit
    def kernel(o):
        s = cuda.shared.array(4, cuda.bfloat16)
        s[0] = 2.0
        s[1] = int(s[0]) + 1
        total = s[0]
        if s[1] > 2.5:
            total = np.float32(0.1)
        o[0], o[1], o[2], o[3] = total, max(s[0], s[1]), np.sqrt(s[0]), s[0] ** 2

    out = np.zeros(4, "f4")
    kernel[1, 1](out)
    np.testing.assert_array_equal(out, np.array([0.1, 3, 2**0.5, 4], "f4"))


UNITS = ["D", "h", "s", "25s", "ms", "us", "ns"]
DURATIONS = [7, -7, 2, 0, 61, -1000, "NaT"]
BINARY = [
    operator.add, operator.sub, operator.truediv, operator.floordiv, operator.mod, operator.lt,
    operator.le, operator.eq, operator.ne, operator.gt, operator.ge, np.minimum, np.maximum, min,
    max,
]  # fmt: skip


def run(function, columns, dtype):
    """What a kernel gives for each row of columns."""
    out = np.zeros(len(columns[0]), dtype)
    kernel = kernel_of(function, len(columns))
    kernel[(out.size + 63) // 64, 64](*columns, out)
    return out


def kernel_of(function, count):
    """A kernel that calls *function* for each element."""

    @cuda.jit
    def one(a, o):
        i = cuda.grid(1)
        if i < o.size:
            o[i] = function(a[i])

    @cuda.jit
    def two(a, b, o):
        i = cuda.grid(1)
        if i < o.size:
            o[i] = function(a[i], b[i])

    return one if count == 1 else two


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def compare(function, columns):
    """Assert that the kernel gives what NumPy gives scalar by scalar."""
    expected = np.array([function(*row) for row in zip(*columns, strict=True)])
    found = run(function, columns, expected.dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("units", [("s", "s"), ("ms", "s"), ("D", "h"), ("25s", "ns")])
def test_durations(function, units):
    """Arithmetic and comparisons of timedelta64 in two units, with NaT, zero and signs."""
    left, right = (np.array(DURATIONS, f"m8[{unit}]") for unit in units)
    pairs = list(itertools.product(left, right))
    if function in (operator.floordiv, operator.mod):
        pairs = [(a, b) for a, b in pairs if not np.isnat(a) and not np.isnat(b) and b]
    if function in (min, max):
        pairs = [(a, b.astype(left.dtype)) for a, b in pairs if units[0] == units[1]]
        right = left
    if not pairs:
        return
    a, b = zip(*pairs, strict=True)
    compare(function, [np.array(a, left.dtype), np.array(b, right.dtype)])


# NumPy is to forget durations without a unit, such as that of a bare number.
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:The 'generic' unit")
def test_durations_and_numbers():
    """Durations times, over, plus ints and floats; fractions are cut."""
    whole, real = np.array([3, -2, 5, 1]), np.array([1.9, -0.5, 3.25, np.nan])
    durations = np.array([7, -7, 61, "NaT"], "m8[s]")
    for function in (operator.mul, operator.truediv, operator.floordiv):
        for numbers in (whole, real):
            a, b = zip(*itertools.product(durations, numbers), strict=True)
            compare(function, [np.array(a), np.array(b)])
    compare(lambda a, b: b * a, [durations, whole])
    compare(lambda a, b: a + b, [durations, whole])
    compare(lambda a: a < 5, [durations])
    compare(lambda a: abs(-a) + a, [durations])
    compare(lambda a: np.isnat(a), [durations])
    compare(lambda a: 1 if a else 0, [np.array([0, 1, "NaT"], "m8[s]")])


@pytest.mark.filterwarnings("ignore:The 'generic' unit")
def test_dates():
    """Dates minus dates are durations, in the finer unit; dates and durations add."""
    days = np.array(["2020-01-02", "2020-03-01", "1969-12-31", "NaT"], "M8[D]")
    others = np.array(["2020-01-01", "2020-02-01", "2000-01-01", "2020-01-01"], "M8[D]")
    seconds = others.astype("M8[s]") + np.timedelta64(5, "s")
    compare(operator.sub, [days, others])
    compare(operator.sub, [days, seconds])
    compare(operator.lt, [days, seconds])
    compare(lambda a: a + np.timedelta64(36, "h"), [days])
    compare(lambda a: np.timedelta64(2, "D") + a - 1, [days])
    compare(lambda a: a == np.datetime64("2020-01-02"), [days])
    compare(lambda a: a != a, [days])
    compare(lambda a: np.isnat(a), [days])
    compare(lambda a: a.astype("M8[h]"), [days])


def test_counts_of_dates():
    """np.int64 of a nanosecond date, stores in other units, and units made from ints."""
    moment = np.array(["2020-01-01T00:00:00.000000001", "NaT"], "M8[ns]")
    assert run(lambda a: np.int64(a), [moment], "i8").tolist() == [1577836800000000001, -(2**63)]
    early = np.array([-61, 61, "NaT"], "m8[s]")
    np.testing.assert_array_equal(run(lambda a: a, [early], "m8[m]"), early.astype("m8[m]"))
    np.testing.assert_array_equal(run(lambda a: a, [early], "m8[us]"), early.astype("m8[us]"))
    counts = np.array([3, -4])
    made = run(lambda a: np.timedelta64(a, "m"), [counts], "m8[s]")
    np.testing.assert_array_equal(made, counts * np.timedelta64(60, "s"))


def test_stores_of_counts():
    """An int stored in an array of dates or durations counts their unit."""

    @cuda.jit
    def kernel(t, d):
        t[0] = 5
        t[1] = len(t) + 1
        d[0] = np.int64(7)

    durations, dates = np.zeros(2, "m8[ms]"), np.zeros(1, "M8[D]")
    kernel[1, 1](durations, dates)
    assert durations.astype("i8").tolist() == [5, 3]
    assert dates.astype("i8").tolist() == [7]


def test_dates_as_arguments():
    """Scalars are passed, converted to the unit of a signature, and refused where they cannot."""

    @cuda.jit("void(NPDatetime('ns'), int64[:])")
    def kernel(when, o):
        o[0] = np.int64(when)

    out = np.zeros(1, "i8")
    kernel[1, 1](np.datetime64("1970-01-02", "D"), out)
    assert out[0] == 86400 * 10**9
    with pytest.raises(TypeError, match=r"argument 0 \(when\): expected datetime64"):
        kernel[1, 1](np.timedelta64(1, "D"), out)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda d, t: d + d, "is not supported"),
        (lambda d, t: t * t, "is not supported"),
        (lambda d, t: t < d, "is not supported"),
        (lambda d, t: t + np.timedelta64(1, "M"), "no common unit"),
        (lambda d, t: np.int64(d.astype("M8[M]")), "do it on the host"),
        (lambda d, t: np.datetime64("never"), "datetime64"),
    ],
)
def test_bad_uses_of_dates(function, words):
    """What NumPy refuses, and what only the host can do."""
    day, hours = np.array(["2020-01-01"], "M8[D]"), np.array([5], "m8[h]")
    with pytest.raises(CompileError, match=words):
        kernel_of(function, 2)[1, 1](day, hours, np.zeros(1, "m8[s]"))


def test_vectors():
    """Made from numbers and vectors; components read and assigned; arithmetic by components."""

    @cuda.jit(fma=False)
    def kernel(x, o, p):
        i = cuda.grid(1)
        rows, results = x.view(cuda.float32x4), o.view(cuda.float32x4)
        v = rows[i, 0]
        v.x += 1
        v.w = v[1] * 2
        pair = cuda.float2(v.x, 0.5)
        w = cuda.float4(pair, v.y, 7)
        for _ in range(2):
            w.y = w.y + 1
        results[i, 0] = (v + w) * 2 - 0.5 / (w * w) + abs(-v)
        p[i, 0], p[i, 1], p[i, 2] = len(v), v == v, w.z != v.y

    x = np.arange(32, dtype="f4").reshape(8, 4)
    out, flags = np.zeros_like(x), np.zeros((8, 3), "i4")
    kernel[1, 8](x, out, flags)
    v = x.copy()
    v[:, 0] += 1
    v[:, 3] = v[:, 1] * 2
    w = np.stack([v[:, 0], np.full(8, 2.5, "f4"), v[:, 1], np.full(8, 7, "f4")], axis=1)
    half = np.float32(0.5)
    np.testing.assert_array_equal(out, (v + w) * 2 - half / (w * w) + np.abs(v))
    assert flags.tolist() == [[4, 1, 0]] * 8


def test_vectors_move_16_bytes_at_once():
    """An element of float32x4 is one load and one store of four words."""

    def kernel(x, o):
        i = cuda.grid(1)
        o[i] = x[i]

    vectors = cuda.float32x4[::1]
    ptx, _ = cuda.compile_ptx(kernel, types.void(vectors, vectors), cc=(8, 0))
    assert "ld.global" in ptx and ".v4." in ptx.split("ld.global", 1)[1].partition(";")[0]
    assert ".v4." in ptx.split("st.global", 1)[1].partition(";")[0]


def test_vectors_of_all_types_in_shared_memory_and_as_arguments():
    """Each of the types is stored in shared memory, read back, and passed by value."""
    for name in ("int8x4", "uint16x3", "int32x2", "int64x4", "float64x4", "uchar1", "longlong2"):
        ty = getattr(cuda, name)

        @cuda.jit
        def kernel(v, o):
            s = cuda.shared.array(3, ty)  # noqa: B023
            s[2] = v
            s[1] = s[2] + 1
            for i in range(len(v)):
                o[i] = s[1][i] + s[2].x

        out = np.zeros(ty.count, ty.base.dtype)
        parts = np.arange(1, ty.count + 1)
        kernel[1, 1](ty(*parts), out)
        assert out.tolist() == (parts + 1 + 1).tolist()


def test_integer_vectors_keep_their_type():
    """Bytes wrap in their places, bits and shifts work, a division makes floats."""

    @cuda.jit
    def kernel(o, f):
        v = cuda.uchar4(250, 1, 2, 3) + 10
        w = (v & 15) ^ (v << 1)
        for i in range(4):
            o[0, i], o[1, i] = v[i], w[i]
        half = cuda.int2(1, -3) / 2
        floor = cuda.int2(7, -7) // 2
        f[0], f[1], f[2], f[3] = half.x, half.y, floor.x, floor.y

    out, floats = np.zeros((2, 4), "u1"), np.zeros(4)
    kernel[1, 1](out, floats)
    v = np.array([250, 1, 2, 3], "u1") + np.uint8(10)
    assert out.tolist() == [v.tolist(), ((v & 15) ^ (v << 1)).tolist()]
    assert floats.tolist() == [0.5, -1.5, 3, -4]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda v, a: cuda.float4(1, 2), "4 components, 2 were given"),
        (lambda v, a: v.w, "no attribute 'w'"),
        (lambda v, a: v[3], "no component 3"),
        (lambda v, a: v + cuda.float2(1, 2), "differ in length"),
        (lambda v, a: v & v, "is not supported"),
    ],
)
def test_bad_uses_of_vectors(body, words):
    """Each a CompileError that names what is wrong."""

    @cuda.jit
    def kernel(o):
        v = cuda.float3(1, 2, 3)
        body(v, o)

    with pytest.raises(CompileError, match=words):
        kernel[1, 1](np.zeros(4, "f4"))


def test_a_component_of_an_element_is_not_assigned():
    """The element is a value, so the assignment would be lost: it is refused."""

    @cuda.jit
    def kernel(o):
        o.view(cuda.float4)[0].x = 1

    with pytest.raises(CompileError, match="a vector is a value"):
        kernel[1, 1](np.zeros(4, "f4"))


def test_pointers():
    """A raw address as argument: elements, arithmetic, and arrays over it in both orders."""

    @cuda.jit("void(CPointer(float32), int64, float32[:])")
    def kernel(p, n, o):
        if not p:
            o[5] = 1
            return
        o[0] = p[2] + (p + 1)[0] + (p + 5 - 1)[0]
        p[0] = 42
        a, f = cuda.carray(p, (2, 3)), cuda.farray(p, (2, 3), cuda.float32)
        o[1], o[2] = a[1, 0], f[1, 0]
        o[3] = cuda.carray(p, n).sum()
        o[4] = cuda.carray(o.ctypes.data, 5, np.float32)[0]

    data = cuda.to_device(np.arange(6, dtype="f4"))
    out = np.zeros(6, "f4")
    kernel[1, 1](data, 6, out)
    assert out.tolist() == [7, 3, 1, 57, 7, 0]
    kernel[1, 1](data.handle, 6, out)
    assert out[0] == 7
    kernel[1, 1](None, 6, out)
    assert out[5] == 1
    with pytest.raises(TypeError, match="expected an address"):
        kernel[1, 1](1.5, 6, out)


class Shade(enum.Enum):
    LIGHT = "light"
    DARK = "dark"


def test_enums_and_strings_as_arguments():
    """Each value compiles its own code; members by name are constants."""

    @cuda.jit
    def kernel(shade, mode, o):
        o[0] = 1 if shade is Shade.DARK else 2
        o[1] = 3 if mode == "fast" else 4
        o[2] = Shade["LIGHT"] == shade
        o[3] = shade.value == "dark"

    for shade, mode in ((Shade.DARK, "fast"), (Shade.LIGHT, "slow")):
        out = np.zeros(4)
        kernel[1, 1](shade, mode, out)
        dark = shade is Shade.DARK
        assert out.tolist() == [1 if dark else 2, 3 if mode == "fast" else 4, not dark, dark]


def test_strings_are_compared_and_searched_while_compiling():
    """Constant strings: methods, parts, length, membership; a record's fields by such names."""
    names = ("left", "right")
    table = {"left": 10, "right": 20}

    @cuda.jit
    def kernel(r, o):
        total = 0
        for name in names:
            total += r[0][name] * table[name]
            if name.startswith("l"):
                total += len(name) * 1000
        o[0] = total
        o[1] = ("ef" in names[0]) + 2 * (names[1][0] == "r") + 4 * ("a" + "b" == "ab")

    record, out = np.array([(1.5, 2)], [("left", "f4"), ("right", "i4")]), np.zeros(2)
    kernel[1, 1](record, out)
    assert out.tolist() == [15 + 40 + 4000, 7]
