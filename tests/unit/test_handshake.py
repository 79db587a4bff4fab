"""PTX versions: what a driver of any CUDA version is handed, told by a driver that only answers."""

from __future__ import annotations

import contextlib
import ctypes
import re

import numpy as np
import pytest

import compiler as cuda
import cudadrv
from compiler import types
from compiler.codegen import NoCodegen, Target, ptx_version, select
from compiler.dispatch.pipeline import Settings, compile_kernel
from cudadrv import errors, module, nvjitlink
from cudadrv.toolkit import LibraryNotFound
from tests.unit.fake_driver import FakeDriver, installed, launching_driver, store
from tests.unit.ir_samples import assemble, ptxas

VERSIONS = [11010, 11040, 11080, 12000, 12020, 12040, 12060, 12080, 12090, 13000, 13010, 13050]


def fill(n):
    if n > 3:
        cuda.syncthreads()


@pytest.fixture
def images():
    """The codes that the driver was given to load."""
    return []


@pytest.fixture
def driver(images):
    """Make a driver of a version and compute capability."""

    def load(out, image, *options):
        text = ctypes.string_at(image)
        images.append(text if b".version" in text else b"binary")
        return store(out, ctypes.c_void_p, 77)

    def make(version: int, cc: tuple[int, int] = (9, 0)) -> FakeDriver:
        numbers = {75: cc[0], 76: cc[1]}

        def attribute(out, number, device):
            return store(out, ctypes.c_int, numbers.get(number, 1024))

        return launching_driver(version, cuModuleLoadDataEx=load, cuDeviceGetAttribute=attribute)

    return make


def header(image: bytes) -> tuple[tuple[int, int], tuple[int, int]]:
    """The version and the compute capability that PTX says."""
    text = image.decode()
    version = re.search(r"^\.version (\d+)\.(\d+)", text, re.MULTILINE)
    target = re.search(r"^\.target sm_(\d+)(\d)", text, re.MULTILINE)
    return (int(version[1]), int(version[2])), (int(target[1]), int(target[2]))


@pytest.mark.parametrize("codegen", ["auto", "llvm"])
@pytest.mark.parametrize("version", VERSIONS)
def test_driver_is_never_handed_newer_ptx(driver, images, version, codegen):
    """Whatever the driver's version, what it is given to load is PTX that it reads."""
    kernel = cuda.jit(codegen=codegen)(fill)
    with installed(driver(version)):
        kernel[1, 32](5)
    [image] = images
    made, cc = header(image)
    assert made <= ptx_version(divmod(version // 10, 100))
    assert cc <= (9, 0)


@pytest.mark.parametrize(
    ("version", "cc", "expected"),
    [
        (11040, (9, 0), (8, 7)),
        (12000, (12, 0), (9, 0)),
        (12080, (12, 0), (12, 0)),
        (13000, (12, 1), (12, 1)),
        (13000, (13, 0), (12, 1)),
    ],
)
def test_new_device_behind_an_old_driver_gets_older_code(driver, images, version, cc, expected):
    """A device that its driver's PTX does not know yet gets the newest code that it does."""
    with installed(driver(version, cc)):
        cuda.jit(codegen="llvm")(fill)[1, 32](5)
    assert header(images[0])[1] == expected


@pytest.mark.parametrize("version", [12020, 12080, 13000])
def test_producer_that_is_too_new_makes_a_cubin(driver, images, version):
    """Where the only generator writes newer PTX, nvJitLink makes machine code of it."""
    try:
        nvjitlink.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))
    reads = ptx_version(divmod(version // 10, 100))
    with contextlib.suppress(NoCodegen):
        select(Target((9, 0), ptx=reads), "nvvm7")
        pytest.skip("a libNVVM here writes what the driver reads")
    kernel = cuda.jit(codegen="nvvm7")(fill)
    with installed(driver(version)):
        kernel[1, 32](5)
    assert images == [b"binary"]
    assert ".version" in kernel.inspect_ptx()[types.py_int,]


def test_no_producer_and_no_linker_says_so(driver, images, monkeypatch):
    """Without nvJitLink, the error names the PTX, what the driver reads and what to install."""
    if not any(map(cudadrv.nvvm.load, cudadrv.nvvm.candidates())):
        pytest.skip("no libNVVM; install the wheel nvidia-nvvm")

    def none():
        raise LibraryNotFound("nvJitLink", "nvidia-nvjitlink", "CUDADRV_NVJITLINK", [])

    monkeypatch.setattr(nvjitlink, "find", none)
    with installed(driver(12000)), pytest.raises(cudadrv.LinkError) as caught:
        cuda.jit(codegen="nvvm7")(fill)[1, 32](5)
    assert "nvidia-nvjitlink" in str(caught.value)
    assert "driver 12.0 reads PTX up to 8.0" in str(caught.value)
    assert not images


@pytest.mark.parametrize(
    ("version", "ptx", "reads"),
    [(11080, "8.0", "7.8"), (12020, "8.3", "8.2"), (12090, "9.0", "8.8"), (13000, "9.1", "9.0")],
)
def test_foreign_ptx_that_is_too_new_is_refused(version, ptx, reads):
    """The error names the version of the code, of the driver, what that reads, and the remedy."""
    code = f".version {ptx}\n.target sm_90\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
    with installed(launching_driver(version)), pytest.raises(errors.JitError) as caught:
        cudadrv.load(code)
    has = f"{version // 1000}.{version % 1000 // 10}"
    for words in (f"PTX {ptx}", f"driver {has}", f"up to {reads}", "cubin", "update the driver"):
        assert words in str(caught.value)


@pytest.mark.parametrize("version", VERSIONS)
def test_both_tables_of_versions_agree(version):
    """What the loader refuses is what the compiler does not write."""
    with installed(FakeDriver(version)):
        assert module.newest_ptx() in (None, ptx_version(divmod(version // 10, 100)))


@pytest.mark.skipif(ptxas() is None, reason="no ptxas; install the wheel nvidia-cuda-nvcc")
@pytest.mark.parametrize("reads", [(6, 3), (7, 0), (7, 8), (8, 4), (8, 7), (9, 0)])
def test_older_ptx_is_still_right(tmp_path, reads):
    """PTX written for an old driver has no instruction that its version lacks, says ptxas."""

    def work(x, out):
        part = cuda.shared.array(32, np.float32)
        i = cuda.grid(1)
        part[i % 32] = x[i]
        cuda.syncthreads()
        cuda.atomic.add(out, 0, part[31 - i % 32] ** 0.5)

    args = (types.float32[::1], types.float32[::1])
    made = compile_kernel(work, args, Target((7, 5), ptx=reads), Settings("llvm"))
    assert header(made.ptx.encode())[0] <= reads
    assemble(made.ptx, "sm_75", tmp_path)
