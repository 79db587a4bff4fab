"""Captures of streams: what becomes of the work, what is forbidden, what always ends."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import driver, raw
from tests.device.driver_code import PTX, library

pytestmark = pytest.mark.usefixtures("context")
N = 8


class Work:
    """A kernel that doubles numbers, on memory of its own."""

    def __init__(self):
        self.kernel = library()["scale"]
        self.x = cu.to_device(np.arange(N, dtype=np.float32))
        self.out = cu.to_device(np.zeros(N, np.float32))

    def launch(self, stream, factor=2.0):
        self.kernel.launch(1, 32, self.out, factor, self.x, N, stream=stream)

    @property
    def result(self):
        return self.out.copy_to_host().tolist()


@pytest.fixture
def work():
    """A kernel and its memory."""
    return Work()


@pytest.fixture
def stream():
    """A stream beside the default one, which must be usable after the test."""
    made = cu.Stream(nonblocking=True)
    yield made
    assert made.capture_info is None
    made.synchronize()


def capture(stream, *steps, into=None):
    """Capture what *steps* do; the graph, also if that fails, goes into a list."""
    with stream.capture() as graph:
        if into is not None:
            into.append(graph)
        for step in steps:
            step()


ZEROS = [0.0] * N
DOUBLES = [2.0 * i for i in range(N)]


def test_captured_work_runs_when_the_graph_does(work, stream):
    """Not before, and at each launch."""
    with stream.capture() as graph:
        work.launch(stream)
    stream.synchronize()
    assert work.result == ZEROS
    made = graph.instantiate()
    for _ in range(2):
        cu.memset(work.out, 0)
        cu.current_context().synchronize()
        made.launch(stream)
        stream.synchronize()
        assert work.result == DOUBLES


def test_copies_and_fills_are_captured(work, stream):
    """Each becomes a node; they run in the order of the stream."""
    host = cu.pinned_array(N, np.float32)
    host[:] = 7
    with stream.capture() as graph:
        cu.memcpy(work.x, host, stream=stream)
        cu.memset(work.out, 0, stream=stream)
        work.launch(stream, 3.0)
        cu.memcpy(host, work.out, stream=stream)
        cu.memcpy(work.x, work.out, stream=stream)
    kinds = sorted(node.kind for node in graph.nodes)
    assert kinds == ["KERNEL", "MEMCPY", "MEMCPY", "MEMCPY", "MEMSET"]
    assert len(graph.edges) == 4
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert host.tolist() == [21.0] * N
    assert work.x.copy_to_host().tolist() == [21.0] * N


def test_other_streams_take_part_by_waiting(work, stream):
    """A fork and a join are edges of the graph."""
    other = cu.Stream(nonblocking=True)
    second = Work()
    with stream.capture() as graph:
        work.launch(stream)
        other.wait(stream)
        assert other.capture_info.graph.handle == graph.handle
        second.launch(other, 3.0)
        cu.memset(work.out, 0, stream=stream)
        stream.wait(other)
        stream.call(lambda: None)
    assert other.capture_info is None
    (root,) = graph.roots
    assert len(root.dependents) == 2
    assert len(graph.edges) == 4
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert work.result == ZEROS
    assert second.result == [3.0 * i for i in range(N)]


def test_streams_that_took_part_must_be_joined(work, stream):
    """The error says what to do, the graph is closed, and the streams can be used."""
    other = cu.Stream(nonblocking=True)
    made = []
    steps = (lambda: work.launch(stream), lambda: other.wait(stream), lambda: work.launch(other))
    with pytest.raises(cu.CudaError, match=r"UNJOINED.*wait, before the end"):
        capture(stream, *steps, into=made)
    assert made[0].closed
    work.launch(other)
    other.synchronize()
    assert work.result == DOUBLES


def test_an_exception_ends_the_capture(work, stream):
    """It is passed on, the graph is closed, and the stream can be captured again."""
    made = []
    with pytest.raises(KeyError):
        capture(stream, lambda: work.launch(stream), lambda: {}["missing"], into=made)
    assert made[0].closed
    with stream.capture() as graph:
        work.launch(stream)
    assert len(graph.nodes) == 1


@pytest.mark.parametrize(
    "forbidden",
    [
        lambda s: s.synchronize(),
        lambda s: s.done,
        lambda s: cu.mem_alloc(64),
    ],
    ids=["synchronize", "done", "mem_alloc"],
)
def test_what_is_forbidden_is_an_error(work, stream, forbidden):
    """The error names it, and the capture has ended."""
    with pytest.raises(cu.CudaError, match="CAPTURE_UNSUPPORTED"):
        capture(stream, lambda: work.launch(stream), lambda: forbidden(stream))


def test_an_error_that_was_caught_fails_the_end(work, stream):
    """The end says that something was done meanwhile."""

    def body():
        with stream.capture():
            work.launch(stream)
            with pytest.raises(cu.CudaError, match="CAPTURE_UNSUPPORTED"):
                stream.synchronize()
            assert stream.capture_info.status == "invalidated"
            assert stream.capture_info.graph is None

    with pytest.raises(cu.CudaError, match=r"INVALIDATED.*captures forbid"):
        body()


def test_waiting_for_work_outside_is_an_error(work, stream):
    """A captured stream cannot wait for what is not captured."""
    other = cu.Stream(nonblocking=True)
    event = other.record()
    with pytest.raises(cu.CudaError, match="ISOLATION"):
        capture(stream, lambda: work.launch(stream), lambda: stream.wait(event))


def test_relaxed_captures_forbid_nothing(work, stream):
    """Memory can be allocated, and a thread can relax what a global capture forbids it."""
    with stream.capture("relaxed") as graph:
        work.launch(stream)
        assert cu.mem_alloc(64).nbytes == 64
    assert len(graph.nodes) == 1
    with stream.capture(), cu.capture_mode("relaxed"):
        assert cu.mem_alloc(64).nbytes == 64


def test_other_threads_are_free_of_thread_local_captures(work, stream):
    """They can allocate and free meanwhile."""
    results = []
    with stream.capture("thread_local") as graph:
        work.launch(stream)
        thread = threading.Thread(target=lambda: results.append(cu.mem_alloc(64).nbytes))
        thread.start()
        thread.join()
        assert len(cu.pending) == 0
    assert results == [64]
    assert len(graph.nodes) == 1


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_releases_wait_for_the_end(work, stream, mode):
    """Closed and collected memory is freed after the capture, which it does not break."""
    kept, dropped = cu.mem_alloc(64), [cu.mem_alloc(64)]
    gc.collect()
    with stream.capture(mode) as graph:
        work.launch(stream)
        kept.close()
        dropped.clear()
        gc.collect()
        assert len(cu.pending) == 2
    assert len(cu.pending) == 0
    assert len(graph.nodes) == 1


def test_a_stream_closed_inside_is_released_after():
    """The capture ends all the same."""
    stream, work = cu.Stream(nonblocking=True), Work()
    with stream.capture() as graph:
        work.launch(stream)
        stream.close()
    assert len(graph.nodes) == 1
    assert len(cu.pending) == 0
    graph.instantiate().launch()
    cu.current_context().synchronize()
    assert work.result == DOUBLES


# -- what graphs keep alive


def test_captured_host_functions_are_kept(stream):
    """They run at each launch, and go with the graph and what was made of it."""

    class Thing:
        def __init__(self):
            self.note = []

        def run(self, note):
            note.append(1)

    thing, note = Thing(), []
    alive = weakref.ref(thing)
    with stream.capture() as graph:
        stream.call(thing.run, note)
    del thing
    made = graph.instantiate()
    graph.close()
    for _ in range(3):
        made.launch(stream)
    stream.synchronize()
    assert note == [1, 1, 1]
    assert alive() is not None
    made.close()
    del made, graph
    wait_until_gone(alive)


def wait_until_gone(alive):
    """The driver may let go in a thread of its own, which takes it a moment."""
    for _ in range(200):
        gc.collect()
        cu.keeper.sweep()
        if alive() is None:
            return
        threading.Event().wait(0.01)
    assert alive() is None


def test_captured_kernels_are_kept(stream):
    """A graph runs code that nothing else keeps loaded."""
    code = cu.load(PTX)
    out = cu.to_device(np.zeros(6, np.uint32))
    with stream.capture() as graph:
        code["extents"].launch(3, 5, out, stream=stream)
    alive = weakref.ref(code)
    del code
    gc.collect()
    assert alive() is not None
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert out.copy_to_host().tolist() == [3, 1, 1, 5, 1, 1]


# -- into graphs, and in the middle


def test_a_capture_adds_to_a_graph(work, stream):
    """After nodes that are there."""
    graph = cu.Graph()
    first = graph.add(cu.MemsetNode(work.out, 0))
    with stream.capture(graph=graph, after=first) as same:
        work.launch(stream)
    assert same is graph
    assert [edge.before for edge in graph.edges] == [first]
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert work.result == DOUBLES


def test_a_failed_capture_leaves_a_given_graph_open(work, stream):
    """It is the caller's."""
    graph = cu.Graph()
    with pytest.raises(KeyError), stream.capture(graph=graph):
        {}["missing"]
    assert not graph.closed
    assert graph.nodes == []


