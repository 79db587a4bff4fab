"""Events: points in a stream that can be waited for and timed."""

from __future__ import annotations

import operator

from cudadrv import driver, raw
from cudadrv.cleanup import pending
from cudadrv.context import Resource, current_context, in_context, stream_handle
from cudadrv.errors import CudaError
from cudadrv.process_local import only

NOT_READY = 600
BLOCKING_SYNC, DISABLE_TIMING, INTERPROCESS = 1, 2, 4
RECORD_EXTERNAL = 1
IPC_BYTES = 64


class Event(Resource):
    """A point in a stream. It counts as done until it is recorded.

    Attributes:
        timing: whether ``elapsed_ms`` can be asked, as far as is known.
        blocking: whether ``synchronize`` sleeps instead of spinning.
        interprocess: whether other processes can use it.
    """

    RELEASE = "cuEventDestroy"

    def __init__(
        self, timing: bool = True, blocking: bool = False, interprocess: bool = False
    ) -> None:
        """Make an event in the current context.

        Args:
            timing: whether ``elapsed_ms`` will be asked; without, it is cheaper.
            blocking: whether ``synchronize`` sleeps instead of spinning.
            interprocess: whether ``ipc_handle`` will be asked; needs ``timing=False``.

        Raises:
            ValueError: it is to have timing and to be for other processes.

        C: cuEventCreate, cuEventDestroy_v2
        """
        if interprocess and timing:
            raise ValueError("an event for other processes has no timing: pass timing=False")
        self.timing, self.blocking, self.interprocess = timing, blocking, interprocess
        flags = (0 if timing else DISABLE_TIMING) | (BLOCKING_SYNC if blocking else 0)
        flags |= INTERPROCESS if interprocess else 0
        context = current_context().handle
        super().__init__(driver.cuEventCreate(flags), context)

    @classmethod
    def adopt(cls, event: object, timing: bool = True) -> Event:
        """Use an event that another library made and owns.

        Args:
            event: its handle, or an object with ``handle``, ``cuda_event`` or ``ptr``, which is
                kept alive.
            timing: whether it was made with timing.

        Raises:
            TypeError: none of these.
        """
        if isinstance(event, Event):
            return event
        return cls._take(event_handle(event), timing, False, event)

    @classmethod
    def _take(
        cls, handle: int, timing: bool, interprocess: bool, keep: object = None, context: int = 0
    ) -> Event:
        made = cls.__new__(cls)
        made.timing, made.blocking, made.interprocess = timing, False, interprocess
        made._foreign = keep
        Resource.__init__(made, handle, context, owned=bool(context))
        return made

    _foreign: object = None

    def ipc_handle(self) -> bytes:
        """64 bytes that another process passes to ``Event.open_ipc``.

        Raises:
            ValueError: it was made without ``interprocess=True``.

        C: cuIpcGetEventHandle
        """
        if not self.interprocess:
            raise ValueError("only an event made with interprocess=True has an IPC handle")
        return bytes(driver.cuIpcGetEventHandle(self.handle))

    @classmethod
    def open_ipc(cls, handle: bytes) -> Event:
        """The event of another process whose ``ipc_handle()`` gave these bytes.

        Raises:
            TypeError: it is not bytes.
            ValueError: it has not 64 of them.

        C: cuIpcOpenEventHandle
        """
        if not isinstance(handle, (bytes, bytearray)):
            raise TypeError(f"{driver.short(handle)} is no IPC handle: pass 64 bytes")
        if len(handle) != IPC_BYTES:
            raise ValueError(f"an IPC handle has {IPC_BYTES} bytes, this has {len(handle)}")
        context = current_context().handle
        given = raw.CUipcEventHandle.from_buffer_copy(handle)
        return cls._take(driver.cuIpcOpenEventHandle(given), False, True, context=context)

    def record(self, stream: object = None, external: bool = False) -> None:
        """Let the event happen when all present work of *stream* is done.

        Args:
            stream: a Stream, a handle or another library's stream; None is the default stream.
            external: only while the stream is being captured: the graph records the event when it
                runs, for others to wait for; without, it only orders the captured work.

        C: cuEventRecord, cuEventRecordWithFlags
        """
        if external:
            function, more = driver.cuEventRecordWithFlags, (RECORD_EXTERNAL,)
            in_context(function, self.handle, stream_handle(stream), *more)
        else:
            in_context(driver.cuEventRecord, self.handle, stream_handle(stream))

    def synchronize(self) -> None:
        """Wait until it has happened.

        C: cuEventSynchronize
        """
        in_context(driver.cuEventSynchronize, self.handle)
        if pending:
            pending.flush()

    @property
    def done(self) -> bool:
        """Whether it has happened.

        C: cuEventQuery
        """
        code = driver.cuEventQuery.raw(self.handle)
        if code not in (0, NOT_READY):
            driver.check(code, "cuEventQuery")
        return bool(code == 0)

    def elapsed_ms(self, start: Event) -> float:
        """Milliseconds from *start* to this event, with half a microsecond of resolution.

        Raises:
            TypeError: *start* is no Event.
            ValueError: one of the two was made with ``timing=False``, was never recorded or has
                not happened yet.

        C: cuEventElapsedTime_v2
        """
        if not isinstance(start, Event):
            raise TypeError(f"elapsed_ms takes the Event to count from, not {start!r}")
        if not (self.timing and start.timing):
            raise ValueError("elapsed_ms needs both events made with timing=True")
        try:
            return float(driver.cuEventElapsedTime(start.handle, self.handle))
        except CudaError as error:
            if error.code == NOT_READY:
                raise ValueError("an event has not happened yet: synchronize() it first") from error
            if error.name == "CUDA_ERROR_INVALID_HANDLE":
                raise ValueError("an event was never recorded: record() both first") from error
            raise


def event_handle(event: object) -> int:
    """The handle of an event of ours or of another library.

    Raises:
        TypeError: it is no event.
    """
    if isinstance(event, int) and not isinstance(event, bool):
        if not 0 < event < 1 << 64:
            raise ValueError(f"{event} is not the handle of an event")
        return event
    only(event, "Event")
    for attribute in ("handle", "cuda_event", "ptr"):
        value = getattr(event, attribute, None)
        if value is not None:
            return operator.index(getattr(value, "value", value))
    raise TypeError(f"{event!r} is no event: pass a cudadrv.Event or a handle")
