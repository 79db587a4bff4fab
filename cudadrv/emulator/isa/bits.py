"""Logic, shifts and bit manipulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import PtxError
from ..syntax import Integer, Operand
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

BITS = "b16 b32 b64"


@instruction("and or xor", "t = t t", f"pred {BITS}")
def logic(frame: Frame, op: Op, x: str, y: str) -> str:
    return frame.op(f"{op.raw.opcode} {op.type.llvm} {x}, {y}")


@instruction("not", "t = t", f"pred {BITS}")
def not_(frame: Frame, op: Op, x: str) -> str:
    return frame.op(f"xor {op.type.llvm} {x}, -1")


@instruction("cnot", "t = t", BITS)
def cnot(frame: Frame, op: Op, x: str) -> str:
    zero = frame.icmp("eq", op.type.llvm, x, "0")
    return frame.op(f"zext i1 {zero} to {op.type.llvm}")


@instruction("shl", "t = t u32", BITS)
@instruction("shr", "t = t u32", f"{BITS} u16 u32 u64 s16 s32 s64")
def shift(frame: Frame, op: Op, x: str, count: str) -> str:
    """Counts of the width or more shift everything out."""
    kind, bits = op.type.llvm, op.type.bits
    large = frame.icmp("ugt", "i32", count, str(bits - 1))
    amount = frame.select(large, "i32", str(bits - 1), count)
    amount = frame.resize(amount, 32, bits)
    if op.raw.opcode == "shr" and op.type.signed:
        return frame.op(f"ashr {kind} {x}, {amount}")
    how = "shl" if op.raw.opcode == "shl" else "lshr"
    return frame.select(large, kind, "0", frame.op(f"{how} {kind} {x}, {amount}"))


@instruction("shf.l shf.r", "b32 = b32 b32 u32", "b32", "clamp wrap", needs="clamp wrap")
def funnel_shift(frame: Frame, op: Op, low: str, high: str, count: str) -> str:
    """The high (l) or low (r) half of high:low, shifted."""
    if op.has("clamp"):
        count = frame.call("llvm.umin.i32", "i32", f"i32 {count}", "i32 32")
    else:
        count = frame.op(f"and i32 {count}, 31")
    amount = frame.op(f"zext i32 {count} to i64")
    whole = frame.op(f"shl i64 {frame.op(f'zext i32 {high} to i64')}, 32")
    whole = frame.op(f"or i64 {whole}, {frame.op(f'zext i32 {low} to i64')}")
    if op.raw.modifiers[0] == "l":
        whole = frame.op(f"lshr i64 {frame.op(f'shl i64 {whole}, {amount}')}, 32")
    else:
        whole = frame.op(f"lshr i64 {whole}, {amount}")
    return frame.op(f"trunc i64 {whole} to i32")


@instruction("lop3", "x = x x x x x?", "b32", "or and")
def lop3(frame: Frame, op: Op, dest: Operand, *operands: Operand) -> None:
    """Any function of three bits: bit i of the table is its value for a, b, c = bits of i."""
    *sources, table = operands[:4]
    if not isinstance(table, Integer):
        raise PtxError("the table of lop3 is not a constant", op.raw.line)
    a, b, c = (frame.read(source, op.type) for source in sources)
    terms = []
    for index in range(8):
        if table.value >> index & 1:
            bits = [(a, index & 4), (b, index & 2), (c, index & 1)]
            wanted = [v if on else frame.op(f"xor i32 {v}, -1") for v, on in bits]
            terms.append(
                frame.op(f"and i32 {frame.op(f'and i32 {wanted[0]}, {wanted[1]}')}, {wanted[2]}")
            )
    value = "0"
    for term in terms:
        value = frame.op(f"or i32 {value}, {term}")
    frame.write(dest, op.type, value)


@instruction("brev", "t = t", "b32 b64")
def brev(frame: Frame, op: Op, x: str) -> str:
    kind = op.type.llvm
    return frame.call(f"llvm.bitreverse.{kind}", kind, f"{kind} {x}")


@instruction("popc", "u32 = t", "b32 b64")
def popc(frame: Frame, op: Op, x: str) -> str:
    kind = op.type.llvm
    return frame.resize(frame.call(f"llvm.ctpop.{kind}", kind, f"{kind} {x}"), op.type.bits, 32)


@instruction("clz", "u32 = t", "b32 b64")
def clz(frame: Frame, op: Op, x: str) -> str:
    return frame.resize(_clz(frame, op, x), op.type.bits, 32)


def _clz(frame: Frame, op: Op, x: str) -> str:
    kind = op.type.llvm
    return frame.call(f"llvm.ctlz.{kind}", kind, f"{kind} {x}", "i1 false")


@instruction("bfind", "u32 = t", "u32 s32 u64 s64", "shiftamt")
def bfind(frame: Frame, op: Op, x: str) -> str:
    """Position of the highest bit that is not a copy of the sign; all ones if there is none."""
    kind, bits = op.type.llvm, op.type.bits
    if op.type.signed:
        x = frame.op(f"xor {kind} {x}, {frame.op(f'ashr {kind} {x}, {bits - 1}')}")
    count = frame.resize(_clz(frame, op, x), bits, 32)
    value = count if op.has("shiftamt") else frame.op(f"sub i32 {bits - 1}, {count}")
    return frame.select(frame.icmp("eq", kind, x, "0"), "i32", "-1", value)


@instruction("bfe", "t = t u32 u32", "u32 s32 u64 s64")
def bfe(frame: Frame, op: Op, x: str, position: str, length: str) -> str:
    """Bits position .. position+length-1; beyond the end: zero, or the sign (of the last bit)."""
    kind, bits = op.type.llvm, op.type.bits
    position, length = _field(frame, bits, position, length)
    if not op.type.signed:
        value = _shift(frame, "lshr", x, position, bits)
        return frame.op(f"and {kind} {value}, {_ones(frame, length, bits)}")
    low = frame.call("llvm.umin.i32", "i32", f"i32 {position}", f"i32 {bits - 1}")
    end = frame.op(f"add i32 {position}, {length}")
    end = frame.call("llvm.umin.i32", "i32", f"i32 {end}", f"i32 {bits}")
    span = frame.op(f"sub i32 {end}, {low}")
    span = frame.call("llvm.smax.i32", "i32", f"i32 {span}", "i32 1")
    up = frame.op(f"sub i32 {bits}, {frame.op(f'add i32 {low}, {span}')}")
    value = frame.op(f"shl {kind} {x}, {frame.resize(up, 32, bits)}")
    down = frame.op(f"sub i32 {bits}, {span}")
    value = frame.op(f"ashr {kind} {value}, {frame.resize(down, 32, bits)}")
    return frame.select(frame.icmp("eq", "i32", length, "0"), kind, "0", value)


def _field(frame: Frame, bits: int, *values: str) -> list[str]:
    """Position and length: of 32 bits, their low bytes; GPUs read them whole for 64 bits."""
    if bits == 32:
        return [frame.op(f"and i32 {v}, 255") for v in values]
    return [frame.call("llvm.umin.i32", "i32", f"i32 {v}", f"i32 {bits}") for v in values]


def _shift(frame: Frame, how: str, x: str, count: str, bits: int) -> str:
    """A logical shift that gives 0 for counts of *bits* or more."""
    kind = f"i{bits}"
    fits = frame.icmp("ult", "i32", count, str(bits))
    amount = frame.resize(frame.op(f"and i32 {count}, {bits - 1}"), 32, bits)
    return frame.select(fits, kind, frame.op(f"{how} {kind} {x}, {amount}"), "0")


def _ones(frame: Frame, count: str, bits: int) -> str:
    """The lowest *count* bits set."""
    return frame.op(f"sub i{bits} {_shift(frame, 'shl', '1', count, bits)}, 1")


@instruction("bfi", "t = t t u32 u32", "b32 b64")
def bfi(frame: Frame, op: Op, x: str, into: str, position: str, length: str) -> str:
    kind, bits = op.type.llvm, op.type.bits
    position, length = _field(frame, bits, position, length)
    mask = _shift(frame, "shl", _ones(frame, length, bits), position, bits)
    field = frame.op(f"and {kind} {_shift(frame, 'shl', x, position, bits)}, {mask}")
    rest = frame.op(f"and {kind} {into}, {frame.op(f'xor {kind} {mask}, -1')}")
    return frame.op(f"or {kind} {field}, {rest}")


@instruction("bmsk", "b32 = u32 u32", "b32", "clamp wrap", needs="clamp wrap")
def bmsk(frame: Frame, op: Op, position: str, length: str) -> str:
    if op.has("wrap"):
        position, length = (frame.op(f"and i32 {v}, 31") for v in (position, length))
    return _shift(frame, "shl", _ones(frame, length, 32), position, 32)


@instruction("szext", "t = t u32", "u32 s32", "clamp wrap", needs="clamp wrap")
def szext(frame: Frame, op: Op, x: str, count: str) -> str:
    """Zero or sign extension from the lowest *count* bits."""
    if op.has("wrap"):
        count = frame.op(f"and i32 {count}, 31")
    if not op.type.signed:
        return frame.op(f"and i32 {x}, {_ones(frame, count, 32)}")
    count = frame.call("llvm.umin.i32", "i32", f"i32 {count}", "i32 32")
    amount = frame.op(f"sub i32 32, {count}")
    safe = frame.op(f"and i32 {amount}, 31")
    value = frame.op(f"ashr i32 {frame.op(f'shl i32 {x}, {safe}')}, {safe}")
    return frame.select(frame.icmp("eq", "i32", count, "0"), "i32", "0", value)


@instruction("prmt", "b32 = b32 b32 b32", "b32", "f4e b4e rc8 ecl ecr rc16")
def prmt(frame: Frame, op: Op, low: str, high: str, selector: str) -> str:
    """Four bytes picked out of the eight of high:low; bit 3 of a pick: copies of its sign."""
    whole = frame.op(f"shl i64 {frame.op(f'zext i32 {high} to i64')}, 32")
    whole = frame.op(f"or i64 {whole}, {frame.op(f'zext i32 {low} to i64')}")
    mode = op.one_of("f4e b4e rc8 ecl ecr rc16")
    result = "0"
    for index in range(4):
        pick, sign = _pick(frame, mode, selector, index)
        amount = frame.op(f"zext i32 {frame.op(f'shl i32 {pick}, 3')} to i64")
        byte = frame.op(f"trunc i64 {frame.op(f'lshr i64 {whole}, {amount}')} to i8")
        if sign:
            byte = frame.select(sign, "i8", frame.op(f"ashr i8 {byte}, 7"), byte)
        word = frame.op(f"shl i32 {frame.op(f'zext i8 {byte} to i32')}, {8 * index}")
        result = frame.op(f"or i32 {result}, {word}")
    return result


def _pick(frame: Frame, mode: str, selector: str, index: int) -> tuple[str, str]:
    """(byte number 0..7, i1 whether to replicate its sign or "") for result byte *index*."""
    if not mode:
        nibble = frame.op(f"lshr i32 {selector}, {4 * index}")
        sign = frame.icmp("ne", "i32", frame.op(f"and i32 {nibble}, 8"), "0")
        return frame.op(f"and i32 {nibble}, 7"), sign
    base = frame.op(f"and i32 {selector}, 3")
    if mode == "f4e":
        return frame.op(f"add i32 {base}, {index}"), ""
    if mode == "b4e":
        return frame.op(f"and i32 {frame.op(f'sub i32 {base}, {index}')}, 7"), ""
    if mode == "rc8":
        return base, ""
    if mode == "ecl":
        return frame.call("llvm.umax.i32", "i32", f"i32 {base}", f"i32 {index}"), ""
    if mode == "ecr":
        return frame.call("llvm.umin.i32", "i32", f"i32 {base}", f"i32 {index}"), ""
    half = frame.op(f"shl i32 {frame.op(f'and i32 {selector}, 1')}, 1")
    return frame.op(f"add i32 {half}, {index & 1}"), ""


@instruction("fns", "b32 = b32 u32 s32", "b32")
def fns(frame: Frame, op: Op, mask: str, base: str, offset: str) -> str:
    """Position of the n-th set bit from *base* on; all ones if there is none."""
    frame.module.helper("emulator.fns", _FNS)
    return frame.call("emulator.fns", "i32", f"i32 {mask}", f"i32 {base}", f"i32 {offset}")


_FNS = """
define internal i32 @emulator.fns(i32 %mask, i32 %base, i32 %offset) {
entry:
  %down = icmp slt i32 %offset, 0
  %step = select i1 %down, i32 -1, i32 1
  %size = call i32 @llvm.abs.i32(i32 %offset, i1 false)
  %zero = icmp eq i32 %offset, 0
  %wanted = select i1 %zero, i32 1, i32 %size
  br label %next
next:
  %at = phi i32 [ %base, %entry ], [ %at.next, %miss ]
  %left = phi i32 [ %wanted, %entry ], [ %left.next, %miss ]
  %inside = icmp ult i32 %at, 32
  br i1 %inside, label %look, label %none
look:
  %shifted = lshr i32 %mask, %at
  %bit = and i32 %shifted, 1
  %left.next = sub i32 %left, %bit
  %found = icmp eq i32 %left.next, 0
  br i1 %found, label %done, label %miss
miss:
  %at.next = add i32 %at, %step
  br i1 %zero, label %none, label %next
done:
  ret i32 %at
none:
  ret i32 -1
}
declare i32 @llvm.abs.i32(i32, i1)
"""