def test_a_capture_can_be_asked(work, stream):
    """What is filled, and what the next node comes after; each capture has its own id."""
    assert stream.capture_info is None
    ids = set()
    for _ in range(2):
        with stream.capture() as graph:
            before = stream.capture_info
            work.launch(stream)
            info = stream.capture_info
            ids.add(info.id)
            assert (info.status, info.graph.handle) == ("active", graph.handle)
            assert before.after == []
            assert [edge.before.handle for edge in info.after] == [graph.nodes[0].handle]
    assert len(ids) == 2


def test_dependencies_can_be_chosen(work, stream):
    """Work can come after nothing, after other nodes or after more nodes."""
    with stream.capture() as graph:
        work.launch(stream)
        first = [edge.before for edge in stream.capture_info.after]
        stream.capture_after([])
        work.launch(stream)
        stream.capture_after(first, replace=False)
        work.launch(stream)
    assert len(graph.roots) == 2
    assert len(graph.edges) == 2
    with pytest.raises(ValueError, match="not being captured"):
        stream.capture_after([])


def test_external_events_become_nodes(work, stream):
    """They are recorded and waited for when the graph runs."""
    begun, done = cu.Event(), cu.Event()
    begun.record(stream)
    with stream.capture() as graph:
        stream.wait(begun, external=True)
        work.launch(stream)
        done.record(stream, external=True)
    assert sorted(node.kind for node in graph.nodes) == ["EVENT_RECORD", "KERNEL", "WAIT_EVENT"]
    graph.instantiate().launch(stream)
    done.synchronize()
    assert work.result == DOUBLES


