"""State spaces, addresses, atomics and calls."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device.ptx import Array, Buffer, elementwise, function, launch, load, module_text, run

INDEX = """
.reg .u32 t, i, n; .reg .u64 base, at; .reg .pred p, q; ld.param.u64 base, [p0];
mov.u32 i, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, n, t;
"""


@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16"])
def test_narrow_loads_extend(kind: str) -> None:
    """A load into a wider register extends by the sign of its type."""
    width = int(kind[1:]) // 8
    body = f"""{INDEX} .reg .u64 in; .reg .b32 v; ld.param.u64 in, [p1];
    mad.wide.u32 at, i, {width}, in; ld.global.{kind} v, [at]; mad.wide.u32 at, i, 4, base;
    st.global.b32 [at], v;"""
    values = np.arange(256).astype("u1").view({"u": "u1", "s": "i1"}[kind[0]])
    if width == 2:
        values = (np.arange(256) * 257).astype("u2").view({"u": "u2", "s": "i2"}[kind[0]])
    got, _ = run(module_text(body, 2), 4, 64, np.zeros(256, "i4"), values)
    assert np.array_equal(got, values.astype("i4"))


def test_vectors() -> None:
    """v2 and v4 accesses move neighbouring elements, and mov packs and unpacks."""
    body = f"""{INDEX} .reg .u64 x; .reg .b32 a, b, c, d; mad.wide.u32 at, i, 16, base;
    ld.global.v4.b32 {{a, b, c, d}}, [at]; mov.b64 x, {{d, c}}; st.global.v2.b32 [at+8], {{a, b}};
    mov.b64 {{a, b}}, x; st.global.v2.u32 [at], {{a, b}};"""
    values = np.arange(64 * 4, dtype="u4").reshape(64, 4)
    (got,) = run(module_text(body), 1, 64, values)
    assert np.array_equal(got, values[:, [3, 2, 0, 1]])


def test_global_and_constant_variables() -> None:
    """Initialisers of every kind, addresses among them, and stores that stay."""
    declarations = """
    .global .align 4 .b32 table[4] = {10, -20, 0x30, 40};
    .const .align 8 .f64 numbers[2] = {0d3FF8000000000000, 2.5};
    .global .align 8 .u64 where = table;
    .global .align 8 .u64 later[2] = {generic(table)+8, 0};
    .global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
    .global .u32 counter;"""
    body = f"""{INDEX} .reg .u64 x; .reg .u32 v; .reg .f64 f;
    ld.global.u64 x, [where]; ld.global.u32 v, [x+4]; st.global.u32 [base], v;
    ld.global.u64 x, [later]; ld.global.u32 v, [x]; st.global.u32 [base+4], v;
    ld.const.f64 f, [numbers+8]; cvt.rzi.u32.f64 v, f; st.global.u32 [base+8], v;
    mov.u64 x, text; cvta.global.u64 x, x; ld.u8 v, [x+4]; st.global.u32 [base+12], v;
    ld.global.u32 v, [counter]; add.u32 v, v, 1; st.global.u32 [counter], v;
    st.global.u32 [base+16], v; ld.global.u32 v, [table+12]; st.global.u32 [base+20], v;"""
    kernel = function(load(module_text(body, 1, declarations)), "k")
    for turn in (1, 2):
        buffer = Buffer(np.zeros(6, "u4"))
        launch(kernel, 1, 1, buffer)
        assert buffer.read().tolist() == [2**32 - 20, 0x30, 2, ord("o"), turn, 40]


def test_generic_addresses() -> None:
    """cvta makes pointers to shared and local memory that plain loads and stores take."""
    body = f"""{INDEX} .shared .align 4 .b8 s[512]; .local .align 8 .b8 l[16];
    .reg .u64 x, y; .reg .u32 v, w;
    mov.u64 x, s; cvta.shared.u64 x, x; mad.wide.u32 x, t, 4, x; add.u32 v, t, 5; st.u32 [x], v;
    mov.u64 y, l; cvta.local.u64 y, y; st.u32 [y+4], v; ld.local.u32 w, [l+4]; ld.u32 v, [x];
    add.u32 v, v, w; bar.sync 0; cvta.to.shared.u64 x, x; ld.shared.u32 w, [x]; add.u32 v, v, w;
    isspacep.shared p, y; @p add.u32 v, v, 1000; cvta.shared.u64 x, x; isspacep.shared p, x;
    @p add.u32 v, v, 100; isspacep.global p, base; @p add.u32 v, v, 10000;
    mad.wide.u32 at, i, 4, base; st.global.u32 [at], v;"""
    (got,) = run(module_text(body), 1, 64, np.zeros(64, "u4"))
    assert got.tolist() == [3 * (t + 5) + 10100 for t in range(64)]


def test_local_arrays_are_private() -> None:
    """Every thread indexes its own local memory, also where a loop of threads is one loop."""
    body = f"""{INDEX} .local .align 4 .b8 l[64]; .reg .u64 x; .reg .u32 v, k, sum;
    mov.u32 k, 0; mov.u64 x, l;
    FILL: mul.lo.u32 v, k, i; st.local.u32 [x], v; add.u64 x, x, 4; add.u32 k, k, 1;
    setp.lt.u32 p, k, 16; @p bra FILL;
    and.b32 k, i, 15; mov.u64 x, l; mad.wide.u32 x, k, 4, x; ld.local.u32 sum, [x];
    mad.wide.u32 at, i, 4, base; st.global.u32 [at], sum;"""
    (got,) = run(module_text(body), 4, 64, np.zeros(256, "u4"))
    assert got.tolist() == [(i & 15) * i for i in range(256)]


def test_parameters_of_all_sizes() -> None:
    """Parameters are aligned to their size; structures are read through their address."""
    text = module_text("", 0).replace(
        "k()",
        "k(.param .u8 a, .param .u64 out, .param .f32 f, .param .align 8 .b8 s[24], .param .s16 h)",
    )
    body = (
        """.reg .u64 x, y; .reg .u32 v; .reg .f32 f; .reg .b16 w;
    ld.param.u64 x, [out]; ld.param.u8 w, [a]; cvt.u32.u8 v, w; st.global.u32 [x], v;
    ld.param.f32 f, [f]; cvt.rzi.u32.f32 v, f; st.global.u32 [x+4], v;
    mov.b64 y, s; ld.param.u32 v, [y+16]; st.global.u32 [x+8], v;
    ld.param.s16 v, [h]; st.global.u32 [x+12], v; ld.param.u32 v, [s+4]; st.global.u32 [x+16], v;
    """.replace("ld.param.f32 f, [f];", "ld.param.f32 g, [f];")
        .replace(".reg .f32 f;", ".reg .f32 g;")
        .replace("u32.f32 v, f;", "u32.f32 v, g;")
    )
    import ctypes

    out = Buffer(np.zeros(5, "u4"))
    struct = (ctypes.c_uint32 * 6)(1, 22, 3, 4, 55, 6)
    kernel = function(load(text.replace("{\n\nret", "{\n" + body + "\nret")), "k")
    arguments = [ctypes.c_uint8(200), out, ctypes.c_float(7.5), struct, ctypes.c_int16(-3)]
    launch(kernel, 1, 1, *arguments)
    assert out.read().tolist() == [200, 7, 55, 2**32 - 3, 22]


ATOMICS = [
    ("add.u32", "u4", lambda x: x.sum(dtype="u4")),
    ("min.s32", "i4", np.min),
    ("max.s32", "i4", np.max),
    ("min.u64", "u8", np.min),
    ("max.u32", "u4", np.max),
    ("and.b32", "u4", np.bitwise_and.reduce),
    ("or.b64", "u8", np.bitwise_or.reduce),
    ("xor.b32", "u4", np.bitwise_xor.reduce),
    ("add.u64", "u8", lambda x: x.sum(dtype="u8")),
]


@pytest.mark.parametrize(("name", "kind", "total"), ATOMICS, ids=lambda v: str(v)[:8])
@pytest.mark.parametrize("how", ["atom", "red"])
def test_atomics_of_all_blocks(name: str, kind: str, total: object, how: str) -> None:
    """Threads of many blocks update one word; none is lost."""
    width = int(kind[1])
    body = f"""{INDEX} .reg .u64 in; .reg .b{8 * width} v, old; ld.param.u64 in, [p1];
    mad.wide.u32 at, i, {width}, in; ld.global.b{8 * width} v, [at];
    {how}.global.{name} {"old, " if how == "atom" else ""}[base], v;"""
    values = np.random.default_rng(8).integers(1, 2**31 - 1, 64 * 128).astype(kind)
    got, _ = run(module_text(body, 2), 64, 128, values[:1].copy(), values)
    start = values[:1] if name.startswith(("add", "xor")) else values[:0]
    assert got[0] == total(np.append(values, start))  # type: ignore[operator]


def test_float_atomics() -> None:
    """Sums of whole numbers are exact in any order."""
    body = f"""{INDEX} .reg .f32 v, f; .reg .f64 w; cvt.rn.f32.u32 v, t; cvt.f64.f32 w, v;
    atom.global.add.f32 f, [base], v; red.global.add.f64 [base+8], w;"""
    (got,) = run(module_text(body), 32, 64, np.zeros(2, "f8"))
    assert got.view("f4")[0] == 32 * 2016 and got[1] == 32 * 2016


def test_compare_and_swap() -> None:
    """A lock-free counter: every thread gets a number of its own."""
    body = f"""{INDEX} .reg .u32 old, new, seen; ld.global.u32 seen, [base];
    AGAIN: mov.u32 old, seen; add.u32 new, old, 1; atom.global.cas.b32 seen, [base], old, new;
    setp.ne.u32 p, seen, old; @p bra AGAIN;
    mad.wide.u32 at, i, 4, base; st.global.u32 [at+4], old;"""
    (got,) = run(module_text(body), 16, 64, np.zeros(1025, "u4"))
    assert got[0] == 1024 and sorted(got[1:].tolist()) == list(range(1024))


def test_wrapping_counters() -> None:
    """inc wraps to 0 after its limit, dec to its limit after 0; exch returns the old value."""
    body = f"""{INDEX} .reg .u32 v;
    atom.global.inc.u32 v, [base], 9; atom.global.dec.u32 v, [base+4], 9;
    atom.global.exch.b32 v, [base+8], 77; st.global.u32 [base+12], v;"""
    (got,) = run(module_text(body), 1, 25, np.array([0, 0, 5, 0], "u4"))
    assert got.tolist()[:3] == [25 % 10, (0 - 25) % 10, 77]


def test_shared_atomics() -> None:
    """A histogram in shared memory, per block."""
    body = f"""{INDEX} .shared .align 4 .b8 h[32]; .reg .u32 v, o;
    setp.lt.u32 p, t, 8; mov.u32 o, h;
    shl.b32 v, t, 2; add.u32 v, v, o; @p st.shared.u32 [v], 0; bar.sync 0;
    mul.lo.u32 v, t, t; and.b32 v, v, 7; shl.b32 v, v, 2; add.u32 v, v, o;
    red.shared.add.u32 [v], 1; bar.sync 0; @!p bra END;
    shl.b32 v, t, 2; add.u32 v, v, o; ld.shared.u32 n, [v]; mov.u32 i, %ctaid.x;
    mad.lo.u32 i, i, 8, t; mad.wide.u32 at, i, 4, base; st.global.u32 [at], n; END:"""
    (got,) = run(module_text(body), 3, 96, np.zeros(24, "u4"))
    wanted = np.bincount(np.arange(96) ** 2 & 7, minlength=8)
    assert np.array_equal(got.reshape(3, 8), [wanted] * 3)


def test_branch_tables() -> None:
    """brx.idx jumps to one of its labels."""
    code = """
    .reg .u32 k; rem.u32 k, a, 3; TABLE: .branchtargets L0, L1, L2; brx.idx k, TABLE;
    L0: mov.u32 d, 100; bra END; L1: mov.u32 d, 200; bra END; L2: mov.u32 d, 300; END:"""
    got = elementwise(code, "u32", ["u32"], np.arange(10))
    assert got.tolist() == [(100, 200, 300)[i % 3] for i in range(10)]


FUNCTIONS = """
.func (.param .b32 r) twice(.param .b32 x) {
  .reg .u32 v; ld.param.u32 v, [x]; shl.b32 v, v, 1; st.param.b32 [r], v; ret; }
