"""What each kind of node does, read from and written to the records of cuda.h."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections.abc import Callable
from typing import Any

from cudadrv.raw import types

from .analysis import SET_CONDITION
from .boundary import FUNCTIONS
from .calls import launch, memops
from .graph import KINDS, Condition, Graph, Node, Params
from .memory import DEVICE
from .program import Kernel
from .state import Context, Event, current, find, thread
from .status import Status, require


def record(name: str, address: int | None = None) -> Any:
    """A new record of cuda.h, a copy of that at *address* if there is one."""
    kind = types.record(types.resolve(name))
    return kind() if address is None else kind.from_buffer_copy(kind.from_address(address))


class KernelParams(Params):
    """A launch; *values* are the arguments side by side, *attributes* the launch attributes."""

    kind = KINDS["KERNEL"]

    def __init__(self, kernel: Kernel, grid: Any, block: Any, dynamic: int, values: Any) -> None:
        self.kernel = kernel
        self.grid = tuple(grid)
        self.block = tuple(block)
        self.dynamic = dynamic
        self.values = values
        self.attributes: dict[int, Any] = {}
        start = ctypes.addressof(values)
        pointers = ctypes.c_void_p * max(len(kernel.params), 1)
        self.pointers = pointers(*(start + offset for offset, _ in kernel.params))

    @classmethod
    def read(cls, given: Any) -> KernelParams:
        """From a CUDA_KERNEL_NODE_PARAMS."""
        kernel = find(Kernel, given.func or getattr(given, "kern", 0))
        grid = (given.gridDimX, given.gridDimY, given.gridDimZ)
        block = (given.blockDimX, given.blockDimY, given.blockDimZ)
        values = launch.parameters(kernel, given.kernelParams, given.extra)
        made = cls(kernel, grid, block, given.sharedMemBytes, values)
        launch.check(kernel, made.grid, made.block, made.dynamic, {})
        return made

    def run(self) -> None:
        """Do it."""
        given = launch.named(self.attributes)
        launch.start(self.kernel, self.grid, self.block, self.dynamic, self.values, given)

    def clone(self, nodes: dict[Node, Node]) -> Params:
        """A copy of its own for another graph."""
        made = KernelParams(self.kernel, self.grid, self.block, self.dynamic, self.values)
        made.attributes = dict(self.attributes)
        return made

    def difference(self, other: Params) -> str:
        """What an update cannot change."""
        cooperative = [self._cooperative(each) for each in (self, other)]
        return "ERROR_ATTRIBUTES_CHANGED" if cooperative[0] != cooperative[1] else ""

    @staticmethod
    def _cooperative(params: Any) -> bool:
        given = launch.named(params.attributes).get("COOPERATIVE")
        return bool(given and given.cooperative)

    def record(self) -> Any:
        """Its record of cuda.h."""
        made = record("CUDA_KERNEL_NODE_PARAMS")
        made.func = made.kern = self.kernel.handle
        made.gridDimX, made.gridDimY, made.gridDimZ = self.grid
        made.blockDimX, made.blockDimY, made.blockDimZ = self.block
        made.sharedMemBytes = self.dynamic
        made.kernelParams = ctypes.addressof(self.pointers)
        made.kept = self.pointers
        return made

    def describe(self) -> str:
        """It in a few words."""
        return f"{self.kernel.name} <<<{self.grid}, {self.block}, {self.dynamic}>>>"


class RecordParams(Params):
    """A node whose parameters are one record."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def record(self) -> Any:
        """Its record of cuda.h."""
        return self.given

    def describe(self) -> str:
        """It in a few words."""
        fields = [each[0] for each in self.given._fields_]
        shown = {name: getattr(self.given, name) for name in fields}
        return ", ".join(f"{k}={v}" for k, v in shown.items() if isinstance(v, int) and v)


