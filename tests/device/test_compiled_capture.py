"""Compiled kernels in captures and graphs."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu
from cudadrv import driver

pytestmark = pytest.mark.usefixtures("context")


@cuda.jit
def add(out, x, n):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + n


def test_compiled_kernels_are_captured():
    """They run when the graph does, with the arguments of the capture."""
    x, out = cu.to_device(np.arange(8)), cu.to_device(np.zeros(8, np.int64))
    stream = cu.Stream(nonblocking=True)
    add[1, 32, stream](out, x, 1)
    stream.synchronize()
    out.fill(0)
    with stream.capture() as graph:
        add[1, 32, stream](out, x, 5)
        add[1, 32, stream](x, out, 1)
    assert out.copy_to_host().tolist() == [0] * 8
    assert [node.kind for node in graph.nodes] == ["KERNEL"] * 2
    made = graph.instantiate()
    for _ in range(2):
        made.launch(stream)
    stream.synchronize()
    assert out.copy_to_host().tolist() == [i + 11 for i in range(8)]


def test_host_arrays_cannot_be_captured():
    """They would have to be copied back now; the error leaves no capture behind."""
    x, stream = np.arange(8), cu.Stream(nonblocking=True)
    with pytest.raises(cu.CudaError), stream.capture():
        add[1, 32, stream](np.zeros(8, np.int64), x, 5)
    assert stream.capture_info is None


def test_compiled_kernels_survive_in_graphs():
    """A graph keeps loaded the code of a kernel that is gone."""

    def make():
        @cuda.jit
        def fill(out):
            out[cuda.grid(1)] = 7

        return fill

    out, stream = cu.to_device(np.zeros(8, np.int64)), cu.Stream(nonblocking=True)
    kernel = make()
    kernel[1, 8, stream](out)
    stream.synchronize()
    out.fill(0)
    with stream.capture() as graph:
        kernel[1, 8, stream](out)
    del kernel
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert out.copy_to_host().tolist() == [7] * 8


@pytest.mark.parametrize("end", ["inside", "close inside", "after"])
def test_memory_of_compiled_kernels_is_kept(end):
    """Arrays that only captured launches refer to live as long as the graph needs them."""
    stream, out = cu.Stream(nonblocking=True), cu.to_device(np.zeros(8, np.int64))
    x, middle = cu.to_device(np.arange(8)), cu.to_device(np.zeros(16, np.int64))
    for _ in range(40):  # until the call is a compiled one
        add[1, 32, stream](out, x, 1)
        add[1, 32, stream](middle[8:], x, 1)
    stream.synchronize()
    address = middle.handle
    with stream.capture() as graph:
        add[1, 32, stream](middle[8:], x, 5)
        add[1, 32, stream](out, middle[8:], 1)
        if end == "close inside":
            middle.close()
        if end != "after":
            del middle, x
            gc.collect()
    assert len(cu.pending) == 0
    middle = x = None
    gc.collect()
    other = cu.to_device(np.full(16, 100))
    made = graph.instantiate()
    graph.close()
    made.launch(stream)
    stream.synchronize()
    assert out.copy_to_host().tolist() == [i + 6 for i in range(8)]
    assert set(other.copy_to_host()) == {100}
    assert driver.cuMemGetAddressRange(address)[0] == address
    made.close()
    if cu.is_emulator():  # a GPU's driver does it a moment later
        with pytest.raises(cu.CudaError):
            driver.cuMemGetAddressRange(address)
