"""Virtual memory: the host's own, of memory files mapped into ranges of reserved addresses."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from typing import Any

from cudadrv.raw import types

from ..boundary import exported
from ..memory import VIRTUAL
from ..state import Context, Object, current, device, find
from ..status import Status, require
from .device import VIRTUAL_MEMORY

GRANULARITY = 2 << 20
POSIX_FD = 1
NONE, READWRITE = 0, 3
FIXED, NORESERVE = 0x10, 0x4000
NO_ACCESS, ACCESS = 0, 3  # PROT_NONE, PROT_READ | PROT_WRITE


class _System:
    """mmap and its like of the C library."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self._map = library.mmap
        self._map.restype = address
        self._map.argtypes = (address, size, number, number, number, ctypes.c_int64)
        self.unmap = library.munmap
        self.unmap.argtypes = (address, size)
        self.protect = library.mprotect
        self.protect.argtypes = (address, size, number)

    def reserve(self, size: int, alignment: int) -> int:
        """Fresh addresses that nobody can touch, aligned."""
        whole = size + alignment
        start = self.place(None, whole)
        first = -(-start // alignment) * alignment
        if first > start:
            self.unmap(start, first - start)
        if start + whole > first + size:
            self.unmap(first + size, start + whole - first - size)
        return first

    def place(self, at: int | None, size: int, file: int = -1) -> int:
        """Map a file without access, or with none only addresses, in place of what is there."""
        flags = mmap.MAP_SHARED if file >= 0 else mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
        flags |= FIXED if at is not None else 0
        found: int | None = self._map(at, size, NO_ACCESS, flags, file, 0)
        require(found not in (None, ctypes.c_void_p(-1).value), "OUT_OF_MEMORY")
        return found or 0


class Physical(Object):
    """Memory without an address; it lives while handles to it or mappings of it do."""

    error = "INVALID_VALUE"

    def __init__(self, size: int, file: int, handle_types: int) -> None:
        super().__init__()
        self.size = size
        self.file = file
        self.handle_types = handle_types
        self.handles = 1
        self.mapped = 0

    def drop(self) -> None:
        """End it when nothing is left of it."""
        if not self.handles and not self.mapped:
            os.close(self.file)
            self.forget()


class Mapping:
    """A piece of a range with memory in it; in *context* the device may access it."""

    def __init__(self, physical: Physical, size: int) -> None:
        self.physical = physical
        self.size = size
        self.context: Context | None = None


class _Ranges:
    """All reserved addresses, and what is mapped there."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.reserved: dict[int, int] = {}
        self.mapped: dict[int, Mapping] = {}
        self._system: _System | None = None

    @property
    def system(self) -> _System:
        """The C library's functions."""
        if self._system is None:
            self._system = _System()
        return self._system

    def at(self, address: int) -> tuple[int, Mapping]:
        """(start, mapping) of the piece that an address lies in."""
        for start, mapping in self.mapped.items():
            if start <= address < start + mapping.size:
                return start, mapping
        raise Status("INVALID_VALUE")

    def pieces(self, address: int, size: int) -> list[tuple[int, Mapping]]:
        """The pieces that fill a stretch of addresses, no more and no less."""
        require(address and size)
        found, here = [], address
        while here < address + size:
            start, mapping = self.at(here)
            require(start == here and start + mapping.size <= address + size)
            found.append((start, mapping))
            here += mapping.size
        return found

    def grant(self, start: int, mapping: Mapping, access: int) -> None:
        """Let the device access a piece, or let it no more."""
        if mapping.context is not None:
            mapping.context.memory.free(start, VIRTUAL)
            mapping.context = None
        self.system.protect(start, mapping.size, ACCESS if access else NO_ACCESS)
        if access:
            mapping.context = current()
            mapping.context.memory.add(start, mapping.size, VIRTUAL, 0, None)


_ranges = _Ranges()


def _properties(address: int | None) -> Any:
    """The CUmemAllocationProp at an address, which the emulator can do."""
    current()
    require(VIRTUAL_MEMORY, "NOT_SUPPORTED")
    require(address)
    wanted = types.record(types.resolve("CUmemAllocationProp")).from_address(address)
    require(wanted.type == 1)
    _location(wanted.location)
    require(not wanted.requestedHandleTypes & ~POSIX_FD, "NOT_SUPPORTED")
    return wanted


def _location(where: Any) -> None:
    """Require that a CUmemLocation is the device."""
    require(where.type == 1, "NOT_SUPPORTED")
    require(where.id == 0, "INVALID_DEVICE")


def _physical(handle: int | None) -> Physical:
    """The memory behind a handle that was not released."""
    found = find(Physical, handle)
    require(found.handles)
    return found


@exported()
def cuMemGetAllocationGranularity(properties: int, option: int) -> int:
    require(option in (0, 1))
    _properties(properties)
    return GRANULARITY


@exported()
def cuMemCreate(size: int, properties: int, flags: int) -> Physical:
    wanted = _properties(properties)
    require(size and not size % GRANULARITY and not flags)
    require(size <= device.free_memory(), "OUT_OF_MEMORY")
    file = os.memfd_create("cudadrv-emulator")
    try:
        os.ftruncate(file, size)
    except OSError:
        os.close(file)
        raise Status("OUT_OF_MEMORY") from None
    return Physical(size, file, wanted.requestedHandleTypes)


@exported()
def cuMemRelease(handle: int) -> None:
    found = _physical(handle)
    found.handles -= 1
    found.drop()


@exported()
def cuMemRetainAllocationHandle(address: int) -> Physical:
    current()
    found = _ranges.at(address or 0)[1].physical
    found.handles += 1
    return found


@exported()
def cuMemGetAllocationPropertiesFromHandle(handle: int) -> Any:
    found = _physical(handle)
    made = types.record(types.resolve("CUmemAllocationProp"))()
    made.type, made.requestedHandleTypes, made.location.type = 1, found.handle_types, 1
    return made


@exported()
def cuMemExportToShareableHandle(to: int, handle: int, kind: int, flags: int) -> None:
    found = _physical(handle)
    require(to and not flags and kind and kind == kind & found.handle_types)
    ctypes.c_int.from_address(to).value = os.dup(found.file)


@exported()
def cuMemImportFromShareableHandle(handle: int | None, kind: int) -> Physical:
    current()
    require(VIRTUAL_MEMORY and kind == POSIX_FD, "NOT_SUPPORTED")
    try:
        file = os.dup(handle or 0)
        size = os.fstat(file).st_size
    except OSError:
        raise Status("INVALID_VALUE") from None
    if not size or size % GRANULARITY:
        os.close(file)
        raise Status("INVALID_VALUE")
    return Physical(size, file, POSIX_FD)


@exported()
def cuMemAddressReserve(size: int, alignment: int, address: int, flags: int) -> int:
    current()
    require(VIRTUAL_MEMORY, "NOT_SUPPORTED")
    require(size and not size % GRANULARITY and not flags)
    require(not alignment & (alignment - 1))
    require(size < 1 << 47, "OUT_OF_MEMORY")
    with _ranges.lock:
        start = _ranges.system.reserve(size, max(alignment, GRANULARITY))
        _ranges.reserved[start] = size
    return start


@exported()
def cuMemAddressFree(address: int, size: int) -> None:
    with _ranges.lock:
        require(size and _ranges.reserved.get(address) == size)
        require(not any(address <= start < address + size for start in _ranges.mapped))
        del _ranges.reserved[address]
        _ranges.system.unmap(address, size)


@exported()
def cuMemMap(address: int, size: int, offset: int, handle: int, flags: int) -> None:
    physical = _physical(handle)
    require(not flags and not offset and size == physical.size)
    require(not address % GRANULARITY)
    with _ranges.lock:
        inside = (s <= address and address + size <= s + n for s, n in _ranges.reserved.items())
        require(any(inside))
        for start, mapping in _ranges.mapped.items():
            require(address + size <= start or start + mapping.size <= address)
        _ranges.system.place(address, size, physical.file)
        _ranges.mapped[address] = Mapping(physical, size)
        physical.mapped += 1


@exported()
def cuMemUnmap(address: int, size: int) -> None:
    with _ranges.lock:
        for start, mapping in _ranges.pieces(address, size):
            _ranges.grant(start, mapping, NONE)
            _ranges.system.place(start, mapping.size)
            del _ranges.mapped[start]
            mapping.physical.mapped -= 1
            mapping.physical.drop()


@exported()
def cuMemSetAccess(address: int, size: int, descriptions: int, count: int) -> None:
    require(descriptions and count)
    current()
    kind = types.record(types.resolve("CUmemAccessDesc"))
    wanted = [kind.from_address(descriptions + i * ctypes.sizeof(kind)) for i in range(count)]
    for each in wanted:
        _location(each.location)
        require(each.flags in (NONE, READWRITE), "NOT_SUPPORTED")
    with _ranges.lock:
        for start, mapping in _ranges.pieces(address, size):
            _ranges.grant(start, mapping, wanted[-1].flags)


@exported()
def cuMemGetAccess(location: int, address: int) -> int:
    require(location)
    _location(types.record(types.resolve("CUmemLocation")).from_address(location))
    with _ranges.lock:
        return READWRITE if _ranges.at(address)[1].context is not None else NONE
