"""Floating point arithmetic, correctly rounded, and the approximate functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import TYPES, Type
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

HALVES = "f16 f16x2 bf16 bf16x2"
SINGLES = "f32 f32x2 f64"
ROUNDING = "rn rz rm rp"
_MODES = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}  # as llvm.set.rounding numbers them


def flush(frame: Frame, type: Type, x: str) -> str:
    """Subnormal numbers of f32 as zero of the same sign."""
    if type.name == "f32x2":
        parts = [frame.op(f"extractelement <2 x float> {x}, i32 {i}") for i in (0, 1)]
        flushed = [flush(frame, TYPES["f32"], part) for part in parts]
        value = "poison"
        for i, part in enumerate(flushed):
            value = frame.op(f"insertelement <2 x float> {value}, float {part}, i32 {i}")
        return value
    if type.name != "f32":
        return x
    size = frame.call("llvm.fabs.f32", "float", f"float {x}")
    tiny = frame.op(f"fcmp olt float {size}, 0x3810000000000000")
    zero = frame.call("llvm.copysign.f32", "float", "float 0.0", f"float {x}")
    return frame.select(tiny, "float", zero, x)


def finish(frame: Frame, op: Op, value: str) -> str:
    """Apply .ftz, .sat and .relu to a result."""
    kind, suffix = op.type.llvm, op.type.suffix
    if op.has("ftz"):
        value = flush(frame, op.type, value)
    if op.has("sat"):
        zero = f"{kind} zeroinitializer"
        value = frame.call(f"llvm.maximumnum.{suffix}", kind, f"{kind} {value}", zero)
        one = f"{kind} {splat(op.type, 1)}"
        value = frame.call(f"llvm.minimumnum.{suffix}", kind, f"{kind} {value}", one)
    if op.has("relu"):
        zero = f"{kind} zeroinitializer"
        value = frame.call(f"llvm.maximum.{suffix}", kind, f"{kind} {value}", zero)
    return value


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
    kind, suffix = op.type.llvm, op.type.suffix
    mode = op.one_of("rz rm rp")
    if op.type.lanes > 1 and (mode or name == "fma" or "bfloat" in kind):
        return _lanewise(frame, op, name, *values)
    if mode:
        return directed(frame, name, op.type, mode, *values)
    if op.type.bits == 16 and (name == "fma" or kind == "bfloat"):
        return _in_double(frame, op.type, name, *values)
    arguments = [f"{kind} {v}" for v in values]
    if name in ("fma", "sqrt"):
        return frame.call(f"llvm.{name}.{suffix}", kind, *arguments)
    return frame.op(f"{name} {kind} {', '.join(values)}")


def _lanewise(frame: Frame, op: Op, name: str, *values: str) -> str:
    element = TYPES[op.type.name[:-2]]
    single = Op(op.raw)
    single.types = [element]
    result = "poison"
    for i in range(2):
        parts = [frame.op(f"extractelement {op.type.llvm} {v}, i32 {i}") for v in values]
        part = rounded(frame, single, name, *parts)
        result = frame.op(f"insertelement {op.type.llvm} {result}, {element.llvm} {part}, i32 {i}")
    return result


def _in_double(frame: Frame, type: Type, name: str, *values: str) -> str:
    """A 16-bit operation in double, where it is as good as exact, rounded once from there."""
    wide = [frame.op(f"fpext {type.llvm} {v} to double") for v in values]
    if name == "fma":
        exact = frame.call("llvm.fma.f64", "double", *(f"double {v}" for v in wide))
    else:
        exact = frame.op(f"{name} double {', '.join(wide)}")
    return to_half(frame, type, to_odd(frame, exact))


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


@instruction("add sub", "t = t t", f"{HALVES} {SINGLES}", f"{ROUNDING} ftz sat")
@instruction("mul", "t = t t", f"{HALVES} {SINGLES}", f"{ROUNDING} ftz sat")
def arithmetic(frame: Frame, op: Op, x: str, y: str) -> str:
    x, y = prepare(frame, op, x, y)
    return finish(frame, op, rounded(frame, op, f"f{op.raw.opcode}", x, y))


@instruction("fma", "t = t t t", f"{HALVES} {SINGLES}", f"{ROUNDING} ftz sat relu")
@instruction("mad", "t = t t t", SINGLES, f"{ROUNDING} ftz sat")
def fma(frame: Frame, op: Op, x: str, y: str, z: str) -> str:
    x, y, z = prepare(frame, op, x, y, z)
    return finish(frame, op, rounded(frame, op, "fma", x, y, z))


@instruction("div", "t = t t", "f32 f64", f"{ROUNDING} ftz approx full")
def divide(frame: Frame, op: Op, x: str, y: str) -> str:
    x, y = prepare(frame, op, x, y)
    return finish(frame, op, rounded(frame, op, "fdiv", x, y))


@instruction("rcp", "t = t", "f32 f64", f"{ROUNDING} ftz approx")
def reciprocal(frame: Frame, op: Op, x: str) -> str:
    (x,) = prepare(frame, op, x)
    return finish(frame, op, rounded(frame, op, "fdiv", "1.0", x))


@instruction("sqrt", "t = t", "f32 f64", f"{ROUNDING} ftz approx")
def sqrt(frame: Frame, op: Op, x: str) -> str:
    (x,) = prepare(frame, op, x)
    return finish(frame, op, rounded(frame, op, "sqrt", x))


@instruction("rsqrt", "t = t", "f32 f64", "ftz approx")
def rsqrt(frame: Frame, op: Op, x: str) -> str:
    (x,) = prepare(frame, op, x)
    wide = frame.cast("fpext", op.type.llvm, x, "double")
    root = frame.op(f"fdiv double 1.0, {frame.call('llvm.sqrt.f64', 'double', f'double {wide}')}")
    return finish(frame, op, frame.cast("fptrunc", "double", root, op.type.llvm))


_FUNCTIONS = {"sin": "sin", "cos": "cos", "lg2": "log2", "ex2": "exp2", "tanh": "tanh"}


@instruction("sin cos lg2 ex2 tanh", "t = t", f"f32 {HALVES}", "ftz approx")
def function(frame: Frame, op: Op, x: str) -> str:
    (x,) = prepare(frame, op, x)
    kind = op.type.llvm
    name = f"llvm.{_FUNCTIONS[op.raw.opcode]}.{op.type.suffix}"
    return finish(frame, op, frame.call(name, kind, f"{kind} {x}"))


@instruction("neg", "t = t", f"{HALVES} {SINGLES}", "ftz")
def negate(frame: Frame, op: Op, x: str) -> str:
    return finish(frame, op, frame.op(f"fneg {op.type.llvm} {x}"))


@instruction("abs", "t = t", f"{HALVES} {SINGLES}", "ftz")
def absolute(frame: Frame, op: Op, x: str) -> str:
    kind = op.type.llvm
    return finish(frame, op, frame.call(f"llvm.fabs.{op.type.suffix}", kind, f"{kind} {x}"))


@instruction("min max", "t = t t t?", f"{HALVES} f32 f64", "ftz NaN xorsign abs")
def min_max(frame: Frame, op: Op, x: str, y: str, z: str = "") -> str:
    """The other operand if one is NaN (with .NaN: NaN); -0 is less than +0."""
    kind, suffix = op.type.llvm, op.type.suffix
    values = prepare(frame, op, x, y, *([z] if z else []))
    sign = frame.op(f"fmul {kind} {values[0]}, {values[1]}") if op.has("xorsign") else ""
    if op.has("abs"):
        values = [frame.call(f"llvm.fabs.{suffix}", kind, f"{kind} {v}") for v in values]
    name = f"llvm.{op.raw.opcode}imum{'' if op.has('NaN') else 'num'}.{suffix}"
    value = values[0]
    for other in values[1:]:
        value = frame.call(name, kind, f"{kind} {value}", f"{kind} {other}")
    if sign:
        value = frame.call(f"llvm.copysign.{suffix}", kind, f"{kind} {value}", f"{kind} {sign}")
    return finish(frame, op, value)


@instruction("copysign", "t = t t", "f32 f64")
def copysign(frame: Frame, op: Op, sign: str, size: str) -> str:
    kind = op.type.llvm
    name = f"llvm.copysign.{op.type.suffix}"
    return frame.call(name, kind, f"{kind} {size}", f"{kind} {sign}")
