"""What is tied to the driver of this process, and so can be neither copied nor pickled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, SupportsIndex


class ProcessLocal:
    """Stands for something of the driver's: a copy would release it a second time."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} belongs to the driver of this process: it is neither copied "
            "nor pickled; pass the object itself, or what it was made from"
        )


class Named(ProcessLocal, Mapping[str, Any]):
    """What the driver knows by name, asked when it is looked at."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self)}>"


MEMORY = ("DeviceMemory", "HostMemory", "View")


def only(thing: Any, *kinds: str) -> Any:
    """*thing*, unless it is ours and of none of the classes *kinds*.

    A driver takes any handle for one of the kind that it expects, and may crash.

    Raises:
        TypeError: it is.
    """
    if not isinstance(thing, ProcessLocal):
        return thing
    if {cls.__name__ for cls in type(thing).__mro__}.isdisjoint(kinds):
        raise TypeError(f"{thing!r} is no {' and no '.join(kinds)}")
    return thing
