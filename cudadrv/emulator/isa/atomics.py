"""Atomic operations, real ones: blocks run on several cores at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..syntax import Operand
from ..types import Type
from .memory import SCOPES, SPACES, space
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

ORDERS = "relaxed acquire release acq_rel"
NAMES = "add min max and or xor exch inc dec"
TYPES = "b16 b32 b64 u32 u64 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64"
FLAGS = f"{SPACES} {SCOPES} {ORDERS} noftz L2::cache_hint"
_LLVM_NAMES = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}


def _order(op: Op) -> str:
    return op.one_of("acquire release acq_rel", "monotonic")


@instruction("atom", "x = x x x? x?", TYPES, f"{NAMES} cas {FLAGS}")
def atom(frame: Frame, op: Op, dest: Operand, address: Operand, a: Operand, *rest: Operand) -> None:
    pointer = frame.access(space(op), address, op.type.bytes)
    value = frame.read(a, op.type)
    if op.has("cas"):
        old = compare_and_swap(frame, op, pointer, value, frame.read(rest[0], op.type))
    else:
        old = read_modify_write(frame, op, pointer, value)
    frame.write(dest, op.type, old)


@instruction("red", "= x x x?", TYPES, f"{NAMES} {FLAGS}")
def red(frame: Frame, op: Op, address: Operand, a: Operand, policy: Operand | None = None) -> None:
    read_modify_write(
        frame, op, frame.access(space(op), address, op.type.bytes), frame.read(a, op.type)
    )


def compare_and_swap(frame: Frame, op: Op, pointer: str, expected: str, new: str) -> str:
    """`atom.cas`: the value that was there."""
    kind, order = op.type.integer, _order(op)
    failure = {"acq_rel": "acquire", "release": "monotonic"}.get(order, order)
    expected, new = (frame.cast("bitcast", op.type.llvm, v, kind) for v in (expected, new))
    pair = frame.op(f"cmpxchg ptr {pointer}, {kind} {expected}, {kind} {new} {order} {failure}")
    old = frame.op(f"extractvalue {{ {kind}, i1 }} {pair}, 0")
    return frame.cast("bitcast", kind, old, op.type.llvm)


def read_modify_write(frame: Frame, op: Op, pointer: str, value: str) -> str:
    """Any other atomic operation: the value that was there."""
    name = op.one_of(NAMES)
    kind: Type = op.type
    how = _LLVM_NAMES.get(name, name)
    if kind.is_float:
        how = {"add": "fadd", "min": "fmin", "max": "fmax"}.get(name, how)
    elif name in ("min", "max"):
        how = name if kind.signed else f"u{name}"
    return frame.op(f"atomicrmw {how} ptr {pointer}, {kind.llvm} {value} {_order(op)}")
