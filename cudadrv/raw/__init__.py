"""The driver API as cuda.h declares it: functions, enums, records and constants by their C names.

``raw.cuMemAlloc`` is what a C program means by it (the ABI version of the newest header); every
exported version can be called by its exact name. Functions take ints, None, ctypes objects and
``byref()``, and return the CUresult as an int. Nothing is checked here; see ``cudadrv.driver``.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the name is what counts; importing typing would cost most of the time
if TYPE_CHECKING:
    from typing import Any

    from cudadrv.raw.binding import (
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

__all__ = [
    "address",
    "available",
    "check_process",
    "driver_version",
    "forget",
    "function",
    "introduced",
    "parameters",
    "prototype",
    "remember",
    "signature",
    "split_version",
    "symbol",
    "versions",
]


def __getattr__(name: str) -> Any:
    """Look *name* up when it is first used: until then the table is not even imported."""
    # A submodule that is being imported is asked for here first.
    if name.startswith("_") or name in ("binding", "table", "types"):
        raise AttributeError(name)
    from cudadrv.raw.binding import API, find, remember

    if name in API:
        return globals().setdefault(name, API[name])
    value = find(name)
    if name.startswith("cu") and not isinstance(value, type):
        return remember(globals(), name, value)
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    from cudadrv.raw.binding import names

    return [*__all__, *names()]
