"""Events: order, time, flags, other processes."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import library

pytestmark = pytest.mark.usefixtures("context")


def test_an_event_happens_when_the_work_before_is_done():
    """It is done before it is recorded, and after its stream has reached it."""
    event, stream = cu.Event(), cu.Stream()
    assert event.done
    event.record(stream)
    event.synchronize()
    assert event.done
    assert event.elapsed_ms(event) == 0


def test_time_passes_between_events():
    """The time from the first to the second is not negative, in milliseconds."""
    stream = cu.Stream()
    kernel = library()["scale"]
    out, x = cu.to_device(np.zeros(8, np.float32)), cu.to_device(np.ones(8, np.float32))
    start = stream.record()
    kernel.launch(1, 32, out, 2.0, x, 8, stream=stream)
    end = stream.record()
    end.synchronize()
    assert end.elapsed_ms(start) >= 0


def test_flags_are_kept():
    """What an event was made with can be asked."""
    event = cu.Event(timing=False, blocking=True)
    assert (event.timing, event.blocking, event.interprocess) == (False, True, False)
    event.record()
    event.synchronize()
    assert event.done


def test_time_needs_timing():
    """Both events need it, and both must have been recorded."""
    plain, untimed = cu.Event(), cu.Event(timing=False)
    for first, second in ((plain, untimed), (untimed, plain)):
        with pytest.raises(ValueError, match="timing=True"):
            first.elapsed_ms(second)
    with pytest.raises(ValueError, match="never recorded"):
        plain.elapsed_ms(cu.Event())


@pytest.mark.parametrize("start", [None, 5, 0.5, "event"])
def test_time_is_counted_from_an_event(start):
    """Anything else is refused by its type."""
    with pytest.raises(TypeError, match="takes the Event"):
        cu.Event().elapsed_ms(start)


def test_other_processes_and_timing_exclude_each_other():
    """As in CUDA; the error says what to pass."""
    with pytest.raises(ValueError, match="timing=False"):
        cu.Event(interprocess=True)


def test_an_event_crosses_processes(run_python):
    """Another process opens it and waits for it; the emulator names what it does not do."""
    if cu.is_emulator():
        with pytest.raises(cu.NotSupported):
            cu.Event(timing=False, interprocess=True)
        with pytest.raises(cu.NotSupported):
            cu.Event.open_ipc(bytes(64))
        return
    event = cu.Event(timing=False, interprocess=True)
    event.record()
    handle = event.ipc_handle()
    assert len(handle) == 64
    code = f"""
import cudadrv as cu
event = cu.Event.open_ipc(bytes.fromhex({handle.hex()!r}))
event.synchronize()
stream = cu.Stream()
stream.wait(event)
stream.synchronize()
print(event.done, event.interprocess, event.owned)
"""
    assert run_python(code) == "True True True\n"


def test_only_events_for_other_processes_have_a_handle():
    """The error says how to make one."""
    with pytest.raises(ValueError, match="interprocess=True"):
        cu.Event().ipc_handle()


@pytest.mark.parametrize(
    ("handle", "error"),
    [(b"", ValueError), (bytes(63), ValueError), ("x" * 64, TypeError), (5, TypeError)],
)
def test_handles_of_other_processes_have_64_bytes(handle, error):
    """Others are refused before the driver is called."""
    with pytest.raises(error):
        cu.Event.open_ipc(handle)


def test_adopted_events_are_left_alone():
    """An adopted event is not destroyed; the object it came from lives as long."""

    class Foreign:
        def __init__(self):
            self.event = cu.Event()
            self.cuda_event = self.event.handle

    foreign = Foreign()
    alive = weakref.ref(foreign)
    adopted = cu.Event.adopt(foreign)
    del foreign
    gc.collect()
    assert alive() is not None
    adopted.record()
    adopted.synchronize()
    assert adopted.done
    adopted.close()
    assert alive().event.done
    assert cu.Event.adopt(alive().event) is alive().event
    assert cu.Event.adopt(alive().event.handle).done


@pytest.mark.parametrize(
    ("thing", "error"),
    [
        (None, TypeError),
        ("event", TypeError),
        (1.5, TypeError),
        (True, TypeError),
        (0, ValueError),
        (-1, ValueError),
        (1 << 64, ValueError),
    ],
)
def test_what_is_no_event(thing, error):
    """It is refused by its type or value."""
    with pytest.raises(error):
        cu.Event.adopt(thing)


METHODS = {
    "record": lambda e: e.record(),
    "record external": lambda e: e.record(external=True),
    "synchronize": lambda e: e.synchronize(),
    "done": lambda e: e.done,
    "elapsed_ms": lambda e: e.elapsed_ms(e),
    "wait": lambda e: cu.Stream().wait(e),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_closed_event_does_nothing(method):
    """Every use says that it was closed."""
    event = cu.Event()
    event.close()
    with pytest.raises(cu.ClosedError, match="Event was closed"):
        method(event)


def test_external_means_something_in_captures_only():
    """Outside of one the driver refuses it, for recording and for waiting."""
    event, stream = cu.Event(), cu.Stream()
    with pytest.raises(cu.CudaError, match="ILLEGAL_STATE"):
        event.record(stream, external=True)
    with pytest.raises(cu.CudaError, match=r"ILLEGAL_STATE|INVALID_VALUE"):
        stream.wait(event, external=True)
