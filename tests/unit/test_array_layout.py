"""Arithmetic on shapes and strides, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cudadrv.layout import c_strides, extent, lengths, plan, reshaped, strides_of


@st.composite
def views(draw, shape):
    """The strides of some view of *shape*, and the bytes it reaches over."""
    axes = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in shape]
    packed = c_strides([shape[axis] * abs(steps[axis]) for axis in axes], 4)
    strides = [0] * len(shape)
    for axis, stride in zip(axes, packed, strict=True):
        strides[axis] = stride * steps[axis]
    return tuple(strides)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_plan_copies_every_element_once(data):
    """The pieces of a plan, made one by one, are the copy; other bytes stay."""
    shape = data.draw(npst.array_shapes(min_dims=0, max_dims=4, max_side=4))
    to, since = data.draw(views(shape)), data.draw(views(shape))
    if data.draw(st.booleans()):
        since = tuple(0 if i == 0 else stride for i, stride in enumerate(since))
    (low, high), (other_low, other_high) = extent(shape, to, 4), extent(shape, since, 4)
    source = np.arange(other_high - other_low, dtype=np.uint8)
    target, expected = np.zeros(high - low, np.uint8), np.zeros(high - low, np.uint8)
    wanted = np.ndarray(shape, "i4", source, -other_low, since)
    np.ndarray(shape, "i4", expected, -low, to)[...] = wanted
    pieces = plan(shape, to, since, 4, 10**6)
    assert pieces is not None
    for piece in pieces:
        for plane in range(piece.planes):
            for row in range(piece.rows):
                at = piece.to - low + (plane * piece.to_height + row) * piece.to_pitch
                start = piece.since - other_low
                start += (plane * piece.since_height + row) * piece.since_pitch
                target[at : at + piece.width] = source[start : start + piece.width]
        assert piece.rows == 1 or min(piece.to_pitch, piece.since_pitch) >= piece.width
        assert piece.planes == 1 or min(piece.to_height, piece.since_height) >= piece.rows
    np.testing.assert_array_equal(target, expected)


def test_plans_are_short():
    """Contiguous arrays are one copy, rectangles and boxes one too; more than allowed is None."""
    assert len(plan((64, 64, 64), c_strides((64,) * 3, 4), c_strides((64,) * 3, 4), 4, 1)) == 1
    box = plan((8, 8, 8), c_strides((64,) * 3, 4), c_strides((8,) * 3, 4), 4, 1)
    assert [(p.width, p.rows, p.planes) for p in box] == [(32, 8, 8)]
    assert plan((100,), (4,), (-4,), 4, 99) is None
    assert plan((2, 3), (0, 4), (12, 4), 4, 100) is None
    assert plan((0, 3), (0, 4), (12, 4), 4, 100) == []
    far = plan((2, 4), (2**31, 8), (16, 4), 4, 10)
    assert [(p.planes, p.rows, p.to_pitch) for p in far] == [(2, 4, 8)]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_reshaped_strides_are_numpys(data):
    """The strides of a reshaped view, or None exactly where NumPy copies."""
    shape = data.draw(npst.array_shapes(max_dims=4, max_side=4))
    strides = data.draw(views(shape))
    low, high = extent(shape, strides, 4)
    array = np.ndarray(shape, "i4", bytes(high - low), -low, strides)
    first = data.draw(st.sampled_from([n for n in range(1, 65) if array.size % n == 0]))
    wanted = (first, array.size // first)
    found, expected = reshaped(shape, strides, 4, wanted), array.reshape(wanted)
    assert (found is not None) == np.shares_memory(array, expected)
    if found is not None:
        again = np.ndarray(wanted, "i4", array.base, -low, found)
        assert np.shares_memory(again, expected) and (again == expected).all()


def test_shapes_and_strides_are_checked():
    """Neither text nor fractions, negative or too many lengths, nor strides of other numbers."""
    for wrong in ("ab", 2.5, (1.5,), None, [None]):
        with pytest.raises(TypeError, match="shape"):
            lengths(wrong)
    for wrong in (-1, (3, -2), (1,) * 65):
        with pytest.raises(ValueError, match=r"negative|dimensions"):
            lengths(wrong)
    with pytest.raises(ValueError, match="one a dimension"):
        strides_of((4,), (2, 3), 4, "C")
    with pytest.raises(ValueError, match="order"):
        strides_of(None, (2, 3), 4, "A")
    with pytest.raises(ValueError, match="64 bits"):
        strides_of((2**64,), (2,), 4, "C")
