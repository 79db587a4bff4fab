"""cuEvent...: an event has happened as soon as it is recorded."""

from __future__ import annotations

from ..boundary import exported
from ..state import Event, Stream, current
from ..status import require

DISABLE_TIMING, INTERPROCESS = 2, 4


@exported()
def cuEventCreate(flags: int) -> Event:
    require(not flags & ~7)
    require(not flags & INTERPROCESS, "NOT_SUPPORTED")
    return Event(current(), flags)


@exported()
def cuEventDestroy_v2(event: Event) -> None:
    event.forget()


@exported()
def cuEventRecordWithFlags(event: Event, stream: Stream, flags: int) -> None:
    require(not flags)
    cuEventRecord(event, stream)


@exported()
def cuEventRecord(event: Event, stream: Stream) -> None:
    require(event.context is stream.context, "INVALID_HANDLE")
    event.record()


@exported("cuEventSynchronize")
def cuEventQuery(event: Event) -> None:
    current()


@exported("cuEventElapsedTime")
def cuEventElapsedTime_v2(start: Event, end: Event) -> float:
    require(not (start.flags | end.flags) & DISABLE_TIMING, "INVALID_HANDLE")
    require(start.recorded is not None and end.recorded is not None, "INVALID_HANDLE")
    assert start.recorded is not None and end.recorded is not None
    return (end.recorded - start.recorded) / 1e6
