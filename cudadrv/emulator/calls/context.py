"""cuDevicePrimaryCtx..., cuCtx..."""

from __future__ import annotations

from cudadrv.raw import types

from ..boundary import exported
from ..state import Context, Event, Object, current, device, thread
from ..status import Status, require


@exported()
def cuDevicePrimaryCtxRetain(dev: int) -> Context:
    return device.retain()


@exported("cuDevicePrimaryCtxRelease")
def cuDevicePrimaryCtxRelease_v2(dev: int) -> None:
    device.release()


@exported("cuDevicePrimaryCtxReset")
def cuDevicePrimaryCtxReset_v2(dev: int) -> None:
    device.reset()


@exported("cuDevicePrimaryCtxSetFlags")
def cuDevicePrimaryCtxSetFlags_v2(dev: int, flags: int) -> None:
    require(not flags & ~0xFF)
    device.primary_flags = flags
    if device.primary:
        device.primary.flags = flags


@exported()
def cuDevicePrimaryCtxGetState(dev: int) -> tuple[int, int]:
    return device.primary_flags, int(device.primary is not None)


@exported()
def cuCtxCreate_v2(flags: int, dev: int) -> Context:
    require(not flags & ~0xFF)
    made = Context(flags)
    thread.contexts.append(made)
    return made


@exported()
def cuCtxCreate_v3(affinity: int, count: int, flags: int, dev: int) -> Context:
    require(not count, "UNSUPPORTED_EXEC_AFFINITY")
    return cuCtxCreate_v2(flags, dev)  # type: ignore[no-any-return]


@exported()
def cuCtxCreate_v4(parameters: int, flags: int, dev: int) -> Context:
    if parameters:
        given = types.record("CUctxCreateParams").from_address(parameters)
        require(not given.numExecAffinityParams, "UNSUPPORTED_EXEC_AFFINITY")
        require(not given.cigParams, "NOT_SUPPORTED")
    return cuCtxCreate_v2(flags, dev)  # type: ignore[no-any-return]


@exported()
def cuCtxDestroy_v2(context: Context | None) -> None:
    require(context is not None and context is not device.primary, "INVALID_CONTEXT")
    assert context is not None
    if thread.contexts and thread.contexts[-1] is context:
        thread.contexts.pop()
    context.destroy()


@exported()
def cuCtxPushCurrent_v2(context: Context | None) -> None:
    require(context is not None, "INVALID_CONTEXT")
    assert context is not None
    thread.contexts.append(context)


@exported()
def cuCtxPopCurrent_v2() -> Context:
    require(thread.contexts, "INVALID_CONTEXT")
    return thread.contexts.pop()


@exported()
def cuCtxSetCurrent(context: Context | None) -> None:
    if thread.contexts:
        thread.contexts.pop()
    if context is not None:
        thread.contexts.append(context)


@exported()
def cuCtxGetCurrent() -> Object | int:
    return thread.contexts[-1] if thread.contexts else 0


@exported()
def cuCtxGetDevice() -> int:
    require(thread.contexts, "INVALID_CONTEXT")
    return 0


@exported()
def cuCtxGetDevice_v2(context: Context | None) -> int:
    return 0 if context else cuCtxGetDevice()


@exported()
def cuCtxGetFlags() -> int:
    return current().flags


@exported()
def cuCtxSetFlags(flags: int) -> None:
    require(not flags & ~0xFF)
    current().flags = flags


@exported()
def cuCtxGetId(context: Context | None) -> int:
    return (context or current()).handle


@exported()
def cuCtxGetApiVersion(context: Context | None) -> int:
    return 3020


@exported()
def cuCtxSynchronize() -> None:
    current()


@exported()
def cuCtxSynchronize_v2(context: Context | None) -> None:
    healthy(context)


@exported()
def cuCtxRecordEvent(context: Context | None, event: Event) -> None:
    require(event.context is healthy(context), "INVALID_HANDLE")
    event.record()


@exported()
def cuCtxWaitEvent(context: Context | None, event: Event) -> None:
    healthy(context)


@exported()
def cuCtxGetExecAffinity(kind: int) -> None:
    current()
    raise Status("UNSUPPORTED_EXEC_AFFINITY")


@exported()
def cuCtxEnablePeerAccess(peer: Context | None, flags: int) -> None:
    require(not flags)
    require(peer is not None and peer is not current(), "INVALID_CONTEXT")
    raise Status("PEER_ACCESS_UNSUPPORTED")


@exported()
def cuCtxDisablePeerAccess(peer: Context | None) -> None:
    require(peer is not None, "INVALID_CONTEXT")
    raise Status("PEER_ACCESS_NOT_ENABLED")


def healthy(context: Context | None) -> Context:
    """*context*, or the current one for NULL, unless one of its kernels failed."""
    if context is None:
        return current()
    if context.failure:
        raise Status.of(context.failure)
    return context


@exported()
def cuCtxSetLimit(limit: int, value: int) -> None:
    limits = current().limits
    require(limit in limits, "UNSUPPORTED_LIMIT")
    limits[limit] = value


@exported()
def cuCtxGetLimit(limit: int) -> int:
    limits = current().limits
    require(limit in limits, "UNSUPPORTED_LIMIT")
    return limits[limit]


@exported()
def cuCtxGetCacheConfig() -> int:
    return current().cache_config


@exported()
def cuCtxSetCacheConfig(config: int) -> None:
    require(0 <= config <= 3)
    current().cache_config = config


@exported()
def cuCtxGetStreamPriorityRange() -> tuple[int, int]:
    current()
    return 0, -5


@exported()
def cuCtxResetPersistingL2Cache() -> None:
    current()


@exported("cuProfilerStop")
def cuProfilerStart() -> None:
    """No profiler looks on."""
    current()
