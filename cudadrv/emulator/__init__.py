"""A CUDA driver in software: it runs PTX on the CPU."""

from __future__ import annotations

from .boundary import Emulator, emulator
from .calls import (
    array,
    capture,
    context,
    copies,
    device,
    event,
    graph,
    graph_nodes,
    green,
    launch,
    link,
    managed,
    memops,
    memory,
    module,
    pointers,
    pool,
    stream,
    tensormap,
    texture,
    virtual,
)

__all__ = [
    "Emulator",
    "array",
    "capture",
    "context",
    "copies",
    "device",
    "event",
    "graph",
    "graph_nodes",
    "green",
    "launch",
    "link",
    "managed",
    "memops",
    "memory",
    "module",
    "open",
    "pointers",
    "pool",
    "stream",
    "tensormap",
    "texture",
    "virtual",
]


def open() -> Emulator:
    """The emulator, one per process; it answers address(name, version) as a libcuda would."""
    return emulator
