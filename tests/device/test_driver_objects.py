"""Devices, contexts, streams, events and memory."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import driver, raw


def test_device_tells_what_it_is():
    """Name, architecture, memory and identity of each device."""
    assert cu.is_available()
    for ordinal, device in enumerate(cu.devices()):
        assert device.ordinal == ordinal
        assert device == cu.Device(ordinal)
        assert device.name
        assert device.arch == "sm_{}{}".format(*device.compute_capability)
        assert device.total_memory > 1 << 20
        assert len(device.uuid) == 40
        assert device.uuid.startswith("GPU-")


def test_attributes_by_name_and_number():
    """Every attribute of the header can be asked; what the driver does not know is None."""
    attributes = cu.Device(0).attributes
    assert attributes["WARP_SIZE"] == 32
    assert attributes["CU_DEVICE_ATTRIBUTE_WARP_SIZE"] == 32
    assert attributes[raw.CU_DEVICE_ATTRIBUTE_WARP_SIZE] == 32
    assert attributes[99999] is None
    assert len(dict(attributes)) == len(attributes) > 100
    with pytest.raises(KeyError, match="NO_SUCH"):
        attributes["NO_SUCH"]


def test_the_primary_context_is_one():
    """Each call gives the same context, and the current one is it by default."""
    device = cu.Device(0)
    context = device.primary_context()
    assert device.primary_context() == context
    assert cu.current_context() == context == cu.Context.current()
    assert context.is_current
    assert context.device == device


def test_current_is_what_the_driver_says():
    """A context that another library makes current is the current one: no state of our own."""
    context = cu.current_context()
    other = cu.Device(0).create_context()
    try:
        assert cu.current_context() == other
        assert cu.mem_alloc(16).context == other.handle
        driver.cuCtxSetCurrent(context.handle)
        assert cu.current_context() == context
    finally:
        context.set_current()
        other.close()
        other.close()


def test_with_restores_the_context_before():
    """``with`` nests, and restores also after an exception."""
    before = cu.current_context()
    other = cu.Device(0).create_context()
    before.set_current()
    with other:
        assert other.is_current
        with before:
            assert before.is_current
        assert other.is_current
    assert cu.current_context() == before
    with pytest.raises(KeyError), other:
        {}["missing"]
    assert cu.current_context() == before
    other.close()


def test_pop_of_another_context_is_refused():
    """pop() takes off only the context it is called on."""
    before = cu.current_context()
    other = cu.Device(0).create_context()
    before.set_current()
    with pytest.raises(RuntimeError, match="pop"):
        other.pop()
    other.push()
    other.pop()
    assert cu.current_context() == before
    other.close()


def test_threads_begin_without_a_context():
    """Context.current() is None in a new thread; current_context() gives it the primary one."""
    found = []
    main = cu.Device(0).primary_context()

    def work():
        found.append(cu.Context.current())
        found.append(cu.current_context())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [None, main]


def test_default_streams_work_in_a_new_thread():
    """The legacy and the per-thread stream need no preparation in a thread."""
    found = []

    def work():
        for stream in (cu.Stream.legacy, cu.Stream.per_thread):
            stream.record(cu.Event()).synchronize()
            stream.synchronize()
            found.append(stream.done)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True, True]


def test_memory_is_freed_in_its_own_context():
    """Closing memory while another context is current frees it in its own."""
    before = cu.current_context()
    other = cu.Device(0).create_context()
    memory = cu.mem_alloc(1 << 20)
    before.set_current()
    memory.close()
    assert cu.current_context() == before
    other.close()


def test_objects_outlive_their_context():
    """What a destroyed context owned is closed and collected without an error."""
    before = cu.current_context()
    other = cu.Device(0).create_context()
    kept = [cu.mem_alloc(100), cu.Stream(), cu.Event()]
    before.set_current()
    other.close()
    kept[0].close()
    del kept
    gc.collect()
    assert cu.current_context() == before


@pytest.mark.parametrize("how", ["close", "reset"])
def test_nothing_is_freed_after_its_context(how, run_python):
    """Memory of an ended context is not freed: its address may belong to another by then."""
    code = (
        "import cudadrv as cu\n"
        "context = cu.current_context() if HOW == 'reset' else cu.Device(0).create_context()\n"
        "memory = cu.mem_alloc(100)\n"
        "cu.Device(0).reset() if HOW == 'reset' else context.close()\n"
        "calls = []\n"
        "cu.raw.cuMemFree = calls.append\n"
        "memory.close()\n"
        "cu.Device(0).primary_context().set_current()\n"
        "cu.mem_alloc(100).close()\n"
        "print(len(calls))\n"
    )
    assert run_python(code.replace("HOW", repr(how))).split() == ["1"]


def test_memory_is_freed(alone):
    """close(), the end of a ``with`` and garbage collection give the memory back."""
    context = cu.current_context()
    gc.collect()
    size = 64 << 20
    free, total = context.mem_info()
    assert 0 < free <= total
    first = cu.mem_alloc(size)
    assert context.mem_info()[0] <= free - size
    first.close()
    with cu.mem_alloc(size):
        pass
    second = cu.mem_alloc(size)
    del second
    gc.collect()
    assert context.mem_info()[0] >= free - size // 2


def test_a_view_keeps_its_memory():
    """Memory lives while a part of it is in use."""
    memory = cu.mem_alloc(100)
    cu.memset(memory, 5)
    part = memory[20:30]
    assert (part.handle, part.nbytes) == (memory.handle + 20, 10)
    del memory
    gc.collect()
    out = bytearray(10)
    cu.memcpy(out, part)
    assert out == bytes([5] * 10)
    part.close()
    with pytest.raises(TypeError, match="start:stop"):
        cu.mem_alloc(10)[3]


def test_empty_memory():
    """No bytes need no memory, and can be copied and filled."""
    memory = cu.mem_alloc(0)
    assert (memory.handle, memory.nbytes) == (0, 0)
    cu.memcpy(memory, b"")
    cu.memset(memory, 1)
    memory.close()


def test_copies_in_every_direction():
    """Host to device, device to device, device to host, host to host; bytes and arrays."""
    data = np.arange(64, dtype=np.uint8)
    first, second = cu.mem_alloc(64), cu.mem_alloc(64)
    cu.memcpy(first, data.tobytes())
    cu.memcpy(second, first)
    out = bytearray(64)
    cu.memcpy(out, second)
    assert out == data.tobytes()
    cu.memcpy(first, memoryview(b"xyz"))
    cu.memcpy(second.handle, first.handle, 3)
    array = np.zeros(64, np.uint8)
    cu.memcpy(array, second)
    assert array[:4].tobytes() == b"xyz\x03"
    cu.memcpy(out, array, 2)
    assert bytes(out[:3]) == b"xy\x02"


def test_copies_on_a_stream():
    """A stream orders copies and fills."""
    stream, memory, out = cu.Stream(), cu.mem_alloc(8), bytearray(8)
    cu.memset(memory, 1, stream=stream)
    cu.memcpy(memory[2:4], b"ab", stream=stream)
    cu.memcpy(out, memory, stream=stream)
    stream.synchronize()
    assert bytes(out) == b"\1\1ab\1\1\1\1"


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [
        (0xAB, 1, b"\xab" * 8),
        (-1, 1, b"\xff" * 8),
        (0x0102, 2, b"\x02\x01" * 4),
        (-2, 4, b"\xfe\xff\xff\xff" * 2),
    ],
)
def test_fills(value, width, expected):
    """A value of 1, 2 or 4 bytes is repeated."""
    memory, out = cu.mem_alloc(8), bytearray(8)
    cu.memset(memory, value, width=width)
    cu.memcpy(out, memory)
    assert bytes(out) == expected


def test_events_measure_time():
    """The time between two events in a stream is not negative."""
    stream = cu.Stream()
    start = stream.record(cu.Event())
    cu.memset(cu.mem_alloc(1 << 20), 0, stream=stream)
    end = stream.record(cu.Event(blocking=True))
    end.synchronize()
    assert end.done and start.done
    assert 0 <= end.elapsed_ms(start) < 60_000


def test_streams_wait_for_events():
    """A stream goes on when the event of another has happened."""
    first, second = cu.Stream(), cu.Stream(priority=-1)
    memory, out = cu.mem_alloc(4), bytearray(4)
    cu.memset(memory, 9, stream=first)
    second.wait(first.record(cu.Event(timing=False)))
    cu.memcpy(out, memory, stream=second)
    second.synchronize()
    assert bytes(out) == b"\t\t\t\t"


def test_streams_of_other_libraries():
    """Handles and the usual protocols are taken, the owner is kept alive, nothing is destroyed."""
    own = cu.Stream()

    class Torch:
        cuda_stream = own.handle

    class CuPy:
        ptr = own.handle

    class Protocol:
        def __cuda_stream__(self):
            return 0, own.handle

    for foreign in (own.handle, Torch(), CuPy(), Protocol()):
        adopted = cu.Stream.adopt(foreign)
        assert adopted.handle == own.handle
        adopted.close()
    assert cu.Stream.adopt(own) is own
    assert own.__cuda_stream__() == (0, own.handle)
    assert own.done
    assert (cu.Stream.legacy.handle, cu.Stream.per_thread.handle) == (1, 2)
    cu.Stream.per_thread.synchronize()
    with pytest.raises(TypeError, match="no stream"):
        cu.Stream.adopt(object())


def test_reset_starts_afresh(run_python):
    """After Device.reset() the old memory is gone, and new work begins in a new context."""
    code = (
        "import cudadrv as cu\n"
        "old = cu.mem_alloc(100)\n"
        "cu.Device(0).reset()\n"
        "del old\n"
        "print(cu.mem_alloc(10).nbytes)\n"
        "cu.Device(0).release_primary()\n"
        "print(cu.mem_alloc(20).nbytes)\n"
    )
    assert run_python(code).split() == ["10", "20"]


def test_exit_with_live_objects(run_python):
    """A program that ends with everything open ends quietly."""
    code = (
        "import cudadrv as cu\n"
        "from tests.device.driver_code import library\n"
        "kernel = library()['scale']\n"
        "run = kernel.prepare('PfPi', 1, 32)\n"
        "keep = [cu.mem_alloc(10), cu.Stream(), cu.Event(), cu.to_device([1.0])]\n"
        "keep.append(keep)\n"
        "class Late:\n"
        "    def __del__(self, memory=cu.mem_alloc(5)):\n"
        "        memory.close()\n"
        "late = Late()\n"
        "print('done')\n"
    )
    assert run_python("import sys; sys.stderr = sys.stdout\n" + code).split() == ["done"]


def test_submodules_need_no_import(run_python):
    """``cudadrv.raw`` and ``cudadrv.driver`` are there after ``import cudadrv``."""
    code = "import cudadrv as cu; print(cu.raw.CUDA_SUCCESS, cu.driver.driver_version()[0] > 0)"
    assert run_python(code).split() == ["0", "True"]


def test_sizes_may_be_numpy_integers():
    """Sizes and values computed with NumPy are as good as Python's."""
    memory, out = cu.mem_alloc(np.int64(8)), bytearray(8)
    cu.memset(memory, np.uint8(3), np.int32(8))
    cu.memcpy(out, memory, np.uint32(4))
    assert bytes(out) == b"\3\3\3\3\0\0\0\0"
    with pytest.raises(TypeError, match="float"):
        cu.mem_alloc(1.5)
