"""The functions that syntax.py calls where Python's syntax has no callable of its own."""

from __future__ import annotations

from typing import Any


def make_tuple(*items: Any) -> tuple[Any, ...]:
    """The tuple of its arguments."""
    return items


def make_structure(cls: type, *fields: Any) -> Any:
    """A named tuple or dataclass."""
    return cls(*fields)


def make_closure(function: Any, *values: Any) -> Any:
    """A function defined inside a kernel, with what it captures and its defaults."""
    return function, values


def star(value: Any) -> Any:
    """The argument ``*value`` of a call, or item of a tuple."""
    return value


def unpack(value: Any, count: int, star: int) -> Any:
    """*value* as a tuple of *count* items, that at *star* (if not -1) a tuple of all the rest."""
    if star < 0:
        return tuple(value)
    rest = len(value) - count + 1
    return (*value[:star], tuple(value[star : star + rest]), *value[star + rest :])


def checking() -> bool:
    """Whether assertions hold: with jit(debug=True). Known while compiling."""
    return __debug__


def capability() -> int:
    """The compute capability that code is made for, 90 for 9.0. Known while compiling."""
    return int(__debug__)


def fail(exception: type[BaseException], *args: Any) -> None:
    """What ``raise exception(*args)`` does."""
    raise exception(*args)


def formatted(value: Any, conversion: int, spec: str) -> str:
    """A replacement field of an f-string."""
    if conversion >= 0:
        value = (str if conversion == ord("s") else repr)(value)
    return format(value, spec)


def text(*parts: str) -> str:
    """An f-string."""
    return "".join(parts)


def with_field(owner: Any, name: str, value: Any) -> Any:
    """*owner* after ``owner.name = value``; in kernels a vector is a value, so it is a new one."""
    setattr(owner, name, value)
    return owner


def is_sequence(value: Any, count: int, star: int) -> bool:
    """Whether *value* is a tuple that unpacks into *count* names, one of them starred or not."""
    return isinstance(value, tuple) and (
        len(value) == count if star < 0 else len(value) >= count - 1
    )


def is_bool(value: Any, wanted: bool) -> bool:
    """Whether *value* is True, or False."""
    return value is wanted


def known_length(length: int, key: str) -> int:
    """The length of what a comprehension, named by *key*, goes over: known while compiling."""
    return length


class NeedsUnrollError(Exception):
    """A loop goes over items of different types: it must be unrolled.

    Attributes:
        key: names the loop.
        count: the number of items.
    """

    def __init__(self, key: str, count: int) -> None:
        super().__init__(key, count)
        self.key, self.count = key, count


def loop_item(value: Any, index: int, key: str) -> Any:
    """The item at *index* of what the loop *key* goes over."""
    return value[index]


def range_start(start: int) -> int:
    """The first value of a range."""
    return int(start)


def range_more(value: int, stop: int, step: int) -> bool:
    """Whether a range that has come to *value* goes on."""
    return value < stop if step > 0 else value > stop


def range_next(value: int, step: int) -> int:
    """The value after *value*."""
    return value + step


def range_length(start: int, stop: int, step: int) -> int:
    """The number of values of a range."""
    span = stop - start if step > 0 else start - stop
    size = abs(step)
    return (span + size - 1) // size if span > 0 else 0
