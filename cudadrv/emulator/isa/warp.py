"""Barriers and warp operations: where threads wait for one another."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from ..errors import PtxError
from ..layout import AT_BARRIER, AT_FULL, AT_WARP, GATHERING, THREAD
from ..syntax import Integer, Operand, Pair
from ..types import TYPES
from .table import Op, instruction

if TYPE_CHECKING:
    from ..translate import Translator

U32 = TYPES["u32"]
PRED = TYPES["pred"]
ALL_LANES = Integer(-1)


# -- barriers


@instruction(
    "bar bar.sync barrier barrier.sync", "= u32 u32?", "", "aligned cta sync", barrier=True
)
def bar_sync(frame: Translator, op: Op, barrier: str, count: str = "0") -> None:
    if barrier == "0" and count == "0":
        frame.wait(AT_FULL)
        return
    frame.suspend(AT_BARRIER, key=_barrier(frame, barrier), expected=count, value="0")


def _barrier(frame: Translator, number: str) -> str:
    return frame.op(f"and i32 {number}, 15")


@instruction("bar.arrive barrier.arrive", "= u32 u32", "", "aligned cta", barrier=True)
def bar_arrive(frame: Translator, op: Op, barrier: str, count: str) -> None:
    arrived = frame.worker("arrived")
    at = frame.op(f"getelementptr i32, ptr {arrived}, i32 {_barrier(frame, barrier)}")
    more = frame.op(f"add i32 {frame.op(f'load i32, ptr {at}')}, 1")
    frame.do(f"store i32 {more}, ptr {at}")


@instruction(
    "bar.red barrier.red", "x = x x x?", "u32 pred", "aligned cta popc and or", barrier=True
)
def bar_red(frame: Translator, op: Op, dest: Operand, barrier: Operand, *rest: Operand) -> None:
    """`bar.red.popc.u32 d, barrier, count, p;`: over all threads of the barrier."""
    count = frame.read(rest[0], U32) if len(rest) == 2 else "0"
    truth = frame.op(f"zext i1 {frame.read(rest[-1], PRED)} to i64")
    key = _barrier(frame, frame.read(barrier, U32))
    record = frame.suspend(AT_BARRIER, key=key, expected=count, value=truth)
    ones = frame.thread(record, "ballot")
    if op.has("popc"):
        frame.write(dest, U32, ones)
    elif op.has("or"):
        frame.write(dest, PRED, frame.icmp("ne", "i32", ones, "0"))
    else:
        frame.write(dest, PRED, frame.icmp("eq", "i32", ones, frame.thread(record, "members")))


# -- warps


def exchange(frame: Translator, mask: str, value: str) -> str:
    """Wait for the other lanes of *mask*, each bringing a value (i64); gives the thread record."""
    own = frame.op(f"shl i32 1, {frame.op('and i32 %thread, 31')}")
    return frame.suspend(AT_WARP, key=frame.op(f"or i32 {mask}, {own}"), value=value)


@instruction("bar.warp.sync", "= b32", warp=True)
def bar_warp(frame: Translator, op: Op, mask: str) -> None:
    exchange(frame, mask, "0")


@instruction("activemask", "t =", "b32", warp=True)
def activemask(frame: Translator, op: Op) -> str:
    """The lanes that are at this instruction once no lane of the warp can go on."""
    record = frame.suspend(GATHERING, key=frame.fresh(""), value="1")
    return frame.thread(record, "members")


@instruction("elect.sync", "x = b32", warp=True)
def elect(frame: Translator, op: Op, dest: Operand, mask: str) -> None:
    """The lowest lane of the mask is the leader."""
    record = exchange(frame, mask, "0")
    members = frame.thread(record, "members")
    leader = frame.call("llvm.cttz.i32", "i32", f"i32 {members}", "i1 true")
    lane = frame.op("and i32 %thread, 31")
    if not isinstance(dest, Pair):
        raise PtxError("expected d|p", op.raw.line)
    frame.write(dest.first, U32, leader)
    frame.write(dest.second, PRED, frame.icmp("eq", "i32", lane, leader))


@instruction("vote.sync vote", "x = x x?", "b32 pred", "all any uni ballot", warp=True)
def vote(
    frame: Translator, op: Op, dest: Operand, source: Operand, mask: Operand = ALL_LANES
) -> None:
    truth = frame.op(f"zext i1 {frame.read(source, PRED)} to i64")
    record = exchange(frame, frame.read(mask, U32), truth)
    ballot, members = frame.thread(record, "ballot"), frame.thread(record, "members")
    if op.has("ballot"):
        frame.write(dest, U32, ballot)
        return
    everyone = frame.icmp("eq", "i32", ballot, members)
    anyone = frame.icmp("ne", "i32", ballot, "0")
    if op.has("uni"):
        anyone = frame.op(f"xor i1 {anyone}, true")
        frame.write(dest, PRED, frame.op(f"or i1 {everyone}, {anyone}"))
    else:
        frame.write(dest, PRED, everyone if op.has("all") else anyone)


SHFL = "x = b32 b32 b32 b32?"


@instruction("shfl.sync shfl", SHFL, "b32", "up down bfly idx", warp=True)
def shfl(
    frame: Translator, op: Op, dest: Operand, value: str, b: str, c: str, mask: str = "-1"
) -> None:
    """The value of another lane; p is false, and the value one's own, where there is none."""
    lane = frame.op("and i32 %thread, 31")
    record = exchange(frame, mask, frame.op(f"zext i32 {value} to i64"))
    b, limit = frame.op(f"and i32 {b}, 31"), frame.op(f"and i32 {c}, 31")
    segment = frame.op(f"and i32 {frame.op(f'lshr i32 {c}, 8')}, 31")
    inside = frame.op(f"xor i32 {segment}, -1")
    base = frame.op(f"and i32 {lane}, {segment}")
    end = frame.op(f"or i32 {base}, {frame.op(f'and i32 {limit}, {inside}')}")
    if op.has("up"):
        source, test = frame.op(f"sub i32 {lane}, {b}"), "sge"
    elif op.has("down"):
        source, test = frame.op(f"add i32 {lane}, {b}"), "sle"
    elif op.has("bfly"):
        source, test = frame.op(f"xor i32 {lane}, {b}"), "sle"
    else:
        source, test = frame.op(f"or i32 {base}, {frame.op(f'and i32 {b}, {inside}')}"), "sle"
    valid = frame.icmp(test, "i32", source, end)
    source = frame.select(valid, "i32", source, lane)
    target = dest.first if isinstance(dest, Pair) else dest
    frame.write(target, U32, frame.op(f"trunc i64 {published(frame, record, lane, source)} to i32"))
    if isinstance(dest, Pair):
        frame.write(dest.second, PRED, valid)


