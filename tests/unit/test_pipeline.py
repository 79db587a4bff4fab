"""The compiler without a device: every stage, both generators, and ptxas as the judge."""

from __future__ import annotations

import importlib.util
import math
import re

import pytest

import compiler as cuda
from compiler import types
from compiler.codegen import NoCodegen, Target
from compiler.codegen.target import ARCHITECTURES
from compiler.dispatch.annotate import annotate
from compiler.dispatch.pipeline import Settings, compile_kernel, infer_kernel
from compiler.frontend.syntax import build
from cudadrv import ptxlink
from tests.unit.ir_samples import assemble, ptxas

pytestmark = pytest.mark.usefixtures("edited_modules")

F32 = types.float32
TILE = 16


def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def block_sum(x, out):
    part = cuda.shared.array(TILE * 16, cuda.float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    half = cuda.blockDim.x >> 1
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half >>= 1
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


def helper(value, power=2):
    return math.exp(value) // power, value**3


def views(x, n):
    local = cuda.local.array((2, 2), cuda.float64)
    for i in range(0, n, 2):
        first, second = helper(x[i, -1])
        local[0, 1] = first
        part = x[1:, ::-2]
        x[i][0] = min(first, second, 3.0) + part[0, 0] + round(first) % 3 + local.T[1, 0]
    dynamic = cuda.shared.array(0, cuda.int32)
    dynamic[0] = math.floor(x[0, 0]) if dynamic.size else -1


KERNELS = {
    "saxpy": (saxpy, (types.py_float, F32[::1], F32[::1], F32[::1])),
    "block_sum": (block_sum, (F32[:], F32[::1])),
    "views": (views, (F32[:, ::1], types.py_int)),
    "views_strided": (views, (types.float64[:, :], types.uint32)),
}


@pytest.mark.skipif(ptxas() is None, reason="no ptxas; install the wheel nvidia-cuda-nvcc")
@pytest.mark.parametrize("cc", ARCHITECTURES)
@pytest.mark.parametrize("codegen", ["llvm", "nvvm", "nvvm7"])
def test_ptx_assembles(codegen, cc, tmp_path):
    """Each generator's PTX, for each architecture, is accepted by NVIDIA's assembler."""
    texts = {}
    for name, (function, args) in KERNELS.items():
        try:
            made = compile_kernel(function, args, Target(cc), Settings(codegen))
        except NoCodegen as error:
            pytest.skip(str(error))
        texts[name] = made.ptx.replace(f" {made.name}(", f" {name}(")
    assert all(f".target {Target(cc).arch}" in text for text in texts.values())
    assemble(ptxlink.join(texts), Target(cc).arch, tmp_path)


@pytest.mark.parametrize("codegen", ["llvm", "nvvm"])
def test_literals_do_not_widen_float32(codegen):
    """A Python float beside a float32 array leaves no 64-bit arithmetic in the code."""

    def scale(x):
        i = cuda.grid(1)
        x[i] = x[i] * 2.5 + 0.1 / (1.0 + abs(x[i]))

    compiled = compile_kernel(scale, (F32[::1],), Target((8, 0)), Settings(codegen))
    assert not re.search(r"\.f64|%fd", compiled.ptx)


@pytest.mark.parametrize("codegen", ["llvm", "nvvm", "nvvm7"])
@pytest.mark.parametrize("fma", [True, False])
def test_fma_is_an_option(codegen, fma):
    """a * b + c is rounded once, unless fma is off."""
    function, args = KERNELS["saxpy"]
    compiled = compile_kernel(function, args, Target((8, 0), fma=fma), Settings(codegen))
    assert ("fma.rn.f32" in compiled.ptx) == fma


@pytest.mark.parametrize("codegen", ["llvm", "nvvm", "nvvm7"])
def test_indices_that_cannot_be_negative_are_not_tested(codegen):
    """grid() is known not to be negative, so indexing with it costs no comparison with zero."""
    function, args = KERNELS["saxpy"]
    compiled = compile_kernel(function, args, Target((8, 0)), Settings(codegen))
    assert compiled.ptx.count("setp") == 1
    assert "shr.s64" not in compiled.ptx


def test_inspect_types_annotates_assignments():
    """Each line that assigns a name is followed by the name's type."""
    text = annotate(infer_kernel(block_sum, (F32[::1], F32[::1])))
    assert "part: float32[::1]@shared" in text
    assert "half: int" in text
    assert "def block_sum(x, out):" in text


def test_a_name_used_for_two_types_is_two_variables():
    """The second assignment starts a value of its own."""

    def twice(x):
        v = x[0]
        x[1] = v
        v = x
        v[2] = 1.0

    typed = infer_kernel(twice, (F32[::1],))
    kinds = [str(typed.types[value]) for name, value, _ in typed.function.writes if name == "v"]
    assert kinds == ["float32", "float32[::1]@global"]


def test_loop_variables_reach_a_fixpoint():
    """An accumulator that starts as a Python float takes the type of what is added."""

    def total(x, out):
        acc = 0.0
        for i in range(x.size):
            acc += x[i]
        out[0] = acc

    typed = infer_kernel(total, (F32[::1], F32[::1]))
    phi = next(value for value in typed.types if value.attr == "acc" and value.op.value == "phi")
    assert typed.types[phi] == types.float32


def test_ssa_form_is_readable():
    """The dump shows blocks, their predecessors and the ops."""
    text = build(saxpy).dump()
    assert text.startswith("function saxpy(a, x, y, out)")
    assert "apply lt" in text
    assert "branch" in text


def test_long_functions_compile(tmp_path):
    """A thousand statements with branches neither exhaust the stack nor take long."""
    body = "".join(f"    if x[{i % 7}] > {i}:\n        s = s + x[{i % 5}]\n" for i in range(500))
    path = tmp_path / "long.py"
    path.write_text(f"def k(x):\n    s = 0.0\n{body}    x[0] = s\n")
    namespace: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    infer_kernel(namespace["k"], (F32[::1],))


def test_edited_file_does_not_change_what_was_imported(tmp_path):
    """The text that counts is that of the file when jit saw the function, until it is reloaded."""
    path = tmp_path / "edited.py"

    def load(value):
        path.write_text(f"import compiler as cuda\n@cuda.jit\ndef k(x):\n    x[0] = {value}\n")
        spec = importlib.util.spec_from_file_location("edited", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.k

    def text(kernel):
        return str(compile_kernel(kernel.pyfunc, (F32[::1],), Target((9, 0))).llvm_ir)

    first = load(3)
    path.write_text(path.read_text().replace("= 3", "= 4444"))
    assert "0x4008000000000000" in text(first)
    assert "0x4014000000000000" in text(load(5))
    assert "0x4008000000000000" in text(first)
