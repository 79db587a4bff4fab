"""Cases that went wrong in other compilers of Python for GPUs, each with its right value."""

from __future__ import annotations

import math

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError
from tests.device.oracle import check, kernel_results


def run(function, *arrays):
    """Run a plain function as a kernel of one thread; the arrays come back changed."""
    cuda.jit(fma=False)(function)[1, 1](*arrays)


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_floor_division_of_negative_integers(dtype):
    """// and % floor, by run-time and constant divisors, in place, and in divmod."""
    a, b = np.array([-6, 6, -7, 7, -7], dtype), np.array([5, -5, 3, -2, 2], dtype)
    check(lambda x, y: x // y, [a, b], dtype)
    check(lambda x, y: x % y, [a, b], dtype)
    check(lambda x, y: x // -2 * 10 + x % 3, [a, b], dtype)
    check(lambda x, y: divmod(x, y)[0] * y + divmod(x, y)[1] - x, [a, b], dtype)
    assert kernel_results(lambda x, y: x // y, [a, b], np.dtype(dtype)).tolist() == [
        -2, -2, -3, -4, -4,
    ]  # fmt: skip

    def in_place(x, y):
        for i in range(x.size):
            x[i] //= y[i]
            y[i] %= 3

    run(in_place, x := a.copy(), y := b.copy())
    assert x.tolist() == [-2, -2, -3, -4, -4]
    assert y.tolist() == (b % 3).tolist()


def test_remainders_have_the_sign_of_their_definition():
    """math.fmod that of the dividend, % that of the divisor."""

    def kernel(x, y, n, o):
        o[0], o[1], o[2] = math.fmod(x[0], y[0]), x[0] % y[0], x[0] // y[0]
        o[3], o[4] = np.fmod(n[0], n[1]), math.remainder(x[0], y[0])

    out = np.zeros(5)
    run(kernel, np.array([-4.0]), np.array([10.0]), np.array([-4, 10]), out)
    assert out.tolist() == [-4, 6, -1, -4, -4]


def test_a_uint64_carried_by_a_loop_stays_one():
    """Clearing bits with signed masks keeps all 64 bits."""

    def kernel(x, o):
        v = x[0]
        for k in range(2):
            v = v & ~(1 << k)
        o[0] = (v | 0) ^ 0

    out = np.zeros(1, "u8")
    run(kernel, np.array([2**63 + 3], "u8"), out)
    assert out[0] == 2**63


@pytest.mark.parametrize(
    ("dtype", "value", "to"),
    [("u1", 200, "f4"), ("u2", 60000, "f8"), ("u4", 3000000000, "f8"), ("i1", -56, "f4"),
     ("f8", 3e9, "u4"), ("f8", 2.0**63, "u8"), ("u8", 2**63, "f8")],
)  # fmt: skip
def test_conversions_of_large_unsigned_numbers(dtype, value, to):
    """By a store and by a cast, both ways."""
    cast = np.dtype(to).type

    def kernel(s, d):
        d[0] = s[0]
        d[1] = cast(s[0])

    out = np.zeros(2, to)
    run(kernel, np.array([value], dtype), out)
    assert out.tolist() == [value, value]


def test_true_is_one():
    """As an int, a product, a sum, an index of a choice, a store."""
    flags = np.array([True, False])
    check(lambda b: int(b) + 10 * np.int64(b) + 100 * (b + 0) + 1000 * (b * 1), [flags], "i8")
    check(lambda b: 1 if b else 0, [flags], "i8")
    check(lambda b: b, [flags], "i8")


def test_booleans_compare_as_numbers():
    """All pairs and operators."""
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])

    def function(x, y):
        p, q = x > 0, y > 0
        return (p < q) + 2 * (p <= q) + 4 * (p == q) + 8 * (p != q) + 16 * (p > q) + 32 * (p >= q)

    check(function, [a, b], "i8")


def test_shifts_of_bytes_promote():
    """uint8(255) << 1 is 510, and 254 once stored in a byte."""

    def kernel(a, s, narrow, wide):
        narrow[0] = a[0] << s[0]
        wide[0] = a[0] << s[0]

    narrow, wide = np.zeros(1, "u1"), np.zeros(1, "i8")
    run(kernel, np.array([255], "u1"), np.array([1], "u1"), narrow, wide)
    assert (narrow[0], wide[0]) == (254, 510)


@pytest.mark.parametrize("dtypes", [("u8", "u8"), ("u4", "i8")])
def test_ranges_of_large_bounds(dtypes):
    """Unsigned bounds above 2**31, and of two types."""

    def kernel(a, b, o):
        for i in range(a[0], b[0]):
            o[0] = i
            o[1] += 1

    out = np.zeros(2, "i8")
    start = 2552764644
    run(kernel, np.array([start], dtypes[0]), np.array([start + 1], dtypes[1]), out)
    assert out.tolist() == [start, 1]


