"""Streams: what they are, host functions, waiting, numbers in memory as signals."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import raw
from tests.device.driver_code import library

pytestmark = pytest.mark.usefixtures("context")


def test_a_stream_tells_what_it_is():
    """Identity, kind, context and device; every stream has an id of its own."""
    plain, beside = cu.Stream(), cu.Stream(nonblocking=True)
    assert (plain.nonblocking, beside.nonblocking) == (False, True)
    assert plain.id != beside.id
    assert plain.owning_context == cu.current_context()
    assert plain.device == cu.current_context().device
    assert plain.done


def test_default_streams_tell_too():
    """The default streams belong to the current context."""
    for stream in (cu.Stream.legacy, cu.Stream.per_thread):
        assert stream.owning_context == cu.current_context()
        assert stream.device == cu.Device(0)
        assert not stream.owned
        assert stream.id >= 0
    assert cu.Stream.legacy.id != cu.Stream.per_thread.id


def test_priorities_are_clamped():
    """A priority beyond what the device has is the nearest it has, however large."""
    lowest, highest = cu.driver.cuCtxGetStreamPriorityRange()
    assert cu.Stream(priority=highest).priority == highest
    assert cu.Stream(priority=-(10**20)).priority == highest
    assert cu.Stream(priority=10**20).priority == lowest


@pytest.mark.parametrize("priority", ["high", 1.5, None])
def test_a_priority_is_an_int(priority):
    """Other types are refused."""
    with pytest.raises(TypeError):
        cu.Stream(priority=priority)


def test_adopted_streams_are_left_alone():
    """An adopted stream is not destroyed; the object it came from lives as long."""

    class Foreign:
        def __init__(self):
            self.stream = cu.Stream()
            self.cuda_stream = self.stream.handle

    foreign = Foreign()
    alive = weakref.ref(foreign)
    adopted = cu.Stream.adopt(foreign)
    handle = adopted.handle
    del foreign
    gc.collect()
    assert alive() is not None
    adopted.close()
    assert alive().stream.handle == handle
    assert alive().stream.done


@pytest.mark.parametrize("handle", [-1, 1 << 64])
def test_what_cannot_be_a_handle(handle):
    """It is refused before the driver is called."""
    with pytest.raises(ValueError, match="not the handle of a stream"):
        cu.Stream.adopt(handle)


@pytest.mark.parametrize("thing", ["stream", 1.5, True, object()])
def test_what_is_no_stream(thing):
    """It is refused by its type."""
    with pytest.raises(TypeError, match="is no stream"):
        cu.Stream.adopt(thing)


METHODS = {
    "synchronize": lambda s: s.synchronize(),
    "done": lambda s: s.done,
    "id": lambda s: s.id,
    "priority": lambda s: s.priority,
    "nonblocking": lambda s: s.nonblocking,
    "device": lambda s: s.device,
    "owning_context": lambda s: s.owning_context,
    "record": lambda s: s.record(),
    "wait": lambda s: s.wait(cu.Event()),
    "call": lambda s: s.call(print),
    "write_value": lambda s: s.write_value(cu.mem_alloc(8), 1),
    "wait_value": lambda s: s.wait_value(cu.mem_alloc(8), 0),
    "copy_attributes": lambda s: s.copy_attributes(None),
    "__cuda_stream__": lambda s: s.__cuda_stream__(),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_closed_stream_does_nothing(method):
    """Every method says that it was closed."""
    stream = cu.Stream()
    stream.close()
    with pytest.raises(cu.ClosedError, match="Stream was closed"):
        method(stream)


# -- host functions


def test_host_functions_run_in_order():
    """Each sees the work before it done; arguments are passed on."""
    stream = cu.Stream()
    host = cu.pinned_array(4, np.int32)
    device = cu.to_device(np.arange(4, dtype=np.int32))
    seen = []

    def note(what):
        seen.append((what, host.copy().tolist()))

    host[:] = -1
    stream.call(note, "before")
    cu.memcpy(host, device, stream=stream)
    stream.call(note, "after")
    stream.synchronize()
    assert seen == [("before", [-1] * 4), ("after", [0, 1, 2, 3])]


def test_host_functions_live_until_they_have_run():
    """Callable and arguments are kept alive by the queue alone, and no longer than that."""

    class Thing:
        def __init__(self):
            self.runs = 0

        def run(self, results):
            results.append(id(self))

    stream = cu.Stream()
    thing, results = Thing(), []
    alive, expected = weakref.ref(thing), id(thing)
    stream.call(thing.run, results)
    del thing
    stream.synchronize()
    gc.collect()
    assert results == [expected]
    assert alive() is None


def test_an_exception_in_a_host_function_is_reported(monkeypatch):
    """It goes to threading.excepthook, and the stream goes on."""
    caught = []
    monkeypatch.setattr(threading, "excepthook", caught.append)
    stream, after = cu.Stream(), []
    stream.call(lambda: {}["missing"])
    stream.call(after.append, 1)
    stream.synchronize()
    assert [each.exc_type for each in caught] == [KeyError]
    assert after == [1]


def test_memory_that_dies_in_a_host_function_is_freed_later():
    """No CUDA call is made from the driver's thread: the release waits for the next synchronise."""
    stream, held = cu.Stream(), []
    things = [cu.mem_alloc(64)]

    def drop():
        things.clear()
        held.append(len(cu.pending))

    stream.call(drop)
    stream.synchronize()
    assert held == [1]
    assert len(cu.pending) == 0


