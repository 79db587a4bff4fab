"""Barriers and memory fences."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .. import types
from ..lowering.builder import Builder
from ..lowering.models import Value
from ..types import Integer, Type, number
from ..typing.registry import REGISTRY, Match
from .stub import Stub

syncthreads = Stub("syncthreads", "syncthreads(): wait until all threads of the block are here.")
threadfence = Stub("threadfence", "threadfence(): order memory accesses for the whole device.")
threadfence_block = Stub("threadfence_block", "threadfence_block(): order them for the block.")
threadfence_system = Stub("threadfence_system", "threadfence_system(): order them for all devices.")
syncwarp = Stub(
    "syncwarp",
    """syncwarp(mask=0xFFFFFFFF): wait until the lanes of the warp that *mask* names are here.""",
)

_INTRINSICS = {
    syncthreads: "llvm.nvvm.barrier0",
    threadfence: "llvm.nvvm.membar.gl",
    threadfence_block: "llvm.nvvm.membar.cta",
    threadfence_system: "llvm.nvvm.membar.sys",
}


def _without_arguments(stub: Any, intrinsic: str) -> None:
    def lower(b: Builder, match: Match) -> Value:
        b.intrinsic(intrinsic, ir.VoidType(), [], convergent=True)
        return Value(types.none)

    REGISTRY.function(stub, rule=lambda: Match((), types.none))(lower)


for _stub, _intrinsic in _INTRINSICS.items():
    _without_arguments(_stub, _intrinsic)

_ALL_LANES = types.Literal(0xFFFFFFFF)


def _mask(mask: Type = _ALL_LANES) -> Match | None:
    return Match((types.uint32,), types.none) if isinstance(number(mask), Integer) else None


@REGISTRY.function(syncwarp, rule=lambda: Match((), types.none))
def syncwarp_all(b: Builder, match: Match) -> Value:
    """Wait for all lanes"""
    return lower_syncwarp(b, match, b.constant(types.uint32, 0xFFFFFFFF))


@REGISTRY.function(syncwarp, rule=_mask)
def lower_syncwarp(b: Builder, match: Match, mask: Value) -> Value:
    """Wait for the lanes of the mask"""
    b.intrinsic("llvm.nvvm.bar.warp.sync", ir.VoidType(), [mask.leaf], convergent=True)
    return Value(types.none)
