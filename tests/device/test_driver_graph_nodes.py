"""The kinds of nodes: what each does, what it is made of, what is refused."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import raw
from tests.device.driver_code import PTX, library

pytestmark = pytest.mark.usefixtures("context")
N = 8


def run(graph, **options):
    """Launch a graph and wait for it."""
    made = graph.instantiate(**options)
    made.launch()
    cu.current_context().synchronize()
    return made


def numbers(*values, dtype=np.float32):
    """Numbers on the device."""
    return cu.to_device(np.array(values, dtype))


def only(params):
    """A graph of one node, and the node."""
    graph = cu.Graph()
    return graph, graph.add(params)


# -- kernels


def test_kernels():
    """They run with the arguments that they were made with; the record of the node tells them."""
    kernel = library()["scale"]
    x, out = numbers(*range(N)), numbers(*[0] * N)
    graph, node = only(cu.KernelNode(kernel, 2, (4, 1), out, 3.0, x, N))
    assert node.kind == "KERNEL"
    params = node.params
    assert (params.gridDimX, params.blockDimX, params.sharedMemBytes) == (2, 4, 0)
    pointers = (ctypes.c_void_p * 4).from_address(params.kernelParams)
    assert ctypes.c_float.from_address(pointers[1]).value == 3.0
    run(graph)
    assert out.copy_to_host().tolist() == [3.0 * i for i in range(N)]


def test_kernels_keep_their_arguments():
    """Memory that only a node uses lives as long as the graph and what was made of it."""
    kernel = library()["scale"]
    x, out = numbers(*range(N)), numbers(*[0] * N)
    graph, _ = only(cu.KernelNode(kernel, 1, 32, out, 3.0, x, N))
    copy = cu.Graph()
    copy.add(cu.MemsetNode(x, 0), after=copy.add(cu.ChildNode(graph)))
    del x
    made = copy.instantiate()
    graph.close()
    copy.close()
    made.launch()
    cu.current_context().synchronize()
    assert out.copy_to_host().tolist() == [3.0 * i for i in range(N)]


def test_kernels_with_shared_memory_and_attributes():
    """Dynamic shared memory beyond the usual limit, and launch attributes."""
    kernel = library()["last_shared"]
    out = numbers(0, dtype=np.uint32)
    graph, node = only(cu.KernelNode(kernel, 1, 1, out, 65536, smem=65536, priority=-1))
    assert node.params.sharedMemBytes == 65536
    assert node.attributes["priority"] == -1
    run(graph)
    assert out.copy_to_host().tolist() == [7]


def test_attributes_of_kernel_nodes():
    """They can be set, asked, listed and copied."""
    kernel = library()["nothing"]
    graph = cu.Graph()
    first, second = (graph.add(cu.KernelNode(kernel, 1, 1)) for _ in range(2))
    first.attributes["cooperative"] = True
    second.copy_attributes(first)
    assert second.attributes["cooperative"] == 1
    assert "cooperative" in dict.fromkeys(first.attributes)
    with pytest.raises(KeyError, match="no attribute"):
        assert first.attributes["size"]
    with pytest.raises(TypeError, match="cannot be deleted"):
        del first.attributes["cooperative"]
    with pytest.raises(TypeError, match="no attribute"):
        first.attributes["size"] = 5
    with pytest.raises(TypeError, match="is no node"):
        first.copy_attributes(5)
    run(graph)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("scale", 1, 1), TypeError),
        ((None, 1, 1), TypeError),
        ((library, 1, 1), TypeError),
    ],
)
def test_what_is_no_kernel(arguments, error):
    """The error shows it."""
    with pytest.raises(error, match="is no Kernel"):
        cu.KernelNode(*arguments)


@pytest.mark.parametrize(
    ("grid", "block", "given", "options", "error"),
    [
        (0, 1, (), {}, ValueError),
        (1, 0, (), {}, ValueError),
        (1, 1025, (), {}, ValueError),
        ("x", 1, (), {}, TypeError),
        (1, 1, (5,), {}, TypeError),
        (1, 1, (), {"smem": -1}, ValueError),
        (1, 1, (), {"smem": 1 << 30}, ValueError),
        (1, 1, (), {"colour": 1}, TypeError),
    ],
)
def test_launches_that_are_refused(grid, block, given, options, error):
    """As by Kernel.launch."""
    with pytest.raises(error):
        cu.KernelNode(library()["nothing"], grid, block, *given, **options)


def test_a_closed_library():
    """The node cannot be added any more."""
    code = cu.load(PTX)
    params = cu.KernelNode(code["nothing"], 1, 1)
    code.close()
    with pytest.raises(cu.ClosedError):
        cu.Graph().add(params)


# -- memory


def test_copies():
    """Between host and device, in every direction."""
    a, b = numbers(*range(N)), numbers(*[0] * N)
    source, target = np.full(N, 5, np.float32), np.zeros(N, np.float32)
    graph = cu.Graph()
    up = graph.add(cu.MemcpyNode(b, a))
    down = graph.add(cu.MemcpyNode(target, b), after=up)
    graph.add(cu.MemcpyNode(a, source), after=down)
    assert up.params.WidthInBytes == 4 * N
    run(graph)
    assert target.tolist() == list(range(N))
    assert a.copy_to_host().tolist() == [5] * N


def test_copies_of_boxes():
    """Rows of planes, from a part of one array to a part of another."""
    a = cu.to_device(np.arange(4 * 8, dtype=np.uint8).reshape(4, 8))
    b = cu.to_device(np.zeros((4, 6), np.uint8))
    params = cu.MemcpyNode.box(b, a, 2, 3, src_at=(1, 1, 0), dst_at=(0, 1, 0))
    run(only(params)[0])
    assert b.copy_to_host()[1:, :2].tolist() == [[9, 10], [17, 18], [25, 26]]
    assert b.copy_to_host().sum() == 9 + 10 + 17 + 18 + 25 + 26


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((None, None), TypeError),
        ((5, "text"), TypeError),
        ((4096, 8192), ValueError),
        ((4096, 8192, 0), ValueError),
        ((4096, 8192, -1), ValueError),
        ((4096, 8192, 1 << 63), ValueError),
        ((4096, 4097, 16), ValueError),
        ((b"constant", 4096, 4), ValueError),
        ((np.zeros(4), np.zeros(2), 32), ValueError),
    ],
)
def test_copies_that_are_refused(arguments, error):
    """Before the driver is called."""
    with pytest.raises(error):
        cu.MemcpyNode(*arguments)


def test_fills():
    """Of each width, and of rows."""
    memory = cu.to_device(np.zeros(16, np.uint8))
    graph = cu.Graph()
    first = graph.add(cu.MemsetNode(memory, 1))
    second = graph.add(cu.MemsetNode(memory, -2, 4, width=2), after=first)
    third = graph.add(cu.MemsetNode(memory.handle + 12, 7, 4, width=4), after=second)
    graph.add(cu.MemsetNode(memory.handle + 4, 9, 1, height=2, pitch=4), after=third)
    assert (second.params.value, second.params.elementSize, second.params.width) == (0xFFFE, 2, 2)
    run(graph)
    expected = [254, 255, 254, 255, 9, 1, 1, 1, 9, 1, 1, 1, 7, 0, 0, 0]
    assert memory.copy_to_host().tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((np.zeros(4), 0), TypeError),
        ((None, 0), TypeError),
        ((4096, 0), ValueError),
        ((4096, 0, 0), ValueError),
        ((4096, 0, 3, 2), ValueError),
        ((4096, 0, 4, 3), ValueError),
        ((4097, 0, 4, 2), ValueError),
        ((4096, 256, 4, 1), ValueError),
        ((4096, "x", 4, 1), TypeError),
        ((4096, 0, 4, 1, 2), ValueError),
        ((4096, 0, 4, 1, 0), ValueError),
        ((4096, 0, 4, 1, 2, 3), ValueError),
    ],
)
def test_fills_that_are_refused(arguments, error):
    """Before the driver is called."""
    with pytest.raises(error):
        cu.MemsetNode(*arguments)


def test_memory_of_graphs():
    """It has its address before it exists, and is used between its nodes."""
    kernel, x = library()["scale"], numbers(*range(N))
    host = np.zeros(N, np.float32)
    graph = cu.Graph()
    made = graph.add(cu.AllocNode(4 * N))
    use = graph.add(cu.KernelNode(kernel, 1, 32, made.address, 2.0, x, N), after=made)
    back = graph.add(cu.MemcpyNode(host, made.address, 4 * N), after=use)
    gone = graph.add(cu.FreeNode(made), after=back)
    assert made.params.bytesize >= 4 * N
    assert gone.address == made.address
    twice = run(graph)
    twice.launch()
    cu.current_context().synchronize()
    assert host.tolist() == [2.0 * i for i in range(N)]
    with pytest.raises(cu.CudaError):
        graph.clone()
    with pytest.raises(TypeError, match="no memory of its own"):
        assert use.address


def test_memory_that_was_not_freed():
    """A second launch is an error, or frees it first."""
    graph, node = only(cu.AllocNode(64))
    plain = run(graph)
    with pytest.raises(cu.CudaError, match="INVALID_VALUE"):
        plain.launch()
    cu.driver.cuMemFree(node.address)
    plain.close()
    del plain
    made = run(graph, auto_free=True)
    assert made.flags == 1
    made.launch()
    cu.current_context().synchronize()
    cu.driver.cuMemFree(node.address)


@pytest.mark.parametrize(
    ("nbytes", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("x", TypeError)]
)
def test_memory_that_is_refused(nbytes, error):
    """Its size is a positive number."""
    with pytest.raises(error):
        cu.AllocNode(nbytes)


def test_what_cannot_be_freed():
    """Other nodes, and what is no address."""
    graph, node = only(cu.EmptyNode())
    with pytest.raises(TypeError, match="no memory of its own"):
        cu.FreeNode(node)
    with pytest.raises(TypeError):
        cu.FreeNode("memory")
    with pytest.raises(cu.CudaError):
        graph.add(cu.FreeNode(cu.mem_alloc(64).handle))


def test_numbers_in_memory():
    """Written and waited for, in order."""
    memory = cu.to_device(np.zeros(2, np.uint64))
    params = cu.MemoryOperations().write(memory, 5).wait(memory, 5, condition="==")
    params.write(memory.handle + 8, -1, 8).wait(memory.handle + 8, 1, 8, "&")
    graph, node = only(params)
    assert node.params.count == 4
    run(graph)
    assert memory.copy_to_host().tolist() == [5, 2**64 - 1]
    with pytest.raises(ValueError, match="no operations"):
        graph.add(cu.MemoryOperations())
    with pytest.raises(ValueError, match="condition"):
        cu.MemoryOperations().wait(memory, 1, condition="<")
    with pytest.raises(ValueError, match="multiple of 4"):
        cu.MemoryOperations().write(memory.handle + 2, 1)


# -- the host, events, graphs


def test_host_functions():
    """Python and C functions, at each launch and in order."""
    seen = []
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    native = prototype(lambda data: seen.append(data))
    graph = cu.Graph()
    first = graph.add(cu.HostNode(seen.append, "python"))
    graph.add(cu.HostNode(native, 77), after=first)
    made = run(graph)
    made.launch()
    cu.current_context().synchronize()
    assert seen == ["python", 77, "python", 77]
    assert first.params.fn
    for wrong in ("text", None, 0):
        with pytest.raises((TypeError, ValueError)):
            cu.HostNode(wrong)


def test_an_exception_in_a_host_function(monkeypatch):
    """It is reported, and the graph goes on."""
    caught, after = [], []
    monkeypatch.setattr(threading, "excepthook", caught.append)
    graph, node = only(cu.HostNode(lambda: {}["missing"]))
    graph.add(cu.HostNode(after.append, 1), after=node)
    run(graph)
    assert [each.exc_type for each in caught] == [KeyError]
    assert after == [1]


def test_events():
    """Recorded and waited for; the node tells which, and it can be another."""
    event, other = cu.Event(timing=False), cu.Event(timing=False)
    event.record()
    graph = cu.Graph()
    wait = graph.add(cu.WaitNode(event))
    record = graph.add(cu.RecordNode(other.handle), after=wait)
    assert (wait.params, record.params) == (event.handle, other.handle)
    record.set(cu.RecordNode(event))
    assert record.params == event.handle
    run(graph)
    assert event.done
    closed = cu.Event()
    params = cu.WaitNode(closed)
    closed.close()
    with pytest.raises(cu.ClosedError):
        graph.add(params)
    for wrong in (None, "event", 1.5):
        with pytest.raises(TypeError, match="is no event"):
            cu.RecordNode(wrong)


def test_children():
    """A child is a copy: what is added to the graph later is not in it."""
    seen = []
    inner, first = only(cu.HostNode(seen.append, 1))
    graph, node = only(cu.ChildNode(inner))
    inner.add(cu.HostNode(seen.append, 2), after=first)
    assert [each.kind for each in node.child.nodes] == ["HOST"]
    assert not node.child.owned
    run(graph)
    assert seen == [1]
    child = node.child
    graph.close()
    with pytest.raises(cu.ClosedError):
        assert child.nodes
    for wrong in (None, 5, inner.nodes[0]):
        with pytest.raises(TypeError, match="is no Graph"):
            cu.ChildNode(wrong)


def test_only_child_nodes_have_children():
    """And only conditional ones bodies; the error names the kind."""
    _, node = only(cu.EmptyNode())
    for ask in (lambda: node.child, lambda: node.params):
        with pytest.raises(TypeError, match="EMPTY"):
            ask()
    with pytest.raises(TypeError, match="conditional"):
        assert node.bodies


@pytest.mark.parametrize(
    ("choice", "bodies", "value", "expected"),
    [
        ("if", 1, 0, []),
        ("if", 1, 7, [0]),
        ("if", 2, 0, [1]),
        ("if", 2, 1, [0]),
        ("while", 1, 0, []),
        ("switch", 3, 0, [0]),
        ("switch", 3, 2, [2]),
        ("switch", 3, 3, []),
    ],
)
def test_conditionals(choice, bodies, value, expected):
    """The value of the variable chooses which body runs."""
    memory = cu.to_device(np.zeros(bodies, np.uint8))
    graph = cu.Graph()
    variable = graph.conditional_handle(value)
    try:
        node = graph.add(cu.ConditionalNode(variable, choice, bodies))
    except cu.CudaError:
        # Two bodies and switches came with 12.8.
        assert cu.driver_version() < (12, 8)
        return
    assert node.kind == "CONDITIONAL"
    assert len(node.bodies) == bodies
    for i, body in enumerate(node.bodies):
        body.add(cu.MemsetNode(memory.handle + i, 1, 1))
    run(graph)
    assert np.flatnonzero(memory.copy_to_host()).tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((1, "until"), ValueError),
        ((1, "if", 0), ValueError),
        ((1, "if", 3), ValueError),
        ((1, "while", 2), ValueError),
        ((1, "switch", -1), ValueError),
        ((-1,), ValueError),
        (("handle",), TypeError),
    ],
)
def test_conditionals_that_are_refused(arguments, error):
    """Before the driver is called."""
    with pytest.raises(error):
        cu.ConditionalNode(*arguments)


@pytest.mark.parametrize(
    ("default", "error"), [(-1, ValueError), (1 << 32, ValueError), (1.5, TypeError)]
)
def test_defaults_that_are_refused(default, error):
    """The value of a variable is unsigned and has 32 bits."""
    with pytest.raises(error):
        cu.Graph().conditional_handle(default)


@pytest.mark.parametrize("kind", [cu.SignalNode, cu.SemaphoreWaitNode])
def test_semaphores_that_are_refused(kind):
    """As many semaphores as parameters, of the right record; the emulator has none."""
    record = getattr(raw, kind.RECORD)
    for semaphores, params in (([], []), ([1], []), ([1, 2], [record()])):
        with pytest.raises(ValueError, match="as many"):
            kind(semaphores, params)
    with pytest.raises(TypeError, match="EXTERNAL_SEMAPHORE"):
        kind([1], [5])
    with pytest.raises(TypeError):
        kind(["semaphore"], [record()])
    if cu.is_emulator():
        with pytest.raises(cu.NotSupported):
            cu.Graph().add(kind([1], [record()]))


def test_empty_nodes_only_order():
    """They run after and before others."""
    seen = []
    graph, first = only(cu.HostNode(seen.append, 1))
    middle = graph.add(cu.EmptyNode(), after=first)
    graph.add(cu.HostNode(seen.append, 2), after=middle)
    run(graph)
    assert seen == [1, 2]
