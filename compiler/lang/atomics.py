"""Atomic operations on array elements and record fields; each returns the old value.

What the hardware has is one instruction; the rest are loops of compare and swap, those on 8 bits
on the word around them. A complex number is added to part by part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import I32, I64, Value, scalar_type
from ..types import Array, Boolean, Complex, Float, Integer, Literal, Record, Scalar, Type, number
from ..typing.registry import REGISTRY, Match
from . import indexing
from .intrinsics import suffix
from .ptx import Form, assemble, into_register, require
from .stub import Stub

ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")
SCOPES = ("cta", "cluster", "gpu", "sys")
_SCOPE_NAMES = {"block": "cta", "device": "gpu", "system": "sys"}
_DEFAULTS = (Literal("relaxed"), Literal("gpu"))
Compute = Callable[[Builder, ir.Value, ir.Value, Scalar], ir.Value]


class _Atomic:
    """atomic.add(array, index, value) and its like: change an element in one step."""


atomic: Any = _Atomic()


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operation works, and how.

    Attributes:
        address: in 64 bits.
        how: ".relaxed.gpu.global" or the like.
        fence: what comes before, for sequential consistency.
        load: what reads the first old value of a loop: ".relaxed.gpu.global".
    """

    address: ir.Value
    how: str
    fence: str
    load: str


# What a new value is computed from: LLVM values of the type.


def _pick(keep_old: Callable[[Builder, ir.Value, ir.Value, Scalar], ir.Value]) -> Compute:
    def compute(b: Builder, old: ir.Value, new: ir.Value, ty: Scalar) -> ir.Value:
        return b.llvm.select(keep_old(b, old, new, ty), old, new)

    return compute


def _less(b: Builder, x: ir.Value, y: ir.Value, ty: Scalar) -> ir.Value:
    """x < y; false if one is NaN."""
    if isinstance(ty, Float):
        return b.llvm.fcmp_ordered("<", x, y)
    signed = isinstance(ty, Integer) and ty.signed
    return (b.llvm.icmp_signed if signed else b.llvm.icmp_unsigned)("<", x, y)


def _is_nan(b: Builder, x: ir.Value, ty: Scalar) -> ir.Value:
    if isinstance(ty, Float):
        return b.llvm.fcmp_unordered("uno", x, x)
    return ir.Constant(ir.IntType(1), 0)


def _extreme(smaller: bool, skip_nan: bool) -> Compute:
    """The smaller or larger; the old value stays if one is NaN, with *skip_nan* only if new is."""

    def replaces(b: Builder, old: ir.Value, new: ir.Value, ty: Scalar) -> ir.Value:
        better = _less(b, new, old, ty) if smaller else _less(b, old, new, ty)
        return b.llvm.or_(better, _is_nan(b, old, ty)) if skip_nan else better

    return _pick(lambda b, old, new, ty: b.llvm.not_(replaces(b, old, new, ty)))


def _add(b: Builder, old: ir.Value, new: ir.Value, ty: Scalar) -> ir.Value:
    return b.llvm.fadd(old, new) if isinstance(ty, Float) else b.llvm.add(old, new)


def _sub(b: Builder, old: ir.Value, new: ir.Value, ty: Scalar) -> ir.Value:
    return b.llvm.fsub(old, new) if isinstance(ty, Float) else b.llvm.sub(old, new)


def _inc(b: Builder, old: ir.Value, new: ir.Value, ty: Scalar) -> ir.Value:
    more = b.llvm.add(old, ir.Constant(old.type, 1))
    return b.llvm.select(_less(b, old, new, ty), more, ir.Constant(old.type, 0))


def _dec(b: Builder, old: ir.Value, new: ir.Value, ty: Scalar) -> ir.Value:
    zero = b.llvm.icmp_unsigned("==", old, ir.Constant(old.type, 0))
    again = b.llvm.or_(zero, _less(b, new, old, ty))
    return b.llvm.select(again, new, b.llvm.sub(old, ir.Constant(old.type, 1)))


