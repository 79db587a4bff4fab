"""Kernels written in CUDA C and compiled by nvcc compute what NumPy computes."""

from __future__ import annotations

import ctypes
import functools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import raw
from tests.device.ptx import Array, Buffer, check, function, load, start, target

DATA = Path(__file__).parents[1] / "data"


@functools.cache
def module(name: str) -> int:
    """The module of a PTX file, said to be for this device."""
    text = (DATA / name).read_text(encoding="utf-8")
    return load(re.sub(r"\.target sm_\d+", f".target {target()}", text))


@pytest.fixture(params=["emulator_sm75.ptx", "emulator_sm120.ptx"])
def code(request: pytest.FixtureRequest) -> int:
    """The module, compiled for an old and for a new architecture."""
    name: str = request.param
    if "120" in name and not cudadrv.is_emulator() and int(target()[3:]) < 120:
        pytest.skip("the PTX is for a newer device")
    return module(name)


def run(
    code: int, name: str, grid: tuple[int, int], block: tuple[int, int], *arguments: Any,
    shared: int = 0, cooperative: bool = False,
) -> list[Array]:  # fmt: skip
    """Launch a kernel on arrays and scalars; the arrays afterwards."""
    start()
    values = [Buffer(a) if isinstance(a, np.ndarray) else a for a in arguments]
    cells = [v.pointer if isinstance(v, Buffer) else v for v in values]
    pointers = (ctypes.c_void_p * len(cells))(*(ctypes.addressof(cell) for cell in cells))
    sizes = (*grid, 1, *block, 1, shared, None, pointers)
    if cooperative:
        check(raw.cuLaunchCooperativeKernel(function(code, name), *sizes))
    else:
        check(raw.cuLaunchKernel(function(code, name), *sizes, None))
    check(raw.cuCtxSynchronize())
    return [v.read() for v in values if isinstance(v, Buffer)]


def integer(value: int) -> ctypes.c_int:
    return ctypes.c_int(value)


RNG = np.random.default_rng(2)


def test_saxpy(code: int) -> None:
    """Threads beyond the end do nothing; a * x + y is fused."""
    x, y = (RNG.standard_normal(1000).astype("f4") for _ in range(2))
    _, got = run(code, "saxpy", (8, 1), (128, 1), integer(990), ctypes.c_float(1.7), x, y)
    exact = np.float32(1.7).astype("f8") * x + y
    wanted = np.where(np.arange(1000) < 990, exact.astype("f4"), y)
    assert np.array_equal(got, wanted)


def test_block_sums(code: int) -> None:
    """A tree in shared memory adds in the order of the tree."""
    x = RNG.standard_normal(1000).astype("f4")
    _, got = run(code, "block_sums", (4, 1), (256, 1), integer(1000), x, np.zeros(4, "f4"))
    tree = np.append(x, np.zeros(24, "f4")).reshape(4, 256)
    while tree.shape[1] > 1:
        half = tree.shape[1] // 2
        tree = tree[:, :half] + tree[:, half:]
    assert np.array_equal(got, tree[:, 0])


def test_warp_sums(code: int) -> None:
    """Shuffles down a warp."""
    x = RNG.integers(0, 100, 128).astype("i4")
    _, got = run(code, "warp_sums", (1, 1), (128, 1), x, np.zeros(4, "i4"))
    assert np.array_equal(got, x.reshape(4, 32).sum(1))


def test_tiles(code: int) -> None:
    """Tiles of cooperative groups shuffle within themselves."""
    x = RNG.integers(0, 100, 96).astype("i4")
    _, got = run(code, "tile_sums", (1, 1), (96, 1), x, np.zeros(96, "i4"))
    assert np.array_equal(got, np.repeat(x.reshape(12, 8).sum(1), 8))


def test_coalesced_groups(code: int) -> None:
    """The lanes that take a branch form a group: one atomic for all of them."""
    x = RNG.integers(0, 1000, 1024).astype("i4")
    arrays = x, np.zeros(1, "i4"), np.zeros(1024, "i4")
    _, count, got = run(code, "compact", (4, 1), (256, 1), *arrays)
    kept = x[x % 3 == 0]
    assert count[0] == len(kept)
    assert np.array_equal(np.sort(got[: len(kept)]), np.sort(kept))


def test_grid_barrier(code: int) -> None:
    """A cooperative grid waits for all its blocks."""
    x = np.arange(8 * 64, dtype="i4")
    (got,) = run(code, "grid_phases", (8, 1), (64, 1), x, integer(512), cooperative=True)
    assert np.array_equal(got, np.roll(x, -3) + 3)


def test_matrix_product(code: int) -> None:
    """Blocks of two dimensions with tiles in shared memory."""
    a, b = (RNG.integers(-4, 5, (32, 32)).astype("f4") for _ in range(2))
    got = run(code, "matmul", (4, 4), (8, 8), a, b, np.zeros((32, 32), "f4"), integer(32))[2]
    assert np.array_equal(got, a @ b)


def test_maximum_by_compare_and_swap(code: int) -> None:
    """A loop of compare and swap on doubles."""
    x = RNG.standard_normal(4096)
    _, got = run(code, "maximum", (32, 1), (128, 1), x, np.full(1, -math.inf))
    assert got[0] == x.max()


def test_recursion(code: int) -> None:
    """Functions call themselves."""
    (got,) = run(code, "recursion", (1, 1), (15, 1), np.zeros(15, "i4"))
    numbers = [0, 1]
    while len(numbers) < 15:
        numbers.append(numbers[-1] + numbers[-2])
    assert got.tolist() == numbers


