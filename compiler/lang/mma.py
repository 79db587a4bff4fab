"""Tensor cores: products of matrices whose parts, fragments, the lanes of a warp hold.

Lane l is in group l // 4, at place l % 4. Register r of A is of row group + 8 * (r % 2), its
numbers are those at that place of part r // 2 of the inner dimension; register r of B is of column
group, part r. C and D are (row group, columns 2 * place and + 1), then the same of row group + 8.
"""

from __future__ import annotations

from llvmlite import ir

from .. import types
from ..errors import TypingError
from ..lowering.builder import Builder
from ..lowering.models import I64, Value
from ..types import Array, Literal, Scalar, Tuple, Type, number
from ..typing.registry import REGISTRY, Match
from . import indexing
from .ptx import assemble, require
from .stub import Stub

U32, F32, F64, S32 = types.uint32, types.float32, types.float64, types.int32


class Product:
    """One shape and type of mma.

    Attributes:
        word, total: the types of the registers of A and B, and of C and D.
        counts: how many registers A, B and C have.
        text: the PTX without operands.
    """

    def __init__(
        self, text: str, word: Scalar, total: Scalar, counts: tuple[int, int, int]
    ) -> None:
        self.text, self.word, self.total, self.counts = text, word, total, counts


def _sync(shape: str, total: str, kind: str) -> str:
    return f"mma.sync.aligned.{shape}.row.col.{total}.{kind}.{kind}.{total}"


PRODUCTS = {
    "mma_m16n8k16_f16": Product(_sync("m16n8k16", "f32", "f16"), U32, F32, (4, 2, 4)),
    "mma_m16n8k16_bf16": Product(_sync("m16n8k16", "f32", "bf16"), U32, F32, (4, 2, 4)),
    "mma_m16n8k8_tf32": Product(_sync("m16n8k8", "f32", "tf32"), U32, F32, (4, 2, 4)),
    "mma_m8n8k4_f64": Product(_sync("m8n8k4", "f64", "f64"), F64, F64, (1, 1, 2)),
    "mma_m16n8k32_s8": Product(_sync("m16n8k32", "s32", "s8"), U32, S32, (4, 2, 4)),
    "mma_m16n8k32_u8": Product(_sync("m16n8k32", "s32", "u8"), U32, S32, (4, 2, 4)),
}
MMA_CC = (8, 0)


def braces(first: int, count: int) -> str:
    """The operands from one on, as a vector of PTX."""
    return "{" + ", ".join(f"${n}" for n in range(first, first + count)) + "}"


def _fragment(ty: Type, kind: Scalar, count: int, what: str) -> Tuple:
    """The type that a fragment is converted to."""
    items = ty.items if isinstance(ty, Tuple) else (ty,)
    if isinstance(ty, Literal) and isinstance(ty.value, tuple):
        items = tuple(Literal(item) for item in ty.value)
    if len(items) != count or not all(number(item) for item in items):
        raise TypingError(f"{what} is {ty}: a tuple of {count} {kind} holds this fragment")
    return Tuple((kind,) * count)


def _declare(name: str, product: Product) -> Stub:
    doc = f"(a, b, c): the fragment of A B + C, in every lane of the warp; {product.text}."
    stub = Stub(name, name + doc)

    def rule(a: Type, b: Type, c: Type) -> Match:
        kinds = (product.word, product.word, product.total)
        wanted = zip((a, b, c), kinds, product.counts, "abc", strict=True)
        args = tuple(_fragment(*each) for each in wanted)
        return Match(args, args[2])

    def lower(b: Builder, match: Match, *fragments: Value) -> Value:
        require(b, name, MMA_CC)
        operands, start = [], 0
        for count in (product.counts[2], *product.counts):
            operands.append(braces(start, count))
            start += count
        leaves = [leaf for each in fragments for leaf in each.leaves]
        results = [product.total] * product.counts[2]
        text = f"{product.text} {', '.join(operands)};"
        return assemble(b, text, results, leaves, match.returns, True, True)

    lower.__doc__ = stub.__doc__
    REGISTRY.function(stub, rule=rule)(lower)
    return stub


