"""The table of instructions: each form compiles with each generator, and ptxas takes it."""

from __future__ import annotations

import importlib.util

import pytest

from compiler import CompileError, types
from compiler.codegen import NoCodegen, Target
from compiler.dispatch.pipeline import Settings, compile_kernel
from compiler.lang.ptx import FORMS, Form
from tests.unit.cuda_kernels import KERNELS
from tests.unit.ir_samples import assemble, ptxas

NEEDS_PTXAS = pytest.mark.skipif(ptxas() is None, reason="no ptxas; install nvidia-cuda-nvcc")


def call(number: int, form: Form) -> list[str]:
    """The statements that call form *number* and store what it returns."""
    args = ", ".join("flag" if ty == types.boolean else f"{ty}_[0]" for ty in form.args)
    if form.returns == types.none:
        return [f"f{number}({args})"]
    items = form.returns.items if isinstance(form.returns, types.Tuple) else ()
    lines = [f"r = f{number}({args})"]
    lines += [f"out[{number}] = r[{i}]" for i in range(len(items))]
    return lines if items else [*lines, f"out[{number}] = r"]


def kernel(forms: list[tuple[object, Form]], folder):
    """A kernel that calls each of *forms*, and its argument types."""
    used = sorted({str(ty) for _, form in forms for ty in form.args} - {"boolean"})
    parameters = ", ".join(["out", "flag", *(f"{name}_" for name in used)])
    lines = [f"def k({parameters}):", "    flag = flag > 0"]
    for number, (_, form) in enumerate(forms):
        lines += [f"    {line}" for line in call(number, form)]
    path = folder / "forms.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location("forms", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module).update({f"f{number}": stub for number, (stub, _) in enumerate(forms)})
    arrays = tuple(getattr(types, name)[::1] for name in used)
    return module.k, (types.float64[::1], types.int32, *arrays)


@NEEDS_PTXAS
@pytest.mark.parametrize("codegen", ["llvm", "nvvm", "nvvm7"])
@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (9, 0), (10, 0), (12, 0)])
def test_each_form_assembles(cc, codegen, tmp_path):
    """All forms that the architecture has, in one kernel."""
    forms = [(stub, form) for stub, rows in FORMS.items() for form in rows if form.cc <= cc]
    function, args = kernel(forms, tmp_path)
    try:
        compiled = compile_kernel(function, args, Target(cc), Settings(codegen))
    except NoCodegen as error:
        pytest.skip(str(error))
    assemble(compiled.ptx, f"sm_{cc[0]}{cc[1]}", tmp_path)
    for _, form in forms:
        name = next(word for word in form.text.replace("{", " ").split() if word[0].isalpha())
        assert name.split(".")[0] in compiled.ptx


def test_what_an_architecture_lacks_is_refused(tmp_path):
    """The error names the instruction, what it needs, and what there is."""
    forms = [(stub, form) for stub, rows in FORMS.items() for form in rows if form.cc > (7, 5)]
    function, args = kernel(forms[:1], tmp_path)
    with pytest.raises(CompileError, match=r"needs compute .* 7\.5"):
        compile_kernel(function, args, Target((7, 5)), Settings("llvm"))


@NEEDS_PTXAS
@pytest.mark.parametrize("codegen", ["llvm", "nvvm", "nvvm7"])
@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (9, 0), (12, 0)])
def test_what_is_more_than_one_instruction_assembles(cc, codegen, tmp_path):
    """Atomics, hints, copies, groups, tensor cores, random numbers, print and exceptions."""
    for function, args, least in KERNELS.values():
        if cc < least:
            continue
        debug = function.__name__ == "reports"
        try:
            compiled = compile_kernel(function, args, Target(cc, debug=debug), Settings(codegen))
        except NoCodegen as error:
            pytest.skip(str(error))
        assemble(compiled.ptx, f"sm_{cc[0]}{cc[1]}", tmp_path)
        assert compiled.cooperative == (function.__name__ == "groups")
