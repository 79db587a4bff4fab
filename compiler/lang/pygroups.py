"""What cooperative groups do, in the kernel language."""

from __future__ import annotations

import operator
from typing import Any

from . import indices, intrinsics, ptx, sync, warp
from .stub import Stub

# Kernels see these names; a type checker sees functions that are not to be called.
asm: Any = ptx.asm
popc: Any = intrinsics.popc
ffs: Any = intrinsics.ffs
syncthreads: Any = sync.syncthreads
syncwarp: Any = sync.syncwarp
cluster_wait_all: Any = sync.cluster_sync
threadfence: Any = sync.threadfence
lanemask_lt: Any = warp.lanemask_lt
shuffle: Any = warp.shfl_sync
shuffle_xor: Any = warp.shfl_xor_sync
any_of: Any = warp.any_sync
all_of: Any = warp.all_sync
votes: Any = warp.ballot_sync
matches: Any = warp.match_any_sync
threadIdx: Any = indices.threadIdx
blockIdx: Any = indices.blockIdx
blockDim: Any = indices.blockDim
gridDim: Any = indices.gridDim
laneid: Any = indices.laneid
workspace: Any = Stub("grid_workspace", "Where the barrier of a cooperative grid counts.")


# Threads of a block


def block_rank(group: Any) -> Any:
    """The number of the thread in its block, x fastest."""
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x


def block_size(group: Any) -> Any:
    """Threads of the block."""
    return blockDim.x * blockDim.y * blockDim.z


def block_sync(group: Any) -> None:
    """Wait for all threads of the block."""
    syncthreads()


# All threads of the grid


def block_number() -> Any:
    """The number of the block in its grid, x fastest."""
    return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x


def block_count(group: Any) -> Any:
    """Blocks of the grid."""
    return gridDim.x * gridDim.y * gridDim.z


def grid_block_rank(group: Any) -> Any:
    """The number of the block in its grid."""
    return block_number()


def grid_rank(group: Any) -> Any:
    """The number of the thread in its grid."""
    return block_number() * block_size(group) + block_rank(group)


def grid_size(group: Any) -> Any:
    """Threads of the grid."""
    return block_count(group) * block_size(group)


def grid_sync(group: Any) -> None:
    """Wait for all threads of the grid: the last block to come flips the counter's highest bit."""
    syncthreads()
    if block_rank(group) == 0:
        counter = workspace() + 4
        more = 1
        if block_number() == 0:
            more = 0x80000000 - (block_count(group) - 1)
        threadfence()
        old = asm("atom.add.release.gpu.u32 $0, [$1], $2;", "=r,l,r,memory", counter, more)
        now = old
        while (old ^ now) & 0x80000000 == 0:
            now = asm("ld.acquire.gpu.u32 $0, [$1];", "=r,l,memory", counter)
        threadfence()
    syncthreads()


# Blocks of a cluster


def cluster_sync(group: Any) -> None:
    """Wait for all threads of the cluster."""
    cluster_wait_all()


def cluster_block_rank(group: Any) -> Any:
    """The number of the block in its cluster."""
    return asm("mov.u32 $0, %cluster_ctarank;", "=r", volatile=False)


def cluster_block_count(group: Any) -> Any:
    """Blocks of the cluster."""
    return asm("mov.u32 $0, %cluster_nctarank;", "=r", volatile=False)


def cluster_rank(group: Any) -> Any:
    """The number of the thread in its cluster."""
    return cluster_block_rank(group) * block_size(group) + block_rank(group)


def cluster_size(group: Any) -> Any:
    """Threads of the cluster."""
    return cluster_block_count(group) * block_size(group)


# Lanes of a warp: group.mask names them


def lanes_size(group: Any) -> Any:
    """Lanes of the group."""
    return popc(group.mask)


def lanes_rank(group: Any) -> Any:
    """The number of the lane in its group."""
    return popc(group.mask & lanemask_lt())


def lanes_sync(group: Any) -> None:
    """Wait for the lanes of the group."""
    syncwarp(group.mask)


def lanes_any(group: Any, predicate: Any) -> Any:
    """Whether the predicate holds in some lane."""
    return any_of(group.mask, predicate)


def lanes_all(group: Any, predicate: Any) -> Any:
    """Whether the predicate holds in every lane."""
    return all_of(group.mask, predicate)


def lane_of(group: Any, rank: Any) -> Any:
    """The lane of the warp that has a rank in the group."""
    rest = group.mask
    for _ in range(rank):
        rest &= rest - 1
    return ffs(rest) - 1


