"""Kernels as objects: tasks, transfers, extensions, pickles."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu

SCALE = 3


@cuda.jit(device=True)
def scaled(x):
    """SCALE times *x*."""
    return SCALE * x


@cuda.jit
def fill(out, x):
    """out[i] = SCALE * x for each task."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = scaled(x)


@cuda.jit
def add(out, x):
    """Add x to out."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] += x[i]


# -- forall


@pytest.mark.parametrize(("ntasks", "tpb"), [(1, 0), (1000, 0), (1000, 32), (31, 1024)])
def test_forall_runs_every_task(ntasks, tpb):
    """Each task has its thread, whatever the number of threads of a block."""
    out = cu.to_device(np.zeros(ntasks))
    fill.forall(ntasks, tpb)(out, 2)
    assert set(out.copy_to_host()) == {6.0}


def test_forall_of_nothing_does_nothing():
    """No task, no launch, and no compilation either."""
    fill.forall(0)("no argument that a kernel takes")


def test_forall_takes_stream_and_shared_memory():
    """The launch is ordered on the stream and has the shared memory."""

    @cuda.jit
    def reverse(out):
        kept = cuda.shared.array(0, np.float64)
        i = cuda.threadIdx.x
        kept[i] = out[i]
        cuda.syncthreads()
        out[i] = kept[out.size - 1 - i]

    out, stream = cu.to_device(np.arange(64.0)), cu.Stream()
    reverse.forall(64, tpb=64, stream=stream, sharedmem=64 * 8)(out)
    stream.synchronize()
    assert list(out.copy_to_host()) == list(range(63, -1, -1))


def test_forall_of_a_specialised_kernel():
    """A kernel that has its types can be launched over tasks too."""
    kernel = fill.compile("void(float64[:], float64)")
    out = cu.to_device(np.zeros(77))
    kernel.forall(77)(out, 1.0)
    assert set(out.copy_to_host()) == {3.0}


def test_forall_asks_the_driver_for_the_block(monkeypatch):
    """The block is that of the occupancy query for this kernel, which knows the shared memory."""
    from cudadrv.occupancy import Occupancy

    asked = []

    def answer(self, smem, limit):
        asked.append((smem, limit))
        return 1, 96

    monkeypatch.setattr(Occupancy, "max_potential_block_size", answer)
    launch = fill.forall(200, sharedmem=128)
    assert launch.best_block(fill.compile("void(float64[:], float64)")) == 96
    assert asked == [(128, 1024)]


def test_forall_without_an_answer_warns(monkeypatch):
    """A driver that cannot tell costs a warning, and the table chooses."""
    from cudadrv.occupancy import Occupancy

    def fail(*_):
        raise cu.NotSupported(801, "CUDA_ERROR_NOT_SUPPORTED", "cuOccupancy")

    monkeypatch.setattr(Occupancy, "max_potential_block_size", fail)
    out = cu.to_device(np.zeros(300))
    with pytest.warns(RuntimeWarning, match="taking"):
        fill.forall(300)(out, 1)
    assert set(out.copy_to_host()) == {3.0}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((-1,), ValueError), ((1.5,), TypeError), ((4, 1025), ValueError), ((4, -1), ValueError)],
)
def test_forall_refuses_numbers(arguments, error):
    """Tasks and threads must be counts that exist."""
    with pytest.raises(error):
        fill.forall(*arguments)


# -- In, Out, InOut


def test_transfers():
    """In is not copied back, Out not in, InOut goes both ways; device arrays are just passed."""
    out, x = np.full(4, 10.0), np.ones(4)
    add[1, 4](cuda.InOut(out), cuda.In(x))
    assert list(out) == [11] * 4
    add[1, 4](cuda.In(out), x)
    assert list(out) == [11] * 4
    filled = np.full(4, np.nan)
    fill[1, 4](cuda.Out(filled), 2)
    assert list(filled) == [6] * 4
    device = cu.to_device(out)
    add[1, 4](cuda.In(device), x)
    assert list(device.copy_to_host()) == [12] * 4


def test_an_array_given_twice_takes_the_wider_way():
    """The same array as In and as InOut is one copy on the device, which comes back."""
    x = np.arange(4.0)
    add[1, 4](cuda.InOut(x), cuda.In(x))
    assert list(x) == [0, 2, 4, 6]
    add[1, 4](x, cuda.In(x))
    assert list(x) == [0, 4, 8, 12]


def test_transfers_want_arrays():
    """A number needs no transfer, so it is refused."""
    with pytest.raises(TypeError, match="give an array"):
        cuda.In(3)


# -- extensions


class Recorder:
    """Passes *change* of each array, and notes in which order."""

    def __init__(self, name, log, change=lambda value: value):
        self.name, self.log, self.change = name, log, change

    def prepare_args(self, ty, val, stream, retr):
        """As numba.cuda calls it."""
        self.log.append((self.name, str(ty)))
        retr.append(lambda: self.log.append((self.name, "done")))
        return ty, self.change(val) if isinstance(val, np.ndarray) else val


def test_extensions_prepare_arguments():
    """The last extension sees an argument first; what they queue runs after the launch."""
    log, shown = [], np.zeros(2)
    first, last = Recorder("first", log), Recorder("last", log, lambda value: shown)

    @cuda.jit(extensions=[first, last])
    def store(out, x):
        out[0] = x

    store[1, 1](np.ones(2), 5.0)
    assert shown[0] == 5
    assert [name for name, _ in log[:4]] == ["last", "first", "last", "first"]
    assert log[4:] == [(name, "done") for name, _ in log[:4]]
    for _ in range(20):
        store[1, 1](cu.device_array(2), 5.0)
    assert len(log) == 21 * 8


# -- inline


def test_inline_device_functions():
    """A device function with inline=True leaves no call behind, even unoptimised."""

    @cuda.jit(device=True, inline=True)
    def twice(x):
        return x + x

    @cuda.jit
    def kernel(out):
        out[0] = twice(out[0])

    out = np.full(1, 4.0)
    kernel[1, 1](out)
    assert out[0] == 8
    assert "alwaysinline" in kernel.compile("void(float64[::1])").inspect_llvm()


# -- pickles


def again(value):
    """What comes out of a pickle of *value*."""
    return pickle.loads(pickle.dumps(value))


def test_kernels_of_modules_pickle_by_name():
    """They come back as the same object, their device functions too."""
    assert again(fill) is fill
    assert again(scaled) is scaled


def test_a_configuration_pickles():
    """Grid, block and shared memory come along, the stream does not."""
    configured = again(fill[2, 8, cu.Stream(), 16])
    assert (configured.griddim, configured.blockdim) == ((2, 1, 1), (8, 1, 1))
    assert (configured.sharedmem, configured.stream) == (16, None)
    out = np.zeros(16)
    configured(out, 1)
    assert set(out) == {3.0}


def test_a_hot_kernel_pickles():
    """A kernel whose launcher is compiled pickles as it did before."""
    out = cu.device_array(4, np.float64)
    kernel = fill[1, 4]
    for _ in range(20):
        kernel(out, 1)
    again(kernel)(out, 2)
    assert set(out.copy_to_host()) == {6.0}


def test_a_specialisation_pickles_as_code():
    """It comes back with PTX, types and annotated source, and runs."""
    kernel = again(fill.compile("void(float64[:], float64)"))
    out = np.zeros(4)
    kernel[1, 4](out, 2.0)
    assert set(out) == {6.0}
    assert "fill" in kernel.ptx
    assert "out[i] = scaled(x)" in kernel.annotated


def closure(factor, offset):
    """A kernel with values of this function, and a helper of its own."""
    table = (offset, factor)

    def helper(x):
        return x * table[1] if x > 0 else helper(-x)

    @cuda.jit
    def kernel(out, x=2):
        out[0] = helper(x) + table[0] + SCALE

    return kernel


def test_closures_pickle_by_source():
    """Values, helpers, recursion, defaults and globals come along; so does a second pickling."""
    for kernel in (again(closure(10, 1)), again(again(closure(10, 1)))):
        out = np.zeros(1)
        kernel[1, 1](out, -4)
        assert out[0] == 40 + 1 + SCALE
        kernel[1, 1](out)
        assert out[0] == 20 + 1 + SCALE


def test_errors_of_a_pickled_kernel_name_the_line():
    """A kernel from a pickle that does not compile shows its own line."""

    def make():
        @cuda.jit
        def wrong(out):
            out[0] = unknown_name  # noqa: F821

        return wrong

    with pytest.raises(cuda.CompileError, match="unknown_name") as caught:
        again(make())[1, 1](np.zeros(1))
    assert "out[0] = unknown_name" in str(caught.value)


def test_lambdas_are_refused():
    """A lambda has no text of its own."""
    kernel = cuda.jit(lambda out: None)
    with pytest.raises(TypeError, match="with def"):
        pickle.dumps(kernel)


SCRIPT = """
import pickle, sys
import numpy as np
import compiler as cuda
from compiler import atomic, grid

