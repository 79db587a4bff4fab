"""cuStreamBeginCapture..., and what each call becomes while its stream is captured."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cudadrv.raw import types

from .. import capture, state
from ..boundary import exported, interceptors
from ..capture import Capture
from ..graph import Graph, Params
from ..nodes import (
    AllocParams,
    CopyParams,
    FillParams,
    FreeParams,
    HostParams,
    KernelParams,
    OperationParams,
    record,
)
from ..state import Stream, captures, find, thread
from ..status import Status, require
from . import launch, memops
from .graph import handles

# -- calls that become nodes

Recorder = Callable[..., Params]
HOST, DEVICE, UNIFIED = 1, 2, 4


def _kernel(kernel: Any, *rest: Any) -> KernelParams:
    gx, gy, gz, bx, by, bz, dynamic, _, params = rest[:9]
    values = launch.parameters(kernel, params, rest[9] if len(rest) > 9 else None)
    launch.check(kernel, (gx, gy, gz), (bx, by, bz), dynamic, {})
    return KernelParams(kernel, (gx, gy, gz), (bx, by, bz), dynamic, values)


def _cooperative(*arguments: Any) -> KernelParams:
    made = _kernel(*arguments)
    made.attributes[2] = types.record("CUlaunchAttributeValue")(cooperative=1)
    return made


def _kernel_ex(address: int, kernel: Any, params: int, extra: int) -> KernelParams:
    config = types.record("CUlaunchConfig").from_address(address)
    grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
    block = (config.blockDimX, config.blockDimY, config.blockDimZ)
    values = launch.parameters(kernel, params, extra)
    launch.check(kernel, grid, block, config.sharedMemBytes, launch.attributes(config))
    made = KernelParams(kernel, grid, block, config.sharedMemBytes, values)
    kind = types.record(types.resolve("CUlaunchAttribute"))
    for each in (kind * config.numAttrs).from_address(config.attrs) if config.numAttrs else ():
        made.attributes[each.id] = type(each.value).from_buffer_copy(each.value)
    return made


def _copy(to: int, since: int) -> Recorder:
    return lambda target, source, size, stream: CopyParams.linear(target, source, size, to, since)


def _peer(target: int, to: Any, source: int, since: Any, size: int, stream: Any) -> Params:
    return CopyParams.linear(target, source, size, DEVICE, DEVICE)


def _fill(width: int) -> Recorder:
    return lambda at, value, count, stream: FillParams.of(at, 0, value, width, count, 1)


def _fill_2d(size: int) -> Recorder:
    return lambda at, pitch, value, width, rows, stream: FillParams.of(
        at, pitch, value, size, width, rows
    )


def _operation(code: int, member: str, field: str) -> Recorder:
    def make(stream: Stream, address: int, value: int, flags: int) -> Params:
        made = (memops.OPERATIONS * 1)()
        given = getattr(made[0], member)
        given.operation, given.address, given.flags = code, address, flags
        setattr(given, field, value)
        return OperationParams(made, stream.context)

    return make


def _operations(stream: Stream, count: int, address: int, flags: int) -> Params:
    return OperationParams(memops.copy(address, count), stream.context)


def _allocation(size: int, *_: Any) -> Params:
    made = record("CUDA_MEM_ALLOC_NODE_PARAMS")
    made.bytesize, made.poolProps.allocType = size, 1
    made.poolProps.location.type = 1
    return AllocParams(made)


# The exported function -> what makes the node's parameters of its arguments.
RECORDERS: dict[str, Recorder] = {
    "cuLaunchKernel": _kernel,
    "cuLaunchCooperativeKernel": _cooperative,
    "cuLaunchKernelEx": _kernel_ex,
    "cuMemcpyAsync": _copy(UNIFIED, UNIFIED),
    "cuMemcpyHtoDAsync_v2": _copy(DEVICE, HOST),
    "cuMemcpyDtoHAsync_v2": _copy(HOST, DEVICE),
    "cuMemcpyDtoDAsync_v2": _copy(DEVICE, DEVICE),
    "cuMemcpyPeerAsync": _peer,
    "cuMemcpyHtoAAsync_v2": lambda array, at, source, size, stream: CopyParams.row(
        array, at, source, size, True
    ),
    "cuMemcpyAtoHAsync_v2": lambda target, array, at, size, stream: CopyParams.row(
        array, at, target, size, False
    ),
    "cuMemcpy2DAsync_v2": lambda at, stream: CopyParams.plane(record("CUDA_MEMCPY2D", at)),
    "cuMemcpy3DAsync_v2": lambda at, stream: CopyParams(record("CUDA_MEMCPY3D", at)),
    **{f"cuMemsetD{8 * width}Async": _fill(width) for width in (1, 2, 4)},
    **{f"cuMemsetD2D{8 * width}Async": _fill_2d(width) for width in (1, 2, 4)},
    "cuLaunchHostFunc": lambda stream, function, data: HostParams.of(function, data),
    "cuMemAllocAsync": _allocation,
    "cuMemAllocFromPoolAsync": _allocation,
    "cuMemFreeAsync": lambda address, stream: FreeParams(address),
    "cuStreamWaitValue32_v2": _operation(1, "waitValue", "value"),
    "cuStreamWaitValue64_v2": _operation(4, "waitValue", "value64"),
    "cuStreamWriteValue32_v2": _operation(2, "writeValue", "value"),
    "cuStreamWriteValue64_v2": _operation(5, "writeValue", "value64"),
    "cuStreamBatchMemOp_v2": _operations,
}
# Calls that would wait for captured work.
WAITING = {"cuStreamSynchronize", "cuStreamQuery"}
# Calls that no node stands for.
NO_NODE = {"cuGraphLaunch", "cuStreamAddCallback", "cuStreamAttachMemAsync"}
# Calls on a stream that care for captures themselves, or do no work.
OWN = ("cuEvent", "cuStream")
# Calls that might wait for the device or for the legacy stream.
UNSAFE = {
    "cuMemAlloc_v2",
    "cuMemAllocPitch_v2",
    "cuMemAllocHost_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuCtxSynchronize",
}


def _intercept(name: str, arguments: list[Any]) -> tuple[bool, Any]:
    """Record a call on a captured stream; refuse what captures forbid."""
    name = name.removesuffix("_ptsz").removesuffix("_ptds")
    if name in UNSAFE or (name.startswith(("cuMemcpy", "cuMemset")) and "Async" not in name):
        _refuse(capture.forbidding(), "STREAM_CAPTURE_UNSUPPORTED")
    stream = next((each for each in arguments if isinstance(each, Stream)), None)
    if name == "cuLaunchKernelEx" and arguments[0]:
        config = types.record("CUlaunchConfig").from_address(arguments[0])
        stream = state.stream(config.hStream)
    if stream is None:
        return False, None
    if stream is stream.context.default_stream and name in RECORDERS:
        waits = [each for each in captures if not each.origin.flags & 1]
        _refuse(waits, "STREAM_CAPTURE_IMPLICIT")
    if stream.capture is None:
        return False, None
    if name in WAITING | NO_NODE:
        raise stream.capture.fail("STREAM_CAPTURE_UNSUPPORTED")
    if name not in RECORDERS and name.startswith(OWN):
        return False, None
    return True, _add(stream, name, arguments)


def _refuse(by: list[Capture], status: str) -> None:
    """Fail, and with it the captures in the way, if there are any."""
    for each in by:
        each.fail(status)
    require(not by, status)


def _add(stream: Stream, name: str, arguments: list[Any]) -> Any:
    """Record a call; its result, if it has one."""
    taken = capture.healthy(stream)
    assert taken is not None
    if name not in RECORDERS:
        raise taken.fail("STREAM_CAPTURE_UNSUPPORTED")
    params = RECORDERS[name](*arguments)
    taken.add(stream, params)
    return params.given.dptr if isinstance(params, AllocParams) else None


interceptors.append(_intercept)

# -- beginning, ending, asking


@exported()
def cuStreamBeginCapture_v2(stream: Stream, mode: int) -> None:
    capture.begin(stream, mode, None, {})


@exported()
def cuStreamBeginCaptureToGraph(
    stream: Stream, graph: int, after: int, data: int, count: int, mode: int
) -> None:
    target = find(Graph, graph)
    capture.begin(stream, mode, target, handles(after, data, count, target))


@exported()
def cuStreamEndCapture(stream: Stream) -> Graph | int:
    try:
        return capture.end(stream)
    except Status as status:
        status.results = 0
        raise


@exported()
def cuStreamIsCapturing(stream: Stream) -> int:
    legacy = stream is stream.context.default_stream
    if legacy and any(not each.origin.flags & 1 for each in captures):
        raise Status("STREAM_CAPTURE_IMPLICIT")
    return stream.capture.status if stream.capture else 0


def _info(stream: Stream) -> tuple[Any, ...]:
    taken = stream.capture
    if taken is None:
        return (0,)
    if taken.status == capture.INVALIDATED:
        return (taken.status, taken.id)
    return taken.status, taken.id, taken.graph


@exported()
def cuStreamGetCaptureInfo_v2(stream: Stream) -> tuple[Any, ...]:
    found = _info(stream)
    return (*found, *_tail(stream)[::2]) if len(found) == 3 else found


@exported("cuStreamGetCaptureInfo")
def cuStreamGetCaptureInfo_v3(stream: Stream) -> tuple[Any, ...]:
    found = _info(stream)
    return (*found, *_tail(stream)) if len(found) == 3 else found


def _tail(stream: Stream) -> tuple[int, int, int]:
    """Arrays of the nodes that the next one depends on and of the edges' data; their length."""
    count = len(stream.tail)
    nodes = (ctypes.c_void_p * max(count, 1))(*(node.handle for node in stream.tail))
    data = ctypes.create_string_buffer(b"".join(stream.tail.values()), 8 * count + 8)
    # As long as the stream is asked nothing else.
    stream.shown = (nodes, data)
    return ctypes.addressof(nodes), ctypes.addressof(data), count


@exported()
def cuStreamUpdateCaptureDependencies_v2(
    stream: Stream, nodes: int, data: int, count: int, flags: int
) -> None:
    taken = capture.healthy(stream)
    require(taken, "ILLEGAL_STATE")
    require(flags in (0, 1))
    assert taken
    given = handles(nodes, data, count, taken.graph)
    if flags:
        taken.detached.update(stream.tail)
        stream.tail = {}
    stream.tail.update(given)


@exported()
def cuStreamUpdateCaptureDependencies(stream: Stream, nodes: int, count: int, flags: int) -> None:
    cuStreamUpdateCaptureDependencies_v2(stream, nodes, 0, count, flags)


@exported()
def cuThreadExchangeStreamCaptureMode(address: int) -> None:
    require(address)
    mode = ctypes.c_int.from_address(address)
    require(mode.value in (0, 1, 2))
    mode.value, thread.capture_mode = thread.capture_mode, mode.value
