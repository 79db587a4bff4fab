"""Instructions by name: each answers what NumPy or Python does, for each of its types."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import compiler as cuda
from compiler import TypingError
from compiler.lang.ptx import FORMS

GENERATORS = ["llvm", "nvvm"]
I32, U32, I64, U64 = np.int32, np.uint32, np.int64, np.uint64
RNG = np.random.default_rng(7)


def calls(function, *columns, codegen=None, out=None):
    """The results of *function* on each row of the columns."""
    count = len(columns)

    @cuda.jit(codegen=codegen)
    def one(a, o):
        i = cuda.grid(1)
        if i < o.size:
            o[i] = function(a[i])

    @cuda.jit(codegen=codegen)
    def two(a, b, o):
        i = cuda.grid(1)
        if i < o.size:
            o[i] = function(a[i], b[i])

    @cuda.jit(codegen=codegen)
    def three(a, b, c, o):
        i = cuda.grid(1)
        if i < o.size:
            o[i] = function(a[i], b[i], c[i])

    result = np.zeros(len(columns[0]), out or columns[0].dtype)
    (one, two, three)[count - 1][1, len(result)](*columns, result)
    return result


def integers(dtype, count=64):
    """Random numbers of every length, and the ends of the range."""
    info = np.iinfo(dtype)
    words = RNG.integers(0, 2**63, count, dtype=U64) * U64(2) >> RNG.integers(
        0, 64, count, dtype=U64
    )
    words[:4] = [0, 1, info.max & (2**64 - 1), info.min & (2**64 - 1)]
    return words.astype(dtype)


def bits_of(x):
    """The bits of an integer, as many as its type has, as text."""
    width = x.dtype.itemsize * 8
    return format(int(x) & (2**width - 1), f"0{width}b")


@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("dtype", [I32, U32, I64, U64])
def test_bits(dtype, codegen):
    """popc, clz, ffs and brev of 32 and 64 bits, zero among them."""
    x = integers(dtype)
    text = [bits_of(v) for v in x]
    width = x.dtype.itemsize * 8
    expected = {
        cuda.popc: [t.count("1") for t in text],
        cuda.clz: [width - len(t.lstrip("0")) for t in text],
        cuda.ffs: [0 if "1" not in t else width - t.rindex("1") for t in text],
    }
    for function, wanted in expected.items():
        np.testing.assert_array_equal(calls(function, x, codegen=codegen, out=I32), wanted)
    reversed_ = [int(t[::-1], 2) for t in text]
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    result = calls(cuda.brev, x, codegen=codegen).view(unsigned)
    np.testing.assert_array_equal(result, np.array(reversed_, unsigned))


def test_narrow_and_python_integers():
    """Narrower integers count as 32 bits, Python's ints as 64, as ffs and clz show."""

    @cuda.jit
    def kernel(a, b, o):
        o[0] = cuda.popc(a[0])
        o[1] = cuda.clz(b[0])
        o[2] = cuda.clz(1)
        o[3] = cuda.ffs(2**40)
        o[4] = cuda.popc(2**64 - 1 - 2**63)
        o[5] = cuda.ffs(True)

    out = np.zeros(6, np.int64)
    kernel[1, 1](np.array([-1], np.int8), np.array([1], np.uint16), out)
    np.testing.assert_array_equal(out, [32, 31, 63, 41, 63, 1])


@pytest.mark.parametrize("name", ["l", "lc", "r", "rc"])
def test_funnel_shifts(name):
    """Counts below, at and above 32."""
    low, high, count = integers(U32), integers(U32), RNG.integers(0, 70, 64, dtype=U32)
    n = np.minimum(count, 32) if name.endswith("c") else count & 31
    whole = [(int(h) << 32 | int(x)) for h, x in zip(high, low, strict=True)]
    wanted = [
        (w << int(k) >> 32 if name[0] == "l" else w >> int(k)) & 0xFFFFFFFF
        for w, k in zip(whole, n, strict=True)
    ]
    result = calls(getattr(cuda, f"funnelshift_{name}"), low, high, count)
    np.testing.assert_array_equal(result, np.array(wanted, U32))


