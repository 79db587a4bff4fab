"""Atomic operations: every type and space, the old value, NaN, fields, orders and scopes."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import compiler as cuda
from compiler import TypingError

GENERATORS = ["llvm", "nvvm"]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
FUNCTIONS = {
    "add": operator.add, "sub": operator.sub, "max": max, "min": min, "nanmax": max,
    "nanmin": min, "and_": operator.and_, "or_": operator.or_, "xor": operator.xor,
    "exch": lambda old, new: new,
}  # fmt: skip


def run(name, dtype, values, start, codegen=None, shared=False):
    """One thread does the operation with each value; the old values and what is left."""
    operation = getattr(cuda.atomic, name)

    @cuda.jit(codegen=codegen)
    def in_global(v, r, old):
        for i in range(v.size):
            old[i] = operation(r, (1, -1), v[i])

    @cuda.jit(codegen=codegen)
    def in_shared(v, r, old):
        part = cuda.shared.array((2, 3), dtype)
        for i in range(6):
            part[i // 3, i % 3] = r[i // 3, i % 3]
        for i in range(v.size):
            old[i] = operation(part, (1, -1), v[i])
        for i in range(6):
            r[i // 3, i % 3] = part[i // 3, i % 3]

    r = np.full((2, 3), 5, dtype)
    r[1, 2] = start
    old = np.zeros(len(values), dtype)
    (in_shared if shared else in_global)[1, 1](values, r, old)
    assert (r.ravel()[:5] == 5).all()
    return old, r[1, 2]


@pytest.mark.parametrize("shared", [False, True], ids=["global", "shared"])
@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_integer_operation_returns_the_old_value(name, codegen, shared):
    """Of 8 to 64 bits, by one thread in a row, as Python computes it in that width."""
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        values = np.array([3, 100, info.max, info.min, 7, 1], dtype)
        old, last = run(name, dtype, values, 9, codegen, shared)
        state, states = 9, []
        for value in values:
            states.append(state)
            new = FUNCTIONS[name](state, int(value)) & (2**info.bits - 1)
            state = new - 2**info.bits if info.min < 0 and new > info.max else new
        np.testing.assert_array_equal(old, np.array(states, object).astype(dtype), str(dtype))
        assert last == state


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "max", "min", "nanmax", "nanmin", "exch"])
def test_each_float_operation(name, dtype, codegen):
    """Negative numbers and both zeros among the values."""
    values = np.array([1.5, -2.25, 100, -0.0, 0.5], dtype)
    old, last = run(name, dtype, values, -1, codegen)
    state, states = dtype(-1), []
    for value in values:
        states.append(state)
        state = dtype(FUNCTIONS[name](state, value))
    np.testing.assert_array_equal(old, states)
    assert last == state


def test_minimum_and_maximum_of_nan():
    """max and min leave the old value if either is NaN; nanmax and nanmin take the number."""
    nan = float("nan")
    for name, expected in (
        ("max", [5, nan]),
        ("min", [5, nan]),
        ("nanmax", [5, 5]),
        ("nanmin", [5, 5]),
    ):
        for start, value, wanted in ((5, nan, expected[0]), (nan, 5, expected[1])):
            for dtype in FLOATS:
                _, last = run(name, dtype, np.array([value], dtype), start)
                np.testing.assert_equal(float(last), wanted)


def test_nanmax_of_many_threads_is_numpys():
    """All threads of several blocks, every second value NaN, and signed values."""

    @cuda.jit
    def kernel(v, r):
        i = cuda.grid(1)
        cuda.atomic.nanmax(r, 0, v[i])
        cuda.atomic.min(r, 1, -abs(v[i - i % 2]))

    v = np.random.default_rng(3).normal(size=256)
    v[1::2] = np.nan
    r = np.array([np.nan, 9.0])
    kernel[4, 64](v, r)
    np.testing.assert_array_equal(r, [np.nanmax(v), -np.nanmax(abs(v))])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_inc_and_dec_wrap(dtype):
    """inc counts up to the value and starts at 0 again, dec down to 0 and at the value."""
    old, last = run("inc", dtype, np.full(7, 2, dtype), 1)
    np.testing.assert_array_equal([*old, last], [1, 2, 0, 1, 2, 0, 1, 2])
    old, last = run("dec", dtype, np.full(5, 2, dtype), 9)
    np.testing.assert_array_equal([*old, last], [9, 2, 1, 0, 2, 1])


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint16, np.int32, np.float16, np.float32, np.complex64]
)
def test_no_addition_of_many_threads_is_lost(dtype):
    """Neighbouring narrow elements are changed at the same time, and none disturbs another."""

    @cuda.jit
    def kernel(r):
        cuda.atomic.add(r, cuda.threadIdx.x % 8, 1)

    r = np.zeros(8, dtype)
    kernel[8, 64](r)
    np.testing.assert_array_equal(r, np.full(8, 64, dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("codegen", GENERATORS)
def test_compare_and_swap(dtype, codegen):
    """The value is stored only over the expected one; either way the old one is returned."""

    @cuda.jit(codegen=codegen)
    def kernel(a, old):
        old[0] = cuda.atomic.cas(a, 1, 7, 9)
        old[1] = cuda.atomic.cas(a, -1, 8, 9)
        old[2] = cuda.atomic.compare_and_swap(a, 1, 2)

    a, old = np.array([1, 7, 3], dtype), np.zeros(3, dtype)
    kernel[1, 1](a, old)
    np.testing.assert_array_equal(a, [2, 9, 3])
    np.testing.assert_array_equal(old, [7, 3, 1])


def test_complex_addition_and_subtraction():
    """Both parts of the old value come back."""

    @cuda.jit
    def kernel(a, old):
        old[0] = cuda.atomic.add(a, 0, 1 + 2j)
        old[1] = cuda.atomic.sub(a, 0, 5)

    a, old = np.array([3 - 1j]), np.zeros(2, complex)
    kernel[1, 1](a, old)
    np.testing.assert_array_equal([*old, a[0]], [3 - 1j, 4 + 1j, -1 + 1j])


def test_fields_of_records():
    """By column of the array, and by name of one record's field."""
    kind = np.dtype([("flag", "u1"), ("count", "i4"), ("sum", "f8")], align=True)

    @cuda.jit
    def kernel(r):
        cuda.atomic.add(r["count"], cuda.threadIdx.x % 2, 2)
        cuda.atomic.add(r[1], "sum", 0.5)
        cuda.atomic.add(r[0], "flag", 3)

    r = np.zeros(2, kind)
    kernel[1, 8](r)
    np.testing.assert_array_equal(r["count"], [8, 8])
    np.testing.assert_array_equal(r["sum"], [0, 4])
    np.testing.assert_array_equal(r["flag"], [24, 0])


