"""Copies of contiguous bytes: within a device, between devices, from and to the host."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from cudadrv import capture, checks, driver, raw
from cudadrv.buffers import Span, host_span
from cudadrv.context import in_context
from cudadrv.device import Device
from cudadrv.host_memory import HostMemory
from cudadrv.interface import described
from cudadrv.memory import DeviceMemory
from cudadrv.older import call_first
from cudadrv.process_local import only
from cudadrv.stream import stream_handle


def span(thing: Any, writable: bool) -> Span:
    """Where the bytes of *thing* lie.

    Raises:
        TypeError: it has no bytes that can be copied.
        ValueError: they are not contiguous, or read-only where they must be written.
    """
    if isinstance(thing, DeviceMemory):
        return Span(thing.handle, thing.nbytes, True, thing)
    if isinstance(thing, HostMemory):
        return Span(thing.handle, thing.nbytes, False, thing)
    if isinstance(thing, int) and not isinstance(thing, bool):
        return Span(checks.address(thing), None, True, thing)
    interface = described(thing)
    if interface is None:
        return host_span(thing, writable)
    if writable and interface.readonly:
        raise ValueError("the destination is read-only")
    interface.wait()
    return Span(interface.address, interface.contiguous_nbytes(), True, thing)


def memcpy(dst: Any, src: Any, nbytes: int | None = None, stream: object = None) -> None:
    """Copy bytes between device and host memory, or within either.

    Args:
        dst: device or pinned memory, a contiguous device array of any library, a device address,
            or a writable contiguous host buffer.
        src: the same, or a read-only host buffer.
        nbytes: how many; by default all of *src*, which must then fit into *dst*.
        stream: where to order it. Without, the call returns when the copy is done; with, host
            memory must stay unchanged until then.

    Raises:
        ValueError: more bytes than *dst* or *src* has, or the two overlap on the device.
        ClosedError: a buffer was closed.

    C: cuMemcpyHtoD_v2, cuMemcpyDtoH_v2, cuMemcpyDtoD_v2, cuMemcpyHtoDAsync_v2,
    cuMemcpyDtoHAsync_v2, cuMemcpyDtoDAsync_v2
    """
    target, source = span(dst, True), span(src, False)
    count = copy_size(target, source, nbytes)
    if count == 0:
        return
    if not (target.on_device or source.on_device):
        ctypes.memmove(target.address, source.address, count)
        return
    kind = ("DtoD" if source.on_device else "HtoD") if target.on_device else "DtoH"
    if kind == "DtoD":
        check_apart(target.address, source.address, count)
    transfer(kind, target.address, source.address, count, stream)
    capture.note(stream, dst, src, target.keep, source.keep)


def transfer(kind: str, dst: Any, src: Any, nbytes: int, stream: object) -> None:
    """Copy *nbytes*, more than none, in the direction *kind*: "HtoD", "DtoH" or "DtoD".

    C: cuMemcpyHtoD_v2 and its like, or the Async form if there is a stream
    """
    if stream is None:
        in_context(getattr(driver, "cuMemcpy" + kind), dst, src, nbytes)
    else:
        function = getattr(driver, "cuMemcpy" + kind + "Async")
        in_context(function, dst, src, nbytes, stream_handle(stream))


def check_apart(dst: int, src: int, nbytes: int) -> None:
    """Refuse a copy whose ends share bytes, which the device copies in an unknown order.

    Raises:
        ValueError: they do.
    """
    if 0 < abs(dst - src) < nbytes:
        raise ValueError(
            f"the copy of {nbytes} bytes overlaps itself: copy through a third buffer, or in parts"
        )


def copy_size(target: Span, source: Span, nbytes: int | None) -> int:
    """How many bytes to copy, checked against both ends."""
    if nbytes is None:
        nbytes = source.nbytes if source.nbytes is not None else target.nbytes
        if nbytes is None:
            raise ValueError("a copy between two addresses needs nbytes=")
    nbytes = checks.size(nbytes)
    for name, end in (("destination", target), ("source", source)):
        if end.nbytes is not None and nbytes > end.nbytes:
            raise ValueError(
                f"cannot copy {nbytes} bytes: the {name} has {end.nbytes}; copy fewer with nbytes="
            )
    return nbytes


def memcpy_peer(
    dst: Any,
    src: Any,
    nbytes: int | None = None,
    dst_context: object = None,
    src_context: object = None,
    stream: object = None,
) -> None:
    """Copy bytes from the memory of one context to that of another, often of another device.

    It works with and without peer access; without, the bytes go through the host.

    Args:
        dst, src: device memory, a contiguous device array or a device address.
        dst_context, src_context: a Context or its handle; by default where the memory was
            allocated.
        stream: where to order it; without, the copy still waits only for work of both contexts.

    Raises:
        ValueError: more bytes than *dst* or *src* has.
        TypeError: an end is host memory.

    C: cuMemcpyPeer, cuMemcpyPeerAsync
    """
    target, source = span(dst, True), span(src, False)
    if not (target.on_device and source.on_device):
        raise TypeError("memcpy_peer copies from device to device; memcpy() does all else")
    count = copy_size(target, source, nbytes)
    if count == 0:
        return
    to = context_of(dst_context, target.keep, target.address)
    since = context_of(src_context, source.keep, source.address)
    arguments = (target.address, to, source.address, since, count)
    if stream is None:
        in_context(driver.cuMemcpyPeer, *arguments)
    else:
        in_context(driver.cuMemcpyPeerAsync, *arguments, stream_handle(stream))


def context_of(context: object, memory: object, address: int) -> int:
    """The handle of *context*; for None, of the one that the memory was allocated in.

    Memory that belongs to no context is reached through the primary one of its device.

    C: cuPointerGetAttribute
    """
    if context is None:
        context = getattr(memory, "context", 0) or None
    if context is not None:
        return checks.address(getattr(only(context, "Context"), "handle", context), "context")
    found, ordinal = ctypes.c_void_p(), ctypes.c_int()
    attribute = raw.CU_POINTER_ATTRIBUTE_CONTEXT
    in_context(driver.cuPointerGetAttribute, ctypes.byref(found), attribute, address)
    if found.value:
        return found.value
    attribute = raw.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    in_context(driver.cuPointerGetAttribute, ctypes.byref(ordinal), attribute, address)
    return Device(ordinal.value).primary_context().handle


ORDERS = {"stream": 1, "call": 2, "any": 3}


def memcpy_batch(copies: Iterable[tuple[Any, Any]], stream: object, order: str = "stream") -> None:
    """Copy many pairs of *dst* and *src* in one call, in no order among each other.

    Args:
        copies: pairs as for ``memcpy``; all of each *src* is copied.
        stream: where to order them; not the legacy default stream.
        order: when sources are read: "stream" in the stream's order, "call" before this returns,
            "any" at any time since they were written.

    Raises:
        ValueError: a *src* does not fit into its *dst*, or the stream is the default one.
        NotSupportedByDriver: it is older than 12.8.

    C: cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync
    """
    on = stream_handle(stream)
    if on in (0, 1):
        raise ValueError("memcpy_batch needs a stream of its own, not the legacy default stream")
    attributes = raw.CUmemcpyAttributes(srcAccessOrder=checks.choice(order, ORDERS, "order"))
    ends = [(span(dst, True), span(src, False)) for dst, src in copies]
    sizes = [copy_size(*pair, None) for pair in ends]
    kept = [(pair, size) for pair, size in zip(ends, sizes, strict=True) if size]
    count = len(kept)
    if not count:
        return
    targets = (ctypes.c_uint64 * count)(*(pair[0].address for pair, _ in kept))
    sources = (ctypes.c_uint64 * count)(*(pair[1].address for pair, _ in kept))
    lengths = (ctypes.c_size_t * count)(*(size for _, size in kept))
    first = ctypes.c_size_t(0)
    arguments = (targets, sources, lengths, count, ctypes.byref(attributes), ctypes.byref(first))
    if raw.available("cuMemcpyBatchAsync_v2"):
        in_context(driver.cuMemcpyBatchAsync, *arguments, 1, on)
    else:
        failed = ctypes.byref(ctypes.c_size_t())
        call_first("cuMemcpyBatchAsync", *arguments, 1, failed, on)
