"""A CUDA driver in software: it runs PTX on the CPU."""

from __future__ import annotations

from .boundary import Emulator, emulator
from .calls import (
    array,
    context,
    copies,
    device,
    event,
    launch,
    link,
    memops,
    memory,
    module,
    pointers,
    stream,
    texture,
)

__all__ = [
    "Emulator",
    "array",
    "context",
    "copies",
    "device",
    "event",
    "launch",
    "link",
    "memops",
    "memory",
    "module",
    "open",
    "pointers",
    "stream",
    "texture",
]


def open() -> Emulator:
    """The emulator, one per process; it answers address(name, version) as a libcuda would."""
    return emulator
