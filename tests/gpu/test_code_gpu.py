"""Compiled code on a real GPU: debuggers, machine code of each format, linking, the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import compiler as cuda
import cudadrv
from compiler.__main__ import main
from compiler.codegen import Dialect, NoCodegen, Target, ptx_version, select
from cudadrv import nvjitlink, nvrtc, nvvm
from cudadrv.toolkit import LibraryNotFound
from tests.unit.ir_samples import kernel as sample_kernel
from tests.unit.ir_samples import module

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import numpy as np
import compiler as cuda

@cuda.jit(OPTIONS)
def stray(x, far):
    i = cuda.grid(1)
    value = np.float32(i) + np.float32(0.5)
    x[i + far] = value  # HERE

x = cuda.to_device(np.zeros(32, np.float32))
stray[1, 32](x, int(sys.argv[1]))
cuda.synchronize()
print("done")
"""
HERE = next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# HERE"))
GENERATORS = ["llvm", "nvvm7", "nvvm"]


def program(folder: Path, options: str) -> Path:
    path = folder / "stray.py"
    path.write_text(PROGRAM.replace("OPTIONS", options))
    return path


def tool(name: str, *arguments: object) -> str:
    """What a tool of CUDA prints; skips where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [found, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDADRV_DRIVER": "auto"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("option", ["lineinfo", "debug"])
def test_sanitizer_names_the_python_line(codegen, option, tmp_path):
    """compute-sanitizer says at which line of the Python file a kernel wrote out of bounds."""
    path = program(tmp_path, f"{option}=True, codegen={codegen!r}")
    text = tool("compute-sanitizer", sys.executable, path, 1 << 30)
    assert "Invalid __global__ write" in text
    assert re.search(rf"stray\.py:{HERE}\b", text), text[-3000:]


@pytest.mark.parametrize("codegen", GENERATORS)
def test_debugger_stops_and_shows_variables(codegen, tmp_path):
    """cuda-gdb stops at a line of the Python file and shows the variables by their names."""
    path = program(tmp_path, f"debug=True, codegen={codegen!r}")
    steps = ["set breakpoint pending on", f"break stray.py:{HERE}", "run", "info locals", "print i"]
    text = tool(
        "cuda-gdb", "-batch", *(part for step in steps for part in ("-ex", step)),
        "--args", sys.executable, path, 0,
    )  # fmt: skip
    assert re.search(rf"stray\.py:{HERE}\b", text), text[-3000:]
    assert re.search(r"value = 0\.5", text), text[-3000:]


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("options", [{}, {"debug": True}, {"lineinfo": True}, {"fastmath": True}])
def test_each_generator_runs(codegen, options):
    """Code of each generator, with and without debug information, computes the same."""

    @cuda.jit(codegen=codegen, **options)
    def work(x, out):
        i = cuda.grid(1)
        part = cuda.shared.array(64, np.float32)
        part[i] = x[i]
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(64):
            total += part[k] * np.float32(k)
        out[i] = total + np.sqrt(x[i])

    x = np.arange(64, dtype=np.float32)
    out = np.zeros_like(x)
    try:
        work[1, 64](x, out)
    except NoCodegen as error:
        pytest.skip(str(error))
    np.testing.assert_allclose(out, (x * np.arange(64)).sum() + np.sqrt(x), rtol=1e-5)


BUILT = """
import compiler as cuda

