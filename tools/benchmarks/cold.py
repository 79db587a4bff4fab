"""New processes: from the start of Python to the result of a first kernel."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tools.benchmarks import Sampler, case

ROOT = Path(__file__).parents[2]
PROGRAM = """
import numpy as np
{importing}

@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]

x = np.ones(1000, np.float32)
out = np.zeros_like(x)
saxpy[4, 256](2.0, x, x, out)
assert out[999] == 3
"""
OURS = "import compiler as cuda"
# It asks for a name that NumPy dropped.
NUMBA = "np.row_stack = getattr(np, 'row_stack', np.vstack)\nfrom numba import cuda"


@case("ms", n=7)
def cold_saxpy() -> Iterator[Sampler]:
    """A program that runs saxpy once: without a cache, with one, and by numba-cuda if it is here.

    The bytecode of all modules is kept, as where packages are installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        variables |= {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        variables |= {
            "COMPILER_CACHE_DIR": f"{folder}/cache",
            "CUDA_CACHE_PATH": f"{folder}/driver",
        }
        programs = {
            "cold_saxpy": (OURS, {"COMPILER_CACHE": "0"}),
            "cold_saxpy_cached": (OURS, {"COMPILER_CACHE": "1"}),
        }
        if importlib.util.find_spec("numba_cuda"):
            programs["cold_saxpy_numba"] = (NUMBA, {})
        for name, (importing, more) in programs.items():
            Path(folder, f"{name}.py").write_text(PROGRAM.format(importing=importing))
            run(Path(folder, f"{name}.py"), variables | more)  # writes bytecode and cache
        yield lambda: {
            name: run(Path(folder, f"{name}.py"), variables | more)
            for name, (_, more) in programs.items()
        }


def run(program: Path, variables: dict[str, str]) -> float:
    """How long a program takes, the interpreter's start and end counted."""
    start = time.perf_counter()
    subprocess.run([sys.executable, str(program)], env=variables, check=True)
    return (time.perf_counter() - start) * 1e3
