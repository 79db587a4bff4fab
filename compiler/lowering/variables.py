"""The variables of a function in memory, where a debugger looks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from .. import types
from ..errors import CompileError
from ..frontend.infer import Typed
from ..frontend.ir import Mark
from ..types import Array, Complex, Scalar, Struct, Tuple, Type, widen
from ..typing.promotion import join
from .builder import Builder
from .casts import cast
from .debug import Debug
from .models import I1, I8, Value

_ENCODINGS = {
    "b": "DW_ATE_boolean",
    "f": "DW_ATE_float",
    "i": "DW_ATE_signed",
    "u": "DW_ATE_unsigned",
}


class Shape(NamedTuple):
    """How values of a type lie in memory: bytes, alignment, description, and each leaf's offset."""

    size: int
    align: int
    described: ir.DIValue
    offsets: tuple[int, ...]


class Variables:
    """The named variables of one function; what is assigned is stored, and never read again.

    Args:
        scope: the description of the function.
    """

    def __init__(self, debug: Debug, b: Builder, typed: Typed, scope: ir.DIValue) -> None:
        self.debug = debug
        self.b = b
        self.scope = scope
        self._parameters = {
            name: number for number, name in enumerate(typed.function.parameters.names, 1)
        }
        self._types = _types(typed)
        self._places: dict[str, tuple[ir.Value, Shape]] = {}

    def write(self, mark: Mark, value: Value) -> None:
        """Store what a name is assigned; what has no description in C is left out."""
        ty = self._types[mark.name]
        try:
            leaves = cast(self.b, value, ty).leaves
            place, shape = self._place(mark, ty)
        except CompileError:
            return  # A name that means something of another kind elsewhere.
        for leaf, offset in zip(leaves, shape.offsets, strict=True):
            self._store(leaf, self.b.bytes_on(place, offset))

    def _store(self, leaf: ir.Value, place: ir.Value) -> None:
        b = self.b
        if leaf.type == I1:
            leaf = b.llvm.zext(leaf, I8)
        if isinstance(leaf.type, ir.PointerType) and leaf.type.addrspace:
            leaf = b.to_generic(leaf)
        b.llvm.store(leaf, b.typed(place, leaf.type))

    def _place(self, mark: Mark, ty: Type) -> tuple[ir.Value, Shape]:
        """The memory of a name, made and described when it is first assigned."""
        found = self._places.get(mark.name)
        if found is not None:
            return found
        shape = shape_of(self.debug, ty)
        with self.b.llvm.goto_entry_block():
            place = self.b.llvm.alloca(ir.ArrayType(I8, max(shape.size, 1)))
            place.align = shape.align
            pointer = self.b.untyped(place)
            self._declare(place, mark, shape)
        self._places[mark.name] = pointer, shape
        return pointer, shape

    def _declare(self, place: ir.Value, mark: Mark, shape: Shape) -> None:
        described: dict[str, Any] = {
            "name": mark.name,
            "scope": self.scope,
            "file": self.debug.file(mark.span.file),
            "line": mark.span.line,
            "type": shape.described,
        }
        if mark.name in self._parameters:
            described["arg"] = self._parameters[mark.name]
        variable = self.debug.add("DILocalVariable", **described)
        kind = ir.MetaDataType()
        declare = self.b.module.declare("llvm.dbg.declare", ir.VoidType(), [kind] * 3)
        self.b.llvm.call(declare, [place, variable, self.debug.add("DIExpression")])


def _types(typed: Typed) -> dict[str, Type]:
    """The type of each name: where scalars of several are assigned, the one that holds all."""
    given: dict[str, list[Type]] = {}
    for mark in typed.function.marks:
        ty = typed.types.get(mark.value)
        if ty is not None:
            given.setdefault(mark.name, []).append(widen(ty))
    return {name: _one(found) for name, found in given.items()}


def _one(found: list[Type]) -> Type:
    one = found[-1]
    if all(isinstance(ty, Scalar) for ty in found):
        for ty in found:
            one = join(one, ty) or one
    return one


def shape_of(debug: Debug, ty: Type) -> Shape:
    """How values of *ty* lie in memory.

    Raises:
        CompileError: it has no counterpart in C.
    """
    for kind, describe in _SHAPES.items():
        if isinstance(ty, kind):
            return describe(debug, ty)
    raise CompileError(f"{ty} is nothing that a debugger knows")


def _scalar(debug: Debug, ty: Any) -> Shape:
    size = ty.dtype.itemsize
    encoding = _ENCODINGS.get(ty.dtype.kind)
    if encoding is None:
        raise CompileError(f"{ty} is nothing that a debugger knows")
    described = debug.add(
        "DIBasicType", name=ty.dtype.name, size=size * 8, encoding=ir.DIToken(encoding)
    )
    return Shape(size, size, described, (0,))


def _array(debug: Debug, ty: Any) -> Shape:
    element = shape_of(debug, ty.dtype).described
    data = debug.add(
        "DIDerivedType", tag=ir.DIToken("DW_TAG_pointer_type"), baseType=element, size=64
    )
    number = _scalar(debug, types.int64)
    count = debug.module.add_metadata([debug.add("DISubrange", count=ty.ndim)])
    numbers = debug.add(
        "DICompositeType",
        tag=ir.DIToken("DW_TAG_array_type"),
        baseType=number.described,
        size=64 * ty.ndim,
        elements=count,
    )
    row = Shape(8 * ty.ndim, 8, numbers, tuple(range(0, 8 * ty.ndim, 8)))
    members = {"data": Shape(8, 8, data, (0,)), "shape": row}
    if ty.layout == "A":
        members["strides"] = row
    return _structure(debug, str(ty), members)


def _complex(debug: Debug, ty: Any) -> Shape:
    part = _scalar(debug, ty.part)
    return _structure(debug, str(ty), {"real": part, "imag": part})


def _items(debug: Debug, ty: Any) -> Shape:
    names = getattr(ty, "names", None) or [f"item{n}" for n in range(len(ty.items))]
    members = {name: shape_of(debug, item) for name, item in zip(names, ty.items, strict=True)}
    return _structure(debug, str(ty), members)


def _structure(debug: Debug, name: str, members: dict[str, Shape]) -> Shape:
    size, align = 0, 1
    described, offsets = [], []
    for member, shape in members.items():
        size = -(-size // shape.align) * shape.align
        described.append(
            debug.add(
                "DIDerivedType",
                tag=ir.DIToken("DW_TAG_member"),
                name=member,
                baseType=shape.described,
                size=shape.size * 8,
                offset=size * 8,
            )
        )
        offsets += [size + offset for offset in shape.offsets]
        size += shape.size
        align = max(align, shape.align)
    whole = debug.add(
        "DICompositeType",
        tag=ir.DIToken("DW_TAG_structure_type"),
        name=name,
        size=size * 8,
        elements=debug.module.add_metadata(described),
    )
    return Shape(size, align, whole, tuple(offsets))


_SHAPES: dict[type[Type], Callable[[Debug, Any], Shape]] = {
    Scalar: _scalar,
    Complex: _complex,
    Array: _array,
    Struct: _items,
    Tuple: _items,
}
