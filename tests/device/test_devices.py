"""Devices, contexts, streams and events by numba.cuda's names."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu


@cuda.jit
def count(out):
    """Count the threads."""
    cuda.atomic.add(out, 0, 1)


def test_the_list_of_devices():
    """It has as many as the driver, each usable as a context manager."""
    assert len(cuda.gpus) == len(cu.devices()) == len(list(cuda.gpus))
    assert cuda.list_devices() is cuda.gpus
    assert cuda.gpus[0] == cu.Device(0)
    with pytest.raises(IndexError):
        cuda.gpus[len(cuda.gpus)]
    with cuda.gpus[0] as device:
        assert cuda.gpus.current == device
        assert cuda.get_current_device() == device


def test_a_new_thread_selects_its_device():
    """Without a context there is no current device; selecting one makes its context current."""
    found = []

    def work():
        found.append(cuda.gpus.current)
        found.append(cuda.select_device(0))
        found.append(cuda.current_context(0).device)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert found == [None, cu.Device(0), cu.Device(0)]
    with pytest.raises(ValueError, match="no device 99"):
        cuda.select_device(99)


def test_close_begins_anew(run_python):
    """After close() what was made before is refused, and new kernels run."""
    code = (
        "import numpy as np, compiler as cuda\n"
        "from tests.device.test_devices import count\n"
        "old = cuda.to_device(np.zeros(1, np.int64))\n"
        "count[1, 8](old)\n"
        "cuda.synchronize()\n"
        "cuda.close()\n"
        "new = cuda.to_device(np.zeros(1, np.int64))\n"
        "count[1, 8](new)\n"
        "print(new.copy_to_host()[0])\n"
    )
    assert run_python(code).split() == ["8"]


def test_detect_prints(capsys):
    """The devices are named, and the answer is whether there are any."""
    assert cuda.detect()
    assert cu.Device(0).name in capsys.readouterr().out


def test_streams_and_events():
    """Each name gives what it says, and launches take all of them."""
    out = cuda.to_device(np.zeros(1, np.int64))
    foreign = cu.Stream()
    streams = [
        cuda.stream(), cuda.default_stream(), cuda.legacy_default_stream(),
        cuda.per_thread_default_stream(), cuda.external_stream(foreign.handle),
    ]  # fmt: skip
    for stream in streams:
        count[1, 4, stream](out)
    cuda.synchronize()
    assert out.copy_to_host()[0] == 20
    assert not streams[-1].owned
    start, end = cuda.event(), cuda.event()
    start.record()
    end.record()
    end.synchronize()
    assert cuda.event_elapsed_time(start, end) >= 0
    with cuda.profiling():
        pass
