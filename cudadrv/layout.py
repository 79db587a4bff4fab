"""Shapes and strides: which bytes an array's elements are, and how to copy them in few pieces."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

MAX_DIMENSIONS = 64  # NumPy's limit
LARGEST = 2**63 - 1
MAX_PITCH = 2**31 - 1  # CU_DEVICE_ATTRIBUTE_MAX_PITCH on every device so far


def lengths(shape: Any, unknown: bool = False) -> tuple[int, ...]:
    """A shape as a tuple of ints.

    Raises:
        ValueError: a length is negative (-1 is allowed if *unknown*), or they are too many.
        TypeError: it is neither an int nor a sequence of ints.
    """
    try:
        given = (shape,) if hasattr(type(shape), "__index__") else tuple(shape)
        result = tuple(operator.index(length) for length in given)
    except TypeError:
        raise TypeError(f"shape {shape!r}: give an int or a tuple of ints") from None
    if any(length < (-1 if unknown else 0) for length in result):
        raise ValueError(f"shape {shape!r} has a negative length")
    if any(length > LARGEST for length in result):
        raise ValueError(f"shape {shape!r} has a length that 64 bits do not hold")
    if len(result) > MAX_DIMENSIONS:
        raise ValueError(f"a shape of {len(result)} dimensions: the most are {MAX_DIMENSIONS}")
    return result


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of an array in C order."""
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def strides_of(strides: Any, shape: Sequence[int], itemsize: int, order: str) -> tuple[int, ...]:
    """The strides of a new array, in bytes: those given, else those of C or F order.

    Raises:
        TypeError: they are no ints.
        ValueError: they are too few or too many, too large, or the order is another.
    """
    if order not in ("C", "F"):
        raise ValueError(f"order={order!r}: it is 'C' or 'F'")
    if strides is None:
        if order == "F":
            return c_strides(shape[::-1], itemsize)[::-1]
        return c_strides(shape, itemsize)
    try:
        given = (strides,) if hasattr(type(strides), "__index__") else tuple(strides)
        found = tuple(operator.index(stride) for stride in given)
    except TypeError:
        raise TypeError(f"strides {strides!r}: give a tuple of ints, in bytes") from None
    if len(found) != len(shape):
        raise ValueError(f"strides {found} do not fit shape {tuple(shape)}: give one a dimension")
    if any(abs(stride) > LARGEST for stride in found):
        raise ValueError(f"strides {found} are more than 64 bits hold")
    return found


def is_contiguous(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether the elements lie one after another in C order; lengths of 1 have no say."""
    if 0 in shape:
        return True
    step = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The lowest and the end of the highest byte, counted from the first element."""
    if 0 in shape:
        return 0, 0
    reach = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    return sum(min(each, 0) for each in reach), sum(max(each, 0) for each in reach) + itemsize


def broadcast_strides(
    shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]
) -> tuple[int, ...]:
    """The strides of an array seen as one of shape *wanted*: 0 where it is repeated.

    Raises:
        ValueError: the shape does not broadcast to that.
    """
    more = len(wanted) - len(shape)
    pairs = zip(shape, wanted[max(more, 0) :], strict=False)
    if more < 0 or any(length not in (1, other) for length, other in pairs):
        raise ValueError(f"shape {tuple(shape)} does not broadcast to {tuple(wanted)}")
    repeated = [0 if length == 1 else stride for length, stride in zip(shape, strides, strict=True)]
    return (*(0,) * more, *repeated)


def filled_in(wanted: Sequence[int], size: int, shape: Sequence[int]) -> tuple[int, ...]:
    """A new shape for *size* elements, with the length that is -1 worked out.

    Raises:
        ValueError: the sizes differ, or several lengths are unknown.
    """
    rest = math.prod(length for length in wanted if length != -1)
    result = tuple(wanted)
    if -1 in wanted:
        filled = size // rest if rest else 0
        result = tuple(filled if length == -1 else length for length in wanted)
    if math.prod(result) != size or wanted.count(-1) > 1 or (-1 in wanted and not rest):
        raise ValueError(f"an array of shape {tuple(shape)} cannot be reshaped to {tuple(wanted)}")
    return result


