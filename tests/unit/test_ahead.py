"""Ahead-of-time compilation without a GPU: kernels and C functions in every form."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compiler import float32, int32, types
from compiler.codegen import Target, select
from compiler.codegen.target import ARCHITECTURES
from compiler.dispatch import ahead
from compiler.dispatch.linkable import CUSource
from compiler.lang.extern import declare_device
from cudadrv import nvjitlink, nvrtc
from cudadrv.linker import Linker, LinkError
from cudadrv.toolkit import LibraryNotFound, roots

PTXAS = next((file for root in roots() for file in root.glob("bin/ptxas*")), None)


def scale(x, factor):
    return x * factor


def positive(x):
    return x > 0


def fill(out, value):
    for i in range(out.size):
        out[i] = value


@pytest.fixture
def jitlink():
    try:
        nvjitlink.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))


@pytest.fixture
def rtc():
    try:
        nvrtc.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))


@pytest.fixture
def libnvvm():
    if select(Target((9, 0))).name != "nvvm":
        pytest.skip("there is no libNVVM")


def test_device_function_has_c_convention():
    """A device function is visible under its name, with plain parameters and result."""
    ptx, returns = ahead.compile(scale, "float32(float32, float32)")
    assert ".visible .func  (.param .b32 func_retval0) scale(" in ptx
    assert returns == float32
    assert ".target sm_75" in ptx


def test_abi_name_and_architecture_are_as_asked():
    """The symbol can be chosen, as can the compute capability."""
    ptx, _ = ahead.compile(scale, (int32, int32), cc=(8, 0), abi_info={"abi_name": "product"})
    assert " product(" in ptx
    assert ".target sm_80" in ptx


def test_declared_result_converts():
    """The result has the declared type, whatever the function computes in."""
    _, returns = ahead.compile(scale, "float32(float64, float64)")
    assert returns == float32


def test_kernel_is_compiled_without_a_device():
    """compile_ptx makes a kernel unless told otherwise, and returns void."""
    ptx, returns = ahead.compile_ptx(fill, "void(float32[::1], float32)")
    assert ".visible .entry fill(" in ptx
    assert returns == types.none


def test_kernel_that_returns_is_refused():
    """A kernel whose signature returns something is a TypeError."""
    with pytest.raises(TypeError, match="must return void"):
        ahead.compile_ptx(fill, "int32(float32[::1], float32)")


@pytest.mark.parametrize(("name", "value"), [("abi", "pascal"), ("output", "elf")])
def test_unknown_choice_is_refused(name, value):
    """An unknown ABI or output is refused with the known ones."""
    with pytest.raises(NotImplementedError, match=value):
        ahead.compile(scale, (int32, int32), **{name: value})


def test_llvm_ir_can_be_had():
    """The output "llvm" is the IR that the code generator gets."""
    text, _ = ahead.compile(scale, (int32, int32), output="llvm")
    assert "define i32 @" in text


def test_python_function_is_called_from_cuda(jitlink, rtc):
    """CUDA C++ calls a compiled Python function; both become one cubin, by PTX."""
    source = """
    extern "C" __device__ bool positive(float);
    extern "C" __device__ void fill(float*, long long, float);
    extern "C" __global__ void k(float* p, long long n) { if (positive(*p)) fill(p, n, 2); }
    """
    linker = Linker("sm_90")
    linker.add_cu(source)
    linker.add_ptx(ahead.compile(positive, "bool(float32)", cc=(9, 0))[0])
    with pytest.raises(LinkError, match="fill"):
        linker.link()
    linker.add_ptx(ahead.compile(fill, "void(float32[::1], float32)", cc=(9, 0))[0])
    assert b".text.k" in linker.link()


def test_lto_reaches_across_languages(libnvvm, jitlink, rtc):
    """With LTO-IR of both, the Python function is inlined into the C++ kernel."""
    source = """
    extern "C" __device__ float scale(float, float);
    extern "C" __global__ void k(float* p) { *p = scale(*p, 3); }
    """
    linker = Linker("sm_90", lto=True)
    linker.add_cu(source)
    ltoir, _ = ahead.compile(scale, "float32(float32, float32)", cc=(9, 0), output="ltoir")
    linker.add_ltoir(ltoir)
    cubin = linker.link()
    assert b".text.k" in cubin
    assert b"scale" not in cubin


def test_all_codes_are_given(libnvvm, rtc):
    """compile_all adds what the function links, CUDA C++ compiled."""
    code = CUSource('extern "C" __device__ int three() { return 3; }', "three.cu")
    three = declare_device("three", "int32()", code)

    def sixfold(x):
        return 2 * x * three()

    codes, returns = ahead.compile_all(sixfold, "int32(int32)", output="ptx", cc=(9, 0))
    assert returns == int32
    assert len(codes) == 2
    assert b".func  (.param .b32 func_retval0) three()" in codes[1]


@pytest.mark.skipif(PTXAS is None, reason="there is no ptxas")
@pytest.mark.parametrize("cc", sorted(ARCHITECTURES))
@pytest.mark.parametrize("codegen", ["nvvm", "nvvm7", "llvm"])
def test_every_architecture_assembles(cc, codegen, tmp_path, libnvvm):
    """For each compute capability each code generator makes PTX that ptxas takes."""
    ptx, _ = ahead.compile_ptx(
        fill, "void(float32[:], float32)", cc=cc, codegen=codegen, lineinfo=True,
        max_registers=32, launch_bounds=(256, 2),
    )  # fmt: skip
    path = tmp_path / "kernel.ptx"
    path.write_text(ptx)
    arch = Target(cc).arch
    command = [str(PTXAS), f"-arch={arch}", str(path), "-o", str(Path(tmp_path, "kernel.cubin"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f".target {arch}" in ptx


@pytest.mark.parametrize("codegen", ["nvvm", "nvvm7", "llvm"])
def test_bounds_are_in_the_ptx(codegen, libnvvm):
    """Launch bounds and the limit of registers become directives of the kernel."""
    ptx, _ = ahead.compile_ptx(
        fill, "void(float32[:], float32)", codegen=codegen, cc=(9, 0), max_registers=40,
        launch_bounds=(128, 4),
    )  # fmt: skip
    assert ".maxntid 128" in ptx
    assert ".minnctapersm 4" in ptx
    assert ".maxnreg 40" in ptx


@pytest.mark.parametrize("bounds", [0, (1, 2, 3, 4), "many", (128, -1)])
def test_bad_bounds_are_refused(bounds):
    """Launch bounds that are no positive ints are a ValueError."""
    with pytest.raises(ValueError, match="launch_bounds"):
        ahead.compile_ptx(fill, "void(float32[:], float32)", launch_bounds=bounds)