def lanes_ballot(group: Any, predicate: Any) -> Any:
    """The ranks for which the predicate holds, as bits."""
    return packed(group, votes(group.mask, predicate))


def lanes_match_any(group: Any, value: Any) -> Any:
    """The ranks that have the same value, as bits."""
    return packed(group, matches(group.mask, value))


def packed(group: Any, lanes: Any) -> Any:
    """Bits of lanes as bits of ranks."""
    found = lanes & 0
    rest = group.mask
    bit = found | 1
    while rest != 0:
        if lanes & rest & -rest:
            found |= bit
        bit <<= 1
        rest &= rest - 1
    return found


def lanes_shfl(group: Any, value: Any, rank: Any) -> Any:
    """The value of the lane with a rank."""
    return shuffle(group.mask, value, lane_of(group, rank))


def lanes_shfl_up(group: Any, value: Any, delta: Any) -> Any:
    """The value of a lane of a lower rank; one's own where there is none."""
    rank = lanes_rank(group)
    return lanes_shfl(group, value, rank - delta if rank >= delta else rank)


def lanes_shfl_down(group: Any, value: Any, delta: Any) -> Any:
    """The value of a lane of a higher rank; one's own where there is none."""
    rank = lanes_rank(group)
    return lanes_shfl(group, value, rank + delta if rank + delta < lanes_size(group) else rank)


def lanes_shfl_xor(group: Any, value: Any, bits: Any) -> Any:
    """The value of the lane whose rank differs in *bits*; one's own where there is none."""
    rank = lanes_rank(group)
    other = rank ^ bits
    return lanes_shfl(group, value, other if other < lanes_size(group) else rank)


def lanes_reduce(group: Any, value: Any, function: Any) -> Any:
    """*function* over the values of the group, in each of its lanes."""
    rest = group.mask & (group.mask - 1)
    total = shuffle(group.mask, value, ffs(group.mask) - 1)
    while rest != 0:
        total = function(total, shuffle(group.mask, value, ffs(rest) - 1))
        rest &= rest - 1
    return total


def lanes_inclusive(group: Any, value: Any, function: Any) -> Any:
    """*function* over the values of the ranks up to this one."""
    rest = group.mask & (group.mask - 1)
    total = shuffle(group.mask, value, ffs(group.mask) - 1)
    while rest != 0:
        lane = ffs(rest) - 1
        other = shuffle(group.mask, value, lane)
        if lane <= laneid:
            total = function(total, other)
        rest &= rest - 1
    return total


def lanes_exclusive(group: Any, value: Any, function: Any) -> Any:
    """*function* over the values of the ranks below this one; 0 for the first."""
    total = lanes_shfl_up(group, lanes_inclusive(group, value, function), 1)
    return total if lanes_rank(group) > 0 else 0


def lanes_sum(group: Any, value: Any) -> Any:
    """The sum over the group, in each of its lanes."""
    return lanes_reduce(group, value, operator.add)


def lanes_inclusive_sum(group: Any, value: Any) -> Any:
    """The sum over the ranks up to this one."""
    return lanes_inclusive(group, value, operator.add)


def lanes_exclusive_sum(group: Any, value: Any) -> Any:
    """The sum over the ranks below this one."""
    return lanes_exclusive(group, value, operator.add)


# Tiles: lanes that lie together, a power of two of them


def tile_size(group: Any) -> Any:
    """Lanes of the tile, a constant."""
    return group.width


def tile_rank(group: Any) -> Any:
    """The number of the lane in its tile."""
    return laneid & (group.width - 1)


def tile_number(group: Any) -> Any:
    """The number of the tile in its block."""
    return block_rank(group) // group.width


def tile_count(group: Any) -> Any:
    """Tiles of the block."""
    return (block_size(group) + group.width - 1) // group.width


def tile_shfl(group: Any, value: Any, rank: Any) -> Any:
    """The value of the lane with a rank."""
    return shuffle(group.mask, value, rank, group.width)


def tile_shfl_xor(group: Any, value: Any, bits: Any) -> Any:
    """The value of the lane whose rank differs in *bits*."""
    return shuffle_xor(group.mask, value, bits, group.width)


def tile_reduce(group: Any, value: Any, function: Any) -> Any:
    """*function* over the values of the tile, in each of its lanes."""
    bits = group.width // 2
    while bits > 0:
        value = function(value, shuffle_xor(group.mask, value, bits, group.width))
        bits //= 2
    return value


def tile_sum(group: Any, value: Any) -> Any:
    """The sum over the tile, in each of its lanes."""
    return tile_reduce(group, value, operator.add)
