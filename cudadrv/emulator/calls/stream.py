"""cuStream..., cuLaunchHostFunc: streams are always idle, for work is done at once."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import table, types

from .. import capture
from ..boundary import exported
from ..nodes import WaitEventParams
from ..state import Context, Event, Object, Stream, current
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
    require(not stream.default, "INVALID_HANDLE")
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
def cuStreamGetCtx_v2(stream: Stream) -> tuple[Context | int, Object | int]:
    green = stream.context.green
    return (0, green) if green else (stream.context, 0)


@exported()
def cuStreamGetDevice(stream: Stream) -> int:
    return 0


@exported("cuStreamQuery")
def cuStreamSynchronize(stream: Stream) -> None:
    """Done already."""


@exported()
def cuStreamWaitEvent(stream: Stream, event: Event, flags: int) -> None:
    """Outside of captures, whatever the event stands for is done already."""
    require(flags in (0, 1))
    taken = capture.healthy(stream)
    if flags:
        require(taken)
        assert taken
        taken.add(stream, WaitEventParams(event))
    elif taken or event.captured:
        capture.wait(stream, event)


@exported()
def cuStreamAddCallback(stream: Stream, function: int, data: int, flags: int) -> None:
    require(function and not flags)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    prototype(function)(stream.handle, 0, data)


@exported()
def cuLaunchHostFunc(stream: Stream, function: int, data: int) -> None:
    require(function)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(data)


# -- attributes: kept, for nothing here depends on them

_DEFAULTS = {
    "CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW": {},
    "CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY": {"syncPolicy": 1},
    "CU_STREAM_ATTRIBUTE_PRIORITY": {},
    "CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP": {},
    "CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN": {},
}
_ATTRIBUTES = {table.CONSTANTS[name]: defaults for name, defaults in _DEFAULTS.items()}
_PRIORITY = table.CONSTANTS["CU_STREAM_ATTRIBUTE_PRIORITY"]
_VALUE = types.record("CUlaunchAttributeValue")


@exported()
def cuStreamGetAttribute(stream: Stream, attribute: int) -> Any:
    require(attribute in _ATTRIBUTES)
    value = stream.attributes.get(attribute)
    if value is None:
        value = _VALUE(**_ATTRIBUTES[attribute])
    if attribute == _PRIORITY:
        value.priority = stream.priority
    return value


@exported()
def cuStreamSetAttribute(stream: Stream, attribute: int, address: int) -> None:
    require(attribute in _ATTRIBUTES and address)
    value = _VALUE.from_buffer_copy(_VALUE.from_address(address))
    stream.attributes[attribute] = value
    if attribute == _PRIORITY:
        stream.priority = min(max(value.priority, -5), 0)


@exported()
def cuStreamCopyAttributes(target: Stream, source: Stream) -> None:
    target.attributes = dict(source.attributes)
    target.priority = source.priority
