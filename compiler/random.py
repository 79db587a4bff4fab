"""Random numbers in kernels: xoroshiro128+ with a state a thread, Philox without any.

xoroshiro128+ is that of Blackman and Vigna, 2016, with numba.cuda's names and streams; Philox 4x32
in ten rounds is that of Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import cudadrv
from cudadrv import device_array

from .dispatch.jit import jit
from .lang.indices import grid
from .types import float32, float64, uint32, uint64

xoroshiro128p_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
_JUMP = (np.uint64(0xBEAC0467EBA5FACB), np.uint64(0xD86B048B86AA9922))
_BELOW_ONE_32 = np.float32(1) - np.float32(2**-24)
_LEAST = 2.0**-54
_TWO_PI = 2 * math.pi
_BLOCK = 128


def device(function: Callable[..., Any]) -> Any:
    """A function that kernels call."""
    return jit(device=True)(function)


def launched(function: Callable[..., Any]) -> Any:
    """A kernel."""
    return jit(function)


# xoroshiro128+


@device
def xoroshiro128p_next(states: Any, index: Any) -> Any:
    """The next 64 random bits of a state, which moves on."""
    s0, s1 = states[index].s0, states[index].s1
    result = s0 + s1
    s1 ^= s0
    states[index].s0 = (s0 << uint64(55) | s0 >> uint64(9)) ^ s1 ^ s1 << uint64(14)
    states[index].s1 = s1 << uint64(36) | s1 >> uint64(28)
    return result


@device
def xoroshiro128p_jump(states: Any, index: Any) -> None:
    """Move a state on by 2**64 numbers."""
    s0 = s1 = uint64(0)
    for word in _JUMP:
        for bit in range(64):
            if word >> uint64(bit) & uint64(1):
                s0 ^= states[index].s0
                s1 ^= states[index].s1
            xoroshiro128p_next(states, index)
    states[index].s0 = s0
    states[index].s1 = s1


@device
def init_xoroshiro128p_state(states: Any, index: Any, seed: Any) -> None:
    """Make a state of a seed, by one step of SplitMix64."""
    z = uint64(seed) + uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> uint64(30)) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> uint64(27)) * uint64(0x94D049BB133111EB)
    z ^= z >> uint64(31)
    states[index].s0 = z
    states[index].s1 = z


@device
def uint64_to_unit_float64(x: Any) -> Any:
    """64 random bits as a float64 from 0, included, to 1, excluded."""
    return float64(x >> uint64(11)) * 2.0**-53


@device
def uint64_to_unit_float32(x: Any) -> Any:
    """64 random bits as a float32 from 0, included, to 1, excluded."""
    return min(float32(uint64_to_unit_float64(x)), _BELOW_ONE_32)


@device
def xoroshiro128p_uniform_float32(states: Any, index: Any) -> Any:
    """A float32 from 0, included, to 1, excluded; the state moves on."""
    return uint64_to_unit_float32(xoroshiro128p_next(states, index))


@device
def xoroshiro128p_uniform_float64(states: Any, index: Any) -> Any:
    """A float64 from 0, included, to 1, excluded; the state moves on."""
    return uint64_to_unit_float64(xoroshiro128p_next(states, index))


@device
def xoroshiro128p_normal_float32(states: Any, index: Any) -> Any:
    """A float32 of mean 0 and variance 1 (Box and Muller); the state moves on by two."""
    u = xoroshiro128p_uniform_float32(states, index)
    v = xoroshiro128p_uniform_float32(states, index)
    return _normal_32(u, v)


@device
def xoroshiro128p_normal_float64(states: Any, index: Any) -> Any:
    """A float64 of mean 0 and variance 1 (Box and Muller); the state moves on by two."""
    u = xoroshiro128p_uniform_float64(states, index)
    v = xoroshiro128p_uniform_float64(states, index)
    return _normal_64(u, v)


@device
def _normal_32(u: Any, v: Any) -> Any:
    radius = math.sqrt(float32(-2) * math.log(max(u, float32(_LEAST))))
    return radius * math.cos(float32(_TWO_PI) * v)


@device
def _normal_64(u: Any, v: Any) -> Any:
    return math.sqrt(-2.0 * math.log(max(u, _LEAST))) * math.cos(_TWO_PI * v)


# States on the device: the state of thread i is 2**64 numbers times i further on. To go there at
# once, the jump is a matrix over the 128 bits, of which the kernel has the powers 2**k.


@device
def _multiplied(matrix: Any, s0: Any, s1: Any) -> Any:
    """The state that a matrix makes of this one."""
    t0 = t1 = uint64(0)
    for bit in range(64):
        low = uint64(0) - (s0 >> uint64(bit) & uint64(1))
        high = uint64(0) - (s1 >> uint64(bit) & uint64(1))
        t0 ^= matrix[bit, 0] & low ^ matrix[64 + bit, 0] & high
        t1 ^= matrix[bit, 1] & low ^ matrix[64 + bit, 1] & high
    return t0, t1


@launched
def _init_kernel(states: Any, first: Any, powers: Any, start: Any) -> None:
    i = grid(1)
    if i >= states.size:
        return
    s0, s1 = first, first
    jumps = uint64(i) + start
    power = 0
    while jumps:
        if jumps & uint64(1):
            s0, s1 = _multiplied(powers[power], s0, s1)
        jumps >>= uint64(1)
        power += 1
    states[i].s0 = s0
    states[i].s1 = s1


def _split_mix(seed: int) -> int:
    mask = 2**64 - 1
    z = (seed + 0x9E3779B97F4A7C15) & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def _step(s0: Any, s1: Any) -> tuple[Any, Any]:
    """The states after these, on arrays."""
    s1 = s1 ^ s0
    moved = (s0 << np.uint64(55) | s0 >> np.uint64(9)) ^ s1 ^ s1 << np.uint64(14)
    return moved, s1 << np.uint64(36) | s1 >> np.uint64(28)


def _jump_matrix() -> Any:
    """What a jump makes of each of the 128 bits: (128, 2) words."""
    bits = np.uint64(1) << np.arange(64, dtype=np.uint64)
    none = np.zeros(64, np.uint64)
    s0, s1 = np.concatenate([bits, none]), np.concatenate([none, bits])
    t0, t1 = np.zeros(128, np.uint64), np.zeros(128, np.uint64)
    for word in _JUMP:
        for bit in range(64):
            if int(word) >> bit & 1:
                t0, t1 = t0 ^ s0, t1 ^ s1
            s0, s1 = _step(s0, s1)
    return np.stack([t0, t1], axis=1)


def _squared(matrix: Any) -> Any:
    """The matrix applied twice."""
    shifts = np.arange(64, dtype=np.uint64)
    bits = (matrix[:, :, None] >> shifts & np.uint64(1)).reshape(128, 128).astype(np.int64)
    product = (bits @ bits & 1).astype(np.uint64).reshape(128, 2, 64)
    squared: Any = (product << shifts).sum(axis=2, dtype=np.uint64)
    return squared


def _powers(count: int) -> Any:
    matrices = [_jump_matrix()]
    while len(matrices) < count:
        matrices.append(_squared(matrices[-1]))
    return np.stack(matrices)


def init_xoroshiro128p_states(
    states: Any, seed: int, subsequence_start: int = 0, stream: Any = 0
) -> None:
    """Set each state of a device array to a stream of its own, 2**64 numbers after the one before.

    Args:
        states: of dtype `xoroshiro128p_dtype`.
        seed: from 0 to 2**64 - 1.
        subsequence_start: how many streams to leave out, such as those of other devices.

    Raises:
        ValueError: the seed or the start is negative or has more than 64 bits.
    """
    for name, number in (("seed", seed), ("subsequence_start", subsequence_start)):
        if not 0 <= int(number) < 2**64:
            raise ValueError(f"{name} {number}: give a number of 64 bits that is not negative")
    count = int(states.size)
    if count == 0:
        return
    powers = _powers(max((subsequence_start + count).bit_length(), 1))
    first, start = np.uint64(_split_mix(int(seed))), np.uint64(subsequence_start)
    blocks = -(-count // _BLOCK)
    _init_kernel[blocks, _BLOCK, stream](states, first, cudadrv.to_device(powers), start)


def create_xoroshiro128p_states(
    n: int, seed: int, subsequence_start: int = 0, stream: Any = 0
) -> Any:
    """A device array of *n* states, see `init_xoroshiro128p_states`; each thread uses one."""
    states = device_array(n, xoroshiro128p_dtype)
    init_xoroshiro128p_states(states, seed, subsequence_start, stream)
    return states


# Philox


@device
def philox4x32(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Four times 32 random bits, of a counter of four words and a key of two."""
    c0, c1, c2, c3 = uint32(c0), uint32(c1), uint32(c2), uint32(c3)
    k0, k1 = uint32(k0), uint32(k1)
    for _ in range(10):
        first = uint64(c0) * uint64(0xD2511F53)
        second = uint64(c2) * uint64(0xCD9E8D57)
        c0 = uint32(second >> uint64(32)) ^ c1 ^ k0
        c1 = uint32(second)
        c2 = uint32(first >> uint64(32)) ^ c3 ^ k1
        c3 = uint32(first)
        k0 += uint32(0x9E3779B9)
        k1 += uint32(0xBB67AE85)
    return c0, c1, c2, c3


