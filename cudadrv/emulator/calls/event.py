"""cuEvent...: an event has happened as soon as it is recorded."""

from __future__ import annotations

from .. import capture
from ..boundary import exported
from ..nodes import RecordEventParams
from ..state import DISABLE_TIMING, Event, Stream, captures, current
from ..status import Status, require

INTERPROCESS = 4


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
    require(event.context is stream.context, "INVALID_HANDLE")
    require(flags in (0, 1))
    taken = capture.healthy(stream)
    require(taken or not flags, "ILLEGAL_STATE")
    if taken is None:
        event.record()
    elif flags:
        taken.add(stream, RecordEventParams(event))
    else:
        capture.record(event, stream, taken)


@exported()
def cuEventRecord(event: Event, stream: Stream) -> None:
    cuEventRecordWithFlags(event, stream, 0)


@exported("cuEventSynchronize")
def cuEventQuery(event: Event) -> None:
    current()
    if event.captured is not None:
        taken = event.captured[0]
        if taken in captures:
            taken.status = capture.INVALIDATED
        raise Status("CAPTURED_EVENT")


@exported("cuEventElapsedTime")
def cuEventElapsedTime_v2(start: Event, end: Event) -> float:
    require(not (start.flags | end.flags) & DISABLE_TIMING, "INVALID_HANDLE")
    require(not (start.captured or end.captured), "CAPTURED_EVENT")
    require(start.recorded is not None and end.recorded is not None, "INVALID_HANDLE")
    assert start.recorded is not None and end.recorded is not None
    return (end.recorded - start.recorded) / 1e6
