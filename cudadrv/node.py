"""Nodes of graphs, and the edges between them."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from cudadrv import checks, driver, raw
from cudadrv.attribute_map import LaunchAttributes
from cudadrv.context import in_context
from cudadrv.errors import ClosedError
from cudadrv.launch_attributes import NODE
from cudadrv.process_local import ProcessLocal

if TYPE_CHECKING:
    from cudadrv.graph import Graph

PROGRAMMATIC = 1


class NodeParams(ProcessLocal):
    """What a node does. It can be used for several nodes, and to change one.

    Attributes:
        KIND: the CUgraphNodeType, without CU_GRAPH_NODE_TYPE_.
    """

    KIND = ""

    def make(self) -> tuple[Any, tuple[object, ...]]:
        """A filled CUgraphNodeParams, and what must live as long as the node."""
        given = raw.CUgraphNodeParams(type=getattr(raw, f"CU_GRAPH_NODE_TYPE_{self.KIND}"))
        return given, self.fill(given)

    def fill(self, given: Any) -> tuple[object, ...]:
        """Fill the record; returns what must live as long as the node."""
        return ()

    def finish(self, node: int) -> None:
        """Do what is left to be done with the node that was made."""

    def bodies(self, given: Any) -> tuple[int, ...]:
        """The graphs inside that the driver made for the node."""
        return ()


# What a graph's node of a kind is asked for: the function that returns its record.
GETTERS = {
    "KERNEL": "cuGraphKernelNodeGetParams",
    "MEMCPY": "cuGraphMemcpyNodeGetParams",
    "MEMSET": "cuGraphMemsetNodeGetParams",
    "HOST": "cuGraphHostNodeGetParams",
    "MEM_ALLOC": "cuGraphMemAllocNodeGetParams",
    "BATCH_MEM_OP": "cuGraphBatchMemOpNodeGetParams",
    "EXT_SEMAS_SIGNAL": "cuGraphExternalSemaphoresSignalNodeGetParams",
    "EXT_SEMAS_WAIT": "cuGraphExternalSemaphoresWaitNodeGetParams",
}
EVENTS = {
    "EVENT_RECORD": "cuGraphEventRecordNodeGetEvent",
    "WAIT_EVENT": "cuGraphEventWaitNodeGetEvent",
}


class Node(ProcessLocal):
    """A node of a graph.

    Attributes:
        graph: what it is a part of; it is kept alive.
    """

    def __init__(self, graph: Graph, handle: int) -> None:
        self.graph = graph
        self._handle: int | None = handle

    def __repr__(self) -> str:
        return f"Node({'destroyed' if self._handle is None else hex(self._handle)})"

    @property
    def handle(self) -> int:
        """The driver's handle.

        Raises:
            ClosedError: the node was destroyed or its graph closed.
        """
        _ = self.graph.handle
        if self._handle is None:
            raise ClosedError("this node was destroyed; add a new one")
        return self._handle

    @property
    def kind(self) -> str:
        """What it does: "KERNEL", "MEMCPY", ... as in CUgraphNodeType.

        C: cuGraphNodeGetType
        """
        number = in_context(driver.cuGraphNodeGetType, self.handle)
        return kinds().get(number, str(number))

    @property
    def params(self) -> Any:
        """What it does, as the record of cuda.h for its kind; for events the handle.

        Pointers in it are to memory of the driver, which lives as long as the node.

        Raises:
            TypeError: nodes of its kind have none.

        C: cuGraphKernelNodeGetParams_v2, cuGraphMemcpyNodeGetParams, cuGraphMemsetNodeGetParams,
            cuGraphHostNodeGetParams, cuGraphMemAllocNodeGetParams, cuGraphBatchMemOpNodeGetParams,
            cuGraphExternalSemaphoresSignalNodeGetParams, cuGraphEventRecordNodeGetEvent,
            cuGraphExternalSemaphoresWaitNodeGetParams, cuGraphEventWaitNodeGetEvent
        """
        kind = self.kind
        name = GETTERS.get(kind) or EVENTS.get(kind)
        if name is None:
            raise TypeError(f"a node of kind {kind} has no parameters that can be asked")
        found = in_context(getattr(driver, name), self.handle)
        if not isinstance(found, int):
            found.node = self
        return found

    def set(self, params: NodeParams) -> None:
        """Change what it does; it must be of the same kind.

        Raises:
            TypeError: these are no parameters.
            ValueError: they are of another kind.

        C: cuGraphNodeSetParams
        """
        check_kind(self, params)
        given, keep = params.make()
        in_context(driver.cuGraphNodeSetParams, self.handle, ctypes.byref(given))
        self.graph.keep(*keep)
        params.finish(self.handle)

    @property
    def attributes(self) -> LaunchAttributes:
        """The launch attributes of a kernel node, as a mapping.

        C: cuGraphKernelNodeGetAttribute, cuGraphKernelNodeSetAttribute
        """
        get, change = driver.cuGraphKernelNodeGetAttribute, driver.cuGraphKernelNodeSetAttribute
        return LaunchAttributes(NODE, self, get, change)

    def copy_attributes(self, source: Node) -> None:
        """Take over the launch attributes of another kernel node.

        C: cuGraphKernelNodeCopyAttributes
        """
        if not isinstance(source, Node):
            raise TypeError(f"{source!r} is no node")
        in_context(driver.cuGraphKernelNodeCopyAttributes, self.handle, source.handle)

    @property
    def address(self) -> int:
        """The device address of the memory that it allocates or frees.

        C: cuGraphMemAllocNodeGetParams, cuGraphMemFreeNodeGetParams
        """
        if self.kind == "MEM_FREE":
            return int(in_context(driver.cuGraphMemFreeNodeGetParams, self.handle))
        if self.kind != "MEM_ALLOC":
            raise TypeError(f"a node of kind {self.kind} has no memory of its own")
        return int(self.params.dptr)

    @property
    def child(self) -> Graph:
        """The graph inside of a child node; it is the node's.

        C: cuGraphChildGraphNodeGetGraph
        """
        if self.kind != "GRAPH":
            raise TypeError(f"a node of kind {self.kind} has no child: see bodies")
        found = in_context(driver.cuGraphChildGraphNodeGetGraph, self.handle)
        return type(self.graph).view(found, self.graph)

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """The graphs inside of a conditional node, to be filled; they are the node's.

        Raises:
            TypeError: it is no conditional node that was added with ``add``.
        """
        found = self.graph._bodies.get(self.handle)
        if found is None:
            raise TypeError("only a conditional node made by add() has bodies")
        return tuple(type(self.graph).view(each, self.graph) for each in found)

    @property
    def dependencies(self) -> list[Node]:
        """The nodes that it comes after.

        C: cuGraphNodeGetDependencies_v2
        """
        return self._neighbours(driver.cuGraphNodeGetDependencies)

    @property
    def dependents(self) -> list[Node]:
        """The nodes that come after it.

        C: cuGraphNodeGetDependentNodes_v2
        """
        return self._neighbours(driver.cuGraphNodeGetDependentNodes)

    def _neighbours(self, function: Any) -> list[Node]:
        count = ctypes.c_size_t()
        in_context(function, self.handle, None, None, ctypes.byref(count))
        if not count.value:
            return []
        found = (ctypes.c_void_p * count.value)()
        edges = (raw.CUgraphEdgeData * count.value)()
        in_context(function, self.handle, found, edges, ctypes.byref(count))
        return [self.graph.node(each) for each in found if each]

    def destroy(self) -> None:
        """Take it and its edges out of the graph.

        What it kept alive lives on with the graph.

        Raises:
            ClosedError: it was destroyed already.
            CudaError: the graph has nodes that allocate memory.

        C: cuGraphDestroyNode
        """
        handle = self.handle
        in_context(driver.cuGraphDestroyNode, handle)
        self._handle = None
        self.graph._nodes.pop(handle, None)
        self.graph._bodies.pop(handle, None)


@functools.cache
def kinds() -> dict[int, str]:
    """The kinds of nodes, by the numbers of CUgraphNodeType."""
    prefix = "CU_GRAPH_NODE_TYPE_"
    return {int(member): member.name.removeprefix(prefix) for member in raw.CUgraphNodeType}


def check_kind(node: Node, params: Any) -> None:
    """Refuse parameters that are not those of the node's kind.

    Raises:
        TypeError: these are no parameters.
        ValueError: they are of another kind.
    """
    if not isinstance(params, NodeParams):
        raise TypeError(f"set takes KernelNode(...) or the like, not {params!r}")
    if node.kind != params.KIND:
        raise ValueError(f"a node of kind {node.kind} cannot become one of kind {params.KIND}")


class Edge(NamedTuple):
    """A dependency: *after* runs when *before* is done.

    Attributes:
        from_port: of a kernel node: 1: already when its blocks trigger it or end, 2: already
            when all have begun.
        to_port: 0, as there are no others yet.
        programmatic: whether the kernel of *after* may begin before and waits itself.
    """

    before: Node
    after: Node | None = None
    from_port: int = 0
    to_port: int = 0
    programmatic: bool = False

    @classmethod
    def of(cls, before: Node, after: Node, data: Any) -> Edge:
        """From a CUgraphEdgeData."""
        return cls(before, after, data.from_port, data.to_port, data.type == PROGRAMMATIC)

    @property
    def marked(self) -> bool:
        """Whether it is more than a plain dependency."""
        return bool(self.from_port or self.to_port or self.programmatic)

    def data(self) -> Any:
        """It as a CUgraphEdgeData.

        Raises:
            TypeError: a port is no int.
            ValueError: there is no such port.
        """
        for port in (self.from_port, self.to_port):
            if not 0 <= checks.integer(port, "port") < 256:
                raise ValueError(f"port={port}: it is a number from 0 to 255")
        kind = PROGRAMMATIC if self.programmatic else 0
        return raw.CUgraphEdgeData(self.from_port, self.to_port, kind)
