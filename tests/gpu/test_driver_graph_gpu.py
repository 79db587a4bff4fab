"""Streams, events and graphs on a real GPU: work in flight, and memory after many of them."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import library

CYCLES = 1000
ROOM = 8 << 20  # bytes that caches of the driver and of Python may take


def resident():
    """Bytes of memory that this process has."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def graph_of_everything():
    """A graph with a kernel, a copy, a fill, a call and a child, and what is launched of it."""
    x, out = cu.to_device(np.ones(8, np.float32)), cu.to_device(np.zeros(8, np.float32))
    graph, inner = cu.Graph(), cu.Graph()
    inner.add(cu.MemsetNode(out, 0))
    node = graph.add(cu.ChildNode(inner))
    node = graph.add(cu.KernelNode(library()["scale"], 1, 32, out, 2.0, x, 8), after=node)
    node = graph.add(cu.MemcpyNode(x, out), after=node)
    graph.add(cu.HostNode(len, "x"), after=node)
    made = graph.instantiate()
    made.launch()
    cu.current_context().synchronize()


def capture():
    """A captured stream."""
    stream = cu.Stream(nonblocking=True)
    with stream.capture() as graph:
        stream.call(len, "x")
    graph.instantiate()


MAKERS = {
    "stream": lambda: cu.Stream().close(),
    "stream collected": cu.Stream,
    "event": lambda: cu.Event().record(),
    "interprocess event": lambda: cu.Event(timing=False, interprocess=True).ipc_handle(),
    "graph": graph_of_everything,
    "capture": capture,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_thousand_leave_nothing(alone, make):
    """Memory of the device and of the process is as before."""
    for _ in range(200):
        make()
    gc.collect()
    cu.keeper.sweep()
    free, rss = cu.current_context().mem_info()[0], resident()
    for _ in range(CYCLES):
        make()
    gc.collect()
    cu.keeper.sweep()
    assert cu.current_context().mem_info()[0] >= free - ROOM
    assert resident() <= rss + ROOM


def test_what_is_closed_in_flight_still_runs():
    """Graph, launchable graph, stream and memory are closed right after the launch."""
    n = 1 << 24
    seen = []
    x, out = cu.to_device(np.ones(n, np.float32)), cu.to_device(np.zeros(n, np.float32))
    host = cu.pinned_array(4, np.float32)
    kernel, stream = library()["scale"], cu.Stream(nonblocking=True)
    with stream.capture() as graph:
        for _ in range(20):
            kernel.launch(-(-n // 256), 256, out, 3.0, x, n, stream=stream)
        cu.memcpy(host, out[-4:], stream=stream)
        stream.call(lambda: seen.append(host.tolist()))
    made = graph.instantiate()
    made.launch(stream)
    event = stream.record()
    made.close()
    graph.close()
    stream.close()
    event.synchronize()
    assert seen == [[3.0] * 4]


def test_an_update_in_flight():
    """Launches that were made keep their parameters, and their calls on the host."""
    n = 1 << 24
    x, out = cu.to_device(np.ones(n, np.float32)), cu.to_device(np.zeros(n, np.float32))
    seen, stream, made = [], cu.Stream(nonblocking=True), None
    for number in range(5):
        with stream.capture() as graph:
            library()["scale"].launch(-(-n // 256), 256, out, float(number), x, n, stream=stream)
            stream.call(seen.append, number)
        if made is None:
            made = graph.instantiate()
        else:
            made.update(graph)
        graph.close()
        made.launch(stream)
    stream.synchronize()
    assert seen == list(range(5))
    assert set(out[:4].copy_to_host()) == {4.0}
