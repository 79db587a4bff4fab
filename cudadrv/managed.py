"""Managed memory: one address for the host and all devices, moved to whoever touches it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cudadrv import checks, driver, location, raw
from cudadrv.context import current_context, in_context, stream_handle
from cudadrv.host_memory import HostBlock, block
from cudadrv.memory import DeviceMemory, allocate
from cudadrv.older import call_first

ATTACH = {"global": 1, "host": 2, "single": 4}
ADVICE = {
    "set_read_mostly": 1,
    "unset_read_mostly": 2,
    "set_preferred_location": 3,
    "unset_preferred_location": 4,
    "set_accessed_by": 5,
    "unset_accessed_by": 6,
}
# What does not say where.
PLACELESS = {"set_read_mostly", "unset_read_mostly", "unset_preferred_location"}


class ManagedMemory(HostBlock, DeviceMemory):
    """Bytes at one address for the host and all devices; slices are managed memory too.

    ``numpy.asarray(memory)`` is them on the host: synchronise before reading what a kernel wrote.
    Like pinned memory it is freed when the last view on the host has gone.
    """

    def __init__(
        self, handle: int, nbytes: int, context: int, owner: object = None, owned: bool = False
    ) -> None:
        """Describe managed memory that exists; ``managed_alloc`` makes new one."""
        self._block = block(handle, nbytes)
        self._block.owner = getattr(owner, "_block", owner)
        super().__init__(handle, nbytes, context, owner, owned, lives=self._block)

    @classmethod
    def adopt(cls, memory: Any, nbytes: int | None = None) -> ManagedMemory:
        """Use managed memory that another library made and owns; see ``DeviceMemory.adopt``.

        Raises:
            ValueError: it is not managed.

        C: cuPointerGetAttribute
        """
        found = DeviceMemory.adopt(memory, nbytes)
        managed = ctypes.c_uint()
        attribute = raw.CU_POINTER_ATTRIBUTE_IS_MANAGED
        arguments = (ctypes.byref(managed), attribute, found.handle)
        in_context(driver.cuPointerGetAttribute, *arguments)
        if not managed.value:
            raise ValueError(f"the memory at {found.handle:#x} is not managed")
        return cls(found.handle, found.nbytes, found.context, found.owner)

    def _part(self, handle: int, nbytes: int) -> ManagedMemory:
        return ManagedMemory(handle, nbytes, self.context, self)

    def close(self) -> None:
        """Give the memory up; it is freed when no array or buffer uses it any more."""
        self._handle = None
        self._block = None

    def advise(self, advice: str, where: Any = None) -> None:
        """Tell the driver how the memory will be used; it concerns whole pages.

        Args:
            advice: "set_read_mostly", "set_preferred_location", "set_accessed_by", or what takes
                it back, "unset_...".
            where: a Device, its number, "host", "host_numa_current" or ("host_numa", node); for
                read_mostly and unset_preferred_location none.

        Raises:
            ValueError: there is no such advice.
            TypeError: *where* is no place, missing or too much.

        C: cuMemAdvise_v2
        """
        code = checks.choice(advice, ADVICE, "advice")
        if (where is None) != (advice in PLACELESS):
            raise TypeError(
                f"{advice} takes no place"
                if advice in PLACELESS
                else f"{advice} needs the place, such as 'host' or a Device"
            )
        kind, number = location.pair(self._device() if where is None else where)
        if not self.nbytes:
            return
        if raw.available("cuMemAdvise_v2"):
            made = location.record_of(kind, number)
            in_context(driver.cuMemAdvise_v2, self.handle, self.nbytes, code, made)
        else:
            call_first("cuMemAdvise", self.handle, self.nbytes, code, old(kind, number))

    def prefetch(self, where: Any, stream: object = None) -> None:
        """Move the memory to a place before it is needed there, ordered on *stream*.

        Args:
            where: as for ``advise``.

        Raises:
            TypeError: *where* is no place.

        C: cuMemPrefetchAsync_v2
        """
        kind, number = location.pair(where)
        on = stream_handle(stream)
        if not self.nbytes:
            return
        if raw.available("cuMemPrefetchAsync_v2"):
            made = location.record_of(kind, number)
            in_context(driver.cuMemPrefetchAsync_v2, self.handle, self.nbytes, made, 0, on)
        else:
            call_first("cuMemPrefetchAsync", self.handle, self.nbytes, old(kind, number), on)

    def attach(self, stream: object, to: str = "single") -> None:
        """Say who may use the memory from here on, ordered on *stream*.

        It matters on devices that cannot share managed memory with a busy host.

        Args:
            to: "single" (work on *stream* only, not the default one), "global" (all), "host".

        Raises:
            ValueError: it is only a part of an allocation, or no such word.

        C: cuStreamAttachMemAsync
        """
        flags = checks.choice(to, ATTACH, "to")
        on = stream_handle(stream)
        if self.owner is not None:
            raise ValueError("attach() concerns the whole allocation: call it on that")
        if to == "single" and on in (0, 1):
            raise ValueError("attach() to a single stream needs one of its own, not the default")
        in_context(driver.cuStreamAttachMemAsync, on, self.handle, 0, flags)

    @property
    def range_attributes(self) -> dict[str, Any]:
        """What was advised for all of its pages, and where they were prefetched to.

        ``read_mostly`` is a bool, ``accessed_by`` a tuple of places; ``preferred_location`` and
        ``last_prefetch_location`` are a place, or None where the pages differ or nothing was said.

        C: cuMemRangeGetAttributes, cuMemRangeGetAttribute
        """
        mostly, preferred, last = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        accessed = (ctypes.c_int * max(driver.cuDeviceGetCount() + 1, 4))()
        found = (mostly, preferred, accessed, last)
        data = (ctypes.c_void_p * 4)(*map(ctypes.addressof, found))
        sizes = (ctypes.c_size_t * 4)(*map(ctypes.sizeof, found))
        numbers = (ctypes.c_int * 4)(1, 2, 3, 4)
        where = (self.handle, self.nbytes)
        in_context(driver.cuMemRangeGetAttributes, data, sizes, numbers, 4, *where)
        places = [location.place_of_device(each.value) for each in (preferred, last)]
        if raw.available("cuMemAdvise_v2"):
            places = [
                location.place(*map(self._range_attribute, each)) for each in ((5, 6), (7, 8))
            ]
        by = [location.place_of_device(each) for each in accessed]
        return {
            "read_mostly": bool(mostly.value),
            "preferred_location": places[0],
            "accessed_by": tuple(each for each in by if each is not None),
            "last_prefetch_location": places[1],
        }

    def _range_attribute(self, number: int) -> int:
        value = ctypes.c_int()
        arguments = (ctypes.byref(value), 4, number, self.handle, self.nbytes)
        in_context(driver.cuMemRangeGetAttribute, *arguments)
        return value.value

    def _device(self) -> int:
        return int(in_context(driver.cuCtxGetDevice))


def managed_alloc(nbytes: int, attach: str = "global") -> ManagedMemory:
    """Allocate managed memory.

    Args:
        attach: who may use it at first: "global" all, "host" only the host, until it is attached
            to a stream.

    Raises:
        ValueError: *nbytes* is negative, or no such word.
        OutOfMemory: there is not as much.
        NotSupported: the device has no managed memory.

    C: cuMemAllocManaged
    """
    nbytes = checks.size(nbytes)
    flags = checks.choice(attach, {"global": 1, "host": 2}, "attach")
    context = current_context().handle
    address = allocate("cuMemAllocManaged", max(nbytes, 1), flags)
    return ManagedMemory(address, nbytes, context, owned=True)


def mem_prefetch(memories: Iterable[DeviceMemory], where: Any, stream: object) -> None:
    """Move many pieces of managed memory to one place, by one call ordered on *stream*.

    Args:
        where: as for ``ManagedMemory.advise``.
        stream: not the legacy default stream.

    Raises:
        NotSupportedByDriver: it is older than 13.0.

    C: cuMemPrefetchBatchAsync
    """
    places = place_array(where)
    batch(driver.cuMemPrefetchBatchAsync, memories, places, stream)


def mem_discard(memories: Iterable[DeviceMemory], stream: object, prefetch_to: Any = None) -> None:
    """Let the contents of managed memory go, so that nobody copies them any more.

    What is read from it before it is written anew is undefined.

    Args:
        stream: orders it; not the legacy default stream.
        prefetch_to: where the memory shall be next, without its contents.

    Raises:
        NotSupportedByDriver: it is older than 13.0.

    C: cuMemDiscardBatchAsync, cuMemDiscardAndPrefetchBatchAsync
    """
    if prefetch_to is None:
        batch(driver.cuMemDiscardBatchAsync, memories, (), stream)
    else:
        places = place_array(prefetch_to)
        batch(driver.cuMemDiscardAndPrefetchBatchAsync, memories, places, stream)


def place_array(where: Any) -> tuple[Any, Any, int]:
    """One place for all, as batches take it."""
    return ctypes.byref(location.record(where)), ctypes.byref(ctypes.c_size_t(0)), 1


def batch(
    call: Callable[..., Any],
    memories: Iterable[DeviceMemory],
    places: Sequence[Any],
    stream: object,
) -> None:
    """Make a call for many pieces of managed memory; empty ones are left out."""
    on = stream_handle(stream)
    if on in (0, 1):
        raise ValueError("a batch needs a stream of its own, not the legacy default stream")
    given = list(memories)
    for each in given:
        if not isinstance(each, ManagedMemory):
            raise TypeError(f"{type(each).__name__} is no managed memory")
    kept = [(each.handle, each.nbytes) for each in given if each.nbytes]
    if not kept:
        return
    addresses = (ctypes.c_uint64 * len(kept))(*(address for address, _ in kept))
    sizes = (ctypes.c_size_t * len(kept))(*(nbytes for _, nbytes in kept))
    in_context(call, addresses, sizes, len(kept), *places, 0, on)


def old(kind: int, number: int) -> int:
    """A place as drivers before 12.2 take it: the number of a device.

    Raises:
        NotSupportedByDriver: it is a NUMA node.
    """
    if kind in (location.HOST_NUMA, location.HOST_NUMA_CURRENT):
        raw.function("cuMemAdvise_v2")
    return number if kind == location.DEVICE else location.CPU
