"""The smallest useful kernel: out = a * x + y, one element a thread."""

import sys

import numpy as np
from report import Report

import compiler as cuda


@cuda.jit
def saxpy(out, a, x, y):
    """out[i] = a * x[i] + y[i]."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def main() -> bool:
    """Run it on 2**20 elements; True if NumPy agrees."""
    n = 2**20
    random = np.random.default_rng(1)
    x, y = random.random((2, n), dtype=np.float32)
    report = Report(f"saxpy, {n:,} float32 elements")
    dx, dy = cuda.to_device(x), cuda.to_device(y)
    out = cuda.device_array_like(dx)
    block = 256
    grid = (n + block - 1) // block
    report.time(lambda: saxpy[grid, block](out, 2.5, dx, dy))
    report.check(out.copy_to_host(), np.float32(2.5) * x + y, rtol=1e-6)
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
