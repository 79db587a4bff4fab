"""Streams: queues of work on a device."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from cudadrv import callback, capture, driver, keeper, raw
from cudadrv.attribute_map import LaunchAttributes
from cudadrv.capture import CaptureInfo
from cudadrv.cleanup import pending
from cudadrv.context import Resource, current_context, in_context
from cudadrv.context import stream_handle as stream_handle
from cudadrv.device import Context, Device
from cudadrv.event import NOT_READY, Event, event_handle
from cudadrv.graph import Graph
from cudadrv.launch_attributes import STREAM
from cudadrv.node import Edge, Node
from cudadrv.process_local import MEMORY, only

WAIT_EXTERNAL = 1
# How wait_value compares what is in memory with the value it is given, see there.
CONDITIONS = {">=": 0, "==": 1, "&": 2, "nor": 3}
FLUSH = 1 << 30


class Stream(Resource):
    """A queue of kernels and copies that run one after another.

    ``Stream.legacy`` is the default stream, which waits for all blocking streams;
    ``Stream.per_thread`` is the default stream of each thread.
    """

    RELEASE = "cuStreamDestroy"
    legacy: ClassVar[Stream]
    per_thread: ClassVar[Stream]

    def __init__(self, priority: int = 0, nonblocking: bool = False) -> None:
        """Make a stream in the current context.

        Args:
            priority: lower numbers run first; the driver clamps to what the device has.
            nonblocking: whether it runs beside the legacy default stream; without, each waits for
                the work that the other was given before.

        C: cuStreamCreateWithPriority, cuStreamDestroy_v2
        """
        priority = max(-(1 << 31), min(operator.index(priority), (1 << 31) - 1))
        context = current_context().handle
        handle = driver.cuStreamCreateWithPriority(int(bool(nonblocking)), priority)
        super().__init__(handle, context)

    @classmethod
    def adopt(cls, stream: object) -> Stream:
        """Use a stream that another library made and owns.

        Args:
            stream: its handle, or an object with ``__cuda_stream__()``, ``cuda_stream``, ``ptr`` or
                ``handle``; it is kept alive.

        Raises:
            TypeError: none of these.
        """
        if isinstance(stream, Stream):
            return stream
        adopted = cls.__new__(cls)
        Resource.__init__(adopted, stream_handle(stream), owned=False)
        adopted._foreign = stream
        return adopted

    _foreign: object = None

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    # -- what it is

    @property
    def id(self) -> int:
        """A number that no other stream of this process has or had.

        C: cuStreamGetId
        """
        return int(in_context(driver.cuStreamGetId, self.handle))

    @property
    def priority(self) -> int:
        """Lower numbers run first.

        C: cuStreamGetPriority
        """
        return int(in_context(driver.cuStreamGetPriority, self.handle))

    @property
    def nonblocking(self) -> bool:
        """Whether it runs beside the legacy default stream.

        C: cuStreamGetFlags
        """
        return bool(in_context(driver.cuStreamGetFlags, self.handle) & 1)

    @property
    def owning_context(self) -> Context:
        """The context it belongs to; of a default stream, the current one.

        C: cuStreamGetCtx
        """
        return Context(in_context(driver.cuStreamGetCtx, self.handle))

    @property
    def device(self) -> Device:
        """The device it is on.

        C: cuStreamGetDevice, or on drivers before 12.8 that of its context
        """
        if raw.available("cuStreamGetDevice"):
            return Device(in_context(driver.cuStreamGetDevice, self.handle))
        return self.owning_context.device

    # -- its work

    def synchronize(self) -> None:
        """Wait until everything in it is done; errors of kernels surface here.

        C: cuStreamSynchronize
        """
        in_context(driver.cuStreamSynchronize, self.handle)
        if pending:
            pending.flush()

    @property
    def done(self) -> bool:
        """Whether everything in it is done.

        C: cuStreamQuery
        """
        current_context()
        code = driver.cuStreamQuery.raw(self.handle)
        if code not in (0, NOT_READY):
            driver.check(code, "cuStreamQuery")
        return bool(code == 0)

    def record(self, event: Event | None = None) -> Event:
        """Let *event* happen when all present work of the stream is done; returns it.

        Args:
            event: by default a new one, with timing.

        C: cuEventRecord
        """
        if event is None:
            event = Event()
        if not isinstance(event, Event):
            raise TypeError(f"record takes an Event, not {event!r}")
        event.record(self)
        return event

    def wait(self, other: object, external: bool = False) -> None:
        """Let later work of the stream wait for an event, or for the present work of a stream.

        Args:
            other: an Event or a Stream; or the handle of an event.
            external: only while this stream is being captured: the graph waits for the event when
                it runs, which something outside of it records.

        C: cuStreamWaitEvent
        """
        if hasattr(other, "__cuda_stream__"):
            with Event(timing=False) as event:
                event.record(other)
                self.wait(event)
            return
        flags = WAIT_EXTERNAL if external else 0
        in_context(driver.cuStreamWaitEvent, self.handle, event_handle(other), flags)

    def call(self, function: Callable[..., object] | Any, *arguments: Any) -> None:
        """Call a function on the host when all present work of the stream is done.

        While the stream is captured, it is called at each launch of the graph instead. Later work
        waits until it returns. It runs in a thread of the driver and must make no CUDA call and
        wait for no CUDA work; it is not called if the context is lost. An exception in it goes to
        ``threading.excepthook``.

        Args:
            function: a Python callable, kept alive until it has run; or a C function
                ``void f(void*)``, as its address or a ctypes function.
            arguments: of the callable; of a C function the address that it takes, or nothing.

        Raises:
            TypeError: it is no function.

        C: cuLaunchHostFunc
        """
        call = callback.host_call(function, arguments)
        graph = capture.capturing_graph(self.handle)
        if graph:
            keeper.keep(graph, call)
        else:
            callback.until_run(call)
        try:
            in_context(driver.cuLaunchHostFunc, self.handle, call.function, call.data)
        except BaseException:
            callback.forget(call)
            raise

    def operate(self, operations: Any) -> None:
        """Write and wait for several numbers in memory, as one operation.

        Args:
            operations: a ``MemoryOperations``.

        Raises:
            TypeError: it is none.
            ValueError: it is empty.

        C: cuStreamBatchMemOp_v2
        """
        array = getattr(operations, "array", None)
        if array is None:
            raise TypeError(f"{operations!r} is no MemoryOperations")
        in_context(driver.cuStreamBatchMemOp, self.handle, len(array), array, 0)
        capture.note(self, operations)

    def write_value(self, memory: object, value: int, width: int = 4) -> None:
        """Write a number to memory when all present work of the stream is done.

        Args:
            memory: device memory or a device address, a multiple of *width*.
            width: of the number in bytes, 4 or 8.

        C: cuStreamWriteValue32_v2, cuStreamWriteValue64_v2
        """
        function = driver.cuStreamWriteValue64 if width == 8 else driver.cuStreamWriteValue32
        address, value = memory_operation(memory, value, width)
        in_context(function, self.handle, address, value, 0)

    def wait_value(
        self,
        memory: object,
        value: int,
        width: int = 4,
        condition: str = ">=",
        flush: bool = False,
    ) -> None:
        """Let later work of the stream wait until a number in memory is as wanted.

        Something else must change it, or the stream waits for ever.

        Args:
            memory: device memory or a device address, a multiple of *width*.
            width: of the number in bytes, 4 or 8.
            condition: ">=", as signed numbers and modulo 2**(8 width); "=="; "&": they have a bit
                in common; "nor": a bit is 0 in both.
            flush: whether remote writes that came before are visible afterwards.

        C: cuStreamWaitValue32_v2, cuStreamWaitValue64_v2
        """
        if condition not in CONDITIONS:
            raise ValueError(f"condition={condition!r}: it is one of {', '.join(CONDITIONS)}")
        flags = CONDITIONS[condition] | (FLUSH if flush else 0)
        function = driver.cuStreamWaitValue64 if width == 8 else driver.cuStreamWaitValue32
        address, value = memory_operation(memory, value, width)
        in_context(function, self.handle, address, value, flags)

    # -- captures

    def capture(
        self,
        mode: str = "global",
        graph: Graph | None = None,
        after: Iterable[Node | Edge] | Node = (),
    ) -> AbstractContextManager[Graph]:
        """Let what the stream is given inside ``with`` become a graph instead of being done.

            with stream.capture() as graph:
                kernel.launch(4, 256, out, x, stream=stream)
            graph.instantiate().launch(stream)

        Streams that wait for this one take part; it must wait for them before the end. The capture
        ends in any case; if it failed, or an exception leaves the block, the graph is closed.
        Releases wait until the end. The graph keeps alive what launches, copies and host functions
        of this package use, but not memory of other libraries, of pools and of the host that
        prepared launches are given: see ``Graph.keep``.

        Args:
            mode: what is forbidden meanwhile, because it could disturb the capture: "global": to
                this and other threads, "thread_local": to this one, "relaxed": nothing.
            graph: to add to; by default a new one. Drivers may destroy it if the capture fails, and
                then it is closed.
            after: the nodes of *graph* that come before the first work.

        Raises:
            ValueError: it is the legacy default stream, or there is no such mode.
            CudaError: the stream is captured already; at the end: the capture failed.

        C: cuStreamBeginCaptureToGraph, cuStreamEndCapture
        """
        return capture.captured(self.handle, mode, graph, after)

    @property
    def capture_info(self) -> CaptureInfo | None:
        """The capture that it takes part in; None if in none.

        C: cuStreamGetCaptureInfo_v3
        """
        return capture.capture_info(self.handle)

    def capture_after(self, nodes: Iterable[Node | Edge] | Node, replace: bool = True) -> None:
        """Choose what the next captured work comes after.

        Args:
            nodes: of the graph that is filled, see ``capture_info``.
            replace: whether instead of what it would come after, or as well.

        Raises:
            ValueError: the stream is not captured, or a node is of another graph.

        C: cuStreamUpdateCaptureDependencies_v2
        """
        info = self.capture_info
        if info is None or info.graph is None:
            raise ValueError("the stream is not being captured")
        handles, edges, count = info.graph.ordering(nodes)
        update = driver.cuStreamUpdateCaptureDependencies
        in_context(update, self.handle, handles, edges, count, int(bool(replace)))

    # -- attributes

    @property
    def attributes(self) -> LaunchAttributes:
        """A mapping of priority, synchronization_policy, access_policy_window, mem_sync_domain...

        C: cuStreamGetAttribute, cuStreamSetAttribute
        """
        get, change = driver.cuStreamGetAttribute, driver.cuStreamSetAttribute
        return LaunchAttributes(STREAM, self, get, change)

    def copy_attributes(self, source: object) -> None:
        """Take over all attributes of another stream.

        C: cuStreamCopyAttributes
        """
        in_context(driver.cuStreamCopyAttributes, self.handle, stream_handle(source))


def memory_operation(memory: Any, value: int, width: int) -> tuple[int, int]:
    """The checked address and value of an operation on one number in device memory.

    Raises:
        TypeError: one of them is no number.
        ValueError: the width is not 4 or 8, the address is not a multiple of it, or the value or
            the memory is too small.
    """
    if width not in (4, 8):
        raise ValueError(f"width={width!r}: a number has 4 or 8 bytes")
    address = operator.index(getattr(only(memory, *MEMORY), "handle", memory))
    if address % width or not 0 < address < 1 << 64:
        raise ValueError(f"the address {address:#x} is no positive multiple of {width}")
    if getattr(memory, "nbytes", width) < width:
        raise ValueError(f"the memory has {memory.nbytes} bytes, the number needs {width}")
    value = operator.index(value)
    if not -(1 << (8 * width - 1)) <= value < 1 << (8 * width):
        raise ValueError(f"{value} does not fit into {width} bytes")
    return address, value & ((1 << 8 * width) - 1)


Stream.legacy = Stream.adopt(1)
Stream.per_thread = Stream.adopt(2)
