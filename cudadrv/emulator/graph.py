"""Graphs of work: nodes, what each depends on, and copies of them that can be launched."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.raw import table, types

from .state import Object, thread
from .status import Status, require

KINDS = {
    name.removeprefix("CU_GRAPH_NODE_TYPE_"): number
    for name, number in table.ENUMS[types.resolve("CUgraphNodeType")].items()
}
NAMES = {number: name for name, number in KINDS.items()}
UPDATE = {
    name.removeprefix("CU_GRAPH_EXEC_UPDATE_"): number
    for name, number in table.ENUMS[types.resolve("CUgraphExecUpdateResult")].items()
}
AUTO_FREE = 1


class Params:
    """What a node does."""

    kind = KINDS["EMPTY"]
    # Why graphs with it cannot be cloned, be children or be instantiated twice.
    unique = False

    def begin(self) -> None:
        """Prepare for a launch."""

    def run(self) -> None:
        """Do it."""

    def clone(self, nodes: dict[Node, Node]) -> Params:
        """A copy of its own for another graph; *nodes* maps the nodes inside to their copies."""
        return self

    def difference(self, other: Params) -> str:
        """The CUgraphExecUpdateResult of an update to *other*; empty if it can be done."""
        return ""

    def record(self) -> Any:
        """What the driver hands out as its parameters."""
        raise Status("INVALID_VALUE")

    def graphs(self) -> list[Graph]:
        """The graphs inside."""
        return []

    def describe(self) -> str:
        """It in a few words."""
        return ""


class Node(Object):
    """A node; *after* maps the nodes that it depends on to the data of the edges, in order."""

    error = "INVALID_VALUE"

    def __init__(self, graph: Graph, params: Params, after: dict[Node, bytes]) -> None:
        super().__init__()
        self.graph = graph
        self.params = params
        self.after = dict(after)
        self.enabled = True
        for inner in params.graphs():
            inner.parent = graph
        graph.nodes.append(self)

    def remove(self) -> None:
        """Take it, and the edges to and from it, out of its graph."""
        self.graph.nodes.remove(self)
        for other in self.graph.nodes:
            other.after.pop(self, None)
        self.discard()

    def discard(self) -> None:
        """Make its handle, and those inside of it, invalid."""
        for inner in self.params.graphs():
            inner.discard()
        self.forget()


class UserObject(Object):
    """Something that graphs keep alive: the last reference calls a C function."""

    error = "INVALID_VALUE"

    def __init__(self, data: int, destroy: int, count: int) -> None:
        super().__init__()
        self.data = data
        self.destroy = destroy
        self.count = count

    def release(self, count: int) -> None:
        """Some references fewer."""
        require(0 < count <= self.count)
        self.count -= count
        if not self.count:
            self.forget()
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.destroy)(self.data)


class Condition(Object):
    """The variable of a conditional node, which kernels set; *default* is None if it stays."""

    error = "INVALID_VALUE"

    def __init__(self, default: int | None) -> None:
        super().__init__()
        self.default = default
        self.value = 0


class Graph(Object):
    """A graph; *parent* is the graph that a node's own graph lies in."""

    error = "INVALID_VALUE"

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.parent: Graph | None = None
        self.users: dict[UserObject, int] = {}
        self.original: Graph | None = None
        self.pairs: dict[Node, Node] = {}
        self.instances = 0

    def order(self) -> list[Node]:
        """The nodes, each after those that it depends on.

        Raises:
            Status: they go in a circle.
        """
        found: dict[Node, None] = {}
        waiting = list(self.nodes)
        while waiting:
            ready = [node for node in waiting if all(each in found for each in node.after)]
            require(ready)
            found.update(dict.fromkeys(ready))
            waiting = [node for node in waiting if node not in found]
        return list(found)

    def all_nodes(self) -> list[Node]:
        """The nodes, and those of the graphs inside."""
        inner = [each for node in self.nodes for each in node.params.graphs()]
        return self.nodes + [node for graph in inner for node in graph.all_nodes()]

    @property
    def unique(self) -> bool:
        """Whether something in it exists only once."""
        return any(node.params.unique for node in self.all_nodes())

    def clone(self) -> Graph:
        """A copy; its *pairs* maps the nodes of this graph to the copies."""
        made = Graph()
        made.original = self
        for node in self.order():
            after = {made.pairs[each]: data for each, data in node.after.items()}
            twin = Node(made, node.params.clone(made.pairs), after)
            twin.enabled = node.enabled
            made.pairs[node] = twin
        places = {node: at for at, node in enumerate(self.nodes)}
        back = {twin: node for node, twin in made.pairs.items()}
        made.nodes.sort(key=lambda twin: places[back[twin]])
        self.share(made)
        return made

    def share(self, other: Graph) -> None:
        """Let another graph keep alive what this one keeps alive."""
        for user, count in self.users.items():
            user.count += count
            other.users[user] = other.users.get(user, 0) + count

    def run(self) -> None:
        """Run the nodes in order."""
        for node in self.order():
            if node.enabled and not thread.contexts[-1].failure:
                node.params.run()

    def discard(self) -> None:
        """Make it and its nodes invalid, and let go of what it keeps alive."""
        for node in self.nodes:
            node.discard()
        users, self.users = self.users, {}
        for user, count in users.items():
            user.release(count)
        self.forget()


class Exec(Object):
    """A graph that can be launched: a copy of what the graph was."""

    error = "INVALID_VALUE"

    def __init__(self, graph: Graph, flags: int) -> None:
        graph.order()
        require(not (graph.unique and graph.instances), "NOT_SUPPORTED")
        super().__init__()
        self.source = graph
        self.flags = flags
        self.graph = graph.clone()
        graph.instances += 1

    def find(self, node: Node) -> Node:
        """Its copy of a node of the graph that it was made from."""
        twin = self.graph.pairs.get(node)
        require(twin is not None)
        assert twin is not None
        return twin

    def launch(self) -> None:
        """Run all of it."""
        live = [node.params for node in self.graph.all_nodes() if getattr(node.params, "live", 0)]
        require(not live or self.flags & AUTO_FREE)
        for params in live:
            params.free()  # type: ignore[attr-defined]
        for node in self.graph.all_nodes():
            node.params.begin()
        self.graph.run()

    def update(self, graph: Graph) -> tuple[str, Node | None, Node | None]:
        """Take over the parameters of a graph of the same shape.

        Returns:
            the name of the CUgraphExecUpdateResult, the node that does not fit and, of two nodes
            between which an edge does not, the first.
        """
        pairs = list(zip(self.graph.nodes, graph.nodes, strict=False))
        if len(self.graph.nodes) != len(graph.nodes):
            return "ERROR_TOPOLOGY_CHANGED", None, None
        places = {theirs: ours for ours, theirs in pairs}
        for ours, theirs in pairs:
            if len(ours.after) != len(theirs.after):
                return "ERROR_TOPOLOGY_CHANGED", theirs, None
            for each in theirs.after:
                if places[each] not in ours.after:
                    return "ERROR_TOPOLOGY_CHANGED", theirs, each
            if ours.params.kind != theirs.params.kind:
                return "ERROR_NODE_TYPE_CHANGED", theirs, None
            reason = ours.params.difference(theirs.params)
            if reason:
                return reason, theirs, None
        users, self.graph.users = self.graph.users, {}
        graph.share(self.graph)
        for ours, theirs in pairs:
            ours.params = theirs.params.clone({})
        for user, count in users.items():
            user.release(count)
        return "SUCCESS", None, None

    def destroy(self) -> None:
        """Make it invalid."""
        self.source.instances -= 1
        self.graph.discard()
        self.forget()
