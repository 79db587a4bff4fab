"""Reductions of whole arrays by a function of two values, on the public interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cudadrv import device_array, to_device

from .dispatch.jit import jit
from .lang import indices, memory, sync

# Kernels see these names; a type checker sees functions that are not to be called.
shared: Any = memory.shared
syncthreads: Any = sync.syncthreads
threadIdx: Any = indices.threadIdx
blockIdx: Any = indices.blockIdx
gridsize: Any = indices.gridsize
grid: Any = indices.grid
THREADS = 256
BLOCKS = 2048


def _kernel(function: Callable[[Any, Any], Any]) -> Any:
    """A kernel that leaves one value a block."""

    def reduce_blocks(array: Any, size: Any, out: Any) -> None:
        part = shared.array(THREADS, array.dtype)
        t, i, step = threadIdx.x, grid(1), gridsize(1)
        if i < size:
            total = array[i]
            i += step
            while i + 3 * step < size:  # Four loads are on their way at a time.
                first = function(array[i], array[i + step])
                second = function(array[i + 2 * step], array[i + 3 * step])
                total = function(total, function(first, second))
                i += 4 * step
            while i < size:
                total = function(total, array[i])
                i += step
            part[t] = total
        syncthreads()
        count = min(THREADS, size - blockIdx.x * THREADS)
        half = THREADS // 2
        while half > 0:
            if t < half and t + half < count:
                part[t] = function(part[t], part[t + half])
            syncthreads()
            half //= 2
        if t == 0:
            out[blockIdx.x] = part[0]

    return jit(reduce_blocks)


def _last(function: Callable[[Any, Any], Any]) -> Any:
    """A kernel that adds the initial value."""

    def finish(out: Any, init: Any) -> None:
        out[0] = function(init, out[0])

    return jit(finish)


class Reduce:
    """A reduction by a function of two values, which must be associative and commutative.

    ``Reduce(lambda a, b: a + b)(array)`` gives a scalar. As a decorator: `compiler.reduce`.
    """

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function
        self._reduce = _kernel(function)
        self._last = _last(function)

    def __repr__(self) -> str:
        return f"Reduce({getattr(self.function, '__name__', self.function)})"

    def __call__(
        self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: Any = 0
    ) -> Any:
        """Reduce a host or device array of one dimension, with *init* as one more value.

        Args:
            size: how many elements, from the first on; None: all.
            res: a device array whose first element gets the result; the call does not wait.

        Returns:
            The result, of the array's dtype; None if *res* was given.

        Raises:
            ValueError: the array has other than one dimension, or fewer than *size* elements.
        """
        if len(arr.shape) != 1:
            raise ValueError(f"an array of {len(arr.shape)} dimensions: reduce takes one")
        count = arr.shape[0] if size is None else size
        if not 0 <= count <= arr.shape[0]:
            raise ValueError(f"size {size}: the array has {arr.shape[0]} elements")
        kind = np.dtype(arr.dtype).type
        if count == 0:
            return self._store_empty(res, kind(init))
        given = to_device(arr) if isinstance(arr, np.ndarray) else arr
        blocks = min(-(-count // THREADS), BLOCKS)
        partial = device_array(blocks, arr.dtype)
        self._reduce[blocks, THREADS, stream](given, count, partial)
        target = device_array(1, arr.dtype) if res is None else res
        self._reduce[1, THREADS, stream](partial, blocks, target)
        self._last[1, 1, stream](target, kind(init))
        return target.copy_to_host()[0] if res is None else None

    def _store_empty(self, res: Any, value: Any) -> Any:
        if res is None:
            return value
        res[:1].copy_to_device(np.array([value]))
        return None


def reduce(function: Callable[[Any, Any], Any]) -> Reduce:
    """Make a `Reduce` of a function of two values."""
    return Reduce(function)
