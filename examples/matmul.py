"""Matrix product: each block keeps one tile of both factors in shared memory."""

import sys

import numpy as np
from report import Report

import compiler as cuda

TILE = 16


@cuda.jit
def matmul(c, a, b):
    """c = a @ b, for shapes that need not be multiples of TILE."""
    tile_a = cuda.shared.array((TILE, TILE), cuda.float32)
    tile_b = cuda.shared.array((TILE, TILE), cuda.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    rows, inner = a.shape
    cols = b.shape[1]
    total = cuda.float32(0)
    for start in range(0, inner, TILE):
        tile_a[y, x] = a[row, start + x] if row < rows and start + x < inner else 0.0
        tile_b[y, x] = b[start + y, col] if start + y < inner and col < cols else 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    if row < rows and col < cols:
        c[row, col] = total


def main() -> bool:
    """Multiply two matrices; True if NumPy agrees."""
    m, k, n = 400, 300, 500
    random = np.random.default_rng(4)
    a, b = random.random((m, k), dtype=np.float32), random.random((k, n), dtype=np.float32)
    report = Report(f"matrix product, {m} x {k} by {k} x {n}, float32, tiles of {TILE} x {TILE}")
    da, db = cuda.to_device(a), cuda.to_device(b)
    dc = cuda.device_array((m, n), np.float32)
    grid = (-(-n // TILE), -(-m // TILE))
    report.time(lambda: matmul[grid, (TILE, TILE)](dc, da, db))
    report.check(dc.copy_to_host(), a.astype(np.float64) @ b, rtol=1e-5)
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
