"""Streams: queues of work on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from cudadrv import driver
from cudadrv.context import Resource, current_context, in_context

if TYPE_CHECKING:
    from cudadrv.event import Event

NOT_READY = 600


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

        C: cuStreamCreateWithPriority
        """
        context = current_context().handle
        handle = driver.cuStreamCreateWithPriority(int(nonblocking), priority)
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

    def synchronize(self) -> None:
        """Wait until everything in it is done; errors of kernels surface here.

        C: cuStreamSynchronize
        """
        in_context(driver.cuStreamSynchronize, self.handle)

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

    def record(self, event: Event) -> Event:
        """Let *event* happen when all present work of the stream is done; returns it.

        C: cuEventRecord
        """
        event.record(self)
        return event

    def wait(self, event: Event) -> None:
        """Let later work of the stream wait for *event*.

        C: cuStreamWaitEvent
        """
        in_context(driver.cuStreamWaitEvent, self.handle, event.handle, 0)


def stream_handle(stream: object) -> int:
    """The handle of a stream of ours or of another library; None is the legacy default stream.

    Raises:
        TypeError: it is no stream.
    """
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for attribute in ("handle", "cuda_stream", "ptr"):
        value = getattr(stream, attribute, None)
        if value is not None:
            return int(getattr(value, "value", value) or 0)
    raise TypeError(f"{stream!r} is no stream: pass a cudadrv.Stream, a handle or None")


Stream.legacy = Stream.adopt(1)
Stream.per_thread = Stream.adopt(2)
