"""Reductions over the lanes of a warp, in the kernel language."""

from __future__ import annotations

from typing import Any

from ..frontend.internal import capability
from .intrinsics import ffs
from .stub import Stub

FULL = 0xFFFFFFFF
shuffle: Any = Stub("shfl_sync", "The rows are those of warp.shfl_sync.")
butterfly: Any = Stub("shfl_xor_sync", "The rows are those of warp.shfl_xor_sync.")


def reduce(mask: Any, value: Any, function: Any) -> Any:
    """*function* over the values of the mask's lanes, the same in each of them."""
    if mask == FULL:
        for bits in (16, 8, 4, 2, 1):
            value = function(value, butterfly(mask, value, bits))
        return value
    rest = mask & (mask - 1)
    total = shuffle(mask, value, ffs(mask) - 1)
    while rest != 0:
        total = function(total, shuffle(mask, value, ffs(rest) - 1))
        rest &= rest - 1
    return total


def native(function: Any, instruction: Any) -> Any:
    """The reduction by *instruction* where the device has it, else by *function*."""

    def reduce_natively(mask: Any, value: Any) -> Any:
        if capability() >= 80:
            return instruction(mask, value)
        return reduce(mask, value, function)

    return reduce_natively


def shuffled(function: Any) -> Any:
    """The reduction by *function*."""

    def reduce_by_shuffles(mask: Any, value: Any) -> Any:
        return reduce(mask, value, function)

    return reduce_by_shuffles
