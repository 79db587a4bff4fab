"""Graphs that can be launched: launches, updates, changes of single nodes."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import library

pytestmark = pytest.mark.usefixtures("context")
N = 4


class Work:
    """A graph that fills memory, scales it and copies it to the host."""

    def __init__(self, factor=2.0, value=1):
        self.x = cu.to_device(np.zeros(N, np.uint32))
        self.out = cu.to_device(np.zeros(N, np.float32))
        self.host = np.zeros(N, np.float32)
        self.graph = cu.Graph()
        self.fill = self.graph.add(self.filling(value))
        self.kernel = self.graph.add(self.scaling(factor), after=self.fill)
        self.copy = self.graph.add(cu.MemcpyNode(self.host, self.out), after=self.kernel)

    def filling(self, value):
        bits = int(np.float32(value).view(np.uint32))
        return cu.MemsetNode(self.x, bits, width=4)

    def scaling(self, factor):
        return cu.KernelNode(library()["scale"], 1, 32, self.out, factor, self.x, N)

    def run(self, made):
        made.launch()
        cu.current_context().synchronize()
        return self.host.tolist()


def test_a_launch_runs_everything():
    """In a stream, again and again."""
    work, stream = Work(), cu.Stream()
    made = work.graph.instantiate()
    for _ in range(3):
        work.host[:] = 0
        made.launch(stream)
        stream.synchronize()
        assert work.host.tolist() == [2.0] * N


def test_uploads():
    """A graph can be brought to the device before it is launched, at once or later."""
    work, stream = Work(), cu.Stream()
    made = work.graph.instantiate(upload=stream)
    assert made.flags == 0
    made.upload(stream)
    made.launch(stream)
    stream.synchronize()
    assert work.host.tolist() == [2.0] * N
    work.graph.instantiate(node_priority=True).launch(stream)
    stream.synchronize()


def test_a_graph_that_kernels_launch():
    """It may have nodes of the device only; the emulator has none such."""
    graph = cu.Graph()
    graph.add(cu.KernelNode(library()["nothing"], 1, 1))
    if cu.is_emulator():
        with pytest.raises(cu.NotSupported):
            graph.instantiate(device_launch=True)
    else:
        assert graph.instantiate(device_launch=True).flags == 4
    with pytest.raises(ValueError, match="auto_free"):
        graph.instantiate(auto_free=True, device_launch=True)
    graph.add(cu.HostNode(print))
    with pytest.raises(cu.CudaError):
        graph.instantiate(device_launch=True)


def test_it_is_what_the_graph_was():
    """What happens to the graph later changes nothing."""
    work = Work()
    made = work.graph.instantiate()
    work.kernel.set(work.scaling(5.0))
    work.copy.destroy()
    assert work.run(made) == [2.0] * N


def test_nodes_of_the_graph_can_be_changed():
    """What is made of it afterwards runs the new parameters."""
    work = Work()
    work.kernel.set(work.scaling(5.0))
    work.fill.set(work.filling(3))
    assert work.run(work.graph.instantiate()) == [15.0] * N


def test_nodes_of_what_was_made_can_be_changed():
    """From the next launch on, and the graph stays as it is."""
    work = Work()
    made = work.graph.instantiate()
    assert work.run(made) == [2.0] * N
    made.set(work.kernel, work.scaling(5.0))
    made.set(work.fill, work.filling(3))
    assert work.run(made) == [15.0] * N
    other = np.zeros(N, np.float32)
    made.set(work.copy, cu.MemcpyNode(other, work.out))
    work.host[:] = 0
    assert work.run(made) == [0.0] * N
    assert other.tolist() == [15.0] * N
    assert work.run(work.graph.instantiate()) == [2.0] * N


def test_host_functions_and_events_can_be_changed():
    """And children, for graphs of the same shape."""
    seen, events = [], [cu.Event(), cu.Event()]
    inner, other = cu.Graph(), cu.Graph()
    inner.add(cu.HostNode(seen.append, "inner"))
    other.add(cu.HostNode(seen.append, "other"))
    graph = cu.Graph()
    call = graph.add(cu.HostNode(seen.append, 1))
    record = graph.add(cu.RecordNode(events[0]), after=call)
    wait = graph.add(cu.WaitNode(events[0]), after=record)
    child = graph.add(cu.ChildNode(inner), after=wait)
    made = graph.instantiate()
    made.set(call, cu.HostNode(seen.append, 2))
    made.set(record, cu.RecordNode(events[1]))
    made.set(wait, cu.WaitNode(events[1]))
    made.set(child, cu.ChildNode(other))
    made.launch()
    cu.current_context().synchronize()
    assert seen == [2, "other"]
    assert events[1].done


def test_nodes_can_be_left_out():
    """Kernels, copies and fills; they can be put in again."""
    work = Work()
    made = work.graph.instantiate()
    work.host[:] = -1
    made.enable(work.copy, False)
    assert not made.is_enabled(work.copy)
    assert work.run(made) == [-1.0] * N
    made.enable(work.copy)
    assert made.is_enabled(work.copy)
    assert work.run(made) == [2.0] * N


def test_other_nodes_cannot_be_left_out():
    """Such as host functions."""
    graph = cu.Graph()
    node = graph.add(cu.HostNode(print))
    made = graph.instantiate()
    with pytest.raises(cu.CudaError):
        made.enable(node, False)


# -- updates


def test_an_update_takes_over_everything():
    """Parameters of all nodes, of a graph of the same shape, which may go."""
    work, other = Work(), Work(factor=7.0, value=2)
    made = work.graph.instantiate()
    made.update(other.graph)
    other.graph.close()
    work.host[:] = -1
    assert work.run(made) == [-1.0] * N
    assert other.host.tolist() == [14.0] * N


def test_updates_by_capture():
    """A stream's work, captured anew, with other arguments."""
    work, stream = Work(), cu.Stream(nonblocking=True)
    kernel, made = library()["scale"], None
    cu.memset(work.x, int(np.float32(1).view(np.uint32)), width=4)
    for factor in (2.0, 3.0, 4.0):
        with stream.capture() as graph:
            kernel.launch(1, 32, work.out, factor, work.x, N, stream=stream)
        if made is None:
            made = graph.instantiate()
        else:
            made.update(graph)
        made.launch(stream)
        stream.synchronize()
        assert work.out.copy_to_host().tolist() == [factor] * N