class CopyParams(RecordParams):
    """A copy, as CUDA_MEMCPY3D."""

    kind = KINDS["MEMCPY"]

    @classmethod
    def linear(cls, target: int, source: int, size: int, to: int, since: int) -> CopyParams:
        """Bytes in a row, between memory of two CUmemorytypes."""
        made = record("CUDA_MEMCPY3D")
        made.WidthInBytes, made.Height, made.Depth = size, 1, 1
        made.dstMemoryType, made.srcMemoryType = to, since
        made.dstPitch = made.srcPitch = size
        made.dstHost, made.dstDevice = (target, 0) if to == 1 else (0, target or 0)
        made.srcHost, made.srcDevice = (source, 0) if since == 1 else (0, source or 0)
        return cls(made)

    @classmethod
    def row(cls, array: int, at: int, host: int, size: int, inwards: bool) -> CopyParams:
        """Bytes of a row of an array, from or to host memory."""
        made = cls.linear(host, host, size, 1, 1)
        side = "dst" if inwards else "src"
        for name, value in (("MemoryType", 3), ("Array", array), ("XInBytes", at)):
            setattr(made.given, side + name, value)
        return made

    @classmethod
    def plane(cls, given: Any) -> CopyParams:
        """From a CUDA_MEMCPY2D."""
        made = record("CUDA_MEMCPY3D")
        for name, _ in given._fields_:
            setattr(made, name, getattr(given, name))
        made.Depth = 1
        return cls(made)

    def run(self) -> None:
        """Do it."""
        FUNCTIONS["cuMemcpy3D_v2"](ctypes.addressof(self.given))

    def difference(self, other: Params) -> str:
        """What an update cannot change."""
        assert isinstance(other, CopyParams)
        names = ["srcMemoryType", "dstMemoryType"]
        if self.given.Height * self.given.Depth != 1:
            names += ["WidthInBytes", "Height", "Depth"]
        same = all(getattr(self.given, n) == getattr(other.given, n) for n in names)
        return "" if same else "ERROR_PARAMETERS_CHANGED"


class FillParams(RecordParams):
    """A fill, as CUDA_MEMSET_NODE_PARAMS."""

    kind = KINDS["MEMSET"]

    def __init__(self, given: Any) -> None:
        require(given.elementSize in (1, 2, 4) and given.width and given.height)
        super().__init__(given)

    @classmethod
    def of(cls, dst: int, pitch: int, value: int, size: int, width: int, rows: int) -> FillParams:
        """From the arguments of cuMemsetD2D..."""
        return cls(types.record("CUDA_MEMSET_NODE_PARAMS_v1")(dst, pitch, value, size, width, rows))

    def run(self) -> None:
        """Do it."""
        given = self.given
        name = f"cuMemsetD2D{8 * given.elementSize}_v2"
        pitch = given.pitch if given.height > 1 else given.width * given.elementSize
        FUNCTIONS[name](given.dst, pitch, given.value, given.width, given.height)

    def difference(self, other: Params) -> str:
        """What an update cannot change."""
        assert isinstance(other, FillParams)
        names = ("elementSize", "width", "height") if self.given.height > 1 else ("height",)
        same = all(getattr(self.given, n) == getattr(other.given, n) for n in names)
        return "" if same else "ERROR_PARAMETERS_CHANGED"


class HostParams(RecordParams):
    """A call of a C function, as CUDA_HOST_NODE_PARAMS."""

    kind = KINDS["HOST"]

    def __init__(self, given: Any) -> None:
        require(given.fn)
        super().__init__(given)

    @classmethod
    def of(cls, function: int, data: int) -> HostParams:
        """From the arguments of cuLaunchHostFunc."""
        return cls(types.record("CUDA_HOST_NODE_PARAMS_v1")(function, data))

    def run(self) -> None:
        """Do it."""
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.given.fn)(self.given.userData)


class ChildParams(Params):
    """A graph in a graph, of which the node has a copy."""

    kind = KINDS["GRAPH"]

    def __init__(self, graph: Graph) -> None:
        require(not graph.unique, "NOT_SUPPORTED")
        self.graph = graph.clone()

    def run(self) -> None:
        """Do it."""
        self.graph.run()

    def clone(self, nodes: dict[Node, Node]) -> Params:
        """A copy of its own for another graph."""
        made = ChildParams(self.graph)
        nodes.update(made.graph.pairs)
        return made

    def difference(self, other: Params) -> str:
        """What an update cannot change."""
        assert isinstance(other, ChildParams)
        pairs = zip(self.graph.nodes, other.graph.nodes, strict=False)
        if len(self.graph.nodes) != len(other.graph.nodes):
            return "ERROR_TOPOLOGY_CHANGED"
        for ours, theirs in pairs:
            if ours.params.kind != theirs.params.kind:
                return "ERROR_NODE_TYPE_CHANGED"
            if reason := ours.params.difference(theirs.params):
                return reason
        return ""

    def graphs(self) -> list[Graph]:
        """The graphs inside."""
        return [self.graph]


