"""Devices and their contexts."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Iterable
from typing import Any, SupportsIndex

from cudadrv import attributes, checks, driver, raw
from cudadrv.context_state import ContextState, close_all, end
from cudadrv.errors import CudaError
from cudadrv.process_local import ProcessLocal, only


def devices() -> list[Device]:
    """Every device that this process sees.

    C: cuDeviceGetCount
    """
    driver.init()
    return [Device(ordinal) for ordinal in range(driver.cuDeviceGetCount())]


class Device(ProcessLocal):
    """One device, by its number in this process.

    Attributes:
        ordinal: that number.
        attributes: of the device, by name without CU_DEVICE_ATTRIBUTE_, or by number.
    """

    def __init__(self, which: int | str = 0) -> None:
        """Find a device.

        Args:
            which: its number, its place on the bus ("0000:01:00.0"), or its UUID as nvidia-smi
                writes it ("GPU-..." or "MIG-...").

        Raises:
            ValueError: there is no such device; lists those there are.

        C: cuDeviceGet, cuDeviceGetByPCIBusId
        """
        driver.init()
        count = driver.cuDeviceGetCount()
        ordinal = find(which, count) if isinstance(which, str) else checks.integer(which, "device")
        if not 0 <= ordinal < count:
            there_are = "is 1 device, number 0" if count == 1 else f"are {count} devices, from 0 on"
            raise ValueError(f"there is no device {ordinal!r}; there {there_are}")
        self.ordinal = ordinal
        self.handle: int = driver.cuDeviceGet(ordinal)
        handle = self.handle
        self.attributes = attributes.Attributes(
            "CUdevice_attribute", lambda number: driver.cuDeviceGetAttribute(number, handle)
        )

    def __repr__(self) -> str:
        return f"Device({self.ordinal}, {self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.handle == self.handle

    def __hash__(self) -> int:
        return hash(("Device", self.handle))

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        # Another process may number its devices otherwise.
        return Device, (self.uuid,)

    @property
    def name(self) -> str:
        """What the device is called.

        C: cuDeviceGetName
        """
        buffer = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(buffer, len(buffer), self.handle)
        return buffer.value.decode(errors="replace")

    @property
    def uuid(self) -> str:
        """The identity of the device, as nvidia-smi writes it: "GPU-...".

        C: cuDeviceGetUuid_v2
        """
        digits = bytes(driver.cuDeviceGetUuid(self.handle)).hex()
        ends = (0, 8, 12, 16, 20, 32)
        return "-".join(["GPU", *(digits[a:b] for a, b in itertools.pairwise(ends))])

    @property
    def pci_bus_id(self) -> str:
        """Where the device sits, as "0000:01:00.0".

        C: cuDeviceGetPCIBusId
        """
        buffer = ctypes.create_string_buffer(64)
        driver.cuDeviceGetPCIBusId(buffer, len(buffer), self.handle)
        return buffer.value.decode()

    @property
    def compute_capability(self) -> tuple[int, int]:
        """What the device can do, as (9, 0)."""
        attributes = self.attributes
        major = attributes["COMPUTE_CAPABILITY_MAJOR"] or 0
        return major, attributes["COMPUTE_CAPABILITY_MINOR"] or 0

    @property
    def arch(self) -> str:
        """What to compile for, as "sm_90"."""
        return "sm_{}{}".format(*self.compute_capability)

    @property
    def total_memory(self) -> int:
        """Bytes of memory on the device.

        C: cuDeviceTotalMem_v2
        """
        return int(driver.cuDeviceTotalMem(self.handle))

    def primary_context(self) -> Context:
        """The context that the whole process shares for this device.

        It is retained once and not released at exit, so that other libraries keep theirs.

        C: cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxGetState
        """
        with _lock:
            known = _primary.get(self.handle)
            if known is not None and not driver.cuDevicePrimaryCtxGetState(self.handle)[1]:
                # Other code reset it, or released it once too often.
                end(known)
                del _primary[self.handle]
            if self.handle not in _primary:
                _primary[self.handle] = driver.cuDevicePrimaryCtxRetain(self.handle)
            return Context(_primary[self.handle])

    def create_context(
        self,
        flags: int | str | Iterable[str] = 0,
        sm_count: int | None = None,
        cig: tuple[int, int] | None = None,
    ) -> Context:
        """A new context of this process's own, made current; close() destroys it.

        Most programs want ``primary_context()``, which other libraries use too. It lives until
        close(): what is current in some thread must not end with an object of Python.

        Args:
            flags: how it waits and what it allows, see ``attributes.context_flags``.
            sm_count: how many multiprocessors its kernels use; needs CUDA's multi-process service.
            cig: (CUcigDataType, address of the shared data) of a graphics API's queue.

        Raises:
            ValueError: a flag or *sm_count* is none.
            NotSupportedByDriver: *sm_count* needs driver 11.4, *cig* 12.5.

        C: cuCtxCreate_v2, cuCtxCreate_v3, cuCtxCreate_v4
        """
        number = attributes.context_flags(flags)
        affinity, count = None, 0
        if sm_count is not None:
            smallest = checks.size(sm_count, "sm_count", least=1)
            affinity, count = raw.CUexecAffinityParam(), 1
            affinity.param.smCount.val = smallest
        if cig is None:
            return Context(_create(number, affinity, count, self.handle), owned=True)
        kind, data = (checks.size(each, "cig") for each in cig)
        shared = raw.CUctxCigParam(kind, data)
        given = raw.CUctxCreateParams(_address(affinity), count, _address(shared))
        handle = driver.cuCtxCreate_v4(ctypes.byref(given), number, self.handle)
        return Context(handle, owned=True)

    @property
    def primary_flags(self) -> frozenset[str]:
        """The flags of the primary context, to be read and set; see ``create_context``.

        C: cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxSetFlags_v2
        """
        return attributes.context_flag_names(driver.cuDevicePrimaryCtxGetState(self.handle)[0])

    @primary_flags.setter
    def primary_flags(self, flags: int | str | Iterable[str]) -> None:
        driver.cuDevicePrimaryCtxSetFlags(self.handle, attributes.context_flags(flags))

    @property
    def primary_active(self) -> bool:
        """Whether someone in this process uses the primary context.

        C: cuDevicePrimaryCtxGetState
        """
        return bool(driver.cuDevicePrimaryCtxGetState(self.handle)[1])

    def release_primary(self) -> None:
        """Give back our use of the primary context; it ends if no other library uses it.

        Does nothing if ``primary_context()`` was not called. Close what is in it before.

        C: cuDevicePrimaryCtxRelease_v2
        """
        with _lock:
            context = _primary.pop(self.handle, None)
            if context is None:
                return
            driver.cuDevicePrimaryCtxRelease(self.handle)
            if not self.primary_active:
                end(context)
                close_all(context)
                leave(context)

    def reset(self) -> None:
        """Destroy the primary context with everything in it; the next use starts afresh.

        Objects made before become unusable, also those of other libraries. Other threads in which
        it was current must make ``primary_context()`` current anew.

        C: cuDevicePrimaryCtxReset_v2
        """
        with _lock:
            context = _primary.pop(self.handle, None)
            if context:
                end(context)
                close_all(context)
                driver.cuDevicePrimaryCtxRelease(self.handle)
            driver.cuDevicePrimaryCtxReset(self.handle)
            if context:
                leave(context)

    # -- beside other devices

    def can_access_peer(self, other: Device) -> bool:
        """Whether kernels on this device can use memory of *other*.

        C: cuDeviceCanAccessPeer
        """
        return bool(driver.cuDeviceCanAccessPeer(self.handle, _other(other).handle))

    def peer_attributes(self, other: Device) -> attributes.Attributes:
        """How this device reaches *other*, by name without CU_DEVICE_P2P_ATTRIBUTE_.

        All are None for the device itself.

        C: cuDeviceGetP2PAttribute
        """
        ends = (self.handle, _other(other).handle)
        return attributes.Attributes(
            "CUdevice_P2PAttribute", lambda number: driver.cuDeviceGetP2PAttribute(number, *ends)
        )

    def atomic_capabilities(self, other: Device | None = None) -> dict[str, frozenset[str]]:
        """What atomic operations do natively on memory of the host, or of *other*.

        Returns:
            for each operation, such as "integer_add" or "cas", some of "signed", "unsigned",
            "reduction", "scalar_32", "scalar_64", "scalar_128", "vector_32x4".

        Raises:
            NotSupportedByDriver: the driver is older than 13.0.

        C: cuDeviceGetHostAtomicCapabilities, cuDeviceGetP2PAtomicCapabilities
        """
        operations = _members("CUatomicOperation", "CU_ATOMIC_OPERATION_")
        del operations["max"]  # only counts them
        bits = _members("CUatomicOperationCapability", "CU_ATOMIC_CAPABILITY_")
        count = len(operations)
        asked = (ctypes.c_int * count)(*operations.values())
        found = (ctypes.c_uint * count)()
        if other is None:
            driver.cuDeviceGetHostAtomicCapabilities(found, asked, count, self.handle)
        else:
            ends = (self.handle, _other(other).handle)
            driver.cuDeviceGetP2PAtomicCapabilities(found, asked, count, *ends)
        return {
            operation: frozenset(name for name, bit in bits.items() if number & bit)
            for operation, number in zip(operations, found, strict=True)
        }

    @property
    def luid(self) -> tuple[bytes, int] | None:
        """Eight bytes by which Windows knows the device, and its node mask; None elsewhere.

        C: cuDeviceGetLuid
        """
        buffer = ctypes.create_string_buffer(8)
        try:
            mask = driver.cuDeviceGetLuid(buffer, self.handle)
        except CudaError as error:
            if error.code in attributes.UNKNOWN:
                return None
            raise
        return buffer.raw, int(mask)

    @property
    def can_limit_sms(self) -> bool:
        """Whether ``create_context(sm_count=...)`` works.

        C: cuDeviceGetExecAffinitySupport
        """
        if not raw.available("cuDeviceGetExecAffinitySupport"):
            return False
        kind = raw.CU_EXEC_AFFINITY_TYPE_SM_COUNT
        return bool(driver.cuDeviceGetExecAffinitySupport(kind, self.handle))

    def linear_texture_width(self, array_format: int, channels: int) -> int:
        """How many elements a one-dimensional texture of linear memory can have.

        Args:
            array_format: a CUarray_format.
            channels: 1, 2 or 4 numbers an element.

        C: cuDeviceGetTexture1DLinearMaxWidth
        """
        number = checks.bits32(array_format, "array_format")
        count = checks.bits32(channels, "channels")
        return int(driver.cuDeviceGetTexture1DLinearMaxWidth(number, count, self.handle))


def leave(context: int) -> None:
    """Take a context that has ended off this thread's stack, so that the next use makes another."""
    while driver.cuCtxGetCurrent() == context:
        # NULL takes the topmost one off; a driver that refuses is not asked for ever.
        if driver.cuCtxSetCurrent.raw(None):
            return


