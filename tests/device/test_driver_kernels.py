"""Loading code, looking kernels up, launching them."""

from __future__ import annotations

import ctypes
import gc
import os
import threading

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import KERNELS, PTX, library

X = np.arange(1000, dtype=np.float32)


@pytest.fixture
def scale():
    """The kernel out[i] = a * x[i] with its two arrays."""
    out = cu.to_device(np.zeros_like(X))
    return library()["scale"], out, cu.to_device(X)


def test_kernels_are_listed():
    """A library tells the names of its kernels."""
    assert library().kernels() == KERNELS


def test_code_comes_from_files_and_bytes(tmp_path):
    """A path is read; bytes and text are the code itself."""
    file = tmp_path / "kernels.ptx"
    file.write_text(PTX)
    for code in (file, PTX.encode(), PTX.encode() + b"\0"):
        assert cu.load(code).kernels() == KERNELS


def test_launch_computes(scale):
    """Arrays, Python numbers and a grid of several blocks."""
    kernel, out, x = scale
    kernel.launch(4, 256, out, 2.5, x, 1000)
    np.testing.assert_array_equal(out.copy_to_host(), X * np.float32(2.5))


@pytest.mark.parametrize("factor", [np.float32(3), ctypes.c_float(3), 3.0])
@pytest.mark.parametrize("count", [np.int32(1000), ctypes.c_uint(1000), np.uint32(1000), 1000])
def test_scalars_of_every_kind(scale, factor, count):
    """NumPy, ctypes and Python scalars reach the kernel."""
    kernel, out, x = scale
    kernel.launch((4, 1), (256, 1, 1), out, factor, x, count)
    np.testing.assert_array_equal(out.copy_to_host(), X * np.float32(3))


def test_memory_and_foreign_arrays_are_pointers(scale):
    """DeviceMemory, objects of other libraries and plain addresses pass as pointers."""
    kernel, out, x = scale

    class Foreign:
        __cuda_array_interface__ = x.__cuda_array_interface__

    kernel.launch(4, 256, out.memory, 4.0, Foreign(), 1000)
    np.testing.assert_array_equal(out.copy_to_host(), X * np.float32(4))
    kernel.launch(4, 256, out.handle, 5.0, np.uint64(x.handle), 1000)
    np.testing.assert_array_equal(out.copy_to_host(), X * np.float32(5))


def test_parameters_of_mixed_sizes():
    """Small integers, a double and a struct by value arrive unharmed."""
    kernel = library()["mixed"]
    out = cu.device_array(5, np.uint64)
    pair = np.zeros((), [("a", np.int64), ("b", np.float64)])
    pair["a"], pair["b"] = -2, 1.5
    expected = np.array([200, 60000, 0, -2, 0], np.int64).view(np.uint64)
    expected[2], expected[4] = np.array([-0.5, 1.5]).view(np.uint64)
    for struct in (pair[()], pair.tobytes()):
        kernel.launch(1, 1, out, 200, 60000, -0.5, struct)
        np.testing.assert_array_equal(out.copy_to_host(), expected)


def test_the_driver_tells_the_parameters():
    """Offset and size of each parameter, as C lays them out."""
    assert library()["mixed"].params == [(0, 8), (8, 1), (10, 2), (16, 8), (24, 16)]
    assert library()["nothing"].params == []


@pytest.mark.parametrize(
    ("grid", "block", "expected"),
    [
        (5, 7, [5, 1, 1, 7, 1, 1]),
        ((2, 3), (4, 5), [2, 3, 1, 4, 5, 1]),
        ([2, 3, 4], [5, 6, 7], [2, 3, 4, 5, 6, 7]),
        ((np.int64(2),), np.int32(3), [2, 1, 1, 3, 1, 1]),
    ],
)
def test_grid_and_block(grid, block, expected):
    """One, two or three numbers, the rest is 1."""
    out = cu.device_array(6, np.uint32)
    library()["extents"].launch(grid, block, out)
    assert out.copy_to_host().tolist() == expected


def test_prepared_launch(scale):
    """A prepared launch takes new arguments at each call."""
    kernel, out, x = scale
    run = kernel.prepare("PfPi", grid=4, block=256)
    for factor in (2.0, 3.0):
        run(out, factor, x, 1000)
        np.testing.assert_array_equal(out.copy_to_host(), X * np.float32(factor))
    run(out.handle, 7.0, x.memory, 1000)
    np.testing.assert_array_equal(out.copy_to_host(), X * np.float32(7))


def test_prepared_launch_of_mixed_sizes():
    """The letters of struct stand for the C types of the parameters."""
    kernel = library()["mixed"]
    with pytest.raises(TypeError, match="16"):
        kernel.prepare("PBHd", grid=1, block=1)