_BITS: dict[str, Compute] = {
    "and": lambda b, old, new, ty: b.llvm.and_(old, new),
    "or": lambda b, old, new, ty: b.llvm.or_(old, new),
    "xor": lambda b, old, new, ty: b.llvm.xor(old, new),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One of atomic's functions.

    Attributes:
        native: the PTX of a type that the hardware has, without the space; None: a loop.
        compute: the new value, for loops.
        takes: the types that it works on.
        what: what is stored.
    """

    native: Callable[[Scalar], str | None]
    compute: Compute
    takes: Callable[[Type], bool]
    what: str


def _wide(ty: Scalar) -> bool:
    return isinstance(ty, Integer) and ty.bits >= 32


def _add_native(ty: Scalar) -> str | None:
    if isinstance(ty, Float):
        return f"add{'.noftz' if ty.bits == 16 else ''}.{suffix(ty)}"
    return f"add.{'u64' if ty.bits == 64 else suffix(ty)}" if _wide(ty) else None


def _ordered(name: str) -> Callable[[Scalar], str | None]:
    return lambda ty: f"{name}.{suffix(ty)}" if _wide(ty) else None


def _bitwise(name: str) -> Callable[[Scalar], str | None]:
    return lambda ty: f"{name}.b{ty.bits}" if _wide(ty) else None


def _is_number(ty: Type) -> bool:
    return isinstance(ty, Integer | Float | Complex) and not isinstance(ty, Boolean)


def _is_integer(ty: Type) -> bool:
    return isinstance(ty, Integer) and not isinstance(ty, Boolean)


def _is_real(ty: Type) -> bool:
    return _is_integer(ty) or isinstance(ty, Float)


def _is_unsigned(ty: Type) -> bool:
    return _is_integer(ty) and not ty.signed  # type: ignore[attr-defined]


OPERATIONS = {
    "add": Operation(_add_native, _add, _is_number, "old + value"),
    "sub": Operation(lambda ty: None, _sub, _is_number, "old - value"),
    "max": Operation(_ordered("max"), _extreme(False, False), _is_real,
                     "the larger; nothing if one is NaN"),
    "min": Operation(_ordered("min"), _extreme(True, False), _is_real,
                     "the smaller; nothing if one is NaN"),
    "nanmax": Operation(_ordered("max"), _extreme(False, True), _is_real,
                        "the larger, or that which is no NaN"),
    "nanmin": Operation(_ordered("min"), _extreme(True, True), _is_real,
                        "the smaller, or that which is no NaN"),
    "and_": Operation(_bitwise("and"), _BITS["and"], _is_integer, "old & value"),
    "or_": Operation(_bitwise("or"), _BITS["or"], _is_integer, "old | value"),
    "xor": Operation(_bitwise("xor"), _BITS["xor"], _is_integer, "old ^ value"),
    "inc": Operation(lambda ty: "inc.u32" if ty == types.uint32 else None, _inc, _is_unsigned,
                     "old + 1, 0 once it has reached value"),
    "dec": Operation(lambda ty: "dec.u32" if ty == types.uint32 else None, _dec, _is_unsigned,
                     "old - 1, value if it is 0 or above"),
    "exch": Operation(lambda ty: f"exch.b{ty.bits}" if ty.bits >= 32 else None,
                      lambda b, old, new, ty: new, _is_real, "value"),
}  # fmt: skip


# Rules


def _target(name: str, array: Type, index: Type) -> Type | None:
    """The type of the element or field that the operation changes."""
    if isinstance(array, Record):
        found = array.field(index.value) if isinstance(index, Literal) else None
        if found is None:
            raise TypingError(f"atomic.{name}: {index} is no field of {array}")
        align, element = array.field_align(found[0]), found[0]  # type: ignore[arg-type]
    elif isinstance(array, Array):
        if not indexing.is_element(array, indexing.check_indices(array, index)):
            raise TypingError(f"atomic.{name} takes one index for each of {array.ndim} dimensions")
        align, element = array.align, array.dtype
    else:
        return None
    if array.readonly:
        raise TypingError("the array is read-only: its elements cannot be changed")
    if align and isinstance(element, types.Stored) and align < element.dtype.itemsize:
        raise TypingError(f"atomic.{name}: the field lies at any address: use an aligned dtype")
    return element


def _place_type(name: str, order: Type, scope: Type) -> None:
    for part, known in ((order, ORDERS), (scope, (*SCOPES, *_SCOPE_NAMES))):
        if not isinstance(part, Literal) or part.value not in known:
            raise TypingError(f"atomic.{name}: give one of {', '.join(known)}, not {part}")


def _rule(name: str, operation: Operation) -> Any:
    def rule(
        array: Type,
        index: Type,
        value: Type,
        order: Type = _DEFAULTS[0],
        scope: Type = _DEFAULTS[1],
    ) -> Match | None:
        element = _target(name, array, index)
        given = number(value) is not None or isinstance(types.widen(value), Complex)
        if element is None or not given:
            return None
        if not operation.takes(element):
            raise TypingError(f"atomic.{name} does not work on {element}")
        if not isinstance(element, Complex) and number(value) is None:
            return None
        _place_type(name, order, scope)
        return _with_extras((None, None, element), element, order, scope)

    return rule


def _with_extras(args: tuple[Any, ...], element: Type, order: Type, scope: Type) -> Match:
    """A match with as many argument types as there are arguments, keywords too."""
    extras = (order is not _DEFAULTS[0]) + (scope is not _DEFAULTS[1])
    assert isinstance(order, Literal) and isinstance(scope, Literal)
    data = (order.value, _SCOPE_NAMES.get(scope.value, scope.value))
    return Match((*args, *(None,) * extras), element, data=data)


# Code


def _place(b: Builder, match: Match, array: Value, index: Value) -> Place:
    order, scope = match.data
    owner = array.type
    if isinstance(owner, Record):
        assert isinstance(index.type, Literal)
        found = owner.field(index.type.value)
        assert found is not None
        pointer = b.bytes_on(array.leaf, found[1])
    else:
        pointer = indexing.element(b, array, index)
    assert isinstance(owner, Array | Record)
    if scope == "cluster":
        require(b, "the scope of a cluster", (9, 0))
    space = "" if owner.space == "generic" else f".{owner.space}"
    fence = f"fence.sc.{scope}; " if order == "seq_cst" else ""
    order = "acq_rel" if order == "seq_cst" else order
    load = f".relaxed.{scope}{space}"
    return Place(b.llvm.ptrtoint(pointer, I64), f".{order}.{scope}{space}", fence, load)


def _instruction(b: Builder, place: Place, text: str, ty: Scalar, *values: ir.Value) -> ir.Value:
    """atom on values of type *ty*; the old value."""
    operands = ", ".join(f"${n}" for n in range(2, 2 + len(values)))
    code = f"{place.fence}atom{place.how}.{text} $0, [$1], {operands};"
    registers = [into_register(b, Value(ty, (value,))) for value in values]
    return assemble(b, code, [ty], [place.address, *registers], ty).leaf


_WORDS = {16: types.uint16, 32: types.uint32, 64: types.uint64}


def _swap(b: Builder, place: Place, old: ir.Value, new: ir.Value, bits: int) -> ir.Value:
    return _instruction(b, place, f"cas.b{bits}", _WORDS[bits], old, new)


def _loop(b: Builder, place: Place, bits: int, compute: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Compare and swap words of *bits* until nobody else came between; the old word."""
    ll, word = b.llvm, ir.IntType(bits)
    text = f"ld{place.load}.b{bits} $0, [$1];"
    first = assemble(b, text, [_WORDS[bits]], [place.address], _WORDS[bits]).leaf
    before, again = ll.block, ll.append_basic_block("again")
    done = ll.append_basic_block("done")
    ll.branch(again)
    ll.position_at_end(again)
    old = ll.phi(word)
    found = _swap(b, place, old, compute(old), bits)
    end = ll.block
    ll.cbranch(ll.icmp_unsigned("==", found, old), done, again)
    old.add_incoming(first, before)
    old.add_incoming(found, end)
    ll.position_at_end(done)
    return found


def _narrow(b: Builder, place: Place) -> tuple[Place, ir.Value]:
    """The word around a byte, and how far its bits are shifted in it."""
    word = b.llvm.and_(place.address, b.int64(-4))
    offset = b.llvm.trunc(b.llvm.and_(place.address, b.int64(3)), I32)
    return replace(place, address=word), b.llvm.shl(offset, I32(3))


def _replace_byte(b: Builder, word: ir.Value, byte: ir.Value, shift: ir.Value) -> ir.Value:
    mask = b.llvm.not_(b.llvm.shl(I32(255), shift))
    return b.llvm.or_(b.llvm.and_(word, mask), b.llvm.shl(b.llvm.zext(byte, I32), shift))


def change(
    b: Builder, place: Place, ty: Scalar, compute: Callable[[ir.Value], ir.Value]
) -> ir.Value:
    """Store compute(old) by compare and swap; the old value."""
    leaf = scalar_type(ty)
    if ty.bits == 8:
        around, shift = _narrow(b, place)

        def in_word(word: ir.Value) -> ir.Value:
            byte = b.llvm.trunc(b.llvm.lshr(word, shift), leaf)
            return _replace_byte(b, word, compute(byte), shift)

        return b.llvm.trunc(b.llvm.lshr(_loop(b, around, 32, in_word), shift), leaf)
    bits = ir.IntType(ty.bits)

    def convert(word: ir.Value) -> ir.Value:
        new = compute(word if leaf == bits else b.llvm.bitcast(word, leaf))
        return new if leaf == bits else b.llvm.bitcast(new, bits)

    old = _loop(b, place, ty.bits, convert)
    return old if leaf == bits else b.llvm.bitcast(old, leaf)


def _run(b: Builder, place: Place, name: str, value: Value) -> ir.Value:
    """The operation *name* on one scalar; the old value."""
    operation, ty, leaf = OPERATIONS[name], value.type, value.leaf
    assert isinstance(ty, Scalar)
    if name == "sub":
        minus = ir.Constant(leaf.type, -0.0 if isinstance(ty, Float) else 0)
        if _add_native(ty):
            return _run(b, place, "add", Value(ty, (_sub(b, minus, leaf, ty),)))
    text = operation.native(ty)
    if text is not None and text.startswith("exch"):
        word = _WORDS[ty.bits]
        bits = scalar_type(word)
        given = leaf if leaf.type == bits else b.llvm.bitcast(leaf, bits)
        old = _instruction(b, place, text, word, given)
        return old if leaf.type == bits else b.llvm.bitcast(old, leaf.type)
    if text is not None:
        return _instruction(b, place, text, ty, leaf)
    return change(b, place, ty, lambda old: operation.compute(b, old, leaf, ty))


def _declare(name: str, operation: Operation) -> None:
    text = f"(array, index, value, order='relaxed', scope='gpu'): store {operation.what}; the old."
    stub = Stub(f"atomic.{name}", f"atomic.{name}{text}")
    setattr(_Atomic, name, stub)

    def lower(
        b: Builder, match: Match, array: Value, index: Value, value: Value, *rest: Value
    ) -> Value:
        place = _place(b, match, array, index)
        ty = value.type
        if not isinstance(ty, Complex):
            return Value(ty, (_run(b, place, name, value),))
        size = b.int64(ty.part.dtype.itemsize)
        second = replace(place, address=b.llvm.add(place.address, size))
        parts = zip((place, second), value.leaves, strict=True)
        return Value(ty, tuple(_run(b, at, name, Value(ty.part, (leaf,))) for at, leaf in parts))

    REGISTRY.function(stub, rule=_rule(name, operation))(lower)


for _name, _operation in OPERATIONS.items():
    _declare(_name, _operation)


# Compare and swap

cas = Stub(
    "atomic.cas",
    "atomic.cas(array, index, old, value, order='relaxed', scope='gpu'): store value if the "
    "element has the bits of old; what it was.",
)
compare_and_swap = Stub(
    "atomic.compare_and_swap",
    "atomic.compare_and_swap(array, old, value): cas of the array's first element.",
)
_Atomic.cas = cas  # type: ignore[attr-defined]
_Atomic.compare_and_swap = compare_and_swap  # type: ignore[attr-defined]


def _cas_rule(
    array: Type,
    index: Type,
    old: Type,
    value: Type,
    order: Type = _DEFAULTS[0],
    scope: Type = _DEFAULTS[1],
) -> Match | None:
    match: Match | None = _rule("cas", OPERATIONS["exch"])(array, index, value, order, scope)
    if match is None or number(old) is None:
        return None
    return _with_extras((None, None, match.returns, match.returns), match.returns, order, scope)


@REGISTRY.function(cas, rule=_cas_rule)
def lower_cas(
    b: Builder, match: Match, array: Value, index: Value, old: Value, value: Value, *rest: Value
) -> Value:
    """Compare and swap"""
    ty = match.returns
    assert isinstance(ty, Scalar)
    place = _place(b, match, array, index)
    if ty.bits == 8:
        changed = change(b, place, ty, lambda found: _if_equal(b, found, old.leaf, value.leaf))
        return Value(ty, (changed,))
    bits = ir.IntType(ty.bits)
    words = [v.leaf if v.leaf.type == bits else b.llvm.bitcast(v.leaf, bits) for v in (old, value)]
    found = _swap(b, place, words[0], words[1], ty.bits)
    leaf = scalar_type(ty)
    return Value(ty, (found if leaf == bits else b.llvm.bitcast(found, leaf),))


def _if_equal(b: Builder, found: ir.Value, old: ir.Value, new: ir.Value) -> ir.Value:
    return b.llvm.select(b.llvm.icmp_unsigned("==", found, old), new, found)


def _first_rule(array: Type, old: Type, value: Type) -> Match | None:
    if not isinstance(array, Array):
        return None
    match = _cas_rule(array, _first(array), old, value)
    return match and Match((None, *match.args[2:]), match.returns, data=match.data)


def _first(array: Array) -> Literal:
    return Literal((0,) * array.ndim)


@REGISTRY.function(compare_and_swap, rule=_first_rule)
def lower_compare_and_swap(
    b: Builder, match: Match, array: Value, old: Value, value: Value
) -> Value:
    """cas of element 0"""
    assert isinstance(array.type, Array)
    return lower_cas(b, match, array, Value(_first(array.type)), old, value)


def _document() -> None:
    """Enter what is one instruction into the table of docs/intrinsics.md."""
    for name, operation in OPERATIONS.items():
        kinds = (types.int32, types.uint32, types.int64, types.uint64, *_FLOATS)
        found = [(ty, operation.native(ty)) for ty in kinds if operation.takes(ty)]
        ATOMIC_FORMS[getattr(_Atomic, name)] = [
            Form((types.uint64, ty), ty, f"atom.relaxed.gpu.{text} $0, [$1], $2;")
            for ty, text in found
            if text
        ]


_FLOATS = (types.float16, types.float32, types.float64)
# As ptx.FORMS, with the address of the element as first argument.
ATOMIC_FORMS: dict[Stub, list[Form]] = {}
_document()
