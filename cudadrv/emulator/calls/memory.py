"""cuMem..., cuMemcpy..., cuMemset..., cuPointer..."""

from __future__ import annotations

from ..boundary import exported
from ..memory import DEVICE, HOST, MANAGED, REGISTERED
from ..state import Context, current, device, overlaps, place
from ..status import require

PITCH = 512


@exported()
def cuMemGetInfo_v2() -> tuple[int, int]:
    current()
    return device.free_memory(), device.total_memory


def allocate(size: int, kind: str, flags: int = 0) -> int:
    """The address of fresh memory of a kind, in the current context."""
    context = current()
    require(size > 0)
    require(size <= device.free_memory(), "OUT_OF_MEMORY")
    return context.memory.allocate(size, kind, flags).address


@exported()
def cuMemAlloc_v2(size: int) -> int:
    return allocate(size, DEVICE)


@exported()
def cuMemAllocPitch_v2(width: int, height: int, element: int) -> tuple[int, int]:
    require(width and height and element in (4, 8, 16))
    pitch = -(-width // PITCH) * PITCH
    return allocate(pitch * height, DEVICE), pitch


@exported()
def cuMemAllocHost_v2(size: int) -> int:
    return allocate(size, HOST)


@exported()
def cuMemHostAlloc(size: int, flags: int) -> int:
    require(not flags & ~7)
    return allocate(size, HOST, flags)


@exported()
def cuMemFree_v2(address: int) -> None:
    current()
    if address:
        found = place(address)
        require(found)
        assert found
        found[0].memory.free(address, DEVICE, MANAGED)


@exported()
def cuMemFreeHost(address: int) -> None:
    _at(address, HOST).memory.free(address, HOST)


@exported("cuMemHostRegister")
def cuMemHostRegister_v2(address: int, size: int, flags: int) -> None:
    memory = current().memory
    require(address and size and not flags & ~15)
    require(not overlaps(address, size), "HOST_MEMORY_ALREADY_REGISTERED")
    memory.add(address, size, REGISTERED, flags, None)


@exported()
def cuMemHostUnregister(address: int) -> None:
    _at(address, REGISTERED, "HOST_MEMORY_NOT_REGISTERED").memory.free(address, REGISTERED)


@exported()
def cuMemHostGetDevicePointer_v2(address: int, flags: int) -> int:
    found = place(address)
    require(found and found[1].kind in (HOST, REGISTERED) and not flags)
    return address


@exported()
def cuMemHostGetFlags(address: int) -> int:
    found = place(address)
    require(found and found[1].kind in (HOST, REGISTERED))
    assert found
    return found[1].flags


def _at(address: int | None, kind: str, name: str = "INVALID_VALUE") -> Context:
    """The context with an allocation of a kind that starts at *address*."""
    found = place(address)
    require(found and found[1].kind == kind and found[1].address == address, name)
    assert found
    return found[0]
