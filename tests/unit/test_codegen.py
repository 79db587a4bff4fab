"""Both code generators: the choice between them, PTX versions, options, errors."""

from __future__ import annotations

import re
import threading

import pytest

from compiler.codegen import Codegen, CodegenError, NoCodegen, Target, ptx_version, select
from compiler.codegen.flags import annotated, uncontracted
from compiler.codegen.target import ARCHITECTURES, nearest_lower, oldest_ptx
from cudadrv import nvjitlink, nvvm
from cudadrv.toolkit import LibraryNotFound
from tests.unit.ir_samples import assemble, instructions, kernel, module, ptxas

CHOICES = ["llvm", "nvvm", "nvvm7"]
MULTIPLY_ADD = kernel(
    "k",
    ["float*", "float", "float", "double*", "double", "double"],
    [
        "%m = fmul float %a1, %a2",
        "%s = fadd float %m, %a1",
        "store float %s, float* %a0",
        "%n = fmul contract double %a4, %a5",
        "%t = fsub contract double %n, %a4",
        "store double %t, double* %a3",
    ],
)
DIVIDE = kernel(
    "k",
    ["float*", "float", "float"],
    [
        "%d = fdiv float %a1, %a2",
        "%q = call float @llvm.nvvm.sqrt.f(float %d)",
        "store float %q, float* %a0",
    ],
)
DIVIDE += "declare float @llvm.nvvm.sqrt.f(float)\n"


def has_nvvm() -> bool:
    """Whether there is a libNVVM."""
    return any(map(nvvm.load, nvvm.candidates()))


@pytest.fixture(params=CHOICES)
def choice(request: pytest.FixtureRequest) -> str:
    if request.param != "llvm" and not has_nvvm():
        pytest.skip("no libNVVM; install the wheel nvidia-nvvm")
    return request.param


def compiled(choice: str, body: str, target: Target) -> list[str]:
    """The instructions of *body* compiled for *target*."""
    generator = select(target, choice)
    return instructions(generator.compile(module(generator.dialect, body), target))


def version_of(ptx: str) -> tuple[int, int]:
    """The PTX ISA version that *ptx* says."""
    major, minor = ptx.partition(".version ")[2].split("\n")[0].split(".")
    return int(major), int(minor)


@pytest.mark.parametrize("cc", [*ARCHITECTURES, (9, 9), (13, 0)])
def test_every_architecture_has_code(choice, cc):
    """Known architectures get their own code; an unknown one that of the nearest lower."""
    target = Target(cc)
    generator = select(target, choice)
    ptx = generator.compile(module(generator.dialect, MULTIPLY_ADD), target)
    made = ptx.partition(".target sm_")[2].split("\n")[0].split(",")[0]
    made_cc = (int(made[:-1]), int(made[-1]))
    assert made_cc <= cc
    assert made_cc == cc or cc not in ARCHITECTURES or choice != "llvm"
    assert version_of(ptx) == generator.ptx
    assert ".visible .entry k(" in ptx


@pytest.mark.parametrize("limit", [(7, 8), (8, 0), (8, 6), (9, 0), (9, 5), (10, 0)])
@pytest.mark.parametrize("cc", [(7, 5), (9, 0)])
def test_ptx_is_never_newer_than_what_is_read(cc, limit):
    """Whatever the driver reads, the generator chosen emits that or older."""
    target = Target(cc, ptx=limit)
    generator = select(target)
    ptx = generator.compile(module(generator.dialect, MULTIPLY_ADD), target)
    assert version_of(ptx) == generator.ptx <= limit


def test_architecture_sinks_to_what_the_ptx_knows():
    """A driver that reads only PTX 8.0 gets sm_90 code for its sm_120."""
    assert "'sm_90'" in repr(select(Target((12, 0), ptx=(8, 0)), "llvm"))


def test_nothing_fits():
    """PTX older than any generator's is refused, with every generator's reason."""
    with pytest.raises(NoCodegen) as caught:
        select(Target((9, 0), ptx=(6, 0)))
    assert any(line.startswith("llvm: ") for line in caught.value.tried)
    assert "sm_90 with PTX 6.0 or older" in str(caught.value)


