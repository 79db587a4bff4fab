"""The compiled launcher: what it takes, what it leaves to Python, with the same answers."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu
from compiler.dispatch import kernel as kernels
from compiler.dispatch.kernel import CUDAKernelBase

pytestmark = pytest.mark.skipif(
    not kernels.native.SUPPORTED, reason="launchers are compiled for CPython with its lock alone"
)


def heat(kernel, *args):
    """Launch until the launcher is compiled."""
    for _ in range(kernels.HOT_COLD if "llvmlite.binding" not in sys.modules else kernels.HOT):
        kernel(*args)
    assert is_compiled(kernel)
    return kernel


def is_compiled(kernel):
    """Whether calls of *kernel* reach a C function."""
    return type(kernel) is not kernel.plain_class


def make_store(signature=None):
    """A kernel that stores its number, and how far the array goes."""

    def store(out, x):
        out[0] = x
        out[1] = out.shape[0]

    return cuda.jit(signature)(store) if signature else cuda.jit(store)


def stored(kernel, out, x):
    """What a launch with *x* stores."""
    out.copy_to_device(np.full(out.shape, 99, out.dtype))
    kernel(out, x)
    return list(out.copy_to_host()[:2])


@pytest.mark.parametrize(
    "value",
    [
        3,
        -(2**62),
        2.5,
        True,
        np.int8(-3),
        np.uint16(7),
        np.int64(-9),
        np.uint64(5),
        np.float32(1.5),
    ],
    ids=repr,
)
def test_scalars_arrive(value):
    """A hot kernel gets the same number, Python's or NumPy's, as a cold one."""
    out = cu.device_array(4, np.float64)
    kernel = heat(make_store()[1, 1], out, value)
    assert stored(kernel, out, value) == [float(value), 4.0]


def test_a_number_that_does_not_fit_is_refused():
    """Ints and floats beyond their declared type are the same OverflowError hot and cold."""
    out = cu.device_array(2, np.float64)
    for signature, good, bad in (
        ("void(float64[:], int8)", -128, 128),
        ("void(float64[:], uint32)", 2**32 - 1, -1),
        ("void(float64[:], int64)", 2**63 - 1, 2**63),
        ("void(float64[:], uint64)", 2**64 - 1, 2**64),
        ("void(float64[:], float32)", 1e38, 1e39),
    ):
        kernel = heat(make_store(signature)[1, 1], out, good)
        with pytest.raises(OverflowError, match=r"argument 1 \(x\)"):
            kernel(out, bad)
        kernel(out, good)


def test_floats_keep_infinities_and_nans():
    """inf and nan reach a float32 parameter as they are."""
    out = cu.device_array(2, np.float64)
    kernel = heat(make_store("void(float64[:], float32)")[1, 1], out, 1.0)
    assert stored(kernel, out, float("-inf"))[0] == -np.inf
    assert np.isnan(stored(kernel, out, float("nan"))[0])


def test_other_types_take_another_specialisation():
    """A hot lazy kernel still compiles for other types, and goes on with either."""
    kernel = make_store()[1, 1]
    wide, narrow = cu.device_array(2, np.float64), cu.device_array(2, np.int32)
    heat(kernel, wide, 1)
    assert stored(kernel, wide, 2.75) == [2.75, 2.0]
    assert stored(kernel, narrow, 5) == [5, 2]
    assert stored(kernel, wide, 1) == [1.0, 2.0]
    assert stored(kernel, wide, np.int16(-4)) == [-4.0, 2.0]
    assert stored(kernel, wide, True) == [1.0, 2.0]


def test_arrays_of_every_layout():
    """Slices, Fortran order, broadcasts and empty arrays keep their strides in a hot kernel."""

    @cuda.jit
    def weigh(out, a):
        total = 0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                total += (10 * i + j + 1) * a[i, j]
        out[0] = total

    host = np.arange(24, dtype=np.int64).reshape(4, 6)
    base, out = cu.to_device(host), cu.device_array(1, np.int64)
    weights = 10 * np.arange(4)[:, None] + np.arange(6) + 1
    for view in (np.s_[:, :], np.s_[::2, ::-1], np.s_[1:3, 2:5], np.s_[:0, :]):
        kernel, part = weigh[1, 1], base[view]
        heat(kernel, out, part)
        kernel(out, part)
        expected = host[view]
        rows, columns = expected.shape
        assert out.copy_to_host()[0] == (weights[:rows, :columns] * expected).sum()
    turned = base.T
    kernel = heat(weigh[1, 1], out, turned)
    kernel(out, turned)
    assert out.copy_to_host()[0] == ((10 * np.arange(6)[:, None] + np.arange(4) + 1) * host.T).sum()


def test_a_declared_signature_takes_every_layout():
    """``float64[:]`` takes contiguous arrays and slices of them through the same launcher."""
    out = cu.device_array(2, np.float64)
    big = cu.to_device(np.zeros(8))
    kernel = heat(make_store("void(float64[:], float64)")[1, 1], out, 1.0)
    part = big[1::3]
    for _ in range(3):
        kernel(part, 5.0)
    assert list(big.copy_to_host()) == [0, 5, 0, 0, 3, 0, 0, 0]


def test_what_is_closed_is_refused():
    """A closed array, a view of one, a closed stream and a closed library are ClosedErrors."""
    out, view_of = cu.device_array(2, np.float64), cu.device_array(4, np.float64)
    view = view_of[:2]
    stream = cu.Stream()
    store = make_store()
    kernel, on_stream = store[1, 1], store[1, 1, stream]
    heat(kernel, out, 1)
    heat(on_stream, out, 1)
    kernel(view, 1)
    kernel(view, 1)
    view_of.close()
    for closed in (view, view_of):
        with pytest.raises(cu.ClosedError):
            kernel(closed, 1)
    stream.synchronize()
    stream.close()
    with pytest.raises(cu.ClosedError):
        on_stream(out, 1)
    out.close()
    with pytest.raises(cu.ClosedError):
        kernel(out, 1)


def test_wrong_arguments_are_named():
    """A hot kernel names what is wrong with its arguments as a cold one does."""
    out = cu.device_array(2, np.float64)
    kernel = heat(make_store("void(float64[:], int32)")[1, 1], out, 1)
    for args, message in (
        ((out,), "2 arguments"),
        ((out, 1, 2), "2 arguments"),
        ((out, "x"), r"argument 1 \(x\)"),
        ((None, 1), r"argument 0 \(out\)"),
        ((cu.device_array(2, np.float32), 1), r"argument 0 \(out\)"),
        ((cu.device_array((2, 2), np.float64), 1), r"argument 0 \(out\)"),
    ):
        with pytest.raises(TypeError, match=message):
            kernel(*args)
    kernel(out, x=3)
    assert out.copy_to_host()[0] == 3


def test_host_arrays_still_come_back():
    """A hot kernel copies host arrays in and out by way of Python."""
    device, host = cu.device_array(2, np.float64), np.zeros(2)
    kernel = heat(make_store()[1, 1], device, 1)
    kernel(host, 7)
    assert list(host) == [7, 2]


def test_none_and_read_only_arrays():
    """None takes no parameter; a read-only array is not taken where the kernel may write."""

    @cuda.jit
    def copy(out, x, nothing):
        if nothing is None:
            out[0] = x[0]

    x, out = cu.to_device(np.array([4.0])), cu.device_array(1, np.float64)
    kernel = heat(copy[1, 1], out, x, None)
    kernel(out, x, None)
    assert out.copy_to_host()[0] == 4


def test_another_context_is_noticed():
    """With another context current, a hot kernel loads its code there."""
    out = cu.device_array(2, np.float64)
    kernel = heat(make_store()[1, 1], out, 1)
    with cu.Device(0).create_context() as context:
        other = cu.device_array(2, np.float64)
        kernel(other, 6)
        assert list(other.copy_to_host()) == [6, 2]
        other.close()
    context.close()
    assert stored(kernel, out, 8) == [8, 2]


def test_threads_share_a_launcher():
    """Many threads launch the same hot kernel with arguments of their own."""
    arrays = [cu.device_array(2, np.float64) for _ in range(8)]
    kernel = heat(make_store()[1, 1], arrays[0], 0)

    def work(number):
        for value in range(50):
            kernel(arrays[number], 100 * number + value)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    found = [array.copy_to_host()[0] for array in arrays]
    assert found == [100 * i + 49 for i in range(8)]


def test_launches_leave_no_references():
    """Ten thousand launches leave the reference counts of their arguments and None as they were."""
    out, number = cu.device_array(2, np.float64), 12345.678
    kernel = heat(make_store()[1, 1], out, number)
    before = sys.getrefcount(out), sys.getrefcount(number), sys.getrefcount(None)
    for _ in range(10_000):
        kernel(out, number)
    after = sys.getrefcount(out), sys.getrefcount(number), sys.getrefcount(None)
    assert after[:2] == before[:2]
    assert abs(after[2] - before[2]) < 1000


def test_configurations_are_kept_and_released():
    """The same configuration is the same object; a kernel that is dropped leaves nothing behind."""
    store, out = make_store(), cu.device_array(2, np.float64)
    assert store[1, 32] is store[1, 32]
    assert store[1, 32] is not store[1, 64]
    with pytest.raises(TypeError, match="griddim"):
        store[1.0, 32]
    for block in range(1, 200):
        store[1, block]
    heat(store[1, 1], out, 1)
    gc.collect()
    count = sum(isinstance(each, CUDAKernelBase) for each in gc.get_objects())
    del store
    gc.collect()
    assert sum(isinstance(each, CUDAKernelBase) for each in gc.get_objects()) < count


def test_a_configured_kernel_configures_anew():
    """A hot kernel's clone with another grid starts cold, and launches with its own grid."""

    @cuda.jit
    def count(out):
        cuda.atomic.add(out, 0, 1)

    out = cu.to_device(np.zeros(1, np.int64))
    kernel = heat(count[2, 4], out)
    other = kernel[3, 5]
    assert not is_compiled(other)
    out.copy_to_device(np.zeros(1, np.int64))
    kernel(out)
    other(out)
    assert out.copy_to_host()[0] == 8 + 15


def test_a_failed_launch_says_so(run_python):
    """When the context is lost, a hot launch raises the driver's error with what to do."""
    code = (
        "import numpy as np, sys\n"
        "sys.path.insert(0, '.')\n"
        "import cudadrv as cu\n"
        "from tests.device.test_launcher import heat, crash\n"
        "out = cu.device_array(2, np.int64)\n"
        "kernel = heat(crash[1, 1], out, 0)\n"
        "kernel(out, 1)\n"
        "try:\n"
        "    cu.current_context().synchronize()\n"
        "except cu.CudaError:\n"
        "    pass\n"
        "try:\n"
        "    kernel(out, 0)\n"
        "except cu.CudaError as error:\n"
        "    print(error.sticky, 'new process' in str(error))\n"
    )
    assert run_python(code).split() == ["True", "True"]


@cuda.jit
def crash(out, wild):
    """Access memory that is not there if *wild* is not 0."""
    out[wild << 50] = 1
