"""The emulator computes what the GPU computes, from the same PTX."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
N = 4096
# Largest difference in units of the last place of the largest value; 0 means bit for bit. The
# GPU's approximate instructions (ex2, rsqrt, ...) differ from the emulator's exact ones.
TOLERANCES = {"saxpy": 0, "matmul": 0, "mandelbrot": 0, "sobel": 4, "black_scholes": 32}


def results() -> dict[str, np.ndarray]:
    """What some of the examples' kernels compute on the device of this process."""
    import compiler as cuda

    random = np.random.default_rng(6)
    x, y, z = (cuda.to_device(random.uniform(1, 9, N).astype(np.float32)) for _ in range(3))
    squares = [cuda.to_device(random.random((32, 32), dtype=np.float32)) for _ in range(2)]
    outs = {
        "saxpy": cuda.device_array(N, np.float32),
        "matmul": cuda.device_array((32, 32), np.float32),
        "mandelbrot": cuda.device_array((32, 32), np.int32),
        "sobel": cuda.device_array((32, 32), np.float32),
        "black_scholes": cuda.device_array(N, np.float32),
    }
    put = cuda.device_array(N, np.float32)
    tiles = (2, 2), (16, 16)
    kernel("saxpy", "saxpy")[N // 256, 256](outs["saxpy"], 2.5, x, y)
    kernel("matmul", "matmul")[tiles](outs["matmul"], *squares)
    kernel("mandelbrot", "mandelbrot")[tiles](outs["mandelbrot"], 3 / 32)
    kernel("image_filter", "sobel")[tiles](outs["sobel"], squares[0])
    kernel("black_scholes", "black_scholes")[N // 256, 256](outs["black_scholes"], put, x, y, z)
    return {name: out.copy_to_host() for name, out in outs.items()}


def kernel(example: str, name: str):
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(f"agrees_{example}", EXAMPLES / f"{example}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The results of this device, and those of the emulator in a process of its own."""
    import os

    import cudadrv

    path = tmp_path_factory.mktemp("emulated") / "results.npz"
    major, minor = cudadrv.devices()[0].compute_capability
    subprocess.run(
        [sys.executable, __file__, path],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CUDADRV_DRIVER": "emulator",
            "CUDADRV_EMULATOR_CC": f"{major}.{minor}",
        },
        check=True,
    )
    with np.load(path) as emulated:
        return results(), dict(emulated)


@pytest.mark.parametrize("name", TOLERANCES)
def test_emulator_agrees(both, name: str) -> None:
    """A kernel's results on the GPU and on the emulator are the same, up to approximations."""
    gpu, emulated = both
    unit = np.spacing(np.abs(emulated[name]).max()) if gpu[name].dtype.kind == "f" else 1
    difference = np.abs(gpu[name].astype(np.float64) - emulated[name]).max() / unit
    assert difference <= TOLERANCES[name]


if __name__ == "__main__":
    np.savez(sys.argv[1], **results())