@pytest.mark.parametrize("dtype", [I32, U32, I64, U64])
def test_products_differences_and_fields(dtype):
    """mulhi, sad and bfe against Python's unlimited integers."""
    x, y, z = integers(dtype), integers(dtype)[::-1].copy(), integers(dtype)
    width = x.dtype.itemsize * 8
    high = np.array([int(a) * int(b) >> width for a, b in zip(x, y, strict=True)], dtype)
    np.testing.assert_array_equal(calls(cuda.mulhi, x, y), high)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    total = [(abs(int(a) - int(b)) + int(c)) % 2**width for a, b, c in zip(x, y, z, strict=True)]
    np.testing.assert_array_equal(
        calls(cuda.sad, x, y, z).view(unsigned), np.array(total, unsigned)
    )
    start, length = RNG.integers(0, 16, (2, 64), dtype=U32)
    wanted = []
    for a, at, size in zip(x, start, length, strict=True):
        field = (int(a) & (2**width - 1)) >> int(at) & (2 ** int(size) - 1)
        negative = x.dtype.kind == "i" and size and field >> (int(size) - 1)
        wanted.append(field - (2 ** int(size) if negative else 0))
    np.testing.assert_array_equal(calls(cuda.bfe, x, start, length), np.array(wanted, dtype))


def test_saturating_and_packed_arithmetic():
    """add_sat and sub_sat stay in int32; dp4a of signed and unsigned bytes; byte_perm."""
    x, y, z = integers(I32), integers(I32)[::-1].copy(), RNG.integers(-99, 99, 64, dtype=I32)
    for function, sign in ((cuda.add_sat, 1), (cuda.sub_sat, -1)):
        exact = x.astype(I64) + sign * y.astype(I64)
        np.testing.assert_array_equal(
            calls(function, x, y), np.clip(exact, -(2**31), 2**31 - 1).astype(I32)
        )
    for dtype, byte in ((I32, np.int8), (U32, np.uint8)):
        a, b, c = x.view(dtype), y.view(dtype), np.abs(z).astype(dtype)
        products = a.view(byte).astype(I64) * b.view(byte)
        wanted = (products.reshape(64, 4).sum(1) + c).astype(dtype)
        np.testing.assert_array_equal(calls(cuda.dp4a, a, b, c), wanted)
    selector = RNG.integers(0, 2**16, 64, dtype=U32) & U32(0x7777)
    pool = np.stack([x, y], 1).view(np.uint8)
    picks = np.stack([selector >> U32(4 * k) & U32(7) for k in range(4)], 1)
    wanted = np.take_along_axis(pool, picks.astype(I64), 1).copy().view(U32).ravel()
    np.testing.assert_array_equal(calls(cuda.byte_perm, x.view(U32), y.view(U32), selector), wanted)


def rounded(exact: Fraction, mode: str, dtype) -> float:
    """*exact* as the nearest, or next lower or higher, number of the type."""
    near = dtype(float(exact)) if dtype is np.float64 else _nearest(exact)
    if mode == "rn" or Fraction(float(near)) == exact:
        return near
    up = Fraction(float(near)) < exact
    above = np.nextafter(near, dtype(np.inf)) if up else near
    below = near if up else np.nextafter(near, dtype(-np.inf))
    towards = "rd" if exact > 0 else "ru"
    return above if (towards if mode == "rz" else mode) == "ru" else below


def _nearest(exact: Fraction) -> np.float32:
    near = np.float32(float(exact))
    options = (
        near,
        np.nextafter(near, np.float32(np.inf)),
        np.nextafter(near, np.float32(-np.inf)),
    )
    return min(options, key=lambda o: (abs(Fraction(float(o)) - exact), int(o.view(U32)) & 1))


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_modes(dtype, mode):
    """Sums, differences, products, quotients, fma: rounded once, in the direction asked for."""
    x, y, z = (RNG.normal(size=32).astype(dtype) for _ in range(3))
    operations = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b, "rcp": lambda a: 1 / a, "fma": lambda a, b, c: a * b + c,
    }  # fmt: skip
    columns = {"rcp": (x,), "fma": (x, y, z)}
    for name, exact in operations.items():
        given = columns.get(name, (x, y))
        rows = zip(*given, strict=True)
        wanted = [rounded(exact(*(Fraction(float(v)) for v in row)), mode, dtype) for row in rows]
        result = calls(getattr(cuda, f"{name}_{mode}"), *given)
        np.testing.assert_array_equal(result, np.array(wanted, dtype), err_msg=name)
    root = calls(getattr(cuda, f"sqrt_{mode}"), np.abs(x))
    for value, square in zip(root, np.abs(x), strict=True):
        error = Fraction(float(value)) ** 2 - Fraction(float(square))
        assert mode == "rn" or error == 0 or (error > 0) == (mode == "ru")