def find(text: str, count: int) -> int:
    """The number of the device with this UUID or place on the bus.

    Raises:
        ValueError: there is none; lists those there are.
    """
    found = [Device(ordinal) for ordinal in range(count)]
    if text[:4].upper() in ("GPU-", "MIG-"):
        matches = [each.ordinal for each in found if each.uuid[4:].lower() == text[4:].lower()]
    else:
        handle = ctypes.c_int(-1)
        code = raw.cuDeviceGetByPCIBusId(ctypes.byref(handle), text.encode())
        matches = [each.ordinal for each in found if not code and each.handle == handle.value]
    if not matches:
        known = "".join(f"\n  {each.ordinal}: {each.pci_bus_id}, {each.uuid}" for each in found)
        raise ValueError(f"there is no device {text!r}; there are{known}")
    return matches[0]


def _members(enumeration: str, prefix: str) -> dict[str, int]:
    """The enumerators of an enum in lower case, without *prefix*."""
    members = getattr(raw, enumeration).__members__
    return {name.removeprefix(prefix).lower(): int(value) for name, value in members.items()}


def _other(device: Any) -> Device:
    if not isinstance(device, Device):
        raise TypeError(f"{device!r} is no Device")
    return device


def _address(structure: Any) -> int | None:
    return None if structure is None else ctypes.addressof(structure)