def test_powers_of_small_integers_are_exact():
    """int(math.pow(x, y)) == x ** y as long as it fits 53 bits."""
    pairs = [(x, y) for x in range(21) for y in range(11) if x**y < 2**53]
    x, y = (np.array(column) for column in zip(*pairs, strict=True))
    found = kernel_results(lambda a, b: int(math.pow(a, b)), [x, y], np.dtype("i8"))
    assert found.tolist() == [a**b for a, b in pairs]


def test_integer_powers():
    """In 64 bits, wrapping; a literal negative exponent makes a float."""
    a, n = np.array([-47, 3, -3]), np.array([66, 20, 5])
    found = kernel_results(lambda x, y: x**y, [a, n], np.dtype("i8"))
    assert found.tolist() == [-3898719529840714591, 3486784401, -243]
    assert kernel_results(lambda x: 2**-1 + x**-1, [np.array([4])], np.dtype("f8"))[0] == 0.75


def test_rounding_gives_indices():
    """ceil, floor and trunc give ints, exact above 2**31."""

    def kernel(x, a, o):
        o[0] = a[math.ceil(x[0])] + math.floor(-2.8e-14) + math.trunc(-1.7) + math.floor(3e9)

    out = np.zeros(1)
    run(kernel, np.array([1.2]), np.arange(5.0), out)
    assert out[0] == 2 - 1 - 1 + 3000000000


def test_float32_division_is_rounded_correctly():
    """abs(t) / t is 1, also as an int."""
    t = np.arange(1, 1025, dtype="f4")
    assert (kernel_results(lambda v: int(abs(v) / v), [t], np.dtype("i4")) == 1).all()


def test_literals_do_not_move_float32_to_double():
    """x * 0.1 is the float32 product, and the PTX has no double arithmetic."""

    def kernel(x, o):
        o[0] = x[0] * 0.1 + 2.0

    ptx, _ = cuda.compile_ptx(kernel, "void(float32[::1], float32[::1])", cc=(8, 0))
    assert ".f64" not in ptx


def test_division_by_zero_goes_on():
    """Infinities and nan, 0 for integers, and the next statement runs."""

    def kernel(x, y, n, o):
        o[0], o[1], o[2] = y[0] / x[0], -y[0] / x[0], x[0] / x[0]
        o[3] = n[1] // n[0] + n[1] % n[0]
        o[4] = 7

    out = np.ones(5)
    run(kernel, np.zeros(1), np.ones(1), np.array([0, 5]), out)
    np.testing.assert_array_equal(out, [math.inf, -math.inf, math.nan, 0, 7])


def test_a_loop_to_an_int_of_a_float():
    """A device function with a declared signature runs every turn, and no more."""

    @cuda.jit("float64(float64)", device=True)
    def last(a):
        x = 0
        for n in range(int(a)):
            x = n
        return x

    found = kernel_results(lambda a: last(a), [np.array([1.0, 2, 3, 4])], np.dtype("f8"))
    assert found.tolist() == [0, 1, 2, 3]


def test_early_returns():
    """Bare ones, of None, and code after them; a value is refused."""

    def kernel(x, o):
        if x.size == 0:
            return
        o[0] = 1
        if o[0] == 1:
            return
        o[0] = 2
        return
        o[0] = 3

    run(kernel, np.ones(1), out := np.zeros(1))
    assert out[0] == 1
    with pytest.raises(CompileError, match="a kernel returns nothing"):
        cuda.jit(lambda x: x[0])[1, 1](np.ones(1))


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_negative_indices_count_from_the_end(dtype):
    """Of arrays of each memory and of tuples; unsigned ones do not wrap."""

    def kernel(m, i, o):
        s, t = cuda.shared.array(4, np.int64), cuda.local.array(4, np.int64)
        for j in range(4):
            o[j] = m[j, -1]
            s[j] = t[j] = j
        items = (1, 2, 3)
        o[4] = m[i[0], i[0]] + s[i[0]] * 10 + t[-2] * 100 + items[i[0]] * 1000
        o[5] = m[np.uint32(3), 0]

    out = np.zeros(6, "i8")
    run(kernel, np.array([[10], [20], [30], [40]]), np.array([-1], dtype), out)
    assert out.tolist() == [10, 20, 30, 40, 40 + 30 + 200 + 3000, 40]


