"""Conditional nodes whose variable kernels set, with the function of the device runtime."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import cudadrv as cu

pytestmark = pytest.mark.usefixtures("context")

PTX = """
.version 8.4
.target sm_90
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 variable, .param .b32 value);

// count[0] -= 1; the variable becomes count[0]
.visible .entry countdown(.param .u64 count, .param .u64 variable)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<3>;
    ld.param.u64 %d0, [count];
    ld.param.u64 %d1, [variable];
    cvta.to.global.u64 %d0, %d0;
    ld.global.u32 %r0, [%d0];
    sub.u32 %r1, %r0, 1;
    st.global.u32 [%d0], %r1;
    {
    .param .b64 p0;
    st.param.b64 [p0], %d1;
    .param .b32 p1;
    st.param.b32 [p1], %r1;
    call.uni cudaGraphSetConditional, (p0, p1);
    }
    ret;
}

// the variable becomes value[0]
.visible .entry choose(.param .u64 value, .param .u64 variable)
{
    .reg .b32 %r;
    .reg .b64 %d<3>;
    ld.param.u64 %d0, [value];
    ld.param.u64 %d1, [variable];
    cvta.to.global.u64 %d0, %d0;
    ld.global.u32 %r, [%d0];
    {
    .param .b64 p0;
    st.param.b64 [p0], %d1;
    .param .b32 p1;
    st.param.b32 [p1], %r;
    call.uni cudaGraphSetConditional, (p0, p1);
    }
    ret;
}
"""


@functools.cache
def linked():
    """The kernels, linked with NVIDIA's device runtime; the emulator has its function itself."""
    if cu.is_emulator():
        return cu.load(PTX)
    spec = importlib.util.find_spec("nvidia")
    places = spec.submodule_search_locations if spec else ()
    found = [path for place in places for path in Path(place).glob("**/libcudadevrt.a")]
    found += Path("/usr/local").glob("cuda*/**/libcudadevrt.a")
    if not found:
        return None
    linker = cu.Linker()
    linker.add_ptx(PTX)
    linker.add_file_guess_ext(found[0])
    return cu.load(linker.link())


@pytest.fixture
def kernels():
    """The kernels."""
    made = linked()
    if made is None:
        pytest.skip("nvidia-cuda-runtime, which has libcudadevrt.a, is not installed")
    return made


def run(graph, times=1):
    """Launch a graph and wait for it."""
    made = graph.instantiate()
    for _ in range(times):
        made.launch()
    cu.current_context().synchronize()


def test_a_loop_ends_when_a_kernel_says_so(kernels):
    """The body runs as often as the kernel wants, in order, and at each launch anew."""
    count, sums = cu.to_device(np.array([5], np.uint32)), cu.to_device(np.zeros(8, np.uint8))
    graph = cu.Graph()
    variable = graph.conditional_handle(1)
    loop = graph.add(cu.ConditionalNode(variable, "while"))
    (body,) = loop.bodies
    first = body.add(cu.KernelNode(kernels["countdown"], 1, 1, count, variable))
    body.add(cu.MemcpyNode(sums.handle, count.handle, 4), after=first)
    graph.add(cu.MemsetNode(sums.handle + 4, 9, 1), after=loop)
    run(graph)
    assert count.copy_to_host().tolist() == [0]
    assert sums.copy_to_host().tolist() == [0, 0, 0, 0, 9, 0, 0, 0]
    count.copy_to_device(np.array([3], np.uint32))
    run(graph)
    assert count.copy_to_host().tolist() == [0]


@pytest.mark.parametrize(("value", "expected"), [(0, [0, 1]), (1, [1, 0]), (7, [1, 0])])
def test_a_kernel_chooses(kernels, value, expected):
    """One of two bodies."""
    given, out = cu.to_device(np.array([value], np.uint32)), cu.to_device(np.zeros(2, np.uint8))
    graph = cu.Graph()
    variable = graph.conditional_handle()
    first = graph.add(cu.KernelNode(kernels["choose"], 1, 1, given, variable))
    node = graph.add(cu.ConditionalNode(variable, "if", 2), after=first)
    for i, body in enumerate(node.bodies):
        body.add(cu.MemsetNode(out.handle + i, 1, 1))
    run(graph)
    assert out.copy_to_host().tolist() == expected


@pytest.mark.parametrize("value", range(4))
def test_a_kernel_chooses_among_many(kernels, value):
    """The body of its number, or none."""
    given, out = cu.to_device(np.array([value], np.uint32)), cu.to_device(np.zeros(3, np.uint8))
    graph = cu.Graph()
    variable = graph.conditional_handle(0)
    first = graph.add(cu.KernelNode(kernels["choose"], 1, 1, given, variable))
    node = graph.add(cu.ConditionalNode(variable, "switch", 3), after=first)
    for i, body in enumerate(node.bodies):
        body.add(cu.MemsetNode(out.handle + i, 1, 1))
    run(graph, times=2)
    assert np.flatnonzero(out.copy_to_host()).tolist() == [value] * (value < 3)


def test_bodies_can_be_captured(kernels):
    """A stream's work becomes the body of a loop."""
    count = cu.to_device(np.array([4], np.uint32))
    graph, stream = cu.Graph(), cu.Stream(nonblocking=True)
    variable = graph.conditional_handle(1)
    (body,) = graph.add(cu.ConditionalNode(variable, "while")).bodies
    with stream.capture(graph=body):
        kernels["countdown"].launch(1, 1, count, variable, stream=stream)
    run(graph)
    assert count.copy_to_host().tolist() == [0]


def test_a_loop_that_could_never_end():
    """The emulator, where it would hang, refuses it."""
    if cu.is_emulator():
        graph = cu.Graph()
        variable = graph.conditional_handle(1)
        (body,) = graph.add(cu.ConditionalNode(variable, "while")).bodies
        body.add(cu.MemsetNode(cu.mem_alloc(4), 0))
        with pytest.raises(cu.NotSupported):
            graph.instantiate()


def test_graphs_with_conditionals_are_not_copied():
    """Neither cloned nor made a child."""
    graph = cu.Graph()
    graph.add(cu.ConditionalNode(graph.conditional_handle(0)))
    with pytest.raises(cu.CudaError):
        graph.clone()
    with pytest.raises(cu.CudaError):
        cu.Graph().add(cu.ChildNode(graph))
