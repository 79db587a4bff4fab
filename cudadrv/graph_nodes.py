"""Nodes of graphs that run kernels, host functions and other graphs, or order them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from cudadrv import checks, driver, launch, launch_config, manifest, raw
from cudadrv.callback import host_call
from cudadrv.context import current_context, in_context
from cudadrv.event import Event, event_handle
from cudadrv.graph import Graph
from cudadrv.kernel import Kernel
from cudadrv.node import NodeParams
from cudadrv.process_local import only


class KernelNode(NodeParams):
    """A launch of a kernel."""

    KIND = "KERNEL"

    def __init__(
        self,
        kernel: Kernel,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *args: Any,
        smem: int = 0,
        cooperative: bool = False,
        **attributes: Any,
    ) -> None:
        """Check a launch; see ``Kernel.launch`` for what everything means.

        Args:
            args: the values that they have now; memory is kept alive by the graph.

        Raises:
            TypeError: the arguments or attributes do not fit the kernel.
            ValueError: grid, block, smem or an attribute is out of range.

        C: cuGraphAddNode, cuGraphKernelNodeSetAttribute
        """
        if not isinstance(kernel, Kernel):
            raise TypeError(f"{kernel!r} is no Kernel")
        attributes["cooperative"] = cooperative
        self.kernel = kernel
        config = launch_config.config(kernel, grid, block, smem, None, attributes)
        values = (
            args if kernel.layout is None else manifest.expand(kernel.layout, args, kernel.name)
        )
        self._arguments = launch.pack(kernel, values, [])
        self._config = config
        self._keep = (kernel, args, config)

    @property
    def attributes(self) -> Sequence[Any]:
        """The launch attributes, as CUlaunchAttributes."""
        return list(self._config.attributes)

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        made, config = given.kernel, self._config.raw
        for name in ("gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ"):
            setattr(made, name, getattr(config, name))
        made.sharedMemBytes = config.sharedMemBytes
        made.kernelParams = ctypes.addressof(self._arguments.pointers)
        if self.kernel.library.is_library:
            made.kern, made.ctx = self.kernel.handle, current_context().handle
        else:
            made.func = self.kernel.handle
        return self._keep

    def finish(self, node: int) -> None:
        """Give the node its launch attributes."""
        for each in self._config.attributes:
            value = ctypes.byref(each.value)
            in_context(driver.cuGraphKernelNodeSetAttribute, node, each.id, value)


class HostNode(NodeParams):
    """A call of a function on the host."""

    KIND = "HOST"

    def __init__(self, function: Any, *arguments: Any) -> None:
        """Check a call; see ``Stream.call`` for what may be called, and what that may do.

        Raises:
            TypeError: it is no function.

        C: cuGraphAddNode
        """
        self._call = host_call(function, arguments)

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        given.host.fn, given.host.userData = self._call.function, self._call.data
        return (self._call,)


class EmptyNode(NodeParams):
    """Nothing: a point that others come before and after.

    C: cuGraphAddNode
    """

    KIND = "EMPTY"


class ChildNode(NodeParams):
    """All of a graph; the node has a copy of what the graph is when the node is made."""

    KIND = "GRAPH"

    def __init__(self, graph: Graph) -> None:
        """Take a graph.

        Raises:
            TypeError: it is none.

        C: cuGraphAddNode
        """
        if not isinstance(graph, Graph):
            raise TypeError(f"{graph!r} is no Graph")
        self._graph = graph

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        given.graph.graph = self._graph.handle
        return ()


class RecordNode(NodeParams):
    """The recording of an event, for others to wait for."""

    KIND, FIELD = "EVENT_RECORD", "eventRecord"

    def __init__(self, event: Event | int) -> None:
        """Take an event or the handle of one.

        Raises:
            TypeError: it is none.

        C: cuGraphAddNode
        """
        self._event = event
        event_handle(event)

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        getattr(given, self.FIELD).event = event_handle(self._event)
        return (self._event,)


class WaitNode(RecordNode):
    """Waiting for an event that something outside of the graph records."""

    KIND, FIELD = "WAIT_EVENT", "eventWait"


class SignalNode(NodeParams):
    """Signals to external semaphores."""

    KIND, FIELD = "EXT_SEMAS_SIGNAL", "extSemSignal"
    RECORD = "CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS"

    def __init__(self, semaphores: Sequence[Any], params: Sequence[Any]) -> None:
        """Take external semaphores and what to do with each.

        Args:
            semaphores: their handles, or objects with ``handle``.
            params: for each a CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS of ``cudadrv.raw``, or of
                a SemaphoreWaitNode a CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS.

        Raises:
            TypeError: one is none of these.
            ValueError: there are none, or not as many of one as of the other.

        C: cuGraphAddNode
        """
        kind = getattr(raw, self.RECORD)
        if not semaphores or len(semaphores) != len(params):
            raise ValueError(
                f"{len(semaphores)} semaphores and {len(params)} params: as many, some"
            )
        if not all(isinstance(each, kind) for each in params):
            raise TypeError(f"params are {self.RECORD} of cudadrv.raw, not {params!r}")
        for each in semaphores:
            only(each, "ExternalSemaphore")
        handles = [checks.address(getattr(each, "handle", each)) for each in semaphores]
        self._handles = (ctypes.c_void_p * len(handles))(*handles)
        self._params = (kind * len(params))(*params)
        self._keep = (tuple(semaphores), self._handles, self._params)

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        made = getattr(given, self.FIELD)
        made.extSemArray = ctypes.addressof(self._handles)
        made.paramsArray = ctypes.addressof(self._params)
        made.numExtSems = len(self._handles)
        return self._keep


class SemaphoreWaitNode(SignalNode):
    """Waiting for external semaphores."""

    KIND, FIELD = "EXT_SEMAS_WAIT", "extSemWait"
    RECORD = "CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS"


class ConditionalNode(NodeParams):
    """Graphs of which a variable chooses one, or which repeat as long as it is not 0.

    The node's ``bodies`` are to be filled with kernels, copies, fills and further conditionals.
    """

    KIND = "CONDITIONAL"
    CHOICES = ("if", "while", "switch")

    def __init__(self, handle: int, choice: str = "if", bodies: int = 1) -> None:
        """Take a variable.

        Args:
            handle: what ``Graph.conditional_handle`` gave.
            choice: "if": the first body runs if it is not 0, the second, if there is one, if it is;
                "while": the body runs as long as it is not 0; "switch": the body of its number.
            bodies: how many: 1 or 2, 1, or any number.

        Raises:
            ValueError: a number or word does not fit.

        C: cuGraphAddNode
        """
        if choice not in self.CHOICES:
            raise ValueError(f"choice={choice!r}: it is one of {', '.join(self.CHOICES)}")
        most = {"if": 2, "while": 1}.get(choice)
        self._bodies = checks.size(bodies, "bodies", 1)
        if most is not None and self._bodies > most:
            raise ValueError(f'bodies={bodies}: "{choice}" has at most {most}')
        self._handle, self._choice = checks.address(handle, "handle"), self.CHOICES.index(choice)

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        made = given.conditional
        made.handle, made.type, made.size = self._handle, self._choice, self._bodies
        made.ctx = current_context().handle
        return ()

    def bodies(self, given: Any) -> tuple[int, ...]:
        """See NodeParams."""
        kind = ctypes.c_void_p * self._bodies
        return tuple(each or 0 for each in kind.from_address(given.conditional.phGraph_out))
