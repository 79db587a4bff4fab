"""What only a real GPU does: run machine code, and lose its context when a kernel goes astray."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import KERNELS, PTX


@pytest.fixture
def assemble(tmp_path):
    """Makes a cubin of the tests' kernels, by the ptxas of the PyPI wheel."""
    spec = importlib.util.find_spec("nvidia")
    places = spec.submodule_search_locations if spec else ()
    found = [path for place in places for path in Path(place).glob("cu*/bin/ptxas")]
    if not found:
        pytest.skip("nvidia-cuda-nvcc, which has ptxas, is not installed")

    def run(arch):
        (tmp_path / "code.ptx").write_text(PTX)
        command = [found[0], f"-arch={arch}", "code.ptx", "-o", "code.cubin"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return tmp_path / "code.cubin"

    return run


def test_a_cubin_runs(assemble):
    """Machine code loads from a file; its kernels are listed, launched and described."""
    lib = cu.load(assemble(cu.Device(0).arch))
    assert lib.kernels() == KERNELS
    x = cu.to_device(np.ones(100, np.float32))
    lib["scale"].launch(1, 128, x, 3.0, x, 100)
    assert set(x.copy_to_host()) == {3.0}
    with pytest.raises(cu.NameNotFound, match="last_shared"):
        lib["scales"]


def test_code_for_another_device_is_refused(assemble):
    """The error says what the driver says, and what to do."""
    major, _ = cu.Device(0).compute_capability
    cubin = assemble("sm_80" if major != 8 else "sm_90")
    with pytest.raises(cu.JitError, match=r"compile for its \.arch") as caught:
        cu.load(cubin)["nothing"].launch(1, 1)
    assert caught.value.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"


def test_a_lost_context_is_told(run_python):
    """After a kernel's illegal access the error is sticky, and cleaning up does not crash."""
    code = (
        "import cudadrv as cu\n"
        "from tests.device.driver_code import library\n"
        "keep = cu.mem_alloc(100)\n"
        "try:\n"
        "    library()['extents'].launch(1, 1, 256)\n"
        "    cu.current_context().synchronize()\n"
        "except cu.CudaError as error:\n"
        "    print(error.sticky, isinstance(error, cu.LaunchError))\n"
    )
    assert run_python(code).split() == ["True", "True"]
