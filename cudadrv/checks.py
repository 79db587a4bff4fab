"""Numbers as people give them, checked before the driver sees them: ctypes would cut them."""

from __future__ import annotations

import operator
from typing import Any

LIMIT = 1 << 63


def size(value: Any, name: str = "nbytes", least: int = 0) -> int:
    """*value* as a size or count that the driver can take.

    Raises:
        TypeError: it is no int.
        ValueError: it is below *least*, or does not fit into 63 bits.
    """
    number = integer(value, name)
    if number < least:
        must = "not be negative" if least == 0 else f"be at least {least}"
        raise ValueError(f"{name}={number}: it must {must}")
    if number >= LIMIT:
        raise ValueError(f"{name}={number}: no memory is as large")
    return number


def bits32(value: Any, name: str) -> int:
    """*value* as an unsigned number of 32 bits.

    Raises:
        TypeError: it is no int.
        ValueError: it is negative or larger.
    """
    number = size(value, name)
    if number >= 1 << 32:
        raise ValueError(f"{name}={number}: it has 32 bits")
    return number


def address(value: Any, name: str = "address") -> int:
    """*value* as an address.

    Raises:
        TypeError: it is no int.
        ValueError: it is negative or does not fit into 64 bits.
    """
    number = integer(value, name)
    if not 0 <= number < 2 * LIMIT:
        raise ValueError(f"{name}={number}: an address has 64 bits and no sign")
    return number


def integer(value: Any, name: str) -> int:
    """*value* as an int, also of NumPy's kinds.

    Raises:
        TypeError: it is none.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: give an int, not {type(value).__name__}") from None


def choice(value: Any, choices: dict[str, int], name: str) -> int:
    """The number that the word *value* stands for.

    Raises:
        ValueError: it is none of *choices*.
    """
    number = choices.get(value) if isinstance(value, str) else None
    if number is None:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={value!r}: it is one of {known}")
    return number
