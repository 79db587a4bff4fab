"""Random numbers against the published algorithms, written again here in Python's integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import compiler as cuda
from compiler import random

GENERATORS = ["llvm", "nvvm"]
MASK = 2**64 - 1


class Reference:
    """xoroshiro128+ of 2016 (Blackman and Vigna), seeded by SplitMix64."""

    def __init__(self, seed: int) -> None:
        z = (seed + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        self.state = [z ^ (z >> 31)] * 2

    @staticmethod
    def rotated(x: int, count: int) -> int:
        """*x* rotated to the left."""
        return (x << count | x >> (64 - count)) & MASK

    def next(self) -> int:
        """The next number."""
        a, b = self.state
        result = (a + b) & MASK
        b ^= a
        self.state = [self.rotated(a, 55) ^ b ^ (b << 14 & MASK), self.rotated(b, 36)]
        return result

    def jump(self) -> None:
        """Go on by 2**64 numbers."""
        found = [0, 0]
        for word in (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922):
            for bit in range(64):
                if word >> bit & 1:
                    found = [x ^ y for x, y in zip(found, self.state, strict=True)]
                self.next()
        self.state = found


@pytest.mark.parametrize(("seed", "start"), [(0, 0), (1234, 0), (2**64 - 1, 5), (7, 100)])
def test_states_are_those_of_the_reference(seed, start):
    """Each is a jump after the one before, whatever the first."""
    states = random.create_xoroshiro128p_states(12, seed, start).copy_to_host()
    reference = Reference(seed)
    for _ in range(start):
        reference.jump()
    for state in states:
        assert [int(state["s0"]), int(state["s1"])] == reference.state
        reference.jump()


@pytest.mark.parametrize("codegen", GENERATORS)
def test_numbers_are_those_of_the_reference(codegen):
    """Bits, and uniform and normal numbers in both precisions."""

    @cuda.jit(codegen=codegen)
    def kernel(states, bits, o):
        i = cuda.grid(1)
        for k in range(3):
            bits[i, k] = random.xoroshiro128p_next(states, i)
        o[i, 0] = random.xoroshiro128p_uniform_float32(states, i)
        o[i, 1] = random.xoroshiro128p_uniform_float64(states, i)
        o[i, 2] = random.xoroshiro128p_normal_float32(states, i)
        o[i, 3] = random.xoroshiro128p_normal_float64(states, i)

    bits, out = np.zeros((4, 3), np.uint64), np.zeros((4, 4))
    kernel[1, 4](random.create_xoroshiro128p_states(4, seed=42), bits, out)
    first = Reference(42)
    for row, numbers in zip(bits, out, strict=True):
        reference = Reference(0)
        reference.state = list(first.state)
        assert [int(b) for b in row] == [reference.next() for _ in range(3)]
        u = [(reference.next() >> 11) * 2.0**-53 for _ in range(6)]
        assert numbers[0] == np.float32(u[0]) and numbers[1] == u[1]
        normal = [
            math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b) for a, b in (u[2:4], u[4:])
        ]
        np.testing.assert_allclose(numbers[2], normal[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(numbers[3], normal[1], rtol=1e-12)
        first.jump()


def test_jump_and_seed_in_kernels():
    """A state seeded and moved on by a kernel is what the host makes."""

    @cuda.jit
    def kernel(states):
        random.init_xoroshiro128p_state(states, 0, 99)
        random.init_xoroshiro128p_state(states, 1, 99)
        random.xoroshiro128p_jump(states, 1)

    states = cuda.device_array(2, random.xoroshiro128p_dtype)
    kernel[1, 1](states)
    expected = random.create_xoroshiro128p_states(2, 99).copy_to_host()
    np.testing.assert_array_equal(states.copy_to_host(), expected)


def test_uniform_and_normal_numbers_have_their_moments():
    """Mean, variance and range of many numbers of many threads."""

    @cuda.jit
    def kernel(states, uniform, normal):
        i = cuda.grid(1)
        for k in range(uniform.shape[1]):
            uniform[i, k] = random.xoroshiro128p_uniform_float32(states, i)
            normal[i, k] = random.xoroshiro128p_normal_float32(states, i)

    uniform, normal = (np.zeros((256, 64), np.float32) for _ in range(2))
    kernel[2, 128](random.create_xoroshiro128p_states(256, 1), uniform, normal)
    assert uniform.min() >= 0 and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01 and abs(uniform.var() - 1 / 12) < 0.005
    assert abs(normal.mean()) < 0.05 and abs(normal.var() - 1) < 0.05


# Known answers of Random123 1.14, kat_vectors, philox4x32 in 10 rounds: counter, key, result.
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]  # fmt: skip


@pytest.mark.parametrize("codegen", GENERATORS)
def test_philox_gives_the_known_answers(codegen):
    """By words, and by seed, counter and stream of 64 bits."""

    @cuda.jit(codegen=codegen)
    def kernel(c, k, seed, counter, stream, o):
        o[0, 0], o[0, 1], o[0, 2], o[0, 3] = random.philox4x32(c[0], c[1], c[2], c[3], k[0], k[1])
        o[1, 0], o[1, 1], o[1, 2], o[1, 3] = random.philox(seed, counter, stream)

    for counter, key, expected in KNOWN:
        c, k = np.array(counter, np.uint32), np.array(key, np.uint32)
        out = np.zeros((2, 4), np.uint32)
        words = [v for a in (k, c) for v in a.view(np.uint64)]
        kernel[1, 1](c, k, *words, out)
        np.testing.assert_array_equal(out, [expected] * 2)


def test_philox_numbers():
    """Uniform and normal ones in both precisions have their moments, and none repeats."""

    @cuda.jit
    def kernel(o):
        i = cuda.grid(1)
        o[0, 4 * i], o[0, 4 * i + 1], o[0, 4 * i + 2], o[0, 4 * i + 3] = (
            random.philox_uniform_float32(5, i)
        )
        o[1, 2 * i], o[1, 2 * i + 1] = random.philox_uniform_float64(5, i, 1)
        o[2, 2 * i], o[2, 2 * i + 1] = random.philox_normal_float32(5, i, 2)
        o[3, i] = random.philox_normal_float64(5, i, 3)

    out = np.zeros((4, 4096))
    kernel[8, 128](out)
    for row, count in zip(out, (4096, 2048, 2048, 1024), strict=True):
        assert (row[count:] == 0).all() and len(np.unique(row[:count])) > count - 5
    uniform = np.concatenate([out[0], out[1][:2048]])
    normal = np.concatenate([out[2][:2048], out[3][:1024]])
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02
    assert abs(normal.mean()) < 0.08 and abs(normal.var() - 1) < 0.1


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_bad_seeds_are_refused(seed):
    """Before anything is allocated for them in vain."""
    with pytest.raises(ValueError, match="64 bits"):
        random.create_xoroshiro128p_states(4, seed)