@pytest.mark.parametrize("codegen", GENERATORS)
def test_orders_and_scopes(codegen):
    """Each order at each scope counts right, and stands in the PTX."""

    @cuda.jit(codegen=codegen)
    def kernel(a):
        cuda.atomic.add(a, 0, 1, "acquire", "block")
        cuda.atomic.add(a, 0, 1, scope="sys")
        cuda.atomic.add(a, 0, 1, order="release")
        cuda.atomic.max(a, 1, 5, order="seq_cst", scope="device")
        cuda.atomic.cas(a, 2, 0, 5, order="acq_rel", scope="cta")

    a = np.zeros(3, np.int32)
    kernel[2, 32](a)
    np.testing.assert_array_equal(a, [192, 5, 5])
    (ptx,) = kernel.inspect_ptx().values()
    for text in (
        "atom.acquire.cta.global.add.s32", "atom.relaxed.sys.global.add.s32",
        "atom.release.gpu.global.add.s32", "fence.sc.gpu; atom.acq_rel.gpu.global.max.s32",
        "atom.acq_rel.cta.global.cas.b32",
    ):  # fmt: skip
        assert text in ptx


@cuda.jit
def adds_to_bools(a, b):
    cuda.atomic.add(b, 0, 1)


@cuda.jit
def bits_of_floats(a, b):
    cuda.atomic.or_(a, 0, 1)


@cuda.jit
def unknown_order(a, b):
    cuda.atomic.add(a, 0, 1, order="consume")


@cuda.jit
def part_of_the_array(a, b):
    cuda.atomic.add(a, (0, 0), 1)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (adds_to_bools, "does not work on boolean"),
        (bits_of_floats, "does not work on float64"),
        (unknown_order, "give one of relaxed, acquire"),
        (part_of_the_array, "2 indices for an array of 1"),
    ],
)
def test_what_atomics_do_not_take_is_refused(kernel, text):
    """Types, orders and places, each with what is wrong."""
    with pytest.raises(TypingError, match=text):
        kernel[1, 1](np.zeros(4), np.zeros(4, bool))


def test_fields_at_odd_addresses_are_refused():
    """A packed record's field may lie where no instruction reaches it."""

    @cuda.jit
    def kernel(r):
        cuda.atomic.add(r["b"], 0, 1)

    with pytest.raises(TypingError, match="aligned dtype"):
        kernel[1, 1](np.zeros(2, np.dtype([("a", "u1"), ("b", "i4")])))
