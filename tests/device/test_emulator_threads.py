"""Threads of a block wait for one another: barriers, warp operations, ends of threads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device.ptx import Array, module_text, run

INDEX = """
.reg .u32 t, i, n; .reg .u64 base, at; .reg .pred p, q;
ld.param.u64 base, [p0]; mov.u32 t, %tid.x; mov.u32 n, %ntid.x;
mad.wide.u32 at, t, 4, base;
"""


def per_thread(code: str, block: int = 64, given: Array | None = None) -> Array:
    """What `d` is in each thread after *code*, which may read its element as a."""
    body = INDEX + ".reg .b32 a, d;\nld.global.b32 a, [at];\n" + code + "\nst.global.b32 [at], d;"
    array = np.zeros(block, "u4") if given is None else given.astype("u4")
    return run(module_text(body), 1, block, array)[0]


def test_reversal_through_shared_memory() -> None:
    """What one thread stores before a barrier another reads after it."""
    code = """
    .shared .align 4 .b8 s[1024]; .reg .u32 r, o;
    mov.u32 r, s; shl.b32 o, t, 2; add.u32 o, r, o; st.shared.b32 [o], a;
    bar.sync 0;
    sub.u32 o, n, t; sub.u32 o, o, 1; shl.b32 o, o, 2; add.u32 o, r, o; ld.shared.b32 d, [o];"""
    values = np.arange(200) * 3
    assert np.array_equal(per_thread(code, 200, values), values[::-1])


@pytest.mark.parametrize("block", [1, 31, 32, 33, 100, 256, 1024])
def test_barrier_in_a_loop(block: int) -> None:
    """A prefix sum of log2(n) steps, two barriers each, in blocks of any size."""
    code = """
    .shared .align 4 .b8 s[4096]; .reg .u32 o, k, x;
    shl.b32 o, t, 2; mov.u32 x, s; add.u32 o, o, x; st.shared.b32 [o], a; mov.u32 k, 1;
    LOOP: bar.sync 0; mov.u32 x, 0; setp.ge.u32 p, t, k;
    @p shl.b32 i, k, 2; @p sub.u32 i, o, i; @p ld.shared.b32 x, [i];
    bar.sync 0; ld.shared.b32 d, [o]; add.u32 d, d, x; st.shared.b32 [o], d;
    shl.b32 k, k, 1; setp.lt.u32 q, k, n; @q bra LOOP;"""
    values = np.random.default_rng(1).integers(0, 1000, block)
    wanted = np.cumsum(values) if block > 1 else values
    assert np.array_equal(per_thread(code, block, values), wanted)


def test_exited_threads_do_not_count() -> None:
    """A barrier waits only for threads that are still there."""
    code = """
    setp.ge.u32 p, t, 40; mov.u32 d, 7; @p bra OUT;
    bar.sync 0; bar.sync 0; mov.u32 d, 9; OUT:"""
    assert per_thread(code).tolist() == [9] * 40 + [7] * 24
    early = "setp.ge.u32 p, t, 40; @p exit; bar.sync 0; bar.sync 0; mov.u32 d, 9;"
    assert per_thread(early).tolist() == [9] * 40 + [0] * 24


def test_numbered_barriers() -> None:
    """Barriers with a thread count sync parts of a block; arrive does not wait."""
    code = """
    .shared .align 4 .b8 s[512]; .reg .u32 o, x;
    setp.lt.u32 p, t, 32; shl.b32 o, t, 2; mov.u32 x, s; add.u32 o, o, x; mov.u32 d, t;
    @p bra PRODUCE;
    bar.sync 3, 64; ld.shared.b32 d, [o+-128]; bra END;
    PRODUCE: add.u32 x, t, 500; st.shared.b32 [o], x; bar.arrive 3, 64;
    END:"""
    assert per_thread(code).tolist() == [*range(32), *range(500, 532)]


def test_barrier_reductions() -> None:
    """bar.red counts, ands and ors a predicate over the block."""
    code = """
    .reg .u32 c, x; setp.ne.u32 p, a, 0; bar.red.popc.u32 c, 0, p;
    bar.red.and.pred q, 0, p; selp.u32 x, 100, 0, q; add.u32 d, c, x;
    bar.red.or.pred q, 0, p; selp.u32 x, 1000, 0, q; add.u32 d, d, x;"""
    values = np.arange(64) % 3
    assert set(per_thread(code, 64, values)) == {1000 + int(np.count_nonzero(values))}
    assert set(per_thread(code, 64, np.ones(64))) == {1164}
    assert set(per_thread(code, 64, np.zeros(64))) == {0}


def shuffled(mode: str, step: int, clamp: int, block: int = 64) -> list[tuple[int, bool]]:
    """(source lane, whether there is one) of each thread, as the manual defines shfl."""
    found = []
    segment, limit = clamp >> 8 & 31, clamp & 31
    for thread in range(block):
        lane = thread % 32
        high = (lane & segment) | (limit & ~segment & 31)
        low = lane & segment
        source = {
            "up": lane - step,
            "down": lane + step,
            "bfly": lane ^ step,
            "idx": low | (step & ~segment & 31),
        }[mode]
        valid = source >= high if mode == "up" else source <= high
        found.append((thread - lane + (source if valid else lane), valid))
    return found


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("step", [0, 1, 5, 16, 31])
@pytest.mark.parametrize("width", [32, 8])
def test_shuffles(mode: str, step: int, width: int) -> None:
    """shfl reads another lane, or keeps its own value and says so."""
    clamp = (32 - width) << 8 | (0 if mode == "up" else 31)
    code = f"""
    .reg .u32 x; shfl.sync.{mode}.b32 d|p, a, {step}, {clamp}, -1;
    selp.u32 x, 1000, 0, p; add.u32 d, d, x;"""
    values = np.arange(64) + 100
    wanted = [values[source] + 1000 * valid for source, valid in shuffled(mode, step, clamp)]
    assert per_thread(code, 64, values).tolist() == wanted


def test_shuffle_of_part_of_a_warp() -> None:
    """Lanes of different masks exchange apart from each other, in different branches."""
    code = """
    .reg .u32 lane; mov.u32 lane, %laneid; setp.lt.u32 p, lane, 16; @p bra LOW;
    shfl.sync.bfly.b32 d, a, 1, 31, 0xffff0000; shfl.sync.bfly.b32 d, d, 2, 31, 0xffff0000; bra END;
    LOW: shfl.sync.bfly.b32 d, a, 4, 31, 0x0000ffff;
    END:"""
    lanes = np.arange(32)
    wanted = np.where(lanes < 16, lanes ^ 4, lanes ^ 3)
    assert np.array_equal(per_thread(code, 32, lanes), wanted)


def test_warp_sum() -> None:
    """A butterfly sum gives every lane the sum of its warp, in whole and partial warps."""
    steps = "".join(
        f"shfl.sync.bfly.b32 x, d, {k}, 31, -1; add.u32 d, d, x;" for k in (16, 8, 4, 2, 1)
    )
    values = np.random.default_rng(4).integers(0, 1000, 128)
    got = per_thread(f".reg .u32 x; mov.u32 d, a; {steps}", 128, values)
    assert np.array_equal(got, np.repeat(values.reshape(4, 32).sum(1), 32))


def test_votes() -> None:
    """vote tells all lanes of the mask what their predicates are."""
    code = """
    .reg .u32 x; setp.gt.u32 p, a, 2; vote.sync.ballot.b32 d, p, -1;
    vote.sync.any.pred q, p, -1; selp.u32 x, 1, 0, q; xor.b32 d, d, x;
    vote.sync.all.pred q, p, -1; selp.u32 x, 2, 0, q; xor.b32 d, d, x;
    vote.sync.uni.pred q, p, -1; selp.u32 x, 4, 0, q; xor.b32 d, d, x;"""
    values = np.concatenate([np.arange(32) % 5, np.full(32, 9), np.zeros(32)])
    ballot = sum(1 << i for i in range(32) if i % 5 > 2)
    wanted = [ballot ^ 1] * 32 + [0xFFFFFFFF ^ 7] * 32 + [4] * 32
    assert per_thread(code, 96, values).tolist() == wanted


def test_matches() -> None:
    """match.any names the lanes with the same value, match.all whether all have it."""
    code = """
    .reg .u32 x; match.any.sync.b32 d, a, -1; match.all.sync.b32 x|p, a, -1; xor.b32 d, d, x;"""
    values = np.concatenate([np.arange(32) % 3, np.full(32, 5)])
    some = [sum(1 << j for j in range(32) if j % 3 == i % 3) for i in range(32)]
    assert per_thread(code, 64, values).tolist() == [*some, *[0] * 32]


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_reductions(kind: str) -> None:
    """redux combines the values of a warp."""
    values = np.random.default_rng(6).integers(0, 2**32, 32, dtype="u8")
    signed = values.astype("u4").view("i4").astype("i8") if kind == "s32" else values
    for name, wanted in (("add", signed.sum()), ("min", signed.min()), ("max", signed.max())):
        got = per_thread(f"redux.sync.{name}.{kind} d, a, -1;", 32, values)
        assert set(got.tolist()) == {int(wanted) & 0xFFFFFFFF}, name
    for name, function in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        got = per_thread(f"redux.sync.{name}.b32 d, a, -1;", 32, values)
        assert set(got.tolist()) == {int(function.reduce(values))}, name


def test_active_lanes() -> None:
    """activemask names the lanes that take the same branch."""
    code = """
    setp.lt.u32 p, t, 10; @p bra LOW; activemask.b32 d; bra END; LOW: activemask.b32 d; END:"""
    low = (1 << 10) - 1
    assert per_thread(code, 32).tolist() == [low] * 10 + [0xFFFFFFFF ^ low] * 22


def test_warp_barrier_orders_memory() -> None:
    """After bar.warp.sync a lane sees what the others stored."""
    code = """
    .shared .align 4 .b8 s[256]; .reg .u32 o, x;
    shl.b32 o, t, 2; mov.u32 x, s; add.u32 o, o, x; st.shared.b32 [o], a; bar.warp.sync -1;
    xor.b32 o, t, 3; shl.b32 o, o, 2; add.u32 o, o, x; ld.shared.b32 d, [o];"""
    assert per_thread(code, 64, np.arange(64)).tolist() == [i ^ 3 for i in range(64)]


def test_special_registers() -> None:
    """Indices, sizes and lane masks in a block of three dimensions."""
    registers = [
        "%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%nctaid.x",
        "%laneid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge",
    ]  # fmt: skip
    body = """
    .reg .u64 base, at; .reg .u32 i, j, v; ld.param.u64 base, [p0];
    mov.u32 i, %tid.z; mad.lo.u32 i, i, 3, 0; mov.u32 j, %tid.y; add.u32 i, i, j;
    mov.u32 j, %tid.x; mad.lo.u32 i, i, 5, j; mov.u32 j, %ctaid.x; mad.lo.u32 i, j, 60, i;
    mad.wide.u32 at, i, 56, base;"""
    for k, name in enumerate(registers):
        body += f"mov.u32 v, {name}; st.global.u32 [at+{4 * k}], v;"
    (got,) = run(module_text(body), 2, (5, 3, 4), np.zeros((120, 14), "u4"))
    for i in range(120):
        thread = i % 60
        lane = thread % 32
        bit = 1 << lane
        wanted = [
            thread % 5, thread // 5 % 3, thread // 15, 5, 3, 4, i // 60, 2, lane, bit, bit - 1,
            2 * bit - 1, 0xFFFFFFFF ^ (2 * bit - 1), 0xFFFFFFFF ^ (bit - 1),
        ]  # fmt: skip
        assert got[i].tolist() == wanted


def test_barrier_in_a_function() -> None:
    """A function called by all threads may have barriers."""
    declarations = """
    .func (.param .b32 out) swap(.param .b32 mine, .param .b32 where) {
      .reg .u32 v, o; ld.param.b32 v, [mine]; ld.param.b32 o, [where];
      st.shared.b32 [o], v; bar.sync 0; xor.b32 o, o, 4; ld.shared.b32 v, [o]; bar.sync 0;
      st.param.b32 [out], v; ret; }"""
    code = """
    .shared .align 8 .b8 s[256]; .reg .u32 o; shl.b32 o, t, 2; mov.u32 i, s; add.u32 o, o, i;
    mov.u32 d, a;
    LOOP: { .param .b32 x; .param .b32 y; .param .b32 r;
      st.param.b32 [x], d; st.param.b32 [y], o; call (r), swap, (x, y); ld.param.b32 d, [r]; }
    add.u32 d, d, 10; sub.u32 n, n, 32; setp.ne.u32 p, n, 0; @p bra LOOP;"""
    body = INDEX + ".reg .b32 a, d;\nld.global.b32 a, [at];\n" + code + "\nst.global.b32 [at], d;"
    text = module_text(body, 1, declarations)
    (got,) = run(text, 1, 64, np.arange(64, dtype="u4"))
    assert got.tolist() == [i + 20 for i in range(64)]


def test_waiting_for_a_flag() -> None:
    """A thread may poll for what another thread of its block, or a later one, will store."""
    code = """
    .shared .align 4 .b8 flag[8]; .reg .u32 f; setp.eq.u32 p, t, 0; mov.u32 d, 0;
    @p st.shared.u32 [flag], 0; bar.sync 0; setp.eq.u32 p, t, 50; @p bra SET;
    WAIT: ld.volatile.shared.u32 f, [flag]; setp.eq.u32 q, f, 0; @q bra WAIT; mov.u32 d, f; bra END;
    SET: st.volatile.shared.u32 [flag], 7;
    END:"""
    wanted = [7] * 64
    wanted[50] = 0
    assert per_thread(code).tolist() == wanted


def test_waiting_politely() -> None:
    """The same with an atomic and nanosleep, in a kernel without barriers."""
    code = """
    .reg .u32 f; mov.u32 d, 1; setp.eq.u32 p, t, 63; @p bra SET;
    WAIT: atom.global.add.u32 f, [base+256], 0; setp.ne.u32 q, f, 0; @q bra END; nanosleep.u32 20;
    bra WAIT;
    SET: atom.global.exch.b32 f, [base+256], 5;
    END:"""
    body = INDEX + ".reg .b32 a, d;\n" + code + "\nst.global.b32 [at], d;"
    (got,) = run(module_text(body), 1, 64, np.zeros(65, "u4"))
    assert got.tolist() == [1] * 64 + [5]
