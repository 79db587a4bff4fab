"""Cooperative groups, as in CUDA C++: groups of threads that wait, shuffle, reduce and scan.

In kernels: ``cg.this_grid()``, ``cg.this_cluster()``, ``cg.this_thread_block()``,
``cg.tiled_partition(group, width)``, ``cg.coalesced_threads()``. Each group has sync(),
thread_rank(), size() and num_threads(); grid and cluster block_rank() and num_blocks(). Lanes have
any, all, ballot, match_any, shfl, shfl_up, shfl_down, shfl_xor, and reduce, inclusive_scan and
exclusive_scan of a value with a function, by default the sum; masks count ranks in the group. A
tile also has meta_group_rank() and meta_group_size().
"""

from .lang.groups import (
    coalesced_threads,
    this_cluster,
    this_grid,
    this_thread_block,
    tiled_partition,
)

__all__ = [
    "coalesced_threads", "this_cluster", "this_grid", "this_thread_block", "tiled_partition",
]  # fmt: skip
