"""Integer instructions compute what their definition, written in Python, says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.device.ptx import dtype, elementwise

Model = Callable[..., int]


def limits(kind: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bits = int(kind[1:])
    if kind[0] == "s":
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def wrap(value: int, kind: str) -> int:
    """*value* as the type *kind* holds it."""
    bits = int(kind[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def clamp(value: int, kind: str) -> int:
    """The value of *kind* nearest to *value*."""
    low, high = limits(kind)
    return min(max(value, low), high)


def edges(kind: str) -> list[int]:
    """Telling values of an integer type."""
    low, high = limits(kind)
    found = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 31, 32, 33, 100, high // 3, high // 2}
    return sorted(found | ({-1, -2, -7, -100} if low else {high // 2 + 1}))


def compare(code: str, result: str, kinds: list[str], model: Model) -> None:
    """Run *code* on every combination of telling values and compare with *model*."""
    grids = np.meshgrid(*(np.array(edges(kind), dtype(kind)) for kind in kinds), indexing="ij")
    arrays = [grid.ravel() for grid in grids]
    if len(arrays[0]) > 4000:
        picked = np.random.default_rng(1).choice(len(arrays[0]), 4000, replace=False)
        arrays = [array[picked] for array in arrays]
    got = elementwise(code, result, kinds, *arrays)
    for index, values in enumerate(zip(*(array.tolist() for array in arrays), strict=False)):
        wanted = wrap(model(*values), result)
        assert wrap(int(got[index]), result) == wanted, (code, values)


def quotient(a: int, b: int) -> int:
    """a / b rounded to zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def signed_divide(a: int, b: int) -> int:
    return quotient(a, b) if b else -1


def signed_remainder(a: int, b: int) -> int:
    return a - b * quotient(a, b) if b else -1


SIZES = ["u16", "s16", "u32", "s32", "u64", "s64"]
SIMPLE: dict[str, Model] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
    "div": signed_divide,
    "rem": signed_remainder,
}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("name", SIMPLE)
def test_arithmetic(name: str, kind: str) -> None:
    """Two-operand arithmetic wraps at the width of the type."""
    compare(f"{name}.{kind} d, a, b;", kind, [kind, kind], SIMPLE[name])


@pytest.mark.parametrize("kind", SIZES)
def test_high_product(kind: str) -> None:
    """mul.hi is the upper half of the full product."""
    bits = int(kind[1:])
    compare(f"mul.hi.{kind} d, a, b;", kind, [kind, kind], lambda a, b: (a * b) >> bits)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_product(kind: str) -> None:
    """mul.wide and mad.wide keep all bits."""
    wide = f"{kind[0]}{int(kind[1:]) * 2}"
    compare(f"mul.wide.{kind} d, a, b;", wide, [kind, kind], lambda a, b: a * b)
    compare(f"mad.wide.{kind} d, a, b, c;", wide, [kind, kind, wide], lambda a, b, c: a * b + c)


@pytest.mark.parametrize("kind", SIZES)
def test_multiply_add(kind: str) -> None:
    """mad.lo and mad.hi add to a half of the product."""
    bits = int(kind[1:])
    kinds = [kind] * 3
    compare(f"mad.lo.{kind} d, a, b, c;", kind, kinds, lambda a, b, c: a * b + c)
    compare(f"mad.hi.{kind} d, a, b, c;", kind, kinds, lambda a, b, c: ((a * b) >> bits) + c)


def test_saturating() -> None:
    """.sat of signed 32-bit arithmetic stops at the ends of the range."""
    compare("add.sat.s32 d, a, b;", "s32", ["s32"] * 2, lambda a, b: clamp(a + b, "s32"))
    compare("sub.sat.s32 d, a, b;", "s32", ["s32"] * 2, lambda a, b: clamp(a - b, "s32"))
    compare(
        "mad.hi.sat.s32 d, a, b, c;",
        "s32",
        ["s32"] * 3,
        lambda a, b, c: clamp(((a * b) >> 32) + c, "s32"),
    )


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_sign(kind: str) -> None:
    """neg and abs wrap at the least value."""
    compare(f"neg.{kind} d, a;", kind, [kind], lambda a: -a)
    compare(f"abs.{kind} d, a;", kind, [kind], abs)


