"""How fast kernels run: on the emulator by the thread, on a GPU against nvcc's."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.benchmarks import NotHereError, Sampler, case
from tools.benchmarks.examples import fresh

BLOCK = 256
SAXPY_CU = """
extern "C" __global__ void saxpy(float *out, float a, const float *x, const float *y, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}
"""


@case("ns", driver="emulator", n=7)
def emulator_saxpy() -> Iterator[Sampler]:
    """The emulator's time for each thread of saxpy."""
    import compiler as cuda

    threads = 2**22
    x = cuda.to_device(np.ones(threads, np.float32))
    kernel = fresh("saxpy", "saxpy")[threads // BLOCK, BLOCK]
    yield per_thread("emulator_saxpy", threads, lambda: kernel(x, 0.5, x, x))


@case("ns", driver="emulator", n=7)
def emulator_reduction() -> Iterator[Sampler]:
    """The emulator's time for each thread of a block reduction, nine barriers each."""
    import compiler as cuda

    threads = 2**20
    x = cuda.to_device(np.ones(threads, np.float32))
    total = cuda.to_device(np.zeros(1, np.float32))
    kernel = fresh("reduction", "block_sum")[threads // BLOCK, BLOCK]
    yield per_thread("emulator_reduction", threads, lambda: kernel(total, x))


def per_thread(name: str, threads: int, run: Callable[[], Any]) -> Sampler:
    """A sampler of the host time of *run*, divided by its threads."""
    import cudadrv

    context = cudadrv.current_context()

    def sample() -> dict[str, float]:
        start = time.perf_counter()
        run()
        context.synchronize()
        return {name: (time.perf_counter() - start) * 1e9 / threads}

    return sample


@case("GB/s", n=30)
def saxpy() -> Iterator[Sampler]:
    """Memory throughput of saxpy on 2**28 float32, ours and nvcc's by turns, timed by events."""
    import compiler as cuda
    import cudadrv

    if cudadrv.is_emulator():
        raise NotHereError("needs a GPU")
    n = 2**28
    x, y, out = (cuda.device_array(n, np.float32) for _ in range(3))
    for array in (x, y):
        cudadrv.memset(array, 0)
    ours = fresh("saxpy", "saxpy")[n // BLOCK, BLOCK]
    ways: dict[str, Callable[[], Any]] = {"saxpy": lambda: ours(out, 2.5, x, y)}
    if shutil.which("nvcc"):
        theirs = cudadrv.load(nvcc(SAXPY_CU))["saxpy"].prepare(
            "PfPPq", grid=n // BLOCK, block=BLOCK
        )
        ways["nvcc_saxpy"] = lambda: theirs(out, 2.5, x, y, n)
    yield lambda: {name: 3 * x.nbytes / event_ms(way) / 1e6 for name, way in ways.items()}


def event_ms(run: Callable[[], Any]) -> float:
    """Device time of *run*."""
    import cudadrv

    before, after = cudadrv.Event(), cudadrv.Event()
    before.record()
    run()
    after.record()
    after.synchronize()
    return float(after.elapsed_ms(before))


def nvcc(source: str) -> bytes:
    """The cubin that nvcc makes of *source* for the current device."""
    import cudadrv

    arch = cudadrv.current_context().device.arch
    with tempfile.TemporaryDirectory() as folder:
        cu, cubin = Path(folder, "k.cu"), Path(folder, "k.cubin")
        cu.write_text(source)
        subprocess.run(["nvcc", "-cubin", f"-arch={arch}", "-o", cubin, cu], check=True)
        return cubin.read_bytes()