def published(frame: Translator, record: str, lane: str, source: str) -> str:
    """The value (i64) that lane *source* brought."""
    step = frame.op(f"sub i32 {source}, {lane}")
    other = frame.op(f"getelementptr %thread, ptr {record}, i32 {step}")
    return frame.thread(other, "published")


def over_members(frame: Translator, record: str, start: str, combine: str) -> str:
    """A loop over the lanes of the group: *combine* is IR that makes %new of i64 %old, %value."""
    name = f"emulator.over.{zlib.crc32(combine.encode())}"
    frame.module.helper(name, _OVER.replace("#NAME", name).replace("#COMBINE", combine))
    lane = frame.op("and i32 %thread, 31")
    back = frame.op(f"sub i32 0, {lane}")
    first = frame.op(f"getelementptr %thread, ptr {record}, i32 {back}")
    members = frame.thread(record, "members")
    own = frame.thread(record, "published")
    return frame.call(name, "i64", f"ptr {first}", f"i32 {members}", f"i64 {start}", f"i64 {own}")


_OVER = """
define internal i64 @#NAME(ptr %first, i32 %members, i64 %start, i64 %own) {
entry:
  br label %next
next:
  %todo = phi i32 [ %members, %entry ], [ %rest, %next ]
  %old = phi i64 [ %start, %entry ], [ %new, %next ]
  %lane = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %minus = sub i32 %todo, 1
  %rest = and i32 %todo, %minus
  %p = getelementptr %thread, ptr %first, i32 %lane, i32 PUBLISHED
  %value = load i64, ptr %p
#COMBINE
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %next, label %done
done:
  ret i64 %new
}
declare i32 @llvm.cttz.i32(i32, i1)
"""

_OVER = _OVER.replace("PUBLISHED", str(THREAD.index["published"]))

_MATCH = """
  %equal = icmp eq i64 %value, %own
  %bit.32 = shl i32 1, %lane
  %bit = zext i32 %bit.32 to i64
  %bit.if = select i1 %equal, i64 %bit, i64 0
  %new = or i64 %old, %bit.if"""


@instruction("match.any.sync match.all.sync", "x = t b32", "b32 b64", warp=True)
def match(frame: Translator, op: Op, dest: Operand, value: str, mask: str) -> None:
    """The lanes with the same value; all: the whole group, or 0 and false."""
    record = exchange(frame, mask, frame.resize(value, op.type.bits, 64))
    same = frame.op(f"trunc i64 {over_members(frame, record, '0', _MATCH)} to i32")
    if op.raw.modifiers[0] == "any":
        frame.write(dest, U32, same)
        return
    agreed = frame.icmp("eq", "i32", same, frame.thread(record, "members"))
    first = dest.first if isinstance(dest, Pair) else dest
    frame.write(first, U32, frame.select(agreed, "i32", same, "0"))
    if isinstance(dest, Pair):
        frame.write(dest.second, PRED, agreed)


_REDUCTIONS = {"add": "add", "and": "and", "or": "or", "xor": "xor"}
_STARTS = {"and": -1, "umin": -1, "smin": 2**63 - 1, "smax": -(2**63)}


@instruction("redux.sync", "t = t b32", "b32 u32 s32", "add min max and or xor", warp=True)
def redux(frame: Translator, op: Op, value: str, mask: str) -> str:
    name = op.one_of("add min max and or xor")
    wide = frame.resize(value, 32, 64, op.type.signed)
    record = exchange(frame, mask, wide)
    if name in _REDUCTIONS:
        combine = f"  %new = {name} i64 %old, %value"
    else:
        name = f"{'s' if op.type.signed else 'u'}{name}"
        test = f"{name[0]}{'lt' if name[1:] == 'min' else 'gt'}"
        combine = (
            f"  %better = icmp {test} i64 %value, %old\n"
            "  %new = select i1 %better, i64 %value, i64 %old"
        )
    total = over_members(frame, record, str(_STARTS.get(name, 0)), combine)
    return frame.op(f"trunc i64 {total} to i32")
