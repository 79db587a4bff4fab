"""The types of kernel values: scalars, weak Python numbers, literals, tuples and arrays.

A *weak* type is that of a Python int or float (NEP 50): 64 bits wide, and giving way to
the type of a NumPy scalar that it meets. A *Literal* is a value known while compiling.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .brain import rounded
from .literals import identity, short


class Type:
    """A type: immutable, hashable, equal by its key."""

    __slots__ = ("_hash", "key", "name")

    name: str
    key: tuple[Any, ...]

    def __init__(self, name: str, *key: Any) -> None:
        self.name = name
        self.key = (type(self).__name__, *key)
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        slots = (name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ()))
        state = {name: getattr(self, name) for name in slots if name != "_hash"}
        return _unpickled, (type(self), state)

    def __getitem__(self, index: Any) -> Array:
        """The array type with this element type: ``float32[:]``, ``float32[:, ::1]``."""
        return _array_of(self, index)

    def __call__(self, *args: Any) -> Any:
        """The signature with this return type: ``void(float32[:], int32)``; on numbers, a cast."""
        if all(isinstance(arg, Type) for arg in args):
            return Signature(self, tuple(args))
        if isinstance(self, Scalar) and len(args) == 1:
            return rounded(args[0]) if isinstance(self, Brain) else self.dtype.type(args[0])
        raise TypeError(f"{self}{args}: give types for a signature, or one number to convert")


@dataclass(frozen=True, slots=True)
class Signature:
    """A return type, or None if it is not declared, and argument types."""

    returns: Type | None
    args: tuple[Type, ...]

    def __str__(self) -> str:
        head = "void" if self.returns in (None, none) else str(self.returns)
        return f"{head}({', '.join(str(a) for a in self.args)})"


class NoneType(Type):
    """The type of None, and of a function that returns nothing."""

    __slots__ = ()


class Stored(Type):
    """A type that elements of arrays can have.

    Attributes:
        dtype: the NumPy dtype of the same size and meaning.
    """

    __slots__ = ("dtype",)
    dtype: np.dtype[Any]


class Scalar(Stored):
    """A number or bool that NumPy has a dtype for.

    Attributes:
        weak: True for Python's own int and float.
    """

    __slots__ = ("bits", "weak")

    def __init__(self, name: str, dtype: str, weak: bool = False) -> None:
        super().__init__(name, name)
        self.dtype = np.dtype(dtype)
        self.bits = self.dtype.itemsize * 8
        self.weak = weak


class Boolean(Scalar):
    """A truth value, one byte in memory."""

    __slots__ = ()


class Integer(Scalar):
    """An integer of 8 to 64 bits."""

    __slots__ = ("signed",)

    def __init__(self, name: str, dtype: str, weak: bool = False) -> None:
        super().__init__(name, dtype, weak)
        self.signed = self.dtype.kind == "i"


class Float(Scalar):
    """An IEEE 754 binary floating-point number."""

    __slots__ = ()


class Brain(Scalar):
    """bfloat16: the upper half of a float32, which is what it computes as; stores round."""

    __slots__ = ()


class Complex(Stored):
    """A complex number: two floats, the real and the imaginary part.

    Attributes:
        part: the type of each.
        weak: True for Python's own complex.
    """

    __slots__ = ("part", "weak")

    def __init__(self, name: str, dtype: str, part: Float) -> None:
        super().__init__(name, name)
        self.dtype = np.dtype(dtype)
        self.part = part
        self.weak = part.weak


class Record(Stored):
    """One element of a structured array, as a reference to where it lies.

    Attributes:
        space: the memory that it lies in.
        readonly: whether its fields cannot be assigned.
    """

    __slots__ = ("readonly", "space")

    def __init__(
        self, dtype: np.dtype[Any], space: str = "generic", readonly: bool = False
    ) -> None:
        # NumPy holds an aligned dtype equal to a packed one of the same layout.
        super().__init__(f"Record({dtype})", dtype, dtype.isalignedstruct, space, readonly)
        self.dtype, self.space, self.readonly = dtype, space, readonly

    def placed(self, space: str, readonly: bool) -> Record:
        """The same record in another place."""
        return Record(self.dtype, space, readonly)

    def field(self, name: str) -> tuple[Type, int] | None:
        """The type of a field and its offset in bytes; None if there is no such field."""
        if self.dtype.fields is None or name not in self.dtype.fields:
            return None
        found = self.dtype.fields[name]
        dtype, offset = found[0], found[1]
        if dtype.subdtype is None:
            element = from_dtype(dtype)
            if isinstance(element, Record):
                element = element.placed(self.space, self.readonly)
            return element, offset
        base, shape = dtype.subdtype
        element = from_dtype(base)
        align = self.field_align(element)
        return Array(element, len(shape), "C", self.space, self.readonly, align), offset

    def field_align(self, element: Stored) -> int:
        """What the address of a field is a multiple of; 0: what its type needs."""
        return 0 if self.dtype.isalignedstruct or element.dtype.itemsize == 1 else 1


class Struct(Type):
    """A named tuple or a dataclass: the types of its fields, in order.

    Attributes:
        cls: the Python class.
        names: of the fields.
        items: their types.
    """

    __slots__ = ("cls", "items", "names")

    def __init__(self, cls: type, names: tuple[str, ...], items: tuple[Type, ...]) -> None:
        fields = ", ".join(f"{n}: {t.name}" for n, t in zip(names, items, strict=True))
        super().__init__(f"{cls.__name__}({fields})", cls, items)
        self.cls, self.names, self.items = cls, names, items


class Literal(Type):
    """A value known while compiling: a number, a string, None, a function, a module, a dtype."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__(f"Literal({short(value)})", identity(value))
        self.value = value


