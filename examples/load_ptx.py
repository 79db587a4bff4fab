"""Kernels that nvcc compiled, loaded and launched through cudadrv alone: no compiler, no llvmlite.

Their source is nvcc/vector_ops.cu; nvcc/vector_ops.ptx is checked in.
"""

import sys
from pathlib import Path

import numpy as np
from report import Report

import cudadrv

PTX = Path(__file__).with_name("nvcc") / "vector_ops.ptx"


def run_saxpy(library: cudadrv.Library, report: Report, x: np.ndarray, y: np.ndarray) -> None:
    """Raw device memory, and arguments whose C types the kernel's PTX tells."""
    kernel = library["saxpy"]
    out = np.empty_like(x)
    with (
        cudadrv.mem_alloc(x.nbytes) as dx,
        cudadrv.mem_alloc(y.nbytes) as dy,
        cudadrv.mem_alloc(out.nbytes) as dout,
    ):
        cudadrv.memcpy(dx, x)
        cudadrv.memcpy(dy, y)
        grid = (x.size + 255) // 256
        report.time(lambda: kernel.launch(grid, 256, dout, 2.5, dx, dy, x.size))
        cudadrv.memcpy(out, dout)
    report.check(out, np.float32(2.5) * x + y, rtol=1e-6)


def run_count_above(library: cudadrv.Library, report: Report, x: np.ndarray) -> None:
    """A variable of the module, set from the host."""
    cudadrv.memcpy(library.get_global("threshold"), np.float32([0.75]))
    count = cudadrv.to_device(np.zeros(1, np.uint64))
    device_x = cudadrv.to_device(x)
    library["count_above"].launch((x.size + 255) // 256, 256, count, device_x, x.size)
    report.check(count.copy_to_host(), [np.count_nonzero(x > np.float32(0.75))])


def run_sum(library: cudadrv.Library, report: Report, x: np.ndarray) -> None:
    """A prepared launch on a stream of our own."""
    stream = cudadrv.Stream()
    total = cudadrv.to_device(np.zeros(1, np.float32), stream=stream)
    device_x = cudadrv.to_device(x, stream=stream)
    run = library["sum"].prepare("PPI", grid=128, block=256, stream=stream)
    run(total, device_x, x.size)
    stream.synchronize()
    report.check(total.copy_to_host(), [x.sum(dtype=np.float64)], rtol=1e-5)


def main() -> bool:
    """Run all kernels of the file; True if NumPy agrees."""
    n = 2**20
    x, y = np.random.default_rng(5).random((2, n), dtype=np.float32)
    report = Report(f"PTX from nvcc, {n:,} float32 elements")
    with cudadrv.load(PTX) as library:
        report.line("kernels", ", ".join(sorted(library.kernels())))
        run_saxpy(library, report, x, y)
        run_count_above(library, report, x)
        run_sum(library, report, x)
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
