"""Moves and conversions between types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import unsupported
from ..syntax import Operand
from ..types import TYPES, Type
from .floats import directed, finish, flush, to_half, to_odd
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

NUMBERS = "u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64"
SCALARS = f"{NUMBERS} b8 b16 b32 b64"
ROUNDINGS = "rn rz rm rp rni rzi rmi rpi rna"
_WHOLE = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@instruction("mov", "t = t", f"{SCALARS} b128 pred f16x2 bf16x2")
def mov(frame: Frame, op: Op, value: str) -> str:
    return value


def conversion_fault(op: Op) -> str:
    """What is wrong with the modifiers of a cvt; ptxas is the model."""
    if len(op.types) != 2:
        return "cvt names two types, the one it gives and the one it takes"
    target, source = op.types
    if {"bf16"} < {target.name, source.name} and 8 in (target.bits, source.bits):
        return "bf16 does not convert to or from 8 bits"
    if op.has("ftz") and "f32" not in (target.name, source.name):
        return ".ftz needs f32"
    if op.has("sat") and not _saturates(target, source):
        return f"no .sat from {source.name} to {target.name}"
    packs = source.name == "f32" and target.is_float and target.bits == 16 * target.lanes
    if op.one_of("relu satfinite") and not packs:
        return ".relu and .satfinite are for f32 to 16 bits"
    return _rounding_fault(op, target, source)


def _saturates(target: Type, source: Type) -> bool:
    """Whether .sat is allowed: floats but bf16, and integers that may be out of range."""
    if target.is_float:
        return not {"bf16", "bf16x2"} & {target.name, source.name}
    if source.is_float:
        return source.name != "bf16"
    if source.signed and not target.signed:
        return True
    return source.bits - source.signed > target.bits - target.signed


def _rounding_fault(op: Op, target: Type, source: Type) -> str:
    mode = op.one_of(ROUNDINGS)
    if source.is_float and (not target.is_float or target.name == source.name):
        if mode not in _WHOLE and (mode or not target.is_float):
            return "rounding to a whole number is rni, rzi, rmi or rpi"
    elif mode in _WHOLE or mode == "rna":
        return f"no .{mode} from {source.name} to {target.name}"
    elif not mode and target.is_float and not _exact(target, source):
        return "a conversion that rounds needs rn, rz, rm or rp"
    elif mode and (not target.is_float or _widens(target, source)):
        return f"no .{mode} from {source.name} to {target.name}, which is exact"
    return ""


def _widens(target: Type, source: Type) -> bool:
    return source.bits < target.bits and source.name in ("f16", "f32") and target.lanes == 1


def _exact(target: Type, source: Type) -> bool:
    """Whether a conversion to a float needs no rounding mode."""
    return source.is_float and source.bits <= target.bits and target.lanes == 1


@instruction(
    "cvt",
    "x = x x?",
    f"{NUMBERS} f16x2 bf16x2",
    f"{ROUNDINGS} ftz sat relu satfinite",
    fault=conversion_fault,
)
def cvt(frame: Frame, op: Op, dest: Operand, a: Operand, b: Operand | None = None) -> None:
    """`cvt.rounding.ftz.sat.to.from d, a;` and `cvt.rn.f16x2.f32 d, high, low;`"""
    target, source = op.types[0], op.types[-1]
    value = frame.read(a, source)
    if b is not None:
        value = _packed(frame, op, target, value, frame.read(b, source))
    else:
        value = convert(frame, op, source, target, value)
    frame.write(dest, target, value)


def _packed(frame: Frame, op: Op, target: Type, high: str, low: str) -> str:
    element, single = TYPES[target.name[:-2]], TYPES["f32"]
    value = "poison"
    for i, part in enumerate((low, high)):
        half = to_float(frame, op, single, element, part)
        value = frame.op(f"insertelement {target.llvm} {value}, {element.llvm} {half}, i32 {i}")
    return _saturated(frame, op, target, value)


def convert(frame: Frame, op: Op, source: Type, target: Type, value: str) -> str:
    """A value of type *source* as one of type *target*."""
    if source.is_float and op.has("ftz"):
        value = flush(frame, source, value)
    if source.is_float and target.is_float:
        value = to_float(frame, op, source, target, value)
        return _saturated(frame, op, target, value)
    if source.is_float:
        return float_to_integer(frame, op, source, target, value)
    if target.is_float:
        return integer_to_float(frame, op, source, target, value)
    if op.has("sat"):
        value = clamp(frame, source, target, value)
    return frame.resize(value, source.bits, target.bits, source.signed)


def _saturated(frame: Frame, op: Op, target: Type, value: str) -> str:
    op.types.append(target)
    value = finish(frame, op, value)
    op.types.pop()
    return value


def to_float(frame: Frame, op: Op, source: Type, target: Type, value: str) -> str:
    """Between floating point types; to the same type with rni etc.: to a whole number."""
    kind = source.llvm
    whole = op.one_of("rni rzi rmi rpi")
    if whole:
        name = f"llvm.{_WHOLE[whole]}.{source.suffix}"
        value = frame.call(name, kind, f"{kind} {value}")
    if source.bits == target.bits:
        if source.name != target.name:
            wide = frame.op(f"fpext {kind} {value} to float")
            return narrow(frame, op, TYPES["f32"], target, wide)
        return value
    if source.bits < target.bits:
        return frame.op(f"fpext {kind} {value} to {target.llvm}")
    return narrow(frame, op, source, target, value)


def narrow(frame: Frame, op: Op, source: Type, target: Type, value: str) -> str:
    """A floating point value in a smaller type, rounded."""
    mode = op.one_of("rz rm rp")
    if target.bits == 32:
        if mode:
            return directed(frame, "fptrunc", target, mode, value, source=source)
        return frame.op(f"fptrunc {source.llvm} {value} to {target.llvm}")
    if mode:
        raise unsupported(f"{op.raw.name!r}: rounding .{mode} to 16 bits", op.raw.line)
    if source.bits == 64:
        value = to_odd(frame, value)
    return to_half(frame, target, value)


def float_to_integer(frame: Frame, op: Op, source: Type, target: Type, value: str) -> str:
    """Out of range: the nearest; NaN: 0, or only the top bit where 64 bits are involved."""
    if source.bits == 16:
        value = frame.op(f"fpext {source.llvm} {value} to float")
        source = TYPES["f32"]
    kind = source.llvm
    mode = op.one_of("rni rzi rmi rpi", "rzi")
    if mode != "rzi":
        value = frame.call(f"llvm.{_WHOLE[mode]}.{source.suffix}", kind, f"{kind} {value}")
    sign = "s" if target.signed else "u"
    name = f"llvm.fpto{sign}i.sat.{target.llvm}.{source.suffix}"
    result = frame.call(name, target.llvm, f"{kind} {value}")
    if source.bits < 64 and target.bits < 64:
        return result
    nan = frame.op(f"fcmp uno {kind} {value}, {value}")
    return frame.select(nan, target.llvm, str(1 << (target.bits - 1)), result)


def integer_to_float(frame: Frame, op: Op, source: Type, target: Type, value: str) -> str:
    """An integer in a floating point type, rounded."""
    how = "sitofp" if source.signed else "uitofp"
    mode = op.one_of("rz rm rp")
    if target.bits == 16:
        # Exact in double up to 53 bits, and far beyond the range of f16 above that.
        wide = frame.op(f"{how} {source.llvm} {value} to double")
        return narrow(frame, op, TYPES["f64"], target, wide)
    if mode:
        value = directed(frame, how, target, mode, value, source=source)
    else:
        value = frame.op(f"{how} {source.llvm} {value} to {target.llvm}")
    return _saturated(frame, op, target, value)


def clamp(frame: Frame, source: Type, target: Type, value: str) -> str:
    """An integer moved into the range of *target*, still in the type *source*."""
    top = (1 << (target.bits - target.signed)) - 1
    low = -(1 << (target.bits - 1)) if target.signed else 0
    bits, kind = source.bits, source.llvm
    source_top = (1 << (bits - source.signed)) - 1
    sign = "s" if source.signed else "u"
    if top < source_top:
        value = frame.call(f"llvm.{sign}min.{kind}", kind, f"{kind} {value}", f"{kind} {top}")
    if source.signed and low > -(1 << (bits - 1)):
        value = frame.call(f"llvm.smax.{kind}", kind, f"{kind} {value}", f"{kind} {low}")
    return value


@instruction("cvt.rna.tf32.f32 cvt.rn.tf32.f32", "b32 = b32", "", "relu satfinite")
def cvt_tf32(frame: Frame, op: Op, bits: str) -> str:
    """f32 with its lowest 13 bits rounded off; rna: halves away from zero."""
    half = "4096"
    if op.raw.modifiers[0] == "rn":
        odd = frame.op(f"and i32 {frame.op(f'lshr i32 {bits}, 13')}, 1")
        half = frame.op(f"add i32 {odd}, 4095")
    return frame.op(f"and i32 {frame.op(f'add i32 {bits}, {half}')}, -8192")


@instruction("cvta", "t = t", "u32 u64", "global shared shared::cta local const param")
@instruction("cvta.to", "t = t", "u32 u64", "global shared shared::cta local const param")
def cvta(frame: Frame, op: Op, address: str) -> str:
    """Only shared addresses differ from generic ones: they are offsets into the block's."""
    if not op.has("shared") and not op.has("shared::cta"):
        return address
    base = frame.op("ptrtoint ptr %shared to i64")
    how = "sub" if op.raw.modifiers[0] == "to" else "add"
    bits = op.type.bits
    wide = frame.resize(address, bits, 64)
    return frame.resize(frame.op(f"{how} i64 {wide}, {base}"), 64, bits)


@instruction("isspacep", "pred = u64", "", "global shared shared::cta local const param")
def isspacep(frame: Frame, op: Op, address: str) -> str:
    """Shared and local are ranges of host memory; everything else is global."""
    shared = _within(frame, address, "ptr %shared", frame.launch("shared_bytes"))
    if op.has("global"):
        return frame.op(f"xor i1 {shared}, true")
    return shared if op.has("shared") or op.has("shared::cta") else "false"


def _within(frame: Frame, address: str, base: str, size: str) -> str:
    start = frame.op(f"ptrtoint {base} to i64")
    offset = frame.op(f"sub i64 {address}, {start}")
    return frame.icmp("ult", "i64", offset, frame.op(f"zext i32 {size} to i64"))
