"""The steps of compilation by the original module's names, and what tells of a compiled kernel."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu
from compiler import types
from compiler.dispatch.autotune import AutoTuner, Resources
from tests.device.driver_code import PTX

F = types.float32
ARRAY = types.float32[::1]


def scale(out, x):
    """out[i] *= x"""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = twice(out[i]) * x


def half(x):
    """x / 2"""
    return x / types.float32(2)


@cuda.jit(device=True)
def twice(x):
    """2 x"""
    return x + x


# -- compile_cuda


def test_compile_cuda_stops_before_code():
    """It gives types, annotated source and LLVM IR, and generates no code."""
    found = cuda.compile_cuda(half, None, [F])
    assert str(found.signature) == "float32(float32)"
    assert "define" in found.library
    assert "half" in found.library
    assert "return x / types.float32(2)" in found.type_annotation
    assert found.target.cc == cu.Device(0).compute_capability
    assert found.call_helper == ()


def test_compile_cuda_checks_what_is_returned():
    """Another return type is a TypeError that names both."""
    with pytest.raises(TypeError, match="float32, not int32"):
        cuda.compile_cuda(half, types.int32, [F])
    assert cuda.compile_cuda(half, F, [F]).signature.returns == F


def test_compile_cuda_in_debug_mode_reports():
    """With debug the exceptions that the function may raise are listed."""

    def careful(x):
        if x < 0:
            raise ValueError("negative")
        return x

    assert cuda.compile_cuda(careful, None, [F], debug=True).call_helper
    assert not cuda.compile_cuda(careful, None, [F]).call_helper


def test_compilation_from_many_threads():
    """However many threads compile, each gets its result."""
    found = []

    def work(bits):
        found.append(cuda.compile_cuda(half, None, [F if bits else types.float64]))

    workers = [threading.Thread(target=work, args=(i % 2,)) for i in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(found) == 8


# -- compile_kernel


def test_compile_kernel_gives_a_kernel():
    """It launches at once, with its registers limited and its arguments checked."""
    kernel = cuda.compile_kernel(scale, [ARRAY, F], max_registers=32)
    out = np.ones(8, np.float32)
    kernel[1, 8](out, 2.5)
    assert set(out) == {5.0}
    assert kernel.entry_name == "scale"
    assert kernel.regs_per_thread <= 32
    with pytest.raises(TypeError, match=r"argument 0 \(out\)"):
        kernel[1, 8](np.ones(8), 2.5)


def test_fastmath_reaches_device_functions():
    """The approximate division stands in the code of what the kernel calls."""

    @cuda.jit(device=True)
    def ratio(a, b):
        return a / b

    def divide(out, a, b):
        out[0] = ratio(a, b)

    fast = cuda.compile_kernel(divide, [ARRAY, F, F], fastmath=True)
    exact = cuda.compile_kernel(divide, [ARRAY, F, F])
    assert "div.rn.f32" in exact.ptx
    assert "div.rn" not in fast.ptx
    assert "div." in fast.ptx


def test_compile_kernel_passes_extensions():
    """They prepare each argument."""
    seen = []

    class Extension:
        def prepare_args(self, ty, val, stream, retr):
            seen.append(val)
            return ty, val

    out = cu.to_device(np.ones(1, np.float32))
    cuda.compile_kernel(scale, [ARRAY, F], extensions=[Extension()])[1, 1](out, 1.0)
    assert seen == [out, 1.0]


# -- device functions


def test_a_template_compiles_once_for_each_types():
    """compile() keeps its result; LLVM IR and PTX can be looked at; it pickles."""
    template = cuda.compile_device_template(half, inline=True)
    assert template.compile([F]) is template.compile((F,))
    assert "half" in template.inspect_llvm([F])
    assert b".func" in template.inspect_ptx([types.float64])
    again = pickle.loads(pickle.dumps(template))
    assert (again.pyfunc, again.inline, again.debug) == (half, True, False)

    @cuda.jit
    def kernel(out):
        out[0] = template(out[0])

    out = np.full(1, 3, np.float32)
    kernel[1, 1](out)
    assert out[0] == 1.5


def test_a_device_function_has_its_signature():
    """compile_device fixes it: calls convert, and repr shows it."""
    function = cuda.compile_device(half, F, [F])
    assert "half" in repr(function)
    assert "float32(float32)" in repr(function)
    with pytest.raises(TypeError, match="not float64"):
        cuda.compile_device(half, types.float64, [F])


# -- CachedPTX, CachedCUFunction


def test_cached_ptx_is_compiled_once_a_capability(capsys, monkeypatch):
    """The second get() is the first one's text; a variable prints it."""
    monkeypatch.setenv("COMPILER_DUMP_ASSEMBLY", "1")
    llvm = cuda.compile_kernel(scale, [ARRAY, F]).inspect_llvm()
    cached = cuda.CachedPTX("scale", llvm, {"opt": 3})
    assert cached.get() is cached.get()
    assert list(cached.cache) == [cu.Device(0).compute_capability]
    printed = capsys.readouterr().out
    assert "assembly of scale" in printed
    assert printed.count(".entry scale") == 1


