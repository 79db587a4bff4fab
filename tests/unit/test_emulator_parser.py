"""PTX text is read completely, and what is wrong is told with its line."""

from __future__ import annotations

import contextlib
import re

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudadrv.emulator.analysis import param_layout
from cudadrv.emulator.check import check
from cudadrv.emulator.errors import PtxError
from cudadrv.emulator.isa import TABLE, Op
from cudadrv.emulator.parser import parse
from cudadrv.emulator.program import Program
from cudadrv.emulator.syntax import (
    Address,
    Float,
    Instruction,
    Integer,
    Name,
    Negated,
    Pair,
    Reference,
    Vector,
)

SAMPLE = """.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b32 table[2] = {1, 2};
.func (.param .b32 r) twice(.param .b32 x) {
  .reg .b32 v; ld.param.b32 v, [x]; add.s32 v, v, v; st.param.b32 [r], v; ret; }
.visible .entry k(.param .u64 at, .param .f32 scale) {
  .reg .pred p; .reg .b32 t, u; .reg .b64 a; .reg .f32 f; .shared .align 4 .b8 s[128];
  mov.u32 t, %tid.x; setp.gt.u32 p, t, 20; @p bra END;
  ld.param.u64 a, [at]; cvta.to.global.u64 a, a; mul.wide.u32 a, t, 4;
  shfl.sync.up.b32 u|p, t, 1, 0, -1;
  atom.shared.cas.b32 u, [s], t, 4; bar.sync 0; cvt.rn.f32.u32 f, u; fma.rn.f32 f, f, f, 0f3F800000;
  { .param .b32 x; .param .b32 r; st.param.b32 [x], t; call (r), twice, (x); ld.param.b32 t, [r]; }
  st.global.v2.b32 [a+8], {t, u}; prmt.b32 t, t, u, 0x5410; lop3.b32 t, t, u, t, 0x96;
END: ret; }
"""
HEAD = ".version 8.4\n.target sm_90a, debug\n.address_size 64\n"


def body(text: str) -> list[object]:
    """The statements of a kernel with this body."""
    function = parse(f"{HEAD}.entry k() {{\n{text}\n}}").functions["k"]
    assert function.body is not None
    return function.body.items


def one(text: str) -> Instruction:
    """The only instruction of a body."""
    (found,) = body(text)
    assert isinstance(found, Instruction)
    return found


def failure(text: str) -> PtxError:
    """The error that loading *text* gives."""
    with pytest.raises(PtxError) as caught:
        check(parse(text), (9, 0))
    return caught.value


def test_header() -> None:
    """Version, targets and address size."""
    module = parse(HEAD)
    assert module.version == (8, 4)
    assert module.target == ("sm_90a", "debug")
    assert module.address_size == 64


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mov.u32 %r1, %tid.x;", (Name("%r1"), Name("%tid.x"))),
        ("mov.u32 %r1, -0x10;", (Name("%r1"), Integer(-16))),
        ("mov.u32 %r1, 0b101U;", (Name("%r1"), Integer(5))),
        ("mov.u32 %r1, 010;", (Name("%r1"), Integer(8))),
        ("mov.f32 %f1, 0f3F800000;", (Name("%f1"), Float(0x3F800000, 32))),
        ("mov.f32 %f1, -0f3F800000;", (Name("%f1"), Float(0xBF800000, 32))),
        ("mov.f64 %f1, 1.5e0;", (Name("%f1"), Float(0x3FF8000000000000, 64))),
        ("ld.b32 %r1, [%rd1+-4];", (Name("%r1"), Address(Name("%rd1"), -4))),
        ("ld.b32 %r1, [%rd1-4];", (Name("%r1"), Address(Name("%rd1"), -4))),
        ("ld.b32 %r1, [64];", (Name("%r1"), Address(Integer(64)))),
        ("st.v2.b32 [a], {%r1, _};", (Address(Name("a")), Vector((Name("%r1"), Name("_"))))),
        ("setp.lt.s32 %p1|%p2, a, 1;", (Pair(Name("%p1"), Name("%p2")), Name("a"), Integer(1))),
        ("and.pred p, !q, r;", (Name("p"), Negated(Name("q")), Name("r"))),
        ("mov.u64 %rd1, table+16;", (Name("%rd1"), Name("table", 16))),
    ],
)
def test_operands(text: str, wanted: tuple[object, ...]) -> None:
    """Every kind of operand."""
    assert one(text).operands == wanted