.func (.param .b32 r) square(.param .b32 x) {
  .reg .u32 v; ld.param.u32 v, [x]; mul.lo.u32 v, v, v; st.param.b32 [r], v; ret; }
.func (.param .b32 r) factorial(.param .b32 x) {
  .reg .u32 v, w; .reg .pred p; ld.param.u32 v, [x]; setp.gt.u32 p, v, 1; @p bra MORE;
  st.param.b32 [r], 1; ret;
  MORE: sub.u32 w, v, 1; { .param .b32 a; .param .b32 b; st.param.b32 [a], w;
  call (b), factorial, (a); ld.param.b32 w, [b]; } mul.lo.u32 v, v, w; st.param.b32 [r], v; ret; }
.func stop(.param .b32 x) {
  .reg .u32 v; .reg .pred p; ld.param.u32 v, [x]; setp.gt.u32 p, v, 5; @p exit; ret; }
.global .align 8 .u64 table[2] = {twice, square};
"""


def called(code: str) -> Array:
    """`d` of 10 threads, a being the index, after *code* that may call FUNCTIONS."""
    body = f"{INDEX} .reg .u32 a, d; mov.u32 a, i; {code} mad.wide.u32 at, i, 4, base;"
    text = module_text(body + "st.global.u32 [at], d;", 1, FUNCTIONS)
    return run(text, 1, 10, np.zeros(10, "u4"))[0]


def test_calls() -> None:
    """Direct calls, recursion, and calls through a table of functions."""
    code = """{{ .param .b32 x; .param .b32 r; st.param.b32 [x], a;
    call (r), {}; ld.param.b32 d, [r]; }}"""
    assert called(code.format("twice, (x)")).tolist() == [2 * i for i in range(10)]
    factorials = np.cumprod([1, *range(1, 10)])
    assert called(code.format("factorial, (x)")).tolist() == factorials.tolist()
    indirect = """
    .reg .u64 f, k; P: .callprototype (.param .b32 _) _ (.param .b32 _);
    and.b32 n, a, 1; mov.u64 k, table; mad.wide.u32 k, n, 8, k; ld.global.u64 f, [k];
    """ + code.format("f, (x), P")
    assert called(indirect).tolist() == [i * i if i & 1 else 2 * i for i in range(10)]


def test_exit_in_a_function() -> None:
    """exit ends the thread, not the function."""
    code = "{ .param .b32 x; st.param.b32 [x], a; call stop, (x); } mov.u32 d, 3;"
    assert called(code).tolist() == [3] * 6 + [0] * 4


def test_fences_and_hints() -> None:
    """Fences, prefetches and cache hints change nothing that one thread sees."""
    code = """
    .reg .u32 v; membar.gl; fence.acq_rel.gpu; fence.sc.sys; prefetch.global.L1 [base];
    ld.volatile.global.u32 v, [base]; ld.relaxed.gpu.global.u32 d, [base];
    st.release.gpu.global.u32 [base], v; ld.acquire.gpu.global.u32 d, [base];
    ld.global.nc.u32 v, [base]; ld.global.cg.u32 v, [base]; st.global.cs.u32 [base], v;"""
    assert elementwise(code, "u32", ["u32"], np.array([42])).tolist() == [42]


def test_asynchronous_copies() -> None:
    """cp.async fills shared memory, with zeros behind the bytes that it copies."""
    body = f"""{INDEX} .shared .align 16 .b8 s[1024]; .reg .u32 o, v, w;
    shl.b32 o, t, 4; mov.u32 v, s; add.u32 o, o, v; mad.wide.u32 at, t, 16, base;
    cp.async.ca.shared.global [o], [at], 16, 12; cp.async.commit_group; cp.async.wait_group 0;
    ld.shared.u32 v, [o+8]; ld.shared.u32 w, [o+12]; st.global.v2.u32 [at], {{v, w}};"""
    (got,) = run(module_text(body), 1, 64, np.arange(256, dtype="u4").reshape(64, 4) + 1)
    assert got[:, :2].tolist() == [[4 * i + 3, 0] for i in range(64)]
