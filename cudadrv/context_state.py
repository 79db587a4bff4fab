"""A context's handle, its place on the thread's stack, and its settings."""

from __future__ import annotations

import gc
import operator
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cudadrv import attributes, checks, driver, raw
from cudadrv.errors import ClosedError, CudaError
from cudadrv.process_local import ProcessLocal, only

if TYPE_CHECKING:
    from typing_extensions import Self

ALREADY_ENABLED, NOT_ENABLED = 704, 705
# How often the context of each handle was destroyed or reset: what was made before is gone, and
# must not be released into a later context at the same address.
_ends: dict[int, int] = {}


def generation(context: int) -> int:
    """A number that changes when the context with this handle ends."""
    return _ends.get(context, 0)


def end(context: int) -> None:
    """Note that the context with this handle ends now."""
    _ends[context] = _ends.get(context, 0) + 1


class InContext(ProcessLocal):
    """What lives in a context, and has no handle any more when that has ended."""

    __slots__ = ()

    context: int
    _handle: int | None


def close_all(context: int) -> None:
    """Close what lives in a context that is about to be destroyed, without releasing it.

    Launches look at handles alone, so it is not enough to compare generations.
    """
    # Contexts end seldom: looking at everything costs less than a list of all that is made.
    for each in gc.get_objects():
        if issubclass(type(each), InContext) and getattr(each, "context", 0) == context:
            each._handle = None


