"""Functions of libdevice by name in kernels: results, outputs, and every signature compiles."""

from __future__ import annotations

import linecache
import math

import numpy as np
import pytest

import compiler as cuda
from compiler import libdevice
from compiler.codegen import Target, select
from compiler.errors import CompileError
from compiler.lang.libdevice_table import SIGNATURES

pytestmark = pytest.mark.skipif(
    select(Target((9, 0))).libdevice is None, reason="there is no libdevice"
)


def test_outputs_are_returned_as_a_tuple():
    """What a function writes through pointers comes back beside its result."""

    @cuda.jit
    def kernel(out):
        out[0], out[1] = libdevice.sincos(0.5)
        fraction, exponent = libdevice.frexp(10.0)
        out[2], out[3] = fraction, exponent
        out[4], out[5] = libdevice.modf(3.75)
        remainder, quotient = libdevice.remquo(29.0, 3.0)
        out[6], out[7] = remainder, quotient

    out = np.zeros(8)
    kernel[1, 1](out)
    expected = [math.sin(0.5), math.cos(0.5), 0.625, 4, 0.75, 3, -1, 2]
    np.testing.assert_allclose(out, expected, rtol=1e-15)


def test_plain_functions_take_and_give_their_c_types():
    """Integers keep their signedness, single functions give float32, arrays pass as pointers."""

    @cuda.jit
    def kernel(out, x):
        out[0] = libdevice.umulhi(0xFFFFFFFF, 0xFFFFFFFF)
        out[1] = libdevice.mulhi(-1, 5)
        out[2] = libdevice.fast_fdividef(np.float32(3), np.float32(2))
        out[3] = libdevice.norm(3, x)
        out[4] = libdevice.nan() != libdevice.nan()
        out[5] = libdevice.double2ull_rz(1.8e19)
        out[6] = libdevice.clz(1)
        out[7] = libdevice.half2float(libdevice.float2half_rn(np.float32(1.5)))

    out = np.zeros(8)
    kernel[1, 1](out, np.array([2.0, 3.0, 6.0]))
    np.testing.assert_allclose(out, [0xFFFFFFFE, -1, 1.5, 7, 1, 1.8e19, 31, 1.5])


def test_every_function_of_libdevice_can_be_called():
    """Each name of the library is callable and compiles with its own signature."""
    namespace = {"libdevice": libdevice, "np": np}
    lines = []
    names = [symbol.removeprefix("__nv_") for symbol in SIGNATURES]
    for name in names:
        shown = getattr(libdevice, name).__doc__.partition("(")[2].partition(") ->")[0]
        values = [
            "x" if "[" in each else "1" if "int" in each else "0.5"
            for each in filter(None, shown.split(", "))
        ]
        lines.append(f"    libdevice.{name}({', '.join(values)})")
    assert set(names) < set(dir(libdevice))
    text = "def kernel(x, y):\n" + "\n".join(lines).replace("normf(1, x)", "normf(1, y)") + "\n"
    linecache.cache["<every function>"] = (len(text), None, text.splitlines(True), "")
    exec(compile(text, "<every function>", "exec"), namespace)
    kernel = cuda.jit(namespace["kernel"])
    llvm = kernel.compile("void(float64[::1], float32[::1])").inspect_llvm()
    missing = [name for name in SIGNATURES if f'@"{name}"(' not in llvm]
    assert not missing


def test_unknown_function_is_named():
    """A name that libdevice lacks is an error in the user's line."""

    @cuda.jit
    def kernel(out):
        out[0] = libdevice.cosine(1.0)

    with pytest.raises((CompileError, AttributeError), match="cosine"):
        kernel.compile("void(float64[:])")