def test_graphs_are_not_launched_in_captures(work, stream):
    """A launch of a graph is no node: it is added as a child, or what it does is captured."""
    with stream.capture() as inner:
        work.launch(stream)
    made = inner.instantiate()
    with pytest.raises(cu.CudaError, match="STREAM_CAPTURE_UNSUPPORTED"), stream.capture():
        made.launch(stream)
    outer = cu.Graph()
    outer.add(cu.ChildNode(inner))
    outer.instantiate().launch(stream)
    stream.synchronize()
    assert work.result == DOUBLES


def test_numbers_in_memory_are_captured(stream):
    """Writing them and waiting for them are nodes."""
    memory = cu.to_device(np.zeros(2, np.uint64))
    with stream.capture() as graph:
        stream.write_value(memory, 3, 8)
        stream.wait_value(memory, 3, 8, "==")
        stream.write_value(memory.handle + 8, 4)
    assert {node.kind for node in graph.nodes} == {"BATCH_MEM_OP"}
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert memory.copy_to_host().tolist() == [3, 4]


def test_the_stream_of_a_thread_can_be_captured(work):
    """The per-thread default stream is one like others."""
    stream = cu.Stream.per_thread
    with stream.capture("thread_local") as graph:
        work.launch(stream)
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert work.result == DOUBLES


# -- bad input


def test_the_default_stream_cannot_be_captured():
    """The error says what to do."""
    for stream in (cu.Stream.legacy, cu.Stream.adopt(0)):
        with pytest.raises(ValueError, match=r"make a cudadrv\.Stream"), stream.capture():
            pass


def test_a_stream_is_captured_once_at_a_time(work, stream):
    """The error says so; the capture that there is goes on."""
    with stream.capture() as graph:
        with pytest.raises(cu.CudaError, match="captured already"), stream.capture():
            pass
        work.launch(stream)
    assert len(graph.nodes) == 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"mode": "none"}, ValueError),
        ({"mode": 0}, ValueError),
        ({"graph": 5}, TypeError),
        ({"graph": "graph"}, TypeError),
        ({"after": 5}, TypeError),
        ({"after": ["node"]}, TypeError),
    ],
)
def test_what_no_capture_begins_with(stream, given, error):
    """It is refused before the capture begins."""
    with pytest.raises(error), stream.capture(**given):
        pass
    assert not stream.capture_info


def test_a_capture_that_was_ended_inside(work, stream):
    """The end is an error, not a second graph."""
    with pytest.raises(cu.CudaError, match="ended inside"):
        capture(stream, lambda: driver.cuStreamEndCapture(stream.handle))


def test_closed_things_begin_no_capture(stream):
    """Closed streams and graphs say so."""
    closed = cu.Stream()
    closed.close()
    graph = cu.Graph()
    graph.close()
    with pytest.raises(cu.ClosedError), closed.capture():
        pass
    with pytest.raises(cu.ClosedError), stream.capture(graph=graph):
        pass
    with pytest.raises(cu.ClosedError):
        assert closed.capture_info


def test_the_mode_of_the_thread_is_restored():
    """Also after an exception; there are only three modes."""
    with pytest.raises(KeyError), cu.capture_mode("relaxed"):
        {}["missing"]
    assert cu.cleanup.exchange_capture_mode(0) == raw.CU_STREAM_CAPTURE_MODE_GLOBAL
    with pytest.raises(ValueError, match="mode"), cu.capture_mode("free"):
        pass
