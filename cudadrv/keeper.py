"""Python objects that live as long as a graph of the driver, with its copies and launches."""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from typing import Any, NamedTuple

from cudadrv import driver

NO_DESTRUCTOR_SYNC, MOVE = 1, 1


class Locks(NamedTuple):
    """The locks of Python's C API, which need no interpreter to be released.

    The driver tells that it is done with a graph by a call of a C function from a thread of its
    own, at a time when no Python code may run there, or none can run any more. So it releases a
    lock, and Python looks later which locks are free.
    """

    make: Any
    take: Any
    free: Any
    release: int


@functools.cache
def locks() -> Locks:
    """The functions: make a lock, take it without waiting, free it; the address of release."""
    api = ctypes.pythonapi
    make = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", api))
    take = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    release = ctypes.cast(api.PyThread_release_lock, ctypes.c_void_p).value or 0
    return Locks(
        make,
        take(("PyThread_acquire_lock", api)),
        free(("PyThread_free_lock", api)),
        release,
    )


class Kept:
    """What a graph keeps alive; more may be added.

    Attributes:
        lock: released by the driver when the last copy and launch of the graph is gone.
        objects: what is kept.
    """

    def __init__(self, graph: int) -> None:
        """Tie it to the graph with this handle.

        C: cuUserObjectCreate, cuGraphRetainUserObject
        """
        sweep(False)
        self.objects: list[object] = []
        self.lock = locks().make()
        if not self.lock:
            raise MemoryError("no lock")
        locks().take(self.lock, 0)
        _kept.append(self)
        try:
            user = driver.cuUserObjectCreate(self.lock, locks().release, 1, NO_DESTRUCTOR_SYNC)
            driver.cuGraphRetainUserObject(graph, user, 1, MOVE)
        except RuntimeError:
            _kept.remove(self)
            raise


# The code that kernels are from, by their handles; kernels enter themselves.
libraries: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_kept: list[Kept] = []
_sweeping = threading.Lock()
_next = 16


def sweep(whole: bool = True) -> None:
    """Let go of what the driver is done with; may be called from finalizers.

    Args:
        whole: False: only if much has come since the last time.
    """
    global _next
    if not _kept or (not whole and len(_kept) < _next) or not _sweeping.acquire(blocking=False):
        return
    done = []
    try:
        done = [each for each in _kept if locks().take(each.lock, 0)]
        for each in done:
            _kept.remove(each)
            locks().free(each.lock)
        _next = max(16, 2 * len(_kept))
    finally:
        _sweeping.release()
    # What dies now may sweep again.
    del done


def keep(graph: int, *objects: object) -> None:
    """Keep objects alive as long as the graph with this handle."""
    Kept(graph).objects.extend(objects)


def count() -> int:
    """How many graphs keep something alive, as far as is known."""
    sweep()
    return len(_kept)
