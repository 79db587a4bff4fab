"""Virtual memory: address ranges, and the memory of devices that is mapped into them."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv import checks, driver, location, raw
from cudadrv.context import Resource, current_context, in_context
from cudadrv.memory import DeviceMemory, failure
from cudadrv.pointers import pointer_attributes
from cudadrv.shareable import HANDLE_TYPES, export, import_argument

PINNED = 1
ACCESS = {"none": 0, "read": 1, "readwrite": 3}


def granularity(where: Any = None, recommended: bool = False, handle_type: str = "none") -> int:
    """What sizes and positions of virtual memory at a place are multiples of, in bytes.

    Args:
        where: a Device, its number or ("host_numa", node); by default the device of the current
            context.
        recommended: the one that is fastest, instead of the smallest.
        handle_type: as of ``PhysicalMemory``.

    Raises:
        NotSupported: the device has no virtual memory management.

    C: cuMemGetAllocationGranularity
    """
    made = properties(where, handle_type)
    arguments = (ctypes.byref(made), int(bool(recommended)))
    return int(driver.cuMemGetAllocationGranularity(*arguments))


def properties(
    where: Any,
    handle_type: str,
    rdma: bool = False,
    compressible: bool = False,
    tiles: bool = False,
) -> Any:
    """The CUmemAllocationProp of memory at a place."""
    made = raw.CUmemAllocationProp(type=PINNED)
    made.requestedHandleTypes = checks.choice(handle_type, HANDLE_TYPES, "handle_type")
    context = current_context()
    made.location = location.record(context.device if where is None else where)
    made.allocFlags.gpuDirectRDMACapable = int(bool(rdma))
    made.allocFlags.compressionType = int(bool(compressible))
    made.allocFlags.usage = raw.CU_MEM_CREATE_USAGE_TILE_POOL if tiles else 0
    return made


def whole(nbytes: int, step: int) -> int:
    """*nbytes* as a multiple of *step*, not less."""
    return -(-nbytes // step) * step


class PhysicalMemory(Resource):
    """Memory of a device without an address; it exists until it is closed and mapped nowhere.

    Attributes:
        nbytes: its size, a multiple of the granularity.
    """

    RELEASE = "cuMemRelease"

    def __init__(
        self,
        nbytes: int,
        where: Any = None,
        handle_type: str = "none",
        rdma: bool = False,
        compressible: bool = False,
        tiles: bool = False,
    ) -> None:
        """Allocate memory, not cleared.

        Args:
            nbytes: more than none; rounded up to the granularity.
            where: a Device, its number or ("host_numa", node); by default the device of the
                current context.
            handle_type: how other processes shall get it: "none", "posix_fd", "fabric", "win32" or
                "win32_kmt".
            rdma: whether other devices shall access it directly.
            compressible: whether the device may compress what is in it.
            tiles: whether it is for CUDA arrays made without memory (``CudaArray.map_memory``).

        Raises:
            ValueError: *nbytes* is not positive.
            OutOfMemory: the device has not got as much.
            NotSupported: the device has no such memory.

        C: cuMemCreate, cuMemGetAllocationGranularity
        """
        nbytes = checks.size(nbytes, least=1)
        made = properties(where, handle_type, rdma, compressible, tiles)
        context = current_context().handle
        step = driver.cuMemGetAllocationGranularity(ctypes.byref(made), 0)
        self.nbytes = whole(nbytes, step)
        handle = ctypes.c_uint64()
        arguments = (ctypes.byref(handle), self.nbytes, ctypes.byref(made), 0)
        code = driver.cuMemCreate.raw(*arguments)
        if code:
            raise failure(code, "cuMemCreate", self.nbytes)
        super().__init__(handle.value, context)

    @classmethod
    def of(cls, memory: DeviceMemory) -> PhysicalMemory:
        """What is mapped at the first byte of *memory*, as an owner of its own.

        Raises:
            CudaError: nothing is, or it was allocated in another way.

        C: cuMemRetainAllocationHandle
        """
        if not isinstance(memory, DeviceMemory):
            raise TypeError(f"{type(memory).__name__} is no device memory")
        handle = in_context(driver.cuMemRetainAllocationHandle, memory.handle)
        return cls._owner(handle, pointer_attributes(memory)["MAPPING_SIZE"] or memory.nbytes)

    @classmethod
    def adopt(cls, handle: int, nbytes: int) -> PhysicalMemory:
        """Use memory that other code made and releases.

        Args:
            handle: its CUmemGenericAllocationHandle.
            nbytes: its size.
        """
        made = cls.__new__(cls)
        made.nbytes = checks.size(nbytes, least=1)
        context = current_context().handle
        Resource.__init__(made, checks.address(handle, "handle"), context, owned=False)
        return made

    @classmethod
    def import_from(cls, handle: int | bytes, handle_type: str, nbytes: int) -> PhysicalMemory:
        """The memory that another process exported.

        Args:
            handle, handle_type: what ``export`` gave there; a file descriptor stays open.
            nbytes: its size there.

        C: cuMemImportFromShareableHandle
        """
        size = checks.size(nbytes, least=1)
        argument, number = import_argument(handle, handle_type)
        current_context()
        found = driver.cuMemImportFromShareableHandle(argument, number)
        return cls._owner(found, size)

    @classmethod
    def _owner(cls, handle: int, nbytes: int) -> PhysicalMemory:
        made = cls.__new__(cls)
        made.nbytes = nbytes
        Resource.__init__(made, handle, current_context().handle)
        return made

    def export(self, handle_type: str) -> int | bytes:
        """A handle for another process, of the kind that the memory was made with.

        Returns:
            A file descriptor, which the caller closes; or bytes.

        C: cuMemExportToShareableHandle
        """
        return export(driver.cuMemExportToShareableHandle, self.handle, handle_type)

    @property
    def properties(self) -> Any:
        """The CUmemAllocationProp that it was made with.

        C: cuMemGetAllocationPropertiesFromHandle
        """
        return in_context(driver.cuMemGetAllocationPropertiesFromHandle, self.handle)

    @property
    def where(self) -> Any:
        """The place it is at: the number of a device, or ("host_numa", node)."""
        found = self.properties.location
        return location.place(found.type, found.id)


class VirtualMemory(DeviceMemory):
    """A range of addresses, into which memory is mapped piece by piece.

    A piece is used like other device memory once it is mapped and access was granted. Closing waits
    for the device, unmaps everything and gives the addresses back.

    Attributes:
        nbytes: the size of the range, a multiple of the granularity.
        mappings: what is mapped where, by the position in the range; do not change it.
    """

    def __init__(self, nbytes: int, alignment: int = 0, address: int = 0) -> None:
        """Reserve addresses for the device of the current context.

        Args:
            nbytes: more than none; rounded up to the granularity.
            alignment: of the first address, a power of two; 0 is what the driver takes.
            address: where it should be if that is free.

        Raises:
            ValueError: a number is out of range.
            NotSupported: the device has no virtual memory management.

        C: cuMemAddressReserve
        """
        self._step = granularity()
        size = whole(checks.size(nbytes, least=1), self._step)
        alignment = checks.size(alignment, "alignment")
        if alignment & (alignment - 1):
            raise ValueError(f"alignment={alignment}: it is a power of two")
        wanted = checks.address(address)
        context = current_context().handle
        start = driver.cuMemAddressReserve(size, alignment, wanted, 0)
        self.mappings: dict[int, PhysicalMemory] = {}
        super().__init__(start, size, context, owned=True, more=(size, self.mappings))

    @staticmethod
    def RELEASE(address: int, size: int, mappings: dict[int, PhysicalMemory]) -> int:
        """Unmap everything, then give the addresses back; the memory mapped lives till then.

        C: cuMemUnmap, cuMemAddressFree, cuCtxSynchronize
        """
        if mappings:
            raw.cuCtxSynchronize()
        while mappings:
            position, physical = mappings.popitem()
            code = raw.cuMemUnmap(address + position, physical.nbytes)
            if code:
                return int(code)
        return int(raw.cuMemAddressFree(address, size))

    def map(self, physical: PhysicalMemory, at: int = 0) -> DeviceMemory:
        """Map all of *physical* from a position of the range on; grant access next.

        It may be mapped at several places, and closed while it is mapped.

        Args:
            at: a multiple of the granularity.

        Returns:
            The bytes where it is mapped.

        Raises:
            ValueError: it does not fit there.

        C: cuMemMap
        """
        if not isinstance(physical, PhysicalMemory):
            raise TypeError(f"{type(physical).__name__} is no PhysicalMemory")
        position, size = checks.size(at, "at"), physical.nbytes
        if position % self._step:
            raise ValueError(f"at={position}: it is a multiple of {self._step}")
        if position + size > self.nbytes:
            raise ValueError(f"{size} bytes at {position} leave the {self.nbytes} of the range")
        for other, mapped in self.mappings.items():
            if other < position + size and position < other + mapped.nbytes:
                raise ValueError(f"{mapped.nbytes} bytes are mapped at {other}: unmap them first")
        in_context(driver.cuMemMap, self.handle + position, size, 0, physical.handle, 0)
        self.mappings[position] = physical
        return self[position : position + size]

    def set_access(
        self, where: Any = None, access: str = "readwrite", at: int | None = None
    ) -> None:
        """Say what a place may do with what is mapped; at first no place may do anything.

        Args:
            where: a Device, its number, "host" or ("host_numa", node); by default the device of
                the current context.
            access: "none", "read" or "readwrite".
            at: the position of one piece; by default all that are mapped now.

        Raises:
            ValueError: nothing is mapped there, or no such word.

        C: cuMemSetAccess
        """
        made = raw.CUmemAccessDesc(flags=checks.choice(access, ACCESS, "access"))
        made.location = location.record(current_context().device if where is None else where)
        for position in self._positions(at):
            size = self.mappings[position].nbytes
            arguments = (self.handle + position, size, ctypes.byref(made), 1)
            in_context(driver.cuMemSetAccess, *arguments)

    def access(self, where: Any = None, at: int = 0) -> str:
        """What a place may do with what is mapped at a position.

        C: cuMemGetAccess
        """
        (position,) = self._positions(at)
        place = location.record(current_context().device if where is None else where)
        arguments = (ctypes.byref(place), self.handle + position)
        flags = int(in_context(driver.cuMemGetAccess, *arguments))
        return next(word for word, number in ACCESS.items() if number == flags)

    def unmap(self, at: int | None = None) -> None:
        """Wait for the device, and take the memory at a position out of the range.

        Args:
            at: the position that it was mapped at; by default all pieces.

        Raises:
            ValueError: nothing is mapped there.

        C: cuMemUnmap, cuCtxSynchronize
        """
        positions = self._positions(at)
        if positions:
            in_context(driver.cuCtxSynchronize)
        for position in positions:
            size = self.mappings[position].nbytes
            in_context(driver.cuMemUnmap, self.handle + position, size)
            del self.mappings[position]

    def _positions(self, at: int | None) -> list[int]:
        """The position *at*, or all positions, where memory is mapped."""
        self.handle  # noqa: B018  # to say so if it was closed
        if at is None:
            return sorted(self.mappings)
        position = checks.size(at, "at")
        if position not in self.mappings:
            there = ", ".join(map(str, sorted(self.mappings))) or "none"
            raise ValueError(f"nothing is mapped at {position}; the positions are: {there}")
        return [position]


def virtual_alloc(nbytes: int, where: Any = None, handle_type: str = "none") -> VirtualMemory:
    """Allocate device memory with an address range of its own, readable and writable there.

    Args:
        nbytes: more than none; rounded up to the granularity.
        where, handle_type: as for ``PhysicalMemory``.

    Raises:
        OutOfMemory: the device has not got as much.
        NotSupported: the device has no virtual memory management.

    C: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess
    """
    with PhysicalMemory(nbytes, where, handle_type) as physical:
        made = VirtualMemory(physical.nbytes)
        made.map(physical)
        made.set_access()
    return made
