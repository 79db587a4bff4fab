"""cuGraph..., cuUserObject...: graphs as wholes, and what holds them together."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cudadrv.raw import types

from ..boundary import exported
from ..graph import NAMES, UPDATE, Condition, Exec, Graph, Node, UserObject
from ..nodes import graph_memory
from ..state import Context, Stream, captures, current, find
from ..status import Status, require

EDGE = 8  # bytes of CUgraphEdgeData


def array(kind: Any, address: int, count: int) -> Any:
    """A C array."""
    require(address or not count)
    return (kind * count).from_address(address) if count else ()


def handles(nodes: int, data: int, count: int, graph: Graph) -> dict[Node, bytes]:
    """Nodes of a graph, each once, with the data of edges from them."""
    found = [find(Node, handle) for handle in array(ctypes.c_void_p, nodes, count)]
    require(all(node.graph is graph for node in found) and len(set(found)) == count)
    given = ctypes.string_at(data, EDGE * count) if data and count else bytes(EDGE * count)
    return {node: given[EDGE * i : EDGE * (i + 1)] for i, node in enumerate(found)}


def give(columns: Sequence[tuple[int, Any, Sequence[Any]]], count: int) -> None:
    """Fill the C arrays that exist, up to the number at *count*, and put the length there."""
    require(count)
    length = ctypes.c_size_t.from_address(count)
    there = len(columns[0][2])
    if not any(address for address, _, _ in columns):
        length.value = there
        return
    room, length.value = length.value, min(there, length.value)
    for address, kind, values in columns:
        target = (kind * room).from_address(address) if address else []
        for i, value in zip(range(len(target)), values, strict=False):
            target[i] = value
        for i in range(there, len(target)):
            target[i] = kind()


def _handles(nodes: Sequence[Node]) -> list[int]:
    return [node.handle for node in nodes]


_Edge = ctypes.c_char * EDGE


# -- wholes


@exported()
def cuGraphCreate(flags: int) -> Graph:
    require(not flags)
    return Graph()


@exported()
def cuGraphDestroy(graph: int) -> None:
    found = find(Graph, graph)
    require(found.parent is None)
    found.discard()


@exported()
def cuGraphClone(graph: int) -> Graph:
    found = find(Graph, graph)
    require(not found.unique, "NOT_SUPPORTED")
    return found.clone()


@exported()
def cuGraphNodeFindInClone(node: int, clone: int) -> Node:
    found = find(Graph, clone).pairs.get(find(Node, node))
    require(found is not None)
    assert found
    return found


@exported()
def cuGraphDebugDotPrint(graph: int, path: str, flags: int) -> None:
    lines = ["digraph dot {", *_dot(find(Graph, graph)), "}"]
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError:
        raise Status("OPERATING_SYSTEM") from None


def _dot(graph: Graph) -> list[str]:
    """A cluster for the graph, with a box for each node and an arrow for each edge."""
    name = f"graph_{graph.handle}"
    lines = [f'subgraph cluster_{name} {{ label="{name}" graph[style="dashed"]']
    for node in graph.nodes:
        what = node.params.describe().replace('"', "'")
        text = f"{NAMES[node.params.kind]}\\n{what}".removesuffix("\\n")
        lines.append(f'"node_{node.handle}" [shape="octagon" label="{text}"]')
        lines += [f'"node_{each.handle}" -> "node_{node.handle}"' for each in node.after]
        for inner in node.params.graphs():
            lines += _dot(inner)
    return [*lines, "}"]


# -- nodes and edges


@exported()
def cuGraphGetNodes(graph: int, nodes: int, count: int) -> None:
    give([(nodes, ctypes.c_void_p, _handles(find(Graph, graph).nodes))], count)


@exported()
def cuGraphGetRootNodes(graph: int, nodes: int, count: int) -> None:
    roots = [node for node in find(Graph, graph).nodes if not node.after]
    give([(nodes, ctypes.c_void_p, _handles(roots))], count)


@exported()
def cuGraphGetEdges_v2(graph: int, starts: int, ends: int, data: int, count: int) -> None:
    edges = [(a, b, d) for b in find(Graph, graph).nodes for a, d in b.after.items()]
    columns: list[tuple[int, Any, list[Any]]] = [
        (starts, ctypes.c_void_p, [a.handle for a, _, _ in edges]),
        (ends, ctypes.c_void_p, [b.handle for _, b, _ in edges]),
        (data, _Edge, [_Edge.from_buffer_copy(d) for _, _, d in edges]),
    ]
    give(columns, count)


@exported()
def cuGraphGetEdges(graph: int, starts: int, ends: int, count: int) -> None:
    cuGraphGetEdges_v2(graph, starts, ends, 0, count)


@exported()
def cuGraphNodeGetDependencies_v2(node: int, nodes: int, data: int, count: int) -> None:
    after = find(Node, node).after
    edges = [_Edge.from_buffer_copy(each) for each in after.values()]
    give([(nodes, ctypes.c_void_p, _handles(list(after))), (data, _Edge, edges)], count)


@exported()
def cuGraphNodeGetDependencies(node: int, nodes: int, count: int) -> None:
    cuGraphNodeGetDependencies_v2(node, nodes, 0, count)


@exported()
def cuGraphNodeGetDependentNodes_v2(node: int, nodes: int, data: int, count: int) -> None:
    found = find(Node, node)
    later = [each for each in found.graph.nodes if found in each.after]
    edges = [_Edge.from_buffer_copy(each.after[found]) for each in later]
    give([(nodes, ctypes.c_void_p, _handles(later)), (data, _Edge, edges)], count)


@exported()
def cuGraphNodeGetDependentNodes(node: int, nodes: int, count: int) -> None:
    cuGraphNodeGetDependentNodes_v2(node, nodes, 0, count)


@exported()
def cuGraphAddDependencies_v2(graph: int, starts: int, ends: int, data: int, count: int) -> None:
    for first, second, edge in _edges(graph, starts, ends, data, count):
        require(first not in second.after)
        second.after[first] = edge


@exported()
def cuGraphAddDependencies(graph: int, starts: int, ends: int, count: int) -> None:
    cuGraphAddDependencies_v2(graph, starts, ends, 0, count)


@exported()
def cuGraphRemoveDependencies_v2(graph: int, starts: int, ends: int, data: int, count: int) -> None:
    edges = _edges(graph, starts, ends, data, count)
    require(all(first in second.after for first, second, _ in edges))
    for first, second, _ in edges:
        del second.after[first]


@exported()
def cuGraphRemoveDependencies(graph: int, starts: int, ends: int, count: int) -> None:
    cuGraphRemoveDependencies_v2(graph, starts, ends, 0, count)


def _edges(
    graph: int, starts: int, ends: int, data: int, count: int
) -> list[tuple[Node, Node, bytes]]:
    found = find(Graph, graph)
    first = [find(Node, each) for each in array(ctypes.c_void_p, starts, count)]
    second = [find(Node, each) for each in array(ctypes.c_void_p, ends, count)]
    require(all(node.graph is found for node in first + second))
    require(all(a is not b for a, b in zip(first, second, strict=True)))
    given = ctypes.string_at(data, EDGE * count) if data and count else bytes(EDGE * count)
    parts = [given[EDGE * i : EDGE * (i + 1)] for i in range(count)]
    return list(zip(first, second, parts, strict=True))


@exported()
def cuGraphDestroyNode(node: int) -> None:
    found = find(Node, node)
    require(not found.graph.unique, "NOT_SUPPORTED")
    found.remove()


@exported()
def cuGraphNodeGetType(node: int) -> int:
    return find(Node, node).params.kind


@exported()
def cuGraphConditionalHandleCreate(
    graph: int, context: Context | None, default: int, flags: int
) -> Condition:
    find(Graph, graph)
    require(flags in (0, 1))
    return Condition(default if flags else None)


# -- what can be launched


@exported()
def cuGraphInstantiateWithFlags(graph: int, flags: int) -> Exec:
    require(not flags & ~15 and flags & 5 != 5)
    require(not flags & 4, "NOT_SUPPORTED")
    found = find(Graph, graph)
    require(all(each.graph is not found for each in captures), "ILLEGAL_STATE")
    return Exec(found, flags)


@exported()
def cuGraphInstantiate_v2(graph: int, log: int, size: int) -> tuple[Exec, int]:
    return Exec(find(Graph, graph), 0), 0


@exported()
def cuGraphInstantiateWithParams(graph: int, address: int) -> Exec:
    require(address)
    given = types.record("CUDA_GRAPH_INSTANTIATE_PARAMS").from_address(address)
    given.hErrNode_out, given.result_out = None, 0
    try:
        return cuGraphInstantiateWithFlags(graph, given.flags)  # type: ignore[no-any-return]
    except Status as status:
        given.result_out = 3 if status.code == Status("NOT_SUPPORTED").code else 2
        raise


@exported()
def cuGraphExecGetFlags(made: int) -> int:
    # The upload is over.
    return find(Exec, made).flags & ~2


@exported()
def cuGraphExecDestroy(made: int) -> None:
    find(Exec, made).destroy()


@exported()
def cuGraphUpload(made: int, stream: Stream) -> None:
    find(Exec, made)


@exported()
def cuGraphLaunch(made: Any, stream: Stream) -> None:
    current()
    find(Exec, made).launch()


@exported()
def cuGraphExecUpdate_v2(made: int, graph: int) -> Any:
    name, node, first = find(Exec, made).update(find(Graph, graph))
    kind = types.record(types.resolve("CUgraphExecUpdateResultInfo"))
    info = kind(UPDATE[name], node.handle if node else 0, first.handle if first else 0)
    if name != "SUCCESS":
        status = Status("GRAPH_EXEC_UPDATE_FAILURE")
        status.results = info
        raise status
    return info


# -- what graphs keep alive, and memory of graphs


@exported()
def cuUserObjectCreate(data: int, destroy: int, count: int, flags: int) -> UserObject:
    require(destroy and count and flags == 1)
    return UserObject(data, destroy, count)


@exported()
def cuUserObjectRetain(user: int, count: int) -> None:
    require(count)
    find(UserObject, user).count += count


@exported()
def cuUserObjectRelease(user: int, count: int) -> None:
    find(UserObject, user).release(count)


@exported()
def cuGraphRetainUserObject(graph: int, user: int, count: int, flags: int) -> None:
    target, found = find(Graph, graph), find(UserObject, user)
    require(count and flags in (0, 1))
    require(not flags or count <= found.count)
    found.count += 0 if flags else count
    target.users[found] = target.users.get(found, 0) + count


@exported()
def cuGraphReleaseUserObject(graph: int, user: int, count: int) -> None:
    target, found = find(Graph, graph), find(UserObject, user)
    require(0 < count <= target.users.get(found, 0))
    target.users[found] -= count
    if not target.users[found]:
        del target.users[found]
    found.release(count)


_high = [0]


@exported()
def cuDeviceGetGraphMemAttribute(dev: int, attribute: int, address: int) -> None:
    current()
    require(address and attribute in (0, 1, 2, 3))
    now = graph_memory()
    _high[0] = max(_high[0], now)
    ctypes.c_uint64.from_address(address).value = _high[0] if attribute & 1 else now


@exported()
def cuDeviceSetGraphMemAttribute(dev: int, attribute: int, address: int) -> None:
    require(address and attribute in (1, 3))
    require(not ctypes.c_uint64.from_address(address).value)
    _high[0] = graph_memory()


@exported()
def cuDeviceGraphMemTrim(dev: int) -> None:
    current()