def test_c_functions_can_be_called():
    """As a ctypes function or as an address, with the address that it takes or none."""
    seen = []
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    function = prototype(seen.append)
    address = ctypes.cast(function, ctypes.c_void_p).value
    stream = cu.Stream()
    stream.call(function, 77)
    stream.call(address, 78)
    stream.call(address)
    stream.synchronize()
    assert seen == [77, 78, None]


@pytest.mark.parametrize(
    ("function", "arguments", "error"),
    [
        (None, (), TypeError),
        ("name", (), TypeError),
        (0, (), ValueError),
        (-8, (), ValueError),
        (1 << 64, (), ValueError),
        (4096, (1, 2), TypeError),
        (4096, ("text",), TypeError),
    ],
)
def test_what_is_no_host_function(function, arguments, error):
    """It is refused, and nothing is called."""
    with pytest.raises(error):
        cu.Stream().call(function, *arguments)


def test_a_refused_host_function_is_let_go():
    """When the driver refuses, nothing keeps the callable alive."""

    class Thing:
        def run(self):
            pass

    thing = Thing()
    alive = weakref.ref(thing)
    stream = cu.Stream()
    other = cu.Stream.adopt(stream.handle)
    stream.close()
    if cu.is_emulator():  # on a GPU a dangling handle is undefined
        with pytest.raises(cu.CudaError):
            other.call(thing.run)
    del thing
    gc.collect()
    assert alive() is None


# -- waiting


def test_waiting_for_a_stream():
    """Later work of one stream comes after the present work of another."""
    first, second = cu.Stream(nonblocking=True), cu.Stream(nonblocking=True)
    order = []
    first.call(order.append, 1)
    second.wait(first)
    second.call(order.append, 2)
    second.synchronize()
    assert order == [1, 2]


def test_waiting_for_an_event():
    """Later work of a stream comes after an event of another, given as object or as handle."""
    first, second = cu.Stream(nonblocking=True), cu.Stream(nonblocking=True)
    order = []
    first.call(order.append, 1)
    event = first.record()
    second.wait(event)
    second.wait(event.handle)
    second.call(order.append, 2)
    second.synchronize()
    assert order == [1, 2]


@pytest.mark.parametrize("thing", [None, "event", 1.5, True, object()])
def test_what_cannot_be_waited_for(thing):
    """It is refused by its type."""
    with pytest.raises(TypeError, match="is no event"):
        cu.Stream().wait(thing)


def test_record_wants_an_event():
    """A handle has no type to check, so it is refused."""
    with pytest.raises(TypeError, match="takes an Event"):
        cu.Stream().record(5)


# -- numbers in memory


@pytest.mark.parametrize(("width", "dtype"), [(4, np.uint32), (8, np.uint64)])
def test_numbers_are_written_and_waited_for(width, dtype):
    """A written number lets a wait for it pass, and lands in memory."""
    memory = cu.to_device(np.zeros(2, dtype))
    stream = cu.Stream()
    last = memory.handle + width
    stream.write_value(memory, 5, width)
    stream.write_value(last, -1, width)
    for condition, value in ((">=", 4), ("==", 5), ("&", 4)):
        stream.wait_value(memory, value, width, condition)
    stream.wait_value(last, (1 << 8 * width) - 1, width, "==")
    stream.synchronize()
    assert memory.copy_to_host().tolist() == [5, (1 << 8 * width) - 1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0, 1), ValueError),
        ((3, 1), ValueError),
        ((4100, 1, 8), ValueError),
        ((-4, 1), ValueError),
        (("memory", 1), TypeError),
        ((None, 1), TypeError),
        ((4096, 1 << 32), ValueError),
        ((4096, -(1 << 31) - 1), ValueError),
        ((4096, 1.5), TypeError),
        ((4096, 1, 2), ValueError),
    ],
)
def test_numbers_that_are_refused(arguments, error):
    """Before the driver is called, for writing and waiting."""
    stream = cu.Stream()
    for method in (stream.write_value, stream.wait_value):
        with pytest.raises(error):
            method(*arguments)


