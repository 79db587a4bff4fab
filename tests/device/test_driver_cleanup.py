"""When releases happen: at once, after a hold, never in a context that is gone."""

from __future__ import annotations

import gc
import threading

import pytest

import cudadrv as cu
from cudadrv import driver, raw
from cudadrv.context import Resource, origin, release


@pytest.fixture
def released(monkeypatch):
    """What is released of ``Noted`` objects, as argument tuples."""
    calls = []

    def noted(*arguments):
        calls.append(arguments)
        return 0

    monkeypatch.setattr(raw, "cuNoted", noted, raising=False)
    return calls


class Noted(Resource):
    """A resource whose release is noted."""

    RELEASE = "cuNoted"


def make(handle, *more):
    return Noted(handle, cu.current_context().handle, True, *more)


def test_without_a_hold_a_release_is_at_once(released):
    """close() releases, and so does the end of an object; neither leaves anything waiting."""
    make(1).close()
    make(2)
    gc.collect()
    assert released == [(1,), (2,)]
    assert len(cu.pending) == 0


def test_defer_cleanup_holds_releases(released):
    """Inside, nothing is released, closed or collected; at the end everything is, in order."""
    with cu.defer_cleanup():
        first = make(1)
        first.close()
        assert first.closed
        make(2)
        gc.collect()
        assert released == []
        assert len(cu.pending) == 2
        assert "2 releases wait" in repr(cu.pending)
        assert cu.pending.flush() == 0
    assert released == [(1,), (2,)]
    assert len(cu.pending) == 0


def test_holds_nest(released):
    """Only the end of the outermost releases."""
    with cu.defer_cleanup():
        with cu.defer_cleanup():
            make(1).close()
        assert released == []
    assert released == [(1,)]


def test_an_exception_ends_a_hold(released):
    """What waited is released when an exception leaves the block."""
    with pytest.raises(KeyError), cu.defer_cleanup():
        make(1).close() or {}["missing"]
    assert released == [(1,)]


def test_a_hold_holds_other_threads(released):
    """defer_cleanup() counts for every thread."""
    with cu.defer_cleanup():
        thing = make(1)
        thread = threading.Thread(target=thing.close)
        thread.start()
        thread.join()
        assert released == []
    assert released == [(1,)]


def test_a_hold_of_one_thread_leaves_others_alone(released):
    """A hold for a thread lets other threads release, also what waits."""
    with cu.pending.hold(threading.get_ident()):
        make(1).close()
        other = make(2)
        thread = threading.Thread(target=lambda: (other.close(), cu.pending.flush()))
        thread.start()
        thread.join()
        assert released == [(2,), (1,)]


def test_more_arguments_of_a_release(released):
    """Ints are passed on; a Resource is kept alive and passed as its handle, closed as 0."""
    stream = cu.Stream()
    handle = stream.handle
    thing = make(1, 7, stream)
    other = make(2, stream)
    del stream
    gc.collect()
    thing.close()
    stream = cu.Stream.adopt(handle)
    assert released == [(1, 7, handle)]
    assert stream.done
    other._finalizer.peek()[2][-1].close()
    other.close()
    assert released[1] == (2, 0)


def test_a_hold_may_outlive_the_context(released):
    """What waits is dropped if its context is destroyed meanwhile."""
    before = cu.current_context()
    other = cu.Device(0).create_context()
    thing = make(1)
    before.set_current()
    with cu.defer_cleanup():
        thing.close()
        other.close()
    assert released == []
    assert len(cu.pending) == 0


def test_memory_waits_too():
    """The memory of an array closed inside is freed at the end."""
    memory = cu.mem_alloc(64)
    address = memory.handle
    with cu.defer_cleanup():
        memory.close()
        assert driver.cuMemGetAddressRange(address) == (address, 64) or not cu.is_emulator()
    if cu.is_emulator():
        with pytest.raises(cu.CudaError):
            driver.cuMemGetAddressRange(address)


def test_a_refused_release_is_a_warning(monkeypatch):
    """It names the function and the handle, and the context stack is as before."""
    monkeypatch.setattr(raw, "cuNoted", lambda *_: 1, raising=False)
    before = cu.current_context()
    with pytest.warns(cu.CudaWarning, match="cuNoted of 0x1 returned 1"):
        make(1).close()
    assert cu.current_context() == before


def test_a_driver_without_the_function():
    """A release that does not exist leaves the context stack as it was."""
    context = cu.Device(0).create_context()
    before = cu.Device(0).primary_context()
    before.set_current()
    with pytest.raises(AttributeError):
        release(context.handle, origin(context.handle), "cuNoSuch", 1)
    assert cu.current_context() == before
    context.close()


def test_exit_with_releases_waiting(run_python):
    """A process that ends inside a hold ends silently."""
    code = """
import cudadrv as cu
hold = cu.defer_cleanup()
hold.__enter__()
cu.mem_alloc(64).close()
memory = cu.mem_alloc(64)
print(len(cu.pending))
"""
    assert run_python(code) == "1\n"


def test_a_forked_child_has_nothing_waiting(run_python):
    """The child neither holds nor releases; the parent is not disturbed."""
    code = """
import os, cudadrv as cu
with cu.defer_cleanup():
    cu.mem_alloc(64).close()
    child = os.fork()
    if not child:
        os._exit(10 + len(cu.pending) + cu.pending.held)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(cu.pending))
print(len(cu.pending))
"""
    assert run_python(code) == "10 1\n0\n"
