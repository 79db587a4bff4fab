"""Captures: what a stream is given becomes the nodes of a graph."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from cudadrv import checks, cleanup, driver, keeper, raw, reachable
from cudadrv.cleanup import pending
from cudadrv.context import in_context, stream_handle
from cudadrv.errors import CudaError
from cudadrv.graph import Graph
from cudadrv.node import Edge, Node

MODES = {"global": 0, "thread_local": 1, "relaxed": 2}
ACTIVE = 1
# What to do about a capture that failed, by CUresult.
HINTS = {
    900: "this stream or its thread is used for what captures forbid",
    901: "something was done meanwhile that captures forbid; the error that it raised tells",
    903: "end the capture at the stream where it began",
    904: "let the stream wait, before the end, for every stream that took part",
    905: "a captured stream waited for work that was not captured",
    906: "the default stream was used: give everything in a capture a stream of its own",
    908: "end the capture in the thread where it began",
    401: "the stream is captured already, or its capture was ended inside",
}


# The captures of ours that run, by the handles of their graphs.
active: dict[int, Graph] = {}


class CaptureInfo(NamedTuple):
    """The capture that a stream takes part in.

    Attributes:
        status: "active", or "invalidated" by an error: it can only be ended.
        id: a number that no other capture of this process has or had.
        graph: what is filled; it must not be launched, closed or lose nodes yet. None if
            invalidated.
        after: the dependencies that the next node of the stream will have.
    """

    status: str
    id: int
    graph: Graph | None
    after: list[Edge]


@contextlib.contextmanager
def captured(
    stream: int, mode: str, graph: Graph | None, after: Iterable[Node | Edge] | Node
) -> Iterator[Graph]:
    """See ``Stream.capture``."""
    number = checks.choice(mode, MODES, "mode")
    if stream in (0, 1):
        raise ValueError("the legacy default stream cannot be captured: make a cudadrv.Stream()")
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph={graph!r}: it is a Graph")
    target = Graph() if graph is None else graph
    order = target.ordering(after)
    thread = None if number == MODES["global"] else threading.get_ident()
    with pending.hold(thread):
        begin(stream, target, order, number)
        active[target.handle] = target
        ended = False
        try:
            yield target
            ended = True
            end(stream, target)
        except BaseException:
            if not ended:
                raw.cuStreamEndCapture(stream, ctypes.byref(ctypes.c_void_p()))
            if graph is None or not exists(target):
                target.discard()
            raise
        finally:
            for handle in [key for key, value in active.items() if value is target]:
                active.pop(handle, None)


def exists(graph: Graph) -> bool:
    """Whether the driver has not destroyed a graph with the capture that filled it."""
    count = ctypes.byref(ctypes.c_size_t())
    return not graph.closed and not raw.cuGraphGetNodes(graph.handle, None, count)


def begin(stream: int, graph: Graph, order: tuple[Any, Any, int], mode: int) -> None:
    """Begin to capture.

    C: cuStreamBeginCaptureToGraph, or on drivers before 12.3 cuStreamBeginCapture_v2
    """
    name = "cuStreamBeginCaptureToGraph"
    arguments: tuple[Any, ...] = (stream, graph.handle, *order, mode)
    if not raw.available(name):
        if order[2] or graph.nodes:
            raw.address(name)
        name, arguments = "cuStreamBeginCapture", (stream, mode)
    try:
        in_context(getattr(driver, name), *arguments)
    except CudaError as error:
        if error.code not in HINTS:
            raise
        raise driver.error(error.code, name, HINTS[error.code]) from None


def end(stream: int, graph: Graph) -> None:
    """End the capture; the graph keeps what its kernels need.

    C: cuStreamEndCapture
    """
    made = ctypes.c_void_p()
    code = raw.cuStreamEndCapture(stream, ctypes.byref(made))
    driver.check(code, "cuStreamEndCapture", HINTS.get(code, ""))
    if made.value and made.value != graph.handle:
        graph.become(made.value)
    keep_used(graph)


def keep_used(graph: Graph) -> None:
    """Let a graph keep what its kernels are from and what they are given, as far as it is ours."""
    kernels = []
    for node in graph.nodes:
        if node.kind == "KERNEL":
            # Kernels of other libraries may not tell.
            with contextlib.suppress(CudaError):
                kernels.append(node.params)
    functions = {params.kern or params.func for params in kernels}
    if not functions:
        return
    libraries = {keeper.libraries.get(each) for each in functions}
    if None in libraries:
        known = {function_of(kernel): kernel for kernel in list(keeper.libraries)}
        libraries |= {keeper.libraries.get(known.get(each, 0)) for each in functions}
    code = [each for each in libraries if each is not None]
    graph.keep(*code, *reachable.memory_of(kernels))


def function_of(kernel: int) -> int:
    """The CUfunction of a CUkernel in the current context; 0 if it is none.

    C: cuKernelGetFunction
    """
    function = ctypes.c_void_p()
    code = raw.cuKernelGetFunction(ctypes.byref(function), kernel)
    return 0 if code else function.value or 0


def capture_info(stream: int) -> CaptureInfo | None:
    """See ``Stream.capture_info``."""
    status, number, graph, nodes, edges, count = ask(stream)
    if not status:
        return None
    if status != ACTIVE:
        return CaptureInfo("invalidated", number, None, [])
    target = Graph.view(graph)
    handles = (ctypes.c_void_p * count).from_address(nodes) if count else ()
    data = (raw.CUgraphEdgeData * count).from_address(edges) if count and edges else ()
    after = [Edge(target.node(each or 0)) for each in handles]
    marked = [
        edge._replace(from_port=each.from_port, to_port=each.to_port, programmatic=bool(each.type))
        for edge, each in zip(after, data, strict=False)
    ]
    return CaptureInfo("active", number, target, marked or after)


def ask(stream: int) -> tuple[int, int, int, int, int, int]:
    """Status, number, graph, addresses of nodes and edges, and their count."""
    if raw.available("cuStreamGetCaptureInfo_v3"):
        found = in_context(driver.cuStreamGetCaptureInfo_v3, stream)
        return tuple(each or 0 for each in found)  # type: ignore[return-value]
    status, number, graph, nodes, count = in_context(driver.cuStreamGetCaptureInfo_v2, stream)
    return status, number, graph, nodes, 0, count


def capturing_graph(stream: int) -> int:
    """The handle of the graph that a stream's work is captured into; 0 if it is not captured.

    C: cuStreamIsCapturing
    """
    status = ctypes.c_int()
    if raw.cuStreamIsCapturing(stream, ctypes.byref(status)) or status.value != ACTIVE:
        return 0
    return ask(stream)[2]


def note(stream: object, *used: object) -> None:
    """If a stream is being captured by us, let the graph keep alive what its work uses."""
    if active and stream is not None:
        graph = active.get(capturing_graph(stream_handle(stream)))
        if graph is not None:
            graph.keep(*used)


@contextlib.contextmanager
def capture_mode(mode: str) -> Iterator[None]:
    """Set what captures forbid this thread, inside ``with``.

    Args:
        mode: "global": what could disturb a capture of this thread, or a global one of another;
            "thread_local": of this thread only; "relaxed": nothing.

    C: cuThreadExchangeStreamCaptureMode
    """
    before = cleanup.exchange_capture_mode(checks.choice(mode, MODES, "mode"))
    try:
        yield
    finally:
        if before is not None:
            cleanup.exchange_capture_mode(before)
