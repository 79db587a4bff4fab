"""Arithmetic of float16 by numba.cuda's names: instructions of its own, or float32 rounded once."""

from __future__ import annotations

import numpy as np

from .. import types
from ..typing.registry import REGISTRY
from .ptx import Form, declare
from .stub import Stub

H = types.float16
_WIDE = {
    1: "{ .reg .f32 x; cvt.f32.f16 x, $1; %s cvt.rn.f16.f32 $0, x; }",
    2: "{ .reg .f32 x, y; cvt.f32.f16 x, $1; cvt.f32.f16 y, $2; %s cvt.rn.f16.f32 $0, x; }",
}
_COMPARE = "{ .reg .pred p; setp.%s.f16 p, $1, $2; selp.u32 $0, 1, 0, p; }"


def _half(name: str, doc: str, text: str, count: int, cc: tuple[int, int] = (7, 5)) -> Stub:
    names = ", ".join("xyz"[:count])
    stub = Stub(f"fp16.{name}", f"fp16.{name}({names}): {doc}.")
    return declare(stub, [Form((H,) * count, H, text, cc)])


def _test(name: str, doc: str, test: str) -> Stub:
    stub = Stub(f"fp16.{name}", f"fp16.{name}(x, y): whether {doc}.")
    return declare(stub, [Form((H, H), types.boolean, _COMPARE % test)])


hadd = _half("hadd", "x + y", "add.f16 $0, $1, $2;", 2)
hsub = _half("hsub", "x - y", "sub.f16 $0, $1, $2;", 2)
hmul = _half("hmul", "x * y", "mul.f16 $0, $1, $2;", 2)
hdiv = _half("hdiv", "x / y", _WIDE[2] % "div.rn.f32 x, x, y;", 2)
hfma = _half("hfma", "x * y + z, rounded once", "fma.rn.f16 $0, $1, $2, $3;", 3)
hneg = _half("hneg", "-x", "neg.f16 $0, $1;", 1)
habs = _half("habs", "the absolute value", "abs.f16 $0, $1;", 1)
hmax = _half("hmax", "the larger, or that which is no NaN", "max.f16 $0, $1, $2;", 2, (8, 0))
hmin = _half("hmin", "the smaller, or that which is no NaN", "min.f16 $0, $1, $2;", 2, (8, 0))
heq, hne, hgt, hge, hlt, hle = (
    _test(f"h{name}", doc, test)
    for name, doc, test in (
        ("eq", "x == y", "eq"), ("ne", "x != y", "neu"), ("gt", "x > y", "gt"),
        ("ge", "x >= y", "ge"), ("lt", "x < y", "lt"), ("le", "x <= y", "le"),
    )
)  # fmt: skip
hfloor, hceil, hrint, htrunc = (
    _half(f"h{name}", doc, f"cvt.{mode}.f16.f16 $0, $1;", 1)
    for name, doc, mode in (
        ("floor", "rounded down", "rmi"), ("ceil", "rounded up", "rpi"),
        ("rint", "rounded to the nearest, halves to even", "rni"),
        ("trunc", "rounded towards zero", "rzi"),
    )
)  # fmt: skip
hrcp = _half("hrcp", "1 / x", _WIDE[1] % "rcp.rn.f32 x, x;", 1)
hrsqrt = _half("hrsqrt", "1 / sqrt(x)", _WIDE[1] % "rsqrt.approx.f32 x, x;", 1)
hsqrt = _half("hsqrt", "the square root", _WIDE[1] % "sqrt.rn.f32 x, x;", 1)
hexp10 = _half("hexp10", "10 ** x", _WIDE[1] % "mul.f32 x, x, 0f40549A78; ex2.approx.f32 x, x;", 1)


def _function(name: str, of: np.ufunc) -> Stub:
    stub = Stub(f"fp16.h{name}", f"fp16.h{name}(x): np.{of.__name__} of a float16.")
    REGISTRY.alias(stub, of)
    return stub


hsin, hcos, hlog, hlog2, hlog10, hexp, hexp2 = (
    _function(each.__name__, each)
    for each in (np.sin, np.cos, np.log, np.log2, np.log10, np.exp, np.exp2)
)
