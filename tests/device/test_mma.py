"""Tensor cores: each product against NumPy, fragments filled by their documented layout."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from compiler import TypingError

GENERATORS = ["llvm", "nvvm"]
LANES = np.arange(32)
GROUP, PLACE = LANES // 4, LANES % 4
RNG = np.random.default_rng(11)


def fragments(a, b, c, per_word):
    """What each lane holds of A, B and C: arrays of (lane, register, number in the register)."""
    inner = a.shape[1]
    halves, parts = a.shape[0] // 8, inner // (4 * per_word)
    numbers = np.arange(per_word)
    left, right = [], []
    for part in range(parts):
        k = (part * 4 * per_word + PLACE * per_word)[:, None] + numbers
        left += [a[(GROUP + 8 * half)[:, None], k] for half in range(halves)]
        right.append(b[k, GROUP[:, None]])
    rows = [(GROUP + 8 * half, 2 * PLACE + n) for half in range(halves) for n in range(2)]
    return np.stack(left, 1), np.stack(right, 1), np.stack([c[i, j] for i, j in rows], 1)


def as_words(numbers):
    """The numbers of each register as the bits of one uint32."""
    return np.ascontiguousarray(numbers).view(np.uint32)[..., 0]


def bf16(x):
    """The upper halves of float32 numbers that fit into them."""
    return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def run(function, a, b, c, codegen):
    """The fragment of D in each lane."""
    counts = a.shape[1], b.shape[1], c.shape[1]

    @cuda.jit(codegen=codegen)
    def sixteen(a, b, c, d):
        i = cuda.threadIdx.x
        x = (a[i, 0], a[i, 1], a[i, 2], a[i, 3])
        y = (b[i, 0], b[i, 1])
        z = (c[i, 0], c[i, 1], c[i, 2], c[i, 3])
        d[i, 0], d[i, 1], d[i, 2], d[i, 3] = function(x, y, z)

    @cuda.jit(codegen=codegen)
    def eight(a, b, c, d):
        i = cuda.threadIdx.x
        d[i, 0], d[i, 1] = function((a[i, 0],), (b[i, 0],), (c[i, 0], c[i, 1]))

    d = np.zeros_like(c)
    (sixteen if counts[0] == 4 else eight)[1, 32](a, b, c, d)
    return d


# Name: rows, inner dimension, numbers of a register, their type, how they become bits, C's type.
CASES = {
    "m16n8k16_f16": (16, 16, 2, np.float16, as_words, np.float32),
    "m16n8k16_bf16": (16, 16, 2, np.float32, lambda x: as_words(bf16(x)), np.float32),
    "m16n8k8_tf32": (16, 8, 1, np.float32, as_words, np.float32),
    "m8n8k4_f64": (8, 4, 1, np.float64, lambda x: x[..., 0], np.float64),
    "m16n8k32_s8": (16, 32, 4, np.int8, as_words, np.int32),
    "m16n8k32_u8": (16, 32, 4, np.uint8, as_words, np.int32),
}


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("name", CASES)
def test_each_product(name, codegen):
    """Whole numbers, so that every order of the sums gives the same."""
    rows, inner, per_word, kind, bits, total = CASES[name]
    low = 0 if kind is np.uint8 else -9
    a = RNG.integers(low, 9, (rows, inner)).astype(kind)
    b = RNG.integers(low, 9, (inner, 8)).astype(kind)
    c = RNG.integers(-99, 99, (rows, 8)).astype(total)
    left, right, start = fragments(a, b, c, per_word)
    d = run(getattr(cuda, f"mma_{name}"), bits(left), bits(right), start, codegen)
    product = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_array_equal(d, fragments(a, b, product.astype(total), per_word)[2])


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_and_stmatrix(count, transposed, codegen):
    """Each lane gets its two numbers of each matrix; storing them gives the matrices again."""

    @cuda.jit(codegen=codegen)
    def kernel(a, words, back):
        part = cuda.shared.array((32, 8), cuda.uint16)
        other = cuda.shared.array((32, 8), cuda.uint16)
        i = cuda.threadIdx.x
        for j in range(8):
            part[i, j] = a[i, j]
            other[i, j] = 0
        cuda.syncthreads()
        registers = cuda.ldmatrix(part, (i, 0), count, transposed)
        for r in range(count):
            words[i, r] = registers[r]
        cuda.stmatrix(other, (i, 0), registers, transposed)
        cuda.syncthreads()
        for j in range(8):
            back[i, j] = other[i, j]

    a = RNG.integers(0, 2**16, (32, 8)).astype(np.uint16)
    words, back = np.zeros((32, count), np.uint32), np.zeros_like(a)
    kernel[1, 32](a, words, back)
    for r in range(count):
        matrix = a[8 * r : 8 * r + 8]
        matrix = matrix.T if transposed else matrix
        pairs = np.ascontiguousarray(matrix).view(np.uint32)
        np.testing.assert_array_equal(words[:, r], pairs[GROUP, PLACE])
    np.testing.assert_array_equal(back[: 8 * count], a[: 8 * count])
    assert (back[8 * count :] == 0).all()


@cuda.jit
def too_few_registers(a):
    cuda.mma_m16n8k16_f16((1, 2), (1, 2), (0.0, 0.0, 0.0, 0.0))


@cuda.jit
def loads_from_global(a):
    cuda.ldmatrix(a, 0, 4)


@cuda.jit
def loads_three(a):
    part = cuda.shared.array(64, cuda.float16)
    cuda.ldmatrix(part, 0, 3)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (too_few_registers, "a tuple of 4 uint32"),
        (loads_from_global, "shared arrays of 16-bit numbers"),
        (loads_three, r"one of \(1, 2, 4\)"),
    ],
)
def test_bad_fragments_are_refused(kernel, text):
    """Each with what a fragment consists of."""
    with pytest.raises(TypingError, match=text):
        kernel[1, 32](np.zeros(64))
