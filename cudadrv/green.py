"""Green contexts: parts of a device's multiprocessors, each with streams of its own."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from cudadrv import checks, driver, raw
from cudadrv.context import Resource
from cudadrv.context_state import end
from cudadrv.device import Context, Device
from cudadrv.event import event_handle
from cudadrv.launch_attributes import members
from cudadrv.process_local import ProcessLocal
from cudadrv.stream import Stream

NONBLOCKING = 1


class SmResource(ProcessLocal):
    """Some of the multiprocessors of a device.

    Attributes:
        raw: the CUdevResource.
    """

    def __init__(self, resource: Any) -> None:
        """Take what the driver gave."""
        self.raw = resource

    def __repr__(self) -> str:
        return f"SmResource({self.count} multiprocessors)"

    @classmethod
    def of(cls, owner: Device | Context | GreenContext) -> SmResource:
        """The multiprocessors that a device has, or that a context may use.

        Raises:
            TypeError: *owner* is none of these.
            NotSupportedByDriver: the driver is older than 12.4.

        C: cuDeviceGetDevResource, cuCtxGetDevResource, cuGreenCtxGetDevResource
        """
        calls = {
            Device: "cuDeviceGetDevResource",
            Context: "cuCtxGetDevResource",
            GreenContext: "cuGreenCtxGetDevResource",
        }
        for kind, name in calls.items():
            if isinstance(owner, kind):
                ask = getattr(driver, name)
                return cls(ask(owner.handle, raw.CU_DEV_RESOURCE_TYPE_SM))
        raise TypeError(f"{driver.short(owner)} is no Device, Context or GreenContext")

    @property
    def count(self) -> int:
        """How many multiprocessors."""
        return int(self.raw.sm.smCount)

    @property
    def smallest(self) -> int | None:
        """The fewest that a part of it has; None if the driver, before 13.1, does not tell."""
        return int(self.raw.sm.minSmPartitionSize) or None

    @property
    def alignment(self) -> int | None:
        """Parts have a multiple of this; None if the driver, before 13.1, does not tell."""
        return int(self.raw.sm.smCoscheduledAlignment) or None

    def split(
        self,
        count: int,
        groups: int | None = None,
        ignore_coscheduling: bool = False,
        large_clusters: bool = False,
    ) -> tuple[list[SmResource], SmResource | None]:
        """Parts of at least *count* multiprocessors each, and the rest if there is one.

        A part cannot be split again before a green context was made of it.

        Args:
            groups: how many parts at most; None is as many as there are.
            ignore_coscheduling: allow smaller parts, that may not run large clusters.
            large_clusters: make parts that run the largest clusters (sm_90).

        Raises:
            ValueError: *count* is more than there are, or *groups* is not at least 1.

        C: cuDevSmResourceSplitByCount
        """
        least = checks.size(count, "count", least=1)
        most = None if groups is None else checks.size(groups, "groups", least=1)
        if least > self.count:
            raise ValueError(f"count={count}: there are only {self.count} multiprocessors")
        flags = 0
        if ignore_coscheduling:
            flags |= raw.CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
        if large_clusters:
            flags |= raw.CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE
        call, given, number = driver.cuDevSmResourceSplitByCount, self._pointer, ctypes.c_uint()
        call(None, ctypes.byref(number), given, None, flags, least)
        number.value = min(number.value, most or number.value)
        parts, rest = (raw.CUdevResource * number.value)(), raw.CUdevResource()
        if number.value:
            call(parts, ctypes.byref(number), given, ctypes.byref(rest), flags, least)
        return self._results(parts[: number.value], rest)

    def divide(
        self, groups: Sequence[int | Mapping[str, Any]]
    ) -> tuple[list[SmResource], SmResource | None]:
        """One part for each of *groups*, and the rest if there is one.

        Args:
            groups: numbers of multiprocessors, 0 for as many as fit, or dicts of ``count``,
                ``coscheduled``, ``preferred_coscheduled`` and ``backfill``.

        Raises:
            NotSupportedByDriver: the driver is older than 13.1.

        C: cuDevSmResourceSplit
        """
        given = (raw.CU_DEV_SM_RESOURCE_GROUP_PARAMS * len(groups))()
        for group, made in zip(groups, given, strict=True):
            wanted = group if isinstance(group, Mapping) else {"count": group}
            *numbers, backfill = members(
                wanted, count=0, coscheduled=0, preferred_coscheduled=0, backfill=False
            )
            count, together, preferred = (checks.size(each, "groups") for each in numbers)
            made.smCount, made.coscheduledSmCount = count, together
            made.preferredCoscheduledSmCount = preferred
            made.flags = raw.CU_DEV_SM_RESOURCE_GROUP_BACKFILL if backfill else 0
        parts, rest = (raw.CUdevResource * len(groups))(), raw.CUdevResource()
        driver.cuDevSmResourceSplit(parts, len(groups), self._pointer, ctypes.byref(rest), 0, given)
        return self._results(parts[:], rest)

    @property
    def _pointer(self) -> Any:
        return ctypes.byref(self.raw)

    def _results(
        self, parts: Sequence[Any], rest: Any
    ) -> tuple[list[SmResource], SmResource | None]:
        # Copies, since the parts of an array share its memory.
        copies = [raw.CUdevResource.from_buffer_copy(part) for part in parts]
        empty = rest.type == raw.CU_DEV_RESOURCE_TYPE_INVALID or not rest.sm.smCount
        return [SmResource(each) for each in copies], None if empty else SmResource(rest)


class GreenContext(Resource):
    """A context that uses only some multiprocessors, and shares memory with the primary one.

    ``with green.as_context():`` makes it current; ``green.stream()`` gives streams that run there.
    """

    RELEASE = "cuGreenCtxDestroy"

    def __init__(
        self, resources: SmResource | Sequence[SmResource], device: Device | None = None
    ) -> None:
        """Make a green context; it is not made current.

        Args:
            resources: what ``SmResource.split`` gave.
            device: whose they are; None is the current device.

        Raises:
            TypeError: *resources* is no SmResource.
            NotSupportedByDriver: the driver is older than 12.4.

        C: cuDevResourceGenerateDesc, cuGreenCtxCreate
        """
        given = [resources] if isinstance(resources, SmResource) else resources
        if (
            not isinstance(given, Sequence)
            or not given
            or not all(isinstance(each, SmResource) for each in given)
        ):
            raise TypeError(f"resources={driver.short(resources)}: pass one SmResource or more")
        owner = device or current_device()
        context = owner.primary_context().handle
        array = (raw.CUdevResource * len(given))(*(each.raw for each in given))
        described = driver.cuDevResourceGenerateDesc(array, len(given))
        flags = raw.CU_GREEN_CTX_DEFAULT_STREAM
        super().__init__(driver.cuGreenCtxCreate(described, owner.handle, flags), context)
        self.device = owner
        self._converted = 0

    def as_context(self) -> Context:
        """The same as a Context, to be made current; it ends with the green context.

        Close what was made in it before the green context: later it is not released.

        C: cuCtxFromGreenCtx
        """
        self._converted = driver.cuCtxFromGreenCtx(self.handle)
        made = Context(self._converted)
        made._owner = self
        return made

    def stream(self, priority: int = 0) -> Stream:
        """A new stream whose kernels use these multiprocessors; it does not block others.

        Raises:
            NotSupportedByDriver: the driver is older than 12.5.

        C: cuGreenCtxStreamCreate
        """
        given = max(-(1 << 31), min(checks.integer(priority, "priority"), (1 << 31) - 1))
        made = Stream.__new__(Stream)
        handle = driver.cuGreenCtxStreamCreate(self.handle, NONBLOCKING, given)
        # Released in the primary context, which outlives this one.
        Resource.__init__(made, handle, self.context)
        made._foreign = self
        return made

    @property
    def sms(self) -> SmResource:
        """Its multiprocessors.

        C: cuGreenCtxGetDevResource
        """
        return SmResource.of(self)

    @property
    def id(self) -> int:
        """A number that no other context of this process has or had; driver 12.9.

        C: cuGreenCtxGetId
        """
        return int(driver.cuGreenCtxGetId(self.handle))

    def record(self, event: Any) -> None:
        """Let *event* happen when everything started in the green context is done.

        C: cuGreenCtxRecordEvent
        """
        driver.cuGreenCtxRecordEvent(self.handle, event_handle(event))

    def wait(self, event: Any) -> None:
        """Let everything started in the green context from now on wait for *event*.

        C: cuGreenCtxWaitEvent
        """
        driver.cuGreenCtxWaitEvent(self.handle, event_handle(event))

    def close(self) -> None:
        """Destroy it now; contexts and streams made of it can no longer be used.

        C: cuGreenCtxDestroy
        """
        if self._converted and not self.closed:
            while driver.cuCtxGetCurrent() == self._converted:
                driver.cuCtxPopCurrent()
            end(self._converted)
        super().close()


def current_device() -> Device:
    """The device of the current context, or device 0."""
    context = Context.current()
    return context.device if context else Device(0)