(
    mma_m16n8k16_f16, mma_m16n8k16_bf16, mma_m16n8k8_tf32, mma_m8n8k4_f64, mma_m16n8k32_s8,
    mma_m16n8k32_u8,
) = (_declare(name, product) for name, product in PRODUCTS.items())  # fmt: skip

ldmatrix = Stub(
    "ldmatrix",
    """ldmatrix(array, index, count, transposed=False): 8 by 8 matrices of 16-bit numbers.

    Lane 8 j + i gives, as an element of a shared array, where row i of matrix j begins, at a
    multiple of 16 bytes. Of each matrix a lane gets two numbers in a register: those of row
    lane // 4 from 2 * (lane % 4) on; transposed, of column lane // 4. *count*, a constant, is 1, 2
    or 4, and the result a tuple of so many uint32.
    """,
)
stmatrix = Stub(
    "stmatrix",
    """stmatrix(array, index, registers, transposed=False): as ldmatrix, the other way.

    *registers* is a tuple of 1, 2 or 4 uint32.
    """,
)


def _place(array: Type, index: Type, name: str) -> None:
    if not isinstance(array, Array) or array.space != "shared" or array.dtype.dtype.itemsize != 2:
        raise TypingError(f"{name} works on shared arrays of 16-bit numbers, not on {array}")
    if not indexing.is_element(array, indexing.check_indices(array, index)):
        raise TypingError(f"{name} takes one index for each of {array.ndim} dimensions")


def _constant(given: Type | None, known: tuple[object, ...], what: str) -> object:
    value = given.value if isinstance(given, Literal) else None
    if value not in known:
        raise TypingError(f"{what} must be a constant, one of {known}")
    return value


def _load_rule(array: Type, index: Type, count: Type, transposed: Type | None = None) -> Match:
    _place(array, index, "ldmatrix")
    many = _constant(count, (1, 2, 4), "the number of matrices")
    assert isinstance(many, int)
    turned = transposed is not None and bool(_constant(transposed, (False, True), "transposed"))
    extras = () if transposed is None else (None,)
    return Match((None, None, None, *extras), Tuple((U32,) * many), data=(many, turned))


def _address(b: Builder, array: Value, index: Value) -> ir.Value:
    wide = b.llvm.ptrtoint(indexing.element(b, array, index), I64)
    return b.llvm.trunc(wide, ir.IntType(32))


def _modifiers(many: int, turned: bool) -> str:
    return f"sync.aligned.m8n8.x{many}{'.trans' if turned else ''}.shared.b16"


@REGISTRY.function(ldmatrix, rule=_load_rule)
def load(b: Builder, match: Match, array: Value, index: Value, *rest: Value) -> Value:
    """ldmatrix"""
    many, turned = match.data
    text = f"ldmatrix.{_modifiers(many, turned)} {braces(0, many)}, [${many}];"
    return assemble(b, text, [U32] * many, [_address(b, array, index)], match.returns, True, True)


def _store_rule(array: Type, index: Type, registers: Type, transposed: Type | None = None) -> Match:
    _place(array, index, "stmatrix")
    many = len(registers.items) if isinstance(registers, Tuple) else 1
    if many not in (1, 2, 4):
        raise TypingError(f"stmatrix stores 1, 2 or 4 registers, not {many}")
    turned = transposed is not None and bool(_constant(transposed, (False, True), "transposed"))
    extras = () if transposed is None else (None,)
    kind = _fragment(registers, U32, many, "registers")
    return Match((None, None, kind, *extras), types.none, data=(many, turned))


@REGISTRY.function(stmatrix, rule=_store_rule)
def store(
    b: Builder, match: Match, array: Value, index: Value, registers: Value, *rest: Value
) -> Value:
    """stmatrix"""
    require(b, "stmatrix", (9, 0))
    many, turned = match.data
    text = f"stmatrix.{_modifiers(many, turned)} [$0], {braces(1, many)};"
    operands = [_address(b, array, index), *registers.leaves]
    return assemble(b, text, [], operands, types.none, True, True)
