"""Devices, contexts, streams and events by numba.cuda's names; cudadrv's objects do the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cudadrv
from cudadrv import Context, Device, Event, Stream, driver, profiler
from cudadrv.memory import amount

profile_start = profiler.start
profile_stop = profiler.stop
profiling = profiler.profile


class DeviceList:
    """The devices of this process, by number: ``gpus[0]``; ``with gpus[0]:`` makes one current."""

    def __repr__(self) -> str:
        return f"<DeviceList {self.lst}>"

    def __len__(self) -> int:
        return len(self.lst)

    def __iter__(self) -> Iterator[Managed]:
        return iter(self.lst)

    def __getitem__(self, number: int) -> Managed:
        """Device *number*.

        Raises:
            IndexError: there is no such device.
        """
        return self.lst[number]

    @property
    def lst(self) -> list[Managed]:
        """All of them."""
        return [Managed(device.ordinal) for device in cudadrv.devices()]

    @property
    def current(self) -> Device | None:
        """The device of this thread's context; None if it has none."""
        context = Context.current()
        return None if context is None else context.device


class Managed(Device):
    """A device that is a context manager: inside ``with`` its primary context is current."""

    def __enter__(self) -> Managed:
        self.primary_context().push()
        return self

    def __exit__(self, *_: object) -> None:
        context = Context.current()
        if context is not None:
            context.pop()


gpus = DeviceList()


def list_devices() -> DeviceList:
    """The devices of this process."""
    return gpus


def select_device(device_id: int) -> Device:
    """Make the primary context of a device this thread's current one; returns the device.

    Raises:
        ValueError: there is no such device.
    """
    device = Device(device_id)
    device.primary_context().set_current()
    return device


def close() -> None:
    """Destroy the primary context of the current device with all that is in it.

    The next use of the device begins anew; what was made before is refused from then on.
    """
    cudadrv.current_context().device.reset()
    driver.cuCtxSetCurrent(None)


def current_context(devnum: int | None = None) -> Context:
    """The current context of this thread.

    Args:
        devnum: a device; its primary context is made current first.
    """
    if devnum is not None:
        select_device(devnum)
    return cudadrv.current_context()


def get_current_device() -> Device:
    """The device of the current context."""
    return cudadrv.current_context().device


def synchronize() -> None:
    """Wait for all work of the current context.

    C: cuCtxSynchronize
    """
    cudadrv.current_context().synchronize()


def detect() -> bool:
    """Print the devices and whether kernels can run on each; returns whether any can."""
    devices = cudadrv.devices()
    print(f"Found {len(devices)} CUDA devices")
    for device in devices:
        print(f"id {device.ordinal}    {device.name}")
        print(f"    {device.arch}, {amount(device.total_memory)}, {device.uuid}")
    return bool(devices)


def stream(*args: Any, **kwargs: Any) -> Stream:
    """A new stream; see cudadrv.Stream."""
    return Stream(*args, **kwargs)


def default_stream() -> Stream:
    """The default stream that launches without a stream use: the legacy one."""
    return Stream.legacy


def legacy_default_stream() -> Stream:
    """The default stream that waits for all blocking streams of its context."""
    return Stream.legacy


def per_thread_default_stream() -> Stream:
    """The default stream of the calling thread."""
    return Stream.per_thread


def external_stream(ptr: int) -> Stream:
    """A stream that other code made and owns, by its handle."""
    return Stream.adopt(ptr)


def event(timing: bool = True) -> Event:
    """A new event; see cudadrv.Event."""
    return Event(timing=timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Milliseconds from one event to another.

    C: cuEventElapsedTime_v2
    """
    return evtend.elapsed_ms(evtstart)
