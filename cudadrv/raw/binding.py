"""Looks functions up in the current driver and makes them callable."""

from __future__ import annotations

import ctypes
import os
import re
import threading

from cudadrv import library
from cudadrv.errors import ForkError, NotSupportedByDriver
from cudadrv.raw import table, types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_lock = threading.RLock()
_signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {}
_cached: list[tuple[dict[str, Any], str]] = []
_enumerators: dict[str, int] = {}
_forked_from: int | None = None


def symbol(name: str) -> str:
    """The exported symbol that *name* means in C: "cuMemAlloc_v2" for "cuMemAlloc".

    Raises:
        AttributeError: cuda.h declares no such function.
    """
    name = table.ALIASES.get(name, name)
    if name not in table.FUNCTIONS:
        raise AttributeError(f"cuda.h declares no function {name!r}")
    return name


def introduced(name: str) -> tuple[int, int]:
    """The version of CUDA that introduced the function *name*, as (12, 4)."""
    return split_version(table.FUNCTIONS[symbol(name)][0])


def versions(name: str) -> dict[str, tuple[int, int]]:
    """The exported symbols of every ABI version of *name*, oldest first, with what introduced each.

    Per-thread-stream twins, which end in ``_ptds`` or ``_ptsz``, are among them.
    """
    base = re.sub(r"_v\d+$", "", re.sub(r"_pt[ds][sz]$", "", symbol(name)))
    pattern = re.compile(re.escape(base) + r"(_v\d+)?(_pt[ds][sz])?")
    found = sorted(
        (table.FUNCTIONS[each][0], each) for each in table.FUNCTIONS if pattern.fullmatch(each)
    )
    return {each: split_version(number) for number, each in found}


def split_version(number: int) -> tuple[int, int]:
    """12040, as CUDA writes it, as (12, 4)."""
    return number // 1000, number % 1000 // 10


def parameters(name: str) -> list[tuple[bool, str, str]]:
    """Of each parameter of *name*: whether it is a result, its C type, its name."""
    return types.split_parameters(table.FUNCTIONS[symbol(name)][1])


def signature(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Result type and argument types of *name* in ctypes; every pointer and handle is c_void_p."""
    name = symbol(name)
    if name not in _signatures:
        arguments = tuple(types.ctype(spelled) for _, spelled, _ in parameters(name))
        _signatures[name] = (ctypes.c_int, arguments)
    return _signatures[name]


def address(name: str) -> int:
    """The C address of *name* in the current driver, for other compilers and C code.

    Raises:
        DriverNotFound: there is no driver.
        NotSupportedByDriver: the driver lacks the function.
        ForkError: CUDA was used before this process was forked.
    """
    check_process()
    found = _look_up(name) or library.current().refusal(symbol(name))
    if not found:
        raise NotSupportedByDriver(symbol(name), introduced(name), driver_version())
    return found


def check_process() -> None:
    """Raise ForkError in a process that was forked after the driver had been opened."""
    if _forked_from is not None:
        raise ForkError(_forked_from)


def _look_up(name: str) -> int:
    exact = symbol(name)
    driver = library.current()
    version, declared = table.FUNCTIONS[exact]
    found = driver.address(exact, version)
    # An older driver has only the older version; with the same parameters it does as well.
    older = table.FUNCTIONS.get(name, (0, ""))
    if not found and name != exact and older[1] == declared:
        found = driver.address(name, older[0])
    return found


def available(name: str) -> bool:
    """Whether the current driver has the function *name*."""
    return bool(_look_up(name))


def driver_version() -> tuple[int, int] | None:
    """The version of CUDA that the current driver was made for; None if it does not tell.

    C: cuDriverGetVersion
    """
    found = library.current().address("cuDriverGetVersion", 2020)
    number = ctypes.c_int()
    if not found or prototype("cuDriverGetVersion")(found)(ctypes.byref(number)):
        return None
    return split_version(number.value)


def prototype(name: str) -> Any:
    """The ctypes function type of *name*; calls of it release the GIL."""
    result, arguments = signature(name)
    make = ctypes.WINFUNCTYPE if hasattr(ctypes, "WINFUNCTYPE") else ctypes.CFUNCTYPE
    return make(result, *arguments)


def function(name: str) -> Callable[..., int]:
    """The callable for the exported function that *name* means.

    Raises:
        NotSupportedByDriver: the driver lacks it.
    """
    bound: Callable[..., int] = prototype(name)(address(name))
    return bound


def remember(namespace: dict[str, Any], name: str, value: Any) -> Any:
    """Keep *value*, which holds a driver function, in a module until the driver changes."""
    with _lock:
        namespace[name] = value
        _cached.append((namespace, name))
    return value


def forget() -> None:
    """Drop every bound function, after a fork or when a test changes the driver."""
    with _lock:
        for namespace, name in _cached:
            namespace.pop(name, None)
        _cached.clear()


def _after_fork() -> None:
    global _forked_from
    if library.opened() is not None:
        forget()
        _forked_from = os.getppid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def find(name: str) -> Any:
    """What *name* is in C: a function, enum, record, callback type, constant or enumerator.

    Raises:
        AttributeError: cuda.h declares no such name.
    """
    if name in table.ALIASES or name in table.FUNCTIONS:
        return function(name)
    if name in table.CONSTANTS:
        return table.CONSTANTS[name]
    behind = types.resolve(name)
    if behind in table.ENUMS:
        return types.enumeration(behind)
    if behind in table.RECORDS:
        return types.record(behind)
    if behind.endswith(")"):
        return types.callback(name)
    if name in table.TYPEDEFS:
        return types.ctype(name)
    return enumerator(name)


def enumerator(name: str) -> int:
    """The value of the enumerator *name*, whichever enum it belongs to."""
    if not _enumerators:
        for members in table.ENUMS.values():
            _enumerators.update(members)
    if name not in _enumerators:
        raise AttributeError(f"cuda.h declares no {name!r}")
    return _enumerators[name]


def names() -> list[str]:
    """Every name that ``find`` knows."""
    enumerators = (name for members in table.ENUMS.values() for name in members)
    return sorted(
        {*table.FUNCTIONS, *table.ALIASES, *table.ENUMS, *table.RECORDS, *table.TYPEDEFS}
        | {*table.CONSTANTS, *enumerators}
    )


# What the package itself offers, next to the names of cuda.h.
API = {
    each.__name__: each
    for each in (
        address,
        available,
        check_process,
        driver_version,
        forget,
        function,
        introduced,
        parameters,
        prototype,
        remember,
        signature,
        split_version,
        symbol,
        versions,
    )
}
