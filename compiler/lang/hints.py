"""Loads and stores with hints for the caches, and copies into shared memory beside the threads."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import I64, Value
from ..types import Array, Boolean, Complex, Integer, Literal, Scalar, Type, number, widen
from ..typing.promotion import converts
from ..typing.registry import REGISTRY, Match
from . import indexing
from .ptx import Form, assemble, declare, into_register, require
from .stub import Stub

_WORDS = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}
LOADS = {
    "ldg": ("nc", "through the read-only cache: nothing may write it meanwhile"),
    "ldca": ("ca", "cached at all levels"),
    "ldcg": ("cg", "cached at the global level, not in the multiprocessor"),
    "ldcs": ("cs", "cached, and likely to be needed once"),
    "ldlu": ("lu", "cached, and not needed again"),
    "ldcv": ("cv", "not cached: what memory holds now"),
}
STORES = {
    "stwb": ("wb", "written back from all levels"),
    "stcg": ("cg", "cached at the global level"),
    "stcs": ("cs", "cached, and likely not needed again"),
    "stwt": ("wt", "written through to system memory"),
}


def _element(array: Type, index: Type, name: str) -> Scalar | Complex:
    """The type of the element that a hint concerns."""
    assert isinstance(array, Array)
    if not indexing.is_element(array, indexing.check_indices(array, index)):
        raise TypingError(f"{name} takes one index for each of {array.ndim} dimensions")
    if not isinstance(array.dtype, Scalar | Complex) or array.align:
        raise TypingError(f"{name} works on aligned numbers, not on {array}")
    if array.space not in ("global", "generic"):
        raise TypingError(f"{name}: hints are for global memory, the array is in {array.space}")
    return array.dtype


def _register_kind(ty: Scalar) -> Scalar:
    """The number that moves the bits of *ty*: 8 bits travel in 16."""
    if isinstance(ty, Boolean):
        return types.uint8
    return ty


def _word(ty: Scalar) -> str:
    width = 8 if isinstance(ty, Boolean) else ty.bits
    return f"f{width}" if isinstance(ty, types.Float) and width >= 32 else _WORDS[width]


def _parts(ty: Scalar | Complex) -> list[tuple[Scalar, int]]:
    """The scalars that an element consists of, and their offsets."""
    if isinstance(ty, Complex):
        return [(ty.part, 0), (ty.part, ty.part.dtype.itemsize)]
    return [(ty, 0)]


def _space(array: Value) -> str:
    # A kernel's arrays lie in global memory; elsewhere the address tells.
    assert isinstance(array.type, Array)
    return ".global" if array.type.space == "global" else ""


def _load(name: str, hint: str, doc: str) -> Stub:
    stub = Stub(name, f"{name}(array, index): the element, {doc}.")

    def rule(array: Type, index: Type) -> Match | None:
        if not isinstance(array, Array):
            return None
        return Match((None, None), _element(array, index, name))

    def lower(b: Builder, match: Match, array: Value, index: Value) -> Value:
        place = indexing.element(b, array, index)
        space = _space(array)
        if hint == "nc" and not space:
            place, space = b.llvm.addrspacecast(place, b.layout.pointer("global")), ".global"
        address = b.llvm.ptrtoint(place, I64)
        leaves = []
        for ty, offset in _parts(match.returns):  # type: ignore[arg-type]
            text = f"ld{space}.{hint}.{_word(ty)} $0, [$1];"
            at = b.llvm.add(address, b.int64(offset))
            kind = _register_kind(ty)
            read = assemble(b, text, [kind], [at], kind, effects=hint != "nc").leaf
            if isinstance(ty, Boolean):
                read = b.llvm.icmp_unsigned("!=", read, ir.Constant(read.type, 0))
            leaves.append(read)
        return Value(match.returns, tuple(leaves))

    lower.__doc__ = stub.__doc__
    REGISTRY.function(stub, rule=rule)(lower)
    return stub


def _store(name: str, hint: str, doc: str) -> Stub:
    stub = Stub(name, f"{name}(array, index, value): store it, {doc}.")

    def rule(array: Type, index: Type, value: Type) -> Match | None:
        if not isinstance(array, Array):
            return None
        ty = _element(array, index, name)
        if array.readonly:
            raise TypingError("the array is read-only: its elements cannot be changed")
        if not converts(widen(value), ty):
            return None
        return Match((None, None, ty), types.none)

    def lower(b: Builder, match: Match, array: Value, index: Value, value: Value) -> Value:
        address = b.llvm.ptrtoint(indexing.element(b, array, index), I64)
        ty = value.type
        assert isinstance(ty, Scalar | Complex)
        for (part, offset), leaf in zip(_parts(ty), value.leaves, strict=True):
            text = f"st{_space(array)}.{hint}.{_word(part)} [$0], $1;"
            at = b.llvm.add(address, b.int64(offset))
            register = into_register(b, Value(part, (leaf,)))
            if isinstance(part, Boolean):
                register = b.llvm.trunc(register, ir.IntType(16))
            assemble(b, text, [], [at, register], types.none)
        return Value(types.none)

    lower.__doc__ = stub.__doc__
    REGISTRY.function(stub, rule=rule)(lower)
    return stub


ldg, ldca, ldcg, ldcs, ldlu, ldcv = (_load(name, *rest) for name, rest in LOADS.items())
stwb, stcg, stcs, stwt = (_store(name, *rest) for name, rest in STORES.items())


# Asynchronous copies from global to shared memory

cp_async = Stub(
    "cp_async",
    """cp_async(to, i, array, j, count=1): copy into shared memory while the thread goes on.

    *to* is a shared array, *array* in global memory; from both elements on *count* of them, a
    constant, 4, 8 or 16 bytes together, to addresses that are multiples of that.
    """,
)


def _copy_rule(to: Type, i: Type, array: Type, j: Type, count: Type = Literal(1)) -> Match | None:  # noqa: B008
    if not (isinstance(to, Array) and isinstance(array, Array)):
        return None
    if to.space != "shared" or array.space not in ("global", "generic"):
        raise TypingError("cp_async copies from a global to a shared array")
    if to.dtype != array.dtype or to.readonly:
        raise TypingError(f"cp_async: {to} cannot take elements of {array}")
    for owner, index in ((to, i), (array, j)):
        if not indexing.is_element(owner, indexing.check_indices(owner, index)):
            raise TypingError(f"cp_async takes one index for each of {owner.ndim} dimensions")
    if not isinstance(count, Literal) or not isinstance(number(count), Integer):
        raise TypingError("cp_async: count must be a constant")
    nbytes = count.value * to.dtype.dtype.itemsize
    if nbytes not in (4, 8, 16):
        raise TypingError(f"cp_async copies 4, 8 or 16 bytes at once, not {nbytes}")
    extras: tuple[Any, ...] = (None,) if count is not _ONE else ()
    return Match((None,) * 4 + extras, types.none, data=nbytes)


_ONE = _copy_rule.__defaults__[0]  # type: ignore[index]


@REGISTRY.function(cp_async, rule=_copy_rule)
def copy(
    b: Builder, match: Match, to: Value, i: Value, array: Value, j: Value, *more: Value
) -> Value:
    """cp.async"""
    require(b, "cp_async", (8, 0))
    target = b.llvm.ptrtoint(indexing.element(b, to, i), I64)
    target = b.llvm.trunc(target, ir.IntType(32))
    place = indexing.element(b, array, j)
    if isinstance(array.type, Array) and array.type.space == "generic":
        place = b.llvm.addrspacecast(place, b.layout.pointer("global"))
    nbytes: int = match.data
    cache = "cg" if nbytes == 16 else "ca"
    text = f"cp.async.{cache}.shared.global [$0], [$1], {nbytes};"
    assemble(b, text, [], [target, b.llvm.ptrtoint(place, I64)], types.none)
    return Value(types.none)


cp_async_commit = declare(
    Stub("cp_async_commit", "cp_async_commit(): make the thread's copies until now a group."),
    [Form((), types.none, "cp.async.commit_group;", (8, 0), effects=True)],
)
cp_async_wait_all = declare(
    Stub("cp_async_wait_all", "cp_async_wait_all(): wait for all copies of this thread."),
    [Form((), types.none, "cp.async.wait_all;", (8, 0), effects=True)],
)
cp_async_wait = Stub(
    "cp_async_wait", "cp_async_wait(pending): wait until so many groups, a constant, are not done."
)


def _wait_rule(pending: Type) -> Match:
    if not isinstance(pending, Literal) or not isinstance(pending.value, int) or pending.value < 0:
        raise TypingError("cp_async_wait: the number of groups must be a constant")
    return Match((None,), types.none, data=pending.value)


@REGISTRY.function(cp_async_wait, rule=_wait_rule)
def wait(b: Builder, match: Match, pending: Value) -> Value:
    """cp.async.wait_group"""
    require(b, "cp_async_wait", (8, 0))
    assemble(b, f"cp.async.wait_group {match.data};", [], [], types.none)
    return Value(types.none)