def _create(flags: int, affinity: Any, count: int, device: int) -> int:
    """A new context, by the oldest function that does and that the driver has."""
    if affinity is None and raw.available("cuCtxCreate_v2"):
        return int(driver.cuCtxCreate_v2(flags, device))
    if affinity is not None and (
        raw.available("cuCtxCreate_v3") or not raw.available("cuCtxCreate_v4")
    ):
        return int(driver.cuCtxCreate_v3(ctypes.byref(affinity), count, flags, device))
    given = raw.CUctxCreateParams(_address(affinity), count, None)
    return int(driver.cuCtxCreate_v4(ctypes.byref(given), flags, device))


_lock = threading.Lock()
_primary: dict[int, int] = {}


class Context(ContextState):
    """A context: the memory, code and streams of one device that belong together.

    The driver knows which context is current in a thread; this class adds no state to that.
    """

    @staticmethod
    def current() -> Context | None:
        """The context that is current in this thread; None if there is none.

        C: cuCtxGetCurrent
        """
        driver.init()
        handle = driver.cuCtxGetCurrent()
        return Context(handle) if handle else None

    @staticmethod
    def adopt(context: object) -> Context:
        """Use a context that another library made and owns.

        Args:
            context: its handle, or an object with ``handle`` or ``ptr``.

        Raises:
            TypeError: none of these.
            ValueError: the handle is NULL.
        """
        if isinstance(context, Context):
            return context
        for name in ("handle", "ptr"):
            context = getattr(only(context, "Context"), name, context)
        handle = checks.address(getattr(context, "value", context), "context")
        if not handle:
            raise ValueError("context=0 is no context")
        return Context(handle)

    @property
    def device(self) -> Device:
        """The device it is on.

        C: cuCtxGetDevice
        """
        with self:
            return Device(driver.cuCtxGetDevice())

    @property
    def is_primary(self) -> bool:
        """Whether it is its device's primary context, which other libraries share.

        C: cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxRetain
        """
        device = self.device
        if not device.primary_active:
            return False
        primary = driver.cuDevicePrimaryCtxRetain(device.handle)
        driver.cuDevicePrimaryCtxRelease(device.handle)
        return bool(primary == self.handle)
