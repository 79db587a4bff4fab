"""A process with CUDA in it: exits, forks, threads, contexts that end early, cycles."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import PTX, library

ROOT = Path(__file__).parents[2]
# One of every object that owns something, by name; PTX is in scope.
OBJECTS = f"""
import gc, os, sys, threading
import numpy as np
import cudadrv as cu
PTX = {PTX!r}

def make():
    library = cu.load(PTX)
    stream = cu.Stream()
    array = cu.to_device(np.arange(1000), stream)
    event = cu.Event()
    stream.record(event)
    run = library["scale"].prepare("PfPI", 1, 32, stream)
    out = cu.device_array(4, np.float32)
    run(out, 1.0, out, 4)
    return dict(
        library=library, kernel=library["scale"], run=run, stream=stream, array=array,
        view=array[::2], event=event, out=out, memory=cu.mem_alloc(32 << 20),
        pinned=cu.pinned_array(9),
        mapped=cu.mapped_array(9), managed=cu.managed_array(9), capsule=array.__dlpack__(),
        taken=cu.from_dlpack(array), linker=cu.Linker(),
    )
"""


def run(code):
    """Run code in a fresh interpreter, which must end by itself and say nothing on stderr."""
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": "error"}
    answer = subprocess.run(
        [sys.executable, "-c", OBJECTS + code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stderr
    return answer.stdout.split()


EXITS = {
    "as globals": "kept = make()",
    "in a cycle": "kept = [make()]; kept.append(kept); gc.disable()",
    "in a module": "sys.modules['kept'] = make()",
    "in the thread that ends last": (
        "def wait(kept):\n    threading.main_thread().join()\n"
        "threading.Thread(target=wait, args=[make()]).start()"
    ),
    "in a daemon thread": (
        "ready = threading.Event()\n"
        "def wait(kept):\n    ready.set()\n    threading.Event().wait()\n"
        "threading.Thread(target=wait, args=[make()], daemon=True).start()\nready.wait()"
    ),
    "closed at exit": (
        "import atexit\nkept = make()\n"
        "atexit.register(lambda: [x.close() for x in kept.values() if hasattr(x, 'close')])"
    ),
    "made at exit": "import atexit\natexit.register(lambda: globals().update(make()))",
    "garbage at the very end": (
        "class Late:\n    def __del__(self):\n        self.kept.clear()\n"
        "late = Late()\nlate.kept = make()\nsys.modules['late'] = late"
    ),
    "with sys.exit": "kept = make()\nprint('end')\nsys.exit()",
    "in a context of their own": ("context = cu.Device(0).create_context()\nkept = make()"),
    "in a context that was destroyed": (
        "context = cu.Device(0).create_context()\nkept = make()\ncontext.close()"
    ),
    "after a reset": "kept = make()\ncu.current_context().synchronize()\ncu.Device(0).reset()",
    "during deferred cleanup": (
        "hold = cu.defer_cleanup()\nhold.__enter__()\nkept = make()\nkept.clear()"
    ),
}


@pytest.mark.parametrize("how", EXITS)
def test_exits(how):
    """A process ends silently and with code 0, wherever its objects are."""
    assert run(EXITS[how] + "\nprint('end')") == ["end"]


DEAD = """
context = cu.Device(0).create_context()
kept = make()
context.{end}
kinds = sorted(kept)
for name in kinds:
    thing = kept.pop(name)
    if hasattr(thing, "close"):
        thing.close()
        thing.close()
    del thing
    gc.collect()
print(len(kinds), cu.to_device(np.arange(3)).copy_to_host().sum())
"""


def test_objects_of_a_destroyed_context():
    """They close, twice too, without a warning; new ones work."""
    assert run(DEAD.format(end="close()")) == ["15", "3"]


def test_objects_end_in_another_thread():
    """The last reference may go in a thread that has no context: memory is freed in its own."""
    code = """
kept = [make()]
context = cu.current_context()
context.synchronize()
def end():
    assert cu.Context.current() is None
    kept.clear()
    gc.collect()
    assert cu.Context.current() is None
def rounds(n):
    for _ in range(n):
        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        kept.append(make())
        context.synchronize()
rounds(2)
before = context.mem_info()[0]
rounds(5)
print(abs(context.mem_info()[0] - before) < 16 << 20)
"""
    assert run(code) == ["True"]


FORK = """
kept = make()
cu.current_context().synchronize()
seen = []
def use(call):
    try:
        call()
    except cu.ForkError:
        seen.append("refused")
    except BaseException as error:
        seen.append(repr(error))
    else:
        seen.append("nothing raised")