@pytest.mark.parametrize("cc", ARCHITECTURES)
@pytest.mark.parametrize("suffix", ["", "a", "f"])
def test_oldest_ptx_of_each_architecture_works(cc, suffix):
    """LLVM, which ends the process where the PTX version is too old, accepts the table's."""
    oldest = oldest_ptx(Target(cc, suffix=suffix))
    if oldest is None:
        assert (suffix, cc < (9, 0)) == ("a", True) or (suffix, cc < (10, 0)) == ("f", True)
        return
    target = Target(cc, ptx=oldest, suffix=suffix)
    generator = select(target, "llvm")
    ptx = generator.compile(module(generator.dialect, MULTIPLY_ADD), target)
    assert version_of(ptx) == oldest
    assert f".target {target.arch}\n" in ptx


@pytest.mark.parametrize(
    ("cuda", "ptx"),
    [((11, 8), (7, 8)), ((12, 0), (8, 0)), ((12, 6), (8, 5)), ((12, 9), (8, 8)), ((13, 0), (9, 0))],
)
def test_ptx_version_of_a_driver(cuda, ptx):
    """The table follows the release notes; between two entries the older holds."""
    assert ptx_version(cuda) == ptx


def test_driver_too_old():
    """A driver below CUDA 10 has no entry."""
    with pytest.raises(ValueError, match="older than 10"):
        ptx_version((9, 2))


@pytest.mark.parametrize(
    "arguments",
    [{"cc": (7, 0)}, {"cc": (9, 0), "suffix": "b"}, {"cc": (9, 0), "opt": 4}],
)
def test_target_checks_its_fields(arguments):
    """A target that cannot be is refused where it is made."""
    with pytest.raises(ValueError):
        Target(**arguments)


def test_nearest_lower_keeps_the_meaning_of_a_suffix():
    """Code for one architecture has no substitute; code for a family stays in the family."""
    assert [t.cc for t in nearest_lower(Target((9, 0), suffix="a"))] == [(9, 0)]
    assert [t.cc for t in nearest_lower(Target((12, 1), suffix="f"))] == [(12, 1), (12, 0)]
    assert [t.cc for t in nearest_lower(Target((8, 0)))] == [(8, 0), (7, 5)]


def test_choice_by_variable(monkeypatch):
    """COMPILER_CODEGEN chooses; an unknown value is refused with the known ones."""
    monkeypatch.setenv("COMPILER_CODEGEN", "llvm")
    assert select(Target((9, 0))).name == "llvm"
    monkeypatch.setenv("COMPILER_CODEGEN", "gcc")
    with pytest.raises(ValueError, match="nvvm, nvvm7, llvm"):
        select(Target((9, 0)))


def test_named_libnvvm_is_not_replaced(monkeypatch, tmp_path):
    """LLVM does not silently stand in for the libNVVM that CUDADRV_NVVM names."""
    monkeypatch.setenv("CUDADRV_NVVM", str(tmp_path / "libnvvm.so"))
    target = Target((9, 0), ptx=(8, 3))
    with pytest.raises(NoCodegen, match=r"libnvvm\.so"):
        select(target, "auto")
    assert select(target, "llvm").name == "llvm"


def test_one_generator_for_all_options():
    """Targets that differ in options alone share a generator."""
    assert select(Target((9, 0))) is select(Target((9, 0), fastmath=True, debug=True))


def test_dialects():
    """Typed pointers only in the LLVM 7 dialect."""
    if not has_nvvm():
        pytest.skip("no libNVVM; install the wheel nvidia-nvvm")
    typed = [select(Target(cc), "nvvm7").dialect.typed_pointers for cc in ((9, 0), (10, 0))]
    assert typed == [True, False]
    assert not select(Target((9, 0)), "llvm").dialect.typed_pointers


