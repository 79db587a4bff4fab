"""cuDev...Resource..., cuGreenCtx...: parts of the cores, with the primary context's memory."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

from cudadrv.raw import table, types

from ..boundary import CONVERTERS, exported
from ..state import Context, Event, Object, Stream, device, find
from ..status import require
from .context import healthy

_SM = table.ENUMS[types.resolve("CUdevResourceType")]["CU_DEV_RESOURCE_TYPE_SM"]


class Description(Object):
    """What cuDevResourceGenerateDesc made: a number of cores."""

    error = "INVALID_RESOURCE_CONFIGURATION"

    def __init__(self, cores: int) -> None:
        super().__init__()
        self.cores = cores


class GreenContext(Object):
    """A green context, and the context that stands for it."""

    error = "INVALID_CONTEXT"

    def __init__(self, cores: int) -> None:
        super().__init__()
        primary = device.retain()
        self.context = Context(primary.flags)
        self.context.memory = primary.memory
        self.context.cores = cores
        self.context.green = self

    def destroy(self) -> None:
        """Give the cores back; the memory is the primary context's."""
        self.context.default_stream.forget()
        self.context.forget()
        self.forget()
        device.release()


_descriptions: dict[int, Description] = {}
CONVERTERS["CUgreenCtx"] = partial(find, GreenContext)
CONVERTERS["CUdevResourceDesc"] = partial(find, Description)


def _resource(cores: int, kind: int = _SM) -> Any:
    require(kind == _SM, "INVALID_RESOURCE_TYPE")
    made = types.record(types.resolve("CUdevResource"))(type=_SM)
    made.sm.smCount, made.sm.minSmPartitionSize, made.sm.smCoscheduledAlignment = cores, 1, 1
    return made


def _at(address: int | None) -> Any:
    require(address)
    found = types.record(types.resolve("CUdevResource")).from_address(address)
    require(found.type == _SM, "INVALID_RESOURCE_TYPE")
    return found


@exported()
def cuDeviceGetDevResource(dev: int, kind: int) -> Any:
    return _resource(device.cores, kind)


@exported()
def cuCtxGetDevResource(context: Context | None, kind: int) -> Any:
    return _resource(healthy(context).cores or device.cores, kind)


@exported()
def cuGreenCtxGetDevResource(green: GreenContext, kind: int) -> Any:
    return _resource(green.context.cores or device.cores, kind)


@exported()
def cuDevSmResourceSplitByCount(
    result: int, count_at: int, given: int, rest: int, flags: int, least: int
) -> None:
    whole = _at(given)
    require(count_at and not flags & ~3 and least <= whole.sm.smCount)
    count = ctypes.c_uint.from_address(count_at)
    each = max(least, 1)
    there_are = whole.sm.smCount // each
    if not result:
        count.value = there_are
        return
    count.value = min(count.value, there_are)
    size = ctypes.sizeof(whole)
    for i in range(count.value):
        part = _resource(each)
        ctypes.memmove(result + i * size, ctypes.byref(part), size)
    if rest:
        left = _resource(whole.sm.smCount - count.value * each)
        left.type = _SM if left.sm.smCount else 0
        ctypes.memmove(rest, ctypes.byref(left), size)


@exported()
def cuDevSmResourceSplit(
    result: int, groups: int, given: int, rest: int, flags: int, wanted: int
) -> None:
    left = _at(given).sm.smCount
    require(groups and wanted and not flags)
    asked = (types.record("CU_DEV_SM_RESOURCE_GROUP_PARAMS") * groups).from_address(wanted)
    size = ctypes.sizeof(types.record(types.resolve("CUdevResource")))
    for i, group in enumerate(asked):
        count = group.smCount or left
        require(0 < count <= left, "INVALID_RESOURCE_CONFIGURATION")
        group.smCount, left = count, left - count
        if result:
            ctypes.memmove(result + i * size, ctypes.byref(_resource(count)), size)
    if rest:
        remainder = _resource(left)
        remainder.type = _SM if left else 0
        ctypes.memmove(rest, ctypes.byref(remainder), size)


@exported()
def cuDevResourceGenerateDesc(resources: int, count: int) -> Description:
    require(resources and count)
    size = ctypes.sizeof(types.record(types.resolve("CUdevResource")))
    cores = sum(_at(resources + i * size).sm.smCount for i in range(count))
    require(0 < cores <= device.cores, "INVALID_RESOURCE_CONFIGURATION")
    # Nothing destroys a description: one for each number will do.
    if cores not in _descriptions:
        _descriptions[cores] = Description(cores)
    return _descriptions[cores]


@exported()
def cuGreenCtxCreate(description: Description, dev: int, flags: int) -> GreenContext:
    require(flags in (0, 1))
    return GreenContext(description.cores)


@exported()
def cuGreenCtxDestroy(green: GreenContext) -> None:
    green.destroy()


@exported()
def cuCtxFromGreenCtx(green: GreenContext) -> Context:
    return green.context


@exported()
def cuGreenCtxStreamCreate(green: GreenContext, flags: int, priority: int) -> Stream:
    require(flags == 1)
    return Stream(green.context, flags, min(max(priority, -5), 0))


@exported()
def cuGreenCtxRecordEvent(green: GreenContext, event: Event) -> None:
    event.record()


@exported()
def cuGreenCtxWaitEvent(green: GreenContext, event: Event) -> None:
    healthy(green.context)


@exported()
def cuGreenCtxGetId(green: GreenContext) -> int:
    return green.context.handle


@exported()
def cuStreamGetGreenCtx(stream: Stream) -> Object | int:
    return stream.context.green or 0
