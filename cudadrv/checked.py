"""Makes a checked function of a raw one: results returned, errors raised with what to do."""

from __future__ import annotations

import ctypes
import linecache
from collections.abc import Callable
from typing import Any

from cudadrv import library, raw
from cudadrv.errors import KINDS, STICKY, CudaError
from cudadrv.raw import types

__all__ = [
    "HINTS",
    "check",
    "describe",
    "driver_version",
    "error",
    "init",
    "is_available",
    "is_emulator",
    "names",
    "short",
]
# Result code -> what to do about it.
HINTS = {
    1: "one of the arguments is out of range",
    3: "call cudadrv.init() first; a forked process cannot use the CUDA of its parent",
    4: "the process is exiting: CUDA is gone already",
    34: "the library is the stub for linking: name the real driver in CUDADRV_DRIVER",
    100: "nvidia-smi and CUDA_VISIBLE_DEVICES show which devices this process can see",
    101: "cudadrv.devices() lists the devices there are",
    201: "no context is current in this thread, or it is gone: cudadrv.current_context() makes one",
    209: "the code has no part for this device: compile for its .arch, or ship PTX",
    218: "the assembler rejects the PTX: see the log",
    221: "the driver's PTX compiler library is not installed: load a cubin instead of PTX",
    222: "the PTX is newer than this driver reads: compile for an older PTX version, or to a cubin",
    400: "the handle was closed, or belongs to another context",
    500: 'it is not there; names of CUDA C++ are mangled unless declared extern "C"',
    700: "the kernel accessed memory it does not own; CUDADRV_DRIVER=emulator with "
    "CUDADRV_EMULATOR_CHECK=1 finds the access",
    701: "the block needs more registers or shared memory than the device has: use fewer threads",
    702: "the kernel ran longer than the display's watchdog allows: split the work",
    709: "the current context was closed or reset; Device(0).primary_context().set_current() makes "
    "another one current",
    716: "the kernel accessed an address that is not a multiple of the size it accessed",
    719: "the kernel crashed; CUDADRV_DRIVER=emulator with CUDADRV_EMULATOR_CHECK=1 may say where",
    720: "a cooperative launch must fit on the device at once: use fewer blocks",
    801: "the device or the driver does not support this",
    803: "the installed libcuda does not match the kernel module: reboot or reinstall the driver",
    900: "this is not allowed while a stream is being captured",
    906: "work of the default stream waits for streams that are being captured: use another one",
    907: "the event was recorded in a capture: it only orders the captured work",
}
LOST = "the context is lost: only a new process can use the device again"


def check(code: int, function: str, hint: str = "") -> None:
    """Raise what the result *code* of *function* means, if it is not CUDA_SUCCESS."""
    if code:
        raise error(code, function, hint)


def error(code: int, function: str, hint: str = "", kind: type[CudaError] | None = None) -> Any:
    """The exception for a result code, of the class that fits it unless *kind* says which.

    C: cuGetErrorString
    """
    name = names().get(code, "an unknown code")
    description = describe(code)
    hints = [hint, "" if hint else HINTS.get(code, ""), LOST if code in STICKY - {709} else ""]
    text = "; ".join(filter(None, hints))
    return (kind or KINDS.get(code, CudaError))(code, name, function, description, text)


def names() -> dict[int, str]:
    """Every result code and its name."""
    return {member.value: member.name for member in raw.CUresult}


def describe(code: int) -> str:
    """What the driver says *code* means; empty if it does not know.

    C: cuGetErrorString
    """
    text = ctypes.c_char_p()
    try:
        failed = raw.cuGetErrorString(code, ctypes.byref(text))
    except RuntimeError:
        return ""
    return "" if failed or not text.value else text.value.decode(errors="replace")


def checked(name: str) -> Callable[..., Any]:
    """Make the checked function *name*, whose signature is that of cuda.h without the results."""
    exported = raw.symbol(name)
    parameters = raw.parameters(name)
    scope: dict[str, Any] = {
        "ArgumentError": ctypes.ArgumentError,
        "byref": ctypes.byref,
        "call": raw.function(name),
        "fail": _fail,
    }
    taken, passed, returned, lines = [], [], [], []
    for is_result, spelled, parameter in parameters:
        variable = f"{parameter}_" if parameter in RESERVED else parameter
        if not is_result:
            taken.append(variable)
            passed.append(variable)
            continue
        kind = ctypes.c_char_p if spelled == "const char**" else types.ctype(spelled[:-1])
        scope[f"make_{variable}"] = kind
        lines.append(f"    {variable} = make_{variable}()")
        passed.append(f"byref({variable})")
        returned.append(_value(variable, kind))
    shown = ", ".join(f"{each}={each}" for each in taken)
    source = [
        f"def {name}({', '.join(taken)}):",
        *lines,
        "    try:",
        f"        code = call({', '.join(passed)})",
        "    except ArgumentError as problem:",
        f"        raise TypeError(f'{exported}: {{problem}}') from None",
        "    if code:",
        f"        fail(code, {exported!r}, dict({shown}))",
        *([f"    return {', '.join(returned)}"] if returned else []),
    ]
    filename = f"<cudadrv.driver.{name}>"
    text = "\n".join(source) + "\n"
    exec(compile(text, filename, "exec"), scope)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    function: Any = scope[name]
    function.__module__ = "cudadrv.driver"
    function.raw = scope["call"]
    return function  # type: ignore[no-any-return]


RESERVED = frozenset({"from", "type", "input", "call", "byref", "fail", "code", "dict", "problem"})


def _value(variable: str, kind: Any) -> str:
    """The expression that turns a result into what is returned."""
    if kind is ctypes.c_char_p:
        return f"({variable}.value or b'').decode(errors='replace')"
    if kind is ctypes.c_void_p:
        return f"{variable}.value or 0"
    return f"{variable}.value" if issubclass(kind, ctypes._SimpleCData) else variable


def _fail(code: int, function: str, arguments: dict[str, Any]) -> None:
    """Raise the error of a checked call, showing what it was called with."""
    shown = ", ".join(f"{name}={short(value)}" for name, value in arguments.items())
    raise error(code, function, f"called with {shown}; {HINTS.get(code, '')}".rstrip("; "))


def short(value: Any) -> str:
    """*value* in a few characters, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_made: dict[str, Any] = {}


def function(name: str) -> Any:
    """The checked function *name*, made when it is first asked for."""
    found = _made.get(name)
    return found if found is not None else raw.remember(_made, name, checked(name))


_initialized: object = None


def init() -> None:
    """Open the driver and initialise it; only the first call does anything.

    Raises:
        DriverNotFound: there is no driver.
        CudaError: the driver does not work, for instance CUDA_ERROR_NO_DEVICE.

    C: cuInit
    """
    global _initialized
    if _initialized is None or _initialized is not library.opened():
        function("cuInit")(0)
        _initialized = library.opened()


def driver_version() -> tuple[int, int]:
    """The newest CUDA version that the driver supports, as (13, 0).

    C: cuDriverGetVersion
    """
    return raw.split_version(function("cuDriverGetVersion")())


def is_available() -> bool:
    """Whether there is a driver, the emulator included, with at least one device; never raises."""
    try:
        init()
        return bool(function("cuDeviceGetCount")())
    except RuntimeError:
        return False


def is_emulator() -> bool:
    """Whether the driver of this process is the emulator; opens the driver."""
    return type(library.current()).__module__.startswith("cudadrv.emulator")