def test_prepared_launches_from_threads():
    """Threads that share one prepared launch do not mix their arguments."""
    run = library()["scale"].prepare("PfPi", grid=1, block=64)
    x = cu.to_device(np.ones(64, np.float32))
    outs = [cu.to_device(np.zeros(64, np.float32)) for _ in range(4)]

    def work(index):
        for _ in range(50):
            run(outs[index], float(index + 1), x, 64)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(outs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results = [set(out.copy_to_host().tolist()) for out in outs]
    assert results == [{1.0}, {2.0}, {3.0}, {4.0}]


def test_a_new_thread_gets_a_context(scale):
    """A thread without a current context can launch and copy: device 0's primary becomes it."""
    kernel, out, x = scale
    results = []

    def work():
        kernel.launch(4, 256, out, 6.0, x, 1000)
        results.append(out.copy_to_host())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(results[0], X * np.float32(6))


def test_streams_order_launches(scale):
    """A launch on a stream is done when the stream is."""
    kernel, out, x = scale
    with cu.Stream() as stream:
        kernel.launch(4, 256, out, 2.0, x, 1000, stream=stream)
        kernel.prepare("PfPi", 4, 256, stream)(out, 3.0, out, 1000)
        stream.synchronize()
        assert stream.done
    np.testing.assert_array_equal(out.copy_to_host(), X * np.float32(6))


def test_cooperative_launch():
    """A cooperative launch runs."""
    out = cu.device_array(6, np.uint32)
    library()["extents"].launch(2, 32, out, cooperative=True)
    assert out.copy_to_host().tolist() == [2, 1, 1, 32, 1, 1]


def test_dynamic_shared_memory_beyond_the_default():
    """More than 48 KiB is allowed by itself, up to what the device has."""
    kernel = library()["last_shared"]
    out = cu.device_array(1, np.uint32)
    for nbytes in (64, 48 * 1024, min(96 * 1024, kernel.limits.shared_bytes)):
        cu.memset(out, 0)
        kernel.launch(1, 1, out, nbytes, smem=nbytes)
        assert out.copy_to_host().tolist() == [7]


def test_globals_and_constants():
    """get_global gives the memory of a variable, to be read and written."""
    lib = cu.load(PTX)
    counter, factor = lib.get_global("counter"), lib.get_global("factor")
    assert (counter.nbytes, factor.nbytes) == (16, 4)
    cu.memcpy(counter, np.array([41, 0, 0, 0], np.uint32))
    cu.memcpy(factor, np.array([2.5], np.float32))
    out = cu.device_array(1, np.float32)
    lib["count"].launch(1, 1, out)
    found = np.zeros(4, np.uint32)
    cu.memcpy(found, counter)
    assert (found[0], out.copy_to_host()[0]) == (42, 2.5)


def test_attributes():
    """A kernel's attributes are read by name; some can be set."""
    kernel = library()["last_shared"]
    assert kernel.attributes["MAX_THREADS_PER_BLOCK"] >= 64
    assert "NUM_REGS" in list(kernel.attributes)
    kernel.attributes["MAX_DYNAMIC_SHARED_SIZE_BYTES"] = 50000
    assert kernel.attributes["MAX_DYNAMIC_SHARED_SIZE_BYTES"] == 50000
    with pytest.raises(KeyError, match="NO_SUCH"):
        kernel.attributes["NO_SUCH"]


def test_a_kernel_keeps_its_library_loaded(scale):
    """Dropping the library does not unload the code of a kernel in use."""
    _, out, x = scale
    kernel = cu.load(PTX)["scale"]
    gc.collect()
    kernel.launch(4, 256, out, 2.0, x, 1000)
    np.testing.assert_array_equal(out.copy_to_host(), X * np.float32(2))


def test_the_same_kernel_is_found_again():
    """Looking a kernel up twice gives the same object while it is in use."""
    first = library()["scale"]
    assert library()["scale"] is first


def test_the_function_handle_is_for_functions(scale):
    """``function`` is a CUfunction, which the older calls take."""
    kernel, *_ = scale
    number = cu.driver.cuFuncGetAttribute(0, kernel.function)
    assert number == kernel.attributes["MAX_THREADS_PER_BLOCK"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_launches_in_a_forked_child_are_refused(run_python):
    """Also a launch that the parent prepared raises ForkError."""
    code = (
        "import os, cudadrv as cu\n"
        "from tests.device.driver_code import library\n"
        "x, kernel = cu.mem_alloc(400), library()['scale']\n"
        "run = kernel.prepare('PfPi', 1, 32)\n"
        "def refused(use):\n"
        "    try:\n"
        "        use()\n"
        "    except cu.ForkError as error:\n"
        "        return error.parent == os.getppid()\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    os._exit(not all(map(refused, [\n"
        "        lambda: run(x, 1.0, x, 100),\n"
        "        lambda: kernel.launch(1, 32, x, 1.0, x, 100),\n"
        "        lambda: library()['scale'],\n"
        "        lambda: cu.memset(x, 0),\n"
        "        lambda: cu.Stream.legacy.synchronize(),\n"
        "    ])))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert run_python(code).split() == ["0"]
