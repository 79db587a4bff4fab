"""Where a thread is: threadIdx, blockIdx, blockDim, gridDim, laneid, grid, gridsize."""

from __future__ import annotations

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import I32, I64, Value
from ..types import Literal, Type
from ..typing.registry import REGISTRY, Match
from .stub import Dim3, Register, Stub

# CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability".
_BLOCK = (1024, 1024, 64)
_GRID = (2**31 - 1, 65535, 65535)

threadIdx = Dim3("threadIdx", "tid", _BLOCK, "The index of the thread in its block.")
blockIdx = Dim3("blockIdx", "ctaid", _GRID, "The index of the block in the grid.")
blockDim = Dim3("blockDim", "ntid", tuple(n + 1 for n in _BLOCK), "Threads a block.")  # type: ignore[arg-type]
gridDim = Dim3("gridDim", "nctaid", _GRID, "Blocks in the grid.")
laneid = Register("laneid", "laneid", 32)
warpsize = Register("warpsize", "warpsize", 33)

grid = Stub(
    "grid",
    """grid(ndim): the position of the thread in the whole grid.

    *ndim* is 1, 2 or 3, a constant; 1 gives an int, 2 and 3 give a tuple (x, y[, z]).
    """,
)
gridsize = Stub(
    "gridsize",
    """gridsize(ndim): the number of threads of the whole grid, as `grid` in shape.""",
)


@REGISTRY.value(
    types.py_int,
    laneid,
    warpsize,
    *(getattr(d, axis) for d in (threadIdx, blockIdx, blockDim, gridDim) for axis in "xyz"),
)
def register(b: Builder, source: Register) -> Value:
    """Read a special register; the range lets LLVM drop tests of negative indices."""
    leaf = b.intrinsic(f"llvm.nvvm.read.ptx.sreg.{source.register}", I32, [])
    bounds = [ir.Constant(I32, 0), ir.Constant(I32, source.limit)]
    leaf.set_metadata("range", b.module.llvm.add_metadata(bounds))
    return Value(types.py_int, (b.llvm.zext(leaf, I64),))


def _dimensions(ndim: Type) -> Match | None:
    if not isinstance(ndim, Literal) or ndim.value not in (1, 2, 3):
        raise TypingError(
            "grid and gridsize take the number of dimensions, 1, 2 or 3, as a constant"
        )
    count: int = ndim.value
    returns = types.py_int if count == 1 else types.Tuple((types.py_int,) * count)
    return Match((None,), returns, data="xyz"[:count])


@REGISTRY.function(grid, rule=_dimensions)
def lower_grid(b: Builder, match: Match, ndim: Value) -> Value:
    """blockIdx * blockDim + threadIdx on each axis"""
    leaves = []
    for axis in match.data:
        block, width, thread = (
            register(b, getattr(source, axis)).leaf for source in (blockIdx, blockDim, threadIdx)
        )
        start = b.llvm.mul(block, width, flags=("nuw", "nsw"))
        leaves.append(b.llvm.add(start, thread, flags=("nuw", "nsw")))
    return Value(match.returns, tuple(leaves))


@REGISTRY.function(gridsize, rule=_dimensions)
def lower_gridsize(b: Builder, match: Match, ndim: Value) -> Value:
    """gridDim * blockDim on each axis"""
    leaves = []
    for axis in match.data:
        blocks, width = (register(b, getattr(source, axis)).leaf for source in (gridDim, blockDim))
        leaves.append(b.llvm.mul(blocks, width, flags=("nuw", "nsw")))
    return Value(match.returns, tuple(leaves))
