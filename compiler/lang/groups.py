"""Cooperative groups: types, and which function of pygroups each method is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import I32, Value
from ..types import Literal, Struct, Type, widen
from ..typing.registry import REGISTRY, Match
from . import pygroups as py
from .operators import no_lowering
from .ptx import FORMS, emit
from .stub import Stub
from .warp import activemask


class _Named:
    """What a group is called in messages."""


class ThreadBlock(Struct):
    """All threads of the block."""

    __slots__ = ()


class Grid(Struct):
    """All threads of a cooperative launch."""

    __slots__ = ()


class Cluster(Struct):
    """All threads of the cluster."""

    __slots__ = ()


class Lanes(Struct):
    """Lanes of a warp that are together: mask."""

    __slots__ = ()


class Tile(Lanes):
    """A power of two of neighbouring lanes: width, mask."""

    __slots__ = ()


def _plain(cls: type[Struct], name: str) -> Struct:
    return cls(type(name, (_Named,), {}), (), ())


BLOCK = _plain(ThreadBlock, "thread_block")
GRID = _plain(Grid, "grid_group")
CLUSTER = _plain(Cluster, "cluster_group")
LANES = Lanes(type("coalesced_group", (_Named,), {}), ("mask",), (types.uint32,))
_TILE = type("thread_block_tile", (_Named,), {})
_WIDTHS = (1, 2, 4, 8, 16, 32)


def tile(width: int) -> Tile:
    """The type of tiles of *width* lanes."""
    return Tile(_TILE, ("width", "mask"), (Literal(width), types.uint32))


this_thread_block = Stub("cg.this_thread_block", "cg.this_thread_block(): those of the block.")
this_grid = Stub(
    "cg.this_grid",
    "cg.this_grid(): the threads of the grid; its sync() makes launches cooperative.",
)
this_cluster = Stub("cg.this_cluster", "cg.this_cluster(): the threads of the cluster.")
coalesced_threads = Stub(
    "cg.coalesced_threads", "cg.coalesced_threads(): the lanes of the warp that are here together."
)
tiled_partition = Stub(
    "cg.tiled_partition",
    "cg.tiled_partition(group, width): the tile of the block, or of a wider tile, that the thread "
    "is in.",
)


def _empty(stub: Stub, ty: Struct) -> None:
    def lower(b: Builder, match: Match) -> Value:
        return Value(ty)

    lower.__doc__ = stub.__doc__
    REGISTRY.function(stub, rule=lambda: Match((), ty))(lower)


for _stub, _type in ((this_thread_block, BLOCK), (this_grid, GRID), (this_cluster, CLUSTER)):
    _empty(_stub, _type)


@REGISTRY.function(coalesced_threads, rule=lambda: Match((), LANES))
def lower_coalesced(b: Builder, match: Match) -> Value:
    """The active mask"""
    return Value(LANES, emit(b, "coalesced_threads", FORMS[activemask][0], []).leaves)


def _tile_rule(group: Type, width: Type) -> Match | None:
    if not isinstance(group, ThreadBlock | Tile):
        raise TypingError(f"{widen(group)} has no tiles: a thread block and wider tiles have")
    size = width.value if isinstance(width, Literal) else None
    if size not in _WIDTHS:
        raise TypingError(f"width {size}: a constant power of two up to 32")
    if isinstance(group, Tile) and size > group.items[0].value:  # type: ignore[attr-defined]
        raise TypingError(f"a tile of {size} lanes does not lie in {group.cls.__name__}")
    return Match((None, None), tile(size))


@REGISTRY.function(tiled_partition, rule=_tile_rule)
def lower_tile(b: Builder, match: Match, group: Value, width: Value) -> Value:
    """The mask of the lanes with the same number but for the lowest bits"""
    assert isinstance(width.type, Literal)
    size: int = width.type.value
    lane = b.intrinsic("llvm.nvvm.read.ptx.sreg.laneid", I32, [])
    base = b.llvm.and_(lane, I32(-size))
    return Value(match.returns, (b.llvm.shl(I32(2**size - 1), base),))


@REGISTRY.function(py.workspace, rule=lambda: Match((), types.uint64))
def lower_workspace(b: Builder, match: Match) -> Value:
    """The driver tells it in two registers, in cooperative launches alone"""
    b.module.cooperative = True
    text = (
        "{ .reg .b32 high, low; mov.b32 high, %envreg1; mov.b32 low, %envreg2; "
        "mov.b64 $0, {low, high}; }"
    )
    return Value(types.uint64, (b.asm(text, "=l", ir.IntType(64)),))


def _methods(kind: type[Struct], table: dict[str, tuple[Callable[..., Any], ...]]) -> None:
    """Declare methods: each function takes the group, then as many arguments as it has."""
    for name, functions in table.items():
        for function in functions:
            count = function.__code__.co_argcount
            REGISTRY.method(kind, name, _method_rule(count, function))(no_lowering)


def _method_rule(count: int, function: Callable[..., Any]) -> Callable[..., Match | None]:
    def rule(*given: Type) -> Match | None:
        if len(given) != count:
            return None
        return Match((None,) * count, types.none, python=function)

    return rule


_methods(
    ThreadBlock,
    {
        "sync": (py.block_sync,), "thread_rank": (py.block_rank,), "size": (py.block_size,),
        "num_threads": (py.block_size,),
    },
)  # fmt: skip
_methods(
    Grid,
    {
        "sync": (py.grid_sync,), "thread_rank": (py.grid_rank,), "size": (py.grid_size,),
        "num_threads": (py.grid_size,), "block_rank": (py.grid_block_rank,),
        "num_blocks": (py.block_count,),
    },
)  # fmt: skip
_methods(
    Cluster,
    {
        "sync": (py.cluster_sync,), "thread_rank": (py.cluster_rank,), "size": (py.cluster_size,),
        "num_threads": (py.cluster_size,), "block_rank": (py.cluster_block_rank,),
        "num_blocks": (py.cluster_block_count,),
    },
)  # fmt: skip
_LANES: dict[str, tuple[Callable[..., Any], ...]] = {
    "sync": (py.lanes_sync,), "thread_rank": (py.lanes_rank,), "size": (py.lanes_size,),
    "num_threads": (py.lanes_size,), "any": (py.lanes_any,), "all": (py.lanes_all,),
    "ballot": (py.lanes_ballot,), "match_any": (py.lanes_match_any,), "shfl": (py.lanes_shfl,),
    "shfl_up": (py.lanes_shfl_up,), "shfl_down": (py.lanes_shfl_down,),
    "shfl_xor": (py.lanes_shfl_xor,), "reduce": (py.lanes_sum, py.lanes_reduce),
    "inclusive_scan": (py.lanes_inclusive_sum, py.lanes_inclusive),
    "exclusive_scan": (py.lanes_exclusive_sum, py.lanes_exclusive),
}  # fmt: skip
_methods(Lanes, _LANES)
_methods(
    Tile,
    {
        "thread_rank": (py.tile_rank,), "size": (py.tile_size,), "num_threads": (py.tile_size,),
        "meta_group_rank": (py.tile_number,), "meta_group_size": (py.tile_count,),
        "shfl": (py.tile_shfl,), "shfl_xor": (py.tile_shfl_xor,),
        "reduce": (py.tile_sum, py.tile_reduce),
    },
)  # fmt: skip