class RecordEventParams(Params):
    """The recording of an event."""

    kind = KINDS["EVENT_RECORD"]

    def __init__(self, event: Event) -> None:
        self.event = event

    def run(self) -> None:
        """Do it."""
        self.event.record()

    def describe(self) -> str:
        """It in a few words."""
        return f"event {self.event.handle:#x}"


class WaitEventParams(RecordEventParams):
    """Waiting for an event, which has happened."""

    kind = KINDS["WAIT_EVENT"]

    def run(self) -> None:
        """Do nothing."""


class AllocParams(RecordParams):
    """Memory that exists from here to where it is freed; its address is fixed."""

    kind = KINDS["MEM_ALLOC"]
    unique = True

    def __init__(self, given: Any) -> None:
        require(given.bytesize and given.poolProps.allocType == 1)
        self.context = current()
        try:
            self.owner = mmap.mmap(-1, given.bytesize)
        except (OSError, ValueError, OverflowError):
            raise Status("OUT_OF_MEMORY") from None
        given.dptr = ctypes.addressof(ctypes.c_char.from_buffer(self.owner))
        super().__init__(_detached(given))
        self.given.accessDescs, self.given.accessDescCount = None, 0
        _allocations[given.dptr] = self

    @property
    def live(self) -> bool:
        """Whether it is allocated now."""
        found = self.context.memory.find(self.given.dptr)
        return found is not None and found.owner is self.owner

    def run(self) -> None:
        """Do it."""
        given = self.given
        self.context.memory.add(given.dptr, given.bytesize, DEVICE, 0, self.owner)

    def free(self) -> None:
        """Free it, as a launch does that finds it allocated and may."""
        self.context.memory.free(self.given.dptr, DEVICE)


_allocations: weakref.WeakValueDictionary[int, AllocParams] = weakref.WeakValueDictionary()


def is_graph_memory(address: int) -> bool:
    """Whether a node of a graph allocates this address."""
    return address in _allocations


def graph_memory() -> int:
    """Bytes that graphs have allocated and not freed."""
    return sum(each.given.bytesize for each in list(_allocations.values()) if each.live)


class FreeParams(Params):
    """The end of memory."""

    kind = KINDS["MEM_FREE"]
    unique = True

    def __init__(self, address: int) -> None:
        found = _allocations.get(address)
        require(found)
        assert found
        self.address = address
        self.memory = found

    def run(self) -> None:
        """Do it."""
        self.memory.free()

    def describe(self) -> str:
        """It in a few words."""
        return f"{self.address:#x}"


class OperationParams(Params):
    """Numbers in memory as signals."""

    kind = KINDS["BATCH_MEM_OP"]

    def __init__(self, operations: Any, context: Context) -> None:
        self.operations = operations
        self.context = context

    @classmethod
    def read(cls, given: Any) -> OperationParams:
        """From a CUDA_BATCH_MEM_OP_NODE_PARAMS."""
        require(not given.flags)
        context = find(Context, given.ctx)
        return cls(memops.copy(given.paramArray, given.count), context)

    def run(self) -> None:
        """Do it."""
        memops.run(self.operations)

    def difference(self, other: Params) -> str:
        """What an update cannot change."""
        assert isinstance(other, OperationParams)
        same = len(self.operations) == len(other.operations)
        return "" if same else "ERROR_PARAMETERS_CHANGED"

    def record(self) -> Any:
        """Its record of cuda.h."""
        made = record("CUDA_BATCH_MEM_OP_NODE_PARAMS")
        made.ctx, made.count = self.context.handle, len(self.operations)
        made.paramArray = ctypes.addressof(self.operations)
        return made


IF, WHILE, SWITCH = 0, 1, 2
_IN_BODIES = {KINDS[name] for name in ("KERNEL", "EMPTY", "GRAPH", "MEMSET", "MEMCPY")}