@pytest.mark.parametrize("kind", SIZES)
def test_sum_of_absolute_differences(kind: str) -> None:
    """sad adds |a - b|."""
    compare(f"sad.{kind} d, a, b, c;", kind, [kind] * 3, lambda a, b, c: abs(a - b) + c)


def low24(value: int, kind: str) -> int:
    """The lowest 24 bits of a value."""
    value &= 0xFFFFFF
    return value - (1 << 24) if kind == "s32" and value >> 23 else value


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bit_product(kind: str) -> None:
    """mul24 multiplies the low 24 bits; .hi is bits 16 to 47 of that."""

    def product(a: int, b: int) -> int:
        return low24(a, kind) * low24(b, kind)

    compare(f"mul24.lo.{kind} d, a, b;", kind, [kind] * 2, product)
    compare(f"mul24.hi.{kind} d, a, b;", kind, [kind] * 2, lambda a, b: product(a, b) >> 16)
    compare(f"mad24.lo.{kind} d, a, b, c;", kind, [kind] * 3, lambda a, b, c: product(a, b) + c)


@pytest.mark.parametrize("bits", [32, 64])
def test_carry(bits: int) -> None:
    """add.cc, addc, sub.cc and subc pass the carry on."""
    kind = f"u{bits}"
    top = 1 << bits
    kinds = [kind] * 4
    code = f".reg .b{bits} x; add.cc.{kind} x, a, c; addc.{kind} d, b, e;"
    compare(code, kind, kinds, lambda a, b, c, e: ((b * top + a) + (e * top + c)) >> bits)
    code = f".reg .b{bits} x; sub.cc.{kind} x, a, c; subc.{kind} d, b, e;"
    compare(code, kind, kinds, lambda a, b, c, e: ((b * top + a) - (e * top + c)) >> bits)
    code = f".reg .b{bits} x; mad.lo.cc.{kind} x, a, b, c; madc.hi.{kind} d, a, b, e;"
    compare(code, kind, kinds, lambda a, b, c, e: (a * b + (e * top + c)) >> bits)


def byte(word: int, index: int, signed: bool) -> int:
    """Byte *index* of a word."""
    value = word >> (8 * index) & 255
    return value - 256 if signed and value > 127 else value


@pytest.mark.parametrize("left", ["u32", "s32"])
@pytest.mark.parametrize("right", ["u32", "s32"])
def test_dot_products(left: str, right: str) -> None:
    """dp4a and dp2a multiply bytes, each side signed or not."""

    def dp4a(a: int, b: int, c: int) -> int:
        parts = ((byte(a, i, left == "s32"), byte(b, i, right == "s32")) for i in range(4))
        return c + sum(x * y for x, y in parts)

    def half(word: int, index: int) -> int:
        value = word >> (16 * index) & 0xFFFF
        return value - 65536 if left == "s32" and value > 32767 else value

    def dp2a(a: int, b: int, c: int, first: int) -> int:
        return c + sum(half(a, i) * byte(b, i + first, right == "s32") for i in range(2))

    kinds = ["b32", "b32", "s32"]
    compare(f"dp4a.{left}.{right} d, a, b, c;", "s32", kinds, dp4a)
    compare(f"dp2a.lo.{left}.{right} d, a, b, c;", "s32", kinds, lambda a, b, c: dp2a(a, b, c, 0))
    compare(f"dp2a.hi.{left}.{right} d, a, b, c;", "s32", kinds, lambda a, b, c: dp2a(a, b, c, 2))


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_logic(kind: str) -> None:
    """and, or, xor, not and cnot work on every bit."""
    compare(f"and.{kind} d, a, b;", kind, [kind] * 2, lambda a, b: a & b)
    compare(f"or.{kind} d, a, b;", kind, [kind] * 2, lambda a, b: a | b)
    compare(f"xor.{kind} d, a, b;", kind, [kind] * 2, lambda a, b: a ^ b)
    compare(f"not.{kind} d, a;", kind, [kind], lambda a: ~a)
    compare(f"cnot.{kind} d, a;", kind, [kind], lambda a: int(a == 0))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts(bits: int) -> None:
    """A shift by the width or more gives 0, or the sign."""
    code = [f"shl.b{bits}", f"shr.u{bits}", f"shr.s{bits}"]
    compare(f"{code[0]} d, a, b;", f"b{bits}", [f"b{bits}", "u32"], lambda a, n: a << min(n, 64))
    compare(f"{code[1]} d, a, b;", f"u{bits}", [f"u{bits}", "u32"], lambda a, n: a >> min(n, 64))
    compare(f"{code[2]} d, a, b;", f"s{bits}", [f"s{bits}", "u32"], lambda a, n: a >> min(n, 64))


