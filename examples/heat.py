"""Heat in a rod: steps captured from a stream, then launched as one graph again and again."""

import sys

import numpy as np
from report import Report

import compiler as cuda
import cudadrv

STEPS = 20


@cuda.jit
def step(after, before, rate):
    """One step of heat flowing to both neighbours; the ends stay as they are."""
    i = cuda.grid(1)
    if 0 < i < before.size - 1:
        flow = before[i - 1] - np.float32(2) * before[i] + before[i + 1]
        after[i] = before[i] + rate * flow


def reference(rod: np.ndarray, rate: np.float32, steps: int) -> np.ndarray:
    """The same by NumPy."""
    rod = rod.copy()
    for _ in range(steps):
        rod[1:-1] += rate * (rod[:-2] - np.float32(2) * rod[1:-1] + rod[2:])
    return rod


def main() -> bool:
    """Capture 20 steps and launch them 10 times; True if NumPy agrees."""
    n, rate = 2**12, np.float32(0.25)
    rod = np.random.default_rng(7).random(n, dtype=np.float32)
    report = Report(f"heat, {n:,} cells, {STEPS} steps a graph")
    one, two = cuda.to_device(rod), cuda.to_device(rod)
    stream = cudadrv.Stream(nonblocking=True)
    grid, block = (n + 255) // 256, 256
    step[grid, block, stream](two, one, rate)  # compiled and loaded before the capture
    stream.synchronize()
    with stream.capture() as graph:
        for _ in range(STEPS // 2):
            step[grid, block, stream](two, one, rate)
            step[grid, block, stream](one, two, rate)
    graph.keep(one, two)
    steps = graph.instantiate()
    for _ in range(10):
        steps.launch(stream)
    stream.synchronize()
    report.check(one.copy_to_host(), reference(rod, rate, 10 * STEPS), rtol=1e-5)
    report.time(steps.launch)
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
