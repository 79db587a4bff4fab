"""What a program waits for before its kernel runs: imports, compilation, launches."""

from __future__ import annotations

import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from typing import Any

import numpy as np

from tools.benchmarks import Sampler, case
from tools.benchmarks.examples import fresh

TIMED_IMPORT = """
import time
start = time.perf_counter()
import {0}
print((time.perf_counter() - start) * 1e3)
"""
# Fewer than the driver queues, so that no launch waits for one before it.
LAUNCHES = 200


@case("ms", n=15)
def import_cudadrv() -> Iterator[Sampler]:
    """Import cudadrv in a fresh interpreter."""
    yield lambda: {"import_cudadrv": import_ms("cudadrv")}


@case("ms", n=7)
def import_compiler() -> Iterator[Sampler]:
    """Import compiler in a fresh interpreter, NumPy and llvmlite with it."""
    yield lambda: {"import_compiler": import_ms("compiler")}


def import_ms(package: str) -> float:
    """How long the import takes, the interpreter's own start not counted."""
    command = [sys.executable, "-c", TIMED_IMPORT.format(package)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@case("ms")
def compile_saxpy() -> Iterator[Sampler]:
    """From a decorated function to the end of its first launch, the process warm."""
    import compiler as cuda

    x = cuda.to_device(np.ones(256, np.float32))
    yield first_launch("compile_saxpy", "saxpy", "saxpy", 1, x, 2.0, x, x)


@case("ms")
def compile_black_scholes() -> Iterator[Sampler]:
    """The same for a kernel with a device function and mathematical functions."""
    import compiler as cuda

    x = cuda.to_device(np.ones(256, np.float32))
    args = (x, x, x, x, x)
    yield first_launch("compile_black_scholes", "black_scholes", "black_scholes", 1, *args)


@case("ms")
def compile_reduction() -> Iterator[Sampler]:
    """The same for a kernel with shared memory, barriers and an atomic."""
    import compiler as cuda

    x = cuda.to_device(np.ones(256, np.float32))
    yield first_launch("compile_reduction", "reduction", "block_sum", 1, x, x)


@case("ms")
def ptx_saxpy() -> Iterator[Sampler]:
    """From a Python function to its PTX, for each code generator that is there; nothing loaded."""
    from compiler.codegen import NoCodegen, Target
    from compiler.dispatch.pipeline import Settings, compile_kernel
    from compiler.types import float32, py_float

    args = (float32[::1], py_float, float32[::1], float32[::1])

    def sample() -> dict[str, float]:
        times = {}
        for generator in ("nvvm", "nvvm7", "llvm"):
            function = fresh("saxpy", "saxpy").pyfunc
            start = time.perf_counter()
            try:
                compile_kernel(function, args, Target((9, 0)), Settings(codegen=generator))
            except NoCodegen:
                continue
            times[f"ptx_saxpy_{generator}"] = (time.perf_counter() - start) * 1e3
        return times

    yield sample


def first_launch(name: str, example: str, kernel: str, grid: int, *args: Any) -> Sampler:
    """A sampler of the time from a new kernel object to the end of its first launch."""
    import cudadrv

    def sample() -> dict[str, float]:
        new = fresh(example, kernel)
        start = time.perf_counter()
        new[grid, 256](*args)
        cudadrv.current_context().synchronize()
        return {name: (time.perf_counter() - start) * 1e3}

    return sample


@case("us", n=30)
def launch() -> Iterator[Sampler]:
    """A launch of four and of sixteen arguments: a loop such as C's, cudadrv, kernels, others."""
    import cudadrv
    from tools.benchmarks import launches

    four = cudadrv.load(launches.EMPTY_PTX)["four"]
    a, b = cudadrv.mem_alloc(1024), cudadrv.mem_alloc(1024)
    run = four.prepare("PPIf", grid=1, block=1)
    x = cudadrv.to_device(np.ones(1, np.float32))
    few, many = (x, x, 1, 2.0), (*[x] * 8, *range(4), *[0.5] * 4)
    small, large = launches.hot(launches.small, *few), launches.hot(launches.large, *many)
    names = {"run": run, "four": four, "a": a, "b": b, "x": x, "many": many}
    names |= {"small": small, "large": large, "lazy": launches.small}
    statements = {
        "prepared_launch": "run(a, b, 1, 2.0)",
        "launch": "four.launch(1, 1, a, b, 1, 2.0)",
        "kernel_launch": "small(x, x, 1, 2.0)",
        "kernel_launch_configured": "lazy[1, 1](x, x, 1, 2.0)",
        "kernel_launch_16": "large(*many)",
    }
    ways = {name: timeit.Timer(text, globals=names) for name, text in statements.items()}
    ways |= launches.peers()
    loops = {
        "c_launch": launches.loop(four, (a, b, 1, 2.0)),
        "c_launch_16": launches.loop_of_kernel(launches.large, many),
    }

    def sample() -> dict[str, float]:
        times = {name: loop(LAUNCHES) for name, loop in loops.items()}
        return times | {name: launch_us(way) for name, way in ways.items()}

    yield sample


@case("ns", n=30)
def launcher() -> Iterator[Sampler]:
    """What a compiled launcher costs by itself, with a driver that does nothing."""
    from tools.benchmarks import launches

    yield launches.without_driver()


def launch_us(way: timeit.Timer) -> float:
    """Host time of one launch, the queue empty at the start and never full."""
    import cudadrv

    context = cudadrv.current_context()
    context.synchronize()
    elapsed = way.timeit(LAUNCHES)
    context.synchronize()
    return elapsed / LAUNCHES * 1e6