def test_funnel_shifts() -> None:
    """shf shifts two words as one; the count wraps at 32 or stops there."""
    kinds = ["b32", "b32", "u32"]

    def left(low: int, high: int, n: int) -> int:
        return ((high << 32 | low) << n) >> 32

    def right(low: int, high: int, n: int) -> int:
        return (high << 32 | low) >> n

    compare("shf.l.wrap.b32 d, a, b, c;", "b32", kinds, lambda a, b, n: left(a, b, n & 31))
    compare("shf.r.wrap.b32 d, a, b, c;", "b32", kinds, lambda a, b, n: right(a, b, n & 31))
    compare("shf.l.clamp.b32 d, a, b, c;", "b32", kinds, lambda a, b, n: left(a, b, min(n, 32)))
    compare("shf.r.clamp.b32 d, a, b, c;", "b32", kinds, lambda a, b, n: right(a, b, min(n, 32)))


@pytest.mark.parametrize("table", [0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x00, 0xFF, 0x1D])
def test_lop3(table: int) -> None:
    """Bit (a, b, c) of the table is the result for those bits."""

    def model(a: int, b: int, c: int) -> int:
        picks = ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1) for i in range(32))
        return sum((table >> pick & 1) << i for i, pick in enumerate(picks))

    compare(f"lop3.b32 d, a, b, c, {table};", "b32", ["b32"] * 3, model)


@pytest.mark.parametrize("bits", [32, 64])
def test_counting(bits: int) -> None:
    """popc, clz, brev and bfind look at every bit."""
    kind = f"b{bits}"
    compare(f"popc.{kind} d, a;", "u32", [kind], lambda a: a.bit_count())
    compare(f"clz.{kind} d, a;", "u32", [kind], lambda a: bits - a.bit_length())
    compare(f"brev.{kind} d, a;", kind, [kind], lambda a: int(f"{a:0{bits}b}"[::-1], 2))
    compare(f"bfind.u{bits} d, a;", "u32", [f"u{bits}"], lambda a: a.bit_length() - 1)
    compare(
        f"bfind.s{bits} d, a;",
        "u32",
        [f"s{bits}"],
        lambda a: (a if a >= 0 else ~a).bit_length() - 1,
    )
    compare(
        f"bfind.shiftamt.u{bits} d, a;",
        "u32",
        [f"u{bits}"],
        lambda a: bits - a.bit_length() if a else -1,
    )


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_fields(bits: int) -> None:
    """bfe and bfi of 32 bits read the low 8 bits of position and length, those of 64 all."""

    def field(position: int, length: int) -> tuple[int, int]:
        if bits == 32:
            return position & 255, length & 255
        return min(position, 64), min(length, 64)

    def bfe(a: int, position: int, length: int, signed: bool) -> int:
        position, length = field(position, length)
        if not length:
            return 0
        sign = a >> min(position + length - 1, bits - 1) & 1 if signed else 0
        found = 0
        for i in range(bits):
            inside = i < length and position + i < bits
            found |= (a >> (position + i) & 1 if inside else sign) << i
        return found

    def bfi(a: int, b: int, position: int, length: int) -> int:
        position, length = field(position, length)
        found = b
        for i in range(length):
            if position + i < bits:
                at = position + i
                found = found & ~(1 << at) | (a >> i & 1) << at
        return found

    for kind in (f"u{bits}", f"s{bits}"):
        compare(
            f"bfe.{kind} d, a, b, c;",
            kind,
            [kind, "u32", "u32"],
            lambda a, p, n, k=kind: bfe(a, p, n, k[0] == "s"),
        )
    compare(f"bfi.b{bits} d, a, b, c, e;", f"b{bits}", [f"b{bits}"] * 2 + ["u32"] * 2, bfi)


