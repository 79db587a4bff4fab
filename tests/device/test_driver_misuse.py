"""Objects used as they are not meant to be: copied, pickled, closed in any order."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import cudadrv as cu
from tests.device.hostile import INSTANCES, PTX

IN_A_CONTEXT = ("DeviceArray", "DeviceMemory", "Event", "Graph", "GraphExec", "PinnedMemory")
COPIES = {"Device", "DeviceArray"}


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("name", sorted(INSTANCES.keys() - COPIES))
def test_what_is_the_drivers_is_not_copied(name, how):
    """A copy would free it twice, or be a stranger's address in another process: TypeError."""
    try:
        made = INSTANCES[name]()
    except (cu.CudaError, cu.NotSupported) as error:
        pytest.skip(f"this device makes none: {error}")
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        how(made)


@pytest.mark.parametrize("name", sorted(each for each in INSTANCES if each != "Context"))
def test_what_is_closed_says_so(name):
    """close() may be called twice; then repr works, and neither the handle nor ``with`` does."""
    try:
        made = INSTANCES[name]()
    except (cu.CudaError, cu.NotSupported) as error:
        pytest.skip(f"this device makes none: {error}")
    if not hasattr(made, "close"):
        pytest.skip(f"a {name} is not closed")
    made.close()
    made.close()
    assert "closed" in repr(made)
    with pytest.raises(cu.ClosedError):
        _ = made.handle
    with pytest.raises(cu.ClosedError), made:
        pass


def test_devices_are_pickled_by_their_identity():
    """Another process finds the same device, whatever its number there."""
    device = cu.Device(0)
    assert pickle.loads(pickle.dumps(device)) == device == copy.deepcopy(device)


def test_mappings_tell_their_names_and_read_whole():
    """Every mapping of attributes prints its names, and all of it can be read at once."""
    kernel = INSTANCES["Kernel"]()
    node = cu.Graph().add(cu.KernelNode(kernel, 1, 1, *[0] * len(kernel.params)))
    mappings = {
        "WARP_SIZE": cu.Device(0).attributes,
        "STACK_SIZE": cu.current_context().limits,
        "NUM_REGS": kernel.attributes,
        "MEMORY_TYPE": cu.pointer_attributes(cu.mem_alloc(8)),
        "mem_sync_domain": cu.Stream().attributes,
        "cluster_dimension": node.attributes,
    }
    for name, mapping in mappings.items():
        assert name in repr(mapping) and name in dict(mapping)


def test_what_was_made_in_a_closed_context_is_closed():
    """Every use is a ClosedError before the driver is called; the next context is not touched."""
    before = cu.current_context()
    own = cu.Device(0).create_context()
    made = {name: INSTANCES[name]() for name in IN_A_CONTEXT}
    array, inside = made["DeviceArray"], cu.load(PTX)["scale"]
    part = made["DeviceMemory"][8:16]
    own.close()
    before.set_current()
    outside = cu.load(PTX)["scale"]
    for each in [*made.values(), part]:
        with pytest.raises(cu.ClosedError):
            _ = each.handle
    for use in (
        array.copy_to_host,
        lambda: array[0, 0],
        lambda: inside.launch(1, 1, 0, 1.0, 0, 0),
        lambda: outside.launch(1, 1, array, 1.0, array, 0),
        lambda: outside.prepare("PfPI", 1, 1)(part, 1.0, array, 0),
    ):
        with pytest.raises(cu.ClosedError):
            use()
    with pytest.raises(cu.ClosedError):
        _ = made["PinnedMemory"].buffer
    for each in made.values():
        each.close()


def test_a_handle_of_another_kind_is_refused():
    """A driver would take an event for a stream, and crash: TypeError before any call."""
    memory, event, stream, graph = cu.mem_alloc(64), cu.Event(), cu.Stream(), cu.Graph()
    context, device, kernel = cu.current_context(), cu.Device(0), INSTANCES["Kernel"]()
    array = cu.to_device(np.zeros(4, np.float32))
    arguments = (1, 1, array, 1.0, array, 0)
    for use in (
        lambda: cu.memset(memory, 0, stream=event),
        lambda: kernel.launch(*arguments, stream=device),
        lambda: cu.Stream.adopt(memory),
        lambda: stream.wait(memory),
        lambda: stream.wait(array),
        lambda: event.elapsed_ms(graph),
        lambda: kernel.launch(*arguments, launch_completion_event=array),
        lambda: kernel.launch(*arguments, access_policy_window={"memory": stream}),
        lambda: cu.Context.adopt(stream),
        lambda: context.wait(stream),
        lambda: cu.Graph.adopt(stream),
        lambda: cu.memcpy_peer(memory, memory, dst_context=device),
        lambda: stream.write_value(event, 0),
        lambda: cu.load(PTX, symbols={"x": stream}),
        lambda: cu.memcpy(memory, stream),
        lambda: cu.memset(stream, 0),
        lambda: kernel.launch(1, 1, stream, 1.0, array, 0),
    ):
        with pytest.raises(TypeError):
            use()


