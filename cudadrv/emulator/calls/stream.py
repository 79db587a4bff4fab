"""cuStream..., cuEvent..., cuLaunchHostFunc: streams are always idle, for work is done at once."""

from __future__ import annotations

import ctypes

from ..boundary import exported
from ..state import Context, Event, Stream, current
from ..status import require


@exported()
def cuStreamCreate(flags: int) -> Stream:
    require(flags in (0, 1))
    return Stream(current(), flags)


@exported()
def cuStreamCreateWithPriority(flags: int, priority: int) -> Stream:
    require(flags in (0, 1))
    return Stream(current(), flags, min(max(priority, -5), 0))


@exported()
def cuStreamDestroy_v2(stream: Stream) -> None:
    require(stream is not stream.context.default_stream, "INVALID_HANDLE")
    stream.forget()


@exported()
def cuStreamGetPriority(stream: Stream) -> int:
    return stream.priority


@exported()
def cuStreamGetFlags(stream: Stream) -> int:
    return stream.flags


@exported()
def cuStreamGetId(stream: Stream) -> int:
    return stream.handle


@exported()
def cuStreamGetCtx(stream: Stream) -> Context:
    return stream.context


@exported()
def cuStreamGetDevice(stream: Stream) -> int:
    return 0


@exported("cuStreamQuery")
def cuStreamSynchronize(stream: Stream) -> None:
    """Done already."""


@exported()
def cuStreamWaitEvent(stream: Stream, event: Event, flags: int) -> None:
    """Whatever the event stands for is done already."""


@exported()
def cuStreamIsCapturing(stream: Stream) -> int:
    return 0


@exported()
def cuStreamGetCaptureInfo_v2(stream: Stream) -> tuple[int, None, None, None, None]:
    return 0, None, None, None, None


@exported()
def cuStreamGetCaptureInfo_v3(stream: Stream) -> tuple[int, None, None, None, None, None]:
    return 0, None, None, None, None, None


@exported()
def cuThreadExchangeStreamCaptureMode(mode: int) -> None:
    require(mode)


@exported()
def cuStreamAddCallback(stream: Stream, function: int, data: int, flags: int) -> None:
    require(function and not flags)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    prototype(function)(stream.handle, 0, data)


@exported()
def cuLaunchHostFunc(stream: Stream, function: int, data: int) -> None:
    require(function)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(data)


DISABLE_TIMING = 2


@exported()
def cuEventCreate(flags: int) -> Event:
    require(not flags & ~7)
    return Event(current(), flags)


@exported()
def cuEventDestroy_v2(event: Event) -> None:
    event.forget()


@exported("cuEventRecordWithFlags")
def cuEventRecord(event: Event, stream: Stream, *flags: int) -> None:
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
