"""The functions that syntax.py calls where Python's syntax has no callable of its own."""

from __future__ import annotations

from typing import Any


def make_tuple(*items: Any) -> tuple[Any, ...]:
    """The tuple of its arguments."""
    return items


def unpack(value: Any, count: int) -> Any:
    """*value*, if it is a tuple of *count* items."""
    if len(value) != count:
        raise ValueError(f"expected {count} values to unpack, got {len(value)}")
    return value


def range_start(start: int) -> int:
    """The first value of a range."""
    return int(start)


def range_more(value: int, stop: int, step: int) -> bool:
    """Whether a range that has come to *value* goes on."""
    return value < stop if step > 0 else value > stop


def range_next(value: int, step: int) -> int:
    """The value after *value*."""
    return value + step
