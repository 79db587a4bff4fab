"""Cooperative groups: the block, the grid, tiles and coalesced lanes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import compiler as cuda
from compiler import TypingError, cg
from cudadrv import LaunchError

GENERATORS = ["llvm", "nvvm"]


@pytest.mark.parametrize("codegen", GENERATORS)
def test_the_grid_waits_for_itself(codegen):
    """Every block sees what all others wrote before the barrier, in several rounds."""

    @cuda.jit(codegen=codegen)
    def kernel(a, rounds, o):
        grid = cuda.cg.this_grid()
        i = grid.thread_rank()
        for _ in range(rounds):
            left = a[i - 1]
            grid.sync()
            a[i] = left + 1
            grid.sync()
        if i == 0:
            o[0], o[1], o[2] = grid.size(), grid.num_blocks(), cuda.gridDim.x

    a, out = np.arange(64), np.zeros(3, np.int64)
    kernel[4, 16](a, 5, out)
    np.testing.assert_array_equal(a, np.roll(np.arange(64), 5) + 5)
    np.testing.assert_array_equal(out, [64, 4, 4])
    made = kernel.specialize(a, 5, out)
    assert made.compiled.cooperative
    assert made.max_cooperative_grid_blocks(16) >= 4


def test_a_grid_that_does_not_fit_is_refused():
    """The launch error says that all blocks must run at once; smaller grids still work."""

    @cuda.jit
    def kernel(o):
        g = cg.this_grid()
        g.sync()
        o[g.block_rank()] = 1

    out = cuda.to_device(np.zeros(8))
    kernel[2, 32](out)
    most = kernel.specialize(out).max_cooperative_grid_blocks(1024)
    with pytest.raises(LaunchError, match="fewer blocks"):
        kernel[most + 1, 1024](out)
    np.testing.assert_array_equal(out.copy_to_host(), [1, 1, 0, 0, 0, 0, 0, 0])


def test_ranks_in_blocks_of_three_dimensions():
    """x runs fastest, for threads and blocks."""

    @cuda.jit
    def kernel(o):
        block, grid = cg.this_thread_block(), cg.this_grid()
        block.sync()
        o[grid.thread_rank(), 0] = block.thread_rank()
        o[grid.thread_rank(), 1] = grid.block_rank()
        o[grid.thread_rank(), 2] = block.size() + block.num_threads()

    out = np.zeros((48, 3), np.int64)
    kernel[(2, 1, 2), (3, 2, 2)](out)
    i = np.arange(48)
    np.testing.assert_array_equal(out, np.stack([i % 12, i // 12, i * 0 + 24], 1))


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_tiles(width, codegen):
    """Ranks, shuffles, votes, reductions and scans stay within a tile."""

    @cuda.jit(codegen=codegen)
    def kernel(a, o):
        block = cg.this_thread_block()
        tile = cg.tiled_partition(cg.tiled_partition(block, 32), width)
        i = cuda.threadIdx.x
        o[0, i] = tile.thread_rank() + 100 * tile.size()
        o[1, i] = tile.meta_group_rank() + 100 * tile.meta_group_size()
        o[2, i] = tile.shfl(a[i], 0)
        o[3, i] = tile.shfl_down(a[i], 1)
        o[4, i] = tile.shfl_up(a[i], 1)
        o[5, i] = tile.reduce(a[i])
        o[6, i] = tile.reduce(a[i], max)
        o[7, i] = tile.inclusive_scan(a[i])
        o[8, i] = tile.exclusive_scan(a[i])
        o[9, i] = tile.ballot(a[i] % 2 == 0)
        o[10, i] = tile.any(a[i] == 0) + 2 * tile.all(a[i] > 10)
        tile.sync()

    a = np.random.default_rng(4).integers(0, 1000, 64)
    out = np.zeros((11, 64), np.int64)
    kernel[1, 64](a, out)
    i, rows = np.arange(64), a.reshape(-1, width)
    rank = i % width
    expected = [
        rank + 100 * width,
        i // width + 100 * (64 // width),
        np.repeat(rows[:, 0], width),
        np.where(rank + 1 < width, a[np.minimum(i + 1, 63)], a),
        np.where(rank > 0, a[i - 1], a),
        np.repeat(rows.sum(1), width),
        np.repeat(rows.max(1), width),
        rows.cumsum(1).ravel(),
        rows.cumsum(1).ravel() - a,
        np.repeat(((rows % 2 == 0) << np.arange(width)).sum(1), width),
        np.repeat((rows == 0).any(1) + 2 * (rows > 10).all(1), width),
    ]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("codegen", GENERATORS)
def test_coalesced_threads(codegen):
    """The lanes that take a branch are a group: ranks and masks count within it."""

    @cuda.jit(codegen=codegen)
    def kernel(a, o):
        i = cuda.threadIdx.x
        if a[i] % 3 == 0:
            group = cg.coalesced_threads()
            o[0, i] = group.thread_rank() + 100 * group.size()
            o[1, i] = group.shfl(a[i], group.size() - 1)
            o[2, i] = group.shfl_down(a[i], 2)
            o[3, i] = group.reduce(a[i], min)
            o[4, i] = group.inclusive_scan(a[i])
            o[5, i] = group.ballot(a[i] > 50)
            o[6, i] = group.match_any(a[i] % 2)
            group.sync()

    a = np.random.default_rng(6).integers(1, 100, 32)
    out = np.zeros((7, 32), np.int64)
    kernel[1, 32](a, out)
    some = np.flatnonzero(a % 3 == 0)
    v = a[some]
    ranks = np.arange(len(v))
    expected = np.zeros((7, 32), np.int64)
    expected[:, some] = [
        ranks + 100 * len(v),
        [v[-1]] * len(v),
        [v[r + 2] if r + 2 < len(v) else v[r] for r in ranks],
        [v.min()] * len(v),
        list(itertools.accumulate(v)),
        [((v > 50) << ranks).sum()] * len(v),
        [((v % 2 == w % 2) << ranks).sum() for w in v],
    ]
    np.testing.assert_array_equal(out, expected)


def test_groups_go_to_device_functions():
    """A group is a value: functions take it, with any function to reduce by."""

    @cuda.jit(device=True)
    def spread(group, value):
        return group.reduce(value, max) - group.reduce(value, lambda a, b: a if a < b else b)

    @cuda.jit
    def kernel(a, o):
        tile = cg.tiled_partition(cg.this_thread_block(), 8)
        i = cuda.threadIdx.x
        o[i] = spread(tile, a[i])

    a = np.random.default_rng(8).normal(size=32)
    out = np.zeros(32)
    kernel[1, 32](a, out)
    np.testing.assert_array_equal(out, np.repeat(np.ptp(a.reshape(4, 8), axis=1), 8))


def test_bad_tiles_are_refused():
    """Widths that are no power of two, or wider than the tile, and tiles of the grid."""

    @cuda.jit
    def odd(a):
        cg.tiled_partition(cg.this_thread_block(), 12)

    @cuda.jit
    def wider(a):
        cg.tiled_partition(cg.tiled_partition(cg.this_thread_block(), 8), 16)

    @cuda.jit
    def grid(a):
        cg.tiled_partition(cg.this_grid(), 16)

    for kernel, text in ((odd, "width 12"), (wider, "a tile of 16"), (grid, "has no tiles")):
        with pytest.raises(TypingError, match=text):
            kernel[1, 32](np.zeros(1))