LIMIT = 5

def helper(x: 'whatever', step=2):
    return x + step * LIMIT

@cuda.jit(device=True)
def deep(x):
    return helper(x)

@cuda.jit
def kernel(out, a):
    i = grid(1)
    if i < out.size:
        atomic.add(out, i, deep(a))

{dump}
"""
LOAD = """
import pickle, sys
import numpy as np
kernel = pickle.load(sys.stdin.buffer)
out = np.zeros(3)
kernel[1, 4](out, 1)
print(out.astype(int).tolist())
"""


@pytest.mark.parametrize("pickler", ["pickle", "cloudpickle"])
def test_kernels_of_main_pickle_into_other_processes(tmp_path, pickler):
    """A kernel defined in a script runs in a process that has never seen the script."""
    if pickler == "cloudpickle":
        pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    script = tmp_path / "script.py"
    dump = f"import {pickler}; sys.stdout.buffer.write({pickler}.dumps(kernel))"
    script.write_text(SCRIPT.format(dump=dump))
    root = Path(__file__).parents[2]
    environment = {"cwd": root, "capture_output": True, "check": True}
    python = [sys.executable, "-c", "import runpy, sys; sys.path.insert(0, '.'); "]
    python[2] += f"runpy.run_path({str(script)!r}, run_name='__main__')"
    sent = subprocess.run(python, **environment).stdout
    answer = subprocess.run([sys.executable, "-c", LOAD], input=sent, **environment).stdout
    assert answer.split() == [b"[11,", b"11,", b"11]"]


def test_masked_arrays_are_refused():
    """A kernel would not see the mask, so the error says what to pass."""
    with pytest.raises(TypeError, match=r"argument 1 \(x\).*filled"):
        add[1, 4](np.zeros(4), np.ma.array(np.ones(4), mask=[0, 1, 0, 0]))
