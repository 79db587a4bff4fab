"""What captured work keeps alive, and how a process with captures and graphs ends."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import driver
from tests.device.driver_code import library

pytestmark = pytest.mark.usefixtures("context")
N = 8


def run(graph, stream):
    """Launch a graph and wait for it."""
    graph.instantiate().launch(stream)
    stream.synchronize()


def test_memory_of_captured_launches_is_kept():
    """Arrays that only the graph's kernels use live as long as it."""
    kernel, stream = library()["scale"], cu.Stream(nonblocking=True)
    x, out = cu.to_device(np.arange(N, dtype=np.float32)), cu.to_device(np.zeros(N, np.float32))
    alive = weakref.ref(x)
    with stream.capture() as graph:
        kernel.launch(1, 32, out, 2.0, x, N, stream=stream)
        del x
    gc.collect()
    assert alive() is not None
    run(graph, stream)
    assert out.copy_to_host().tolist() == [2.0 * i for i in range(N)]


def test_memory_of_captured_copies_is_kept():
    """Also that of the host, such as a temporary array."""
    stream, out = cu.Stream(nonblocking=True), cu.to_device(np.zeros((3, N), np.float32))
    middle = cu.to_device(np.zeros(N, np.float32))
    alive = weakref.ref(middle)
    with stream.capture() as graph:
        cu.memcpy(middle, np.full(N, 5, np.float32), stream=stream)
        cu.memcpy(out, middle, stream=stream)
        out[1].copy_to_device(np.full(N, 6, np.float32), stream=stream)
        cu.memcpy_2d(out[2], np.full((1, N), 7, np.float32), 4 * N, 1, stream=stream)
        cu.memset(middle, 0, stream=stream)
        del middle
    gc.collect()
    np.full(N, 9, np.float32)
    assert alive() is not None
    run(graph, stream)
    assert out.copy_to_host().tolist() == [[5.0] * N, [6.0] * N, [7.0] * N]


def test_memory_of_a_failed_capture_is_let_go():
    """With the graph, which is closed."""
    stream, memory = cu.Stream(nonblocking=True), [cu.mem_alloc(64)]
    alive = weakref.ref(memory[0])

    def work():
        cu.memset(memory.pop(), 0, stream=stream)
        return {}["missing"]

    with pytest.raises(KeyError), stream.capture():
        work()
    for _ in range(200):
        cu.keeper.sweep()
        gc.collect()
        if alive() is None:
            break
    assert alive() is None


def test_nothing_is_kept_outside_of_captures():
    """Work in other streams keeps nothing, and neither does the driver."""
    stream, other = cu.Stream(nonblocking=True), cu.Stream(nonblocking=True)
    memory = cu.mem_alloc(64)
    alive = weakref.ref(memory)
    with stream.capture("relaxed"):
        cu.memset(memory, 0, stream=other)
        other.synchronize()
        del memory
        gc.collect()
        assert alive() is None


def test_releases_do_not_break_captures_of_others():
    """One that another library began is not known, but what is released in it is relaxed."""
    stream, memory, other = cu.Stream(nonblocking=True), cu.mem_alloc(64), cu.Stream()
    driver.cuStreamBeginCapture(stream.handle, 0)
    memory.close()
    other.close()
    graph = cu.Graph.owning(driver.cuStreamEndCapture(stream.handle))
    assert graph.nodes == []
    assert len(cu.pending) == 0


def test_operations_are_captured_together():
    """Several numbers in memory, written and waited for as one node."""
    stream = cu.Stream(nonblocking=True)
    memory = cu.to_device(np.zeros(2, np.uint32))
    operations = cu.MemoryOperations().write(memory, 5).wait(memory, 5)
    operations.write(memory.handle + 4, 6)
    stream.operate(operations)
    stream.synchronize()
    assert memory.copy_to_host().tolist() == [5, 6]
    memory.fill(0)
    with stream.capture() as graph:
        stream.operate(operations)
    assert [node.kind for node in graph.nodes] == ["BATCH_MEM_OP"]
    run(graph, stream)
    assert memory.copy_to_host().tolist() == [5, 6]
    for wrong in (None, 5, graph):
        with pytest.raises(TypeError, match="no MemoryOperations"):
            stream.operate(wrong)
    with pytest.raises(ValueError, match="no operations"):
        stream.operate(cu.MemoryOperations())


def test_the_default_stream_during_a_capture():
    """It would wait for a stream that is captured, unless that one is nonblocking."""
    memory = cu.mem_alloc(64)

    def body(stream):
        with stream.capture("relaxed"):
            cu.memset(memory, 0, stream=0)

    body(cu.Stream(nonblocking=True))
    with pytest.raises(cu.CudaError, match=r"CAPTURE_IMPLICIT.*use another one"):
        body(cu.Stream())


def test_events_of_captures_cannot_be_waited_for():
    """Not on the host, also after the capture; recorded anew they can."""
    stream, event = cu.Stream(nonblocking=True), cu.Event()
    with stream.capture():
        event.record(stream)
    # What driver 580 says; the emulator says what is wrong.
    said = r"CAPTURED_EVENT.*recorded in a capture" if cu.is_emulator() else "INVALID_VALUE"
    with pytest.raises(cu.CudaError, match=said):
        event.synchronize()
    event.record(stream)
    event.synchronize()
    assert event.done


CODE = """
import threading, weakref, cudadrv as cu
graph = cu.Graph()
call = graph.add(cu.HostNode(lambda: print("ran", flush=True)))
graph.keep(object(), cu.mem_alloc(64))
made = graph.instantiate()
made.launch()
cu.current_context().synchronize()
stream = cu.Stream(nonblocking=True)
"""


@pytest.mark.parametrize(
    "end",
    ["", "capture = stream.capture(); capture.__enter__()", "del graph, call", "graph.close()"],
    ids=["open", "in a capture", "graph gone", "graph closed"],
)
def test_a_process_with_graphs_ends(run_python, end):
    """Silently, whatever is still open."""
    assert run_python(CODE + end) == "ran\n"


def test_a_forked_child_leaves_graphs_alone(run_python):
    """It can end while it holds them; using one says why it cannot."""
    code = """
import os
child = os.fork()
if not child:
    try:
        made.launch()
    except cu.ForkError:
        del graph, made
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(graph.nodes))
"""
    assert run_python(CODE + code) == "ran\n7 1\n"