class Tuple(Type):
    """A tuple with the types of its items."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Type, ...]) -> None:
        body = ", ".join(t.name for t in items) + ("," if len(items) == 1 else "")
        super().__init__(f"({body})", items)
        self.items = items


class Unrolled(Tuple):
    """A tuple that loops go over unrolled."""

    __slots__ = ()


class Star(Type):
    """What ``*value`` adds to a call: the items of a tuple, one by one."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Type, ...]) -> None:
        super().__init__(f"*{Tuple(items).name}", items)
        self.items = items


class Closure(Type):
    """A function defined inside a kernel, with the types of what it captures and its defaults."""

    __slots__ = ("function", "items")

    def __init__(self, function: Any, items: tuple[Type, ...]) -> None:
        super().__init__(f"function {function.__name__}", id(function), items)
        self.function, self.items = function, items


class Slice(Type):
    """A slice of run-time bounds; an absent bound is ``Literal(None)``."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Type, Type, Type]) -> None:
        super().__init__("slice(" + ", ".join(t.name for t in items) + ")", items)
        self.items = items


class Array(Type):
    """An n-dimensional array.

    Attributes:
        dtype: the type of an element.
        ndim: the number of dimensions.
        layout: 'C', 'F' (contiguous) or 'A' (any strides).
        space: the memory it is known to lie in: generic, global, shared or local.
        readonly: True if elements cannot be assigned.
        align: what addresses of elements are multiples of, in bytes; 0: as the type has it.
    """

    __slots__ = ("align", "dtype", "layout", "ndim", "readonly", "space")

    def __init__(
        self,
        dtype: Stored,
        ndim: int,
        layout: str = "A",
        space: str = "generic",
        readonly: bool = False,
        align: int = 0,
    ) -> None:
        if layout not in ("C", "F", "A"):
            raise ValueError(f"array layout {layout!r}: give 'C', 'F' or 'A'")
        dims = [":"] * ndim
        if ndim and layout == "C":
            dims[-1] = "::1"
        elif ndim and layout == "F":
            dims[0] = "::1"
        name = f"{dtype.name}[{', '.join(dims)}]"
        name += "" if space == "generic" else f"@{space}"
        name += (" readonly" if readonly else "") + (f" align {align}" if align else "")
        super().__init__(name, dtype, ndim, layout, space, readonly, align)
        self.dtype, self.ndim, self.layout = dtype, ndim, layout
        self.space, self.readonly, self.align = space, readonly, align

    def copy(self, **changes: Any) -> Array:
        """This type with some attributes changed."""
        names = ("dtype", "ndim", "layout", "space", "readonly", "align")
        return Array(**{name: changes.get(name, getattr(self, name)) for name in names})


class Formatted(Type):
    """A replacement field of an f-string: a value, its conversion and its format."""

    __slots__ = ("conversion", "items", "spec")

    def __init__(self, item: Type, conversion: str, spec: str) -> None:
        super().__init__(f"{{{item.name}{conversion}:{spec}}}", item, conversion, spec)
        self.items, self.conversion, self.spec = (item,), conversion, spec


class Text(Type):
    """An f-string: constant strings and replacement fields, in order."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Type, ...]) -> None:
        super().__init__("text", items)
        self.items = items


class BoundMethod(Type):
    """A method looked up on a value, not yet called."""

    __slots__ = ("method", "owner")

    def __init__(self, owner: Type, method: str) -> None:
        super().__init__(f"{owner.name}.{method}", owner, method)
        self.owner, self.method = owner, method


none = NoneType("none")
void = none
boolean = Boolean("boolean", "?")
int8 = Integer("int8", "i1")
int16 = Integer("int16", "i2")
int32 = Integer("int32", "i4")
int64 = Integer("int64", "i8")
uint8 = Integer("uint8", "u1")
uint16 = Integer("uint16", "u2")
uint32 = Integer("uint32", "u4")
uint64 = Integer("uint64", "u8")
float16 = Float("float16", "f2")
float32 = Float("float32", "f4")
float64 = Float("float64", "f8")
bfloat16 = Brain("bfloat16", "V2")  # NumPy alone has no dtype for it.
py_int = Integer("int", "i8", weak=True)
py_float = Float("float", "f8", weak=True)
complex64 = Complex("complex64", "c8", float32)
complex128 = Complex("complex128", "c16", float64)
py_complex = Complex("complex", "c16", py_float)

