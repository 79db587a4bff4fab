"""Calls of functions with C's calling convention: libdevice's, CUDA C++'s, other people's PTX."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from .. import types
from ..errors import CompileError
from ..frontend.infer import Typed
from ..types import Array, Scalar, Type
from .builder import Builder
from .casts import cast
from .function import Program, unpack
from .models import I1, I8, Layout, Value, memory_type


def c_type(layout: Layout, ty: Type) -> ir.Type:
    """The LLVM type that carries *ty*: a bool is a byte, an array the address of its elements.

    Raises:
        CompileError: C has no such type.
    """
    if isinstance(ty, Array) and isinstance(ty.dtype, Scalar):
        return pointer_type(layout, ty.dtype)
    if isinstance(ty, types.NoneType):
        return ir.VoidType()
    if not isinstance(ty, Scalar):
        raise CompileError(f"{ty} has no counterpart in C: use numbers, bools and arrays")
    return memory_type(ty)


def pointer_type(layout: Layout, ty: Scalar) -> ir.Type:
    """The LLVM type of a C pointer to elements of *ty*."""
    return memory_type(ty).as_pointer() if layout.typed_pointers else ir.PointerType()


def call(
    b: Builder, name: str, returns: Type, args: Sequence[Value], outputs: Sequence[Scalar] = ()
) -> Value:
    """Call the C function *name*.

    Args:
        outputs: what it writes through pointers, its last parameters.

    Returns:
        What it returns; with outputs a tuple of that, if not void, and the outputs.
    """
    given = [_argument(b, arg) for arg in args]
    places = [_place(b, ty) for ty in outputs]
    params = [arg.type for arg in given] + [pointer_type(b.layout, ty) for ty in outputs]
    function = b.module.declare(name, c_type(b.layout, returns), params)
    pointers = [b.typed(place, memory_type(ty)) for place, ty in zip(places, outputs, strict=True)]
    result = _result(b, b.llvm.call(function, given + pointers), returns)
    if not outputs:
        return result
    values = [result] if returns != types.none else []
    values += [b.load(place, ty) for place, ty in zip(places, outputs, strict=True)]
    leaves = tuple(value.leaf for value in values)
    if len(values) == 1:
        return values[0]
    return Value(types.Tuple(tuple(value.type for value in values)), leaves)


def _argument(b: Builder, value: Value) -> ir.Value:
    ty = value.type
    if isinstance(ty, Array):
        pointer = value.leaves[0]
        if ty.space != "generic":
            pointer = b.to_generic(pointer)
        assert isinstance(ty.dtype, Scalar)
        return b.typed(pointer, memory_type(ty.dtype))
    return b.llvm.zext(value.leaf, I8) if value.leaf.type == I1 else value.leaf


def _result(b: Builder, result: ir.Value, ty: Type) -> Value:
    if ty == types.none:
        return Value(ty)
    if isinstance(ty, types.Boolean):
        result = b.llvm.icmp_unsigned("!=", result, ir.Constant(I8, 0))
    return Value(ty, (result,))


def _place(b: Builder, ty: Scalar) -> ir.Value:
    with b.llvm.goto_entry_block():
        place = b.llvm.alloca(memory_type(ty))
        place.align = ty.dtype.itemsize
        return b.untyped(place)


def export(program: Program, typed: Typed, name: str, returns: Type) -> ir.Function:
    """Define the C function *name*, which calls *typed*.

    Its parameters are the leaves of the arguments: of an array, the address of its elements, its
    lengths and, unless it is contiguous, its strides in bytes, as int64 each.
    """
    module = program.module
    layout = module.layout
    leaves = [leaf for ty in typed.args for leaf in layout.leaves(ty)]
    shape = ir.FunctionType(
        c_type(layout, returns), [I8 if leaf == I1 else leaf for leaf in leaves]
    )
    function = ir.Function(module.llvm, shape, name)
    b = Builder(module, ir.IRBuilder(function.append_basic_block("entry")))
    if module.debug is not None:
        span = typed.function.span
        scope = module.debug.subprogram(function, typed.function.name, span)
        b.llvm.debug_metadata = module.debug.location(span, scope)
    given = [
        b.llvm.icmp_unsigned("!=", arg, ir.Constant(I8, 0)) if leaf == I1 else arg
        for arg, leaf in zip(function.args, leaves, strict=True)
    ]
    called = b.llvm.call(program.device(typed), given)
    if returns == types.none:
        b.llvm.ret_void()
    else:
        b.llvm.ret(_argument(b, cast(b, unpack(b, called, typed.returns), returns)))
    return function
