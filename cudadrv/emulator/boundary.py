"""Python functions as C functions: arguments and results converted as raw's table declares them."""

from __future__ import annotations

import ctypes
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from cudadrv import raw
from cudadrv.raw import table, types

from . import state
from .errors import PtxError
from .status import Status

Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}
_BEFORE_INIT: set[str] = set()
_VARIANTS = ("_ptds", "_ptsz")
_strings: dict[str, Any] = {}


def exported(*others: str, before_init: bool = False) -> Callable[[Function], Function]:
    """Make a function what the exported symbol of its name does, and *others* too.

    It takes the in-parameters that cuda.h declares: handles as objects, strings as str. It returns
    the out-parameters, a tuple if there are several; None leaves one alone. It raises Status.
    """

    def add(function: Function) -> Function:
        for name in (function.__name__, *others):
            FUNCTIONS[name] = function
            if before_init:
                _BEFORE_INIT.add(name)
        return function

    return add


# While streams are captured: called with the name and the arguments of each call, it says whether
# the call was recorded, and its results.
interceptors: list[Callable[[str, list[Any]], tuple[bool, Any]]] = []


def text(value: str) -> int:
    """The address of a C string that lives as long as the process."""
    if value not in _strings:
        _strings[value] = ctypes.create_string_buffer(value.encode())
    return ctypes.addressof(_strings[value])


def _string(address: int | None) -> str:
    if not address:
        raise Status("INVALID_VALUE")
    return ctypes.string_at(address).decode(errors="replace")


def _device(ordinal: int) -> int:
    if ordinal != 0:
        raise Status("INVALID_DEVICE")
    return ordinal


def _context(handle: int | None) -> state.Context | None:
    return state.find(state.Context, handle) if handle else None


# Strings that may be NULL: their functions get the address.
OPTIONAL = {("cuLinkAddData_v2", "name")}
# C type of a parameter -> what turns it into what the function takes.
CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "const char*": _string,
    "CUdevice": _device,
    "CUcontext": _context,
    "CUstream": state.stream,
    "CUevent": partial(state.find, state.Event),
}


class Callback:
    """The C function of one exported symbol."""

    def __init__(self, name: str, function: Function) -> None:
        self.name = name
        self.function = function
        self.needs_init = name not in _BEFORE_INIT and function is not _refuse
        self.steps: list[tuple[bool, Any]] = []
        for is_out, spelled, parameter in raw.parameters(name):
            if is_out:
                self.steps.append((True, types.ctype(spelled[:-1])))
            else:
                optional = (name, parameter) in OPTIONAL
                self.steps.append((False, None if optional else CONVERTERS.get(spelled)))
        self.c_function = raw.prototype(name)(self.call)
        self.address = ctypes.cast(self.c_function, ctypes.c_void_p).value or 0

    def call(self, *given: Any) -> int:
        """What C calls: a CUresult, never an exception."""
        try:
            return self._call(given)
        except Status as status:
            return status.code
        except PtxError as error:
            # In a kernel that is translated only now, at its first launch.
            print(f"cudadrv emulator: {self.name}: {error}", file=sys.stderr)
            return Status("INVALID_PTX").code
        except BaseException:
            print(f"cudadrv emulator: internal error in {self.name}", file=sys.stderr)
            traceback.print_exc()
            return Status("UNKNOWN").code

    def _call(self, given: tuple[Any, ...]) -> int:
        if self.needs_init and not state.device.initialized:
            raise Status("NOT_INITIALIZED")
        arguments, outs = [], []
        for value, (is_out, how) in zip(given, self.steps, strict=True):
            if is_out:
                outs.append((value, how))
            else:
                arguments.append(how(value) if how else value)
        if len(outs) == 1 and not outs[0][0]:
            raise Status("INVALID_VALUE")
        recorded, results = False, None
        if state.captures:
            recorded, results = interceptors[0](self.name, arguments)
        try:
            if not recorded:
                results = self.function(*arguments)
        except Status as status:
            if status.results is not None:
                _store_all(outs, status.results)
            raise
        _store_all(outs, results)
        return 0


def _store_all(outs: list[tuple[int, Any]], results: Any) -> None:
    if len(outs) == 1:
        results = (results,)
    for (address, kind), result in zip(outs, results or (), strict=False):
        if address and result is not None:
            _store(address, kind, result)


def _store(address: int, kind: Any, result: Any) -> None:
    if isinstance(result, (ctypes.Structure, ctypes.Union)):
        ctypes.memmove(address, ctypes.byref(result), ctypes.sizeof(result))
        return
    if isinstance(result, state.Object):
        result = result.handle
    elif isinstance(result, str):
        result = text(result)
    kind.from_address(address).value = result


def _refuse(*_: object) -> None:
    raise Status("NOT_SUPPORTED")


class Emulator:
    """The software driver; what raw opens in place of libcuda."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the garbage collector may come in between
        self._callbacks: dict[str, Callback] = {}

    def __repr__(self) -> str:
        return "Emulator()"

    def address(self, name: str, version: int) -> int:
        """The C address of the exported function *name*; 0 if the emulator does not have it."""
        function = FUNCTIONS.get(name)
        for suffix in _VARIANTS:
            if function is None and name.endswith(suffix):
                function = FUNCTIONS.get(name[: -len(suffix)])
        if function is None or name not in table.FUNCTIONS:
            return 0
        return self._callback(name, function)

    def refusal(self, name: str) -> int:
        """The C address of a function that the emulator lacks: it says CUDA_ERROR_NOT_SUPPORTED."""
        return self._callback(name, _refuse)

    def _callback(self, name: str, function: Function) -> int:
        with self._lock:
            if name not in self._callbacks:
                self._callbacks[name] = Callback(name, function)
            return self._callbacks[name].address

    def find(self, name: str, version: int) -> int:
        """The newest ABI version of *name* that was there in CUDA *version*."""
        best = (-1, "")
        for known in (name, *(f"{name}_v{i}" for i in range(2, 9))):
            since = table.FUNCTIONS.get(known, (version + 1,))[0]
            if since <= version and (known in FUNCTIONS):
                best = max(best, (since, known))
        return self.address(best[1], version) if best[1] else 0


# One for the process, so that a function has one address.
emulator = Emulator()
