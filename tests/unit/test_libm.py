"""Our own functions of math, run by Python on NumPy scalars, against mpmath and C99."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from compiler.lang import libm_single, libm_single_trig
from compiler.lang.libm import BINARY, FUNCTIONS
from compiler.lang.libm_bits import double_as_longlong, fma, longlong_as_double, mul
from tools import fit_libm
from tools.accuracy import CASES, OUTPUT, PROMISED, error, problems, worst

INF, NAN = math.inf, math.nan
TWO_ARGUMENTS = {function.__name__.rstrip("_") for function in BINARY}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Overflow and the like are results here, not mistakes."""
    with np.errstate(all="ignore"):
        yield


# What float64 is held to beyond the promise, in units in the last place.
BOUNDS = {
    "exp": 1.0, "exp2": 1.0, "exp10": 1.2, "expm1": 1.5, "log": 1.0, "log2": 0.6, "log10": 0.6,
    "log1p": 1.0, "sinh": 2.0, "cosh": 2.0, "tanh": 2.5, "asinh": 2.0, "acosh": 2.5,
    "atanh": 2.0, "sin": 1.0, "cos": 1.0, "tan": 2.0, "sinpi": 1.0, "cospi": 1.0, "atan": 1.6,
    "asin": 2.0, "acos": 2.0, "erf": 1.5, "erfc": 3.5, "cbrt": 1.0, "tgamma": 3.5,
    "lgamma": 3.0, "pow": 1.0, "atan2": 2.5, "hypot": 1.2,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_float64_functions_are_accurate(name):
    """Each function stays within its bound for hard arguments and for random ones."""
    found = worst(name, "float64", 60)
    assert found.ulps <= BOUNDS[name] <= PROMISED["float64"], found.args


@pytest.mark.parametrize("name", CASES)
def test_float32_functions_are_accurate(name):
    """A float32 function is within 2 units; one that goes by way of float64 within 0.51."""
    own = hasattr(libm_single, name) or hasattr(libm_single_trig, name) or name in _BY_PARTS
    found = worst(name, "float32", 60, seed=2)
    assert found.ulps <= (PROMISED["float32"] if own else 0.51), found.args


_BY_PARTS = {"pow"}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_for_many_arguments(name):
    """The bounds hold for 5000 arguments in each range."""
    for kind, promised in PROMISED.items():
        found = worst(name, kind, 5000, seed=3)
        assert found.ulps <= promised, found.args


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 333, 355, 10001, 30003])
def test_float32_is_reduced_exactly_near_multiples(n):
    """Beside a multiple of pi/2, where nearly all digits cancel, the rest is still accurate."""
    x = np.float32(n * math.pi / 2)
    for near in (x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(1e9))):
        for name in ("sin", "cos", "tan"):
            assert error(name, "float32", (float(near),)).ulps <= 1.0


def test_document_states_what_holds():
    """docs/accuracy.md has every function, with errors that keep the promise."""
    assert problems(OUTPUT.read_text(encoding="utf-8")) == []
    assert problems("| `exp` | 2.5 | 1.0 | 0.5 | 1.0 | |\n")[-1:] != []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_result_has_the_type_of_the_arguments(name):
    """float32 functions give float32 whatever branch they take."""
    single = name.endswith("f") and name[:-1] in FUNCTIONS
    number = np.float32 if single else np.float64
    for value in (0.5, 0.0, -2.0, 1e30, INF, NAN):
        count = 2 if name.rstrip("f").removeprefix("__nv_") in TWO_ARGUMENTS else 1
        assert np.result_type(FUNCTIONS[name](*[number(value)] * count), number(1)) == number


@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_remainders_are_exact(name):
    """Remainders have no error at all, whatever the exponents."""
    rng = random.Random(3)
    for _ in range(300):
        x, y = (struct.unpack("<d", rng.randbytes(8))[0] for _ in range(2))
        if not math.isfinite(x) or not math.isfinite(y) or y == 0.0:
            continue
        result = FUNCTIONS[f"__nv_{name}"](np.float64(x), np.float64(y))
        assert same(result, getattr(math, name)(x, y)), (x, y)


def test_lgamma_of_negative_numbers():
    """Where lgamma of a negative number crosses zero, the error is small beside 1."""
    rng = random.Random(4)
    for _ in range(200):
        x = rng.uniform(-20.0, -0.01)
        result = FUNCTIONS["__nv_lgamma"](np.float64(x))
        with mp.workprec(200):
            exact = mp.log(abs(mp.gamma(mp.mpf(x))))
        assert abs(float(result - float(exact))) <= 8e-16 * max(1.0, abs(float(exact))), x


