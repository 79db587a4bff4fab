"""cuPointer..., cuMemGetAddressRange."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import table, types

from ..boundary import exported
from ..memory import DEVICE, HOST, MANAGED, REGISTERED
from ..state import place, reach
from ..status import Status, require

_POINTER = {
    name.removeprefix("CU_POINTER_ATTRIBUTE_"): value
    for name, value in table.ENUMS[types.resolve("CUpointer_attribute")].items()
}


@exported()
def cuMemGetAddressRange_v2(address: int) -> tuple[int, int]:
    found = place(address)
    require(found, "NOT_FOUND" if address else "INVALID_VALUE")
    assert found
    return found[1].address, found[1].size


def _describe(address: int) -> dict[str, tuple[Any, int]] | None:
    """The pointer attributes of *address*, each with its ctypes type; None for unknown memory."""
    at = place(address)
    if at is None:
        return None
    context, found = at
    on_host = found.kind in (HOST, REGISTERED)
    reached = on_host or found.kind == MANAGED
    return {
        **({"HOST_POINTER": (ctypes.c_void_p, address)} if reached else {}),
        "CONTEXT": (ctypes.c_void_p, context.handle),
        "MEMORY_TYPE": (ctypes.c_uint, 1 if on_host else 2),
        "DEVICE_POINTER": (ctypes.c_uint64, address),
        "SYNC_MEMOPS": (ctypes.c_uint, int(found.sync)),
        "BUFFER_ID": (ctypes.c_uint64, found.number),
        "IS_MANAGED": (ctypes.c_int, int(found.kind == MANAGED)),
        "DEVICE_ORDINAL": (ctypes.c_int, 0),
        "IS_LEGACY_CUDA_IPC_CAPABLE": (ctypes.c_int, 0),
        "RANGE_START_ADDR": (ctypes.c_uint64, found.address),
        "RANGE_SIZE": (ctypes.c_size_t, found.size),
        "MAPPED": (ctypes.c_int, 1),
        "ALLOWED_HANDLE_TYPES": (ctypes.c_uint64, 0),
        "IS_GPU_DIRECT_RDMA_CAPABLE": (ctypes.c_int, 0),
        "ACCESS_FLAGS": (ctypes.c_int, 3),
        "MEMPOOL_HANDLE": (ctypes.c_void_p, found.pool.handle if found.pool else 0),
        "MAPPING_SIZE": (ctypes.c_size_t, found.size),
        "MAPPING_BASE_ADDR": (ctypes.c_uint64, found.address),
        "MEMORY_BLOCK_ID": (ctypes.c_uint64, found.number),
        "IS_HW_DECOMPRESS_CAPABLE": (ctypes.c_int, 0),
    }


@exported()
def cuPointerGetAttribute(data: int, attribute: int, address: int) -> None:
    require(data)
    found = _describe(address)
    require(found)
    assert found
    if not _store(found, attribute, data):
        raise Status("NOT_SUPPORTED")


def _store(found: dict[str, tuple[Any, int]], attribute: int, data: int) -> bool:
    for name, (kind, value) in found.items():
        if _POINTER[name] == attribute:
            kind.from_address(data).value = value
            return True
    return False


@exported()
def cuPointerGetAttributes(count: int, attributes: int, data: int, address: int) -> None:
    """Unknown memory is no error here: its attributes are 0 (its device -2)."""
    require(attributes and data)
    found = _describe(address) or {
        "MEMORY_TYPE": (ctypes.c_uint, 0),
        "CONTEXT": (ctypes.c_void_p, 0),
        "IS_MANAGED": (ctypes.c_int, 0),
        "DEVICE_ORDINAL": (ctypes.c_int, -2),
        "DEVICE_POINTER": (ctypes.c_uint64, 0),
    }
    for i in range(count):
        target = ctypes.c_void_p.from_address(data + 8 * i).value
        if target:
            _store(found, ctypes.c_int.from_address(attributes + 4 * i).value, target)


@exported()
def cuPointerSetAttribute(value: int, attribute: int, address: int) -> None:
    require(value and attribute == _POINTER["SYNC_MEMOPS"])
    found = place(address)
    require(found and found[1].kind in (DEVICE, MANAGED))
    assert found
    found[1].sync = bool(ctypes.c_uint.from_address(value).value)


@exported()
def cuMemGetHandleForAddressRange(
    handle: int, address: int, size: int, kind: int, flags: int
) -> None:
    require(handle and size and reach(address, size))
    raise Status("NOT_SUPPORTED")