@device
def philox(seed: Any, counter: Any, stream: Any = 0) -> Any:
    """Four times 32 random bits of 64-bit seed, counter and stream: the same each time."""
    seed, counter, stream = uint64(seed), uint64(counter), uint64(stream)
    high = uint64(32)
    return philox4x32(counter, counter >> high, stream, stream >> high, seed, seed >> high)


@device
def _unit_32(bits: Any) -> Any:
    return float32(bits >> uint32(8)) * float32(2.0**-24)


@device
def _unit_64(low: Any, high: Any) -> Any:
    return uint64_to_unit_float64(uint64(high) << uint64(32) | uint64(low))


@device
def philox_uniform_float32(seed: Any, counter: Any, stream: Any = 0) -> Any:
    """Four float32 from 0, included, to 1, excluded."""
    a, b, c, d = philox(seed, counter, stream)
    return _unit_32(a), _unit_32(b), _unit_32(c), _unit_32(d)


@device
def philox_uniform_float64(seed: Any, counter: Any, stream: Any = 0) -> Any:
    """Two float64 from 0, included, to 1, excluded."""
    a, b, c, d = philox(seed, counter, stream)
    return _unit_64(a, b), _unit_64(c, d)


@device
def philox_normal_float32(seed: Any, counter: Any, stream: Any = 0) -> Any:
    """Two float32 of mean 0 and variance 1."""
    a, b, c, d = philox_uniform_float32(seed, counter, stream)
    return _normal_32(a, b), _normal_32(c, d)


@device
def philox_normal_float64(seed: Any, counter: Any, stream: Any = 0) -> Any:
    """A float64 of mean 0 and variance 1."""
    u, v = philox_uniform_float64(seed, counter, stream)
    return _normal_64(u, v)