def test_an_update_that_changes_the_shape():
    """The error gives the reason, and what was made is as before."""
    work, other = Work(), Work(factor=7.0)
    made = work.graph.instantiate()
    other.graph.add(cu.EmptyNode(), after=other.copy)
    with pytest.raises(cu.GraphUpdateError, match="instantiate the graph anew") as caught:
        made.update(other.graph)
    assert caught.value.reason == "ERROR_TOPOLOGY_CHANGED"
    assert caught.value.name == "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"
    assert work.run(made) == [2.0] * N


def test_an_update_that_changes_a_kind():
    """The error names the node of the other graph."""
    one, two = cu.Graph(), cu.Graph()
    memory = cu.mem_alloc(64)
    one.add(cu.MemsetNode(memory, 0))
    node = two.add(cu.KernelNode(library()["nothing"], 1, 1))
    made = one.instantiate()
    with pytest.raises(cu.GraphUpdateError, match=r"TYPE_CHANGED.*KERNEL") as caught:
        made.update(two)
    assert caught.value.node == node
    assert caught.value.before is None


@pytest.mark.parametrize("graph", [None, 5, "graph", cu.EmptyNode()])
def test_what_nothing_is_updated_to(graph):
    """It is refused by type."""
    with pytest.raises(TypeError, match="takes a Graph"):
        cu.Graph().instantiate().update(graph)


# -- bad input


def test_parameters_of_another_kind():
    """Neither a graph's node nor one of what was made of it changes its kind."""
    work = Work()
    made = work.graph.instantiate()
    for change in (work.kernel.set, lambda params: made.set(work.kernel, params)):
        with pytest.raises(ValueError, match="KERNEL cannot become one of kind MEMSET"):
            change(work.filling(1))
        for wrong in (None, 5, "params", work.kernel):
            with pytest.raises(TypeError, match="KernelNode"):
                change(wrong)
    assert work.run(made) == [2.0] * N


def test_nodes_of_other_graphs():
    """Only those of the graph that it was made from are known."""
    work, other = Work(), Work()
    made = work.graph.instantiate()
    with pytest.raises(cu.CudaError):
        made.set(other.kernel, work.scaling(1.0))
    with pytest.raises(cu.CudaError):
        made.enable(other.kernel, False)
    for wrong in (None, 5, "node"):
        with pytest.raises(TypeError, match="is no node"):
            made.enable(wrong)
    assert work.run(made) == [2.0] * N


def test_attributes_cannot_be_changed_any_more():
    """The parameters of a launch can."""
    graph, kernel = cu.Graph(), library()["nothing"]
    node = graph.add(cu.KernelNode(kernel, 1, 1))
    made = graph.instantiate()
    made.set(node, cu.KernelNode(kernel, 2, 1))
    with pytest.raises(ValueError, match="attributes"):
        made.set(node, cu.KernelNode(kernel, 1, 1, priority=-1))


USES = {
    "launch": lambda m, n: m.launch(),
    "upload": lambda m, n: m.upload(),
    "update": lambda m, n: m.update(n.graph),
    "flags": lambda m, n: m.flags,
    "enable": lambda m, n: m.enable(n),
    "is_enabled": lambda m, n: m.is_enabled(n),
    "set": lambda m, n: m.set(n, cu.MemsetNode(4096, 0, 4)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_was_closed_does_nothing(use):
    """Every method says that it was closed."""
    work = Work()
    made = work.graph.instantiate()
    made.close()
    made.close()
    with pytest.raises(cu.ClosedError, match="GraphExec was closed"):
        use(made, work.fill)


@pytest.mark.parametrize("stream", ["stream", 1.5, -1])
def test_what_is_no_stream(stream):
    """It is refused by type or value."""
    made = cu.Graph().instantiate()
    for use in (made.launch, made.upload):
        with pytest.raises((TypeError, ValueError)):
            use(stream)


def test_a_closed_stream():
    """A launch into it is refused."""
    stream = cu.Stream()
    stream.close()
    with pytest.raises(cu.ClosedError):
        cu.Graph().instantiate().launch(stream)


def test_changes_keep_what_they_use():
    """And no longer than until the next change of the same node."""
    work = Work()
    made = work.graph.instantiate()
    second = cu.to_device(np.ones(N, np.float32))
    alive = weakref.ref(second)
    made.set(work.copy, cu.MemcpyNode(work.host, second))
    del second
    gc.collect()
    assert alive() is not None
    assert work.run(made) == [1.0] * N
    made.set(work.copy, cu.MemcpyNode(work.host, work.out))
    gc.collect()
    assert alive() is None
    assert work.run(made) == [2.0] * N