sys.stdout.flush()
child = os.fork()
if child == 0:
    for call in (
        lambda: cu.devices(), lambda: cu.mem_alloc(4), lambda: cu.Stream(), lambda: cu.Event(),
        lambda: cu.load(PTX), lambda: cu.to_device(np.arange(3)), lambda: cu.pinned_array(3),
        lambda: kept["array"].copy_to_host(), lambda: kept["array"].fill(0),
        lambda: kept["stream"].synchronize(), lambda: kept["event"].done,
        lambda: kept["run"](kept["out"], 1.0, kept["out"], 4),
        lambda: kept["kernel"].launch(1, 32, kept["out"], 1.0, kept["out"], np.int32(4)),
        lambda: kept["array"].__dlpack__(), lambda: cu.memset(kept["memory"], 0),
        lambda: cu.current_context(), lambda: cu.Linker(),
    ):
        use(call)
    for thing in kept.values():
        if hasattr(thing, "close"):
            thing.close()
    kept.clear()
    gc.collect()
    print(*sorted(set(seen)))
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print(kept["array"].copy_to_host().sum())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks():
    """In a forked child every use is a ForkError, and its end is silent; the parent goes on."""
    assert run(FORK) == ["refused", "499500"]


def test_threads_make_launch_and_close():
    """Eight threads share a kernel and make arrays of their own; every result is right."""
    kernel, problems = library()["scale"], []
    barrier = threading.Barrier(8)

    def work(number):
        host = np.arange(256, dtype=np.float32) + number
        stream = cu.Stream()
        barrier.wait()
        for turn in range(25):
            with cu.to_device(host, stream) as x, cu.device_array(256, np.float32) as out:
                kernel.launch(8, 32, out, float(turn), x, 256, stream=stream)
                found = out.copy_to_host(stream=stream)
                stream.synchronize()
            if not (found == host * turn).all():
                problems.append((number, turn))
            if turn % 5 == number % 5:
                gc.collect()

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_threads_close_the_same_object():
    """Of many closes at once one releases; none fails."""
    for make in (lambda: cu.mem_alloc(64), cu.Stream, cu.Event):
        thing, problems = make(), []
        barrier = threading.Barrier(6)

        def close(thing=thing, barrier=barrier, problems=problems):
            barrier.wait()
            try:
                thing.close()
            except RuntimeError as error:
                problems.append(error)

        threads = [threading.Thread(target=close) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == [] and thing.closed


def test_cycles_are_collected(alone):
    """Objects that hold each other are released by the garbage collector, in any order."""
    context = cu.current_context()

    def cycle():
        array, stream = cu.device_array(1 << 20, np.uint8), cu.Stream()
        array.more, stream.more = stream, array
        array.memory.more = array

    cycle()
    gc.collect()
    context.synchronize()
    free = context.mem_info()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            cycle()
        gc.collect()
    assert abs(context.mem_info()[0] - free) < 8 << 20


def test_garbage_is_collected_anywhere():
    """The collector may run, and release, in the middle of any call: nothing waits for itself."""
    code = """
def cycle():
    array, stream, event = cu.to_device(np.arange(9.0)), cu.Stream(), cu.Event()
    array.more = stream, event, cu.pinned_array(5), array[::2], cu.from_dlpack(array)
    stream.more = array
    return array
library = cu.load(PTX)
for turn in range(300):
    gc.set_threshold(turn % 89 + 1, 1, 1)
    array = cycle()
    library["scale"].launch(1, 32, array, 1.0, array, 4)
    array[::3].copy_to_device(array[1::3])
    assert array.copy_to_host().sum() == 39
    del array
    cu.Graph().instantiate()
print("end")
"""
    assert run(code) == ["end"]


def test_closing_twice_frees_once():
    """What was allocated at the same address since is not freed by a second close."""
    for _ in range(10):
        first = cu.to_device(np.arange(64))
        first.close()
        second = cu.to_device(np.arange(64))
        first.close()
        first.memory.close()
        del first
        assert second.copy_to_host().sum() == 2016


def test_a_reset_by_other_code_is_noticed(run_python):
    """When other code resets the device, a thread without a context gets a working one."""
    code = (
        "import threading, cudadrv as cu\n"
        "from cudadrv import driver\n"
        "cu.mem_alloc(16)\n"
        "driver.cuDevicePrimaryCtxReset(0)\n"
        "def work():\n"
        "    with cu.mem_alloc(16) as memory:\n"
        "        cu.memset(memory, 7)\n"
        "        out = bytearray(16)\n"
        "        cu.memcpy(out, memory)\n"
        "        print(set(out))\n"
        "worker = threading.Thread(target=work)\n"
        "worker.start()\n"
        "worker.join()\n"
    )
    assert run_python(code).strip() == "{7}"
