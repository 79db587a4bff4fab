"""What the driver knows of an address: where it is, what allocated it, who may access it."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, MutableMapping
from typing import Any

from cudadrv import driver, raw
from cudadrv.attributes import attribute_number, known_or_none, short_name
from cudadrv.context import in_context
from cudadrv.copies import span
from cudadrv.interface import described
from cudadrv.process_local import Named

PREFIX = "CU_POINTER_ATTRIBUTE_"
# Of attributes that are not an unsigned number of 64 bits: the C type.
TYPES: dict[str, Any] = {
    "MEMORY_TYPE": ctypes.c_uint,
    "P2P_TOKENS": ctypes.c_uint64 * 2,
    "SYNC_MEMOPS": ctypes.c_bool,
    "IS_MANAGED": ctypes.c_bool,
    "DEVICE_ORDINAL": ctypes.c_int,
    "IS_LEGACY_CUDA_IPC_CAPABLE": ctypes.c_bool,
    "MAPPED": ctypes.c_bool,
    "IS_GPU_DIRECT_RDMA_CAPABLE": ctypes.c_bool,
    "ACCESS_FLAGS": ctypes.c_int,
    "IS_HW_DECOMPRESS_CAPABLE": ctypes.c_bool,
}
DMA_BUF_FD = 1
KINDS = {1: "host", 2: "device"}


class PointerAttributes(Named, MutableMapping[str, Any]):
    """The attributes of an address, by name without CU_POINTER_ATTRIBUTE_, asked when looked at.

    Numbers and addresses are ints, yes and no a bool, P2P_TOKENS a pair; what the driver does not
    know, or what makes no sense for this memory, is None. Only SYNC_MEMOPS can be set: whether
    copies and fills of the allocation are done when they return.
    """

    def __init__(self, address: int, keep: object = None) -> None:
        """Take the address, and what is to stay alive."""
        self._address = address
        self._keep = keep

    def __getitem__(self, name: str) -> Any:
        number = attribute_number("CUpointer_attribute", name)
        # No attribute has more bytes; the driver fills in as many as it has.
        space = (ctypes.c_uint64 * 2)()
        arguments = (ctypes.byref(space), number, self._address)

        def ask(_: int) -> int:
            in_context(driver.cuPointerGetAttribute, *arguments)
            return 1

        if known_or_none(ask, number) is None:
            return None
        kind = TYPES.get(short_name(name) if name.startswith(PREFIX) else name, ctypes.c_uint64)
        found = kind.from_buffer(space)
        return tuple(found) if isinstance(found, ctypes.Array) else found.value

    def __setitem__(self, name: str, value: bool) -> None:
        number = attribute_number("CUpointer_attribute", name)
        if number != raw.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            raise TypeError(f"{name} cannot be set; only SYNC_MEMOPS can")
        given = ctypes.c_uint(bool(value))
        in_context(driver.cuPointerSetAttribute, ctypes.byref(given), number, self._address)

    def __delitem__(self, name: str) -> None:
        raise TypeError("an attribute of an address cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return map(short_name, raw.CUpointer_attribute.__members__)

    def __len__(self) -> int:
        return len(raw.CUpointer_attribute.__members__)


def pointer_attributes(memory: Any) -> MutableMapping[str, Any]:
    """What the driver knows of memory, by the name of the attribute; ``dict(...)`` asks for all.

    Args:
        memory: device or host memory, an array on either, a buffer, or an address.

    Raises:
        TypeError: it is none of these.
        ClosedError: it was closed.

    C: cuPointerGetAttribute, cuPointerSetAttribute
    """
    return PointerAttributes(address_of(memory), memory)


def pointer_kind(memory: Any) -> str | None:
    """Whether memory is "device", "host" (pinned or registered), "managed", or None: unknown.

    Args:
        memory: as for ``pointer_attributes``.

    C: cuPointerGetAttributes
    """
    kind, managed = ctypes.c_uint(), ctypes.c_uint()
    data = (ctypes.c_void_p * 2)(ctypes.addressof(kind), ctypes.addressof(managed))
    numbers = (ctypes.c_int * 2)(
        raw.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, raw.CU_POINTER_ATTRIBUTE_IS_MANAGED
    )
    in_context(driver.cuPointerGetAttributes, 2, numbers, data, address_of(memory))
    return "managed" if managed.value else KINDS.get(kind.value)


def address_range(memory: Any) -> tuple[int, int]:
    """(address, bytes) of the whole allocation that memory is a part of.

    Args:
        memory: as for ``pointer_attributes``.

    Raises:
        CudaError: the driver has not allocated it.

    C: cuMemGetAddressRange_v2
    """
    start, nbytes = in_context(driver.cuMemGetAddressRange, address_of(memory))
    return start, nbytes


def dma_buf(memory: Any, pcie: bool = False) -> int:
    """A file descriptor of device memory for drivers of other devices; the caller closes it.

    Args:
        memory: device memory of whole pages of the host.
        pcie: whether the other device shall go over PCIe, where there is a choice.

    Raises:
        ValueError: address or size are not multiples of the host's page size.
        NotSupported: the device or the system has no such descriptors.

    C: cuMemGetHandleForAddressRange
    """
    found = span(memory, False)
    if not found.on_device or found.nbytes is None:
        raise TypeError("dma_buf() takes device memory of known size")
    if not found.nbytes or found.address % mmap.PAGESIZE or found.nbytes % mmap.PAGESIZE:
        raise ValueError(
            f"{found.nbytes} bytes at {found.address:#x} are not whole pages of {mmap.PAGESIZE}"
        )
    handle = ctypes.c_int()
    flags = raw.CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE if pcie else 0
    arguments = (ctypes.byref(handle), found.address, found.nbytes, DMA_BUF_FD, flags)
    in_context(driver.cuMemGetHandleForAddressRange, *arguments)
    return handle.value


def address_of(memory: Any) -> int:
    """The address of the first element or byte of memory, an array or a buffer."""
    found = described(memory)
    if found is not None:
        return found.address
    interface = getattr(memory, "__array_interface__", None)
    if interface is not None and interface.get("data") is not None:
        return int(interface["data"][0])
    return span(memory, False).address