def test_a_cached_function_is_loaded_once_a_context():
    """It launches, and pickles without what was loaded; with files to link it does not pickle."""
    llvm = cuda.compile_kernel(scale, [ARRAY, F]).inspect_llvm()
    function = cuda.CachedCUFunction("scale", cuda.CachedPTX("scale", llvm))
    assert function.get() is function.get()
    assert isinstance(function.get_info(), str)
    again = pickle.loads(pickle.dumps(function))
    out = cu.to_device(np.ones(4, np.float32))
    again.get().launch(1, 4, out, 4, np.float32(3))
    assert set(out.copy_to_host()) == {6.0}


def test_a_cached_function_links_files(tmp_path):
    """Their kinds are told by their names; what links files does not pickle, and says why."""
    other = tmp_path / "other.ptx"
    other.write_text(PTX.replace("scale", "other"))
    llvm = cuda.compile_kernel(scale, [ARRAY, F]).inspect_llvm()
    function = cuda.CachedCUFunction("scale", cuda.CachedPTX("scale", llvm), [other], 40)
    assert function.get().name == "scale"
    assert isinstance(function.get_info(), str)
    with pytest.raises(RuntimeError, match=r"other\.ptx"):
        pickle.dumps(function)


# -- resources, occupancy, autotune


def test_resources_of_a_kernel():
    """Registers, memory and threads, of one specialisation and of all."""

    @cuda.jit
    def shares(out):
        kept = cuda.shared.array(64, np.float64)
        kept[cuda.threadIdx.x] = out[0]
        cuda.syncthreads()
        out[0] = kept[0]

    kernel = shares.compile("void(float64[::1])")
    assert kernel.shared_mem_per_block == 512
    assert kernel.max_threads_per_block >= 64
    assert kernel.device == cu.Device(0)
    [(types_of, found)] = shares.get_shared_mem_per_block().items()
    assert (str(types_of[0]), found) == ("float64[::1]", 512)
    signature = "void(float64[::1])"
    for get in (shares.get_regs_per_thread, shares.get_local_mem_per_thread):
        assert get(signature) >= 0
    assert shares.get_const_mem_size(signature) >= 0
    assert shares.get_max_threads_per_block(signature) == kernel.max_threads_per_block


def test_deprecated_names_warn():
    """autotune and occupancy work, and name what to use."""
    kernel = cuda.compile_kernel(scale, [ARRAY, F])[1, 256]
    with pytest.warns(DeprecationWarning, match="occupancy asks the driver"):
        assert 0 < kernel.autotune.best() <= 1024
    with pytest.warns(DeprecationWarning, match="occupancy.fraction"):
        assert 0 < kernel.occupancy <= 1


# Registers, shared bytes, capability -> occupancy of blocks of 256, by the published calculator.
KNOWN = [
    (32, 0, (8, 0), 1.0),
    (64, 0, (8, 0), 0.5),
    (40, 0, (7, 5), 1.0),
    (128, 0, (9, 0), 0.25),
    (32, 40960, (8, 0), 0.5),
    (32, 102400, (9, 0), 0.25),
]


@pytest.mark.parametrize(("regs", "shared", "cc", "expected"), KNOWN)
def test_the_table_of_the_tuner(regs, shared, cc, expected):
    """Occupancies are those that registers and shared memory leave."""
    tuner = AutoTuner(Resources(regs, shared, 0, 0, 1024), cc)
    assert tuner.table[256].occupancy == expected
    assert tuner.closest(250) == expected


def test_choices_of_the_tuner():
    """best is the smallest of the highest, max_occupancy_min_blocks the largest; prefer picks."""
    tuner = AutoTuner(Resources(32, 0, 0, 0, 1024), (8, 0))
    assert tuner.best() == 64
    assert tuner.max_occupancy_min_blocks() == 1024
    assert tuner.prefer(32, 96, 128, 512) == 128
    assert tuner.prefer(2000) is None
    assert AutoTuner(Resources(32, 400_000, 0, 0, 1024), (8, 0)).best() == 0
    with pytest.raises(ValueError, match="1 to 1024"):
        tuner.closest(1025)
    with pytest.raises(ValueError, match="sm_999"):
        AutoTuner(Resources(32, 0, 0, 0, 1024), (99, 9))