def test_byte_permutation() -> None:
    """prmt picks bytes of two words; bit 3 of a pick replicates the byte's sign."""

    def model(a: int, b: int, selector: int) -> int:
        found = 0
        for i in range(4):
            pick = selector >> (4 * i) & 15
            value = (b << 32 | a) >> (8 * (pick & 7)) & 255
            value = (255 if value > 127 else 0) if pick & 8 else value
            found |= value << (8 * i)
        return found

    compare("prmt.b32 d, a, b, c;", "b32", ["b32"] * 3, model)
    for selector in (0x3210, 0x7654, 0x5410, 0xBA98, 0x0123):
        compare(
            f"prmt.b32 d, a, b, {selector};",
            "b32",
            ["b32"] * 2,
            lambda a, b, s=selector: model(a, b, s),
        )


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str, kind: str) -> None:
    """setp and selp, and set, as Python compares."""
    test = COMPARISONS[name]
    code = f"setp.{name}.{kind} p, a, b; selp.b32 d, 1, 0, p;"
    compare(code, "u32", [kind] * 2, lambda a, b: int(test(a, b)))
    compare(f"set.{name}.u32.{kind} d, a, b;", "u32", [kind] * 2, lambda a, b: -int(test(a, b)))


def test_combined_predicates() -> None:
    """setp p|q: p is the test, q its opposite, both combined with c."""
    code = """
    .reg .pred r; .reg .u32 x; setp.ne.u32 r, c, 0; setp.lt.and.s32 p|q, a, b, r;
    selp.u32 d, 1, 0, p; selp.u32 x, 2, 0, q; or.b32 d, d, x;"""
    compare(
        code,
        "u32",
        ["s32", "s32", "u32"],
        lambda a, b, c: (int(a < b) + 2 * int(a >= b)) if c else 0,
    )


def test_guards() -> None:
    """A guarded instruction does nothing where its predicate is false."""
    code = "setp.lt.s32 p, a, b; mov.b32 d, 5; @p add.s32 d, d, 1; @!p add.s32 d, d, 2;"
    compare(code, "s32", ["s32"] * 2, lambda a, b: 6 if a < b else 7)


INTEGER_TYPES = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]


@pytest.mark.parametrize("source", INTEGER_TYPES[2:])
@pytest.mark.parametrize("target", INTEGER_TYPES[2:])
def test_integer_conversions(target: str, source: str) -> None:
    """cvt cuts or extends by the source's sign; .sat clamps to the target's range."""
    code = f"cvt.{target}.{source} d, a;"
    compare(code, target, [source], lambda a: a)
    if saturates(target, source):
        code = f"cvt.sat.{target}.{source} d, a;"
        compare(code, target, [source], lambda a: clamp(a, target))


def saturates(target: str, source: str) -> bool:
    """Whether a value of *source* may be out of the range of *target*; only then .sat is PTX."""
    low, high = limits(target)
    least, most = limits(source)
    return least < low or most > high


@pytest.mark.parametrize("kind", ["u8", "s8"])
def test_bytes(kind: str) -> None:
    """cvt from 8 bits reads the low byte of a register, and to 8 bits extends it again."""
    signed = kind == "s8"
    compare(f"cvt.s32.{kind} d, a;", "s32", ["b32"], lambda a: byte(a, 0, signed))
    compare(f"cvt.{kind}.s32 d, a;", "s32", ["s32"], lambda a: byte(a, 0, signed))
    compare(f"cvt.sat.{kind}.s32 d, a;", "s32", ["s32"], lambda a: clamp(a, kind))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_random_values(data: st.DataObject) -> None:
    """Random operands agree with the definitions too."""
    name = data.draw(st.sampled_from(sorted(SIMPLE)))
    kind = data.draw(st.sampled_from(SIZES))
    low, high = limits(kind)
    values = st.lists(st.integers(low, high), min_size=16, max_size=16)
    a, b = data.draw(values), data.draw(values)
    arrays = [np.array(side, dtype(kind)) for side in (a, b)]
    got = elementwise(f"{name}.{kind} d, a, b;", kind, [kind, kind], *arrays)
    assert got.tolist() == [wrap(SIMPLE[name](x, y), kind) for x, y in zip(a, b, strict=False)]
