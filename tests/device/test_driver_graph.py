"""Graphs as wholes: nodes and edges, copies, lifetime, pictures."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import keeper

pytestmark = pytest.mark.usefixtures("context")


def diamond():
    """A graph of four nodes: one, two after it, one after these."""
    graph = cu.Graph()
    top = graph.add(cu.EmptyNode())
    left, right = (graph.add(cu.EmptyNode(), after=top) for _ in range(2))
    bottom = graph.add(cu.EmptyNode(), after=[left, right])
    return graph, top, left, right, bottom


def test_nodes_and_edges_can_be_listed():
    """Each node is one object, however it is come by."""
    graph, top, left, right, bottom = diamond()
    assert set(graph.nodes) == {top, left, right, bottom}
    assert graph.roots == [top]
    pairs = {(edge.before, edge.after) for edge in graph.edges}
    assert pairs == {(top, left), (top, right), (left, bottom), (right, bottom)}
    assert set(bottom.dependencies) == {left, right}
    assert set(top.dependents) == {left, right}
    assert (top.dependencies, bottom.dependents) == ([], [])
    assert top.kind == "EMPTY"


def test_an_empty_graph():
    """It has nothing, and runs."""
    graph = cu.Graph()
    assert (graph.nodes, graph.roots, graph.edges) == ([], [], [])
    graph.instantiate().launch()
    cu.current_context().synchronize()


def test_edges_come_and_go():
    """They can be added and removed, as Edge or as pair, also none."""
    graph, top, left, right, bottom = diamond()
    graph.add_edges((left, right), cu.Edge(top, bottom))
    assert len(graph.edges) == 6
    graph.remove_edges(cu.Edge(left, right), (top, bottom))
    assert len(graph.edges) == 4
    graph.add_edges()
    graph.remove_edges()


def test_edges_that_are_refused():
    """Twice, of a node to itself, that are not there, of other graphs and types."""
    graph, top, left, right, _ = diamond()
    other = diamond()[1]
    with pytest.raises(cu.CudaError):
        graph.add_edges((top, left))
    with pytest.raises(cu.CudaError):
        graph.remove_edges((left, right))
    with pytest.raises(ValueError, match="after itself"):
        graph.add_edges((top, top))
    for wrong in ((top, other), (other, top), cu.Edge(other, top)):
        with pytest.raises(ValueError, match="of another graph"):
            graph.add_edges(wrong)
    for wrong in (top, (top,), (top, left, right), [top, left]):
        with pytest.raises(TypeError, match="is no edge"):
            graph.add_edges(wrong)
    for wrong in (("top", left), (5, left), (top, None), cu.Edge(top)):
        with pytest.raises(TypeError, match="is no node"):
            graph.add_edges(wrong)
    assert len(graph.edges) == 4


def test_circles_cannot_be_launched():
    """The error says that the nodes depend on each other."""
    graph, top, _, _, bottom = diamond()

    def close_circle():
        graph.add_edges((bottom, top))
        graph.instantiate()

    with pytest.raises(cu.CudaError, match="INVALID_VALUE"):
        close_circle()


def test_nodes_can_be_destroyed():
    """The edges go as well; the object says that it was destroyed, also when asked twice."""
    graph, top, left, right, bottom = diamond()
    left.destroy()
    assert set(graph.nodes) == {top, right, bottom}
    assert len(graph.edges) == 2
    assert "destroyed" in repr(left)
    for use in (left.destroy, lambda: left.kind, lambda: graph.add(cu.EmptyNode(), after=left)):
        with pytest.raises(cu.ClosedError, match="destroyed"):
            use()


@pytest.mark.parametrize(
    ("after", "error"),
    [
        (None, TypeError),
        (5, TypeError),
        ("node", TypeError),
        ([None], TypeError),
        ([5], TypeError),
        ([object()], TypeError),
        (cu.EmptyNode(), TypeError),
    ],
)
def test_what_no_node_comes_after(after, error):
    """It is refused, and no node is added."""
    graph = cu.Graph()
    with pytest.raises(error):
        graph.add(cu.EmptyNode(), after=after)
    assert graph.nodes == []


def test_nodes_that_no_node_comes_after():
    """Of other graphs, or twice the same."""
    graph, top, left, *_ = diamond()
    with pytest.raises(ValueError, match="of another graph"):
        cu.Graph().add(cu.EmptyNode(), after=top)
    with pytest.raises(ValueError, match="twice"):
        graph.add(cu.EmptyNode(), after=[top, left, top])
    with pytest.raises(ValueError, match="twice"):
        graph.add(cu.EmptyNode(), after=[top, cu.Edge(top)])


@pytest.mark.parametrize("params", [None, 5, "kernel", print, cu.EmptyNode])
def test_what_is_no_node(params):
    """The error says what to pass."""
    with pytest.raises(TypeError, match="KernelNode"):
        cu.Graph().add(params)


# -- copies


def test_a_clone_is_like_the_graph():
    """Its nodes are others, and can be found by those of the original."""
    graph, top, *_, bottom = diamond()
    clone = graph.clone()
    assert len(clone.nodes) == len(clone.edges) == 4
    found = clone.find(bottom)
    assert found in clone.nodes
    assert found.handle not in {node.handle for node in graph.nodes}
    bottom.destroy()
    assert len(clone.nodes) == 4
    assert clone.find(top) == clone.roots[0]


def test_only_copies_are_found():
    """A node of another graph has none; other things are no nodes."""
    graph, *_ = diamond()
    clone = graph.clone()
    with pytest.raises(cu.CudaError):
        clone.find(diamond()[1])
    with pytest.raises(TypeError, match="is no node"):
        clone.find(5)


# -- lifetime


USES = {
    "add": lambda g: g.add(cu.EmptyNode()),
    "nodes": lambda g: g.nodes,
    "roots": lambda g: g.roots,
    "edges": lambda g: g.edges,
    "clone": lambda g: g.clone(),
    "instantiate": lambda g: g.instantiate(),
    "to_dot": lambda g: g.to_dot(),
    "keep": lambda g: g.keep(1),
    "conditional_handle": lambda g: g.conditional_handle(),
    "child": lambda g: cu.Graph().add(cu.ChildNode(g)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_closed_graph_does_nothing(use):
    """Every method says that it was closed, and so do the nodes."""
    graph, top, *_ = diamond()
    graph.close()
    graph.close()
    with pytest.raises(cu.ClosedError, match="graph was closed"):
        use(graph)
    with pytest.raises(cu.ClosedError, match="graph was closed"):
        assert top.kind


def test_a_graph_goes_with_its_last_reference():
    """Nothing refers to it in a circle; a node keeps it."""
    graph, top, *_ = diamond()
    alive = weakref.ref(graph)
    gc.disable()
    try:
        del graph, _
        assert alive() is not None
        assert len(top.dependents) == 2
        del top
        assert alive() is None
    finally:
        gc.enable()


class Thing:
    """Something to be kept alive."""


def let_go(alive):
    """Whether it goes soon: the driver may let go in a thread of its own."""
    for _ in range(200):
        gc.collect()
        keeper.sweep()
        if alive() is None:
            return True
        threading.Event().wait(0.01)
    return False


@pytest.mark.parametrize("end", ["close", "del"])
def test_what_a_graph_keeps(end):
    """It lives as long as the graph, its copies and what was made of them."""
    graph, thing = cu.Graph(), Thing()
    alive = weakref.ref(thing)
    graph.keep(thing, 5)
    del thing
    clone = graph.clone()
    made = clone.instantiate()
    for each in (graph, clone):
        gc.collect()
        keeper.sweep()
        assert alive() is not None
        each.close()
    del graph, clone, each
    keeper.sweep()
    assert alive() is not None
    made.launch()
    cu.current_context().synchronize()
    if end == "close":
        made.close()
    del made
    assert let_go(alive)


def test_graphs_keep_nothing_for_ever():
    """A thousand graphs with something to keep leave nothing behind."""
    before = keeper.count()
    for _ in range(1000):
        graph = cu.Graph()
        graph.keep(Thing())
        graph.close()
    for _ in range(200):
        if keeper.count() <= before:
            break
        threading.Event().wait(0.01)
    assert keeper.count() <= before


def test_adopted_graphs_are_left_alone():
    """An adopted graph is not destroyed; the object it came from lives as long."""
    graph, top, *_ = diamond()
    adopted = cu.Graph.adopt(graph.handle)
    assert not adopted.owned
    assert [node.handle for node in adopted.roots] == [top.handle]
    adopted.close()
    assert len(graph.nodes) == 4
    assert cu.Graph.adopt(graph) is graph


@pytest.mark.parametrize(
    ("thing", "error"),
    [(None, TypeError), ("g", TypeError), (True, TypeError), (0, ValueError), (-1, ValueError)],
)
def test_what_is_no_graph(thing, error):
    """It is refused by type or value."""
    with pytest.raises(error):
        cu.Graph.adopt(thing)


def test_graphs_are_made_in_threads():
    """A new thread needs no preparation."""
    found = []

    def work():
        graph, *_ = diamond()
        graph.instantiate().launch()
        found.append(len(graph.nodes))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4] * 4


# -- pictures and memory


def test_a_graph_has_a_picture(tmp_path):
    """In the language of Graphviz, as text and in a file."""
    graph, *_ = diamond()
    file = tmp_path / "graph.dot"
    text = graph.to_dot(file, verbose=True)
    assert text == file.read_text()
    assert text.startswith("digraph")
    assert text.count("->") == 4
    assert graph.to_dot().count("->") == 4


def test_a_picture_that_cannot_be_written(tmp_path):
    """It is an error of the driver or the file system, not silence."""
    with pytest.raises((cu.CudaError, OSError)):
        cu.Graph().to_dot(tmp_path / "missing" / "graph.dot")


def test_memory_of_graphs_is_counted():
    """It grows with the launch of a graph that allocates, and goes when freed and trimmed."""
    graph = cu.Graph()
    node = graph.add(cu.AllocNode(1 << 20))
    made = graph.instantiate()
    before = cu.GraphMemory.of()
    made.launch()
    cu.current_context().synchronize()
    during = cu.GraphMemory.of(cu.Device(0))
    assert during.used >= before.used + (1 << 20)
    assert during.used_high >= during.used
    assert during.reserved >= during.used
    cu.driver.cuMemFree(node.address)
    cu.GraphMemory.trim()
    cu.GraphMemory.reset()
    after = cu.GraphMemory.of()
    assert after.used == before.used
    assert after.used_high <= during.used_high
    assert np.all(np.array(after) >= 0)
