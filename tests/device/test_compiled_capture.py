"""Compiled kernels in captures and graphs."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu

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
