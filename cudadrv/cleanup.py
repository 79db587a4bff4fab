"""Releases that wait: for the end of a stream's capture, or of ``defer_cleanup()``."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from cudadrv import raw
from cudadrv.errors import NotSupportedByDriver

RELAXED = 2


class Later:
    """A release that happens when this object dies."""

    def __init__(self, release: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        weakref.finalize(self, release, *arguments).atexit = False


class Pending:
    """What could not be released yet, because a capture would have broken or someone asked to wait.

    The garbage collector calls it from anywhere, even from inside itself: it takes no locks, and
    relies on single operations of a deque and a list being atomic.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        # One entry for each reason to wait: the thread whose releases wait, None for all threads.
        self._holds: list[int | None] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<{len(self)} releases wait{' for now' if self.held else ''}>"

    @property
    def held(self) -> bool:
        """Whether a release in this thread must wait now."""
        holds = self._holds
        return bool(holds) and (None in holds or threading.get_ident() in holds)

    def add(self, release: Callable[..., None], *arguments: Any) -> None:
        """Let a release wait."""
        self._waiting.append((release, arguments))

    def flush(self) -> int:
        """Release what waits, unless it must wait on; returns how many were released.

        Captures and ``defer_cleanup()`` call it when they end.
        """
        count = 0
        while self._waiting and not self.held:
            try:
                release, arguments = self._waiting.popleft()
            except IndexError:  # another thread took the last one
                break
            release(*arguments)
            count += 1
        return count

    def take(self, wanted: Callable[..., bool]) -> list[Later]:
        """Let releases wait for other objects: those for whose arguments *wanted* is true."""
        taken = []
        for _ in range(len(self._waiting)):
            try:
                release, arguments = self._waiting.popleft()
            except IndexError:  # another thread took the last one
                break
            if wanted(*arguments):
                taken.append(Later(release, arguments))
            else:
                self._waiting.append((release, arguments))
        return taken

    @contextlib.contextmanager
    def hold(self, thread: int | None = None, flush: bool = True) -> Iterator[None]:
        """Let releases wait inside ``with``.

        Args:
            thread: the identifier of the thread whose releases wait; None: those of all threads.
            flush: whether they happen at the end; else at some later flush.
        """
        self._holds.append(thread)
        try:
            yield
        finally:
            # A forked child starts without holds.
            with contextlib.suppress(ValueError):
                self._holds.remove(thread)
            if flush:
                self.flush()

    def forget(self) -> None:
        """Drop everything, in a forked child: nothing of the parent's can be released there."""
        self._waiting.clear()
        self._holds.clear()


pending = Pending()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pending.forget)


@contextlib.contextmanager
def defer_cleanup() -> Iterator[None]:
    """Release nothing inside ``with``, in any thread, whatever is closed or garbage-collected.

    For stretches that must not be held up: freeing memory waits for the device. What was to be
    released meanwhile is released at the end. May be nested.
    """
    with pending.hold():
        yield


def exchange_capture_mode(mode: int) -> int | None:
    """Set what captures forbid this thread (CUstreamCaptureMode); returns the mode before.

    None on drivers that have no captures.

    C: cuThreadExchangeStreamCaptureMode
    """
    value = ctypes.c_int(mode)
    try:
        code = raw.cuThreadExchangeStreamCaptureMode(ctypes.byref(value))
    except NotSupportedByDriver:
        return None
    return None if code else value.value


def relaxed(call: Callable[..., int], *arguments: Any) -> int:
    """Make a raw call that captures of other libraries would forbid, without breaking them.

    C: cuThreadExchangeStreamCaptureMode
    """
    before = exchange_capture_mode(RELAXED)
    try:
        return call(*arguments)
    finally:
        if before is not None:
            exchange_capture_mode(before)
