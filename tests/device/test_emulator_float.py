"""Floating point instructions are exact where PTX says so, and close where it says how close."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.device.ptx import Array, elementwise

FLOATS = {"f32": np.float32, "f64": np.float64}
EDGES = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 0.1, -0.3, 1e-3, 7.0, 1e10, -1e20, 1e-30,
    math.inf, -math.inf, math.nan, 16777217.0, 2147483648.0, 4294967296.0, -2147483649.0, 1e19,
    255.5, -128.5, 65504.0, 65519.0, 65520.0, 3.4e38, 1e-40, -1e-45, 1.17549435e-38, 5.9e-8, 6e-5,
]  # fmt: skip


def values(kind: str) -> Array:
    """Telling values of a floating point type."""
    with np.errstate(over="ignore"):
        found = np.array(EDGES, FLOATS[kind])
    if kind == "f64":
        found = np.append(found, [5e-324, 1.7e308, 2.0**53 + 1, 0.1 + 0.2])
    rng = np.random.default_rng(3)
    scale = np.exp(rng.uniform(-40, 40, 40))
    return np.append(found, (rng.standard_normal(40) * scale).astype(FLOATS[kind]))


def combinations(*kinds: str) -> list[Array]:
    """Every combination of telling values, at most 20,000 of them."""
    arrays = [grid.ravel() for grid in np.meshgrid(*map(values, kinds), indexing="ij")]
    if len(arrays[0]) > 20_000:
        picked = np.random.default_rng(2).choice(len(arrays[0]), 20_000, replace=False)
        arrays = [array[picked] for array in arrays]
    return arrays


def assert_same(got: Array, wanted: Array, *inputs: Array) -> None:
    """The same bits, any NaN for NaN."""
    size = f"u{got.dtype.itemsize}"
    wanted = wanted.astype(got.dtype)
    same = (got.view(size) == wanted.view(size)) | (np.isnan(got) & np.isnan(wanted))
    wrong = np.flatnonzero(~same)[:5]
    assert not len(wrong), [(*(a[i] for a in inputs), got[i], wanted[i]) for i in wrong]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_is_ieee(name: str, kind: str) -> None:
    """add, sub, mul and div round to nearest, as NumPy does."""
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
    a, b = combinations(kind, kind)
    with np.errstate(all="ignore"):
        wanted = functions[name](a, b)
    assert_same(elementwise(f"{name}.rn.{kind} d, a, b;", kind, [kind] * 2, a, b), wanted, a, b)


@pytest.mark.parametrize("kind", FLOATS)
def test_roots_are_ieee(kind: str) -> None:
    """sqrt and rcp round to nearest."""
    (a,) = combinations(kind)
    with np.errstate(all="ignore"):
        assert_same(elementwise(f"sqrt.rn.{kind} d, a;", kind, [kind], a), np.sqrt(a), a)
        wanted = FLOATS[kind](1) / a
        assert_same(elementwise(f"rcp.rn.{kind} d, a;", kind, [kind], a), wanted, a)


def round_fraction(value: Fraction, kind: str, mode: str) -> float:
    """An exact number in a floating point type, by rounding mode; finite results only."""
    if not value:
        return 0.0
    precision, lowest = (24, -149) if kind == "f32" else (53, -1074)
    exponent = math.floor(math.log2(abs(value))) if abs(value) < 2**1000 else 1000
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    while Fraction(2) ** exponent > abs(value):
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, lowest)
    scaled = value / unit
    floor = math.floor(scaled)
    whole = {
        "rz": math.trunc(scaled),
        "rm": floor,
        "rp": math.ceil(scaled),
        "rn": round(scaled),
    }[mode]
    result = float(whole * unit)
    return result if result else math.copysign(0.0, float(value))


EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("mode", ["rz", "rm", "rp", "rn"])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_rounding_modes(name: str, kind: str, mode: str) -> None:
    """Each rounding mode gives the exact result rounded that way."""
    count = 3 if name == "fma" else 2
    rng = np.random.default_rng(5)
    arrays = [(rng.standard_normal(300) * 3).astype(FLOATS[kind]) for _ in range(count)]
    arrays[1][:50] *= FLOATS[kind](1e-4)
    names = ", ".join("abc"[:count])
    got = elementwise(f"{name}.{mode}.{kind} d, {names};", kind, [kind] * count, *arrays)
    exact = [EXACT[name](*map(Fraction, map(float, row))) for row in zip(*arrays, strict=False)]
    wanted = np.array([round_fraction(value, kind, mode) for value in exact], FLOATS[kind])
    assert_same(got, wanted, *arrays)


@pytest.mark.parametrize("kind", FLOATS)
def test_fma_rounds_once(kind: str) -> None:
    """fma has no rounding between product and sum; mul and add are never fused."""
    rng = np.random.default_rng(7)
    a, b = ((rng.standard_normal(400)).astype(FLOATS[kind]) for _ in range(2))
    c = -(a * b)
    got = elementwise(f"fma.rn.{kind} d, a, b, c;", kind, [kind] * 3, a, b, c)
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a, b, c, strict=False)
    ]
    assert_same(
        got, np.array([round_fraction(e, kind, "rn") for e in exact], FLOATS[kind]), a, b, c
    )
    assert np.any(got)
    code = f"mul.rn.{kind} d, a, b; add.rn.{kind} d, d, c;"
    assert not np.any(elementwise(code, kind, [kind] * 3, a, b, c))


@pytest.mark.parametrize("kind", FLOATS)
def test_minimum_and_maximum(kind: str) -> None:
    """min and max prefer numbers to NaN and order the zeros; abs and neg touch the sign only."""
    a, b = combinations(kind, kind)
    low, high = np.fmin(a, b), np.fmax(a, b)
    zeros = (a == 0) & (b == 0)
    low = np.where(zeros, np.where(np.signbit(a) | np.signbit(b), -0.0, 0.0), low)
    high = np.where(zeros, np.where(np.signbit(a) & np.signbit(b), -0.0, 0.0), high)
    assert_same(elementwise(f"min.{kind} d, a, b;", kind, [kind] * 2, a, b), low, a, b)
    assert_same(elementwise(f"max.{kind} d, a, b;", kind, [kind] * 2, a, b), high, a, b)
    assert_same(elementwise(f"abs.{kind} d, a;", kind, [kind], a), np.abs(a), a)
    assert_same(elementwise(f"neg.{kind} d, a;", kind, [kind], a), -a, a)
    wanted = np.copysign(b, a)
    assert_same(elementwise(f"copysign.{kind} d, a, b;", kind, [kind] * 2, a, b), wanted, a, b)


def test_flush_to_zero() -> None:
    """.ftz makes subnormal inputs and results zero; without it they stay."""
    a, b = combinations("f32", "f32")

    def flush(x: Array) -> Array:
        return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)

    with np.errstate(all="ignore"):
        wanted = flush(flush(a) * flush(b))
        got = elementwise("mul.rn.ftz.f32 d, a, b;", "f32", ["f32"] * 2, a, b)
        assert_same(got, wanted, a, b)
        assert_same(elementwise("mul.f32 d, a, b;", "f32", ["f32"] * 2, a, b), a * b, a, b)


def test_saturation() -> None:
    """.sat clamps to 0 .. 1, and NaN to 0."""
    a, b = combinations("f32", "f32")
    with np.errstate(all="ignore"):
        total = a + b
    wanted = np.where(np.isnan(total), 0, np.clip(total, 0, 1)) + np.float32(0)
    assert_same(elementwise("add.sat.f32 d, a, b;", "f32", ["f32"] * 2, a, b), wanted, a, b)


ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ORDERED)
def test_comparisons(name: str, kind: str) -> None:
    """Plain comparisons are false with NaN, those ending in u are true."""
    a, b = combinations(kind, kind)
    nan = np.isnan(a) | np.isnan(b)
    code = "setp.{}.{} p, a, b; selp.b32 d, 1, 0, p;"
    got = elementwise(code.format(name, kind), "u32", [kind] * 2, a, b)
    assert np.array_equal(got, ORDERED[name](a, b) & ~nan)
    got = elementwise(code.format(name + "u", kind), "u32", [kind] * 2, a, b)
    assert np.array_equal(got, ORDERED[name](a, b) | nan)


@pytest.mark.parametrize("kind", FLOATS)
def test_classes(kind: str) -> None:
    """num, nan and testp tell what a value is."""
    a, b = combinations(kind, kind)
    nan = np.isnan(a) | np.isnan(b)
    code = "setp.{}.{} p, a, b; selp.b32 d, 1, 0, p;"
    assert np.array_equal(elementwise(code.format("nan", kind), "u32", [kind] * 2, a, b), nan)
    assert np.array_equal(elementwise(code.format("num", kind), "u32", [kind] * 2, a, b), ~nan)
    (a,) = combinations(kind)
    tiny = np.finfo(FLOATS[kind]).tiny
    classes = {
        "finite": np.isfinite(a),
        "infinite": np.isinf(a),
        "number": ~np.isnan(a),
        "notanumber": np.isnan(a),
        "normal": np.isfinite(a) & ((np.abs(a) >= tiny) | (a == 0)),
        "subnormal": (a != 0) & (np.abs(a) < tiny),
    }
    for name, wanted in classes.items():
        code = f"testp.{name}.{kind} p, a; selp.b32 d, 1, 0, p;"
        assert np.array_equal(elementwise(code, "u32", [kind], a), wanted), name


INTEGERS = {
    "s16": (-(2**15), 2**15 - 1), "u16": (0, 2**16 - 1), "s32": (-(2**31), 2**31 - 1),
    "u32": (0, 2**32 - 1), "s64": (-(2**63), 2**63 - 1), "u64": (0, 2**64 - 1),
}  # fmt: skip
ROUND: dict[str, Callable[[float], int]] = {
    "rzi": math.trunc, "rni": round, "rmi": math.floor, "rpi": math.ceil,
}  # fmt: skip


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("kind", FLOATS)
def test_float_to_integer(kind: str, target: str, mode: str) -> None:
    """cvt rounds, then clamps; NaN gives 0, or the top bit where either side has 64 bits."""
    (a,) = combinations(kind)
    got = elementwise(f"cvt.{mode}.{target}.{kind} d, a;", target, [kind], a)
    low, high = INTEGERS[target]
    bits = int(target[1:])
    nan = 1 << (bits - 1) if "64" in kind + target else 0

    def model(x: float) -> int:
        if math.isnan(x):
            return nan
        if math.isinf(x):
            return high if x > 0 else low
        return min(max(ROUND[mode](x), low), high)

    mask = (1 << bits) - 1
    wanted = [model(float(x)) & mask for x in a]
    assert [int(x) & mask for x in got] == wanted


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64"])
def test_integer_to_float(source: str, kind: str, mode: str) -> None:
    """cvt from integers rounds exactly."""
    low, high = INTEGERS[source]
    rng = np.random.default_rng(11)
    numbers = [low, high, 0, 1, high // 3, (1 << 24) + 1, (1 << 25) + 3, high - 1]
    numbers += [int(x) for x in rng.integers(low, high, 100, dtype=f"{'i' if low else 'u'}8")]
    array = np.array(numbers, f"{'i' if low else 'u'}{int(source[1:]) // 8}")
    got = elementwise(f"cvt.{mode}.{kind}.{source} d, a;", kind, [source], array)
    wanted = [round_fraction(Fraction(x), kind, mode) for x in numbers]
    assert_same(got, np.array(wanted, FLOATS[kind]), array)


def test_between_floats() -> None:
    """f64 to f32 rounds in every mode, f32 to f64 is exact, and rounding to whole numbers works."""
    (a,) = combinations("f64")
    with np.errstate(all="ignore"):
        wanted = a.astype(np.float32)
    assert_same(elementwise("cvt.rn.f32.f64 d, a;", "f32", ["f64"], a), wanted, a)
    finite = a[np.isfinite(a) & (np.abs(a) < 3e38) & (a != 0)]
    for mode in ("rz", "rm", "rp"):
        got = elementwise(f"cvt.{mode}.f32.f64 d, a;", "f32", ["f64"], finite)
        wanted = np.array([round_fraction(Fraction(x), "f32", mode) for x in finite.tolist()], "f4")
        assert_same(got, wanted, finite)
    (b,) = combinations("f32")
    assert_same(elementwise("cvt.f64.f32 d, a;", "f64", ["f32"], b), b.astype("f8"), b)
    whole = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
    for mode, function in whole.items():
        got = elementwise(f"cvt.{mode}.f32.f32 d, a;", "f32", ["f32"], b)
        assert_same(got, function(b), b)


def as_bfloat(x: Array) -> Array:
    """f32 values as the bits of bf16, rounded to nearest even."""
    bits = x.view("u4").astype("u8")
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded)


def test_half_precision_conversions() -> None:
    """f16 and bf16 round to nearest even, also from f64 in one step."""
    (a,) = combinations("f64")
    (b,) = combinations("f32")
    with np.errstate(all="ignore"):
        got = elementwise("cvt.rn.f16.f32 d, a;", "f16", ["f32"], b)
        assert_same(got.view("f2"), b.astype("f2"), b)
        got = elementwise("cvt.rn.f16.f64 d, a;", "f16", ["f64"], a)
        assert_same(got.view("f2"), a.astype("f2"), a)
    every = np.arange(65536, dtype="u2")
    got = elementwise("cvt.f32.f16 d, a;", "f32", ["f16"], every.view("f2"))
    assert_same(got, every.view("f2").astype("f4"), every)
    got = elementwise("cvt.rn.bf16.f32 d, a;", "bf16", ["f32"], b)
    nan = np.isnan(b)
    assert np.array_equal(got[~nan], as_bfloat(b)[~nan])
    assert np.all((got[nan] & 0x7FFF) > 0x7F80)


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_half_arithmetic(name: str) -> None:
    """f16 and f16x2 arithmetic round to nearest."""
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    rng = np.random.default_rng(13)
    a, b = (rng.integers(0, 65536, 4000).astype("u2").view("f2") for _ in range(2))
    with np.errstate(all="ignore"):
        wanted = functions[name](a, b)
    got = elementwise(f"{name}.rn.f16 d, a, b;", "f16", ["f16"] * 2, a, b).view("f2")
    assert_same(got, wanted, a, b)
    pairs = [x.view("u4") for x in (a, b)]
    got = elementwise(f"{name}.rn.f16x2 d, a, b;", "f16x2", ["f16x2"] * 2, *pairs).view("f2")
    assert_same(got, wanted, a, b)


def test_half_fma() -> None:
    """fma of f16 rounds once."""
    rng = np.random.default_rng(17)
    a, b, c = ((rng.standard_normal(2000) * 4).astype("f2") for _ in range(3))
    got = elementwise("fma.rn.f16 d, a, b, c;", "f16", ["f16"] * 3, a, b, c).view("f2")
    exact = [float(x) * float(y) + float(z) for x, y, z in zip(a, b, c, strict=False)]
    assert_same(got, np.array(exact).astype("f2"), a, b, c)


def test_packing_conversion() -> None:
    """cvt.rn.f16x2.f32 puts its first operand in the upper half."""
    a, b = combinations("f32", "f32")
    with np.errstate(all="ignore"):
        high, low = (x.astype("f2").view("u2").astype("u4") for x in (a, b))
    keep = ~(np.isnan(a) | np.isnan(b))
    got = elementwise("cvt.rn.f16x2.f32 d, a, b;", "b32", ["f32"] * 2, a, b)
    assert np.array_equal(got[keep], (high << 16 | low)[keep])


APPROXIMATE: dict[str, tuple[Callable[[Array], Array], float, float, float]] = {
    "rcp.approx": (lambda x: 1 / x, 2e-7, 0.01, 1e4),
    "sqrt.approx": (np.sqrt, 3e-7, 0.01, 1e6),
    "rsqrt.approx": (lambda x: 1 / np.sqrt(x), 3e-7, 0.01, 1e6),
    "sin.approx": (np.sin, 2e-6, -3.1, 3.1),
    "cos.approx": (np.cos, 2e-6, -3.1, 3.1),
    "lg2.approx": (np.log2, 3e-6, 0.01, 1e6),
    "ex2.approx": (np.exp2, 5e-7, -20, 20),
    "tanh.approx": (np.tanh, 1e-3, -5, 5),
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations(name: str) -> None:
    """The approximate functions are as close as the manual asks."""
    function, error, low, high = APPROXIMATE[name]
    x = np.linspace(low, high, 1000).astype("f4")
    got = elementwise(f"{name}.f32 d, a;", "f32", ["f32"], x)
    wanted = function(x.astype("f8"))
    assert np.max(np.abs(got - wanted) / np.maximum(np.abs(wanted), 1)) <= error


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_random_bits(data: st.DataObject) -> None:
    """add and mul agree with IEEE on any bit patterns."""
    kind, code = data.draw(st.sampled_from([("f32", "f"), ("f64", "d")]))
    name, function = data.draw(st.sampled_from([("add", np.add), ("mul", np.multiply)]))
    size = struct.calcsize(code)
    patterns = st.binary(min_size=size * 16, max_size=size * 16)
    a, b = (np.frombuffer(data.draw(patterns), FLOATS[kind]) for _ in range(2))
    with np.errstate(all="ignore"):
        wanted = function(a, b)
    assert_same(elementwise(f"{name}.{kind} d, a, b;", kind, [kind] * 2, a, b), wanted, a, b)


def test_selection_by_sign() -> None:
    """slct picks by the sign of its third operand; -0.0 counts as 0 and NaN as negative."""
    signs = np.array([0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf], "f4")
    ones, twos = np.full(7, 1, "u4"), np.full(7, 2, "u4")
    got = elementwise("slct.b32.f32 d, a, b, c;", "b32", ["b32", "b32", "f32"], ones, twos, signs)
    assert got.tolist() == [1, 1, 1, 2, 2, 1, 2]
    assert list(itertools.accumulate(got))[-1] == 10


def bfloat_nearest(exact: Fraction) -> float:
    """The bf16 value nearest to *exact*, ties to even."""
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= abs(exact) < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - 7, -133)
    return float(round(exact / unit) * unit)


def test_bfloat_arithmetic() -> None:
    """bf16 operations round once, subnormals included; bf16x2 does so in both halves."""
    rng = np.random.default_rng(19)
    a, b, c = ((rng.integers(0, 65536, 3000) & 0xBFFF).astype("u2") for _ in range(3))
    x, y, z = ((v.astype("u4") << 16).view("f4").astype("f8") for v in (a, b, c))

    def rounded(exact: Array) -> Array:
        unit = 2.0 ** np.maximum(np.frexp(exact)[1] - 8, -133)
        return np.rint(exact / unit) * unit

    def floats(bits: Array) -> Array:
        return (bits.astype("u4") << 16).view("f4").astype("f8")

    for name, exact in {"add": x + y, "sub": x - y, "mul": x * y}.items():
        got = elementwise(f"{name}.rn.bf16 d, a, b;", "bf16", ["bf16"] * 2, a, b)
        assert np.array_equal(floats(got), rounded(exact)), name
    got = elementwise("fma.rn.bf16 d, a, b, c;", "bf16", ["bf16"] * 3, a, b, c)
    terms = zip(x.tolist(), y.tolist(), z.tolist(), strict=True)
    exact = [Fraction(p) * Fraction(q) + Fraction(r) for p, q, r in terms]
    assert floats(got).tolist() == [bfloat_nearest(v) for v in exact]
    pairs = [v.view("u4") for v in (a, b)]
    got = elementwise("max.bf16x2 d, a, b;", "bf16x2", ["bf16x2"] * 2, *pairs).view("u2")
    assert np.array_equal(got, np.where(x > y, a, b))


def test_tensor_float_conversion() -> None:
    """tf32 keeps ten bits of the fraction; halves go away from zero."""
    a = np.random.default_rng(23).standard_normal(500).astype("f4")
    got = elementwise("cvt.rna.tf32.f32 d, a;", "b32", ["f32"], a).view("f4")
    mantissa, exponent = np.frexp(a.astype("f8"))
    scaled = mantissa * 2**11
    assert np.array_equal(
        got, np.ldexp(np.copysign(np.floor(np.abs(scaled) + 0.5), scaled), exponent - 11)
    )
