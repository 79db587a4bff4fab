"""What a thread does that raises an exception: it tells the host which, and ends.

The host's side is dispatch/failures.py. A module with checks has one buffer, FAILURE, of 64-bit
words: whether there was a failure, its number in Module.failures, block and thread, and the
values that the exception's arguments hold. The first thread that fails has it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..types import Boolean, Complex, Float, Formatted, Integer, Literal, Struct, Text, Tuple
from .builder import Builder, Failure
from .casts import cast
from .models import I64, SPACES, Value

FAILURE = "kernel_failure"
NUMBER, PLACE, VALUES, WORDS = 1, 2, 8, 40
_REGISTERS = [f"{name}.{axis}" for name in ("ctaid", "tid") for axis in "xyz"]


def reported(b: Builder) -> bool:
    """Whether this module tells the host of failures."""
    return b.module.options.checks or b.module.options.bounds


def fail_if(b: Builder, condition: ir.Value, exception: type[Exception], *message: Any) -> None:
    """Raise *exception* where *condition* holds; *message* are strings and scalar Values."""
    with b.llvm.if_then(condition):
        parts = tuple(Value(Literal(p)) if isinstance(p, str) else p for p in message)
        leaves = tuple(leaf for part in parts for leaf in part.leaves)
        fail(b, exception, [Value(Text(tuple(part.type for part in parts)), leaves)])
        b.llvm.unreachable()


def fail(b: Builder, exception: type[BaseException], args: Sequence[Value]) -> None:
    """Report the exception, if this module reports, and end the thread."""
    words: list[ir.Value] = []
    templates = tuple(template(b, arg, words) for arg in args)
    if reported(b):
        if len(words) > WORDS - VALUES:
            raise TypingError(f"an exception holds at most {WORDS - VALUES} numbers")
        _report(b, Failure(exception, templates, _place(b)), words)
    b.asm("exit;", "", ir.VoidType(), effects=True)


def _place(b: Builder) -> str:
    span = b.span
    return "" if span is None else f"{span.file}:{span.line}, in {span.function}"


def _report(b: Builder, failure: Failure, words: list[ir.Value]) -> None:
    module = b.module
    number = len(module.failures)
    module.failures.append(failure)
    buffer = b.untyped(_buffer(b))

    def put(index: int, word: ir.Value) -> None:
        b.store(b.bytes_on(buffer, 8 * index), Value(types.int64, (word,)))

    first = b.typed(buffer, I64)
    pair = b.llvm.cmpxchg(first, b.int64(0), b.int64(1), "monotonic", "monotonic")
    with b.llvm.if_then(b.llvm.icmp_unsigned("==", b.llvm.extract_value(pair, 0), b.int64(0))):
        put(NUMBER, b.int64(number))
        for index, name in enumerate(_REGISTERS, PLACE):
            leaf = b.intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}", ir.IntType(32), [])
            put(index, b.llvm.zext(leaf, I64))
        for index, word in enumerate(words, VALUES):
            put(index, word)


def _buffer(b: Builder) -> Any:
    found = b.module.llvm.globals.get(FAILURE)
    if found is None:
        storage = ir.ArrayType(I64, WORDS)
        found = ir.GlobalVariable(b.module.llvm, storage, FAILURE, SPACES["global"])
        found.initializer = ir.Constant(storage, None)
        found.align = 8
    return found


def template(b: Builder, value: Value, words: list[ir.Value]) -> tuple[Any, ...]:
    """How the host makes *value* again; its numbers are appended to *words*."""
    ty = value.type
    if isinstance(ty, Literal):
        return ("constant", ty.value.name if isinstance(ty.value, enum.Enum) else ty.value)
    if isinstance(ty, types.NoneType):
        return ("constant", None)
    for kind, build in _TEMPLATES.items():
        if isinstance(ty, kind):
            return build(b, value, words)
    raise TypingError(f"an exception cannot hold {ty}: give it numbers, strings, tuples of them")


def _integer(b: Builder, value: Value, words: list[ir.Value]) -> tuple[Any, ...]:
    ty = value.type
    words.append(cast(b, value, types.int64).leaf)
    signed = isinstance(ty, Integer) and ty.signed
    return ("bool",) if isinstance(ty, Boolean) else ("int", signed)


def _float(b: Builder, value: Value, words: list[ir.Value]) -> tuple[Any, ...]:
    assert isinstance(value.type, Float)
    words.append(b.llvm.bitcast(cast(b, value, types.float64).leaf, I64))
    return ("float", value.type.bits)


def _complex(b: Builder, value: Value, words: list[ir.Value]) -> tuple[Any, ...]:
    assert isinstance(value.type, Complex)
    for leaf in value.leaves:
        _float(b, Value(value.type.part, (leaf,)), words)
    return ("complex",)


def _items(name: str) -> Callable[..., tuple[Any, ...]]:
    def build(b: Builder, value: Value, words: list[ir.Value]) -> tuple[Any, ...]:
        return (name, *(template(b, item, words) for item in b.items(value)))

    return build


def _formatted(b: Builder, value: Value, words: list[ir.Value]) -> tuple[Any, ...]:
    assert isinstance(value.type, Formatted)
    (item,) = b.items(value)
    return ("format", template(b, item, words), value.type.conversion, value.type.spec)


_TEMPLATES: dict[type[types.Type], Callable[..., tuple[Any, ...]]] = {
    Boolean: _integer,
    Integer: _integer,
    Float: _float,
    Complex: _complex,
    Tuple: _items("tuple"),
    Struct: _items("tuple"),
    Text: _items("text"),
    Formatted: _formatted,
}