def test_an_unknown_condition():
    """The error lists those there are."""
    with pytest.raises(ValueError, match="one of >=, ==, &, nor"):
        cu.Stream().wait_value(4096, 1, condition="<")


def test_memory_that_is_too_small():
    """A number must fit into the memory it is written to."""
    with pytest.raises(ValueError, match="has 4 bytes, the number needs 8"):
        cu.Stream().write_value(cu.mem_alloc(4), 1, 8)


def test_a_wait_that_would_never_end():
    """The emulator, where nothing runs later, refuses it instead of hanging."""
    if cu.is_emulator():
        memory = cu.to_device(np.zeros(1, np.uint32))
        with pytest.raises(cu.NotSupported):
            cu.Stream().wait_value(memory, 7, condition="==")


# -- in threads


def test_streams_are_used_from_many_threads():
    """Threads that share a stream see all their work done."""
    stream, results = cu.Stream(), []
    kernel = library()["scale"]
    out, x = cu.to_device(np.zeros(8, np.float32)), cu.to_device(np.ones(8, np.float32))

    def work(number):
        kernel.launch(1, 32, out, 2.0, x, 8, stream=stream)
        stream.call(results.append, number)
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(6))
    assert out.copy_to_host().tolist() == [2.0] * 8


def test_streams_are_collected_in_other_threads():
    """The last reference may go in a thread that has no context."""
    stream = [cu.Stream()]
    thread = threading.Thread(target=stream.clear)
    thread.start()
    thread.join()
    assert cu.current_context().is_current
    assert raw.cuCtxSynchronize() == 0


# -- attributes


def test_attributes_of_streams():
    """They can be set, asked, listed and copied."""
    stream, other = cu.Stream(), cu.Stream()
    lowest, highest = cu.driver.cuCtxGetStreamPriorityRange()
    stream.attributes["priority"] = highest
    assert stream.attributes["priority"] == stream.priority == highest
    stream.attributes["synchronization_policy"] = "yield"
    assert stream.attributes["synchronization_policy"] == raw.CU_SYNC_POLICY_YIELD
    other.copy_attributes(stream)
    assert other.attributes["synchronization_policy"] == raw.CU_SYNC_POLICY_YIELD
    assert {"priority", "access_policy_window"} <= set(stream.attributes)
    assert len(stream.attributes) >= 5
    assert lowest >= highest


def test_a_window_of_memory():
    """The access policy window is a record, whose lifetime is that of what was asked."""
    stream, memory = cu.Stream(), cu.mem_alloc(1 << 16)
    most = cu.Device(0).attributes["MAX_ACCESS_POLICY_WINDOW_SIZE"]
    if not most:
        return
    stream.attributes["access_policy_window"] = {"memory": memory, "hit_ratio": 0.5}
    found = stream.attributes["access_policy_window"]
    assert (found.base_ptr, found.num_bytes, found.hitRatio) == (memory.handle, 1 << 16, 0.5)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("size", 1, TypeError),
        ("cooperative", 1, TypeError),
        ("priority", "high", TypeError),
        ("synchronization_policy", "sleep", ValueError),
        ("access_policy_window", 5, TypeError),
        ("access_policy_window", {"memory": 4096}, ValueError),
    ],
)
def test_attributes_that_are_refused(name, value, error):
    """The error names the attribute or those that there are."""
    stream = cu.Stream()
    with pytest.raises(error, match=name):
        stream.attributes[name] = value


def test_attributes_that_there_are_not():
    """They can be neither asked nor deleted."""
    stream = cu.Stream()
    with pytest.raises(KeyError, match="no attribute"):
        assert stream.attributes["cooperative"]
    with pytest.raises(TypeError, match="cannot be deleted"):
        del stream.attributes["priority"]
