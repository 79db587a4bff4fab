"""Places where memory can be, in words: a device, the host, one of its NUMA nodes."""

from __future__ import annotations

from typing import Any

from cudadrv import checks, raw
from cudadrv.device import Device

DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT = 1, 2, 3, 4
CPU, NOWHERE = -1, -2  # CU_DEVICE_CPU, CU_DEVICE_INVALID


def pair(where: Any) -> tuple[int, int]:
    """(CUmemLocationType, number) of a place.

    Args:
        where: a Device or its number, "host", "host_numa_current" (the calling thread's node), or
            ("host_numa", node).

    Raises:
        TypeError, ValueError: it is no place.
    """
    if isinstance(where, Device):
        return DEVICE, where.ordinal
    if isinstance(where, str) and where in ("host", "host_numa_current"):
        return (HOST if where == "host" else HOST_NUMA_CURRENT), 0
    if isinstance(where, tuple) and len(where) == 2 and where[0] == "host_numa":
        return HOST_NUMA, checks.size(where[1], "node")
    if hasattr(type(where), "__index__") and not isinstance(where, bool):
        return DEVICE, Device(where).ordinal
    raise TypeError(
        f"{where!r} is no place for memory: give a Device, its number, 'host', "
        "'host_numa_current' or ('host_numa', node)"
    )


def record(where: Any) -> Any:
    """The CUmemLocation of a place, as ``pair`` takes it."""
    return record_of(*pair(where))


def record_of(kind: int, number: int) -> Any:
    """A CUmemLocation."""
    made = raw.CUmemLocation(type=kind)
    made.id = number
    return made


def place(kind: int, number: int) -> Any:
    """A place as ``pair`` takes it: the number of a device, a word or a tuple; None for nowhere."""
    if kind == DEVICE:
        return number
    if kind == HOST_NUMA:
        return ("host_numa", number)
    return {HOST: "host", HOST_NUMA_CURRENT: "host_numa_current"}.get(kind)


def place_of_device(number: int) -> Any:
    """A place that the driver gives as a device number: that of a device, "host" or None."""
    return {CPU: "host", NOWHERE: None}.get(number, number)