def reshaped(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, wanted: Sequence[int]
) -> tuple[int, ...] | None:
    """The strides of the same elements in C order under another shape of the same size.

    None where no strides give that, so that it needs a copy.
    """
    if 0 in shape:
        return c_strides(wanted, itemsize)
    # Stretches of evenly spaced elements, as long as they go, the last one first.
    runs: list[tuple[int, int]] = []
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 1:
            continue
        if runs and stride == runs[-1][1] * runs[-1][0]:
            runs[-1] = (runs[-1][0] * length, runs[-1][1])
        else:
            runs.append((length, stride))
    result, left, step = [], 1, itemsize
    for length in reversed(wanted):
        if length != 1 and left == 1:
            left, step = runs.pop(0)
        if left % length:
            return None
        result.append(step)
        step *= length
        left //= length
    return tuple(reversed(result))


class Piece(NamedTuple):
    """One copy of a plan: *planes* times *rows* times *width* bytes.

    Attributes:
        to, since: where it begins, in bytes from the first element of target and source.
        to_pitch, since_pitch: from a row to the next.
        to_height, since_height: rows from a plane to the next.
    """

    to: int
    since: int
    width: int
    rows: int = 1
    planes: int = 1
    to_pitch: int = 0
    since_pitch: int = 0
    to_height: int = 0
    since_height: int = 0


Axis = tuple[int, int, int]  # length, stride of the target, stride of the source


def plan(
    shape: Sequence[int], to: Sequence[int], since: Sequence[int], itemsize: int, most: int
) -> list[Piece] | None:
    """The pieces that copy an array of strides *since* to one of strides *to*; empty for no bytes.

    None if they would be more than *most*, or the target has several elements at one address.
    """
    if 0 in shape:
        return []
    axes = [axis for axis in zip(shape, to, since, strict=True) if axis[0] != 1]
    if any(a == 0 for _, a, _ in axes):
        return None
    first = [(length - 1) * (a < 0) * a for length, a, _ in axes]
    second = [(length - 1) * (a < 0) * b for length, a, b in axes]
    axes = merged([(length, a, b) if a > 0 else (length, -a, -b) for length, a, b in axes])
    width = itemsize
    if axes and axes[-1][1:] == (itemsize, itemsize):
        width *= axes.pop()[0]
    rows, planes = box(axes, width)
    length, a, b = rows
    for used in (rows, planes):
        if used in axes:
            axes.remove(used)
    if math.prod(axis[0] for axis in axes) > most:
        return None
    steps = [[(i * x, i * y) for i in range(count)] for count, x, y in axes]
    sizes = (width, length, planes[0], a, b, planes[1] // a, planes[2] // b)
    return [
        Piece(sum(first) + sum(s[0] for s in at), sum(second) + sum(s[1] for s in at), *sizes)
        for at in itertools.product(*steps)
    ]


def merged(axes: list[Axis]) -> list[Axis]:
    """The axes by falling stride of the target, those that continue each other as one."""
    result: list[Axis] = []
    for length, a, b in sorted(axes, key=lambda axis: (axis[1], abs(axis[2])), reverse=True):
        if result and result[-1][1:] == (a * length, b * length):
            result[-1] = (result[-1][0] * length, a, b)
        else:
            result.append((length, a, b))
    return result


def box(axes: list[Axis], width: int) -> tuple[Axis, Axis]:
    """The two axes that make the largest box of rows and planes which one copy can take."""
    best = (1, width, width), (1, width, width)
    for rows in axes:
        length, a, b = rows
        if min(a, b) < width or max(a, b) > MAX_PITCH:
            continue
        fitting = [
            axis
            for axis in axes
            if axis[1] % a == axis[2] % b == 0 and min(axis[1] // a, axis[2] // b) >= length
        ]
        found = rows, max(fitting, default=(1, a * length, b * length))
        best = max(best, found, key=lambda pair: pair[0][0] * pair[1][0])
    return best
