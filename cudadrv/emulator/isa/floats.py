"""Floating point arithmetic, correctly rounded, and the approximate functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..types import TYPES, Type
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

HALVES = "f16 f16x2 bf16 bf16x2"
SINGLES = "f32 f32x2 f64"
ROUNDING = "rn rz rm rp"
# The modifiers of arithmetic, and the types that have them.
ROUNDED = "rn rz=f32,f32x2,f64 rm=f32,f32x2,f64 rp=f32,f32x2,f64"
FLUSHED = "ftz=f16,f16x2,f32,f32x2"
SATURATED = "sat=f16,f16x2,f32"
_MODES = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}  # as llvm.set.rounding numbers them


def flush(frame: Frame, type: Type, x: str) -> str:
    """Subnormal numbers of f32 as zero of the same sign."""
    if type.name == "f32x2":
        return lanewise(frame, type, lambda t, v: flush(frame, t, v), x)
    if type.name != "f32":
        return x
    size = frame.call("llvm.fabs.f32", "float", f"float {x}")
    tiny = frame.op(f"fcmp olt float {size}, 0x3810000000000000")
    zero = frame.call("llvm.copysign.f32", "float", "float 0.0", f"float {x}")
    return frame.select(tiny, "float", zero, x)


def finish(frame: Frame, op: Op, value: str) -> str:
    """Apply .ftz, .sat and .relu to a result."""
    if op.has("ftz"):
        value = flush(frame, op.type, value)
    if op.has("sat"):
        value = intrinsic(frame, op.type, "maximumnum", value, "zeroinitializer")
        value = intrinsic(frame, op.type, "minimumnum", value, splat(op.type, 1))
    if op.has("relu"):
        value = intrinsic(frame, op.type, "maximum", value, "zeroinitializer")
    return value


def intrinsic(frame: Frame, type: Type, name: str, *values: str) -> str:
    """llvm.*name* of floating point values; bf16 by way of float, which every CPU has."""
    kind = type.llvm
    if "bfloat" not in kind:
        return frame.call(f"llvm.{name}.{type.suffix}", kind, *(f"{kind} {v}" for v in values))
    if type.lanes > 1:
        return lanewise(frame, type, lambda t, *v: intrinsic(frame, t, name, *v), *values)
    wide = [f"float {frame.op(f'fpext {kind} {v} to float')}" for v in values]
    return to_half(frame, type, frame.call(f"llvm.{name}.f32", "float", *wide))


def lanewise(frame: Frame, type: Type, function: Callable[..., str], *values: str) -> str:
    """function(element type, *elements) for both lanes of packed values."""
    element = TYPES[type.name[:-2]]
    result = "poison"
    for i in range(2):
        parts = [frame.op(f"extractelement {type.llvm} {v}, i32 {i}") for v in values]
        part = function(element, *parts)
        result = frame.op(f"insertelement {type.llvm} {result}, {element.llvm} {part}, i32 {i}")
    return result


def splat(type: Type, value: int) -> str:
    """A small whole number as a constant of *type*."""
    element = type.llvm.split()[-1].rstrip(">")
    one = f"{float(value)}"
    if type.lanes == 1:
        return one
    return f"<{element} {one}, {element} {one}>"


def prepare(frame: Frame, op: Op, *values: str) -> list[str]:
    """The operands, flushed if the instruction says .ftz."""
    return [flush(frame, op.type, v) for v in values] if op.has("ftz") else list(values)


def rounded(frame: Frame, op: Op, name: str, *values: str) -> str:
    """*name* (fadd, fmul, ..., fma, sqrt) in the rounding mode of the flags."""
    return _rounded(frame, op.type, name, op.one_of("rz rm rp"), *values)


def _rounded(frame: Frame, type: Type, name: str, mode: str, *values: str) -> str:
    kind = type.llvm
    if type.lanes > 1 and (mode or name == "fma" or "bfloat" in kind):
        return lanewise(frame, type, lambda t, *v: _rounded(frame, t, name, mode, *v), *values)
    if mode:
        return directed(frame, name, type, mode, *values)
    if type.bits == 16 and (name == "fma" or kind == "bfloat"):
        return _in_double(frame, type, name, *values)
    if name in ("fma", "sqrt"):
        return intrinsic(frame, type, name, *values)
    return frame.op(f"{name} {kind} {', '.join(values)}")


def _in_double(frame: Frame, type: Type, name: str, *values: str) -> str:
    """A 16-bit operation in double, where it is as good as exact, rounded once from there."""
    wide = [frame.op(f"fpext {type.llvm} {v} to double") for v in values]
    if name == "fma":
        exact = _odd_sum(frame, frame.op(f"fmul double {wide[0]}, {wide[1]}"), wide[2])
    else:
        exact = frame.op(f"{name} double {', '.join(wide)}")
    return to_half(frame, type, to_odd(frame, exact))


def _odd_sum(frame: Frame, x: str, y: str) -> str:
    """The sum of two doubles rounded to odd: its error is known exactly (Knuth's two-sum)."""
    total = frame.op(f"fadd double {x}, {y}")
    part = frame.op(f"fsub double {total}, {x}")
    lost_x = frame.op(f"fsub double {x}, {frame.op(f'fsub double {total}, {part}')}")
    lost_y = frame.op(f"fsub double {y}, {part}")
    error = frame.op(f"fadd double {lost_x}, {lost_y}")
    inexact = frame.op(f"fcmp one double {error}, 0.0")
    # Away from zero where the error has the sum's sign; an odd sum is right already.
    bits, lost = (frame.op(f"bitcast double {v} to i64") for v in (total, error))
    opposite = frame.icmp("slt", "i64", frame.op(f"xor i64 {bits}, {lost}"), "0")
    beside = frame.op(f"add i64 {bits}, {frame.select(opposite, 'i64', '-1', '1')}")
    even = frame.icmp("eq", "i64", frame.op(f"and i64 {bits}, 1"), "0")
    move = frame.op(f"and i1 {inexact}, {even}")
    return frame.op(f"bitcast i64 {frame.select(move, 'i64', beside, bits)} to double")


def to_odd(frame: Frame, value: str) -> str:
    """A double as a float that rounds on to 16 bits as the double would (round to odd)."""
    near = directed(frame, "fptrunc", TYPES["f32"], "rz", value, source=TYPES["f64"])
    back = frame.op(f"fpext float {near} to double")
    inexact = frame.op(f"fcmp one double {back}, {value}")
    bits = frame.op(f"bitcast float {near} to i32")
    bits = frame.op(f"or i32 {bits}, {frame.op(f'zext i1 {inexact} to i32')}")
    return frame.op(f"bitcast i32 {bits} to float")


def to_half(frame: Frame, type: Type, value: str) -> str:
    """A float as f16 or bf16, to nearest even."""
    if type.llvm == "half":
        return frame.op(f"fptrunc float {value} to half")
    # By hand: the CPU's instruction flushes subnormals.
    bits = frame.op(f"bitcast float {value} to i32")
    odd = frame.op(f"and i32 {frame.op(f'lshr i32 {bits}, 16')}, 1")
    carried = frame.op(f"add i32 {frame.op(f'add i32 {bits}, 32767')}, {odd}")
    high = frame.op(f"trunc i32 {frame.op(f'lshr i32 {carried}, 16')} to i16")
    nan = frame.op(f"fcmp uno float {value}, {value}")
    return frame.op(f"bitcast i16 {frame.select(nan, 'i16', '32767', high)} to bfloat")


def directed(
    frame: Frame, name: str, type: Type, mode: str, *values: str, source: Type | None = None
) -> str:
    """An operation in a rounding mode other than nearest: the CPU's, set around it."""
    kind = type.llvm
    given = (source or type).llvm
    suffix = f"{type.suffix}.{source.suffix}" if source else type.suffix
    helper = f"emulator.{name}.{mode}.{suffix}"
    parameters = ", ".join(f"{given} %x{i}" for i in range(len(values)))
    intrinsic = f"llvm.experimental.constrained.{name}.{suffix}"
    declared = ", ".join([given] * len(values) + ["metadata", "metadata"])
    how = 'metadata !"round.dynamic", metadata !"fpexcept.ignore"'
    frame.module.helper(
        helper,
        f"""
define internal {kind} @{helper}({parameters}) noinline strictfp {{
  call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp
  %r = call {kind} @{intrinsic}({parameters}, {how}) strictfp
  call void @llvm.set.rounding(i32 1) strictfp
  ret {kind} %r
}}
declare {kind} @{intrinsic}({declared})
declare void @llvm.set.rounding(i32)""",
    )
    return frame.call(helper, kind, *(f"{given} {v}" for v in values))


@instruction("add sub", "t = t t", f"{HALVES} {SINGLES}", f"{ROUNDED} {FLUSHED} {SATURATED}")
@instruction("mul", "t = t t", f"{HALVES} {SINGLES}", f"{ROUNDED} {FLUSHED} {SATURATED}")
def arithmetic(frame: Frame, op: Op, x: str, y: str) -> str:
    x, y = prepare(frame, op, x, y)
    return finish(frame, op, rounded(frame, op, f"f{op.raw.opcode}", x, y))


@instruction(
    "fma",
    "t = t t t",
    f"{HALVES} {SINGLES}",
    f"{ROUNDED} {FLUSHED} {SATURATED} relu=f16,f16x2,bf16,bf16x2",
    needs=ROUNDING,
)
@instruction("mad", "t = t t t", "f32 f64", f"{ROUNDED} ftz=f32 sat=f32", needs=ROUNDING)
def fma(frame: Frame, op: Op, x: str, y: str, z: str) -> str:
    x, y, z = prepare(frame, op, x, y, z)
    return finish(frame, op, rounded(frame, op, "fma", x, y, z))


DIVISION = f"{ROUNDING} ftz=f32 approx=f32 full=f32"


@instruction("div", "t = t t", "f32 f64", DIVISION, needs=f"{ROUNDING} approx full")
def divide(frame: Frame, op: Op, x: str, y: str) -> str:
    x, y = prepare(frame, op, x, y)
    return finish(frame, op, rounded(frame, op, "fdiv", x, y))


@instruction("rcp", "t = t", "f32 f64", f"{ROUNDING} ftz approx", needs=f"{ROUNDING} approx")
def reciprocal(frame: Frame, op: Op, x: str) -> str:
    (x,) = prepare(frame, op, x)
    return finish(frame, op, rounded(frame, op, "fdiv", "1.0", x))


@instruction("sqrt", "t = t", "f32 f64", f"{ROUNDING} ftz approx", needs=f"{ROUNDING} approx")
def sqrt(frame: Frame, op: Op, x: str) -> str:
    (x,) = prepare(frame, op, x)
    return finish(frame, op, rounded(frame, op, "sqrt", x))


@instruction("rsqrt", "t = t", "f32 f64", "ftz approx", needs="approx")
def rsqrt(frame: Frame, op: Op, x: str) -> str:
    (x,) = prepare(frame, op, x)
    wide = frame.cast("fpext", op.type.llvm, x, "double")
    root = frame.op(f"fdiv double 1.0, {frame.call('llvm.sqrt.f64', 'double', f'double {wide}')}")
    return finish(frame, op, frame.cast("fptrunc", "double", root, op.type.llvm))


_FUNCTIONS = {"sin": "sin", "cos": "cos", "lg2": "log2", "ex2": "exp2", "tanh": "tanh"}


@instruction("sin cos lg2", "t = t", "f32", "ftz approx", needs="approx")
@instruction("ex2 tanh", "t = t", f"f32 {HALVES}", "ftz approx", needs="approx")
def function(frame: Frame, op: Op, x: str) -> str:
    (x,) = prepare(frame, op, x)
    return finish(frame, op, intrinsic(frame, op.type, _FUNCTIONS[op.raw.opcode], x))


@instruction("neg", "t = t", f"{HALVES} f32 f64", "ftz=f16,f16x2,f32")
def negate(frame: Frame, op: Op, x: str) -> str:
    return finish(frame, op, frame.op(f"fneg {op.type.llvm} {x}"))


@instruction("abs", "t = t", f"{HALVES} f32 f64", "ftz=f16,f16x2,f32")
def absolute(frame: Frame, op: Op, x: str) -> str:
    return finish(frame, op, intrinsic(frame, op.type, "fabs", x))


_BELOW_F64 = ",".join(("f32", *HALVES.split()))
EXTREMES = f"ftz=f16,f16x2,f32 NaN={_BELOW_F64} xorsign={_BELOW_F64} abs={_BELOW_F64}"


@instruction("min max", "t = t t t?", f"{HALVES} f32 f64", EXTREMES)
def min_max(frame: Frame, op: Op, x: str, y: str, z: str = "") -> str:
    """The other operand if one is NaN (with .NaN: NaN); -0 is less than +0."""
    values = prepare(frame, op, x, y, *([z] if z else []))
    sign = _sign_product(frame, op.type, *values[:2]) if op.has("xorsign") else ""
    if op.has("abs"):
        values = [intrinsic(frame, op.type, "fabs", v) for v in values]
    name = f"{op.raw.opcode}imum{'' if op.has('NaN') else 'num'}"
    value = values[0]
    for other in values[1:]:
        value = intrinsic(frame, op.type, name, value, other)
    if sign:
        value = intrinsic(frame, op.type, "copysign", value, sign)
    return finish(frame, op, value)


def _sign_product(frame: Frame, type: Type, x: str, y: str) -> str:
    """A value with the sign of the product."""
    bits = [frame.cast("bitcast", type.llvm, v, type.integer) for v in (x, y)]
    product = frame.op(f"xor {type.integer} {bits[0]}, {bits[1]}")
    return frame.cast("bitcast", type.integer, product, type.llvm)


@instruction("copysign", "t = t t", "f32 f64")
def copysign(frame: Frame, op: Op, sign: str, size: str) -> str:
    return intrinsic(frame, op.type, "copysign", size, sign)
