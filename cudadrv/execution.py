"""Graphs that can be launched."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cudadrv import driver, keeper, raw
from cudadrv.callback import HostCall
from cudadrv.context import Resource, current_context, in_context, stream_handle
from cudadrv.errors import CudaError
from cudadrv.node import Node, NodeParams, check_kind

if TYPE_CHECKING:
    from cudadrv.graph import Graph

AUTO_FREE, UPLOAD, DEVICE_LAUNCH, NODE_PRIORITY = 1, 2, 4, 8
UPDATE_FAILURE = 910
# What there is to do when a graph cannot be instantiated, by CUgraphInstantiateResult.
INSTANTIATE = {
    1: "the driver gives no reason",
    2: "the nodes depend on each other in a circle, or the structure is not allowed",
    3: "it has a node that is not allowed for such a launch",
    4: "its nodes are of several contexts",
    5: "a conditional handle is not used by any node",
}


class GraphUpdateError(CudaError):
    """A graph that can be launched could not become another one; it is as it was.

    Attributes:
        reason: the CUgraphExecUpdateResult, without CU_GRAPH_EXEC_UPDATE_.
        node: the node of the other graph that does not fit, if the driver names one.
        before: of a dependency that does not fit, the node that *node* comes after.
    """

    reason = ""
    node: Node | None = None
    before: Node | None = None


class GraphExec(Resource):
    """A graph that can be launched, again and again; ``Graph.instantiate`` makes it."""

    RELEASE = "cuGraphExecDestroy"

    def __init__(self, handle: int, graph: Graph) -> None:
        """Own what was made of *graph*."""
        # The driver keeps alive what the graph has kept alive; this is what came later.
        self._objects = graph.kept.objects
        self._changed: dict[int, tuple[object, ...]] = {}
        self._updated: keeper.Kept | None = None
        super().__init__(handle, current_context().handle)

    @classmethod
    def of(
        cls, graph: Graph, auto_free: bool, upload: object, device_launch: bool, priority: bool
    ) -> GraphExec:
        """See ``Graph.instantiate``."""
        if auto_free and device_launch:
            raise ValueError("auto_free does not go with device_launch: free memory in the graph")
        flags = (AUTO_FREE if auto_free else 0) | (DEVICE_LAUNCH if device_launch else 0)
        flags |= NODE_PRIORITY if priority else 0
        stream = 0
        if upload is not None:
            flags, stream = flags | UPLOAD, stream_handle(upload)
        handle, kept = graph.handle, graph.kept
        assert kept is graph.kept
        if not raw.available("cuGraphInstantiateWithParams"):
            return cls(in_context(driver.cuGraphInstantiateWithFlags, handle, flags), graph)
        current_context()
        given = raw.CUDA_GRAPH_INSTANTIATE_PARAMS(flags, stream)
        made = ctypes.c_void_p()
        function = driver.cuGraphInstantiateWithParams
        code = function.raw(ctypes.byref(made), handle, ctypes.byref(given))
        if code:
            why = INSTANTIATE.get(given.result_out, "")
            at = f"; at {graph.node(given.hErrNode_out)!r}" if given.hErrNode_out else ""
            raise driver.error(code, "cuGraphInstantiateWithParams", why + at)
        return cls(made.value or 0, graph)

    def close(self) -> None:
        """Destroy it, once its launches are done; may be called twice.

        C: cuGraphExecDestroy
        """
        super().close()
        # What is kept goes when the driver is done, also if this object stays.
        self._objects, self._updated = [], None
        self._changed.clear()
        keeper.sweep()

    @property
    def flags(self) -> int:
        """The CUgraphInstantiate_flags it was made with, but for that to upload it.

        C: cuGraphExecGetFlags
        """
        return int(in_context(driver.cuGraphExecGetFlags, self.handle))

    def launch(self, stream: object = None) -> None:
        """Run the graph in a stream, after its present work; launches of one graph never overlap.

        Args:
            stream: a Stream, a handle or another library's stream; None is the default stream.

        Raises:
            CudaError: memory that the launch before allocated was not freed, or an earlier kernel
                failed.

        C: cuGraphLaunch
        """
        in_context(driver.cuGraphLaunch, self.handle, stream_handle(stream))

    def upload(self, stream: object = None) -> None:
        """Upload it to the device without a launch, so that the first one takes less time.

        C: cuGraphUpload
        """
        in_context(driver.cuGraphUpload, self.handle, stream_handle(stream))

    def update(self, graph: Graph) -> None:
        """Take over the parameters of a graph that has the same nodes and edges.

        Much cheaper than to instantiate it. Launches that were made are not affected.

        Raises:
            TypeError: it is no graph.
            GraphUpdateError: it differs in more than parameters, or in some that cannot be changed.

        C: cuGraphExecUpdate_v2
        """
        if not isinstance(getattr(graph, "kept", None), keeper.Kept):
            raise TypeError(f"update takes a Graph, not {graph!r}")
        current_context()
        info = raw.CUgraphExecUpdateResultInfo()
        code = driver.cuGraphExecUpdate.raw(self.handle, graph.handle, ctypes.byref(info))
        if code == UPDATE_FAILURE or (code and info.result):
            raise update_error(code, info, graph)
        driver.check(code, "cuGraphExecUpdate_v2")
        # A launch that was made before may still have to make calls on the host.
        if self._updated is not None:
            calls = [each for each in self._updated.objects if isinstance(each, HostCall)]
            self._objects.extend(calls)
        self._updated = graph.kept

    def set(self, node: Node, params: NodeParams) -> None:
        """Change what a node does from the next launch on.

        Args:
            node: of the graph that it was made from, or of a graph inside.
            params: of the same kind; of kernels, without launch attributes.

        Raises:
            TypeError: these are no parameters and no node.
            ValueError: they are of another kind, or cannot be changed here.

        C: cuGraphExecNodeSetParams
        """
        handle = self._node(node)
        check_kind(node, params)
        if getattr(params, "attributes", None):
            raise ValueError("the launch attributes of a node cannot be changed any more")
        given, keep = params.make()
        in_context(driver.cuGraphExecNodeSetParams, self.handle, handle, ctypes.byref(given))
        if params.KIND == "HOST":
            # As above.
            self._objects.extend(keep)
        else:
            self._changed[handle] = keep

    def enable(self, node: Node, enabled: bool = True) -> None:
        """Let a kernel, copy or fill run, or leave it out, from the next launch on.

        C: cuGraphNodeSetEnabled
        """
        number = int(bool(enabled))
        in_context(driver.cuGraphNodeSetEnabled, self.handle, self._node(node), number)

    def is_enabled(self, node: Node) -> bool:
        """Whether a kernel, copy or fill runs.

        C: cuGraphNodeGetEnabled
        """
        return bool(in_context(driver.cuGraphNodeGetEnabled, self.handle, self._node(node)))

    @staticmethod
    def _node(node: Any) -> int:
        if not isinstance(node, Node):
            raise TypeError(f"{node!r} is no node")
        return node.handle


def update_error(code: int, info: Any, graph: Graph) -> GraphUpdateError:
    """What a refused update raises."""
    names = {int(member): member.name for member in raw.CUgraphExecUpdateResult}
    name = names.get(info.result, str(info.result)).removeprefix("CU_GRAPH_EXEC_UPDATE_")
    nodes = [graph.node(each) if each else None for each in (info.errorNode, info.errorFromNode)]
    at = f" at {nodes[0]!r} of kind {nodes[0].kind}" if nodes[0] else ""
    hint = f"{name}{at}: instantiate the graph anew"
    made: GraphUpdateError = driver.error(code, "cuGraphExecUpdate_v2", hint, GraphUpdateError)
    made.reason = name
    made.node, made.before = nodes
    return made