def same(a: float, b: float) -> bool:
    """Equal, with the sign of zeros, and nan equal to nan."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)


PI = math.pi
# C99, annex F.9, and POSIX for what it leaves open.
SPECIAL = [
    *(("exp", *case) for case in [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0)]),
    *(("exp2", *case) for case in [(-INF, 0.0), (INF, INF), (10.0, 1024.0), (-1074.0, 5e-324)]),
    *(("exp2", *case) for case in [(1023.0, 2.0**1023), (1024.0, INF), (-1076.0, 0.0)]),
    *(("exp10", *case) for case in [(2.0, 100.0), (INF, INF), (-INF, 0.0), (22.0, 1e22)]),
    *(("expm1", *case) for case in [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0)]),
    *(("expm1", *case) for case in [(5e-324, 5e-324), (710.0, INF)]),
    *(("log", *case) for case in [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN)]),
    *(("log2", *case) for case in [(1.0, 0.0), (8.0, 3.0), (5e-324, -1074.0), (-INF, NAN)]),
    *(("log10", *case) for case in [(1e22, 22.0), (1000.0, 3.0), (0.0, -INF), (INF, INF)]),
    *(("log1p", *case) for case in [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN)]),
    *(("log1p", *case) for case in [(INF, INF), (5e-324, 5e-324)]),
    *((name, *case) for name in ("sin", "tan") for case in [(0.0, 0.0), (-0.0, -0.0)]),
    *((name, x, NAN) for name in ("sin", "cos", "tan", "sinpi", "cospi") for x in (INF, -INF)),
    ("sin", 5e-324, 5e-324),
    ("cos", 0.0, 1.0),
    *(("sinpi", *case) for case in [(1.0, 0.0), (-1.0, -0.0), (-2.5, -1.0), (1e300, 0.0)]),
    *(("cospi", *case) for case in [(0.5, 0.0), (1.0, -1.0), (1e300, 1.0)]),
    *((name, *case) for name in ("asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "cbrt")
      for case in [(0.0, 0.0), (-0.0, -0.0)]),
    *((name, *case) for name in ("sinh", "asinh", "cbrt") for case in [(INF, INF), (-INF, -INF)]),
    *(("asin", *case) for case in [(1.0, PI / 2), (-1.0, -PI / 2), (1.5, NAN), (INF, NAN)]),
    *(("acos", *case) for case in [(1.0, 0.0), (-1.0, PI), (0.0, PI / 2), (-1.1, NAN)]),
    *(("atan", *case) for case in [(INF, PI / 2), (-INF, -PI / 2)]),
    *(("cosh", *case) for case in [(0.0, 1.0), (INF, INF), (-INF, INF)]),
    *(("tanh", *case) for case in [(INF, 1.0), (-INF, -1.0)]),
    *(("acosh", *case) for case in [(1.0, 0.0), (0.5, NAN), (-INF, NAN), (INF, INF)]),
    *(("atanh", *case) for case in [(1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN)]),
    *(("erf", *case) for case in [(INF, 1.0), (-INF, -1.0)]),
    *(("erfc", *case) for case in [(INF, 0.0), (-INF, 2.0), (0.0, 1.0)]),
    *(("cbrt", *case) for case in [(27.0, 3.0), (-8.0, -2.0), (8e-300, 2e-100)]),
    *(("tgamma", *case) for case in [(0.0, INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN)]),
    *(("tgamma", *case) for case in [(INF, INF), (5.0, 24.0), (172.0, INF), (-200.5, -0.0)]),
    *(("lgamma", *case) for case in [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-3.0, INF)]),
    *(("lgamma", *case) for case in [(INF, INF), (-INF, INF), (1e306, INF)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "expected"), SPECIAL)
def test_special_values(name, x, expected):
    """Zeros keep their sign; infinities, poles and exact values are as C99 says."""
    assert same(FUNCTIONS[f"__nv_{name}"](np.float64(x)), expected)
    if same(float(np.float32(x)), x):
        assert same(FUNCTIONS[f"__nv_{name}f"](np.float32(x)), np.float32(expected))


@pytest.mark.parametrize("name", [name for name in CASES if name not in TWO_ARGUMENTS])
def test_nan_stays_nan(name):
    """nan in, nan out."""
    assert math.isnan(FUNCTIONS[f"__nv_{name}"](np.float64(NAN)))
    assert math.isnan(FUNCTIONS[f"__nv_{name}f"](np.float32(NAN)))


SPECIAL_OF_TWO = [
    *(("pow", x, y, 1.0) for x, y in [(1.0, NAN), (NAN, 0.0), (-1.0, INF), (-1.0, -INF)]),
    *(("pow", *case) for case in [(0.0, -3.0, INF), (-0.0, -3.0, -INF), (-0.0, -2.0, INF)]),
    *(("pow", *case) for case in [(-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (0.0, 0.5, 0.0)]),
    *(("pow", *case) for case in [(0.5, -INF, INF), (2.0, -INF, 0.0), (0.5, INF, 0.0)]),
    *(("pow", *case) for case in [(-INF, -3.0, -0.0), (-INF, 3.0, -INF), (-INF, 2.5, INF)]),
    *(("pow", *case) for case in [(-8.0, 1 / 3, NAN), (-2.0, 3.0, -8.0), (-2.0, 2.0**60, INF)]),
    *(("pow", *case) for case in [(INF, -1.0, 0.0), (2.0, NAN, NAN), (2.0, -1074.0, 5e-324)]),
    *(("pow", *case) for case in [(10.0, 22.0, 1e22), (3.0, 33.0, 3.0**33), (2.0, 1024.0, INF)]),
    *(("atan2", *case) for case in [(0.0, -0.0, PI), (-0.0, -0.0, -PI), (-0.0, 1.0, -0.0)]),
    *(("atan2", *case) for case in [(1.0, 0.0, PI / 2), (-1.0, -0.0, -PI / 2), (0.0, -1.0, PI)]),
    *(("atan2", *case) for case in [(INF, INF, PI / 4), (-INF, -INF, -0.75 * PI)]),
    *(("atan2", *case) for case in [(1.0, -INF, PI), (-1.0, INF, -0.0), (INF, -1.0, PI / 2)]),
    *(("atan2", *case) for case in [(NAN, 1.0, NAN), (1.0, NAN, NAN)]),
    *(("hypot", *case) for case in [(INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN)]),
    *(("hypot", *case) for case in [(3.0, 4.0, 5.0), (0.0, -2.0, 2.0), (-0.0, -0.0, 0.0)]),
    ("hypot", 3 * 2.0**700, 2.0**702, 5 * 2.0**700),
    *(("hypot", *case) for case in [(3 * 5e-324, 4 * 5e-324, 5 * 5e-324)]),
    *((name, *case) for name in ("fmod", "remainder")
      for case in [(INF, 1.0, NAN), (1.0, 0.0, NAN), (1.0, INF, 1.0), (-0.0, 1.0, -0.0)]),
    *(("fmod", *case) for case in [(-4.0, 10.0, -4.0), (-6.0, 3.0, -0.0), (NAN, 1.0, NAN)]),
    *(("remainder", *case) for case in [(3.0, 2.0, -1.0), (5.0, 2.0, 1.0), (1.0, NAN, NAN)]),
    *(("copysign", *case) for case in [(1.0, -0.0, -1.0), (-2.0, 3.0, 2.0), (-INF, 1.0, INF)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "y", "expected"), SPECIAL_OF_TWO)
def test_special_values_of_two(name, x, y, expected):
    """The special cases of two arguments are as C99 says."""
    assert same(FUNCTIONS[f"__nv_{name}"](np.float64(x), np.float64(y)), expected)
    if same(float(np.float32(x)), x) and same(float(np.float32(y)), y):
        result = FUNCTIONS[f"__nv_{name}f"](np.float32(x), np.float32(y))
        assert same(result, np.float32(expected))


def test_powers_of_small_integers_are_exact():
    """x**y is exact wherever the result is an integer below 2**53."""
    for x in range(1, 21):
        for y in range(11):
            if x**y < 2**53:
                assert FUNCTIONS["__nv_pow"](np.float64(x), np.float64(y)) == x**y


def test_fma_is_rounded_once():
    """fma agrees with exact arithmetic, also where it overflows, underflows or cancels."""
    rng = random.Random(5)
    for _ in range(300):
        a, b, c = (math.ldexp(rng.uniform(-1, 1), rng.randrange(-400, 400)) for _ in range(3))
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        assert fma(np.float64(a), np.float64(b), np.float64(c)) == float(exact)
    assert fma(np.float64(1e300), np.float64(1e300), np.float64(-INF)) == -INF
    assert fma(np.float64(1e300), np.float64(-1e300), np.float64(1.0)) == -INF
    assert same(fma(np.float64(-0.0), np.float64(1.0), np.float64(0.0)), 0.0)


def test_bits_of_a_double():
    """Going to bits and back is the identity, and bits are signed."""
    assert double_as_longlong(np.float64(-0.0)) == -(1 << 63)
    assert double_as_longlong(np.float64(1.0)) == 0x3FF0000000000000
    assert same(longlong_as_double(double_as_longlong(np.float64(-1.5e-310))), -1.5e-310)
    assert mul(np.float64(3.0), np.float64(0.5)) == 1.5


@pytest.mark.slow
def test_polynomials_are_what_the_tool_makes():
    """Generating libm_poly.py again changes nothing."""
    assert fit_libm.generate() == fit_libm.OUTPUT.read_text()
