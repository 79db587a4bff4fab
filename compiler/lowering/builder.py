"""Emits LLVM IR for rows and functions: the only place that knows the two pointer dialects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from llvmlite import ir

from .. import types
from ..elements import Time, Vector
from ..errors import Span
from ..types import Type
from .debug import Debug
from .models import I8, I32, I64, SPACES, Layout, Value, memory_type, scalar_type


class Dialect(Protocol):
    """How a code generator wants the IR written (codegen.target.Dialect)."""

    @property
    def triple(self) -> str:
        """The target triple."""

    @property
    def data_layout(self) -> str:
        """LLVM's data layout string."""

    @property
    def typed_pointers(self) -> bool:
        """Whether pointers have element types, as in LLVM 7."""

    @property
    def nvvmir_version(self) -> tuple[int, ...] | None:
        """The metadata that libNVVM wants, if any."""


class Options(NamedTuple):
    """What changes the code that lowering emits.

    Attributes:
        fma: allow a*b + c to be rounded once.
        fastmath: allow approximate division and functions.
        libdevice: call libdevice's functions; otherwise those of lang.libm are compiled in.
        checks: divisions by zero are exceptions, and all exceptions are reported to the host.
        bounds: indices out of range are exceptions, reported likewise.
        cc: the compute capability that code is made for.
        lines: tell the line of each instruction.
        variables: and describe the variables, in code that is not optimised.
    """

    fma: bool = True
    fastmath: bool = False
    libdevice: bool = True
    checks: bool = False
    bounds: bool = False
    cc: tuple[int, int] = (7, 5)
    lines: bool = False
    variables: bool = False


class Failure(NamedTuple):
    """A place that raises an exception.

    Attributes:
        exception: the class.
        args: how the host makes its arguments, see lowering.failures.
        place: "FILE:LINE, in FUNCTION".
    """

    exception: type[BaseException]
    args: tuple[Any, ...]
    place: str


