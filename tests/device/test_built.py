"""Code built ahead of time, loaded and launched by cudadrv alone."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from compiler.__main__ import main

SOURCE = """
import compiler as cuda

@cuda.jit
def scale(out, x, factor, offsets):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i, 1] * factor + offsets[0] + offsets[1]
"""


@pytest.fixture
def built(tmp_path):
    (tmp_path / "kernels.py").write_text(SOURCE)
    out = tmp_path / "k.ptx"
    signature = "void(float32[::1], float32[:, :], float32, (int32, float64))"
    arguments = ["build", f"{tmp_path / 'kernels.py'}:scale", "--signature", signature]
    assert main([*arguments, "--arch", "sm_75", "-o", str(out)]) == 0
    return out


def test_built_kernel_is_launched_with_arrays(built):
    """Arrays of any strides, numbers and tuples are passed as the kernel was built to take them."""
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    out = cudadrv.to_device(np.zeros(6, np.float32))
    cudadrv.load(built)["scale"].launch(1, 32, out, cudadrv.to_device(x), 2.0, (3, 0.5))
    np.testing.assert_allclose(out.copy_to_host(), x[:, 1] * 2 + 3.5)


def test_wrong_array_is_refused(built):
    """An array of another type is refused before the launch, by position."""
    out = cudadrv.to_device(np.zeros(6))
    with pytest.raises(TypeError, match="argument 0"):
        cudadrv.load(built)["scale"].launch(1, 32, out, out, 2.0, (3, 0.5))