intp = int64
uintp = uint64
bool_ = boolean
SCALARS: tuple[Scalar, ...] = (
    boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32,
    float64,
)  # fmt: skip
_BY_DTYPE: dict[Any, Stored] = {t.dtype: t for t in (*SCALARS, complex64, complex128, bfloat16)}
# What knows the types of further dtypes.
FROM_DTYPE: list[Callable[[np.dtype[Any]], Stored | None]] = []


def from_dtype(dtype: Any) -> Stored:
    """The type of array elements of a NumPy dtype, scalar class, type of ours, or name.

    Raises:
        TypeError: there is no kernel type for it.
    """
    if isinstance(dtype, Stored):
        return dtype
    try:
        wanted = np.dtype(dtype)
    except (TypeError, ValueError):
        wanted = None
    if wanted is not None and wanted.fields is not None:
        for field in wanted.fields.values():
            from_dtype(field[0].base)
        return Record(wanted)
    found = _BY_DTYPE.get(wanted)
    if found is None and wanted is not None:
        found = bfloat16 if wanted.name == "bfloat16" else None
        made = (make(wanted) for make in FROM_DTYPE)
        found = found or next((ty for ty in made if ty is not None), None)
    if found is None:
        names = ", ".join(t.name for t in _BY_DTYPE.values())
        raise TypeError(
            f"{dtype!r} is no element type of a kernel array: use one of {names}, or a structured "
            f"dtype of these"
        )
    return found


def scalar_from_dtype(dtype: Any) -> Scalar:
    """As from_dtype, for real numbers and bools."""
    found = from_dtype(dtype)
    if not isinstance(found, Scalar):
        raise TypeError(f"{found} is no real number type")
    return found


def typeof_constant(value: Any) -> Type:
    """The run-time type of a compile-time *value*; Literal where it has none of its own."""
    if isinstance(value, bool | np.bool_):
        return boolean
    if isinstance(value, np.generic):
        try:
            return from_dtype(value.dtype)
        except TypeError:
            return Literal(value)
    plain = {int: py_int, float: py_float, complex: py_complex, type(None): none}
    for cls, ty in plain.items():
        if isinstance(value, cls):
            return ty
    if isinstance(value, tuple):
        items = tuple(Literal(item) for item in value)
        names = getattr(type(value), "_fields", None)
        return Tuple(items) if names is None else Struct(type(value), names, items)
    return Literal(value)


def widen(ty: Type) -> Type:
    """The type without the knowledge of a number's value; other literals stay."""
    if isinstance(ty, Literal):
        if ty.value is None:
            return ty
        wide = typeof_constant(ty.value)
        return wide if isinstance(wide, Literal) else widen(wide)
    if isinstance(ty, Tuple):
        return Tuple(tuple(widen(item) for item in ty.items))
    if type(ty) is Struct:  # The fields of registered structures have fixed types.
        return Struct(ty.cls, ty.names, tuple(widen(item) for item in ty.items))
    return ty


def number(ty: Type) -> Scalar | None:
    """The scalar type that *ty* computes as, if it is a number or bool (literal or not)."""
    wide = widen(ty)
    if isinstance(wide, Brain):
        return float32
    return wide if isinstance(wide, Scalar) else None


def _array_of(dtype: Any, index: Any) -> Array:
    """float32[:], float32[:, ::1], float32[::1, :], float32[...] is refused."""
    dims = index if isinstance(index, tuple) else (index,)
    for dim in dims:
        if not isinstance(dim, slice) or dim.start is not None or dim.stop is not None:
            raise TypeError(f"{dtype}{list(dims)}: write one ':' a dimension, '::1' if contiguous")
    unit = [i for i, dim in enumerate(dims) if dim.step == 1]
    if any(dim.step not in (None, 1) for dim in dims) or len(unit) > 1:
        raise TypeError(f"{dtype}[...]: only one dimension, the first or the last, can be '::1'")
    layout = "A"
    if unit == [len(dims) - 1]:
        layout = "C"
    elif unit == [0]:
        layout = "F"
    elif unit:
        raise TypeError(f"{dtype}[...]: '::1' can only be the first or the last dimension")
    return Array(dtype, len(dims), layout)


@functools.cache
def _named() -> dict[Type, Type]:
    """The types that this module names, of which there is one object each."""
    return {value: value for value in globals().values() if isinstance(value, Type)}


def _unpickled(cls: type[Type], state: dict[str, Any]) -> Type:
    made = cls.__new__(cls)
    for name, value in state.items():
        setattr(made, name, value)
    made._hash = hash(made.key)  # Hashes of text differ among processes.
    return _named().get(made, made)