@dataclass(eq=False, slots=True)
class Module:
    """One LLVM module under construction."""

    dialect: Dialect
    options: Options
    llvm: ir.Module = field(default_factory=ir.Module)
    layout: Layout = field(init=False)
    failures: list[Failure] = field(default_factory=list)
    cooperative: bool = False  # Whether the kernel waits for its whole grid.
    debug: Debug | None = field(init=False, default=None)
    constants: dict[int, ir.GlobalVariable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.llvm.triple = self.dialect.triple
        self.llvm.data_layout = self.dialect.data_layout
        self.layout = Layout(self.dialect.typed_pointers)
        if self.options.lines:
            self.debug = Debug(self.llvm, self.options.variables)
        if self.dialect.nvvmir_version is not None:
            numbers = [ir.Constant(I32, n) for n in self.dialect.nvvmir_version]
            self.llvm.add_named_metadata("nvvmir.version", numbers)

    def declare(self, name: str, returns: ir.Type, args: Sequence[ir.Type]) -> ir.Function:
        """The declaration of an external function, once a name."""
        found = self.llvm.globals.get(name)
        if found is None:
            found = ir.Function(self.llvm, ir.FunctionType(returns, list(args)), name)
        return found

    def constant(self, source: np.ndarray[Any, Any], space: str) -> ir.GlobalVariable:
        """The elements of an array of the host, once a module."""
        found = self.constants.get(id(source))
        if found is None:
            data = bytearray(source.tobytes() or b"\0")
            found = self.variable("constant", ir.ArrayType(I8, len(data)), space, 16)
            found.initializer = ir.Constant(found.value_type, data)
            found.global_constant = True
            self.constants[id(source)] = found
        return found

    def variable(self, name: str, ty: ir.Type, space: str, align: int) -> ir.GlobalVariable:
        """A new internal global variable in a memory space, not initialised."""
        unique = self.llvm.get_unique_name(name)
        variable = ir.GlobalVariable(self.llvm, ty, unique, SPACES[space])
        variable.linkage = "internal"
        variable.initializer = ir.Constant(ty, ir.Undefined)
        variable.align = align
        return variable


class Builder:
    """An llvmlite builder that knows our types, and the pointers of the module's dialect."""

    def __init__(self, module: Module, llvm: ir.IRBuilder) -> None:
        self.module = module
        self.llvm = llvm
        self.layout = module.layout
        options = module.options
        self.span: Span | None = None
        self.flags: tuple[str, ...] = ()
        if options.fma:
            self.flags = ("contract",)
        self.division_flags = ("afn",) if options.fastmath else ()

    # Constants and values

    def constant(self, ty: types.Scalar, value: Any) -> Value:
        """A scalar constant."""
        return Value(ty, (ir.Constant(scalar_type(ty), value),))

    def int64(self, value: int) -> ir.Constant:
        """A 64-bit integer constant."""
        return ir.Constant(I64, value)

    def scalar(self, ty: types.Scalar, leaf: ir.Value) -> Value:
        """A scalar value from its leaf."""
        return Value(ty, (leaf,))

    def items(self, value: Value) -> list[Value]:
        """The items of a tuple or slice value."""
        return self.layout.split(value.type, value.leaves)

    def zero(self, ty: Type) -> Value:
        """The value of *ty* whose leaves are all zero."""
        leaves = self.layout.leaves(ty)
        return Value(ty, tuple(ir.Constant(leaf, _zero(leaf)) for leaf in leaves))

    # Calls

    def intrinsic(
        self, name: str, returns: ir.Type, args: Sequence[ir.Value], convergent: bool = False
    ) -> ir.Value:
        """Call an LLVM intrinsic or other external function, declaring it at first use."""
        function = self.module.declare(name, returns, [a.type for a in args])
        if convergent:
            function.attributes.add("convergent")
        return self.llvm.call(function, list(args))

    def asm(
        self,
        text: str,
        constraints: str,
        returns: ir.Type,
        args: Sequence[ir.Value] = (),
        effects: bool = False,
        convergent: bool = False,
    ) -> ir.Value:
        """Emit inline PTX, $0 being its first operand.

        Args:
            effects: it does more than compute its result.
            convergent: threads meet there, so it must not move into or out of branches.
        """
        kind = ir.FunctionType(returns, [arg.type for arg in args])
        code = ir.instructions.InlineAsm(kind, text, constraints, effects)
        return self.llvm.call(code, list(args), attrs=("convergent",) if convergent else ())

    # Arrays that the source names

    def captured(self, source: Any, ty: types.Array) -> Value:
        """An array of the host as a constant of the module; one of the device where it lies."""
        if isinstance(source, np.ndarray):
            pointer = self.untyped(self.module.constant(source, ty.space))
            return Value(ty, (pointer, *map(self.int64, source.shape)))
        found = source.__cuda_array_interface__
        address = self.int64(found["data"][0] or 0)
        pointer = self.llvm.inttoptr(address, self.layout.pointer(ty.space))
        steps = found["strides"] if ty.layout == "A" else ()
        return Value(ty, (pointer, *map(self.int64, (*found["shape"], *steps))))

    # Pointers

    def offset(self, pointer: ir.Value, element: ir.Type, index: ir.Value) -> ir.Value:
        """The pointer *index* elements of LLVM type *element* further on."""
        if not self.layout.typed_pointers:
            return self.llvm.gep(pointer, [index], source_etype=element)
        typed = self.llvm.bitcast(pointer, element.as_pointer(pointer.type.addrspace))
        moved = self.llvm.gep(typed, [index])
        return self.llvm.bitcast(moved, pointer.type)

    def typed(self, pointer: ir.Value, element: ir.Type) -> ir.Value:
        """*pointer* as what an instruction on *element* takes in this dialect."""
        if not self.layout.typed_pointers:
            return pointer
        return self.llvm.bitcast(pointer, element.as_pointer(pointer.type.addrspace))

    def untyped(self, place: ir.Value) -> ir.Value:
        """The address of a global variable or alloca, as a pointer value of the layout."""
        if self.layout.typed_pointers:
            return self.llvm.bitcast(place, I8.as_pointer(place.type.addrspace))
        # llvmlite gives these the typed pointer, which LLVM no longer reads.
        place.type = ir.PointerType(addrspace=place.type.addrspace)
        return place

    def load(self, pointer: ir.Value, ty: types.Stored, align: int = 0) -> Value:
        """Read one element; a bool is true for any byte that is not zero.

        Args:
            align: of the address in bytes; 0: that of the type.
        """
        if isinstance(ty, types.Record):
            return Value(ty, (pointer,))
        if isinstance(ty, Time):
            return Value(ty, self.load(pointer, types.int64, align).leaves)
        if isinstance(ty, Vector):
            return self._load_vector(pointer, ty, align)
        if isinstance(ty, types.Complex):
            size = ty.part.dtype.itemsize
            parts = [self.load(self.bytes_on(pointer, n), ty.part, align) for n in (0, size)]
            return Value(ty, (parts[0].leaf, parts[1].leaf))
        assert isinstance(ty, types.Scalar)
        element = memory_type(ty)
        place = self.typed(pointer, element)
        leaf = self.llvm.load(place, typ=element, align=align or ty.dtype.itemsize)
        if isinstance(ty, types.Boolean):
            leaf = self.llvm.icmp_unsigned("!=", leaf, ir.Constant(I8, 0))
        return Value(ty, (leaf,))

    def bytes_on(self, pointer: ir.Value, count: int) -> ir.Value:
        """The pointer *count* bytes further on."""
        return self.offset(pointer, I8, self.int64(count)) if count else pointer

    def store(self, pointer: ir.Value, value: Value, align: int = 0) -> None:
        """Write one element; a bool as the byte 0 or 1."""
        ty = value.type
        if isinstance(ty, types.Record):
            self._copy_record(pointer, value, ty, align)
            return
        if isinstance(ty, Time):
            value, ty = Value(types.int64, value.leaves), types.int64
        if isinstance(ty, Vector):
            self._store_vector(pointer, value, ty, align)
            return
        if isinstance(ty, types.Complex):
            for n, leaf in enumerate(value.leaves):
                place = self.bytes_on(pointer, n * ty.part.dtype.itemsize)
                self.store(place, Value(ty.part, (leaf,)), align)
            return
        assert isinstance(ty, types.Scalar)
        leaf = value.leaf
        if isinstance(ty, types.Boolean):
            leaf = self.llvm.zext(leaf, I8)
        place = self.typed(pointer, memory_type(ty))
        self.llvm.store(leaf, place, align=align or ty.dtype.itemsize)

    def _load_vector(self, pointer: ir.Value, ty: Vector, align: int) -> Value:
        """The components, up to 16 bytes at once."""
        leaves: list[ir.Value] = []
        width = ty.width if align in (0, ty.alignment) else 1
        for start in range(0, ty.count, width):
            place = self.bytes_on(pointer, start * ty.base.dtype.itemsize)
            if width == 1:
                leaves.append(self.load(place, ty.base, align).leaf)
                continue
            words = ir.VectorType(scalar_type(ty.base), width)
            whole = self.llvm.load(self.typed(place, words), typ=words, align=ty.alignment)
            leaves += [self.llvm.extract_element(whole, ir.Constant(I32, i)) for i in range(width)]
        return Value(ty, tuple(leaves))

    def _store_vector(self, pointer: ir.Value, value: Value, ty: Vector, align: int) -> None:
        width = ty.width if align in (0, ty.alignment) else 1
        for start in range(0, ty.count, width):
            place = self.bytes_on(pointer, start * ty.base.dtype.itemsize)
            leaves = value.leaves[start : start + width]
            if width == 1:
                self.store(place, Value(ty.base, leaves), align)
                continue
            words = ir.VectorType(scalar_type(ty.base), width)
            whole: ir.Value = ir.Constant(words, ir.Undefined)
            for i, leaf in enumerate(leaves):
                whole = self.llvm.insert_element(whole, leaf, ir.Constant(I32, i))
            self.llvm.store(whole, self.typed(place, words), align=ty.alignment)

    def _copy_record(self, pointer: ir.Value, value: Value, ty: types.Record, align: int) -> None:
        """Copy a record in the largest words that its alignment allows."""
        word = align or alignment(ty)
        size = ty.dtype.itemsize
        done = 0
        for scalar in (types.uint64, types.uint32, types.uint16, types.uint8):
            step = scalar.dtype.itemsize
            while step <= word and size - done >= step:
                part = self.load(self.bytes_on(value.leaf, done), scalar, step)
                self.store(self.bytes_on(pointer, done), part, step)
                done += step

    def to_generic(self, pointer: ir.Value) -> ir.Value:
        """A pointer into any space as a generic one."""
        return self.llvm.addrspacecast(pointer, self.layout.pointer())


def _zero(leaf: ir.Type) -> Any:
    if isinstance(leaf, ir.PointerType):
        return None
    return 0 if isinstance(leaf, ir.IntType) else 0.0


def alignment(ty: types.Stored) -> int:
    """The bytes that the address of an element is a multiple of; 1 in packed records."""
    if not isinstance(ty, types.Record):
        return ty.dtype.itemsize if isinstance(ty, types.Scalar) else ty.dtype.itemsize // 2
    return ty.dtype.alignment if ty.dtype.isalignedstruct else 1