def test_modifiers() -> None:
    """A name is split at its dots; :: belongs to a modifier."""
    found = one("ld.global.L1::evict_last.v4.f32 {a,b,c,d}, [p];")
    assert found.opcode == "ld"
    assert found.modifiers == ("global", "L1::evict_last", "v4", "f32")


def test_guards_and_lines() -> None:
    """Guards, several instructions in a line, and the source position from .loc."""
    first, second = body(".loc 2 17 3, function_name $L_info, inlined_at 1 2 3\n@!%p1 ret; exit;")
    assert isinstance(first, Instruction) and isinstance(second, Instruction)
    assert first.guard == Negated(Name("%p1"))
    assert first.line == second.line == 6
    assert first.source == (2, 17)


def test_registers_and_scopes() -> None:
    """Register ranges, lists, and declarations of inner blocks."""
    module = parse(
        f"{HEAD}.entry k() {{ .reg .pred %p<3>; .reg .b32 a, b; {{ .reg .f64 c; ret; }} }}"
    )
    block = module.functions["k"].body
    assert block is not None
    assert block.registers == {"%p0": "pred", "%p1": "pred", "%p2": "pred", "a": "b32", "b": "b32"}
    (inner,) = block.items
    assert inner.registers == {"c": "f64"}  # type: ignore[union-attr]


def test_variables() -> None:
    """Linkage, alignment, vectors, array sizes and initialisers."""
    module = parse(
        HEAD
        + """.visible .global .align 16 .b8 text[4] = {1, 2, 0xFF, -1};
        .extern .shared .align 8 .b8 dynamic[];
        .const .v4 .f32 v; .global .u32 a, b = 7;
        .global .f32 grid[2][3] = {{1.0, 2.0}, {0f3F800000}};
        .global .attribute(.managed) .s32 m;
        .global .u64 pointers[] = {text, generic(text)+4, 0xFF00(text)};"""
    )
    found = module.variables
    assert (found["text"].align, found["text"].count, found["text"].linkage) == (16, 4, "visible")
    assert [value.value for value in found["text"].init] == [1, 2, 255, -1]  # type: ignore[union-attr]
    assert (found["dynamic"].count, found["dynamic"].linkage) == (0, "extern")
    assert (found["v"].vector, found["v"].type) == (4, "f32")
    assert (found["b"].init, found["grid"].count, len(found["grid"].init)) == ([Integer(7)], 6, 3)
    assert found["m"].managed
    assert found["pointers"].count == 3
    assert found["pointers"].init == [
        Reference("text"),
        Reference("text", 4, True),
        Reference("text", 0, False, 0xFF00),
    ]


def test_functions() -> None:
    """Parameters, results, performance directives, and declarations before definitions."""
    module = parse(
        HEAD
        + """.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
        .func (.param .align 8 .b8 out[16]) f (.param .b32 x) .noreturn;
        .func (.param .align 8 .b8 out[16]) f (.param .b32 x) { ret; }
        .visible .entry k(.param .u64 .ptr .global .align 4 p, .param .u8 c,
        .param .align 8 .b8 s[12])
        .maxntid 128, 2, 1 .minnctapersm 2 .pragma "nounroll"; { ret; }"""
    )
    assert module.functions["f"].body is not None
    assert module.functions["vprintf"].body is None
    entry = module.functions["k"]
    assert entry.is_entry
    assert entry.directives["maxntid"] == (128, 2, 1)
    assert param_layout(entry.params) == [(0, 8), (8, 1), (16, 12)]


