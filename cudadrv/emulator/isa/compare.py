"""Comparisons and selections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..syntax import Operand, Pair
from ..types import TYPES, Type
from .floats import flush
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

TESTS = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"
NUMBERS = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 bf16 f32 f64"
COMBINE = "and or xor"
_ORDERED = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
    "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
    "num": "ord", "nan": "uno",
}  # fmt: skip
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}


def test(frame: Frame, op: Op, type: Type, x: str, y: str) -> str:
    """The i1 (or vector of them) of the comparison that the flags name."""
    name = op.one_of(TESTS)
    if type.is_float:
        if op.has("ftz"):
            x, y = flush(frame, type, x), flush(frame, type, y)
        return frame.op(f"fcmp {_ORDERED[name]} {type.llvm} {x}, {y}")
    if name in _UNSIGNED:
        return frame.icmp(_UNSIGNED[name], type.llvm, x, y)
    if name in ("eq", "ne"):
        return frame.icmp(name, type.llvm, x, y)
    return frame.icmp(f"{'s' if type.signed else 'u'}{name}", type.llvm, x, y)


def _combine(frame: Frame, op: Op, value: str, other: Operand | None) -> str:
    how = op.one_of(COMBINE)
    if not how or other is None:
        return value
    return frame.op(f"{how} i1 {value}, {frame.read(other, TYPES['pred'])}")


@instruction("setp", "x = x x x?", f"{NUMBERS} f16x2 bf16x2", f"{TESTS} {COMBINE} ftz")
def setp(
    frame: Frame, op: Op, dest: Operand, a: Operand, b: Operand, c: Operand | None = None
) -> None:
    """`setp.lt.and.s32 p|q, a, b, c`: p = (a < b) and c, q = not (a < b) and c."""
    x, y = frame.read(a, op.type), frame.read(b, op.type)
    result = test(frame, op, op.type, x, y)
    pred = TYPES["pred"]
    if op.type.lanes == 2:
        first, second = (frame.op(f"extractelement <2 x i1> {result}, i32 {i}") for i in (0, 1))
    else:
        first = result
        second = frame.op(f"xor i1 {result}, true") if isinstance(dest, Pair) else ""
    if isinstance(dest, Pair):
        frame.write(dest.second, pred, _combine(frame, op, second, c))
        dest = dest.first
    frame.write(dest, pred, _combine(frame, op, first, c))


@instruction("set", "x = x x x?", f"{NUMBERS} f16x2 bf16x2", f"{TESTS} {COMBINE} ftz")
def set_(
    frame: Frame, op: Op, dest: Operand, a: Operand, b: Operand, c: Operand | None = None
) -> None:
    """The comparison as all ones or 1.0, else zero."""
    target, source = op.types[0], op.types[-1]
    result = test(frame, op, source, frame.read(a, source), frame.read(b, source))
    if source.lanes == 1:
        result = _combine(frame, op, result, c)
        bits = "i1"
    else:
        bits = "<2 x i1>"
    if target.is_float:
        frame.write(dest, target, frame.op(f"uitofp {bits} {result} to {target.llvm}"))
        return
    wide = f"<2 x i{target.bits // 2}>" if source.lanes == 2 else target.llvm
    value = frame.op(f"sext {bits} {result} to {wide}")
    frame.write(dest, target, frame.cast("bitcast", wide, value, target.llvm))


@instruction("selp", "t = t t pred", NUMBERS)
def selp(frame: Frame, op: Op, x: str, y: str, condition: str) -> str:
    return frame.select(condition, op.type.llvm, x, y)


@instruction("slct", "x = x x x", f"{NUMBERS}", "ftz")
def slct(frame: Frame, op: Op, dest: Operand, a: Operand, b: Operand, c: Operand) -> None:
    """a where c >= 0, else b."""
    value, sign = op.types[0], op.types[-1]
    x, y, z = frame.read(a, value), frame.read(b, value), frame.read(c, sign)
    if sign.is_float:
        z = flush(frame, sign, z) if op.has("ftz") else z
        condition = frame.op(f"fcmp oge float {z}, {frame.integer(0, sign)}")
    else:
        condition = frame.icmp("sge", "i32", z, "0")
    frame.write(dest, value, frame.select(condition, value.llvm, x, y))


# As llvm.is.fpclass numbers them; zeros count as normal.
_CLASSES = {
    "finite": 504, "infinite": 516, "number": 1020, "notanumber": 3, "normal": 360,
    "subnormal": 144,
}  # fmt: skip


@instruction("testp", "pred = t", "f32 f64", " ".join(_CLASSES))
def testp(frame: Frame, op: Op, x: str) -> str:
    mask = _CLASSES[op.one_of(" ".join(_CLASSES))]
    kind = op.type.llvm
    return frame.call(f"llvm.is.fpclass.{op.type.suffix}", "i1", f"{kind} {x}", f"i32 {mask}")