class ConditionalParams(Params):
    """Graphs of which the value of a variable chooses one."""

    kind = KINDS["CONDITIONAL"]
    unique = True

    def __init__(self, condition: Condition, choice: int, bodies: list[Graph]) -> None:
        self.condition = condition
        self.choice = choice
        self.bodies = bodies
        handles = [each.handle for each in bodies]
        self.array = (ctypes.c_void_p * len(bodies))(*handles)

    @classmethod
    def read(cls, given: Any) -> ConditionalParams:
        """From a CUDA_CONDITIONAL_NODE_PARAMS, which gets the address of the graphs."""
        sizes = {IF: (1, 2), WHILE: (1,)}.get(given.type)
        require(given.type in (IF, WHILE, SWITCH) and given.size)
        require(sizes is None or given.size in sizes)
        condition = find(Condition, given.handle)
        made = cls(condition, given.type, [Graph() for _ in range(given.size)])
        given.phGraph_out = ctypes.addressof(made.array)
        return made

    def clone(self, nodes: dict[Node, Node]) -> Params:
        """A copy of its own for another graph."""
        bodies = []
        for body in self.bodies:
            bodies.append(body.clone())
            nodes.update(bodies[-1].pairs)
            allowed = _IN_BODIES | {self.kind}
            require(all(node.params.kind in allowed for node in body.all_nodes()), "NOT_SUPPORTED")
        # Nothing could end the loop.
        endless = self.choice == WHILE and self.condition.default and not self._sets()
        require(not endless, "NOT_SUPPORTED")
        return ConditionalParams(self.condition, self.choice, bodies)

    def begin(self) -> None:
        """Give the variable its default."""
        if self.condition.default is not None:
            self.condition.value = self.condition.default

    def _sets(self) -> bool:
        """Whether a kernel of a body could set a variable."""
        nodes = [node.params for body in self.bodies for node in body.all_nodes()]
        kernels = [each.kernel for each in nodes if isinstance(each, KernelParams)]
        return any(SET_CONDITION in kernel.program.module.functions for kernel in kernels)

    def run(self) -> None:
        """Do it."""
        if self.choice == WHILE:
            while self.condition.value and not thread.contexts[-1].failure:
                self.bodies[0].run()
            return
        value = self.condition.value
        chosen = value if self.choice == SWITCH else int(not value)
        if chosen < len(self.bodies):
            self.bodies[chosen].run()

    def graphs(self) -> list[Graph]:
        """The graphs inside."""
        return self.bodies

    def describe(self) -> str:
        """It in a few words."""
        return f"{('if', 'while', 'switch')[self.choice]}, {len(self.bodies)} bodies"


def _event(handle: int) -> Event:
    return find(Event, handle)


def _semaphores(given: Any) -> Params:
    raise Status("NOT_SUPPORTED")


# Kind -> (field of CUgraphNodeParams, what reads it).
READERS: dict[int, tuple[str, Callable[[Any], Params]]] = {
    KINDS["KERNEL"]: ("kernel", KernelParams.read),
    KINDS["MEMCPY"]: ("memcpy", lambda given: CopyParams(_detached(given.copyParams))),
    KINDS["MEMSET"]: ("memset", lambda given: FillParams(_detached(given))),
    KINDS["HOST"]: ("host", lambda given: HostParams(_detached(given))),
    KINDS["GRAPH"]: ("graph", lambda given: ChildParams(find(Graph, given.graph))),
    KINDS["EMPTY"]: ("", lambda given: Params()),
    KINDS["WAIT_EVENT"]: ("eventWait", lambda given: WaitEventParams(_event(given.event))),
    KINDS["EVENT_RECORD"]: ("eventRecord", lambda given: RecordEventParams(_event(given.event))),
    KINDS["EXT_SEMAS_SIGNAL"]: ("extSemSignal", _semaphores),
    KINDS["EXT_SEMAS_WAIT"]: ("extSemWait", _semaphores),
    KINDS["MEM_ALLOC"]: ("alloc", AllocParams),
    KINDS["MEM_FREE"]: ("free", lambda given: FreeParams(given.dptr)),
    KINDS["BATCH_MEM_OP"]: ("memOp", OperationParams.read),
    KINDS["CONDITIONAL"]: ("conditional", ConditionalParams.read),
}


def _detached(given: Any) -> Any:
    return type(given).from_buffer_copy(given)


def read(address: int) -> Params:
    """From a CUgraphNodeParams, into which some kinds write results."""
    require(address)
    given = types.record("CUgraphNodeParams").from_address(address)
    require(given.type in READERS)
    field, reader = READERS[given.type]
    return reader(getattr(given, field) if field else None)
