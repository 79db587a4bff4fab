"""Captures: streams whose work becomes the nodes of a graph instead of being done."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from .graph import Graph, Node, Params
from .state import Event, Stream, captures, thread
from .status import Status, require

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NONE, ACTIVE, INVALIDATED = 0, 1, 2
DEFAULT_EDGE = bytes(8)
_ids = itertools.count(1)


class Capture:
    """A capture: where it began, the graph it fills, the streams that take part."""

    def __init__(self, stream: Stream, mode: int, graph: Graph) -> None:
        self.id = next(_ids)
        self.origin = stream
        self.mode = mode
        self.graph = graph
        self.thread = threading.get_ident()
        self.status = ACTIVE
        self.streams: list[Stream] = []
        self.nodes: list[Node] = []
        # Nodes that need not be reached from the origin at the end.
        self.detached: set[Node] = set()
        self.join(stream, {})
        captures.append(self)

    def join(self, stream: Stream, tail: dict[Node, bytes]) -> None:
        """Let a stream take part, or wait for more nodes."""
        if stream.capture is None:
            stream.capture, stream.tail = self, {}
            self.streams.append(stream)
        stream.tail.update(tail)

    def add(self, stream: Stream, params: Params) -> Node:
        """The node for what a stream was given."""
        node = Node(self.graph, params, stream.tail)
        self.nodes.append(node)
        stream.tail = {node: DEFAULT_EDGE}
        return node

    def fail(self, name: str) -> Status:
        """Make the capture useless; the error to raise."""
        self.status = INVALIDATED
        return Status(name)

    def end(self) -> None:
        """Let all streams go."""
        for stream in self.streams:
            stream.capture, stream.tail = None, {}
        captures.remove(self)

    def joined(self) -> bool:
        """Whether the end of the origin stream comes after all nodes."""
        reached: set[Node] = set()
        waiting = list(self.origin.tail)
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting += node.after
        return all(node in reached or node in self.detached for node in self.nodes)


def begin(stream: Stream, mode: int, graph: Graph | None, tail: dict[Node, bytes]) -> None:
    """Begin to capture a stream; its first node will depend on *tail*."""
    require(mode in (GLOBAL, THREAD_LOCAL, RELAXED))
    legacy = stream is stream.context.default_stream
    require(not legacy, "STREAM_CAPTURE_UNSUPPORTED")
    require(stream.capture is None, "ILLEGAL_STATE")
    made = Capture(stream, mode, graph or Graph())
    made.join(stream, tail)


def end(stream: Stream) -> Graph:
    """End the capture that began at a stream."""
    capture = stream.capture
    require(capture is not None, "ILLEGAL_STATE")
    require(capture.origin is stream, "STREAM_CAPTURE_UNMATCHED")
    mine = capture.thread == threading.get_ident() or capture.mode == RELAXED
    require(mine, "STREAM_CAPTURE_WRONG_THREAD")
    unjoined = not capture.joined()
    capture.end()
    problem = "STREAM_CAPTURE_UNJOINED" if unjoined else ""
    if capture.status == INVALIDATED:
        problem = "STREAM_CAPTURE_INVALIDATED"
    if problem:
        raise Status(problem)
    graph: Graph = capture.graph
    return graph


def healthy(stream: Stream) -> Capture | None:
    """The capture of a stream, if it is captured.

    Raises:
        Status: an error has made the capture useless.
    """
    capture: Capture | None = stream.capture
    require(capture is None or capture.status == ACTIVE, "STREAM_CAPTURE_INVALIDATED")
    return capture


def record(event: Event, stream: Stream, capture: Capture) -> None:
    """Let an event stand for what was captured of a stream."""
    event.captured = (capture, dict(stream.tail))


def wait(stream: Stream, event: Event) -> None:
    """Let a stream wait for an event, with at least one of them in a capture."""
    capture = healthy(stream)
    if event.captured is None:
        if capture is not None and event.recorded is not None:
            raise capture.fail("STREAM_CAPTURE_ISOLATION")
        return
    theirs, tail = event.captured
    require(theirs in captures and theirs.status == ACTIVE, "CAPTURED_EVENT")
    legacy = stream is stream.context.default_stream
    if legacy:
        raise theirs.fail("STREAM_CAPTURE_IMPLICIT")
    if capture is not None and capture is not theirs:
        capture.status = INVALIDATED
        raise theirs.fail("STREAM_CAPTURE_MERGE")
    theirs.join(stream, tail)


def forbidding() -> list[Capture]:
    """The captures that forbid the calling thread what could disturb them."""
    mode, me = thread.capture_mode, threading.get_ident()

    def forbids(capture: Any) -> bool:
        if RELAXED in (mode, capture.mode):
            return False
        return bool(capture.thread == me or mode == capture.mode == GLOBAL)

    return [each for each in captures if forbids(each)]
