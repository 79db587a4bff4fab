"""The emulated machine: its device, contexts, streams and events, and the handles to them."""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

from cudadrv import config

from .memory import VIRTUAL, Allocation, Memory
from .status import Status, require

T = TypeVar("T", bound="Object")
DRIVER_VERSION = 13000
DISABLE_TIMING = 2  # a flag of events
_handles: dict[int, Any] = {}
_next_handle = itertools.count(0x10000, 16)


class Object:
    """Something that has a handle; *error* is what a wrong handle of its kind returns."""

    error = "INVALID_HANDLE"

    def __init__(self, handle: int = 0) -> None:
        self.handle = handle or next(_next_handle)
        _handles[self.handle] = self

    def forget(self) -> None:
        """Make the handle invalid."""
        _handles.pop(self.handle, None)


def find(kind: type[T], handle: int | None) -> T:
    """The object of a kind behind a handle."""
    found = _handles.get(handle or 0)
    if not isinstance(found, kind):
        raise Status(kind.error)
    return found


class Stream(Object):
    """A stream; work is done when it is enqueued, so it is always idle."""

    def __init__(self, context: Context, flags: int = 0, priority: int = 0) -> None:
        super().__init__()
        self.context = context
        self.flags = flags
        self.priority = priority
        self.default = False
        self.attributes: dict[int, Any] = {}
        # The capture it takes part in, and the nodes that its next one depends on.
        self.capture: Any = None
        self.tail: dict[Any, bytes] = {}
        self.shown: Any = None
        context.owned.add(self)


class Event(Object):
    """An event and when it was recorded, in nanoseconds."""

    def __init__(self, context: Context, flags: int) -> None:
        super().__init__()
        self.context = context
        self.flags = flags
        self.recorded: int | None = None
        # The capture in which it was recorded last, and the nodes that it stands for.
        self.captured: tuple[Any, dict[Any, bytes]] | None = None
        context.owned.add(self)

    def record(self) -> None:
        """Note the time."""
        self.captured = None
        self.recorded = time.perf_counter_ns()


class Context(Object):
    """A context; *failure* is the CUresult of a kernel that failed: every later call returns it."""

    error = "INVALID_CONTEXT"

    def __init__(self, flags: int = 0) -> None:
        super().__init__()
        self.flags = flags
        self.failure = 0
        # What goes with it, until it goes by itself.
        self.owned: weakref.WeakSet[Object] = weakref.WeakSet()
        self.limits = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048, 5: 128, 6: 0}
        self.cache_config = 0
        self.default_stream = Stream(self)
        self.default_stream.default = True
        self.memory = Memory()
        # Of a green context: how many cores it uses, and itself.
        self.cores: int | None = None
        self.green: Object | None = None

    def destroy(self) -> None:
        """Make the context, and all that belongs to it, invalid."""
        for thing in list(self.owned):
            thing.forget()
        self.memory.clear()
        self.forget()


class Device:
    """The one device: this machine's CPU."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.initialized = False
        self.primary: Context | None = None
        self.primary_users = 0
        self.primary_flags = 0
        self.cores = _cores()
        self.total_memory = _physical_memory()
        self.capability = _capability(config.emulator_cc())

    def retain(self) -> Context:
        """The primary context, made if there is none, with one user more."""
        with self.lock:
            if self.primary is None:
                self.primary = Context(self.primary_flags)
            self.primary_users += 1
            return self.primary

    def release(self) -> None:
        """One user less; the last one takes the context with it."""
        with self.lock:
            require(self.primary_users, "INVALID_CONTEXT")
            self.primary_users -= 1
            if not self.primary_users:
                self.reset()

    def reset(self) -> None:
        """Destroy the primary context."""
        with self.lock:
            if self.primary is not None:
                self.primary.destroy()
            self.primary = None
            self.primary_users = 0

    def free_memory(self) -> int:
        """Bytes that are not allocated."""
        # A green context has the memory of the primary one.
        memories = {c.memory for c in list(_handles.values()) if isinstance(c, Context)}
        return max(self.total_memory - sum(memory.used for memory in memories), 0)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _capability(text: str) -> tuple[int, int]:
    """(9, 0) from "9.0", "90" or "sm_90"."""
    digits = "".join(c for c in text if c.isdigit())
    if len(digits) < 2:
        raise ValueError(f"CUDADRV_EMULATOR_CC={text!r}: write a compute capability such as 9.0")
    return int(digits[:-1]), int(digits[-1])


device = Device()
# The captures that have not ended.
captures: list[Any] = []


class _Thread(threading.local):
    """The context stack of a host thread."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []
        self.streams: dict[int, Stream] = {}
        self.capture_mode = 0

    def stream(self, context: Context) -> Stream:
        """Its own default stream in a context."""
        if context.handle not in self.streams:
            made = self.streams[context.handle] = Stream(context)
            made.default = True
        return self.streams[context.handle]


thread = _Thread()


def current() -> Context:
    """The calling thread's context, healthy.

    Raises:
        Status: there is none, it was destroyed, or one of its kernels failed.
    """
    if not thread.contexts:
        raise Status("INVALID_CONTEXT")
    context = thread.contexts[-1]
    if context.failure:
        raise Status.of(context.failure)
    if context.handle not in _handles:
        raise Status("CONTEXT_IS_DESTROYED")
    return context


def memories() -> Iterator[tuple[Context, Memory]]:
    """Every context with its memory, the calling thread's context first."""
    own = current()
    yield own, own.memory
    for each in list(_handles.values()):
        if isinstance(each, Context) and each is not own:
            yield each, each.memory


def place(address: int | None) -> tuple[Context, Allocation] | None:
    """The allocation that *address* lies in, with its context: addresses are unique to the process.

    The calling thread's context is looked at first.
    """
    for context, memory in memories():
        found = memory.find(address or 0)
        if found is not None:
            return context, found
    return None


def overlaps(address: int, size: int) -> bool:
    """Whether any allocation has one of *size* bytes from *address* on."""
    return any(memory.overlaps(address, size) for _, memory in memories())


def reach(address: int | None, size: int) -> int:
    """*address*, if *size* bytes from there lie in one allocation of any context.

    Pieces of virtual memory side by side count as one.
    """
    start, end = address or 0, (address or 0) + size
    while start < end:
        found = place(start)
        require(found)
        assert found
        start = found[1].address + found[1].size
        require(start >= end or found[1].kind == VIRTUAL)
    return address or 0


def stream(handle: int | None) -> Stream:
    """The stream behind a handle; 0, 1 and 2 are the default ones."""
    if handle in (None, 0, 1):
        return current().default_stream
    if handle == 2:
        return thread.stream(current())
    found = find(Stream, handle)
    if found.context.failure:
        raise Status.of(found.context.failure)
    return found