class ContextState(ProcessLocal):
    """What of a context needs no device: see ``cudadrv.Context``."""

    # What the context lives as long as, if it has no life of its own.
    _owner: object = None

    def __init__(self, handle: int, owned: bool = False) -> None:
        """Take the handle of an existing context, from wherever; *owned*: close() destroys it."""
        self._handle = handle
        self._made = generation(handle)
        self.owned = owned

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'closed' if self.closed else hex(self._handle)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContextState):
            return False
        return (other._handle, other._made) == (self._handle, self._made)

    def __hash__(self) -> int:
        return hash(("Context", self._handle))

    @property
    def handle(self) -> int:
        """The driver's handle.

        Raises:
            ClosedError: the context was closed, or its device was reset.
        """
        if self.closed:
            raise ClosedError("this context was closed, or its device was reset; take a new one")
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether this process destroyed it."""
        return generation(self._handle) != self._made

    # -- the stack of this thread

    @property
    def is_current(self) -> bool:
        """Whether it is the current context of this thread."""
        return not self.closed and bool(driver.cuCtxGetCurrent() == self._handle)

    def set_current(self) -> None:
        """Make it this thread's current context, in place of the present one.

        C: cuCtxSetCurrent
        """
        driver.cuCtxSetCurrent(self.handle)

    def push(self) -> None:
        """Make it current, to be undone with pop(); ``with context:`` does both.

        C: cuCtxPushCurrent_v2
        """
        driver.cuCtxPushCurrent(self.handle)

    def pop(self) -> None:
        """Make the context current again that was current before push().

        Raises:
            RuntimeError: it is not the current one.

        C: cuCtxPopCurrent_v2
        """
        if not self.is_current:
            raise RuntimeError(f"pop() of {self!r}, but current is {driver.cuCtxGetCurrent():#x}")
        driver.cuCtxPopCurrent()

    def __enter__(self) -> Self:
        self.push()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # close() inside of the block has taken it off the stack.
        if not self.closed:
            driver.cuCtxPopCurrent()

    def close(self) -> None:
        """Destroy the context if it was made by ``create_context``; may be called twice.

        It is taken off this thread's stack; what lives in it is gone, and using it a ClosedError.
        That is also so for pinned and managed memory: NumPy arrays in it, which nothing can tell,
        must not be touched any more.

        C: cuCtxDestroy_v2
        """
        if not self.owned:
            return
        self.owned = False
        while self.is_current:
            driver.cuCtxPopCurrent()
        end(self._handle)
        close_all(self._handle)
        driver.cuCtxDestroy(self._handle)

    # -- what is in it

    def synchronize(self) -> None:
        """Wait until everything started in it is done; errors of kernels surface here.

        C: cuCtxSynchronize
        """
        with self:
            driver.cuCtxSynchronize()

    def mem_info(self) -> tuple[int, int]:
        """Bytes of device memory that are free, and that there are.

        C: cuMemGetInfo_v2
        """
        with self:
            free, total = driver.cuMemGetInfo()
        return free, total

    def record(self, event: Any) -> None:
        """Let *event* happen when everything started in the context is done.

        Raises:
            NotSupportedByDriver: the driver is older than 12.5.

        C: cuCtxRecordEvent
        """
        driver.cuCtxRecordEvent(self.handle, _handle_of(event, "an event"))

    def wait(self, event: Any) -> None:
        """Let everything started in the context from now on wait for *event*.

        Raises:
            NotSupportedByDriver: the driver is older than 12.5.

        C: cuCtxWaitEvent
        """
        driver.cuCtxWaitEvent(self.handle, _handle_of(event, "an event"))

    def reset_persisting_l2(self) -> None:
        """Give the part of the L2 cache that persisting accesses hold back to all others.

        C: cuCtxResetPersistingL2Cache
        """
        with self:
            driver.cuCtxResetPersistingL2Cache()

    # -- settings

    @property
    def id(self) -> int:
        """A number that no other context of this process has or had.

        C: cuCtxGetId
        """
        return int(driver.cuCtxGetId(self.handle))

    @property
    def api_version(self) -> int:
        """The version of the interface it was made with.

        C: cuCtxGetApiVersion
        """
        return int(driver.cuCtxGetApiVersion(self.handle))

    @property
    def limits(self) -> attributes.Limits:
        """Its limits, to be read and set: ``context.limits["STACK_SIZE"] = 4096``.

        C: cuCtxGetLimit, cuCtxSetLimit
        """
        return attributes.Limits(self)

    @property
    def flags(self) -> frozenset[str]:
        """How it was made: "sched_spin", "map_host", ...; see ``attributes.context_flags``.

        C: cuCtxGetFlags, cuCtxSetFlags (driver 12.1)
        """
        with self:
            return attributes.context_flag_names(driver.cuCtxGetFlags())

    @flags.setter
    def flags(self, flags: int | str | Iterable[str]) -> None:
        number = attributes.context_flags(flags)
        with self:
            driver.cuCtxSetFlags(number)

    @property
    def cache_config(self) -> str:
        """What its kernels prefer where L1 and shared memory share their place.

        One of "prefer_none", "prefer_shared", "prefer_l1", "prefer_equal".

        C: cuCtxGetCacheConfig, cuCtxSetCacheConfig
        """
        with self:
            return attributes.cache_name(driver.cuCtxGetCacheConfig())

    @cache_config.setter
    def cache_config(self, prefer: str) -> None:
        number = checks.choice(prefer, attributes.CACHES, "cache_config")
        with self:
            driver.cuCtxSetCacheConfig(number)

    @property
    def priority_range(self) -> tuple[int, int]:
        """The priorities of streams: the least urgent, which is 0, and the most urgent one.

        C: cuCtxGetStreamPriorityRange
        """
        with self:
            least, greatest = driver.cuCtxGetStreamPriorityRange()
        return least, greatest

    @property
    def sm_count(self) -> int | None:
        """How many multiprocessors its kernels may use; None if it is not restricted.

        C: cuCtxGetExecAffinity
        """
        if not raw.available("cuCtxGetExecAffinity"):
            return None
        with self:
            try:
                found = driver.cuCtxGetExecAffinity(raw.CU_EXEC_AFFINITY_TYPE_SM_COUNT)
            except CudaError as error:
                if error.code in attributes.UNKNOWN | {raw.CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY}:
                    return None
                raise
        return int(found.param.smCount.val)

    # -- other devices

    def enable_peer_access(self, other: ContextState) -> None:
        """Let kernels of this context use memory of *other*, on another device.

        Does nothing if they may already.

        Raises:
            ValueError: both are the same.
            CudaError: the devices cannot reach each other.

        C: cuCtxEnablePeerAccess
        """
        self._peer(driver.cuCtxEnablePeerAccess, other, (0,), ALREADY_ENABLED)

    def disable_peer_access(self, other: ContextState) -> None:
        """Undo ``enable_peer_access``; does nothing if there is none.

        C: cuCtxDisablePeerAccess
        """
        self._peer(driver.cuCtxDisablePeerAccess, other, (), NOT_ENABLED)

    def _peer(self, call: Any, other: ContextState, more: tuple[int, ...], harmless: int) -> None:
        if not isinstance(other, ContextState):
            raise TypeError(f"{other!r} is no context")
        if other == self:
            raise ValueError("a context needs no access to its own memory: pass another one")
        with self:
            code = call.raw(other.handle, *more)
        if code != harmless:
            driver.check(code, call.__name__)


def _handle_of(thing: Any, what: str) -> int:
    handle = getattr(only(thing, "Event"), "handle", thing)
    try:
        return operator.index(handle)
    except TypeError:
        raise TypeError(f"{driver.short(thing)} is not {what}") from None
