"""Arrays that a kernel makes: in shared, local and constant memory."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import I8, I32, I64, SPACES, Value, memory_type
from ..types import Array, Integer, Literal, Stored, Tuple, Type, number, widen
from ..typing.registry import REGISTRY, Match
from .stub import Stub

DYNAMIC = "dynamic_shared_memory"
# The defaults of parameters: they tell, by identity, that nothing was given.
_ORDER, _OFFSET = Literal("C"), Literal(0)


# CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability".
_LOCAL_BYTES = 512 * 1024


class _Space:
    """A namespace: shared or local."""

    def __init__(self, name: str, doc: str) -> None:
        self.__doc__ = doc
        self.array = Stub(f"{name}.array", doc)
        self.dynamic: Any = None


shared = _Space(
    "shared",
    """shared.array(shape, dtype, alignment=None, order="C"): an array of all threads of a block.

    *shape* is an int or a tuple of ints, constants; *alignment*, a power of two, is what its
    address is a multiple of, at least 16. Shape 0 gives the dynamic shared memory of the launch,
    whose size is what the launch asked for; slices of it, viewed as other types, divide it. The
    contents are undefined at first.
    """,
)
shared.dynamic = Stub(
    "shared.dynamic",
    """shared.dynamic(shape, dtype, offset=0): an array some bytes into dynamic memory.

    The shape can be known at run time only; whether it fits is not checked.
    """,
)
local = _Space(
    "local",
    """local.array(shape, dtype, alignment=None, order="C"): an array of the thread's own.

    The shape is constant, the contents are undefined at first. One declaration is one array, also
    in a loop.
    """,
)


class _Constant:
    """The namespace const."""

    array_like = Stub(
        "const.array_like",
        """const.array_like(array): a NumPy array that the kernel names, in constant memory.

        It holds what the array held when the kernel was compiled; it is read-only, and has at
        most 65,536 bytes.
        """,
    )


const = _Constant()


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


def _alignment(given: Type | None, element: Stored, least: int) -> int:
    """The alignment in bytes that is asked for, checked."""
    natural = max(1 << (element.dtype.itemsize - 1).bit_length(), least)
    natural = min(natural, 16)
    if given is None or given == Literal(None):
        return natural
    value = given.value if isinstance(given, Literal) else None
    if not isinstance(value, int) or value < 1 or value & (value - 1):
        raise TypingError("the alignment must be a constant power of two")
    if value % element.dtype.alignment:
        raise TypingError(f"{element} needs an alignment of {element.dtype.alignment} at least")
    return max(value, natural)


def _array_rule(space: str) -> Any:
    def rule(
        shape: Type,
        dtype: Type,
        alignment: Type | None = None,
        order: Type = _ORDER,
    ) -> Match:
        lengths, element = constant_shape(shape), constant_dtype(dtype)
        if order not in (Literal("C"), Literal("F")):
            raise TypingError(f"the order {widen(order)} is neither 'C' nor 'F'")
        assert isinstance(order, Literal)
        nbytes = math.prod(lengths) * element.dtype.itemsize
        if space == "shared" and nbytes > 48 * 1024:
            raise TypingError(
                f"{nbytes} bytes of static shared memory: at most 49152 are possible; use "
                f"shared.array(0, dtype) and ask for the memory at the launch"
            )
        if nbytes > _LOCAL_BYTES:
            raise TypingError(
                f"{nbytes} bytes: a thread has {_LOCAL_BYTES} bytes of its own at most"
            )
        align = _alignment(alignment, element, 16 if space == "shared" else 4)
        count = 2 + (alignment is not None) + (order is not _ORDER)
        ty = Array(element, len(lengths), order.value, space)
        return Match((None,) * count, ty, data=(lengths, align))

    return rule


@REGISTRY.function(shared.array, rule=_array_rule("shared"))
def shared_array(b: Builder, match: Match, *args: Value) -> Value:
    """A variable in shared memory, one for each place in the source"""
    ty = match.returns
    lengths, align = match.data
    assert isinstance(ty, Array)
    if lengths == (0,):
        return _dynamic(b, ty)
    storage = ir.ArrayType(memory_type(ty.dtype), max(math.prod(lengths), 1))
    variable = b.module.variable("shared", storage, "shared", align)
    return Value(ty, (b.untyped(variable), *(b.int64(n) for n in lengths)))


def dynamic_memory(b: Builder) -> ir.Value:
    """The address of dynamic shared memory."""
    variable = b.module.llvm.globals.get(DYNAMIC)
    if variable is None:
        storage = ir.ArrayType(I8, 0)
        variable = ir.GlobalVariable(b.module.llvm, storage, DYNAMIC, SPACES["shared"])
        variable.linkage = "external"
        variable.align = 128  # What bulk copies want; the driver puts it behind static arrays.
    return b.untyped(variable)


def _dynamic(b: Builder, ty: Array) -> Value:
    nbytes = b.asm("mov.u32 $0, %dynamic_smem_size;", "=r", I32)
    size = ir.Constant(I32, ty.dtype.dtype.itemsize)
    count = b.llvm.zext(b.llvm.udiv(nbytes, size), I64)
    return Value(ty, (dynamic_memory(b), count))


def _dynamic_rule(shape: Type, dtype: Type, offset: Type = _OFFSET) -> Match | None:
    wide = widen(shape)
    items = wide.items if isinstance(wide, Tuple) else (wide,)
    numbers = [number(item) for item in (*items, offset)]
    if not all(isinstance(each, Integer) for each in numbers):
        return None
    lengths: Type = types.py_int
    if isinstance(wide, Tuple):
        lengths = Tuple((types.py_int,) * len(items))
    count = 2 + (offset is not _OFFSET)
    args = (lengths, None, types.py_int)[:count]
    return Match(args, Array(constant_dtype(dtype), len(items), "C", "shared"))


@REGISTRY.function(shared.dynamic, rule=_dynamic_rule)
def shared_dynamic(
    b: Builder, match: Match, lengths: Value, dtype: Value, offset: Value | None = None
) -> Value:
    """A view of dynamic shared memory"""
    pointer = dynamic_memory(b)
    if offset is not None:
        pointer = b.offset(pointer, I8, offset.leaf)
    return Value(match.returns, (pointer, *lengths.leaves))


@REGISTRY.function(local.array, rule=_array_rule("generic"))
def local_array(b: Builder, match: Match, *args: Value) -> Value:
    """Stack memory, allocated where the function begins"""
    ty = match.returns
    lengths, align = match.data
    assert isinstance(ty, Array)
    storage = ir.ArrayType(memory_type(ty.dtype), max(math.prod(lengths), 1))
    with b.llvm.goto_entry_block():
        place = b.llvm.alloca(storage)
        place.align = align
        pointer = b.untyped(place)
    return Value(ty, (pointer, *(b.int64(n) for n in lengths)))


def _constant_rule(array: Type) -> Match:
    if not isinstance(array, Array) or not array.readonly or array.space not in ("const", "global"):
        raise TypingError("const.array_like takes a NumPy array that the kernel names, no argument")
    if array.space == "global":
        raise TypingError(
            "the arrays that a kernel names have at most 65536 bytes of constant memory"
        )
    return Match((None,), array)


@REGISTRY.function(const.array_like, rule=_constant_rule)
def constant_array(b: Builder, match: Match, array: Value) -> Value:
    """The array itself: those that a kernel names lie in constant memory"""
    return array
