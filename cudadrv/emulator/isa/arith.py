"""Integer arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import TYPES
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

INTEGERS = "u16 u32 u64 s16 s32 s64"
WIDER = "u32,s32,u64,s64"


def _saturate(frame: Frame, op: Op, name: str, x: str, y: str) -> str:
    kind = op.type.llvm
    return frame.call(f"llvm.s{name}.sat.{kind}", kind, f"{kind} {x}", f"{kind} {y}")


@instruction("add", "t = t t", f"{INTEGERS} u16x2 s16x2", "sat=s32")
@instruction("sub", "t = t t", INTEGERS, "sat=s32")
def add(frame: Frame, op: Op, x: str, y: str) -> str:
    name = op.raw.opcode
    if op.has("sat"):
        return _saturate(frame, op, name, x, y)
    return frame.op(f"{name} {op.type.llvm} {x}, {y}")


CARRY = "u32 s32 u64 s64"


def _carry_slot(frame: Frame) -> str:
    if not frame.carry:
        frame.carry = frame.alloca("i1")
    return frame.carry


def _with_carry(frame: Frame, op: Op, x: str, y: str, subtract: bool, carry_in: bool) -> str:
    """x + y + carry, or x - y - borrow; `.cc` keeps the carry or borrow for the next."""
    kind, wide = op.type.llvm, f"i{op.type.bits * 2}"
    how = "sub" if subtract else "add"
    x, y = (frame.op(f"zext {kind} {v} to {wide}") for v in (x, y))
    total = frame.op(f"{how} {wide} {x}, {y}")
    if carry_in:
        carry = frame.op(f"load i1, ptr {_carry_slot(frame)}")
        carry = frame.op(f"zext i1 {carry} to {wide}")
        total = frame.op(f"{how} {wide} {total}, {carry}")
    if op.has("cc"):
        over = frame.op(f"lshr {wide} {total}, {op.type.bits}")
        over = frame.op(f"trunc {wide} {over} to i1")
        frame.do(f"store i1 {over}, ptr {_carry_slot(frame)}")
    return frame.op(f"trunc {wide} {total} to {kind}")


@instruction("add.cc", "t = t t", CARRY)
@instruction("addc", "t = t t", CARRY, "cc")
def addc(frame: Frame, op: Op, x: str, y: str) -> str:
    return _carrying(frame, op, x, y, subtract=False)


@instruction("sub.cc", "t = t t", CARRY)
@instruction("subc", "t = t t", CARRY, "cc")
def subc(frame: Frame, op: Op, x: str, y: str) -> str:
    return _carrying(frame, op, x, y, subtract=True)


def _carrying(frame: Frame, op: Op, x: str, y: str, subtract: bool) -> str:
    carry_in = op.raw.opcode.endswith("c")
    if not carry_in:
        op.flags.add("cc")
    return _with_carry(frame, op, x, y, subtract, carry_in)


def _product(frame: Frame, op: Op, x: str, y: str) -> tuple[str, str]:
    """The full product and its type, twice as wide."""
    wide, how = f"i{op.type.bits * 2}", "sext" if op.type.signed else "zext"
    x, y = (frame.op(f"{how} {op.type.llvm} {v} to {wide}") for v in (x, y))
    exact = ("nsw" if op.type.signed else "nuw") if op.type.bits <= 32 else ""
    return frame.op(f"mul {exact} {wide} {x}, {y}"), wide


def _high(frame: Frame, op: Op, x: str, y: str) -> str:
    product, wide = _product(frame, op, x, y)
    product = frame.op(f"lshr {wide} {product}, {op.type.bits}")
    return frame.op(f"trunc {wide} {product} to {op.type.llvm}")


@instruction("mul.lo", "t = t t", INTEGERS)
def mul_lo(frame: Frame, op: Op, x: str, y: str) -> str:
    return frame.op(f"mul {op.type.llvm} {x}, {y}")


@instruction("mul.hi", "t = t t", INTEGERS)
def mul_hi(frame: Frame, op: Op, x: str, y: str) -> str:
    return _high(frame, op, x, y)


@instruction("mul.wide", "w = t t", "u16 u32 s16 s32")
def mul_wide(frame: Frame, op: Op, x: str, y: str) -> str:
    return _product(frame, op, x, y)[0]


@instruction("mad.lo", "t = t t t", INTEGERS, f"cc={WIDER}")
@instruction("madc.lo", "t = t t t", "u32 s32 u64 s64", "cc")
def mad_lo(frame: Frame, op: Op, x: str, y: str, z: str) -> str:
    return _mad(frame, op, mul_lo(frame, op, x, y), z)


@instruction("mad.hi", "t = t t t", INTEGERS, f"cc={WIDER} sat=s32")
@instruction("madc.hi", "t = t t t", "u32 s32 u64 s64", "cc")
def mad_hi(frame: Frame, op: Op, x: str, y: str, z: str) -> str:
    product = _high(frame, op, x, y)
    if op.has("sat"):
        return _saturate(frame, op, "add", product, z)
    return _mad(frame, op, product, z)


def _mad(frame: Frame, op: Op, product: str, z: str) -> str:
    if op.has("cc") or op.raw.opcode == "madc":
        return _with_carry(frame, op, product, z, False, op.raw.opcode == "madc")
    return frame.op(f"add {op.type.llvm} {product}, {z}")


@instruction("mad.wide", "w = t t w", "u16 u32 s16 s32")
def mad_wide(frame: Frame, op: Op, x: str, y: str, z: str) -> str:
    product, wide = _product(frame, op, x, y)
    return frame.op(f"add {wide} {product}, {z}")


@instruction("mul24.lo mul24.hi", "t = t t", "u32 s32")
@instruction("mad24.lo", "t = t t t", "u32 s32")
@instruction("mad24.hi", "t = t t t", "u32 s32", "sat=s32")
def mul24(frame: Frame, op: Op, x: str, y: str, z: str = "") -> str:
    """The 48-bit product of the low 24 bits: its low or its high 32 bits."""
    shift = "ashr" if op.type.signed else "lshr"
    x, y = (frame.op(f"shl i32 {v}, 8") for v in (x, y))
    x, y = (frame.op(f"{shift} i32 {v}, 8") for v in (x, y))
    product, wide = _product(frame, op, x, y)
    if op.raw.modifiers[0] == "hi":
        product = frame.op(f"lshr {wide} {product}, 16")
    product = frame.op(f"trunc {wide} {product} to i32")
    if not z:
        return product
    return _saturate(frame, op, "add", product, z) if op.has("sat") else _mad(frame, op, product, z)


@instruction("div", "t = t t", INTEGERS)
@instruction("rem", "t = t t", INTEGERS)
def div(frame: Frame, op: Op, x: str, y: str) -> str:
    """Division by zero gives all ones as GPUs do; INT_MIN / -1 is INT_MIN, its rem 0."""
    kind = op.type.llvm
    zero = frame.icmp("eq", kind, y, "0")
    unsafe = zero
    if op.type.signed:
        minimum = -(1 << (op.type.bits - 1))
        over = frame.op(
            f"and i1 {frame.icmp('eq', kind, x, str(minimum))}, {frame.icmp('eq', kind, y, '-1')}"
        )
        unsafe = frame.op(f"or i1 {zero}, {over}")
    divisor = frame.select(unsafe, kind, "1", y)
    value = frame.op(f"{'s' if op.type.signed else 'u'}{op.raw.opcode} {kind} {x}, {divisor}")
    return frame.select(zero, kind, "-1", value)


@instruction("neg", "t = t", "s16 s32 s64")
def neg(frame: Frame, op: Op, x: str) -> str:
    return frame.op(f"sub {op.type.llvm} 0, {x}")


@instruction("abs", "t = t", "s16 s32 s64")
def abs_(frame: Frame, op: Op, x: str) -> str:
    kind = op.type.llvm
    return frame.call(f"llvm.abs.{kind}", kind, f"{kind} {x}", "i1 false")


@instruction("min", "t = t t", f"{INTEGERS} u16x2 s16x2", "relu=s32,s16x2")
@instruction("max", "t = t t", f"{INTEGERS} u16x2 s16x2", "relu=s32,s16x2")
def min_max(frame: Frame, op: Op, x: str, y: str) -> str:
    kind = op.type.llvm
    sign = "s" if op.type.signed else "u"
    value = minmax(frame, f"{sign}{op.raw.opcode}", op, x, y)
    if op.has("relu"):
        zero = f"{kind} zeroinitializer"
        value = frame.call(f"llvm.smax.{op.type.suffix}", kind, f"{kind} {value}", zero)
    return value


def minmax(frame: Frame, name: str, op: Op, x: str, y: str) -> str:
    """The intrinsic smin, smax, umin or umax."""
    kind = op.type.llvm
    return frame.call(f"llvm.{name}.{op.type.suffix}", kind, f"{kind} {x}", f"{kind} {y}")


@instruction("sad", "t = t t t", INTEGERS)
def sad(frame: Frame, op: Op, x: str, y: str, z: str) -> str:
    kind, sign = op.type.llvm, "s" if op.type.signed else "u"
    high = minmax(frame, f"{sign}max", op, x, y)
    low = minmax(frame, f"{sign}min", op, x, y)
    return frame.op(f"add {kind} {frame.op(f'sub {kind} {high}, {low}')}, {z}")


@instruction("dp4a", "s32 = x x s32", "u32 s32")
@instruction("dp2a.lo dp2a.hi", "s32 = x x s32", "u32 s32")
def dot_product(frame: Frame, op: Op, a: object, b: object, c: str) -> str:
    """c + the dot product of bytes of b with bytes (dp4a) or halves (dp2a) of a."""
    four = op.raw.opcode == "dp4a"
    first = 2 if "hi" in op.raw.modifiers else 0
    x, y = frame.read(a, TYPES["b32"]), frame.read(b, TYPES["b32"])  # type: ignore[arg-type]
    total = c
    for index in range(4 if four else 2):
        bits = 8 if four else 16
        left = _element(frame, x, bits, index, op.types[0].signed)
        right = _element(frame, y, 8, index + first, op.types[-1].signed)
        total = frame.op(f"add i32 {total}, {frame.op(f'mul i32 {left}, {right}')}")
    return total


def _element(frame: Frame, word: str, bits: int, index: int, signed: bool) -> str:
    value = frame.op(f"lshr i32 {word}, {bits * index}")
    value = frame.op(f"trunc i32 {value} to i{bits}")
    return frame.resize(value, bits, 32, signed)
