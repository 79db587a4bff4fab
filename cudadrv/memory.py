"""Device memory: bytes on a device, their owner, and views of them."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from cudadrv import checks, driver, manager, raw
from cudadrv.context import Resource, current_context, in_context, stream_handle
from cudadrv.errors import ClosedError
from cudadrv.interface import described

# A CUipcMemHandle, then the position and the size of the memory in that allocation.
IPC_BYTES = 64
IPC_FORMAT = f"<{IPC_BYTES}sQQ"


class DeviceMemory(Resource):
    """Bytes on a device.

    Attributes:
        nbytes: how many.
    """

    __slots__ = ("_root",)

    RELEASE: Any = "cuMemFree"
    # Marks what has a device address in ``handle``, for launches.
    __cuda_memory__ = True

    def __init__(
        self,
        handle: int,
        nbytes: int,
        context: int = 0,
        owner: object = None,
        owned: bool = False,
        more: tuple[Any, ...] = (),
        lives: object = None,
    ) -> None:
        """Describe memory that exists; ``mem_alloc`` makes new one.

        Args:
            handle: its device address.
            owner: what to keep alive as long as this object.
            owned: whether this object frees it.
            more, lives: as of Resource.
        """
        self.nbytes = nbytes
        self.owner = owner
        # What is closed for this to be closed: one step away however often memory was cut.
        self._root = getattr(owner, "_root", None) or (
            owner if isinstance(owner, Resource) else None
        )
        super().__init__(handle, context, owned, *more, lives=lives)

    @classmethod
    def adopt(cls, memory: Any, nbytes: int | None = None) -> DeviceMemory:
        """Use memory that another library made and owns.

        Args:
            memory: its device address, or a contiguous device array, which is kept alive.
            nbytes: its size; by default all from the address to the end of the allocation.

        Raises:
            TypeError: it is neither.
            ValueError: it is smaller than *nbytes*.
            CudaError: the driver knows of no memory at this address.

        C: cuMemGetAddressRange_v2
        """
        if isinstance(memory, DeviceMemory):
            address, there = memory.handle, memory.nbytes
        elif (interface := described(memory)) is not None:
            interface.wait()
            address, there = interface.address, interface.contiguous_nbytes()
        else:
            address = checks.address(memory)
            start, length = in_context(driver.cuMemGetAddressRange, address)
            there = start + length - address
        count = there if nbytes is None else checks.size(nbytes)
        if count > there:
            raise ValueError(f"nbytes={count}: from {address:#x} on there are {there} bytes")
        owner = None if isinstance(memory, int) else memory
        return DeviceMemory(address, count, current_context().handle, owner)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.nbytes} bytes)"

    @property
    def handle(self) -> int:
        """The device address.

        Raises:
            ClosedError: the memory, or the memory that it is a part of, was closed.
        """
        root = self._root
        if self._handle is None or (root is not None and root._handle is None):
            raise ClosedError(f"device memory of {self.nbytes} bytes was closed; allocate it anew")
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether it, or what it is a part of, was closed."""
        root = self._root
        return self._handle is None or (root is not None and root._handle is None)

    def __getitem__(self, part: slice) -> DeviceMemory:
        """The bytes from ``part.start`` to ``part.stop``, sharing this memory."""
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise TypeError("device memory is cut with memory[start:stop], in bytes")
        start, stop, _ = part.indices(self.nbytes)
        return self._part(self.handle + start, max(0, stop - start))

    def _part(self, handle: int, nbytes: int) -> DeviceMemory:
        """A view of bytes of this memory."""
        return DeviceMemory(handle, nbytes, self.context, self)

    def ipc_handle(self) -> bytes:
        """Bytes that another process passes to ``ipc_open`` for this memory, or part of memory.

        It must stay until the other process has closed it. Memory of a pool and virtual memory are
        shared by their ``export`` instead.

        Raises:
            ValueError: it is empty.
            CudaError: it was not allocated by ``mem_alloc``, or the system shares no memory.

        C: cuIpcGetMemHandle, cuMemGetAddressRange_v2
        """
        address = self.handle
        if not self.nbytes:
            raise ValueError("memory of 0 bytes has no IPC handle")
        base, _ = in_context(driver.cuMemGetAddressRange, address)
        data = bytes(in_context(driver.cuIpcGetMemHandle, base))
        return struct.pack(IPC_FORMAT, data, address - base, self.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The bytes as a one-dimensional array of uint8."""
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.handle, False),
            "strides": None,
            "version": 3,
        }


class ForeignMemory(DeviceMemory):
    """Memory that a memory manager allocated, and frees."""

    RELEASE = staticmethod(manager.give_back)


def mem_alloc(nbytes: int, stream: object = None) -> DeviceMemory:
    """Allocate *nbytes* on the device of the current context, not cleared.

    The driver aligns it to 256 bytes; another memory manager as it likes, see
    ``set_memory_manager``.

    Args:
        stream: what the memory is first used on, for memory managers that care; the driver's
            memory can be used on any stream at once.

    Raises:
        ValueError: *nbytes* is negative.
        OutOfMemory: the device has not got as much.

    C: cuMemAlloc_v2
    """
    nbytes = checks.size(nbytes)
    context, on = current_context().handle, stream_handle(stream)
    if nbytes == 0:
        return DeviceMemory(0, 0, context)
    chosen = manager.current_memory_manager()
    if chosen is None:
        return DeviceMemory(allocate("cuMemAlloc", nbytes), nbytes, context, owned=True)
    address, free = manager.allocated(chosen, nbytes, on)
    return ForeignMemory(address, nbytes, context, owned=True, more=(free,))


def allocate(name: str, nbytes: int, *arguments: Any) -> int:
    """The address that the driver function *name* gives for *nbytes*.

    Raises:
        OutOfMemory: with how much there is.
    """
    pointer = ctypes.c_uint64()
    code = getattr(driver, name).raw(ctypes.byref(pointer), nbytes, *arguments)
    if code:
        raise failure(code, name, nbytes)
    return pointer.value


def failure(code: int, name: str, nbytes: int) -> Any:
    """The exception for an allocation of *nbytes* that failed in the driver function *name*."""
    hint = memory_hint(nbytes) if code == OUT_OF_MEMORY else ""
    return driver.error(code, raw.symbol(name), hint)


OUT_OF_MEMORY = 2


def memory_hint(nbytes: int) -> str:
    """For a failed allocation: what was asked for and what there is."""
    asked = f"asked for {amount(nbytes)}"
    try:
        chosen = manager.current_memory_manager()
        free, total = driver.cuMemGetInfo() if chosen is None else chosen.mem_info()
    except RuntimeError:
        return asked
    return f"{asked}, {amount(free)} of {amount(total)} are free; close buffers or use smaller ones"


def amount(nbytes: int) -> str:
    """A number of bytes as people write it."""
    value, unit = float(nbytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}" if unit != "bytes" else f"{nbytes} bytes"
