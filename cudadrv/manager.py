"""Who allocates device memory: the driver, or a memory manager of another library."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol

from cudadrv import checks, config
from cudadrv.context import CudaWarning


class MemoryManager(Protocol):
    """What allocates device memory for ``mem_alloc`` and for new device arrays.

    Attributes:
        name: for messages.
    """

    name: str

    def alloc(self, nbytes: int, stream: int) -> tuple[int, Callable[[], object]]:
        """Allocate in the current context.

        Args:
            nbytes: more than none.
            stream: the handle of what the memory is first used on; 0 is the default stream.

        Returns:
            The address, and what frees it: called once, in the same context, from any thread,
            when the last use of the memory was given to a stream.
        """

    def mem_info(self) -> tuple[int, int]:
        """Bytes that are free for the current context, and that there are."""


# Not asked yet; None is the driver.
UNKNOWN: Any = object()
_everywhere: MemoryManager | None = UNKNOWN
_here: ContextVar[MemoryManager | None] = ContextVar("cudadrv memory manager", default=UNKNOWN)


def current_memory_manager() -> MemoryManager | None:
    """Who allocates device memory now; None is the driver.

    Raises:
        ValueError: CUDADRV_MEMORY_MANAGER names none.
    """
    global _everywhere
    found = _here.get()
    if found is UNKNOWN and _everywhere is UNKNOWN:
        _everywhere = from_environment()
    return _everywhere if found is UNKNOWN else found


def set_memory_manager(manager: MemoryManager | type[MemoryManager] | None) -> None:
    """Let *manager* allocate device memory from now on, in every thread.

    Args:
        manager: it, or its class, or None for the driver. What another one allocated goes back
            to that.

    Raises:
        TypeError: it is no memory manager.
    """
    global _everywhere
    _everywhere = checked(manager)


@contextlib.contextmanager
def memory_manager(manager: MemoryManager | type[MemoryManager] | None) -> Iterator[None]:
    """Let *manager* allocate device memory inside ``with``, in this thread or task alone.

    Raises:
        TypeError: it is no memory manager.
    """
    before = _here.set(checked(manager))
    try:
        yield
    finally:
        _here.reset(before)


def checked(manager: Any) -> MemoryManager | None:
    """A manager, made if a class is given.

    Raises:
        TypeError: it lacks what a manager has.
    """
    if isinstance(manager, type):
        manager = manager()
    missing = [name for name in ("alloc", "mem_info", "name") if not hasattr(manager, name)]
    if manager is not None and missing:
        kind = type(manager).__name__
        raise TypeError(f"{kind} is no memory manager: it has no {', '.join(missing)}")
    return manager  # type: ignore[no-any-return]


def from_environment() -> MemoryManager | None:
    """The manager that CUDADRV_MEMORY_MANAGER names."""
    named = config.memory_manager()
    if named is None:
        return None
    module, _, attribute = named.partition(":")
    try:
        return checked(getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"CUDADRV_MEMORY_MANAGER={named}: it is module:attribute of a memory manager; {error}"
        ) from error


def allocated(manager: MemoryManager, nbytes: int, stream: int) -> tuple[int, Any]:
    """What a manager gives, checked.

    Raises:
        TypeError, ValueError: it is not an address and a function.
    """
    # A manager may wrap the driver: what it allocates itself does not come back to it.
    before = _here.set(None)
    try:
        given = manager.alloc(nbytes, stream)
    finally:
        _here.reset(before)
    if not isinstance(given, tuple) or len(given) != 2 or not callable(given[1]):
        raise TypeError(
            f"memory manager {manager.name} returned {given!r}: alloc() gives an address and what "
            "frees it"
        )
    address = checks.address(given[0], f"the address of memory manager {manager.name}")
    if nbytes and not address:
        raise ValueError(f"memory manager {manager.name} gave no address for {nbytes} bytes")
    return address, given[1]


def give_back(address: int, free: Callable[[], object]) -> int:
    """Free what a manager allocated; what goes wrong is a warning, since nobody can catch it."""
    try:
        free()
    except Exception as error:  # noqa: BLE001 (another library's, of any kind)
        text = f"the memory manager could not free {address:#x}: {error!r}"
        warnings.warn(text, CudaWarning, stacklevel=2)
    return 0