@cuda.jit("void(float32[::1], float32)")
def scale(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= factor
"""


@pytest.mark.parametrize("form", ["ptx", "cubin", "fatbin", "ltoir"])
def test_built_code_of_each_format_runs(form, tmp_path):
    """What `python -m compiler build` writes is loaded and launched by cudadrv alone."""
    (tmp_path / "kernels.py").write_text(BUILT)
    arch, out = cudadrv.Device(0).arch, tmp_path / f"k.{form}"
    reads = "{}.{}".format(*ptx_version(cudadrv.driver_version()))
    arguments = ["build", f"{tmp_path / 'kernels.py'}", "--arch", arch, "--format", form]
    if main([*arguments, "--ptx", reads, "-o", str(out)]):
        pytest.skip(f"{form} needs libNVVM or nvJitLink, which are not here")
    program = (
        "import sys, numpy as np, cudadrv; from pathlib import Path\n"
        f"x = cudadrv.to_device(np.arange(100, dtype=np.float32))\n"
        f"cudadrv.load(Path({str(out)!r}))['scale'].launch(1, 128, x, 3.0)\n"
        "assert (x.copy_to_host() == 3 * np.arange(100)).all()\n"
        "assert not {'compiler', 'llvmlite'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


@pytest.fixture
def linkers():
    try:
        nvjitlink.find()
        nvrtc.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("lto", [None, True, False])
@pytest.mark.parametrize("debug", [False, True])
def test_cuda_source_is_linked_and_runs(linkers, lto, debug):
    """A kernel calls CUDA C++, linked as machine code or optimised as one."""
    code = cuda.CUSource('extern "C" __device__ int thrice(int x) { return 3 * x; }', "thrice.cu")
    thrice = cuda.declare_device("thrice", "int32(int32)", link=code)

    @cuda.jit(lto=lto, debug=debug)
    def work(x):
        i = cuda.grid(1)
        assert x[i] >= 0, "negative"
        x[i] = thrice(x[i])

    x = np.arange(32, dtype=np.int32)
    work[1, 32](x)
    np.testing.assert_array_equal(x, 3 * np.arange(32))
    if debug:
        with pytest.raises(AssertionError, match="negative"):
            work[1, 32](-x - 1)


def test_driver_brings_a_code_generator():
    """The libNVVM that comes with the driver makes PTX that the driver loads."""
    library = nvvm.load("libnvidia-nvvm.so.4")
    if library is None:
        pytest.skip("this driver has no libnvidia-nvvm.so.4")
    cc = cudadrv.Device(0).compute_capability
    probe = library.probe(f"-arch=compute_{cc[0]}{cc[1]}")
    assert probe.ptx <= ptx_version(cudadrv.driver_version())
    layout = nvvm.DATA_LAYOUT_LLVM7 if probe.typed_pointers else nvvm.DATA_LAYOUT
    dialect = Dialect(nvvm.TRIPLE, layout, probe.typed_pointers)
    body = sample_kernel("k", ["i32*"], ["store i32 7, i32* %a0"])
    numbers = ", ".join(f"i32 {number}" for number in library.ir_version)
    text = module(dialect, body) + f"!nvvmir.version = !{{!9}}\n!9 = !{{{numbers}}}\n"
    with nvvm.Program(library) as compilation:
        compilation.add_module(text)
        ptx = compilation.compile([f"-arch=compute_{cc[0]}{cc[1]}"]).decode()
    x = cudadrv.to_device(np.zeros(1, np.int32))
    cudadrv.load(ptx)["k"].launch(1, 1, x)
    assert x.copy_to_host()[0] == 7


def test_chosen_generator_fits_the_driver():
    """What is chosen by itself writes no newer PTX than the driver reads."""
    reads = ptx_version(cudadrv.driver_version())
    cc = cudadrv.Device(0).compute_capability
    assert select(Target(cc, ptx=reads)).ptx <= reads


def test_second_process_runs_from_the_cache(tmp_path):
    """The second process gets the kernel from disk, runs it right and loads no LLVM."""
    path = program(tmp_path, "cache=True")
    path.write_text(
        path.read_text() + "print('llvmlite.binding' in sys.modules, x.copy_to_host()[3])"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "CUDADRV_DRIVER": "auto",
        "COMPILER_CACHE_DIR": str(tmp_path / "cache"),
    }
    lines = []
    for _ in range(2):
        command = [sys.executable, str(path), "0"]
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        lines.append(answer.stdout.split())
    assert lines[1] == ["done", "False", "3.5"]
    assert lines[0][2] == "3.5"
