"""How a type is laid out: every value is a flat list of LLVM values, its leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from .. import elements, types
from ..types import Type

SPACES = {"generic": 0, "global": 1, "shared": 3, "const": 4, "local": 5}
I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()


class Value(NamedTuple):
    """A value of the user's program: its type, and its leaves in LLVM IR."""

    type: Type
    leaves: tuple[ir.Value, ...] = ()

    @property
    def leaf(self) -> ir.Value:
        """The one leaf of a scalar."""
        (leaf,) = self.leaves
        return leaf


class Layout(NamedTuple):
    """The leaves of each type, with the pointers of one IR dialect."""

    typed_pointers: bool

    def pointer(self, space: str = "generic") -> ir.Type:
        """The pointer type of a memory space: i8* in the typed dialect, ptr in the opaque one."""
        number = SPACES[space]
        if self.typed_pointers:
            return I8.as_pointer(number)
        return ir.PointerType(addrspace=number)

    def leaves(self, ty: Type) -> list[ir.Type]:
        """The LLVM types that a value of type *ty* consists of."""
        for cls in type(ty).__mro__:
            if cls in MODELS:
                return MODELS[cls](self, ty)
        raise TypeError(f"{ty} has no data model")

    def split(self, ty: Type, leaves: tuple[ir.Value, ...]) -> list[Value]:
        """The items of a tuple or slice."""
        values, start = [], 0
        for item in ty.items:  # type: ignore[attr-defined]
            end = start + len(self.leaves(item))
            values.append(Value(item, tuple(leaves[start:end])))
            start = end
        return values


def memory_type(ty: types.Stored) -> ir.Type:
    """The LLVM type that an array element of type *ty* has in memory."""
    if not isinstance(ty, types.Scalar):
        return ir.ArrayType(I8, ty.dtype.itemsize)
    return I8 if isinstance(ty, types.Boolean) else scalar_type(ty)


def scalar_type(ty: types.Scalar) -> ir.Type:
    """The LLVM type of a scalar in a register."""
    if isinstance(ty, types.Boolean):
        return I1
    if isinstance(ty, types.Integer):
        return ir.IntType(ty.bits)
    if isinstance(ty, types.Brain):
        return ir.IntType(16)
    return {16: F16, 32: F32, 64: F64}[ty.bits]


def _array(layout: Layout, ty: types.Array) -> list[ir.Type]:
    count = ty.ndim * (2 if ty.layout == "A" else 1)
    return [layout.pointer(ty.space)] + [I64] * count


def _items(layout: Layout, ty: Any) -> list[ir.Type]:
    return [leaf for item in ty.items for leaf in layout.leaves(item)]


# A data model: the layout and a type give the LLVM types of the leaves.
MODELS: dict[type[Type], Callable[[Layout, Any], list[ir.Type]]] = {
    types.Scalar: lambda layout, ty: [scalar_type(ty)],
    types.Complex: lambda layout, ty: [scalar_type(ty.part)] * 2,
    types.Record: lambda layout, ty: [layout.pointer(ty.space)],
    types.Struct: _items,
    elements.Time: lambda layout, ty: [I64],
    elements.Vector: lambda layout, ty: [scalar_type(ty.base)] * ty.count,
    elements.Elementwise: _items,
    elements.Flat: lambda layout, ty: layout.leaves(ty.array),
    elements.CPointer: lambda layout, ty: [layout.pointer()],
    types.NoneType: lambda layout, ty: [],
    types.Literal: lambda layout, ty: [],
    types.BoundMethod: lambda layout, ty: layout.leaves(ty.owner),
    types.Tuple: _items,
    types.Slice: _items,
    types.Star: _items,
    types.Formatted: _items,
    types.Text: _items,
    types.Closure: _items,
    types.Array: _array,
}
