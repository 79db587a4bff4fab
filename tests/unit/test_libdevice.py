"""Functions of libdevice in PTX from both generators."""

from __future__ import annotations

import re

import pytest

from compiler.codegen import Codegen, Target, select
from compiler.codegen.flags import with_fast_functions
from compiler.lang.libdevice_table import SIGNATURES
from cudadrv import nvvm
from tests.unit.ir_samples import assemble, generator_module, instructions, ptxas
from tools import gen_libdevice

try:
    nvvm.libdevice()
except nvvm.NvvmNotFound as error:
    pytest.skip(str(error), allow_module_level=True)

NAMES = sorted(SIGNATURES)


@pytest.fixture(params=["llvm", "nvvm", "nvvm7"])
def generator(request: pytest.FixtureRequest) -> Codegen:
    return select(Target((9, 0)), request.param)


def test_table_of_signatures_is_what_the_file_says():
    """Generating libdevice_table.py again changes nothing."""
    assert gen_libdevice.generate(nvvm.libdevice()) == gen_libdevice.OUTPUT.read_text()


def test_every_function_links(generator):
    """Each function of libdevice becomes code; nothing is left undefined, nothing exported."""
    ptx = generator.compile(generator_module(generator, NAMES), Target((9, 0)))
    assert ".extern" not in ptx
    assert re.findall(r"^\.visible .*\s(\w+)\(", ptx, re.MULTILINE) == ["k"]
    stored = sum(1 for name in instructions(ptx) if name.startswith("st.volatile"))
    assert stored >= sum(1 for letters in SIGNATURES.values() if letters[0] != "v")


def test_only_what_is_called_is_emitted(generator):
    """A kernel that calls exp holds no other function and no table of the trigonometric ones."""
    ptx = generator.compile(generator_module(generator, ["__nv_exp"]), Target((9, 0)))
    assert ".func" not in ptx
    assert "__cudart" not in ptx
    assert instructions(ptx).count("ex2.approx.ftz.f32") == 0
    assert instructions(ptx).count("fma.rn.f64") >= 10


@pytest.mark.parametrize("flush", [False, True])
def test_flushing_reaches_libdevice(generator, flush):
    """__nvvm_reflect("__CUDA_FTZ") in libdevice answers as the target says."""
    target = Target((9, 0), ftz=flush)
    ptx = generator.compile(generator_module(generator, ["__nv_fmaf", "__nv_floorf"]), target)
    assert ("fma.rn.ftz.f32" in instructions(ptx)) == flush
    assert ("cvt.rmi.ftz.f32.f32" in instructions(ptx)) == flush


@pytest.mark.parametrize("precise", [False, True])
def test_precision_of_square_root_reaches_libdevice(generator, precise):
    """__nvvm_reflect("__CUDA_PREC_SQRT") in libdevice answers as the target says."""
    target = Target((9, 0), prec_sqrt=precise)
    ptx = generator.compile(generator_module(generator, ["__nv_sqrtf"]), target)
    expected = "sqrt.rn.f32" if precise else "sqrt.approx.f32"
    assert [name for name in instructions(ptx) if name.startswith("sqrt")] == [expected]


def test_fastmath_takes_the_fast_functions(generator):
    """With fastmath sinf and expf are single approximations of the hardware."""
    target = Target((9, 0), fastmath=True)
    ptx = generator.compile(generator_module(generator, ["__nv_sinf", "__nv_expf"]), target)
    assert {"sin.approx.ftz.f32", "ex2.approx.ftz.f32"} <= set(instructions(ptx))
    assert len(instructions(ptx)) < 30


def test_fast_names_are_declared_once():
    """A module that declares both sinf and its fast form keeps one declaration."""
    source = "declare float @__nv_sinf(float)\ndeclare float @__nv_fast_sinf(float)\n"
    assert with_fast_functions(source) == "declare float @__nv_fast_sinf(float)\n"


def test_own_definition_wins(generator):
    """A module that defines __nv_exp itself keeps its own."""
    source = generator_module(generator, ["__nv_exp"])
    own = "define internal double @__nv_exp(double %x) {\n  ret double %x\n}\n"
    source = source.replace("declare double @__nv_exp(double)\n", own)
    ptx = generator.compile(source, Target((9, 0)))
    assert "fma.rn.f64" not in instructions(ptx)


@pytest.mark.skipif(ptxas() is None, reason="no ptxas; install the wheel nvidia-cuda-nvcc")
@pytest.mark.parametrize("cc", [(7, 5), (9, 0), (12, 0)])
@pytest.mark.parametrize("choice", ["llvm", "nvvm"])
def test_sample_assembles(tmp_path, choice, cc):
    """ptxas accepts a sample of the functions."""
    target = Target(cc)
    chosen = select(target, choice)
    ptx = chosen.compile(generator_module(chosen, NAMES[::16]), target)
    assemble(ptx, target.arch, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(ptxas() is None, reason="no ptxas; install the wheel nvidia-cuda-nvcc")
@pytest.mark.parametrize("cc", [(7, 5), (8, 6), (9, 0), (10, 0), (12, 1)])
def test_every_function_assembles(tmp_path, cc):
    """ptxas accepts every function from LLVM's generator."""
    target = Target(cc)
    chosen = select(target, "llvm")
    for start in range(0, len(NAMES), 50):
        ptx = chosen.compile(generator_module(chosen, NAMES[start : start + 50]), target)
        assemble(ptx, target.arch, tmp_path)
