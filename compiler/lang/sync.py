"""Barriers and memory fences."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .. import types
from ..lowering.builder import Builder
from ..lowering.models import Value
from ..types import Integer, Type, number
from ..typing.registry import REGISTRY, Match
from .ptx import Form, declare
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

# Barriers that count, and barriers by number

_COUNTED = "{ .reg .pred p, q; setp.ne.u32 p, $1, 0; %s }"
_PREDICATE = "bar.red.%s.pred q, 0, p; selp.u32 $0, 1, 0, q;"


def _counting(name: str, doc: str, text: str, returns: types.Scalar) -> Stub:
    form = Form((types.boolean,), returns, _COUNTED % text, effects=True, convergent=True)
    stub = Stub(f"syncthreads_{name}", f"syncthreads_{name}(predicate): syncthreads, and {doc}.")
    return declare(stub, [form])


syncthreads_count = _counting(
    "count", "in how many threads it holds", "bar.red.popc.u32 $0, 0, p;", types.int32
)
syncthreads_and = _counting("and", "whether it holds in all", _PREDICATE % "and", types.boolean)
syncthreads_or = _counting("or", "whether it holds in any", _PREDICATE % "or", types.boolean)
_TWO = (types.uint32, types.uint32)
barrier_sync = declare(
    Stub(
        "barrier_sync",
        "barrier_sync(number, threads): wait at barrier 0 to 15 until so many threads are there.",
    ),
    [Form(_TWO, types.none, "barrier.sync $0, $1;", effects=True, convergent=True)],
)
barrier_arrive = declare(
    Stub(
        "barrier_arrive",
        "barrier_arrive(number, threads): be one of those that barrier_sync waits for, and go on.",
    ),
    [Form(_TWO, types.none, "barrier.arrive $0, $1;", effects=True, convergent=True)],
)


# Fences by scope, and clusters


def _fence(scope: str, doc: str, cc: tuple[int, int]) -> Stub:
    stub = Stub(f"threadfence_{scope}", f"threadfence_{scope}(): order memory accesses for {doc}.")
    return declare(stub, [Form((), types.none, f"fence.acq_rel.{scope};", cc, effects=True)])


threadfence_cluster = _fence("cluster", "the cluster", (9, 0))


def _cluster(name: str, text: str, doc: str) -> Stub:
    stub = Stub(f"cluster_{name}", f"cluster_{name}(): {doc}.")
    form = Form((), types.none, text, (9, 0), effects=True, convergent=True)
    return declare(stub, [form])


cluster_arrive = _cluster(
    "arrive", "barrier.cluster.arrive;", "be there, for the cluster's other threads, and go on"
)
cluster_wait = _cluster(
    "wait", "barrier.cluster.wait;", "wait until all threads of the cluster have arrived"
)
cluster_sync = _cluster(
    "sync",
    "barrier.cluster.arrive; barrier.cluster.wait;",
    "wait until all threads of the cluster are here",
)

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
