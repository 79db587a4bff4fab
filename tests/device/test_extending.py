"""The extension interface, used as another library would."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from llvmlite import ir

import compiler as cuda
from compiler import CompileError, extending
from compiler.types import float64, int32


class Money:
    """An amount of a currency, made in a way of its own."""

    def __init__(self, cents: int) -> None:
        self.cents = cents


class MoneyType(extending.Type):
    """The kernel type of Money: one 64-bit integer."""


money = MoneyType("money", "money")


@extending.typeof(Money)
def typeof_money(value):
    return money


@extending.model(MoneyType, lambda ty: [ir.IntType(64)], codes="q")
def pack_money(ty, value):
    return [value.cents]


@extending.intrinsic
def cents(amount):
    """The number of cents."""
    if amount != money:
        return None

    def lower(b, match, amount):
        return extending.Value(match.returns, amount.leaves)

    return extending.Match((money,), cuda.types.int64), lower


@extending.overload_attribute(MoneyType, "euros")
def euros(owner):
    return lambda owner: cents(owner) / 100


@extending.overload_method(MoneyType, "times")
def times(owner, factor):
    return lambda owner, factor: cents(owner) * factor


@extending.overload(operator.neg)
def negative(amount):
    return (lambda amount: -cents(amount)) if amount == money else None


def host_only(x, y):
    raise AssertionError("kernels have an implementation of their own")


@extending.overload(host_only)
def host_only_in_kernels(x, y):
    if x == cuda.types.float64:
        return lambda x, y: x - y
    return lambda x, y: x + y


class Vec:
    """A plain class with two attributes."""

    def __init__(self, x, y):
        self.x, self.y = x, y


vec = extending.struct(Vec, x=float64, y=int32)


def test_a_type_of_ones_own():
    """Type, data model, packing, intrinsic, attribute, method and operator."""

    @cuda.jit
    def kernel(m, o):
        o[0] = m.euros
        o[1] = m.times(3)
        o[2] = -m
        o[3] = cents(m)

    out = np.zeros(4)
    kernel[1, 1](Money(1250), out)
    assert out.tolist() == [12.5, 3750, -1250, 1250]


def test_functions_of_the_host_get_an_implementation():
    """The implementation is chosen by the argument types."""

    @cuda.jit
    def kernel(a, o):
        o[0] = host_only(a[0], 2)
        o[1] = host_only(5, 2)

    out = np.zeros(2)
    kernel[1, 1](np.array([5.0]), out)
    assert out.tolist() == [3, 7]


def test_classes_as_structures():
    """A class with declared fields is passed, made, returned and joined over branches."""

    @cuda.jit(device=True)
    def swapped(v):
        return Vec(v.y, v.x)

    @cuda.jit
    def kernel(v, o):
        w = swapped(v)
        if o.size > 1:
            w = Vec(w.x + 1, 7)
        o[0] = w.x * 100 + w.y + v.x

    for n, expected in ((1, 300 + 1 + 1.5), (2, 400 + 7 + 1.5)):
        out = np.zeros(n)
        kernel[1, 1](Vec(1.5, 3), out)
        assert out[0] == expected


def test_mistakes_in_extensions_are_compile_errors():
    """A wrong number of fields, and types without an implementation."""

    @cuda.jit
    def fields(o):
        o[0] = Vec(1, 2, 3).x

    @cuda.jit
    def refused(m, o):
        o[0] = m + m

    with pytest.raises(CompileError, match="Vec"):
        fields[1, 1](np.zeros(1))
    with pytest.raises(CompileError, match="add"):
        refused[1, 1](Money(1), np.zeros(1))
    with pytest.raises(TypeError, match="no element type"):
        extending.struct(Vec, x="U3")
