"""Mappings and sets of the driver's numbers, by their names in cuda.h without the prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from cudadrv import checks, driver, raw
from cudadrv.errors import CudaError
from cudadrv.process_local import Named

# INVALID_VALUE, INVALID_DEVICE, UNSUPPORTED_LIMIT, NOT_SUPPORTED: what is asked for is not there.
UNKNOWN = frozenset({1, 101, 215, 801})
SCHEDULES = 7  # the bits of a context's flags that are one number


def attribute_number(enumeration: str, name: str) -> int:
    """The number of the enumerator of *enumeration* that is *name*, whole or without its prefix.

    Raises:
        KeyError: cuda.h has no such attribute.
    """
    if isinstance(name, str):
        for member, value in getattr(raw, enumeration).__members__.items():
            if member == name or short_name(member) == name:
                return int(value)
    raise KeyError(f"{enumeration} has no {name!r}")


def short_name(member: str) -> str:
    """WARP_SIZE of CU_DEVICE_ATTRIBUTE_WARP_SIZE, STACK_SIZE of CU_LIMIT_STACK_SIZE."""
    return re.sub("^CU_[A-Z0-9_]*?(ATTRIBUTE|ATTR|LIMIT)_", "", member)


class Attributes(Named, Mapping[str, "int | None"]):
    """Numbers that never change, by name or number; what the driver does not know is None."""

    def __init__(self, enumeration: str, ask: Callable[[int], int]) -> None:
        """Take the enum with the names, and what asks the driver for one of them."""
        self._enumeration = enumeration
        self._ask = ask
        self._known: dict[int, int | None] = {}

    def __getitem__(self, name: str | int) -> int | None:
        number = name if isinstance(name, int) else attribute_number(self._enumeration, name)
        if number not in self._known:
            self._known[number] = known_or_none(self._ask, number)
        return self._known[number]

    def __iter__(self) -> Iterator[str]:
        members = getattr(raw, self._enumeration).__members__
        return (short_name(member) for member in members if member[-3:] != "MAX")

    def __len__(self) -> int:
        return sum(1 for _ in self)


def known_or_none(ask: Callable[[int], int], number: int) -> int | None:
    """What *ask* says; None if the driver does not know that number."""
    try:
        return int(ask(number))
    except CudaError as error:
        if error.code in UNKNOWN:
            return None
        raise


class Limits(Named, MutableMapping[str, "int | None"]):
    """The limits of a context, by name without CU_LIMIT_: STACK_SIZE, MALLOC_HEAP_SIZE, ...

    A limit that the driver or the device does not have is None. The driver rounds what is set, so
    read it back.
    """

    def __init__(self, context: object) -> None:
        """Take the context, which must make itself current in a ``with`` block."""
        self._context: Any = context

    def __getitem__(self, name: str) -> int | None:
        number = attribute_number("CUlimit", name)
        with self._context:
            return known_or_none(driver.cuCtxGetLimit, number)

    def __setitem__(self, name: str, value: int | None) -> None:
        number = attribute_number("CUlimit", name)
        nbytes = checks.size(value, name)
        with self._context:
            driver.cuCtxSetLimit(number, nbytes)

    def __delitem__(self, name: str) -> None:
        raise TypeError("a limit of a context cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return (short_name(name) for name in raw.CUlimit.__members__ if name[-3:] != "MAX")

    def __len__(self) -> int:
        return sum(1 for _ in self)


def context_flags(flags: int | str | Iterable[str]) -> int:
    """The flags of a context as a number.

    Args:
        flags: a number, or names of CUctx_flags in lower case without CU_CTX_: one of
            "sched_auto", "sched_spin", "sched_yield", "sched_blocking_sync", and "map_host",
            "lmem_resize_to_max", "coredump_enable", "user_coredump_enable", "sync_memops".

    Raises:
        TypeError: it is neither.
        ValueError: there is no such flag, or two ways to wait.
    """
    if isinstance(flags, int):
        return checks.bits32(flags, "flags")
    names = [flags] if isinstance(flags, str) else list(flags)
    known = flag_numbers()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"flags={flags!r}: there is no {unknown}, only {', '.join(known)}")
    ways = {name for name in names if known[name] <= SCHEDULES}
    if len(ways) > 1:
        raise ValueError(f"flags={flags!r}: a context has one way to wait, not {sorted(ways)}")
    return sum(known[name] for name in set(names))


def context_flag_names(number: int) -> frozenset[str]:
    """The names of the flags in *number*."""
    known = flag_numbers()
    ways = {value: name for name, value in known.items() if value <= SCHEDULES}
    bits = {name for name, value in known.items() if value > SCHEDULES and number & value}
    return frozenset({ways.get(number & SCHEDULES, "sched_auto")} | bits)


def flag_numbers() -> dict[str, int]:
    """The flags of a context by name; without the second name of one, and the masks."""
    members = raw.CUctx_flags.__members__.items()
    return {
        name.removeprefix("CU_CTX_").lower(): int(value)
        for name, value in members
        if not name.endswith("MASK") and name != "CU_CTX_BLOCKING_SYNC"
    }


CACHES = {"prefer_none": 0, "prefer_shared": 1, "prefer_l1": 2, "prefer_equal": 3}


def cache_name(number: int) -> str:
    """The name of a CUfunc_cache in lower case, without CU_FUNC_CACHE_."""
    return {value: name for name, value in CACHES.items()}.get(number, str(number))
