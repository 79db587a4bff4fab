"""Python functions that the driver calls from streams and graphs."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from cudadrv import checks, raw
from cudadrv.cleanup import pending


class HostCall:
    """A Python function with its arguments, as the driver can call it: a C function and a number.

    An exception in it goes to ``threading.excepthook``: it runs in a thread of the driver.

    Attributes:
        function: the address of the C function.
        data: what the C function takes.
    """

    def __init__(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self._call = functools.partial(function, *arguments)
        self.function, self.data = _enter()[1], next(_numbers)
        _known[self.data] = self

    def run(self) -> None:
        """What the driver calls."""
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001
            given = (type(error), error, error.__traceback__, None)
            threading.excepthook(threading.ExceptHookArgs(given))


class Foreign:
    """A C function for the driver to call, with the address that it takes."""

    def __init__(self, function: int, data: int) -> None:
        self.function = function
        self.data = data


# Kept here until they have run: calls of streams. Graphs keep theirs themselves.
_waiting: dict[int, HostCall] = {}
_known: weakref.WeakValueDictionary[int, HostCall] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_kept: dict[int, Any] = {}


@functools.cache
def _enter() -> tuple[Any, int]:
    """The one C function behind all of them, which lives as long as the process; its address."""

    def enter(number: int) -> None:
        # The driver's thread must make no CUDA call, as would the end of memory that dies here.
        with pending.hold(threading.get_ident(), flush=False):
            call = _waiting.pop(number, None) or _known.get(number)
            if call is None:
                call = HostCall(_gone, ())
            call.run()
            del call

    made = raw.CUhostFn(enter)
    return made, ctypes.cast(made, ctypes.c_void_p).value or 0


def _gone() -> None:
    raise RuntimeError("a graph ran a host function after the function had been let go")


def host_call(function: Any, arguments: tuple[Any, ...]) -> HostCall | Foreign:
    """What the driver is to call.

    Args:
        function: a Python callable; or a C function ``void f(void*)``, as its address or a ctypes
            function, which must exist until it has run.
        arguments: of the callable; of a C function the one address that it takes, or nothing.

    Raises:
        TypeError: it is neither, or a C function has other arguments.
    """
    address = _c_address(function)
    if address is None:
        if not callable(function):
            raise TypeError(f"{function!r} is no callable and no C function")
        return HostCall(function, arguments)
    if len(arguments) > 1:
        raise TypeError(f"a C function takes one address, not {arguments!r}")
    if not 0 < address < 1 << 64:
        raise ValueError(f"{address:#x} is not the address of a C function")
    return Foreign(address, checks.address(arguments[0] or 0) if arguments else 0)


def _c_address(function: Any) -> int | None:
    """The address of a C function; None for a Python one."""
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if not isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return None
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    # ctypes frees the code of a callback with its object.
    _kept[address] = function
    return address


def until_run(call: HostCall | Foreign) -> None:
    """Keep a Python function alive until it has run."""
    if isinstance(call, HostCall):
        _waiting[call.data] = call


def forget(call: HostCall | Foreign) -> None:
    """It will not run: the driver refused it."""
    _waiting.pop(call.data, None)
