"""Managed memory on drivers before 12.2, which know devices by number and no other places."""

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
        self._callbacks["cuMemAdvise"] = advise(self.note)
        self._callbacks["cuMemPrefetchAsync"] = prefetch(self.note)

    def note(self, *arguments: int) -> int:
        """What both functions do."""
        self.told.append(arguments)
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
