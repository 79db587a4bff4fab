"""Occupancy computed from what a multiprocessor has, without a driver: for any architecture.

The numbers of each architecture are those of the CUDA C++ Programming Guide 13.0, section "Compute
Capabilities"; how registers and shared memory are dealt out is what the driver is seen to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

WARP = 32
MAX_REGISTERS = 255
MAX_BLOCK = 1024
REGISTER_UNIT = 256  # registers of a warp come in such units
PARTITIONS = 4  # of a multiprocessor; each has a quarter of the registers
KIB = 1024


class Result(NamedTuple):
    """How much of a kernel one multiprocessor runs at once.

    Attributes:
        blocks: that run at once.
        warps: of these blocks.
        occupancy: these warps as a part of the most there can be, from 0 to 1.
        limit: what keeps it from running more: "warps", "blocks", "registers", "shared memory".
    """

    blocks: int
    warps: int
    occupancy: float
    limit: str


class Multiprocessor(NamedTuple):
    """What a multiprocessor has for the blocks on it, in threads, blocks, registers and bytes.

    Attributes:
        shared_block: what one block can have at most.
        reserved: what the system takes of the shared memory of each block.
        shared_unit: shared memory comes in such units.
    """

    threads: int
    blocks: int
    shared: int
    shared_block: int
    reserved: int = KIB
    shared_unit: int = 128
    registers: int = 65536

    def run(self, block: int, registers: int, shared: int) -> Result:
        """What runs at once of a kernel with blocks of *block* threads.

        Args:
            registers: of a thread.
            shared: bytes of a block, static and dynamic.
        """
        warps = -(-block // WARP)
        limits = {
            "warps": self.threads // WARP // warps,
            "blocks": self.blocks,
            "registers": self._by_registers(warps, registers),
            "shared memory": self._by_shared(shared),
        }
        blocks = min(limits.values())
        limit = next(name for name, value in limits.items() if value == blocks)
        return Result(blocks, blocks * warps, blocks * warps * WARP / self.threads, limit)

    def _by_registers(self, warps: int, registers: int) -> int:
        if registers > MAX_REGISTERS:
            return 0
        each = _up(max(registers, 1) * WARP, REGISTER_UNIT)
        if each * _up(warps, PARTITIONS) > self.registers:
            return 0
        return self.registers // PARTITIONS // each * PARTITIONS // warps

    def _by_shared(self, shared: int) -> int:
        if shared > self.shared_block:
            return 0
        needs = _up(shared + self.reserved, self.shared_unit)
        return self.shared // needs if needs else self.blocks


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _old(threads: int, blocks: int, shared: int, largest: int) -> Multiprocessor:
    return Multiprocessor(threads, blocks, shared * KIB, largest * KIB, 0, 256)


def _new(threads: int, blocks: int, shared: int) -> Multiprocessor:
    return Multiprocessor(threads, blocks, shared * KIB, (shared - 1) * KIB)


ARCHITECTURES = {
    (5, 0): _old(2048, 32, 64, 48),
    (5, 2): _old(2048, 32, 96, 48),
    (5, 3): _old(2048, 32, 64, 48),
    (6, 0): _old(2048, 32, 64, 48),
    (6, 1): _old(2048, 32, 96, 48),
    (6, 2): _old(2048, 32, 64, 48),
    (7, 0): _old(2048, 32, 96, 96),
    (7, 2): _old(2048, 32, 96, 96),
    (7, 5): _old(1024, 16, 64, 64),
    (8, 0): _new(2048, 32, 164),
    (8, 6): _new(1536, 16, 100),
    (8, 7): _new(1536, 16, 164),
    (8, 9): _new(1536, 24, 100),
    (9, 0): _new(2048, 32, 228),
    (10, 0): _new(2048, 32, 228),
    (10, 3): _new(2048, 32, 228),
    (11, 0): _new(1536, 24, 228),
    (12, 0): _new(1536, 24, 100),
    (12, 1): _new(1536, 24, 100),
}


def of_arch(arch: str) -> Multiprocessor:
    """The multiprocessor of an architecture such as "sm_90".

    Raises:
        ValueError: it is none of those known, which the error lists.
    """
    found = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)[af]?", arch)
    known = ARCHITECTURES.get((int(found[1]), int(found[2]))) if found else None
    if known is None:
        names = ", ".join("sm_{}{}".format(*each) for each in ARCHITECTURES)
        raise ValueError(f"architecture {arch!r} is none of {names}")
    return known


def of_device(attributes: Mapping[str, int | None]) -> Multiprocessor:
    """The multiprocessor of a device with these attributes."""
    major = attributes["COMPUTE_CAPABILITY_MAJOR"] or 0
    static = attributes["MAX_SHARED_MEMORY_PER_BLOCK"] or 48 * KIB
    return Multiprocessor(
        attributes["MAX_THREADS_PER_MULTIPROCESSOR"] or 2048,
        attributes["MAX_BLOCKS_PER_MULTIPROCESSOR"] or 32,
        attributes["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"] or static,
        attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"] or static,
        attributes["RESERVED_SHARED_MEMORY_PER_BLOCK"] or 0,
        128 if major >= 8 else 256,
        attributes["MAX_REGISTERS_PER_MULTIPROCESSOR"] or 65536,
    )
