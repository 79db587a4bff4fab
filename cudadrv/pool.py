"""Memory pools, and memory that is allocated and freed in the order of a stream."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, MutableMapping
from typing import Any

from cudadrv import checks, driver, location, raw
from cudadrv.attributes import attribute_number, known_or_none, short_name
from cudadrv.capture import capturing_graph
from cudadrv.context import Resource, current_context, in_context
from cudadrv.memory import DeviceMemory, allocate
from cudadrv.process_local import Named
from cudadrv.shareable import HANDLE_TYPES, export, import_argument
from cudadrv.stream import Stream

ACCESS = {"none": 0, "read": 1, "readwrite": 3}
PINNED, MANAGED = 1, 2


class PoolAttributes(Named, MutableMapping[str, "int | None"]):
    """The attributes of a pool, by name without CU_MEMPOOL_ATTR_; bytes where it is memory.

    What the driver does not know is None. RELEASE_THRESHOLD and REUSE_... can be set to any number,
    RESERVED_MEM_HIGH and USED_MEM_HIGH to 0, which starts them anew.
    """

    def __init__(self, pool: MemoryPool) -> None:
        """Take the pool."""
        self._pool = pool

    def __getitem__(self, name: str) -> int | None:
        return known_or_none(self._ask, attribute_number("CUmemPool_attribute", name))

    def _ask(self, number: int) -> int:
        value = ctypes.c_uint64()
        in_context(driver.cuMemPoolGetAttribute, self._pool.handle, number, ctypes.byref(value))
        return value.value

    def __setitem__(self, name: str, value: int | None) -> None:
        number = attribute_number("CUmemPool_attribute", name)
        given = ctypes.c_uint64(checks.address(value, name))
        in_context(driver.cuMemPoolSetAttribute, self._pool.handle, number, ctypes.byref(given))

    def __delitem__(self, name: str) -> None:
        raise TypeError("an attribute of a pool cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return map(short_name, raw.CUmemPool_attribute.__members__)

    def __len__(self) -> int:
        return len(raw.CUmemPool_attribute.__members__)


class Life:
    """Alive as long as a pool is open or memory of it is not freed: then the pool is destroyed.

    Drivers promise to put the destruction off themselves, but 580 crashes when such memory is freed
    on another stream than it was allocated on.
    """


class MemoryPool(Resource):
    """Memory that stream-ordered allocations take, and give back for later ones."""

    RELEASE = "cuMemPoolDestroy"
    life: Life | None = None

    def __init__(
        self,
        where: Any = None,
        max_nbytes: int = 0,
        handle_type: str = "none",
        managed: bool = False,
    ) -> None:
        """Make a pool of its own; its memory stays until what is allocated from it is freed.

        Args:
            where: a Device, its number, "host" or ("host_numa", node); by default the device of
                the current context.
            max_nbytes: how large it may become; 0 is as large as the device. Needs driver 12.2.
            handle_type: how other processes shall get it: "none", "posix_fd", "fabric", "win32" or
                "win32_kmt".
            managed: whether its memory is managed. Needs driver 13.0.

        Raises:
            NotSupported: the device has no pools, or none of this kind.

        C: cuMemPoolCreate
        """
        context = current_context()
        properties = raw.CUmemPoolProps(allocType=MANAGED if managed else PINNED)
        properties.handleTypes = checks.choice(handle_type, HANDLE_TYPES, "handle_type")
        properties.location = location.record(context.device if where is None else where)
        properties.maxSize = checks.size(max_nbytes, "max_nbytes")
        handle = driver.cuMemPoolCreate(ctypes.byref(properties))
        self.life = Life()
        super().__init__(handle, context.handle, lives=self.life)

    def close(self) -> None:
        """Allocate no more from it; it is destroyed when all its memory is freed.

        C: cuMemPoolDestroy
        """
        self._handle = self.life = None

    @classmethod
    def adopt(cls, handle: int) -> MemoryPool:
        """Use a pool that the driver or other code owns."""
        adopted = cls.__new__(cls)
        context = current_context().handle
        Resource.__init__(adopted, checks.address(handle, "handle"), context, owned=False)
        return adopted

    @classmethod
    def default(cls, where: Any = None, managed: bool = False) -> MemoryPool:
        """The pool that a place has from the start.

        Args:
            where, managed: as for a new pool; another place than a device needs driver 13.0.

        C: cuDeviceGetDefaultMemPool, cuMemGetDefaultMemPool
        """
        return cls.adopt(_ask_place("Default", where, managed))

    @classmethod
    def current(cls, where: Any = None, managed: bool = False) -> MemoryPool:
        """The pool that allocations without one come from; ``make_current`` changes it.

        C: cuDeviceGetMemPool, cuMemGetMemPool
        """
        return cls.adopt(_ask_place("", where, managed))

    def make_current(self, where: Any = None, managed: bool = False) -> None:
        """Let allocations without a pool come from this one.

        Args:
            where: where the pool is; by default the device of the current context.

        C: cuDeviceSetMemPool, cuMemSetMemPool
        """
        kind, number = _place(where)
        if kind == location.DEVICE and not managed:
            driver.cuDeviceSetMemPool(number, self.handle)
        else:
            place = ctypes.byref(location.record_of(kind, number))
            driver.cuMemSetMemPool(place, MANAGED if managed else PINNED, self.handle)

    @property
    def attributes(self) -> MutableMapping[str, int | None]:
        """Its attributes, to read and to set: RELEASE_THRESHOLD, USED_MEM_CURRENT, ...

        C: cuMemPoolGetAttribute, cuMemPoolSetAttribute
        """
        return PoolAttributes(self)

    def trim(self, keep: int = 0) -> None:
        """Give unused memory back to the system, down to *keep* bytes.

        C: cuMemPoolTrimTo
        """
        in_context(driver.cuMemPoolTrimTo, self.handle, checks.size(keep, "keep"))

    def access(self, where: Any) -> str:
        """What a place may do with memory of the pool: "none", "read" or "readwrite".

        C: cuMemPoolGetAccess
        """
        place = ctypes.byref(location.record(where))
        flags = int(in_context(driver.cuMemPoolGetAccess, self.handle, place))
        return next(word for word, number in ACCESS.items() if number == flags)

    def set_access(self, where: Any, access: str) -> None:
        """Say what a place may do with memory of the pool, also with what is allocated already.

        Args:
            access: "none", "read" or "readwrite"; devices need peer access to each other.

        C: cuMemPoolSetAccess
        """
        made = raw.CUmemAccessDesc(location=location.record(where))
        made.flags = checks.choice(access, ACCESS, "access")
        in_context(driver.cuMemPoolSetAccess, self.handle, ctypes.byref(made), 1)

    def export(self, handle_type: str) -> int | bytes:
        """A handle of the pool for another process, of the kind that the pool was made with.

        Returns:
            A file descriptor, which the caller closes; or bytes.

        C: cuMemPoolExportToShareableHandle
        """
        return export(driver.cuMemPoolExportToShareableHandle, self.handle, handle_type)

    @classmethod
    def import_from(cls, handle: int | bytes, handle_type: str) -> MemoryPool:
        """The pool of another process; it allocates nothing, only ``import_memory``.

        C: cuMemPoolImportFromShareableHandle
        """
        argument, number = import_argument(handle, handle_type)
        made = cls.__new__(cls)
        context = current_context().handle
        found = driver.cuMemPoolImportFromShareableHandle(argument, number, 0)
        made.life = Life()
        Resource.__init__(made, found, context, lives=made.life)
        return made

    def import_memory(self, exported: bytes, nbytes: int, stream: object = None) -> StreamMemory:
        """Memory that another process allocated from this pool and exported.

        It must be freed here before the other process frees it.

        Args:
            exported: what ``StreamMemory.export`` gave there.
            stream: where it will be freed.

        C: cuMemPoolImportPointer
        """
        data = raw.CUmemPoolPtrExportData()
        if len(exported) != ctypes.sizeof(data):
            raise ValueError(
                f"exported memory has {ctypes.sizeof(data)} bytes, not {len(exported)}"
            )
        ctypes.memmove(ctypes.byref(data), bytes(exported), len(exported))
        size = checks.size(nbytes)
        address = in_context(driver.cuMemPoolImportPointer, self.handle, ctypes.byref(data))
        return StreamMemory(address, size, current_context().handle, stream, self)


class StreamMemory(DeviceMemory):
    """Device memory that exists from a point of a stream on until a later one.

    Attributes:
        stream: the stream it was allocated on, where it is freed if nothing else is said. If that
            was closed, the legacy default stream.
        pool: the pool it comes from, None for the device's current one.
    """

    @staticmethod
    def RELEASE(address: int, stream: int, life: Life | None) -> int:
        """Free it; the pool lives till then."""
        return raw.cuMemFreeAsync(address, stream)

    def __init__(
        self,
        handle: int,
        nbytes: int,
        context: int,
        stream: object,
        pool: MemoryPool | None,
        owned: bool = True,
    ) -> None:
        """Own memory that exists; ``mem_alloc_async`` makes new one."""
        self.stream = None if stream is None else Stream.adopt(stream)
        self.pool = pool
        more = (self.stream or 0, None if pool is None else pool.life)
        super().__init__(handle, nbytes, context, owned=owned and bool(handle), more=more)

    def free(self, stream: object = None) -> None:
        """Free it when all present work of a stream is done.

        Unlike close() it raises what goes wrong, and a captured stream records it.

        Args:
            stream: by default the one it was allocated on.

        Raises:
            ClosedError: it was freed.

        C: cuMemFreeAsync
        """
        address = self.handle
        on = self.stream if stream is None else Stream.adopt(stream)
        if address:
            in_context(driver.cuMemFreeAsync, address, on.handle if on is not None else 0)
        if self._finalizer is not None:
            self._finalizer.detach()
        self._handle = None

    def export(self) -> bytes:
        """What another process needs to find this memory in the pool that it imported.

        C: cuMemPoolExportPointer
        """
        return bytes(in_context(driver.cuMemPoolExportPointer, self.handle))


def mem_alloc_async(
    nbytes: int, stream: object = None, pool: MemoryPool | None = None
) -> StreamMemory:
    """Allocate device memory in the order of a stream, not cleared.

    Work on the stream can use it at once; other streams after an event, or when it is
    synchronised. Garbage collection and close() free it in the order of the same stream.

    On a stream that is being captured it is memory of the graph: free() in the capture ends it in
    each launch, free() later after one; otherwise the graph has it, and closing leaves it alone.

    Args:
        stream: by default the legacy default stream.
        pool: where from; by default the current pool of the stream's device.

    Raises:
        ValueError: *nbytes* is negative.
        TypeError: *stream* is no stream, or *pool* no pool.
        OutOfMemory: the device or the pool has not got as much.

    C: cuMemAllocAsync, cuMemAllocFromPoolAsync
    """
    nbytes = checks.size(nbytes)
    if pool is not None and not isinstance(pool, MemoryPool):
        raise TypeError(f"pool={pool!r}: give a MemoryPool or None")
    on = None if stream is None else Stream.adopt(stream)
    number = 0 if on is None else on.handle
    context = (0 if on is None else on.context) or current_context().handle
    if nbytes == 0:
        address = 0
    elif pool is None:
        address = allocate("cuMemAllocAsync", nbytes, number)
    else:
        address = allocate("cuMemAllocFromPoolAsync", nbytes, pool.handle, number)
    # The legacy default stream is never captured, and asking it breaks captures of others.
    owned = number in (0, 1) or not capturing_graph(number)
    return StreamMemory(address, nbytes, context, on, pool, owned)


def _place(where: Any) -> tuple[int, int]:
    """A place; None is the device of the current context."""
    return location.pair(current_context().device if where is None else where)


def _ask_place(which: str, where: Any, managed: bool) -> int:
    """The handle of the default or the current pool of a place."""
    kind, number = _place(where)
    if kind == location.DEVICE and not managed:
        return int(getattr(driver, f"cuDeviceGet{which}MemPool")(number))
    place = ctypes.byref(location.record_of(kind, number))
    ask = getattr(driver, f"cuMemGet{which}MemPool")
    return int(ask(place, MANAGED if managed else PINNED))
