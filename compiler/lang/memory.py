"""Arrays that a kernel makes: shared.array and local.array."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import I8, I32, I64, SPACES, Value, memory_type
from ..types import Array, Literal, Stored, Tuple, Type
from ..typing.registry import REGISTRY, Match
from .stub import Stub

DYNAMIC = "dynamic_shared_memory"


class _Space:
    """A namespace: shared or local."""

    def __init__(self, name: str, doc: str) -> None:
        self.__doc__ = doc
        self.array = Stub(f"{name}.array", doc)


shared = _Space(
    "shared",
    """shared.array(shape, dtype): an array that the threads of a block share.

    *shape* is an int or a tuple of ints, constants. Shape 0 gives the dynamic shared memory
    of the launch, whose size is what the launch asked for. The contents are undefined at first.
    """,
)
local = _Space(
    "local",
    """local.array(shape, dtype): an array of the thread's own, of constant shape.

    The contents are undefined at first. One declaration is one array, also in a loop.
    """,
)


def constant_shape(shape: Type) -> tuple[int, ...]:
    """The ints of a shape given as a literal.

    Raises:
        TypingError: some length is not known while compiling, or is negative.
    """
    if isinstance(shape, Literal):
        values = shape.value if isinstance(shape.value, tuple) else (shape.value,)
    elif isinstance(shape, Tuple) and all(isinstance(item, Literal) for item in shape.items):
        values = tuple(item.value for item in shape.items)  # type: ignore[attr-defined]
    else:
        raise TypingError(
            "the shape must be a constant: a literal, a global or an expression of them; for a "
            "size known at launch use shared.array(0, dtype), dynamic shared memory"
        )
    lengths = []
    for value in values:
        try:
            lengths.append(value.__index__())
        except AttributeError:
            raise TypingError(f"{value!r} is no length of a dimension: use ints") from None
        if lengths[-1] < 0:
            raise TypingError(f"the length {value} of a dimension is negative")
    return tuple(lengths)


def constant_dtype(dtype: Type) -> Stored:
    """The element type given as a literal."""
    if not isinstance(dtype, Literal):
        raise TypingError("the dtype must be a constant such as float32")
    try:
        return types.from_dtype(dtype.value)
    except TypeError as error:
        raise TypingError(str(error)) from None


def _array_rule(space: str) -> Any:
    def rule(shape: Type, dtype: Type) -> Match:
        lengths, element = constant_shape(shape), constant_dtype(dtype)
        nbytes = math.prod(lengths) * element.dtype.itemsize
        if space == "shared" and nbytes > 48 * 1024:
            raise TypingError(
                f"{nbytes} bytes of static shared memory: at most 49152 are possible; use "
                f"shared.array(0, dtype) and ask for the memory at the launch"
            )
        return Match((None, None), Array(element, len(lengths), "C", space), data=lengths)

    return rule


@REGISTRY.function(shared.array, rule=_array_rule("shared"))
def shared_array(b: Builder, match: Match, lengths: Value, dtype: Value) -> Value:
    """A variable in shared memory, one for each place in the source"""
    ty = match.returns
    assert isinstance(ty, Array) and isinstance(ty.dtype, Stored)
    if match.data == (0,):
        return _dynamic(b, ty)
    element = memory_type(ty.dtype)
    storage = ir.ArrayType(element, max(math.prod(match.data), 1))
    align = max(ty.dtype.dtype.itemsize, 16)
    variable = b.module.variable("shared", storage, "shared", align)
    return Value(ty, (b.untyped(variable), *(b.int64(n) for n in match.data)))


def _dynamic(b: Builder, ty: Array) -> Value:
    variable = b.module.llvm.globals.get(DYNAMIC)
    if variable is None:
        storage = ir.ArrayType(I8, 0)
        variable = ir.GlobalVariable(b.module.llvm, storage, DYNAMIC, SPACES["shared"])
        variable.linkage = "external"
        variable.align = 16
    register = ir.FunctionType(I32, [])
    nbytes = b.llvm.asm(register, "mov.u32 $0, %dynamic_smem_size;", "=r", [], False)
    assert isinstance(ty.dtype, Stored)
    size = ir.Constant(I32, ty.dtype.dtype.itemsize)
    count = b.llvm.zext(b.llvm.udiv(nbytes, size), I64)
    return Value(ty, (b.untyped(variable), count))


@REGISTRY.function(local.array, rule=_array_rule("generic"))
def local_array(b: Builder, match: Match, lengths: Value, dtype: Value) -> Value:
    """Stack memory, allocated where the function begins"""
    ty = match.returns
    assert isinstance(ty, Array) and isinstance(ty.dtype, Stored)
    storage = ir.ArrayType(memory_type(ty.dtype), max(math.prod(match.data), 1))
    with b.llvm.goto_entry_block():
        place = b.llvm.alloca(storage)
        place.align = max(ty.dtype.dtype.itemsize, 4)
        pointer = b.untyped(place)
    return Value(ty, (pointer, *(b.int64(n) for n in match.data)))
