"""Sum of an array: blocks add up in shared memory, then to the total atomically."""

import sys

import numpy as np
from report import Report

import compiler as cuda

BLOCK = 256


@cuda.jit
def block_sum(total, values):
    """Add the sum of *values* to total[0]."""
    partial = cuda.shared.array(BLOCK, cuda.float32)
    thread = cuda.threadIdx.x
    mine = cuda.float32(0)
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        mine += values[i]
    partial[thread] = mine
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half:
            partial[thread] += partial[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        cuda.atomic.add(total, 0, partial[0])


def main() -> bool:
    """Add up 2**20 values; True if NumPy agrees."""
    n = 2**20
    values = np.random.default_rng(3).random(n, dtype=np.float32)
    report = Report(f"reduction, sum of {n:,} float32 values")
    device_values = cuda.to_device(values)
    total = cuda.to_device(np.zeros(1, np.float32))
    zero = np.zeros(1, np.float32)

    def launch():
        total.copy_to_device(zero)
        block_sum[256, BLOCK](total, device_values)

    report.time(launch)
    report.check(total.copy_to_host(), [values.sum(dtype=np.float64)], rtol=1e-6)
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
