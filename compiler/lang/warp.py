"""What the lanes of a warp do together: shuffles, votes, matches, reductions."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.failures import fail_if
from ..lowering.models import F16, F32, F64, I32, I64, Value
from ..types import Integer, Literal, Scalar, Tuple, Type, number, widen
from ..typing.registry import REGISTRY, Match
from . import pywarp
from .operators import no_lowering
from .ptx import FORMS, Form, declare, emit
from .stub import Stub

U32, BOOL = types.uint32, types.boolean
_PREDICATE = "{ .reg .pred p, q; setp.ne.u32 p, $2, 0; %s }"


# Votes


def _vote(name: str, doc: str, text: str, returns: Scalar) -> Stub:
    form = Form((U32, BOOL), returns, _PREDICATE % text, effects=True, convergent=True)
    return declare(Stub(name, f"{name}(mask, predicate): {doc}"), [form])


def _vote_of(mode: str) -> str:
    return f"vote.sync.{mode}.pred q, p, $1; selp.u32 $0, 1, 0, q;"


all_sync = _vote("all_sync", "whether it holds in every lane of the mask.", _vote_of("all"), BOOL)
any_sync = _vote("any_sync", "whether it holds in some lane of the mask.", _vote_of("any"), BOOL)
eq_sync = _vote(
    "eq_sync", "whether it is the same in all lanes of the mask.", _vote_of("uni"), BOOL
)
ballot_sync = _vote(
    "ballot_sync", "the lanes in which it holds, as bits.", "vote.sync.ballot.b32 $0, p, $1;", U32
)

# Masks

activemask = declare(
    Stub("activemask", "activemask(): the lanes that are here together, as bits."),
    [Form((), U32, "activemask.b32 $0;", effects=True, convergent=True)],
)


def _lanemask(relation: str, what: str) -> Stub:
    name = f"lanemask_{relation}"
    stub = Stub(name, f"{name}(): the lanes {what} this one, as bits.")
    return declare(stub, [Form((), U32, f"mov.u32 $0, %{name};")])


lanemask_lt = _lanemask("lt", "below")
lanemask_le = _lanemask("le", "up to")
lanemask_eq = _lanemask("eq", "that are")
lanemask_ge = _lanemask("ge", "from")
lanemask_gt = _lanemask("gt", "above")

# Matches

_MATCHED = (types.int32, U32, types.int64, types.uint64)


def _leaf_bits(ty: Type) -> int:
    found = number(ty)
    if found is None:
        raise TypingError(f"{widen(ty)} is no number: lanes are matched by one")
    return max(found.bits, 32)


match_any_sync = Stub(
    "match_any_sync", "match_any_sync(mask, value): the lanes of the mask with the same value."
)
match_all_sync = Stub(
    "match_all_sync",
    "match_all_sync(mask, value): (mask, True) if all its lanes have one value, else (0, False).",
)
_ANY = {
    bits: Form(
        (U32, getattr(types, f"uint{bits}")), U32, f"match.any.sync.b{bits} $0, $2, $1;",
        effects=True, convergent=True,
    )
    for bits in (32, 64)
}  # fmt: skip
_ALL = {
    bits: Form(
        (U32, getattr(types, f"uint{bits}")), Tuple((U32, BOOL)),
        f"{{ .reg .pred p; match.all.sync.b{bits} $0|p, $3, $2; selp.u32 $1, 1, 0, p; }}",
        effects=True, convergent=True,
    )
    for bits in (32, 64)
}  # fmt: skip
FORMS[match_any_sync], FORMS[match_all_sync] = list(_ANY.values()), list(_ALL.values())


def _match(forms: dict[int, Form]) -> Callable[[Type, Type], Match]:
    def rule(mask: Type, value: Type) -> Match:
        form = forms[_leaf_bits(value)]
        return Match((U32, number(value)), form.returns, data=form)

    return rule


@REGISTRY.function(match_any_sync, rule=_match(_ANY))
@REGISTRY.function(match_all_sync, rule=_match(_ALL))
def match(b: Builder, match: Match, mask: Value, value: Value) -> Value:
    """Compare the bits of the value"""
    _check_mask(b, mask.leaf)
    form: Form = match.data
    (word,) = _whole(b, value.leaf, form.args[1])
    return emit(b, "match", form, [mask, Value(form.args[1], (word,))])


def _whole(b: Builder, leaf: ir.Value, ty: Type) -> list[ir.Value]:
    assert isinstance(ty, Scalar)
    words = to_words(b, leaf)
    if len(words) == 1:
        return words
    low, high = (b.llvm.zext(word, I64) for word in words)
    return [b.llvm.or_(b.llvm.shl(high, b.int64(32)), low)]


# Shuffles

_SHFL = "shfl.sync.{mode}.b32 $0, $1, $2, $3, $4;"


def to_words(b: Builder, leaf: ir.Value) -> list[ir.Value]:
    """A leaf as 32-bit words, the low one first."""
    if leaf.type in (F16, F32, F64):
        width = {F16: 16, F32: 32, F64: 64}[leaf.type]
        leaf = b.llvm.bitcast(leaf, ir.IntType(width))
    width = leaf.type.width
    if width < 32:
        return [b.llvm.zext(leaf, I32)]
    return [
        b.llvm.trunc(b.llvm.lshr(leaf, leaf.type(32 * n)), I32) if width > 32 else leaf
        for n in range(width // 32)
    ]


def from_words(b: Builder, words: list[ir.Value], ty: ir.Type) -> ir.Value:
    """The leaf of type *ty* that the words are."""
    width = {F16: 16, F32: 32, F64: 64}.get(ty) or ty.width
    whole = words[0]
    if width < 32:
        whole = b.llvm.trunc(whole, ir.IntType(width))
    elif width > 32:
        kind = ir.IntType(width)
        whole = kind(0)
        for n, word in enumerate(words):
            whole = b.llvm.or_(whole, b.llvm.shl(b.llvm.zext(word, kind), kind(32 * n)))
    return whole if whole.type == ty else b.llvm.bitcast(whole, ty)


def _check_mask(b: Builder, mask: ir.Value) -> None:
    """With checks, raise ValueError unless the mask names the lane itself."""
    if b.module.options.checks:
        own = emit(b, "lanemask_eq", FORMS[lanemask_eq][0], []).leaf
        absent = b.llvm.icmp_unsigned("==", b.llvm.and_(mask, own), I32(0))
        shown = Value(U32, (mask,))
        fail_if(b, absent, ValueError, "the mask ", shown, " does not name the lane that gives it")


def _moved(ty: Type) -> Type:
    """The type that a shuffle moves: numbers, and what consists of them."""
    wide = widen(ty)
    if isinstance(wide, types.Array | types.Record | Literal):
        raise TypingError(f"{wide} cannot be moved between lanes: numbers and tuples of them can")
    return wide


def _shuffle_rule(mask: Type, value: Type, lane: Type, width: Type | None = None) -> Match | None:
    numbers = (mask, lane) if width is None else (mask, lane, width)
    if not all(isinstance(number(ty), Integer) for ty in numbers):
        return None
    if isinstance(width, Literal) and width.value not in (1, 2, 4, 8, 16, 32):
        raise TypingError(f"width {width.value}: it must be a power of two up to 32")
    moved = _moved(value)
    return Match((U32, moved, *(U32 for _ in numbers[1:])), moved)


def _shuffle(name: str, mode: str, clamp: int, doc: str) -> Stub:
    stub = Stub(name, f"{name}(mask, value, {doc}")
    FORMS[stub] = [Form((U32,) * 4, U32, _SHFL.format(mode=mode), effects=True, convergent=True)]

    def lower(
        b: Builder, match: Match, mask: Value, value: Value, lane: Value, width: Value | None = None
    ) -> Value:
        size = I32(32) if width is None else width.leaf
        _check_mask(b, mask.leaf)
        control = b.llvm.or_(b.llvm.shl(b.llvm.sub(I32(32), size), I32(8)), I32(clamp))
        last = [Value(U32, (leaf,)) for leaf in (lane.leaf, control, mask.leaf)]

        def move(word: ir.Value) -> ir.Value:
            return emit(b, name, FORMS[stub][0], [Value(U32, (word,)), *last]).leaf

        leaves = []
        for leaf in value.leaves:
            words = [move(word) for word in to_words(b, leaf)]
            leaves.append(from_words(b, words, leaf.type))
        return Value(match.returns, tuple(leaves))

    lower.__doc__ = stub.__doc__
    REGISTRY.function(stub, rule=_shuffle_rule)(lower)
    return stub


_WHERE = "): of numbers, complex numbers and tuples; lanes shuffle in groups of *width*."
shfl_sync = _shuffle("shfl_sync", "idx", 31, "lane, width=32): the value that another lane has.")
shfl_up_sync = _shuffle("shfl_up_sync", "up", 0, "delta, width=32): that of a lane further down.")
shfl_down_sync = _shuffle("shfl_down_sync", "down", 31, "delta, width=32): that of one further up.")
shfl_xor_sync = _shuffle("shfl_xor_sync", "bfly", 31, "bits, width=32): that of lane ^ bits.")

# Reductions


def _redux(name: str) -> Stub:
    """The instruction, for 32-bit integers."""
    signs = {types.int32: "s", U32: "u"} if name in ("min", "max") else {U32: "u"}
    signs = {U32: "b"} if name in ("and", "or", "xor") else signs
    signs = {types.int32: "s", U32: "u"} if name == "add" else signs
    forms = [
        Form((U32, ty), ty, f"redux.sync.{name}.{sign}32 $0, $2, $1;", (8, 0), True, True)
        for ty, sign in signs.items()
    ]
    if len(forms) == 1:
        forms.insert(0, replace(forms[0], args=(U32, types.int32), returns=types.int32))
    return declare(Stub(f"redux_{name}", f"redux_{name}(mask, value): redux.sync.{name}."), forms)


def _reduction(name: str, function: Callable[..., Any], kind: type[Scalar]) -> Stub:
    doc = "over the lanes of the mask, in each; redux.sync where there is one, else shuffles."
    stub = Stub(f"reduce_{name}_sync", f"reduce_{name}_sync(mask, value): {name} {doc}")
    native = pywarp.native(function, _redux(name))
    shuffled = pywarp.shuffled(function)

    def rule(mask: Type, value: Type) -> Match | None:
        ty = number(value)
        if not isinstance(number(mask), Integer) or not isinstance(ty, kind | Integer):
            return None
        if isinstance(ty, Integer) and ty.bits < 32:
            ty = types.int32 if ty.signed else U32
        return Match((U32, ty), ty, python=native if ty in (types.int32, U32) else shuffled)

    REGISTRY.function(stub, rule=rule)(no_lowering)
    return stub


REGISTRY.alias(pywarp.shuffle, shfl_sync)
REGISTRY.alias(pywarp.butterfly, shfl_xor_sync)
reduce_add_sync = _reduction("add", operator.add, types.Float)
reduce_min_sync = _reduction("min", builtins.min, types.Float)
reduce_max_sync = _reduction("max", builtins.max, types.Float)
reduce_and_sync = _reduction("and", operator.and_, Integer)
reduce_or_sync = _reduction("or", operator.or_, Integer)
reduce_xor_sync = _reduction("xor", operator.xor, Integer)

elect_sync = Stub(
    "elect_sync", "elect_sync(mask): whether this lane is the one chosen of the mask."
)
FORMS[elect_sync] = [
    Form(
        (U32,), BOOL,
        "{ .reg .pred p; .reg .b32 d; elect.sync d|p, $1; selp.u32 $0, 1, 0, p; }",
        (9, 0), effects=True, convergent=True,
    )
]  # fmt: skip


@REGISTRY.function(elect_sync, rule=lambda mask: Match((U32,), BOOL))
def elect(b: Builder, match: Match, mask: Value) -> Value:
    """elect.sync, before 9.0 the lowest lane of the mask"""
    if b.module.options.cc >= (9, 0):
        return emit(b, "elect_sync", FORMS[elect_sync][0], [mask])
    below = emit(b, "lanemask_le", FORMS[lanemask_le][0], []).leaf
    own = emit(b, "lanemask_eq", FORMS[lanemask_eq][0], []).leaf
    return Value(BOOL, (b.llvm.icmp_unsigned("==", b.llvm.and_(mask.leaf, below), own),))
