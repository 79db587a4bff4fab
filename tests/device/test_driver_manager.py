"""Memory managers: other libraries allocate what device arrays lie in."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import cudadrv as cu

ROOT = Path(__file__).parents[2]


class Counting:
    """A manager that takes from the driver and counts."""

    name = "counting"

    def __init__(self):
        self.live = {}
        self.streams = []

    def alloc(self, nbytes, stream):
        with cu.memory_manager(None):
            memory = cu.mem_alloc(nbytes)
        self.live[memory.handle] = memory
        self.streams.append(stream)
        return memory.handle, lambda: self.live.pop(memory.handle).close()

    def mem_info(self):
        return 1 << 20, 2 << 20


@pytest.fixture
def manager():
    """A counting manager, in charge in this thread."""
    made = Counting()
    with cu.memory_manager(made):
        yield made
    assert not made.live


def test_arrays_come_from_the_manager(manager):
    """It allocates every new array, is told the stream, and gets back what is closed or garbage."""
    stream = cu.Stream()
    array = cu.to_device(np.arange(10), stream)
    other = cu.device_array_like(array)
    stream.synchronize()
    assert len(manager.live) == 2 and manager.streams == [stream.handle, 0]
    assert array.handle in manager.live
    np.testing.assert_array_equal(array.copy_to_host(), np.arange(10))
    array.close()
    array.close()
    assert len(manager.live) == 1
    with pytest.raises(cu.ClosedError):
        array.copy_to_host()
    del other
    assert not manager.live
    assert cu.device_array(0).size == 0 and not manager.live


def test_frees_wait_like_the_drivers(manager):
    """``defer_cleanup`` keeps memory with the manager too."""
    with cu.defer_cleanup():
        cu.device_array(10).close()
        assert len(manager.live) == 1
    assert not manager.live


def test_what_was_allocated_goes_back_where_it_came_from():
    """Changing the manager changes nothing for memory that there is."""
    first, second = Counting(), Counting()
    with cu.memory_manager(first):
        array = cu.device_array(10)
        with cu.memory_manager(second):
            array.close()
            assert cu.current_memory_manager() is second
        assert cu.current_memory_manager() is first
    assert not first.live and not second.streams


def test_with_is_for_this_thread_and_set_for_all():
    """``memory_manager`` is seen by its thread alone, ``set_memory_manager`` everywhere."""
    seen, made = [], Counting()

    def ask():
        seen.append(cu.current_memory_manager())

    def ask_elsewhere():
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    with cu.memory_manager(made):
        ask_elsewhere()
    cu.set_memory_manager(made)
    try:
        ask()
        ask_elsewhere()
    finally:
        cu.set_memory_manager(None)
    ask()
    assert seen == [None, made, made, None]


def test_what_is_no_manager_is_refused():
    """The error names what is missing; what alloc returns is checked."""
    for wrong in (5, object(), int, "torch"):
        with pytest.raises(TypeError, match="no memory manager"):
            cu.set_memory_manager(wrong)
    assert cu.current_memory_manager() is None

    class Broken(Counting):
        result: object = None

        def alloc(self, nbytes, stream):
            return self.result

    made = Broken()
    with cu.memory_manager(made):
        for result, error in (
            (None, TypeError), (4096, TypeError), ((4096, None), TypeError),
            (("4096", print), TypeError), ((-1, print), ValueError),
        ):  # fmt: skip
            made.result = result
            with pytest.raises(error, match="counting"):
                cu.mem_alloc(16)


def test_failures_of_the_manager():
    """Errors of alloc reach the caller; those of a free are a warning."""

    class Failing(Counting):
        def alloc(self, nbytes, stream):
            if nbytes > 1000:
                raise MemoryError("the pool is full")
            address, free = super().alloc(nbytes, stream)

            def fail():
                free()
                raise KeyError("pool")

            return address, fail

    with cu.memory_manager(Failing()):
        with pytest.raises(MemoryError, match="pool is full"):
            cu.mem_alloc(2000)
        memory = cu.mem_alloc(16)
        with pytest.warns(cu.CudaWarning, match="could not free"):
            memory.close()


def test_a_class_is_made_an_object():
    """As for numba.cuda's plug-ins."""
    with cu.memory_manager(Counting):
        assert isinstance(cu.current_memory_manager(), Counting)


PLUGIN = """
import sys, types
module = types.ModuleType("plugin")
exec({source!r}, module.__dict__)
sys.modules["plugin"] = module
import cudadrv as cu
try:
    cu.device_array(4)
    print(cu.current_memory_manager().name)
except ValueError as error:
    print(error)
"""
SOURCE = """
class Manager:
    name = "from the environment"
    def alloc(self, nbytes, stream):
        import cudadrv as cu
        with cu.memory_manager(None):
            memory = cu.mem_alloc(nbytes)
        return memory.handle, memory.close
    def mem_info(self):
        return 0, 0
"""


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("plugin:Manager", "from the environment"),
        ("plugin:Other", "CUDADRV_MEMORY_MANAGER=plugin:Other"),
        ("nowhere:Manager", "CUDADRV_MEMORY_MANAGER=nowhere:Manager"),
        ("plugin", "CUDADRV_MEMORY_MANAGER=plugin"),
    ],
)
def test_the_environment_names_a_manager(run_python, name, printed):
    """A module and an attribute; anything wrong with it is told at the first allocation."""
    code = PLUGIN.format(source=SOURCE)
    assert printed in run_python(code, CUDADRV_MEMORY_MANAGER=name)


def fake_libraries():
    """torch, cupy and rmm as far as the recipes use them."""
    live = {}

    class Block:
        def __init__(self, size):
            with cu.memory_manager(None):
                self.memory = cu.mem_alloc(size)
            self.ptr = self.memory.handle
            live[self.ptr] = self.memory

        def __del__(self):
            live.pop(self.ptr)

    def allocate(nbytes, stream):
        block = Block(nbytes)
        kept[block.ptr] = block
        return block.ptr

    kept = {}
    torch = types.SimpleNamespace(
        caching_allocator_alloc=allocate,
        caching_allocator_delete=kept.pop,
        mem_get_info=lambda: (1, 2),
    )
    cupy = types.SimpleNamespace(
        alloc=Block,
        ExternalStream=lambda handle: contextlib.nullcontext(),
        runtime=types.SimpleNamespace(memGetInfo=lambda: (1, 2)),
    )
    rmm = types.SimpleNamespace(
        DeviceBuffer=Block, mr=types.SimpleNamespace(available_device_memory=lambda: (1, 2))
    )
    modules = {"torch": types.SimpleNamespace(cuda=torch), "cupy": types.SimpleNamespace(cuda=cupy)}
    return {**modules, "rmm": rmm}, live


@pytest.mark.parametrize("library", ["torch", "cupy", "rmm"])
def test_the_recipes_of_the_documents(monkeypatch, library):
    """Each allocates through its library and gives everything back."""
    modules, live = fake_libraries()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    text = (ROOT / "docs/interop.md").read_text(encoding="utf-8")
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, scope)
    with cu.memory_manager(scope[f"{library.capitalize()}Manager"]):
        array = cu.to_device(np.arange(5))
        assert array.handle in live
        assert array.copy_to_host().tolist() == [0, 1, 2, 3, 4]
        assert cu.current_memory_manager().mem_info() == (1, 2)
        array.close()
    assert not live
