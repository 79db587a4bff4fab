"""The memory of ours that the kernels of a graph are given the address of."""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

from cudadrv import raw
from cudadrv.cleanup import pending
from cudadrv.context import Resource

WORD = 8


def memory_of(kernels: list[Any]) -> list[object]:
    """What must live as long as kernels that were captured run, or be released only then.

    Anything in their arguments that looks like an address of memory of ours counts as one: it
    does no harm to keep too much.

    Args:
        kernels: their CUDA_KERNEL_NODE_PARAMS.
    """
    known: dict[int, list[int]] = {}
    given = sorted({word for params in kernels for word in words(params, known)})
    if not given:
        return []

    def used(start: int, end: int) -> bool:
        at = bisect.bisect_left(given, start)
        return at < len(given) and given[at] < end

    def closed(*arguments: Any) -> bool:
        # Of ``release``: context, origin, function, handle.
        handle = arguments[3] if len(arguments) > 3 else None
        return isinstance(handle, int) and used(*extent(handle))

    found = [thing for start, end, thing in live_memory() if used(start, end)]
    return [*found, *pending.take(closed)]


def extent(address: int) -> tuple[int, int]:
    """Start and end of the device memory at an address; nothing if there is none.

    C: cuMemGetAddressRange_v2
    """
    start, size = ctypes.c_uint64(), ctypes.c_size_t()
    code = raw.cuMemGetAddressRange(ctypes.byref(start), ctypes.byref(size), address)
    return (0, 0) if code else (start.value, start.value + size.value)


def live_memory() -> Iterator[tuple[int, int, object]]:
    """Start and end of memory that is freed with an object, and the object."""
    finalizers: list[weakref.finalize[..., Any]] = []
    # The interpreter's own list of them; another thread may change it meanwhile.
    for _ in range(8):
        with contextlib.suppress(RuntimeError):
            finalizers = list(getattr(weakref.finalize, "_registry", ()))
            break
    for each in finalizers:
        known = each.peek()
        thing = known[0] if known else None
        nbytes = getattr(thing, "nbytes", 0)
        if isinstance(thing, Resource) and nbytes and thing._handle:
            yield thing._handle, thing._handle + nbytes, thing


def words(params: Any, known: dict[int, list[int]]) -> Iterator[int]:
    """Every word of a kernel's arguments; *known* is what ``sizes`` told of kernels before."""
    kernel = params.func or params.kern
    if not params.kernelParams:
        return
    if kernel not in known:
        known[kernel] = list(sizes(kernel, not params.func))
    pointers = (ctypes.c_void_p * len(known[kernel])).from_address(params.kernelParams)
    for address, nbytes in zip(pointers, known[kernel], strict=True):
        if address and nbytes >= WORD:
            yield from (ctypes.c_uint64 * (nbytes // WORD)).from_address(address)


def sizes(kernel: int, is_kernel: bool) -> Iterator[int]:
    """The size of each parameter of a CUkernel or CUfunction, none if the driver does not tell.

    C: cuFuncGetParamInfo, cuKernelGetParamInfo
    """
    name = "cuKernelGetParamInfo" if is_kernel else "cuFuncGetParamInfo"
    if not raw.available(name):
        return
    ask = getattr(raw, name)
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    for number in itertools.count():
        if ask(kernel, number, ctypes.byref(offset), ctypes.byref(size)):
            return
        yield size.value
