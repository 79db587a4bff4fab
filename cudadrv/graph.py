"""Graphs: work described once, with what depends on what, and launched as a whole."""

from __future__ import annotations

import ctypes
import operator
import os
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cudadrv import driver, keeper, raw
from cudadrv.context import Resource, current_context, in_context
from cudadrv.device import Device
from cudadrv.errors import ClosedError
from cudadrv.execution import GraphExec
from cudadrv.node import Edge, Node, NodeParams
from cudadrv.process_local import only

DOT_VERBOSE = 1


class Graph(Resource):
    """Work described once: nodes, and which must run before which.

    Nodes are added with ``add``; a stream's ``capture`` makes a graph of what the stream is given.
    ``instantiate`` makes of it what can be launched.
    """

    RELEASE = "cuGraphDestroy"

    def __init__(self) -> None:
        """Make an empty graph.

        C: cuGraphCreate
        """
        context = current_context().handle
        self._start(driver.cuGraphCreate(0), context, None)

    def _start(self, handle: int, context: int, owner: Graph | None) -> None:
        self._owner = owner
        self._kept: keeper.Kept | None = None
        self._nodes: weakref.WeakValueDictionary[int, Node] = weakref.WeakValueDictionary()
        self._bodies: dict[int, tuple[int, ...]] = {}
        if context:
            # Called after the graph's own finalizer, as it is made before.
            weakref.finalize(self, keeper.sweep).atexit = False
        super().__init__(handle, context, owned=bool(context))

    @classmethod
    def adopt(cls, graph: object) -> Graph:
        """Use a graph that another library made and owns.

        Args:
            graph: its handle, or an object with ``handle``, which is kept alive.

        Raises:
            TypeError: neither.
        """
        if isinstance(graph, Graph):
            return graph
        handle = graph if isinstance(graph, int) else getattr(only(graph, "Graph"), "handle", None)
        if isinstance(handle, bool) or not isinstance(handle, int):
            raise TypeError(f"{graph!r} is no graph: pass its handle")
        if not 0 < handle < 1 << 64:
            raise ValueError(f"{handle} is not the handle of a graph")
        made = cls.view(handle)
        made._foreign = graph
        return made

    _foreign: object = None

    @classmethod
    def view(cls, handle: int, owner: Graph | None = None) -> Graph:
        """A graph that belongs to a node of *owner*, or to someone else."""
        made = cls.__new__(cls)
        made._start(handle, 0, owner)
        return made

    @classmethod
    def owning(cls, handle: int) -> Graph:
        """A graph to be destroyed with the object."""
        made = cls.__new__(cls)
        made._start(handle, current_context().handle, None)
        return made

    def become(self, handle: int) -> None:
        """Own another graph of the driver instead of the present one."""
        super().close()
        self._start(handle, current_context().handle, None)

    @property
    def handle(self) -> int:
        """The driver's handle.

        Raises:
            ClosedError: the graph, or the one that it is a part of, was closed.
        """
        if self._handle is None or (self._owner is not None and self._owner.closed):
            raise ClosedError("this graph was closed; make a new one")
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether it, or the graph that it is a part of, was closed."""
        return self._handle is None or (self._owner is not None and self._owner.closed)

    def close(self) -> None:
        """Destroy it; what was instantiated of it lives on. May be called twice.

        C: cuGraphDestroy
        """
        super().close()
        self._kept = None
        keeper.sweep()

    def discard(self) -> None:
        """Close it after a capture that failed, with which drivers destroy the graph."""
        handle, self._handle = self._handle, None
        if self._finalizer is not None and self._finalizer.detach():
            raw.cuGraphDestroy(handle)
        self._kept = None
        keeper.sweep()

    def keep(self, *objects: object) -> None:
        """Keep Python objects alive as long as the graph, its copies and their launches need.

        Nodes keep what they use, but not what is behind a mere address. Of captured launches that
        were prepared or compiled, device memory of ours is kept, but not that of other libraries.

        C: cuUserObjectCreate, cuGraphRetainUserObject
        """
        self.kept.objects.extend(objects)

    @property
    def kept(self) -> keeper.Kept:
        """What is kept alive; a graph inside of another one shares the other's."""
        if self._owner is not None:
            return self._owner.kept
        if self._kept is None:
            self._kept = keeper.Kept(self.handle)
        return self._kept

    # -- nodes

    def add(self, params: NodeParams, after: Iterable[Node | Edge] | Node = ()) -> Node:
        """Add a node.

        Args:
            params: what it does: ``KernelNode``, ``MemcpyNode``, ``MemsetNode``, ``HostNode``,
                ``ChildNode``, ...; it can be used again.
            after: the nodes that must be done before; an Edge, of which *after* is left out, says
                more about the dependency.

        Raises:
            TypeError: these are no parameters and no nodes.
            ValueError: a node is of another graph or comes twice.

        C: cuGraphAddNode_v2
        """
        if not isinstance(params, NodeParams):
            raise TypeError(f"add takes KernelNode(...) or the like, not {params!r}")
        handles, edges, count = self.ordering(after)
        given, keep = params.make()
        handle = in_context(
            driver.cuGraphAddNode, self.handle, handles, edges, count, ctypes.byref(given)
        )
        node = self.node(handle)
        if keep:
            self.keep(*keep)
        bodies = params.bodies(given)
        if bodies:
            self._bodies[handle] = bodies
        try:
            params.finish(handle)
        except BaseException:
            node.destroy()
            raise
        return node

    def ordering(self, after: Iterable[Node | Edge] | Node) -> tuple[Any, Any, int]:
        """Nodes to come after, as the driver takes them: handles, edge data, their number.

        Raises:
            TypeError: one is no node.
            ValueError: one is of another graph or comes twice.
        """
        given = [after] if isinstance(after, (Node, Edge)) else list(after)
        edges = [each if isinstance(each, Edge) else Edge(each) for each in given]
        handles = [self.own(each.before) for each in edges]
        if len(set(handles)) < len(handles):
            raise ValueError(f"after={given!r}: a node comes twice")
        count = len(edges)
        data = None
        if any(edge.marked for edge in edges):
            data = (raw.CUgraphEdgeData * count)(*(edge.data() for edge in edges))
        return (ctypes.c_void_p * count)(*handles) if count else None, data, count

    def own(self, node: Any) -> int:
        """The handle of a node of this graph.

        Raises:
            TypeError: it is no node.
            ValueError: it is of another graph.
        """
        if not isinstance(node, Node):
            raise TypeError(f"{node!r} is no node")
        handle = node.handle
        if node.graph.handle != self.handle:
            raise ValueError(f"{node!r} is of another graph")
        return handle

    def node(self, handle: int) -> Node:
        """The node with this handle; there is one object for each."""
        found = self._nodes.get(handle)
        if found is None:
            found = self._nodes[handle] = Node(self, handle)
        return found

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in no particular order.

        C: cuGraphGetNodes
        """
        (found,) = listed(driver.cuGraphGetNodes, (self.handle,), ctypes.c_void_p)
        return [self.node(each) for each in found]

    @property
    def roots(self) -> list[Node]:
        """The nodes that come after no others.

        C: cuGraphGetRootNodes
        """
        (found,) = listed(driver.cuGraphGetRootNodes, (self.handle,), ctypes.c_void_p)
        return [self.node(each) for each in found]

    @property
    def edges(self) -> list[Edge]:
        """All dependencies.

        C: cuGraphGetEdges_v2
        """
        kinds = (ctypes.c_void_p, ctypes.c_void_p, raw.CUgraphEdgeData)
        found = listed(driver.cuGraphGetEdges, (self.handle,), *kinds)
        return [
            Edge.of(self.node(first), self.node(second), data)
            for first, second, data in zip(*found, strict=True)
        ]

    def add_edges(self, *edges: Edge | tuple[Node, Node]) -> None:
        """Let nodes come after others: pairs of the first and the second.

        Raises:
            TypeError: one is no pair of nodes.
            ValueError: a node is of another graph, or would come after itself.
            CudaError: an edge is there already.

        C: cuGraphAddDependencies_v2
        """
        in_context(driver.cuGraphAddDependencies, self.handle, *self._edge_arrays(edges))

    def remove_edges(self, *edges: Edge | tuple[Node, Node]) -> None:
        """Remove dependencies.

        Raises:
            CudaError: there is no such edge.

        C: cuGraphRemoveDependencies_v2
        """
        in_context(driver.cuGraphRemoveDependencies, self.handle, *self._edge_arrays(edges))

    def _edge_arrays(self, edges: Sequence[Any]) -> tuple[Any, Any, Any, int]:
        pairs = [each if isinstance(each, Edge) else Edge(*pair(each)) for each in edges]
        first = [self.own(each.before) for each in pairs]
        second = [self.own(each.after) for each in pairs]
        if any(a == b for a, b in zip(first, second, strict=True)):
            raise ValueError("a node cannot come after itself")
        count = len(pairs)
        handles = ctypes.c_void_p * count
        data = None
        if any(edge.marked for edge in pairs):
            data = (raw.CUgraphEdgeData * count)(*(edge.data() for edge in pairs))
        return handles(*first), handles(*second), data, count

    def conditional_handle(self, default: int | None = None) -> int:
        """A variable for a ``ConditionalNode``, for kernels to set; it is passed to them as uint64.

        Args:
            default: the value at the start of each launch; None: that of the end of the one before.

        C: cuGraphConditionalHandleCreate
        """
        value = 0 if default is None else operator.index(default)
        if not 0 <= value < 1 << 32:
            raise ValueError(f"default={default!r}: it is an unsigned number of 32 bits")
        context = current_context().handle
        flags = 0 if default is None else raw.CU_GRAPH_COND_ASSIGN_DEFAULT
        create = driver.cuGraphConditionalHandleCreate
        return int(create(self.handle, context, value, flags))

    # -- as a whole

    def clone(self) -> Graph:
        """A copy, with what is kept alive.

        Raises:
            CudaError: it has nodes that allocate memory or are conditional.

        C: cuGraphClone
        """
        return Graph.owning(in_context(driver.cuGraphClone, self.handle))

    def find(self, node: Node) -> Node:
        """The node of this graph, a copy of another one, that is the copy of *node*.

        Raises:
            CudaError: there is none.

        C: cuGraphNodeFindInClone
        """
        if not isinstance(node, Node):
            raise TypeError(f"{node!r} is no node")
        return self.node(in_context(driver.cuGraphNodeFindInClone, node.handle, self.handle))

    def instantiate(
        self,
        auto_free: bool = False,
        upload: object = None,
        device_launch: bool = False,
        node_priority: bool = False,
    ) -> GraphExec:
        """Make of the graph, as it is now, what can be launched.

        Args:
            auto_free: whether a launch frees first what the launch before left allocated.
            upload: a stream in which to upload it to the device at once.
            device_launch: whether kernels launch it; the graph may have only nodes of a device.
            node_priority: whether kernel nodes have priorities of their own, not the stream's.

        Raises:
            ValueError: both *auto_free* and *device_launch*.
            CudaError: it cannot be: its nodes go in a circle, or are used where they must not be.

        C: cuGraphInstantiateWithParams, cuGraphInstantiateWithFlags
        """
        return GraphExec.of(self, auto_free, upload, device_launch, node_priority)

    def to_dot(self, path: str | os.PathLike[str] | None = None, verbose: bool = False) -> str:
        """The graph in the language of Graphviz, as the driver writes it.

        Args:
            path: a file to write it into as well.
            verbose: whether with all parameters of the nodes.

        C: cuGraphDebugDotPrint
        """
        import tempfile
        from pathlib import Path

        flags = DOT_VERBOSE if verbose else 0
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "graph.dot") if path is None else Path(path)
            in_context(driver.cuGraphDebugDotPrint, self.handle, os.fsencode(file), flags)
            return file.read_text(encoding="utf-8", errors="replace")


def pair(edge: Any) -> tuple[Any, Any]:
    """Two nodes.

    Raises:
        TypeError: it is no pair.
    """
    if not isinstance(edge, tuple) or len(edge) != 2:
        raise TypeError(f"{edge!r} is no edge: pass Edge(before, after) or (before, after)")
    return edge


def listed(function: Any, given: tuple[Any, ...], *kinds: Any) -> list[list[Any]]:
    """What a driver function lists in arrays of these types, after it has told how much it is."""
    count = ctypes.c_size_t()
    in_context(function, *given, *(None for _ in kinds), ctypes.byref(count))
    arrays = [(kind * count.value)() for kind in kinds]
    if count.value:
        in_context(function, *given, *arrays, ctypes.byref(count))
    return [list(array)[: count.value] for array in arrays]


class GraphMemory(NamedTuple):
    """Bytes that the memory nodes of graphs use on a device, and that are reserved for them."""

    used: int
    used_high: int
    reserved: int
    reserved_high: int

    @classmethod
    def of(cls, device: Any = None) -> GraphMemory:
        """Of *device*, by default that of the current context.

        C: cuDeviceGetGraphMemAttribute
        """
        value = ctypes.c_uint64()
        found = []
        for number in range(len(cls._fields)):
            ask = driver.cuDeviceGetGraphMemAttribute
            in_context(ask, device_number(device), number, ctypes.byref(value))
            found.append(value.value)
        return cls(*found)

    @staticmethod
    def trim(device: Any = None) -> None:
        """Give memory that is reserved and not used back to the system.

        C: cuDeviceGraphMemTrim
        """
        in_context(driver.cuDeviceGraphMemTrim, device_number(device))

    @staticmethod
    def reset(device: Any = None) -> None:
        """Let the high-water marks begin anew.

        C: cuDeviceSetGraphMemAttribute
        """
        for number in (
            raw.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
            raw.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
        ):
            zero = ctypes.byref(ctypes.c_uint64())
            in_context(driver.cuDeviceSetGraphMemAttribute, device_number(device), number, zero)


def device_number(device: Any) -> int:
    """The driver's number of a device; None is the device of the current context.

    Raises:
        TypeError: it is no Device.
    """
    found = current_context().device if device is None else device
    if not isinstance(found, Device):
        raise TypeError(f"{device!r} is no Device")
    return int(found.handle)