def test_contraction(choice):
    """With fma a product and a sum become one instruction, in both precisions."""
    made = compiled(choice, MULTIPLY_ADD, Target((9, 0)))
    assert "fma.rn.f32" in made
    assert "fma.rn.f64" in made


@pytest.mark.parametrize("opt", [0, 3])
def test_no_contraction(choice, opt):
    """Without, every operation is rounded by itself, even one flagged "contract".

    An instruction without ".rn" would let ptxas contract it after all.
    """
    made = compiled(choice, MULTIPLY_ADD, Target((9, 0), fma=False, opt=opt))
    assert not [name for name in made if name.startswith("fma")]
    assert {"mul.rn.f32", "add.rn.f32", "mul.rn.f64"} <= set(made)
    assert "sub.rn.f64" in made or "add.rn.f64" in made


PRECISE = {"div.rn.f32", "sqrt.rn.f32"}
FAST = {"div.full.ftz.f32", "sqrt.approx.ftz.f32"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PRECISE),
        ({"fastmath": True}, FAST),
        ({"ftz": True}, {"div.rn.ftz.f32", "sqrt.rn.ftz.f32"}),
        ({"prec_div": False}, {"div.full.f32", "sqrt.rn.f32"}),
        ({"prec_sqrt": False}, {"div.rn.f32", "sqrt.approx.f32"}),
        ({"fastmath": True, "prec_div": True, "prec_sqrt": True, "ftz": False}, PRECISE),
    ],
)
def test_precision_of_division_and_root(choice, options, expected):
    """Each part of fastmath alone, all and none of them choose the instructions."""
    made = compiled(choice, DIVIDE, Target((9, 0), **options))
    assert {name for name in made if name.startswith(("div", "sqrt"))} == expected


def test_reciprocals_and_scalings_stay_foldable():
    """In LLVM's IR only divisions by a variable become calls; others are marked."""
    lines = [
        "%a = fdiv float 1.000000e+00, %x",
        '%b = fdiv fast float 0x3FF0000000000000, %".2"',
        "%c = fdiv float %x, 3.000000e+00, !dbg !3",
        '%d = fdiv fast float 1.500000e+00, %".2", !dbg !3',
        "%e = fdiv double %x, %y",
    ]
    text = annotated("\n".join(lines), Target((9, 0), prec_div=False)).splitlines()
    assert text[0] == "%a = fdiv arcp afn float 1.000000e+00, %x"
    assert text[1] == '%b = fdiv arcp afn fast float 0x3FF0000000000000, %".2"'
    assert text[2] == "%c = fdiv arcp afn float %x, 3.000000e+00, !dbg !3"
    call = '%d = call float @llvm.nvvm.div.full(float 1.500000e+00, float %".2"), !dbg !3'
    assert text[3] == call
    assert text[4] == "%e = fdiv double %x, %y"
    assert text[5] == "declare float @llvm.nvvm.div.full(float, float)"


def test_contract_is_taken_from_every_instruction():
    """Whatever stands before it, the flag goes and nothing else does."""
    lines = ["%a = fadd nnan contract nsz float %x, %y", "%b = tail call contract float @f()"]
    expected = ["%a = fadd nnan nsz float %x, %y", "%b = tail call float @f()"]
    assert uncontracted("\n".join(lines)).splitlines() == expected


def test_flushing_attribute_follows_the_parameters():
    """The attribute stands after the parameters, however these are written."""
    line = "define void @f(i8* byval(%s) %x, i32 (i32)* %g) #1 !dbg !4 {"
    text = annotated(line + "\n  ret void\n}\n", Target((9, 0), ftz=True))
    expected = line.replace(") #1", ') "denormal-fp-math-f32"="preserve-sign" #1')
    assert text.splitlines()[0] == expected


def test_debug_does_not_optimise(choice):
    """With debug nothing is inlined."""
    body = kernel("k", ["i32*"], ["%x = call i32 @f()", "store i32 %x, i32* %a0"])
    body += "define internal i32 @f() {\n  ret i32 3\n}\n"
    assert "call.uni" not in compiled(choice, body, Target((9, 0)))
    assert "call.uni" in compiled(choice, body, Target((9, 0), debug=True))


