"""Device memory: blocks of host memory with their address ranges."""

from __future__ import annotations

import bisect
import ctypes
import mmap
import threading
from dataclasses import dataclass, field
from typing import Any

from .status import require

# What made an allocation; cuPointerGetAttribute tells device from host and managed memory.
DEVICE, HOST, MANAGED, REGISTERED, MODULE = "device", "host", "managed", "registered", "module"
# A piece of virtual memory: what is mapped next to it is one with it.
VIRTUAL = "virtual"
COUNTED = (DEVICE, MANAGED)


@dataclass
class Allocation:
    """*size* bytes from *address* on; *owner* keeps the memory alive."""

    address: int
    size: int
    kind: str
    number: int
    flags: int = 0
    owner: Any = None
    # Of managed memory, what was said in turn: (start, end, what, value).
    said: list[tuple[int, int, str, Any]] = field(default_factory=list)
    sync: bool = False
    # What is told when it is freed, a pool.
    pool: Any = None


class Memory:
    """The allocations of a context, by address."""

    def __init__(self) -> None:
        # Entered anew by the garbage collector, which may free memory while this thread has it.
        self._lock = threading.RLock()
        self._starts: list[int] = []
        self._found: dict[int, Allocation] = {}
        self._count = 0
        self.used = 0

    def allocate(self, size: int, kind: str = DEVICE, flags: int = 0) -> Allocation:
        """Fresh memory, page aligned and untouched."""
        require(size > 0)
        try:
            owner = mmap.mmap(-1, size)
        except (OSError, ValueError, OverflowError, MemoryError):
            require(False, "OUT_OF_MEMORY")
        address = ctypes.addressof(ctypes.c_char.from_buffer(owner))
        return self.add(address, size, kind, flags, owner)

    def add(self, address: int, size: int, kind: str, flags: int, owner: Any) -> Allocation:
        """Make known memory that is there already."""
        with self._lock:
            self._count += 1
            made = Allocation(address, size, kind, self._count, flags, owner)
            bisect.insort(self._starts, address)
            self._found[address] = made
            self.used += size if kind in COUNTED else 0
        return made

    def free(self, address: int | None, *kinds: str) -> None:
        """Forget the allocation that starts at *address*; its memory goes with it."""
        with self._lock:
            found = self._found.get(address or 0)
            require(found and found.kind in kinds)
            assert found is not None
            del self._found[found.address]
            self._starts.remove(found.address)
            self.used -= found.size if found.kind in COUNTED else 0
        if found.pool is not None:
            found.pool.freed(found.size)

    def find(self, address: int) -> Allocation | None:
        """The allocation that *address* lies in."""
        with self._lock:
            at = bisect.bisect_right(self._starts, address) - 1
            found = self._found.get(self._starts[at]) if at >= 0 else None
        return found if found and address < found.address + found.size else None

    def overlaps(self, address: int, size: int) -> bool:
        """Whether an allocation has one of *size* bytes from *address* on."""
        with self._lock:
            at = bisect.bisect_left(self._starts, address + size) - 1
            found = self._found.get(self._starts[at]) if at >= 0 else None
        return found is not None and found.address + found.size > address

    def check(self, address: int | None, size: int) -> int:
        """*address*, if *size* bytes from there lie in one allocation."""
        if size:
            found = self.find(address or 0)
            require(found and (address or 0) + size <= found.address + found.size)
        return address or 0

    def ranges(self) -> Any:
        """(start, end) of every allocation in order, side by side in a ctypes array."""
        with self._lock:
            known = list(self._found.values())
        found = sorted(known, key=lambda allocation: allocation.address)
        ends = (edge for a in found for edge in (a.address, a.address + a.size))
        return (ctypes.c_uint64 * (2 * len(found)))(*ends)

    def clear(self) -> None:
        """Forget all allocations."""
        with self._lock:
            self._starts.clear()
            self._found.clear()
            self.used = 0
