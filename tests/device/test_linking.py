"""Kernels that call functions defined elsewhere: PTX, CUDA C++, bitcode; callbacks; errors."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import compiler as cuda
import cudadrv
from compiler.dispatch.linkable import CUSource, PTXSource
from cudadrv import nvrtc
from cudadrv.toolkit import LibraryNotFound
from tests.unit.test_linker import TWICE

TOTAL = """
extern "C" __device__ float total(const float* values, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++) sum += values[i];
    return sum;
}
extern "C" __device__ bool flip(bool value, signed char a, short b) { return !value && a < b; }
"""


@pytest.fixture
def rtc():
    try:
        return nvrtc.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))


def test_extern_function_is_linked_from_a_file(tmp_path):
    """A declared function is found in the PTX file given to jit, and called."""
    path = tmp_path / "twice.ptx"
    path.write_text(TWICE)
    twice = cuda.declare_device("twice", "int32(int32)")

    @cuda.jit(link=[path])
    def kernel(out):
        i = cuda.grid(1)
        out[i] = twice(out[i])

    out = np.arange(8, dtype=np.int32)
    kernel[1, 8](out)
    np.testing.assert_array_equal(out, 2 * np.arange(8))


def test_declaration_brings_its_own_code():
    """Code given with the declaration is linked wherever the function is called."""
    twice = cuda.declare_device_function("twice", cuda.int32, (cuda.int32,), PTXSource(TWICE))

    @cuda.jit(device=True)
    def fourfold(x):
        return twice(twice(x))

    @cuda.jit
    def kernel(out):
        out[0] = fourfold(out[0])

    out = np.array([5], np.int32)
    kernel[1, 1](out)
    assert out[0] == 20


def test_cuda_source_is_compiled_and_linked(rtc):
    """CUDA C++ is compiled with NVRTC; arrays arrive as pointers, small types as C has them."""
    code = CUSource(TOTAL, "total.cu")
    total = cuda.declare_device("total", "float32(float32[:], int32)", code)
    flip = cuda.declare_device("flip", "bool(bool, int8, int16)", code)

    @cuda.jit
    def kernel(x, out):
        out[0] = total(x, x.size)
        out[1] = flip(False, -3, 300)
        out[2] = flip(True, -3, 300)
        out[3] = flip(False, 3, -300)

    out = np.zeros(4, np.float32)
    kernel[1, 1](np.arange(10, dtype=np.float32), out)
    np.testing.assert_array_equal(out, [45, 1, 0, 0])


def test_callbacks_see_the_library_come_and_go():
    """The callbacks of a code are called once when it is loaded and when it is unloaded."""
    seen: list[object] = []
    code = PTXSource(
        TWICE,
        setup_callback=lambda library: seen.append(library.handle),
        teardown_callback=seen.append,
    )
    twice = cuda.declare_device("twice", "int32(int32)")

    @cuda.jit(link=[code])
    def kernel(out):
        out[0] = twice(out[0])

    out = np.array([5], np.int32)
    kernel[1, 1](out)
    kernel[1, 1](out)
    assert len(seen) == 1
    del kernel
    gc.collect()
    assert seen == [seen[0], seen[0]]


def test_missing_function_is_a_link_error():
    """Calling what nothing defines raises LinkError with the name."""
    absent = cuda.declare_device("absent", "int32(int32)")

    @cuda.jit(link=[PTXSource(TWICE)])
    def kernel(out):
        out[0] = absent(out[0])

    with pytest.raises(cudadrv.LinkError, match="absent"):
        kernel[1, 1](np.zeros(1, np.int32))


def test_wrong_arguments_are_refused():
    """A call that does not fit the declaration is a compile error that shows it."""
    twice = cuda.declare_device("twice", "int32(int32)")

    @cuda.jit
    def kernel(out):
        out[0] = twice(out)

    with pytest.raises(cuda.CompileError, match=r"declared int32\(int32\)"):
        kernel.compile("void(int32[:])")


@pytest.mark.parametrize("link", [["code.xyz"], [3]])
def test_unknown_code_is_refused(link):
    """What names no kind of code is refused when the kernel is compiled."""
    kernel = cuda.jit(link=link)(lambda out: None)
    with pytest.raises((TypeError, ValueError), match="link"):
        kernel.compile("void(int32[:])")
