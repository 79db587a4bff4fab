"""Every object that owns something gives it back: a thousand of each leave memory as it was."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import cudadrv as cu
from cudadrv.context import Resource
from tests.device.driver_code import PTX

ROOM = 8 << 20  # bytes that caches of the driver and of Python may take


def array():
    """A CUDA array that textures and surfaces take."""
    return cu.CudaArray((64, 64), np.float32, surface=True)


def in_pool():
    """Memory of a pool of its own."""
    return cu.mem_alloc_async(4096, cu.Stream(), cu.MemoryPool())


def executable():
    """A graph of a fill and a call, launched once."""
    graph, memory = cu.Graph(), cu.mem_alloc(4096)
    graph.add(cu.HostNode(len, "x"), after=graph.add(cu.MemsetNode(memory, 0)))
    made = graph.instantiate()
    made.launch()
    cu.current_context().synchronize()
    return made


def green():
    """A green context of the fewest multiprocessors there are."""
    [part], _ = cu.SmResource.of(cu.Device(0)).split(1, groups=1)
    return cu.GreenContext(part)


def pinned():
    """A registered array of the host."""
    return cu.host_register(np.zeros(1 << 16, np.uint8))


MAKERS = {
    "CudaArray": array,
    "DeviceMemory": lambda: cu.mem_alloc(1 << 20),
    "Event": lambda: cu.Event(blocking=True),
    "Graph": lambda: cu.Graph(),
    "GraphExec": executable,
    "GreenContext": green,
    "Library": lambda: cu.load(PTX),
    "ManagedMemory": lambda: cu.managed_alloc(1 << 16),
    "MemoryPool": cu.MemoryPool,
    "MipmappedArray": lambda: cu.MipmappedArray((64, 64), np.float32),
    "PhysicalMemory": lambda: cu.PhysicalMemory(1 << 20),
    "PinnedMemory": lambda: cu.PinnedMemory(1 << 16),
    "PitchedMemory": lambda: cu.mem_alloc_pitch(1000, 100),
    "RegisteredMemory": pinned,
    "Stream": cu.Stream,
    "StreamMemory": in_pool,
    "SurfaceObject": lambda: cu.SurfaceObject(array()),
    "TextureObject": lambda: cu.TextureObject(array()),
    "VirtualMemory": lambda: cu.virtual_alloc(1 << 20),
}
# Those that need another process, API or allocator; tests of their own make them.
ELSEWHERE = {"ExternalMemory", "ExternalSemaphore", "IpcMemory", "ForeignMemory"}
# What is the base of others alone.
BASES = {"Resource", "HostMemory", "_Layered", "_Object"}
# Driver 580 keeps 4 MiB of every green context that it destroyed, whoever made it and however.
KEPT_BY_DRIVERS = {"GreenContext"}
SLOW = {"Library": 20, "GraphExec": 4, "GreenContext": 10}


def owning_classes():
    """The names of all classes of the package that own something."""
    for module in pkgutil.iter_modules(cu.__path__):
        if module.name not in ("emulator", "raw", "__main__"):
            importlib.import_module(f"cudadrv.{module.name}")
    found, waiting = set(), [Resource]
    for cls in waiting:
        found.add(cls.__name__)
        waiting += [each for each in cls.__subclasses__() if each.__module__.startswith("cudadrv")]
    return found


def resident():
    """Bytes of memory that this process has."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_every_owning_class_is_here():
    """A new class of owning objects needs a line in MAKERS."""
    assert owning_classes() - BASES - ELSEWHERE == set(MAKERS)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_thousand_leave_nothing(alone, context, kind):
    """Half of them closed, half dropped: memory of device and process stay as they were."""
    cycles = 1000 // (SLOW.get(kind, 1) if cu.is_emulator() else 1)

    def run(count):
        for turn in range(count):
            made = MAKERS[kind]()
            assert type(made).__name__ == kind
            if turn % 2:
                made.close()
        del made
        gc.collect()
        cu.keeper.sweep()
        context.synchronize()

    run(100 if cycles == 1000 else 10)
    free, rss = context.mem_info()[0], resident()
    run(cycles)
    if cu.is_emulator() or kind not in KEPT_BY_DRIVERS:
        assert context.mem_info()[0] >= free - ROOM
    assert resident() <= rss + ROOM
