"""Managed memory and batches on drivers that have the first versions of their functions alone."""

from __future__ import annotations

import ctypes

import pytest

import cudadrv as cu
from cudadrv import NotSupportedByDriver
from cudadrv.managed import ManagedMemory
from tests.unit.fake_driver import FakeDriver, installed, store


class Old(FakeDriver):
    """A driver with the first versions of the two functions; ``told`` is what they got."""

    def __init__(self) -> None:
        super().__init__(
            11040,
            cuCtxGetCurrent=lambda out: store(out, ctypes.c_void_p, 64),
            cuCtxGetDevice=lambda out: store(out, ctypes.c_int, 0),
            cuDeviceGetCount=lambda out: store(out, ctypes.c_int, 2),
            cuDeviceGet=lambda out, ordinal: store(out, ctypes.c_int, ordinal),
        )
        self.told: list[tuple[int, ...]] = []
        pointer, size, number = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int
        advise = ctypes.CFUNCTYPE(number, pointer, size, number, number)
        prefetch = ctypes.CFUNCTYPE(number, pointer, size, number, ctypes.c_void_p)
        any_pointer = ctypes.c_void_p
        some, two = [any_pointer] * 3, [any_pointer] * 2
        batch = ctypes.CFUNCTYPE(number, *some, size, *two, size, *two)
        self._callbacks["cuMemcpyBatchAsync"] = batch(self.copy)
        self._callbacks["cuMemAdvise"] = advise(self.note)
        self._callbacks["cuMemPrefetchAsync"] = prefetch(self.note)

    def note(self, *arguments: int) -> int:
        """What both functions do."""
        self.told.append(arguments)
        return 0

    def copy(self, targets: int, sources: int, sizes: int, count: int, *_: int) -> int:
        """A batch of copies."""
        words = (ctypes.c_uint64 * count).from_address
        for one in zip(words(targets), words(sources), words(sizes), strict=True):
            ctypes.memmove(*one)
        return 0


def test_places_are_device_numbers():
    """The host is -1, a device its number; nothing else can be said."""
    storage = ctypes.create_string_buffer(64)
    address = ctypes.addressof(storage)
    with installed(Old()) as driver:
        memory = ManagedMemory(address, 64, 64)
        memory.advise("set_read_mostly")
        memory.advise("set_accessed_by", 1)
        memory.advise("set_preferred_location", "host")
        memory.prefetch(cu.Device(1), 77)
        memory.prefetch("host")
        assert driver.told == [
            (address, 64, 1, 0),
            (address, 64, 5, 1),
            (address, 64, 3, -1),
            (address, 64, 1, 77),
            (address, 64, -1, None),
        ]
        with pytest.raises(NotSupportedByDriver, match=r"cuMemAdvise_v2 needs driver 12\.2"):
            memory.prefetch(("host_numa", 0))


def test_batches_of_12_8():
    """The first version of the function, which also tells what failed, copies as well."""
    target = ctypes.create_string_buffer(8)
    address = ctypes.addressof(target)
    with installed(Old()):
        first, second = cu.DeviceMemory(address, 4), cu.DeviceMemory(address + 4, 4)
        cu.memcpy_batch([(first, b"abcd"), (second, b"ef"), (second, b"")], 77)
    assert target.raw == b"abcdef\0\0"


def test_drivers_without_batches():
    """The error names the version that has them."""
    driver = Old()
    del driver._callbacks["cuMemcpyBatchAsync"]
    with installed(driver), pytest.raises(NotSupportedByDriver, match=r"needs driver 12\.8"):
        cu.memcpy_batch([(cu.DeviceMemory(4096, 4), b"abcd")], 77)