FAST = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh, "exp": math.exp,
    "exp2": lambda x: 2.0**x, "exp10": lambda x: 10.0**x, "log": math.log, "log2": math.log2,
    "log10": math.log10, "sqrt": math.sqrt, "rsqrt": lambda x: x**-0.5, "rcp": lambda x: 1 / x,
}  # fmt: skip


@pytest.mark.parametrize("name", FAST)
def test_approximations(name):
    """Within the bound of the PTX manual for numbers of ordinary size."""
    x = np.linspace(0.1, 1.4, 64, dtype=np.float32)
    wanted = [FAST[name](float(v)) for v in x]
    result = calls(getattr(cuda, f"fast_{name}"), x)
    bound = {"tanh": 5e-4, "tan": 2e-5}.get(name, 4e-6)
    np.testing.assert_allclose(result, wanted, rtol=bound, atol=1e-6)


def test_the_other_approximations():
    """fast_div, fast_pow, saturate, fma and selp."""
    x, y = np.linspace(0.1, 3, 64, dtype=np.float32), np.linspace(2, -2, 64, dtype=np.float32)
    np.testing.assert_allclose(calls(cuda.fast_div, y, x), y / x, rtol=1e-6)
    np.testing.assert_allclose(calls(cuda.fast_pow, x, y), x**y, rtol=1e-5)
    np.testing.assert_array_equal(calls(cuda.saturate, y), np.clip(y, 0, 1))
    half = x.astype(np.float16)
    wanted = (half.astype(np.float64) * half + half).astype(np.float16)
    np.testing.assert_array_equal(calls(cuda.fma, half, half, half), wanted)
    np.testing.assert_array_equal(
        calls(cuda.selp, y > 0, x, y, out=np.float32), np.where(y > 0, x, y)
    )


def test_clocks_go_forward():
    """Two readings of one thread are in order, and the places are within bounds."""

    @cuda.jit
    def kernel(o):
        o[0] = cuda.clock64()
        o[1] = cuda.globaltimer()
        cuda.nanosleep(1000)
        o[2] = cuda.clock64()
        o[3] = cuda.globaltimer()
        o[4] = cuda.smid() < cuda.nsmid() and cuda.warpid() < cuda.nwarpid()
        o[5] = cuda.clock() - cuda.clock() + cuda.gridid()

    out = np.zeros(6, np.uint64)
    kernel[1, 1](out)
    assert out[2] > out[0] and out[3] >= out[1] and out[4] == 1


@pytest.mark.parametrize("codegen", GENERATORS)
def test_inline_ptx(codegen):
    """Results of each letter, several at once, given types, an address, and none at all."""

    @cuda.jit(codegen=codegen)
    def kernel(a, o):
        i = cuda.threadIdx.x
        o[0, i] = cuda.asm("add.u32 $0, $1, 7;", "=r,r", i)
        o[1, i] = cuda.asm("neg.s32 $0, $1;", "=r,r", i, returns=cuda.int32)
        low, high = cuda.asm("mov.b64 {$0, $1}, $2;", "=r,=r,d", a[i])
        o[2, i] = high * 2.0**32 + low
        o[3, i] = cuda.asm("ld.global.f64 $0, [$1 + 8];", "=d,l,memory", a)
        cuda.asm(
            """
            membar.cta;
            """,
            "",
        )
        o[4, i] = cuda.asm("mul.f32 $0, $1, $1;", "=f,f", 3, volatile=False)

    a, out = np.array([1.5, 2.5, -3.5, 4.5]), np.zeros((5, 4))
    kernel[1, 4](a, out)
    expected = [np.arange(4) + 7, -np.arange(4), a.view(np.uint64), [2.5] * 4, [9.0] * 4]
    np.testing.assert_array_equal(out, np.array(expected, float))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("add", 3), "constraints must be a constant string"),
        (("add", "=q"), "'q' is none of h, r, l, f, d"),
        (("add", "=r,r"), "0 arguments for 1 constraints"),
        (('add "', ""), "no quotes"),
    ],
)
def test_bad_inline_ptx_is_refused(arguments, text):
    """Before any assembler sees it."""

    @cuda.jit
    def kernel(a):
        cuda.asm(*arguments)

    with pytest.raises(TypingError, match=text):
        kernel[1, 1](np.zeros(1))


def test_each_form_has_a_type_and_a_text():
    """The table has no two forms of the same types under one name."""
    for stub, forms in FORMS.items():
        assert len({form.args for form in forms}) == len(forms), stub
        assert stub.__doc__.startswith(stub.__name__)
