"""Branches, calls and the end of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import layout
from ..errors import PtxError
from ..syntax import Name, Operand
from .table import Op, instruction

if TYPE_CHECKING:
    from ..translate import Translator

CALL_OPERANDS = "= x? x? x? x?"


def _label(op: Op, operand: Operand) -> str:
    if not isinstance(operand, Name):
        raise PtxError("expected a label", op.raw.line)
    return operand.text


@instruction("bra", "= x", "", "uni")
def bra(frame: Translator, op: Op, target: Operand) -> None:
    if id(op.raw) in frame.plan.spins:
        frame.wait(layout.RUNNABLE)
    frame.jump(frame.label_of(_label(op, target)))


@instruction("brx.idx", "= u32 x", "", "uni")
def brx(frame: Translator, op: Op, index: str, table: Operand) -> None:
    name = _label(op, table)
    if name not in frame.targets:
        raise PtxError(f"{name} is not a .branchtargets list", op.raw.line)
    labels = [frame.label_of(target) for target in frame.targets[name]]
    cases = " ".join(f"i32 {i}, label %{label}" for i, label in enumerate(labels))
    frame.end(f"switch i32 {index}, label %{labels[-1]} [ {cases} ]")


@instruction("call", CALL_OPERANDS, "", "uni")
def call(frame: Translator, op: Op, *operands: Operand) -> None:
    frame.call_function(op.raw)


@instruction("ret", "=", "", "uni")
def ret(frame: Translator, op: Op) -> None:
    frame.jump(frame.return_label)


@instruction("exit", "=", exits=True)
def exit_(frame: Translator, op: Op) -> None:
    frame.leave()


@instruction("trap", "=", exits=True)
def trap(frame: Translator, op: Op) -> None:
    frame.fail("719")


@instruction("brkpt", "=")
@instruction("pmevent", "= x", "", "mask")
@instruction("griddepcontrol", "=", "", "launch_dependents wait")
@instruction("setmaxnreg", "= x", "u32", "inc dec sync aligned")
def nothing(frame: Translator, op: Op, *operands: Operand) -> None:
    """Nothing to do here."""


@instruction("nanosleep", "= u32", "u32", barrier=True)
def nanosleep(frame: Translator, op: Op, duration: str) -> None:
    """Let the other threads run."""
    frame.wait(layout.RUNNABLE)


@instruction("alloca", "t = t t?", "u32 u64 b32 b64")
def alloca(frame: Translator, op: Op, size: str, align: str = "") -> str:
    kind = op.type.llvm
    room = frame.op(f"alloca i8, {kind} {size}, align 16")
    return frame.resize(frame.op(f"ptrtoint ptr {room} to i64"), 64, op.type.bits)


@instruction("stacksave", "t =", "u32 u64")
def stacksave(frame: Translator, op: Op) -> str:
    return frame.integer(0, op.type)


@instruction("stackrestore", "= t", "u32 u64")
def stackrestore(frame: Translator, op: Op, value: str) -> None:
    """What alloca took is freed when the function returns."""