@pytest.mark.parametrize(
    "body",
    [
        "define void @k( {\n}\n",
        "define void @k() {\n  %x = add i32 1, 2.0\n  ret void\n}\n",
    ],
)
def test_refused_ir(choice, body):
    """IR that does not parse is a CodegenError with the log and the IR."""
    generator = select(Target((9, 0)), choice)
    source = module(generator.dialect, body)
    with pytest.raises(CodegenError) as caught:
        generator.compile(source, Target((9, 0)))
    assert caught.value.generator == generator.name
    assert body in caught.value.ir
    assert len(caught.value.log) > 20


def test_ir_that_does_not_verify_is_refused():
    """LLVM's verifier speaks before its code generator, which would end the process."""
    body = "define i32 @f() {\n  br label %a\na:\n  %x = phi i32 [ 1, %a ]\n  ret i32 %x\n}\n"
    generator = select(Target((9, 0)), "llvm")
    with pytest.raises(CodegenError, match="PHI"):
        generator.compile(module(generator.dialect, body), Target((9, 0)))


CRASHES = [
    ("declare i32 @llvm.nvvm.redux.sync.add(i32, i32)", (7, 5), (9, 0), "sm_80"),
    ("declare float @llvm.nvvm.redux.sync.fmin(float, i32)", (10, 0), (9, 0), "sm_100a"),
    ("declare i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()", (8, 6), (9, 0), "sm_90"),
    ("declare void @llvm.nvvm.mbarrier.init(i64*, i32)", (7, 5), (9, 0), "sm_80"),
    ("declare void @llvm.nvvm.griddepcontrol.wait()", (8, 9), (9, 0), "sm_90"),
    ("declare float @llvm.nvvm.tanh.approx.f32(float)", (7, 5), (6, 3), "PTX 7.0"),
]


@pytest.mark.parametrize(("declaration", "cc", "ptx", "says"), CRASHES)
def test_what_llvm_cannot_select_is_refused(declaration, cc, ptx, says):
    """An intrinsic that would make LLVM end the process is an error that says what it needs."""
    target = Target(cc, ptx=ptx)
    generator = select(target, "llvm")
    body = kernel("k", ["i32*"], []) + declaration + "\n"
    with pytest.raises(CodegenError, match=says):
        generator.compile(module(generator.dialect, body), target)


@pytest.mark.parametrize(("flags", "name"), [("", "sin.f32"), ("afn", "exp.f32"), ("", "log.f64")])
def test_functions_without_instruction_are_refused(flags, name):
    """LLVM's own functions of math have no library behind them: libdevice is named instead."""
    kind = "float" if name.endswith("32") else "double"
    declaration = f"declare {kind} @llvm.{name}({kind})\n"
    lines = [f"%x = call {flags} {kind} @llvm.{name}({kind} %a1)", f"store {kind} %x, {kind}* %a0"]
    generator = select(Target((9, 0)), "llvm")
    body = kernel("k", [f"{kind}*", kind], lines) + declaration
    with pytest.raises(CodegenError, match=r"libdevice"):
        generator.compile(module(generator.dialect, body), Target((9, 0)))
    if name == "sin.f32":
        approximate = body.replace("call  float", "call afn float")
        assert "sin.approx.f32" in compiled("llvm", approximate, Target((9, 0)))


def test_what_llvm_can_select_is_not_refused():
    """The same intrinsics pass where the architecture has them."""
    lines = [
        "%x = call i32 @llvm.nvvm.redux.sync.add(i32 1, i32 -1)",
        "%y = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()",
        "call void @llvm.nvvm.griddepcontrol.wait()",
        "%s = add i32 %x, %y",
        "store i32 %s, i32* %a0",
    ]
    declarations = "\n".join(CRASHES[n][0] for n in (0, 2, 4))
    made = compiled("llvm", kernel("k", ["i32*"], lines) + declarations, Target((9, 0)))
    assert {"redux.sync.add.s32", "griddepcontrol.wait"} <= set(made)