def test_calls_from_a_thread_without_a_context():
    """A thread of the host needs no preparation: what it calls finds a context."""
    kernel, memory, stream = INSTANCES["Kernel"](), cu.mem_alloc(64), cu.Stream()
    array, graph = cu.to_device(np.ones(4, np.float32)), cu.Graph()
    graph.add(cu.MemsetNode(memory, 1))
    execution = graph.instantiate()
    uses = (
        lambda: execution.launch(stream),
        lambda: kernel.launch(1, 1, array, 1.0, array, 0),
        lambda: kernel.prepare("PfPI", 1, 1, stream=stream)(array, 1.0, array, 0),
        array.copy_to_host,
        lambda: cu.memset(memory, 0),
        lambda: cu.Stream().record().synchronize(),
        lambda: graph.clone().instantiate(),
        lambda: cu.load(PTX)["scale"].occupancy.max_active_blocks(32),
        lambda: dict(stream.attributes),
        lambda: cu.mem_alloc_async(64).free(),
        lambda: cu.CudaArray((4, 4), "f4").copy_to_host(),
        lambda: cu.managed_alloc(64).prefetch("host"),
        lambda: cu.virtual_alloc(1),
        lambda: cu.PinnedMemory(64).device,
        lambda: cu.pointer_kind(memory),
    )
    failed = []

    def call(use):
        try:
            use()
        except Exception as error:  # noqa: BLE001 (a thread would only print it)
            failed.append(error)

    for use in uses:
        thread = threading.Thread(target=call, args=(use,))
        thread.start()
        thread.join()
    assert failed == []


def test_masked_arrays_are_refused():
    """No copy drops a mask: the masked numbers would be taken for good ones."""
    masked = np.ma.array([1.0, 2.0], np.float32, mask=[True, False])
    array, image = cu.device_array(2, np.float32), cu.CudaArray(2, np.float32)
    for use in (
        lambda: cu.to_device(masked),
        lambda: array.copy_to_device(masked),
        lambda: array.__setitem__(slice(None), masked),
        lambda: image.copy_from(masked),
    ):
        with pytest.raises(ValueError, match="masked"):
            use()


@pytest.mark.parametrize("found", [5, None, (0,), (0, "x"), (0, -1), (0, 2**64), (0, None)])
def test_streams_that_lie(found):
    """What ``__cuda_stream__`` gives is a handle of 64 bits, or refused: nothing is cut."""
    lying = type("Lying", (), {"__cuda_stream__": lambda self: found})()
    with pytest.raises((TypeError, ValueError)):
        cu.memset(cu.mem_alloc(8), 0, stream=lying)


def test_a_memory_manager_may_wrap_the_driver():
    """``mem_alloc`` inside of a manager is the driver's; an address of 0 is refused."""

    class Wrapping:
        name = "wrapping"

        def alloc(self, nbytes, stream):
            memory = cu.mem_alloc(nbytes)
            return memory.handle, memory.close

        def mem_info(self):
            return 0, 0

    class Empty(Wrapping):
        def alloc(self, nbytes, stream):
            return 0, int

    with cu.memory_manager(Wrapping()):
        assert cu.to_device(np.arange(3)).copy_to_host().tolist() == [0, 1, 2]
    with cu.memory_manager(Empty()), pytest.raises(ValueError, match="no address"):
        cu.mem_alloc(8)


def test_a_record_is_set_from_a_tuple():
    """As in NumPy: one value for each field."""
    array = cu.to_device(np.zeros(2, [("a", "i4"), ("b", "f8")]))
    array[0] = (1, 2.5)
    assert array.copy_to_host()[0].item() == (1, 2.5)
