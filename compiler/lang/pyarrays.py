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


# How what is read lies to what is written: the same or apart, below, above, or across.
BELOW, ABOVE, ACROSS = 1, 2, 4


def lowest(array: Any) -> Any:
    """The lowest address of an element."""
    place = address(array)
    for length, step in zip(array.shape, array.strides, strict=True):
        place += min(0, (length - 1) * step)
    return place


def highest(array: Any) -> Any:
    """The address behind the highest element."""
    place = address(array) + array.itemsize
    for length, step in zip(array.shape, array.strides, strict=True):
        place += max(0, (length - 1) * step)
    return place


def array_order(value: Any, target: Any) -> Any:
    """How an array that is read lies to the target of an assignment."""
    if value.size == 0 or lowest(value) >= highest(target) or lowest(target) >= highest(value):
        return 0
    if value.ndim != target.ndim or value.shape != target.shape:
        return ACROSS
    if value.strides != target.strides:
        return ACROSS
    if address(value) == address(target):
        return 0
    return BELOW if (address(value) < address(target)) == (target.strides[0] >= 0) else ABOVE


def order(value: Any, target: Any) -> Any:
    """The same for anything that is assigned; the compiler has rows for it."""
    return array_order(value, target) if np.ndim(value) > 0 else 0


def assign(target: Any, value: Any) -> None:
    """``target[...] = value``, backwards where what is read overlaps the target from below."""
    if target.ndim == 0:
        target[()] = value
        return
    found = order(value, target)
    if found > ABOVE:
        raise ValueError("an assignment reads its target in another order: copy that first")
    walk(target, value, found == BELOW)


def walk(target: Any, value: Any, backwards: Any) -> None:
    """Assign element by element."""
    count = target.shape[0]
    for step in range(count):
        i = count - 1 - step if backwards else step
        if target.ndim == 1:
            target[i] = part(value, i, target)
        else:
            walk(target[i], part(value, i, target), backwards)


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
    """The index of the first smallest element in order, or of the first nan."""
    best, place = flat_item(array, 0), 0
    for i in range(1, array.size):
        item = flat_item(array, i)
        if best == best and not item >= best:
            best, place = item, i
    return place


def argmax(array: Any) -> Any:
    """The index of the first largest element in order, or of the first nan."""
    best, place = flat_item(array, 0), 0
    for i in range(1, array.size):
        item = flat_item(array, i)
        if best == best and not item <= best:
            best, place = item, i
    return place


def flat_item(array: Any, index: Any) -> Any:
    """The element at a place in C order, also of arrays that are not contiguous."""
    if array.ndim == 1:
        return array[index]
    inner = array.size // array.shape[0]
    return flat_item(array[index // inner], index % inner)


def set_flat_item(array: Any, index: Any, value: Any) -> None:
    """Assign the element at a place in C order."""
    if array.ndim == 1:
        array[index] = value
    else:
        inner = array.size // array.shape[0]
        set_flat_item(array[index // inner], index % inner, value)


def array_var(array: Any, ddof: Any = 0) -> Any:
    """The variance of all elements, in two passes."""
    mean = array_mean(array)
    total = mean * 0
    for i in range(array.size):
        part_ = flat_item(array, i) - mean
        total += part_ * part_
    return total / (array.size - ddof)


def array_std(array: Any, ddof: Any = 0) -> Any:
    """The standard deviation of all elements."""
    return np.sqrt(array_var(array, ddof))


def array_ptp(array: Any) -> Any:
    """The largest minus the smallest element."""
    return array_max(array) - array_min(array)


def count_nonzero(array: Any) -> Any:
    """How many elements are not zero."""
    total = 0
    for i in range(array.size):
        if flat_item(array, i):
            total += 1
    return total


def nan_sum(array: Any) -> Any:
    """The sum of the elements that are numbers."""
    total = 0.0 if array.dtype.kind == "f" else 0
    for i in range(array.size):
        item = flat_item(array, i)
        if item == item:
            total += item
    return total


def nan_mean(array: Any) -> Any:
    """The mean of the elements that are numbers."""
    total, count = nan_sum(array), 0
    for i in range(array.size):
        item = flat_item(array, i)
        count += item == item
    return total / count


def nan_min(array: Any) -> Any:
    """The smallest element that is a number."""
    best = flat_item(array, 0)
    for i in range(1, array.size):
        best = smaller_number(best, flat_item(array, i))
    return best


def nan_max(array: Any) -> Any:
    """The largest element that is a number."""
    best = flat_item(array, 0)
    for i in range(1, array.size):
        best = larger_number(best, flat_item(array, i))
    return best


def searchsorted(a: Any, v: Any, side: Any = "left") -> Any:
    """Where in a sorted array v belongs: before those that are equal, or after."""
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < v or (side == "right" and a[middle] == v):
            low = middle + 1
        else:
            high = middle
    return low


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
