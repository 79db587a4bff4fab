"""Shuffles, votes, matches and reductions of warps, full and partial."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from compiler import TypingError

GENERATORS = ["llvm", "nvvm"]
FULL = 0xFFFFFFFF
LANES = np.arange(32)
TYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
]  # fmt: skip


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("dtype", TYPES)
def test_shuffles_of_every_type(dtype, codegen):
    """From a lane, up, down and across, in all their bits."""

    @cuda.jit(codegen=codegen)
    def kernel(a, o):
        i = cuda.threadIdx.x
        o[0, i] = cuda.shfl_sync(FULL, a[i], 31 - i)
        o[1, i] = cuda.shfl_up_sync(FULL, a[i], 3)
        o[2, i] = cuda.shfl_down_sync(FULL, a[i], 5)
        o[3, i] = cuda.shfl_xor_sync(FULL, a[i], 9)
        o[4, i] = cuda.shfl_sync(FULL, a[i], 2, 8)

    raw = np.random.default_rng(1).integers(0, 256, 32 * np.dtype(dtype).itemsize, dtype=np.uint8)
    a = (raw & 1).view(dtype) if dtype is np.bool_ else raw.view(dtype)
    out = np.zeros((5, 32), dtype)
    kernel[1, 32](a, out)
    sources = [
        31 - LANES, np.where(LANES < 3, LANES, LANES - 3), np.where(LANES > 26, LANES, LANES + 5),
        LANES ^ 9, LANES & ~7 | 2,
    ]  # fmt: skip
    expected = np.array([a[source] for source in sources])
    assert out.tobytes() == expected.tobytes()


def test_shuffles_of_tuples_and_of_part_of_a_warp():
    """A tuple moves as a whole; lanes outside the mask take no part."""

    @cuda.jit
    def kernel(o):
        i = cuda.threadIdx.x
        if i < 8:
            number, (z, flag) = cuda.shfl_down_sync(0xFF, (i, (i * 1j, i > 3)), 1, width=8)
            o[i] = number + z + 100 * flag

    out = np.zeros(32, complex)
    kernel[1, 32](out)
    i = np.minimum(LANES + 1, 7)
    np.testing.assert_array_equal(out, np.where(LANES < 8, i + i * 1j + 100 * (i > 3), 0))


@pytest.mark.parametrize("codegen", GENERATORS)
def test_votes_and_masks(codegen):
    """all, any, eq and ballot of a condition; the masks beside a lane."""

    @cuda.jit(codegen=codegen)
    def kernel(limit, o):
        i = cuda.threadIdx.x
        holds = i < limit
        o[0, i] = cuda.all_sync(FULL, holds)
        o[1, i] = cuda.any_sync(FULL, holds)
        o[2, i] = cuda.eq_sync(FULL, holds)
        o[3, i] = cuda.ballot_sync(FULL, i & 4)
        o[4, i] = cuda.activemask()
        o[5, i] = cuda.lanemask_lt()
        o[6, i] = cuda.lanemask_le()
        o[7, i] = cuda.lanemask_eq()
        o[8, i] = cuda.lanemask_ge()
        o[9, i] = cuda.lanemask_gt()
        o[10, i] = cuda.laneid + cuda.warpsize

    for limit in (0, 7, 32):
        out = np.zeros((11, 32), np.int64)
        kernel[1, 32](limit, out)
        holds = limit > LANES
        own = 1 << LANES
        expected = [
            [holds.all()] * 32, [holds.any()] * 32, [holds.all() or not holds.any()] * 32,
            [0xF0F0F0F0] * 32, [FULL] * 32, own - 1, own * 2 - 1, own, FULL & -own,
            FULL & -(own * 2), LANES + 32,
        ]  # fmt: skip
        np.testing.assert_array_equal(out, np.array(expected, np.int64))


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.int16, np.float32, np.float64])
def test_matches(dtype):
    """match_any groups equal values; match_all is all or nothing."""

    @cuda.jit
    def kernel(a, o):
        i = cuda.threadIdx.x
        o[0, i] = cuda.match_any_sync(FULL, a[i])
        mask, same = cuda.match_all_sync(FULL, a[i])
        o[1, i] = mask + same * 2.0**40
        mask, same = cuda.match_all_sync(FULL, a[0])
        o[2, i] = mask + same * 2.0**40

    a = (LANES % 5 - 2).astype(dtype)
    out = np.zeros((3, 32), np.int64)
    kernel[1, 32](a, out)
    same = [sum(1 << int(k) for k in np.flatnonzero(a == v)) for v in a]
    np.testing.assert_array_equal(out, [same, [0] * 32, [FULL + 2**40] * 32])


FUNCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


REDUCED = [
    (dtype, name)
    for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32)
    for name in FUNCTIONS
    if dtype is not np.float32 or name in ("add", "min", "max")
]


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize(("dtype", "name"), REDUCED)
def test_reductions(dtype, name, codegen):
    """Over a full warp and over some of its lanes, negative numbers among them."""
    function = getattr(cuda, f"reduce_{name}_sync")

    @cuda.jit(codegen=codegen)
    def kernel(a, o):
        i = cuda.threadIdx.x
        o[0, i] = function(FULL, a[i])
        if i % 3 == 1:
            o[1, i] = function(0x92492492, a[i])

    a = np.random.default_rng(2).integers(-1000, 1000, 32).astype(dtype)
    out = np.zeros((2, 32), dtype)
    kernel[1, 32](a, out)
    some = LANES % 3 == 1
    whole, part = (FUNCTIONS[name].reduce(v, dtype=dtype) for v in (a, a[some]))
    np.testing.assert_array_equal(out, [[whole] * 32, np.where(some, part, 0)])


def test_one_lane_is_elected():
    """Exactly one of the mask."""

    @cuda.jit
    def kernel(o):
        i = cuda.threadIdx.x
        if i >= 5:
            o[i] = cuda.elect_sync(0xFFFFFFE0)

    out = np.zeros(32, np.int64)
    kernel[1, 32](out)
    assert out.sum() == 1 and out[:5].sum() == 0


def test_bad_widths_and_values_are_refused():
    """A width that is no power of two, and an array."""

    @cuda.jit
    def width(a):
        a[0] = cuda.shfl_sync(FULL, a[0], 0, 12)

    @cuda.jit
    def array(a):
        a[0] = cuda.shfl_sync(FULL, a, 0)[0]

    for kernel, text in ((width, "width 12"), (array, "cannot be moved")):
        with pytest.raises(TypingError, match=text):
            kernel[1, 32](np.zeros(32))


def test_a_mask_without_the_lane_itself_is_found_in_debug_mode():
    """The ValueError says the mask; the lanes that the mask names go on."""

    @cuda.jit(debug=True)
    def kernel(a):
        i = cuda.threadIdx.x
        a[i] = cuda.shfl_sync(0xF, a[i], 0)

    with pytest.raises(ValueError, match="the mask 15 does not name the lane"):
        kernel[1, 8](np.zeros(8))
