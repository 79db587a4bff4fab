"""Memory pools: how much is in use and held back is counted as a device does."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from cudadrv.raw import types

from ..boundary import exported
from ..memory import DEVICE
from ..nodes import is_graph_memory
from ..state import Object, Stream, current, find, place
from ..status import require
from .memory import allocate

CHUNK = 2 << 20
FLAGS = {1, 2, 3}
THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8
READWRITE = 3


class Pool(Object):
    """A pool; what it holds back is a number, for the memory is the host's."""

    error = "INVALID_VALUE"

    def __init__(self, limit: int = 0) -> None:
        super().__init__()
        self.limit = limit
        self.lock = threading.RLock()  # the garbage collector may come in between
        self.numbers = {1: 1, 2: 1, 3: 1, THRESHOLD: 0, RESERVED: 0}
        self.numbers |= {RESERVED_HIGH: 0, USED: 0, USED_HIGH: 0}

    def allocate(self, size: int) -> int:
        """The address of fresh memory, in the current context."""
        require(not self.limit or self.numbers[USED] + size <= self.limit, "OUT_OF_MEMORY")
        address = allocate(size, DEVICE)
        found = place(address)
        assert found
        found[1].pool = self
        with self.lock:
            self.numbers[USED] += size
            self._set(RESERVED, max(self.numbers[RESERVED], self._whole()))
            self._set(USED, self.numbers[USED])
        return address

    def _whole(self) -> int:
        """What is in use, in whole chunks."""
        return -(-self.numbers[USED] // CHUNK) * CHUNK

    def _set(self, name: int, value: int) -> None:
        """Set a number and the highest that it ever was."""
        self.numbers[name] = value
        self.numbers[name + 1] = max(self.numbers[name + 1], value)

    def freed(self, size: int) -> None:
        """Note that an allocation is gone; what is above the threshold goes back at once."""
        with self.lock:
            self.numbers[USED] -= size
        self.trim(self.numbers[THRESHOLD])

    def trim(self, keep: int) -> None:
        """Hold back *keep* bytes at most, and what is in use."""
        with self.lock:
            held = max(min(self.numbers[RESERVED], keep), self._whole())
            self._set(RESERVED, held)


class _Pools:
    """The default pool of the device, and the current one."""

    def __init__(self) -> None:
        self.default = Pool()
        self.current = self.default


_pools = _Pools()


def _location(address: int | None) -> None:
    """Require that a CUmemLocation is the device."""
    require(address)
    where = types.record(types.resolve("CUmemLocation")).from_address(address)
    require(where.type == 1, "NOT_SUPPORTED")
    require(where.id == 0, "INVALID_DEVICE")


@exported()
def cuDeviceGetDefaultMemPool(dev: int) -> Pool:
    return _pools.default


@exported()
def cuDeviceGetMemPool(dev: int) -> Pool:
    return _pools.current


@exported()
def cuDeviceSetMemPool(dev: int, pool: int) -> None:
    _pools.current = find(Pool, pool)


@exported()
def cuMemGetDefaultMemPool(location: int, kind: int) -> Pool:
    require(kind == 1, "NOT_SUPPORTED")
    _location(location)
    return _pools.default


@exported()
def cuMemGetMemPool(location: int, kind: int) -> Pool:
    require(kind == 1, "NOT_SUPPORTED")
    _location(location)
    return _pools.current


@exported()
def cuMemSetMemPool(location: int, kind: int, pool: int) -> None:
    require(kind == 1, "NOT_SUPPORTED")
    _location(location)
    _pools.current = find(Pool, pool)


@exported()
def cuMemPoolCreate(address: int) -> Pool:
    require(address)
    wanted = types.record(types.resolve("CUmemPoolProps")).from_address(address)
    require(wanted.allocType in (1, 2))
    require(wanted.allocType == 1 and not wanted.handleTypes, "NOT_SUPPORTED")
    _location(address + type(wanted).location.offset)
    return Pool(wanted.maxSize)


@exported()
def cuMemPoolDestroy(pool: int) -> None:
    found = find(Pool, pool)
    require(found is not _pools.default)
    if found is _pools.current:
        _pools.current = _pools.default
    found.forget()


@exported()
def cuMemPoolTrimTo(pool: int, keep: int) -> None:
    find(Pool, pool).trim(keep)


@exported()
def cuMemPoolGetAttribute(pool: int, number: int, data: int) -> None:
    found = find(Pool, pool)
    require(data and number in found.numbers)
    kind: Any = ctypes.c_int if number in FLAGS else ctypes.c_uint64
    kind.from_address(data).value = found.numbers[number]


@exported()
def cuMemPoolSetAttribute(pool: int, number: int, data: int) -> None:
    found = find(Pool, pool)
    require(data and number in {*FLAGS, THRESHOLD, RESERVED_HIGH, USED_HIGH})
    kind: Any = ctypes.c_int if number in FLAGS else ctypes.c_uint64
    value = kind.from_address(data).value
    if number in (RESERVED_HIGH, USED_HIGH):
        require(value == 0)
        value = found.numbers[number - 1]
    found.numbers[number] = value


@exported()
def cuMemPoolGetAccess(pool: int, location: int) -> int:
    find(Pool, pool)
    _location(location)
    return READWRITE


@exported()
def cuMemPoolSetAccess(pool: int, descriptions: int, count: int) -> None:
    find(Pool, pool)
    require(descriptions or not count)
    kind = types.record(types.resolve("CUmemAccessDesc"))
    for each in range(count):
        address = descriptions + each * ctypes.sizeof(kind)
        _location(address)
        require(kind.from_address(address).flags == READWRITE)


@exported()
def cuMemAllocAsync(size: int, stream: Stream) -> int:
    require(size)
    return _pools.current.allocate(size)


@exported()
def cuMemAllocFromPoolAsync(size: int, pool: int, stream: Stream) -> int:
    require(size)
    return find(Pool, pool).allocate(size)


@exported()
def cuMemFreeAsync(address: int, stream: Stream) -> None:
    current()
    found = place(address)
    require(found and (found[1].pool is not None or is_graph_memory(address)))
    assert found
    found[0].memory.free(address, DEVICE)