def test_virtual_functions(code: int) -> None:
    """Calls through tables of functions, on objects in local memory."""
    x = np.arange(20, dtype="i4")
    (got,) = run(code, "virtual_calls", (1, 1), (20, 1), x)
    assert np.array_equal(got, np.where(x & 1, x * x, x * 7))


def test_barriers_in_a_called_function(code: int) -> None:
    """With dynamic shared memory, in a loop."""
    x = RNG.integers(0, 100, 100).astype("i4")
    (got,) = run(code, "barrier_in_call", (1, 1), (100, 1), x, shared=400)
    assert np.array_equal(got, x[::-1] + 3)


def test_global_variables(code: int) -> None:
    """Constant and global memory with initial values."""
    (got,) = run(code, "globals", (1, 1), (8, 1), np.zeros(8, "f4"))
    assert got.tolist() == [8.5, 9.5, 4.0, 11.0] * 2


def test_local_arrays(code: int) -> None:
    """An insertion sort in local memory."""
    x = RNG.integers(0, 1000, 64).astype("i4")
    _, got = run(code, "local_array", (1, 1), (64, 1), x, np.zeros(64, "i4"))
    assert got.tolist() == [sorted(np.roll(x, -i)[:16])[7] for i in range(64)]


def test_structure_parameters(code: int) -> None:
    """Structures are passed by value."""

    class Parameters(ctypes.Structure):
        _fields_ = [
            ("kind", ctypes.c_char),
            ("s", ctypes.c_short),
            ("scale", ctypes.c_double * 2),
            ("v", ctypes.c_int * 3),
        ]

    given = Parameters(b"A", -7, (2.5, 3.5), (1, 2, 3))
    (got,) = run(code, "structure", (1, 1), (1, 1), given, np.zeros(1), integer(1))
    assert got[0] == 3.5 * 3 - 7 + 65


def test_vector_types(code: int) -> None:
    """float4 and uchar4 move as one."""
    x = RNG.standard_normal((32, 4)).astype("f4")
    c = RNG.integers(0, 256, (32, 4)).astype("u1")
    floats, chars = run(code, "vectors", (1, 1), (32, 1), x, c)
    assert np.array_equal(floats, x[:, ::-1])
    assert np.array_equal(chars, c[:, [1, 0, 3, 2]])


def test_mathematical_functions(code: int) -> None:
    """CUDA's own implementations give results within their documented errors."""
    x = np.linspace(-3, 3, 101)
    _, got = run(code, "functions", (1, 1), (101, 1), x, np.zeros((11, 101)), integer(101))
    f = x.astype("f4").astype("f8")
    wanted = [
        np.exp(x), np.log(np.abs(x) + 1), np.cbrt(x), np.sqrt(np.abs(x)) / 3, np.exp(f),
        np.abs(f) ** np.float32(0.3), np.arctan2(f, 2), np.tanh(f), 1 / np.sqrt(f * f + 1),
        np.exp(f), np.sin(f),
    ]  # fmt: skip
    limits = [3e-16] * 4 + [5e-7] * 5 + [1e-6, 1e-5]
    for row, right, limit in zip(got, wanted, limits, strict=True):
        assert np.max(np.abs(row - right) / np.maximum(np.abs(right), 0.1)) < limit


def test_integers(code: int) -> None:
    """64-bit division, high products and counting."""
    x = RNG.integers(-(2**62), 2**62, 64) >> RNG.integers(0, 60, 64)
    x[x == 0] = 1
    _, got = run(code, "integers", (1, 1), (64, 1), x, np.zeros((6, 64), "i8"), integer(64))

    def cut(value: int, bits: int) -> int:
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value

    def divide(a: int, b: int) -> int:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    for i in range(64):
        v, w = int(x[i]), int(x[(i + 1) % 64])
        u = v & (2**64 - 1)
        wanted = [
            divide(v, w),
            v - divide(v, w) * w,
            (v * w) >> 64,
            u.bit_count() + (64 - u.bit_length()) * 100 + (u & -u).bit_length() * 10000,
            (u >> 7) // 1000003,
            cut(divide(cut(v, 32), cut(w, 32) | 1), 32),
        ]
        assert got[:, i].tolist() == wanted


def test_half_precision(code: int) -> None:
    """__half and __half2 round like NumPy's float16; the JIT may contract h = x * 1.5 + x[0]."""
    x = RNG.standard_normal(32).astype("f2")
    y = RNG.standard_normal((32, 2)).astype("f2")
    got = run(code, "halves", (1, 1), (32, 1), x, y, np.zeros(32, "f4"))[2]
    h = x * np.float16(1.5) + x[0]
    once = (x.astype("f8") * 1.5 + x[0].astype("f8")).astype("f2")
    p = (y.astype("f8") ** 2 + y[0].astype("f8")).astype("f2").astype("f4")
    rest = np.where(x > x[1], np.float32(100), np.float32(0)) + p[:, 0]
    rest = rest + np.float32(1000) * p[:, 1]
    twice = np.isclose(got, h.astype("f4") + rest, rtol=1e-6)
    assert np.all(twice | np.isclose(got, once.astype("f4") + rest, rtol=1e-6))


def test_printf(code: int, capfd: pytest.CaptureFixture[str]) -> None:
    """printf writes to the process's standard output."""
    run(code, "print", (1, 1), (2, 1), np.zeros(1, "i4"))
    assert capfd.readouterr().out == "thread 1 of 2:  2.50 text c -5 0xff %\n"
