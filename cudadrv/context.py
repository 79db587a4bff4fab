"""The current context, and what every object in a context shares: a handle, close, a finalizer."""

from __future__ import annotations

import ctypes
import sys
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cudadrv import checks, driver, library, raw
from cudadrv.cleanup import pending, relaxed
from cudadrv.context_state import InContext, generation
from cudadrv.device import Context, Device
from cudadrv.errors import STICKY, ClosedError, CudaError
from cudadrv.process_local import only

if TYPE_CHECKING:
    from typing_extensions import Self


NOT_INITIALIZED, INVALID_CONTEXT = 3, 201
# Results that say the object is gone already, with its context or with the driver.
GONE = STICKY | {4, NOT_INITIALIZED, 101, INVALID_CONTEXT, 400}


def current_context() -> Context:
    """The current context of this thread; if there is none, device 0's primary one becomes it.

    C: cuCtxGetCurrent
    """
    driver.init()
    handle = driver.cuCtxGetCurrent()
    if handle:
        return Context(handle)
    context = Device(0).primary_context()
    context.set_current()
    return context


def in_context(call: Callable[..., Any], *arguments: Any) -> Any:
    """Make a driver call; in a thread that has no current context yet, after giving it one."""
    try:
        return call(*arguments)
    except CudaError as error:
        if error.code not in (NOT_INITIALIZED, INVALID_CONTEXT) or Context.current():
            raise
    current_context()
    return call(*arguments)


class CudaWarning(RuntimeWarning):
    """The driver refused to release something that was garbage-collected."""


def release(
    context: int, made: object, function: str | Callable[..., int], *arguments: Any
) -> None:
    """Release something in its context, from wherever the garbage collector happens to run.

    While a capture of ours forbids it, or ``defer_cleanup()``, it waits. Nothing is raised: at
    exit, after a fork and in a lost context there is nothing to release.

    Args:
        made: what ``origin`` of the context was when the object was made.
        function: the driver function, by its name in ``raw``, or one that returns a CUresult.
        arguments: what it takes: ints, or Resources, of which a closed one counts as 0.
    """
    if sys.is_finalizing() or made != origin(context):
        return
    if pending.held:
        pending.add(release, context, made, function, *arguments)
        return
    given = [(each._handle or 0) if isinstance(each, Resource) else each for each in arguments]
    try:
        call = getattr(raw, function) if isinstance(function, str) else function
        if raw.cuCtxPushCurrent(context):
            return
        code = relaxed(call, *given)
        raw.cuCtxPopCurrent(ctypes.byref(ctypes.c_void_p()))
    except RuntimeError:
        return
    if code and code not in GONE:
        name, handle = getattr(function, "__name__", function), f"{given[0]:#x}"
        warnings.warn(f"{name} of {handle} returned {code}", CudaWarning, stacklevel=2)


def origin(context: int) -> tuple[object, int]:
    """What tells a context from a later one with the same handle: the driver, a generation."""
    return library.opened(), generation(context)


class Resource(InContext):
    """Something that lives in a context: it has a handle until it is closed.

    Attributes:
        context: the handle of its context.
    """

    # A slot, so that compiled launchers find it.
    __slots__ = ("__dict__", "__weakref__", "_handle")

    # What releases it: a driver function by the name it has in ``raw``, or a static method that
    # returns a CUresult.
    RELEASE: Any = ""

    def __init__(
        self,
        handle: int,
        context: int = 0,
        owned: bool = True,
        *more: int | Resource,
        lives: object = None,
    ) -> None:
        """Take a handle.

        Args:
            context: the handle of the context that it lives in.
            owned: whether closing it releases it.
            more: what RELEASE takes after the handle; Resources among it are kept alive till then.
            lives: what is to be garbage for the release, if not this object.
        """
        self._handle = handle
        self.context = context
        self._finalizer: weakref.finalize[..., Any] | None = None
        if owned:
            made = origin(context)
            self._finalizer = weakref.finalize(
                self if lives is None else lives,
                release,
                context,
                made,
                self.RELEASE,
                handle,
                *more,
            )
            self._finalizer.atexit = False

    def __repr__(self) -> str:
        # An object that could not be made has no handle.
        handle = getattr(self, "_handle", None)
        shown = "closed" if handle is None else f"{handle:#x}"
        return f"{type(self).__name__}({shown})"

    @property
    def handle(self) -> int:
        """The driver's handle.

        Raises:
            ClosedError: the object was closed, or its context was.
        """
        if self._handle is None:
            raw.check_process()
            raise ClosedError(
                f"this {type(self).__name__} was closed, or its context; make a new one"
            )
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether close() was called, or its context was closed."""
        return self._handle is None

    @property
    def owned(self) -> bool:
        """Whether closing it releases something; adopted handles and views own nothing."""
        return self._finalizer is not None

    def close(self) -> None:
        """Release it now instead of when it is garbage-collected; may be called twice.

        During a capture the release itself waits for its end.
        """
        self._handle = None
        if self._finalizer is not None:
            self._finalizer()

    def __enter__(self) -> Self:
        _ = self.handle
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def stream_handle(stream: object) -> int:
    """The handle of a stream of ours or of another library; None is the legacy default stream.

    Raises:
        TypeError: it is no stream.
        ValueError: the handle is negative or too large to be one.
    """
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        if not 0 <= stream < 1 << 64:
            raise ValueError(f"{stream} is not the handle of a stream")
        return stream
    protocol = getattr(only(stream, "Stream"), "__cuda_stream__", None)
    if protocol is not None:
        found = protocol() if callable(protocol) else protocol
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(f"__cuda_stream__ of {stream!r} gives {found!r}, not (0, handle)")
        return checks.address(found[1], "the handle of __cuda_stream__")
    for attribute in ("handle", "cuda_stream", "ptr"):
        value = getattr(stream, attribute, None)
        if value is not None:
            return checks.address(getattr(value, "value", value) or 0, attribute)
    raise TypeError(f"{stream!r} is no stream: pass a cudadrv.Stream, a handle or None")