def test_a_slice_of_rows_keeps_its_offset():
    """Views from a run-time row on, passed to functions, with ints and steps beside slices."""

    @cuda.jit(device=True)
    def copy(source, target):
        for m in range(2):
            target[m, 0] = source[m, 0]

    @cuda.jit
    def kernel(s, d, a, o):
        base = cuda.blockIdx.x * 2
        copy(s[base:], d[base:])
        o[base, :] = a[base, :, 1::2][:, 0]

    s, a = np.arange(12.0).reshape(6, 2), np.arange(72.0).reshape(6, 3, 4)
    d, out = np.zeros((6, 2)), np.zeros((6, 3))
    kernel[3, 1](s, d, a, out)
    np.testing.assert_array_equal(d[:, 0], s[:, 0])
    np.testing.assert_array_equal(out[::2], a[::2, :, 1])


def test_arrays_without_dimensions():
    """Their shape stays (), and the element is read and written."""

    def kernel(o, x):
        o[()] = x[()] * 2 + len(x.shape)

    run(kernel, out := np.zeros(()), np.array(4.0))
    assert out.shape == ()
    assert out[()] == 8


@pytest.mark.parametrize("change", [lambda a: a, np.asfortranarray, lambda a: a[::2, ::-1],
                                    lambda a: a.T])  # fmt: skip
def test_every_layout_reads_alike(change):
    """C, Fortran, strided and transposed arrays give what NumPy gives."""

    def kernel(a, o):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                o[i, j] = a.T.T[i, j] * 10 + i

    a = change(np.arange(24.0).reshape(4, 6))
    run(kernel, a, out := np.zeros(a.shape))
    np.testing.assert_array_equal(out, a * 10 + np.arange(a.shape[0])[:, None])


WIDTH = np.int64(16)


def test_shapes_given_by_expressions():
    """Of globals, NumPy ints, closures, 1-tuples; a run-time value is refused with advice."""
    extra = 3

    def kernel(o):
        a, b = cuda.shared.array((WIDTH * 2,), np.float32), cuda.local.array(extra + 1, np.int8)
        c = cuda.shared.array(WIDTH * 2 + 1, np.float32)
        o[0] = a.size * 10000 + b.size * 100 + c.size

    run(kernel, out := np.zeros(1))
    assert out[0] == 320433

    def run_time(o):
        cuda.shared.array(cuda.blockDim.x, np.float32)

    with pytest.raises(CompileError, match="dynamic shared memory"):
        run(run_time, out)


def test_local_arrays_belong_to_the_caller():
    """A function fills the caller's array; one declared in a loop is one array."""

    @cuda.jit(device=True)
    def fill(t):
        for j in range(1, 32):
            t[j] = 0.0
        t[0] = 1.0

    @cuda.jit
    def kernel(o):
        t = cuda.local.array(32, np.float64)
        fill(t)
        total = 0.0
        for i in range(10000):
            u = cuda.local.array(4, np.float64)
            u[i % 4] = 1
            total += u[i % 4]
        o[0], o[1] = t.sum(), total

    kernel[1, 1](out := np.zeros(2))
    assert out.tolist() == [1, 10000]


def test_tuples_as_arguments():
    """Nested, of arrays that come back, and empty."""

    def kernel(r, x, empty):
        r[0], r[1], r[2] = x[0][0], x[1], x[2][0] + len(empty)
        x[0][1] = 9

    inner, out = np.ones(3), np.zeros(3)
    run(kernel, out, (inner, 10, (4, 3)), ())
    assert out.tolist() == [1, 10, 4]
    assert inner.tolist() == [1, 9, 1]


def test_factories_make_kernels_of_their_own():
    """Two kernels of one factory keep what each captured, functions too, in any order."""

    def make(c, f):
        @cuda.jit
        def kernel(o):
            o[0] = c * 100 + f(c)

        return kernel

    two, three = make(2, lambda v: v + 1), make(3, lambda v: v * 5)
    for kernel, expected in ((three, 315), (two, 203), (three, 315)):
        kernel[1, 1](out := np.zeros(1))
        assert out[0] == expected


def test_sums_of_a_block_keep_64_bits():
    """A halving loop over shared memory of int64."""

    @cuda.jit
    def kernel(x, o):
        s = cuda.shared.array(256, np.int64)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        h = cuda.blockDim.x >> 1
        while h > 0:
            if t < h:
                s[t] += s[t + h]
            cuda.syncthreads()
            h >>= 1
        if t == 0:
            o[cuda.blockIdx.x] = s[0]

    x = np.arange(32 * 256)
    kernel[32, 256](x, out := np.zeros(32, "i8"))
    assert out.tolist() == x.reshape(32, 256).sum(1).tolist()
