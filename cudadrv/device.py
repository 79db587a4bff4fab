"""Devices and their contexts."""

from __future__ import annotations

import ctypes
import itertools
import operator
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from cudadrv import driver, raw
from cudadrv.errors import CudaError

if TYPE_CHECKING:
    from typing_extensions import Self

PREFIX = "CU_DEVICE_ATTRIBUTE_"


def devices() -> list[Device]:
    """Every device that this process sees.

    C: cuDeviceGetCount
    """
    driver.init()
    return [Device(ordinal) for ordinal in range(driver.cuDeviceGetCount())]


class Device:
    """One device, by its number in this process."""

    def __init__(self, ordinal: int = 0) -> None:
        """Find device *ordinal*.

        Raises:
            ValueError: there is no such device.

        C: cuDeviceGet
        """
        driver.init()
        ordinal = operator.index(ordinal)
        count = driver.cuDeviceGetCount()
        if not 0 <= ordinal < count:
            there_are = "is 1 device, number 0" if count == 1 else f"are {count} devices, from 0 on"
            raise ValueError(f"there is no device {ordinal!r}; there {there_are}")
        self.ordinal = ordinal
        self.handle: int = driver.cuDeviceGet(ordinal)
        self.attributes: Mapping[str, int | None] = DeviceAttributes(self.handle)

    def __repr__(self) -> str:
        return f"Device({self.ordinal}, {self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.handle == self.handle

    def __hash__(self) -> int:
        return hash(("Device", self.handle))

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

        C: cuDevicePrimaryCtxRetain
        """
        with _lock:
            if self.handle not in _primary:
                _primary[self.handle] = driver.cuDevicePrimaryCtxRetain(self.handle)
            return Context(_primary[self.handle])

    def create_context(self, flags: int = 0) -> Context:
        """A new context of this process's own, made current; close() destroys it.

        Most programs want ``primary_context()``, which other libraries use too.

        C: cuCtxCreate_v2
        """
        return Context(driver.cuCtxCreate_v2(flags, self.handle), owned=True)

    def reset(self) -> None:
        """Destroy the primary context with everything in it; the next use starts afresh.

        Objects made before become unusable, also those of other libraries.

        C: cuDevicePrimaryCtxReset_v2
        """
        with _lock:
            context = _primary.pop(self.handle, None)
            if context:
                end(context)
                driver.cuDevicePrimaryCtxRelease(self.handle)
            driver.cuDevicePrimaryCtxReset(self.handle)


_lock = threading.Lock()
_primary: dict[int, int] = {}
# How often the context of each handle was destroyed or reset: what was made before is gone, and
# must not be released into a later context at the same address.
_ends: dict[int, int] = {}


def generation(context: int) -> int:
    """A number that changes when the context with this handle ends."""
    return _ends.get(context, 0)


def end(context: int) -> None:
    """Note that the context with this handle ends now."""
    _ends[context] = _ends.get(context, 0) + 1


class DeviceAttributes(Mapping[str, "int | None"]):
    """The attributes of a device, by name without CU_DEVICE_ATTRIBUTE_, or by number.

    An attribute that the driver does not know is None.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._known: dict[int, int | None] = {}

    def __getitem__(self, name: str | int) -> int | None:
        number = name if isinstance(name, int) else attribute_number("CUdevice_attribute", name)
        if number not in self._known:
            self._known[number] = self._ask(number)
        return self._known[number]

    def _ask(self, number: int) -> int | None:
        try:
            return int(driver.cuDeviceGetAttribute(number, self._device))
        except CudaError as error:
            if error.name in ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_SUPPORTED"):
                return None
            raise

    def __iter__(self) -> Iterator[str]:
        return (
            name.removeprefix(PREFIX)
            for name in raw.CUdevice_attribute.__members__
            if name[-3:] != "MAX"
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)


def attribute_number(enumeration: str, name: str) -> int:
    """The number of the attribute whose enumerator in *enumeration* ends in *name*.

    Raises:
        KeyError: cuda.h has no such attribute.
    """
    members = getattr(raw, enumeration).__members__
    for member, value in members.items():
        if member == name or member.partition("ATTRIBUTE_")[2] == name:
            return int(value)
    raise KeyError(f"{enumeration} has no {name!r}")


class Context:
    """A context: the memory, code and streams of one device that belong together.

    The driver knows which context is current in a thread; this class adds no state to that.
    """

    def __init__(self, handle: int, owned: bool = False) -> None:
        """Take the handle of an existing context, from wherever; *owned*: close() destroys it."""
        self.handle = handle
        self.owned = owned

    def __repr__(self) -> str:
        return f"Context({self.handle:#x})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and other.handle == self.handle

    def __hash__(self) -> int:
        return hash(("Context", self.handle))

    @staticmethod
    def current() -> Context | None:
        """The context that is current in this thread; None if there is none.

        C: cuCtxGetCurrent
        """
        driver.init()
        handle = driver.cuCtxGetCurrent()
        return Context(handle) if handle else None

    @property
    def is_current(self) -> bool:
        """Whether it is the current context of this thread."""
        return bool(driver.cuCtxGetCurrent() == self.handle)

    @property
    def device(self) -> Device:
        """The device it is on.

        C: cuCtxGetDevice
        """
        with self:
            return Device(driver.cuCtxGetDevice())

    def set_current(self) -> None:
        """Make it this thread's current context, in place of the present one.

        C: cuCtxSetCurrent
        """
        driver.cuCtxSetCurrent(self.handle)

    def push(self) -> None:
        """Make it current, to be undone with pop(); ``with context:`` does both.

        C: cuCtxPushCurrent_v2
        """
        driver.cuCtxPushCurrent(self.handle)

    def pop(self) -> None:
        """Make the context current again that was current before push().

        Raises:
            RuntimeError: it is not the current one.

        C: cuCtxPopCurrent_v2
        """
        if not self.is_current:
            raise RuntimeError(f"pop() of {self!r}, but current is {Context.current()!r}")
        driver.cuCtxPopCurrent()

    def __enter__(self) -> Self:
        self.push()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        driver.cuCtxPopCurrent()

    def synchronize(self) -> None:
        """Wait until everything started in it is done; errors of kernels surface here.

        C: cuCtxSynchronize
        """
        with self:
            driver.cuCtxSynchronize()

    def mem_info(self) -> tuple[int, int]:
        """Bytes of device memory that are free, and that there are.

        C: cuMemGetInfo_v2
        """
        with self:
            free, total = driver.cuMemGetInfo()
        return free, total

    def close(self) -> None:
        """Destroy the context if it was made by ``create_context``; may be called twice.

        C: cuCtxDestroy_v2
        """
        if self.owned:
            self.owned = False
            end(self.handle)
            driver.cuCtxDestroy(self.handle)
