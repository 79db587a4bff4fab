"""Benchmarks of graphs: what a launch of twenty kernels costs as one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tools.benchmarks import Sampler, case

KERNELS, REPEATS = 20, 50


@case("us", n=30)
def graph() -> Iterator[Sampler]:
    """Host time to launch, capture, instantiate and update a graph of twenty empty kernels."""
    import cudadrv
    from tools.benchmarks import launches

    four = cudadrv.load(launches.EMPTY_PTX)["four"]
    a, b = cudadrv.mem_alloc(1024), cudadrv.mem_alloc(1024)
    stream = cudadrv.Stream(nonblocking=True)
    run = four.prepare("PPIf", grid=1, block=1, stream=stream)

    def launch() -> None:
        for _ in range(KERNELS):
            run(a, b, 1, 2.0)

    def capture() -> cudadrv.Graph:
        with stream.capture() as captured:
            launch()
        return captured

    captured = capture()
    made = captured.instantiate()
    ways: dict[str, Callable[[], Any]] = {
        "graph_launch": lambda: made.launch(stream),
        "graph_of_launches": launch,
        "graph_capture": capture,
        "graph_instantiate": captured.instantiate,
        "graph_update": lambda: made.update(captured),
    }

    def sample() -> dict[str, float]:
        return {name: host_us(way) for name, way in ways.items()}

    yield sample


def host_us(way: Callable[[], Any]) -> float:
    """Host time of one call, with nothing in flight at the start."""
    import cudadrv

    context = cudadrv.current_context()
    context.synchronize()
    start = time.perf_counter()
    for _ in range(REPEATS):
        way()
    elapsed = time.perf_counter() - start
    context.synchronize()
    return elapsed / REPEATS * 1e6
