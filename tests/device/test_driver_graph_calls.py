"""The driver's functions for one kind of node each, which the objects leave to the general ones."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import driver, raw
from tests.device.driver_code import library

pytestmark = pytest.mark.usefixtures("context")
N = 8


@pytest.fixture
def graph():
    """An empty graph."""
    return cu.Graph()


def run(graph):
    """Launch a graph and wait for it."""
    made = graph.instantiate()
    made.launch()
    cu.current_context().synchronize()
    return made


def linear(dst, src, nbytes):
    """A CUDA_MEMCPY3D from one device array to another."""
    made = raw.CUDA_MEMCPY3D(WidthInBytes=nbytes, Height=1, Depth=1)
    made.srcMemoryType = made.dstMemoryType = raw.CU_MEMORYTYPE_DEVICE
    made.srcDevice, made.dstDevice = src.handle, dst.handle
    return ctypes.byref(made)


def context():
    """The handle of the current context."""
    return cu.current_context().handle


def test_kernel_nodes(graph):
    """Added, asked, changed in the graph and in what was made of it, by both versions."""
    kernel = library()["scale"]
    x, out = cu.to_device(np.arange(N, dtype=np.float32)), cu.to_device(np.zeros(N, np.float32))
    values = (ctypes.c_void_p(out.handle), ctypes.c_float(2), ctypes.c_void_p(x.handle))
    values = (*values, ctypes.c_uint(N))
    pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(each) for each in values))
    params = raw.CUDA_KERNEL_NODE_PARAMS(kernel.function, 1, 1, 1, 32, 1, 1, 0)
    params.kernelParams = ctypes.addressof(pointers)
    node = driver.cuGraphAddKernelNode(graph.handle, None, 0, ctypes.byref(params))
    found = driver.cuGraphKernelNodeGetParams(node)
    assert (found.gridDimX, found.blockDimX, found.sharedMemBytes) == (1, 32, 0)
    made = run(graph)
    assert out.copy_to_host().tolist() == [2.0 * i for i in range(N)]
    values[1].value = 3
    driver.cuGraphKernelNodeSetParams(node, ctypes.byref(params))
    run(graph)
    assert out.copy_to_host().tolist() == [3.0 * i for i in range(N)]
    values[1].value = 4
    driver.cuGraphExecKernelNodeSetParams(made.handle, node, ctypes.byref(params))
    made.launch()
    cu.current_context().synchronize()
    assert out.copy_to_host().tolist() == [4.0 * i for i in range(N)]


def test_memcpy_nodes(graph):
    """A copy becomes another one, in the graph and in what was made of it."""
    a, b, c = (cu.to_device(np.full(N, i, np.float32)) for i in range(3))
    first = linear(a, b, 4 * N)
    node = driver.cuGraphAddMemcpyNode(graph.handle, None, 0, first, context())
    assert driver.cuGraphMemcpyNodeGetParams(node).WidthInBytes == 4 * N
    made = run(graph)
    assert set(a.copy_to_host()) == {1.0}
    driver.cuGraphExecMemcpyNodeSetParams(made.handle, node, linear(a, c, 4 * N), context())
    made.launch()
    cu.current_context().synchronize()
    assert set(a.copy_to_host()) == {2.0}
    driver.cuGraphMemcpyNodeSetParams(node, linear(c, b, 4 * N))
    run(graph)
    assert set(c.copy_to_host()) == {1.0}


def test_memset_nodes(graph):
    """A fill becomes another one."""
    memory = cu.to_device(np.zeros(N, np.uint32))
    make = raw.CUDA_MEMSET_NODE_PARAMS
    first = ctypes.byref(make(memory.handle, 0, 5, 4, N, 1))
    node = driver.cuGraphAddMemsetNode(graph.handle, None, 0, first, context())
    assert driver.cuGraphMemsetNodeGetParams(node).value == 5
    made = run(graph)
    assert set(memory.copy_to_host()) == {5}
    second = ctypes.byref(make(memory.handle, 0, 6, 4, N, 1))
    driver.cuGraphExecMemsetNodeSetParams(made.handle, node, second, context())
    made.launch()
    cu.current_context().synchronize()
    assert set(memory.copy_to_host()) == {6}
    driver.cuGraphMemsetNodeSetParams(node, ctypes.byref(make(memory.handle, 0, 7, 4, N, 1)))
    run(graph)
    assert set(memory.copy_to_host()) == {7}


def test_host_nodes(graph):
    """A call becomes another one."""
    seen = []
    function = raw.CUhostFn(seen.append)
    address = ctypes.cast(function, ctypes.c_void_p).value

    def given(data):
        return ctypes.byref(raw.CUDA_HOST_NODE_PARAMS(address, data))

    node = driver.cuGraphAddHostNode(graph.handle, None, 0, given(1))
    assert driver.cuGraphHostNodeGetParams(node).userData == 1
    made = run(graph)
    driver.cuGraphExecHostNodeSetParams(made.handle, node, given(2))
    made.launch()
    driver.cuGraphHostNodeSetParams(node, given(3))
    run(graph)
    assert seen == [1, 2, 3]


def test_child_and_empty_nodes(graph):
    """A child graph becomes another one of the same shape."""
    memory, inner, other = cu.to_device(np.zeros(N, np.uint8)), cu.Graph(), cu.Graph()
    inner.add(cu.MemsetNode(memory, 1))
    other.add(cu.MemsetNode(memory, 2))
    empty = driver.cuGraphAddEmptyNode(graph.handle, None, 0)
    after = (ctypes.c_void_p * 1)(empty)
    node = driver.cuGraphAddChildGraphNode(graph.handle, after, 1, inner.handle)
    assert driver.cuGraphChildGraphNodeGetGraph(node) not in (0, inner.handle)
    made = run(graph)
    assert set(memory.copy_to_host()) == {1}
    driver.cuGraphExecChildGraphNodeSetParams(made.handle, node, other.handle)
    made.launch()
    cu.current_context().synchronize()
    assert set(memory.copy_to_host()) == {2}
    assert graph.node(empty).dependents == [graph.node(node)]


def test_event_nodes(graph):
    """Events become others."""
    first, second = cu.Event(), cu.Event()
    record = driver.cuGraphAddEventRecordNode(graph.handle, None, 0, first.handle)
    wait = driver.cuGraphAddEventWaitNode(graph.handle, None, 0, first.handle)
    driver.cuGraphEventRecordNodeSetEvent(record, second.handle)
    driver.cuGraphEventWaitNodeSetEvent(wait, second.handle)
    assert driver.cuGraphEventRecordNodeGetEvent(record) == second.handle
    assert driver.cuGraphEventWaitNodeGetEvent(wait) == second.handle
    made = run(graph)
    driver.cuGraphExecEventRecordNodeSetEvent(made.handle, record, first.handle)
    driver.cuGraphExecEventWaitNodeSetEvent(made.handle, wait, first.handle)
    made.launch()
    first.synchronize()
    assert first.done


def test_memory_nodes(graph):
    """Memory is allocated and freed."""
    params = raw.CUDA_MEM_ALLOC_NODE_PARAMS(bytesize=1 << 16)
    params.poolProps.allocType = raw.CU_MEM_ALLOCATION_TYPE_PINNED
    params.poolProps.location.type = raw.CU_MEM_LOCATION_TYPE_DEVICE
    node = driver.cuGraphAddMemAllocNode(graph.handle, None, 0, ctypes.byref(params))
    after = (ctypes.c_void_p * 1)(node)
    gone = driver.cuGraphAddMemFreeNode(graph.handle, after, 1, params.dptr)
    assert driver.cuGraphMemAllocNodeGetParams(node).dptr == params.dptr
    assert driver.cuGraphMemFreeNodeGetParams(gone) == params.dptr
    run(graph)


def test_memory_operation_nodes(graph):
    """Operations become others."""
    memory = cu.to_device(np.zeros(1, np.uint32))

    def given(value):
        operations = cu.MemoryOperations().write(memory, value).array
        params = raw.CUDA_BATCH_MEM_OP_NODE_PARAMS(context(), 1, ctypes.addressof(operations))
        params.kept = operations
        return ctypes.byref(params)

    node = driver.cuGraphAddBatchMemOpNode(graph.handle, None, 0, given(1))
    assert driver.cuGraphBatchMemOpNodeGetParams(node).count == 1
    made = run(graph)
    driver.cuGraphExecBatchMemOpNodeSetParams(made.handle, node, given(2))
    made.launch()
    cu.current_context().synchronize()
    assert memory.copy_to_host()[0] == 2
    driver.cuGraphBatchMemOpNodeSetParams(node, given(3))
    run(graph)
    assert memory.copy_to_host()[0] == 3


def test_flags_alone(graph):
    """A graph is instantiated by the function that takes nothing but flags, too."""
    memory = cu.to_device(np.zeros(N, np.uint8))
    graph.add(cu.MemsetNode(memory, 1))
    made = cu.GraphExec(driver.cuGraphInstantiate(graph.handle, 0), graph)
    made.launch()
    cu.current_context().synchronize()
    assert set(memory.copy_to_host()) == {1}


def test_wrong_nodes_are_errors(graph):
    """A node of another kind, or none, is CUDA_ERROR_INVALID_VALUE; on the emulator for certain."""
    node = graph.add(cu.EmptyNode()).handle
    for name in ("Kernel", "Memcpy", "Memset", "Host", "MemAlloc", "BatchMemOp"):
        with pytest.raises(cu.CudaError):
            getattr(driver, f"cuGraph{name}NodeGetParams")(node)
    if cu.is_emulator():
        with pytest.raises(cu.CudaError, match="INVALID_VALUE"):
            driver.cuGraphNodeGetType(12345)
        with pytest.raises(cu.CudaError, match="INVALID_VALUE"):
            driver.cuGraphDestroy(12345)


def test_user_objects_are_counted(graph):
    """The last reference calls the function."""
    seen = []
    function = raw.CUhostFn(seen.append)
    address = ctypes.cast(function, ctypes.c_void_p).value
    user = driver.cuUserObjectCreate(7, address, 1, raw.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    driver.cuUserObjectRetain(user, 2)
    driver.cuGraphRetainUserObject(graph.handle, user, 1, 0)
    driver.cuUserObjectRelease(user, 3)
    assert seen == []
    driver.cuGraphReleaseUserObject(graph.handle, user, 1)
    for _ in range(200):
        if seen:
            break
        threading.Event().wait(0.01)
    assert seen == [7]
