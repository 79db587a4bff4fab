"""cuPointer..., cuMemGetAddressRange."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import table, types

from ..boundary import exported
from ..memory import HOST, MANAGED, REGISTERED
from ..state import place
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
    return {
        "CONTEXT": (ctypes.c_void_p, context.handle),
        "MEMORY_TYPE": (ctypes.c_uint, 1 if on_host else 2),
        "DEVICE_POINTER": (ctypes.c_uint64, address),
        "HOST_POINTER": (ctypes.c_void_p, address if on_host or found.kind == MANAGED else 0),
        "SYNC_MEMOPS": (ctypes.c_int, 1),
        "BUFFER_ID": (ctypes.c_uint64, found.number),
        "IS_MANAGED": (ctypes.c_int, int(found.kind == MANAGED)),
        "DEVICE_ORDINAL": (ctypes.c_int, 0),
        "IS_LEGACY_CUDA_IPC_CAPABLE": (ctypes.c_int, 0),
        "RANGE_START_ADDR": (ctypes.c_uint64, found.address),
        "RANGE_SIZE": (ctypes.c_size_t, found.size),
        "MAPPED": (ctypes.c_int, 1),
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
    require(_describe(address))
