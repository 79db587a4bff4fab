"""Kernel types, promotion, joins and signatures."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

from compiler import types
from compiler.signature import normalize, parse
from compiler.types import Array, Literal
from compiler.typing.promotion import join, promote

WIDE = [types.int32, types.int64, types.uint32, types.uint64, types.float32, types.float64]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(WIDE, WIDE)))
def test_promotion_is_numpys(left, right):
    """The sum of two NumPy scalars has the type that NumPy gives it, uint64 with a sign apart."""
    with np.errstate(all="ignore"):
        expected = types.from_dtype((left.dtype.type(1) + right.dtype.type(1)).dtype)
    if {left, right} in ({types.uint64, types.int64}, {types.uint64, types.int32}):
        expected = types.uint64
    assert promote(left, right) == expected


@pytest.mark.parametrize("ty", WIDE)
@pytest.mark.parametrize("weak", [types.py_int, types.py_float])
def test_python_numbers_give_way(ty, weak):
    """A Python number takes the type of the NumPy scalar beside it, as NEP 50 says."""
    value = 1 if weak is types.py_int else 1.0
    assert promote(ty, weak) == types.from_dtype((ty.dtype.type(1) + value).dtype)


@pytest.mark.parametrize("ty", [types.boolean, types.int8, types.uint16])
def test_narrow_integers_compute_as_python_ints(ty):
    """An integer of less than 32 bits does not wrap in arithmetic."""
    assert promote(ty, ty) == types.py_int


JOINS = [
    (Literal(0), types.int32, types.int32),
    (Literal(2**40), types.int32, types.py_int),
    (Literal(0.1), types.float32, types.float32),
    (Literal(1e300), types.float32, types.float32),
    (types.py_int, types.int32, types.py_int),
    (types.py_int, types.int64, types.int64),
    (types.py_int, types.uint64, types.uint64),
    (types.py_float, types.float32, types.float32),
    (types.py_int, types.py_float, types.py_float),
    (types.int32, types.uint32, types.int64),
    (types.int8, types.uint8, types.py_int),
    (types.int8, types.int16, types.py_int),
    (types.int16, types.uint32, types.py_int),
    (types.uint8, types.float32, types.float32),
    (types.int32, types.float32, types.float64),
    (types.boolean, types.int32, types.int32),
    (Literal(1), Literal(2), types.py_int),
    (types.float32[::1], types.float32[:], types.float32[:]),
]


@pytest.mark.parametrize(("left", "right", "expected"), JOINS)
def test_join_keeps_values(left, right, expected):
    """A variable with two types gets one that holds both, whatever the order."""
    assert join(left, right) == expected
    assert join(right, left) == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [(types.int32, types.int32[:]), (types.none, types.int32), (Literal("a"), Literal("b"))],
)
def test_join_refuses_what_has_nothing_in_common(left, right):
    """An int and an array have no common type."""
    assert join(left, right) is None


def test_literals_that_python_finds_equal_are_apart():
    """1, 1.0, True, 0.0 and -0.0 are five literals."""
    values = [1, 1.0, True, 0.0, -0.0, np.float32(1), np.int64(1)]
    assert len({Literal(value) for value in values}) == len(values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float32", types.float32),
        ("float32[:]", Array(types.float32, 1, "A")),
        ("f8[::1]", Array(types.float64, 1, "C")),
        ("int32[:, ::1]", Array(types.int32, 2, "C")),
        ("int32[::1, :]", Array(types.int32, 2, "F")),
        ("uint8[:, :, :]", Array(types.uint8, 3, "A")),
    ],
)
def test_types_are_read_from_strings(text, expected):
    """The notation of array types is NumPy's slices; its repr reads back."""
    assert parse(text) == expected
    assert parse(repr(expected)) == expected


@pytest.mark.parametrize(
    "spec",
    [
        "void(float32[:], int32)",
        types.void(types.float32[:], types.int32),
        (types.float32[:], "int32"),
        [types.float32[:], np.int32],
    ],
)
def test_signatures_have_many_notations(spec):
    """A string, a call of types, and a sequence all give the same argument types."""
    assert normalize(spec).args == (types.float32[:], types.int32)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("void(float31)", "float31"),
        ("void(", "does not parse"),
        ("void(float32[3])", "write ':'"),
        ("void(float32[::2])", "::1"),
        (3, "signature"),
        ("void(float32[:, ::1, :])", "first or the last"),
    ],
)
def test_bad_signatures_are_refused(spec, word):
    """The TypeError says what is wrong with the notation."""
    with pytest.raises(TypeError, match=word.replace("(", r"\(")):
        normalize(spec)


def test_types_convert_on_the_host():
    """float32(0.1) is NumPy's float32, as in numba.cuda."""
    assert types.float32(0.1) == np.float32(0.1)
    assert operator.index(types.int32(7)) == 7
