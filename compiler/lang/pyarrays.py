"""What arrays do, written in the kernel language: assignment to slices, reductions by one thread.

Functions call themselves on the rows of arrays of more dimensions; `ndim` and `dtype` are
constants, so each level compiles for its own type and the other branches vanish.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def address(array: Any) -> int:
    """Where the first element lies; the compiler has a row for it."""
    return int(array.__array_interface__["data"][0])


def part(value: Any, index: Any, target: Any) -> Any:
    """What row *index* of *target* gets of *value*, broadcast."""
    if np.ndim(value) < target.ndim:
        return value
    return value[0] if value.shape[0] == 1 else value[index]


def assign(target: Any, value: Any) -> None:
    """``target[...] = value``, backwards where the value overlaps the target from below."""
    count = target.shape[0]
    backwards = False
    if np.ndim(value) > 0:
        backwards = address(value) < address(target)
    for step in range(count):
        i = count - 1 - step if backwards else step
        if target.ndim == 1:
            target[i] = part(value, i, target)
        else:
            assign(target[i], part(value, i, target))


def setitem(array: Any, index: Any, value: Any) -> None:
    """``array[index] = value`` where the index selects a view."""
    assign(array[index], value)


def array_sum(array: Any) -> Any:
    """The sum of all elements, ints in 64 bits, in order."""
    total = 0.0 if array.dtype.kind == "f" else 0
    for item in array:
        if array.ndim > 1:
            total += array_sum(item)
        else:
            total += item if array.dtype.kind == "f" else int(item)
    return total


def array_prod(array: Any) -> Any:
    """The product of all elements, ints in 64 bits, in order."""
    total = 1.0 if array.dtype.kind == "f" else 1
    for item in array:
        if array.ndim > 1:
            total *= array_prod(item)
        else:
            total *= item if array.dtype.kind == "f" else int(item)
    return total


def array_mean(array: Any) -> Any:
    """The mean of all elements; nan if there are none."""
    return array_sum(array) / array.size


def array_any(array: Any) -> Any:
    """Whether some element is true."""
    for item in array:
        if array.ndim > 1:
            if array_any(item):
                return True
        elif item:
            return True
    return False


def array_all(array: Any) -> Any:
    """Whether every element is true."""
    for item in array:
        if array.ndim > 1:
            if not array_all(item):
                return False
        elif not item:
            return False
    return True


def array_min(array: Any) -> Any:
    """The smallest element, nan if one is; of an empty array what lies at its address."""
    if array.ndim > 1:
        best = array_min(array[0])
        for i in range(1, array.shape[0]):
            best = smaller(best, array_min(array[i]))
    else:
        best = array[0]
        for i in range(1, array.size):
            best = smaller(best, array[i])
    return best


def array_max(array: Any) -> Any:
    """The largest element, nan if one is."""
    if array.ndim > 1:
        best = array_max(array[0])
        for i in range(1, array.shape[0]):
            best = larger(best, array_max(array[i]))
    else:
        best = array[0]
        for i in range(1, array.size):
            best = larger(best, array[i])
    return best


def smaller(x: Any, y: Any) -> Any:
    """The smaller number, nan if one is (numpy.minimum)."""
    return x if x <= y or x != x else y


def larger(x: Any, y: Any) -> Any:
    """The larger number, nan if one is (numpy.maximum)."""
    return x if x >= y or x != x else y


def smaller_number(x: Any, y: Any) -> Any:
    """The smaller number; nan only if both are (numpy.fmin)."""
    return x if x <= y or y != y else y


def larger_number(x: Any, y: Any) -> Any:
    """The larger number; nan only if both are (numpy.fmax)."""
    return x if x >= y or y != y else y


def argmin(array: Any) -> Any:
    """The index of the first smallest element of a 1-d array, or of the first nan."""
    best = 0
    for i in range(1, array.size):
        if array[best] == array[best] and not array[i] >= array[best]:
            best = i
    return best


def argmax(array: Any) -> Any:
    """The index of the first largest element of a 1-d array, or of the first nan."""
    best = 0
    for i in range(1, array.size):
        if array[best] == array[best] and not array[i] <= array[best]:
            best = i
    return best


def clip(x: Any, low: Any, high: Any) -> Any:
    """x, at least low and at most high."""
    return smaller(larger(x, low), high)


def sign(x: Any) -> Any:
    """-1, 0 or 1 by the sign of x; nan for nan."""
    if x > 0:
        return 1
    if x < 0:
        return -1
    return x if x != x else 0


def square(x: Any) -> Any:
    """x * x."""
    return x * x


def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), without overflow."""
    if x == y:
        return x + math.log(2.0)
    high, low = larger(x, y), smaller(x, y)
    return high + math.log1p(math.exp(low - high))