def test_optimized_ir_can_be_read():
    """optimize() gives the module as LLVM leaves it."""
    generator = select(Target((9, 0)), "llvm")
    text = generator.optimize(module(generator.dialect, MULTIPLY_ADD), Target((9, 0)))
    assert "define ptx_kernel void @k" in text


LINES = """
!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!4}
!2 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !3, producer: "test",
  isOptimized: true, runtimeVersion: 0, emissionKind: DebugDirectivesOnly, enums: !7)
!3 = !DIFile(filename: "kernel.py", directory: "/home")
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = distinct !DISubprogram(name: "k", scope: !3, file: !3, line: 1, type: !6, isLocal: false,
  isDefinition: true, scopeLine: 1, isOptimized: true, unit: !2, retainedNodes: !7)
!6 = !DISubroutineType(types: !7)
!7 = !{}
!8 = !DILocation(line: 11, column: 3, scope: !5)
"""


def test_lines_reach_the_ptx(choice):
    """With "DebugDirectivesOnly" the PTX names lines, and stays optimised."""
    body = kernel("k", ["i32*"], ["store i32 7, i32* %a0, !dbg !8"]).replace(") {", ") !dbg !5 {")
    generator = select(Target((9, 0)), choice)
    ptx = generator.compile(module(generator.dialect, body + LINES), Target((9, 0)))
    assert re.search(r"\.loc\s+1 11 3\b", ptx)
    assert re.search(r'\.file\s+1 ".*kernel\.py"', ptx)
    assert ", debug" not in ptx


def test_lto_ir():
    """libNVVM makes LTO-IR, which is binary and holds no PTX."""
    if not has_nvvm():
        pytest.skip("no libNVVM; install the wheel nvidia-nvvm")
    generator = select(Target((9, 0)), "nvvm")
    data = generator.compile_lto(module(generator.dialect, MULTIPLY_ADD), Target((9, 0)))
    assert len(data) > 500
    assert b".version" not in data


@pytest.mark.parametrize("cc", [(9, 0), (10, 0)])
def test_kernels_survive_optimisation_when_linked(cc):
    """A kernel in LTO-IR is there after linking, though nothing calls it."""
    if not has_nvvm():
        pytest.skip("no libNVVM; install the wheel nvidia-nvvm")
    generator = select(Target(cc), "nvvm7")
    body = module(generator.dialect, MULTIPLY_ADD)
    data = generator.compile_lto(body, Target(cc))
    try:
        with nvjitlink.Link([f"-arch={Target(cc).arch}", "-lto"]) as link:
            link.add("ltoir", data, "k")
            link.complete()
            assert b".text.k\0" in link.cubin
    except LibraryNotFound as error:
        pytest.skip(str(error))


def test_threads(choice):
    """Several threads may compile at once, and each gets its own code."""
    generator: Codegen = select(Target((9, 0)), choice)
    results: dict[int, str] = {}

    def work(n: int) -> None:
        body = kernel(f"k{n}", ["i32*"], [f"store i32 {n + 1000}, i32* %a0"])
        results[n] = generator.compile(module(generator.dialect, body), Target((9, 0)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"entry k{n}(" in results[n] and str(n + 1000) in results[n] for n in range(8))


@pytest.mark.skipif(ptxas() is None, reason="no ptxas; install the wheel nvidia-cuda-nvcc")
@pytest.mark.parametrize("cc", [(7, 5), (8, 9), (9, 0), (10, 0), (12, 1)])
@pytest.mark.parametrize("options", [{}, {"fastmath": True}, {"debug": True, "fma": False}])
def test_ptx_assembles(choice, tmp_path, cc, options):
    """NVIDIA's assembler accepts the PTX."""
    target = Target(cc, **options)
    generator = select(target, choice)
    assemble(generator.compile(module(generator.dialect, DIVIDE), target), target.arch, tmp_path)