def test_debug_information_is_skipped() -> None:
    """Sections of debug data, files and comments are no obstacle."""
    module = parse(
        HEAD
        + """.file 1 "a.cu", 0, 5 /* a
        comment */
        .section .debug_abbrev { .b8 1 .b8 2 L: .b32 .debug_info+3 .b64 a-b }
        .entry k() { // nothing
        ret; }"""
    )
    assert module.files == {1: "a.cu"}
    assert list(module.functions) == ["k"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("nonsense", 1, ".version"),
        (HEAD + ".entry k() {\n ret\n}", 6, "operand or"),
        (HEAD + ".entry k() {\n add.s32 %r1, 2 3;\n}", 5, "','"),
        (HEAD + ".entry k() {\n ret;", 5, "end of the text"),
        (HEAD + ".entry k(.reg", 4, "type"),
        (HEAD + ".global .q32 a;", 4, "type"),
        (HEAD + ".global .b32 a;\n.global .b32 a;", 5, "twice"),
        (HEAD + ".entry k() {\n ret; # \n}", 5, "'#'"),
        (HEAD + ".entry k() {\n .reg .b99 a;\n}", 5, "register type"),
        (HEAD + ".global .b8 a[x];", 4, "integer"),
        (HEAD + ".global .align 6 .b8 a;", 4, "power of two"),
        (HEAD + ".entry k() {\n frob.s32 a, b;\n}", 5, "frob.s32"),
        (HEAD + ".entry k() {\n .reg .b32 a; add.q.s32 a, a, a;\n}", 5, ".q"),
        (HEAD + ".entry k() {\n .reg .b32 a; add.s32 a, a;\n}", 5, "sources"),
        (HEAD + ".entry k() {\n .reg .b32 a; add.s32 a, a, b;\n}", 5, "b is not defined"),
        (HEAD + ".entry k() {\n .reg .b32 a; { .reg .b32 c; }\n not.b32 a, c;\n}", 6, "c is not"),
        (HEAD + ".entry k() {\n bra NOWHERE;\n}", 5, "NOWHERE"),
        (
            HEAD + ".entry k() {\n .reg .b32 a; cvt.sat.u32.u16 a, a;\n}",
            5,
            "no .sat from u16 to u32",
        ),
        (HEAD + ".entry k() {\n .reg .f32 a; cvt.u32.f32 a, a;\n}", 5, "is rni, rzi"),
        (HEAD + ".entry k() {\n .reg .f32 a; cvt.f32.s32 a, a;\n}", 5, "needs rn"),
        (HEAD + ".entry k() {\n .reg .f64 a; add.sat.f64 a, a, a;\n}", 5, "no .sat for .f64"),
        (HEAD + ".entry k() {\n .reg .f64 a; div.f64 a, a, a;\n}", 5, "needs one of"),
        (HEAD + ".func f();\n.entry k() {\n call f;\n}", 6, "f is declared"),
    ],
)
def test_errors_name_the_line(text: str, line: int, words: str) -> None:
    """Whatever is wrong: its line number and what was found."""
    error = failure(text)
    assert error.line == line
    assert words in str(error)


@pytest.mark.parametrize(
    ("target", "fits"),
    [
        ("sm_52", True), ("sm_90", True), ("sm_90a", True), ("sm_91", False), ("sm_100", False),
        ("sm_80a", False), ("sm_90f", True), ("sm_80f", False), ("sm_120", False),
    ],
)  # fmt: skip
def test_targets(target: str, fits: bool) -> None:
    """PTX for newer devices, and for special features of others, is refused."""
    text = f".version 8.4\n.target {target}\n.address_size 64\n.entry k() {{ ret; }}"
    if fits:
        check(parse(text), (9, 0))
    else:
        assert f".target {target}" in str(failure(text))


def test_text_of_the_line() -> None:
    """The message shows the line."""
    with pytest.raises(PtxError, match=r"line 5; error: .*\n  add\.s32 %r1 2;"):
        parse(HEAD + ".entry k() {\n  add.s32 %r1 2;\n}")


def test_unknown_instructions_are_unsupported() -> None:
    """They are told apart from text that is no PTX."""
    assert failure(HEAD + ".entry k() {\n wgmma.fence.sync.aligned;\n}").unsupported
    assert not failure(HEAD + ".entry k() {\n ret\n}").unsupported


def test_rows_of_one_name_differ_in_types() -> None:
    """Where a name has several rows, each type leads to one of them."""
    for name, rows in TABLE.items():
        for row in rows:
            others = [other for other in rows if other is not row]
            for kind in row.types - {"f32"}:
                assert not any(kind in other.types for other in others), (name, kind)


def test_longest_name_wins() -> None:
    """mul.wide is a row of its own beside mul."""
    assert Op(Instruction("mul", ("wide", "s32"), (), 1)).row.name == "mul.wide"
    assert Op(Instruction("mul", ("f32",), (), 1)).row.name == "mul"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_programs_are_refused_or_read(data: st.DataObject) -> None:
    """Text with pieces lost, repeated or exchanged never fails in another way than PtxError."""
    pieces = re.findall(r"\s+|[\w.$%:]+|.", SAMPLE)
    for _ in range(data.draw(st.integers(1, 3))):
        at, other = (data.draw(st.integers(0, len(pieces) - 1)) for _ in range(2))
        pieces[at] = data.draw(st.sampled_from(["", pieces[other], pieces[at] + ".f32", "1", "-"]))
    with contextlib.suppress(PtxError):
        program = Program("".join(pieces))
        for kernel in program.kernels.values():
            llvm.parse_assembly(kernel.llvm_ir()).verify()
