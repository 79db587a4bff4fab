"""Events: points in a stream that can be waited for and timed."""

from __future__ import annotations

from cudadrv import driver
from cudadrv.context import Resource, current_context, in_context
from cudadrv.errors import CudaError
from cudadrv.stream import NOT_READY, stream_handle

BLOCKING_SYNC, DISABLE_TIMING = 1, 2


class Event(Resource):
    """A point in a stream. It counts as done until it is recorded."""

    RELEASE = "cuEventDestroy"

    def __init__(self, timing: bool = True, blocking: bool = False) -> None:
        """Make an event in the current context.

        Args:
            timing: whether ``elapsed_ms`` will be asked; without, it is cheaper.
            blocking: whether ``synchronize`` sleeps instead of spinning.

        C: cuEventCreate
        """
        self.timing = timing
        flags = (0 if timing else DISABLE_TIMING) | (BLOCKING_SYNC if blocking else 0)
        context = current_context().handle
        super().__init__(driver.cuEventCreate(flags), context)

    def record(self, stream: object = None) -> None:
        """Let the event happen when all present work of *stream* is done.

        Args:
            stream: a Stream, a handle or another library's stream; None is the default stream.

        C: cuEventRecord
        """
        in_context(driver.cuEventRecord, self.handle, stream_handle(stream))

    def synchronize(self) -> None:
        """Wait until it has happened.

        C: cuEventSynchronize
        """
        driver.cuEventSynchronize(self.handle)

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
            ValueError: one of the two was made with ``timing=False``, was never recorded or has
                not happened yet.

        C: cuEventElapsedTime_v2
        """
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
