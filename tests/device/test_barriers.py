"""Barriers that count, barriers by number, fences, and threads that end early."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda

GENERATORS = ["llvm", "nvvm"]


@pytest.mark.parametrize("codegen", GENERATORS)
def test_syncthreads_counts(codegen):
    """Over all threads of the block, of ints and bools."""

    @cuda.jit(codegen=codegen)
    def kernel(limit, o):
        i = cuda.threadIdx.x
        o[0, i] = cuda.syncthreads_count(i < limit)
        o[1, i] = cuda.syncthreads_and(i < limit)
        o[2, i] = cuda.syncthreads_or(limit - i if i < limit else 0)

    for limit in (0, 33, 70):
        out = np.zeros((3, 70), np.int32)
        kernel[1, 70](limit, out)
        np.testing.assert_array_equal(out, [[limit] * 70, [limit == 70] * 70, [limit > 0] * 70])


@pytest.mark.parametrize("codegen", GENERATORS)
def test_barriers_by_number(codegen):
    """One warp produces and arrives, the other waits; two pairs go on by themselves."""

    @cuda.jit(codegen=codegen)
    def kernel(o):
        part = cuda.shared.array(128, cuda.int32)
        i = cuda.threadIdx.x
        pair = i // 64
        if i % 64 < 32:
            part[i] = i + 1
            cuda.threadfence_block()
            cuda.barrier_arrive(pair + 1, 64)
        else:
            cuda.barrier_sync(pair + 1, 64)
            o[i] = part[i - 32]

    out = np.zeros(128, np.int32)
    kernel[1, 128](out)
    i = np.arange(128)
    np.testing.assert_array_equal(out, np.where(i % 64 < 32, 0, i - 31))


def test_a_barrier_behind_a_branch_with_a_division():
    """The division makes no hidden way past the barrier."""

    @cuda.jit
    def kernel(p):
        t = cuda.threadIdx.x
        d = p[0]
        if t < 14:
            p[2] = 5 // (d + 1)
        if t == 1:
            p[0] = 112211
        cuda.syncthreads()
        if t == 17:
            p[1] = p[0]

    for debug in (False, True):
        p = np.array([4, 0, 0])
        cuda.jit(debug=debug)(kernel.pyfunc)[1, 20](p)
        np.testing.assert_array_equal(p[:2], [112211, 112211])


def test_a_loop_with_continue_ends():
    """A barrier in the condition of a loop, and threads that skip the rest of a round."""

    @cuda.jit
    def kernel(o):
        i = cuda.threadIdx.x
        left = i
        rounds = 0
        while cuda.syncthreads_or(left > 0):
            rounds += 1
            if left == 0:
                continue
            left -= 1
        o[i] = rounds

    out = np.zeros(8, np.int32)
    kernel[1, 8](out)
    np.testing.assert_array_equal(out, [7] * 8)


def test_fences_of_each_scope():
    """What is written before the flag is there after it, over blocks."""

    @cuda.jit
    def kernel(data, flag, o):
        if cuda.blockIdx.x == 0:
            data[0] = 42
            cuda.threadfence()
            cuda.threadfence_system()
            cuda.atomic.exch(flag, 0, 1)
        else:
            while cuda.atomic.add(flag, 0, 0) == 0:
                cuda.nanosleep(100)
            cuda.threadfence()
            o[0] = data[0]

    data, flag, out = (np.zeros(1, np.int32) for _ in range(3))
    kernel[2, 1](data, flag, out)
    assert out[0] == 42
