"""Shared, local and constant arrays of every type; hints for caches; copies beside the threads."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from compiler import TypingError

GENERATORS = ["llvm", "nvvm"]
RECORD = np.dtype([("x", "f8"), ("n", "i2")], align=True)
TYPES = [np.bool_, np.int8, np.uint16, np.float16, np.float64, np.complex64, RECORD]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("codegen", GENERATORS)
def test_shared_and_local_arrays_of_every_type(dtype, codegen):
    """Reversed by way of shared memory, then by way of the thread's own."""

    @cuda.jit(codegen=codegen)
    def kernel(a, o):
        i = cuda.threadIdx.x
        part = cuda.shared.array((4, 8), dtype)
        own = cuda.local.array(shape=2, dtype=dtype, alignment=16)
        part[i // 8, i % 8] = a[i]
        cuda.syncthreads()
        j = 31 - i
        own[i % 2] = part[j // 8, j % 8]
        own[1 - i % 2] = part[0, 0]
        o[i] = own[i % 2]

    raw = np.random.default_rng(5).integers(0, 2, 32 * np.dtype(dtype).itemsize, dtype=np.uint8)
    a = raw.view(dtype)
    out = np.zeros(32, dtype)
    kernel[1, 32](a, out)
    if dtype is RECORD:
        np.testing.assert_array_equal(out["x"], a["x"][::-1])
        np.testing.assert_array_equal(out["n"], a["n"][::-1])
    else:
        np.testing.assert_array_equal(out, a[::-1])


def test_orders_and_alignments():
    """An array in Fortran's order has its strides; the address is a multiple of what was asked."""

    @cuda.jit
    def kernel(o):
        first = cuda.shared.array(3, cuda.int8)
        second = cuda.shared.array((2, 3), cuda.int16, alignment=256, order="F")
        own = cuda.local.array(5, cuda.uint8, 64)
        first[0], second[0, 0], own[0] = 1, 2, 3
        o[0], o[1] = second.strides
        o[2] = cuda.asm("cvta.to.shared.u64 $0, $1;", "=l,l", second) % 256
        o[3] = cuda.asm("mov.u64 $0, $1;", "=l,l", own) % 64
        o[4] = first[0] + second[0, 0] + own[0]

    out = np.zeros(5, np.int64)
    kernel[1, 1](out)
    np.testing.assert_array_equal(out, [2, 4, 0, 0, 6])


@pytest.mark.parametrize("codegen", GENERATORS)
def test_dynamic_shared_memory_in_several_views(codegen):
    """Beside static memory: the same bytes under two types, and parts at offsets."""

    @cuda.jit(codegen=codegen)
    def kernel(n, o):
        static = cuda.shared.array(16, cuda.int32)
        floats = cuda.shared.array(0, cuda.float32)
        ints = cuda.shared.array(0, cuda.int32)[1:]
        rows = cuda.shared.dynamic((n, 3), cuda.float64, 16)
        bools = cuda.shared.dynamic(n, cuda.boolean, offset=16 + 24 * n)
        for i in range(16):
            static[i] = 1
        floats[0], ints[0] = 3.5, 7
        for i in range(n):
            for j in range(3):
                rows[i, j] = 10 * i + j
            bools[i] = i == 1
        o[0], o[1], o[2] = floats[0], ints[0], floats.size
        o[3] = rows[n - 1, 2] + bools[1] + 2 * bools[0] + rows.size
        total = 0
        for i in range(16):
            total += static[i]
        o[4] = total

    out = np.zeros(5)
    kernel[1, 1, 0, 128](np.int32(4), out)
    np.testing.assert_array_equal(out, [3.5, 7, 32, 32 + 1 + 12, 16])


def test_more_than_48_kilobytes_of_dynamic_shared_memory():
    """Allowed by the launch itself; every byte is there."""

    @cuda.jit
    def kernel(o):
        part = cuda.shared.array(0, cuda.uint8)
        i = cuda.threadIdx.x
        part[part.size - 1 - i] = i
        cuda.syncthreads()
        o[i] = part[part.size - 1 - (i ^ 1)]

    out = np.zeros(32, np.uint8)
    kernel[1, 32, 0, 60000](out)
    np.testing.assert_array_equal(out, np.arange(32) ^ 1)


CONSTANTS = {
    "floats": np.arange(12.0).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(12, dtype=np.int16).reshape(3, 4)),
    "complex": np.arange(12).reshape(3, 4) * (1 - 2j),
    "bools": np.arange(12).reshape(3, 4) % 3 == 0,
    "strided": np.arange(24.0).reshape(3, 8)[:, ::2],
}


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_arrays(name, codegen):
    """Each thread reads its element; the PTX reads constant memory."""
    table = CONSTANTS[name]

    @cuda.jit(codegen=codegen)
    def kernel(o):
        i, j = cuda.grid(2)
        c = cuda.const.array_like(table)
        o[i, j] = c[i, j - 4]

    out = np.zeros((3, 4), table.dtype)
    kernel[1, (3, 4)](out)
    np.testing.assert_array_equal(out, table)
    if name != "bools":  # Twelve bits fit into a register.
        assert "ld.const" in next(iter(kernel.inspect_ptx().values()))


def test_a_constant_table_of_records():
    """Fields of one record by name."""
    table = np.array([(1.5, 2), (2.5, 3)], RECORD)

    @cuda.jit
    def kernel(o):
        c = cuda.const.array_like(table)
        o[0] = c[1].x + c[0]["n"]

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 4.5


HINTED = [np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32, np.complex128]


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("dtype", HINTED)
def test_cache_hints(dtype, codegen):
    """Each load and store moves the element, and says its hint in the PTX."""

    @cuda.jit(codegen=codegen)
    def kernel(a, o):
        i = cuda.threadIdx.x
        cuda.stwb(o, (0, i), cuda.ldg(a, i))
        cuda.stcg(o, (1, i), cuda.ldca(a, i))
        cuda.stcs(o, (2, i), cuda.ldcg(a, i))
        cuda.stwt(o, (3, i), cuda.ldcs(a, -1))
        o[4, i] = cuda.ldlu(a, i)
        o[5, i] = cuda.ldcv(a, i)

    raw = np.random.default_rng(1).integers(0, 2, 8 * np.dtype(dtype).itemsize, dtype=np.uint8)
    a = raw.view(dtype)
    out = np.zeros((6, 8), dtype)
    kernel[1, 8](a, out)
    np.testing.assert_array_equal(out, [a, a, a, [a[-1]] * 8, a, a])
    (ptx,) = kernel.inspect_ptx().values()
    for text in ("ld.global.nc", "ld.global.ca", "ld.global.cs", "st.global.cg", "st.global.wt"):
        assert text in ptx


@pytest.mark.parametrize("codegen", GENERATORS)
def test_asynchronous_copies(codegen):
    """Groups of 4, 8 and 16 bytes arrive in the order in which they are waited for."""

    @cuda.jit(codegen=codegen)
    def kernel(a, o):
        i = cuda.threadIdx.x
        one = cuda.shared.array(8, cuda.float32)
        four = cuda.shared.array((8, 4), cuda.float32)
        cuda.cp_async(one, i, a, (i, 3))
        cuda.cp_async_commit()
        cuda.cp_async(four, (i, 0), a, (7 - i, 0), 4)
        cuda.cp_async_commit()
        cuda.cp_async_wait(1)
        cuda.syncthreads()
        o[i, 0] = one[i ^ 1]
        cuda.cp_async_wait_all()
        cuda.syncthreads()
        o[i, 1] = four[i ^ 1, 2]

    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    out = np.zeros((8, 2), np.float32)
    kernel[1, 8](a, out)
    i = np.arange(8) ^ 1
    np.testing.assert_array_equal(out, np.stack([a[i, 3], a[7 - i, 2]], 1))


TABLE = np.zeros(2)


@cuda.jit
def argument_as_constant(a):
    cuda.const.array_like(a)


@cuda.jit
def too_large_a_table(a):
    cuda.const.array_like(np.zeros)
    cuda.const.array_like(TABLE)[0] = 1


@cuda.jit
def writes_a_table(a):
    cuda.const.array_like(TABLE)[0] = 1


@cuda.jit
def odd_alignment(a):
    cuda.shared.array(4, cuda.float32, alignment=24)


@cuda.jit
def hint_for_shared(a):
    part = cuda.shared.array(4, cuda.float32)
    cuda.ldcg(part, 0)


@cuda.jit
def copies_twelve_bytes(a):
    part = cuda.shared.array(4, cuda.float64)
    cuda.cp_async(part, 0, a, 0, 3)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (argument_as_constant, "a NumPy array that the kernel names"),
        (too_large_a_table, "a NumPy array that the kernel names"),
        (writes_a_table, "read-only"),
        (odd_alignment, "power of two"),
        (hint_for_shared, "hints are for global memory"),
        (copies_twelve_bytes, "4, 8 or 16 bytes at once, not 24"),
    ],
)
def test_what_memory_cannot_be_is_refused(kernel, text):
    """Each with what it can be."""
    with pytest.raises(TypingError, match=text):
        kernel[1, 1](np.zeros(8))
