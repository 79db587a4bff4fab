"""The names of the original numba.cuda compiler module: each is there and does its job."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu
from compiler import types

ARRAY = types.float32[::1]
ARGS = (ARRAY, types.float32)


def scale(out, x):
    """out[i] *= x"""
    i = cuda.grid(1)
    if i < out.size:
        out[i] *= x


def double(x):
    """2 x"""
    return x + x


# Name -> its parameters in the original, by which programs call it.
PARAMETERS = {
    "compile_cuda": "pyfunc return_type args debug inline",
    "compile_kernel": "pyfunc args link debug inline fastmath extensions max_registers",
    "DeviceFunctionTemplate": "pyfunc debug inline",
    "compile_device_template": "pyfunc debug inline",
    "compile_device": "pyfunc return_type args inline debug",
    "declare_device_function": "name restype argtypes",
    "ForAll": "kernel ntasks tpb stream sharedmem",
    "CachedPTX": "name llvmir options",
    "CachedCUFunction": "entry_name ptx linking max_registers",
    "AutoTuner": "info cc smem_config warp_size dynsmem",
}
# Name -> the methods and attributes that the original's objects have.
MEMBERS = {
    "DeviceFunctionTemplate": "compile inspect_llvm inspect_ptx",
    "CUDAKernelBase": "copy configure forall",
    "CachedPTX": "get",
    "CachedCUFunction": "get get_info",
    "CUDAKernel": "bind ptx device inspect_llvm inspect_asm inspect_types autotune occupancy",
    "AutoJitCUDAKernel": "specialize compile inspect_llvm inspect_asm inspect_types",
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_the_original_ones(name):
    """A call with the original's keywords is accepted."""
    taken = list(inspect.signature(getattr(cuda, name)).parameters)
    assert taken[: len(PARAMETERS[name].split())] == PARAMETERS[name].split()


@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_the_original_ones(name):
    """Every method and property of the original is there."""
    missing = [each for each in MEMBERS[name].split() if not hasattr(getattr(cuda, name), each)]
    assert not missing


def test_every_name_in_one_program():
    """The original's way from functions to launches, through all of its classes."""
    result = cuda.compile_cuda(double, types.float32, (types.float32,))
    assert str(result.signature) == "float32(float32)"
    template = cuda.compile_device_template(double)
    assert isinstance(template, cuda.DeviceFunctionTemplate)
    fixed = cuda.compile_device(double, types.float32, (types.float32,))
    assert isinstance(fixed, cuda.DeviceFunction)
    outside = cuda.declare_device_function("outside", types.float32, (types.float32,))
    assert isinstance(outside, cuda.ExternFunction)

    kernel = cuda.compile_kernel(scale, ARGS)
    assert isinstance(kernel, cuda.CUDAKernel)
    assert isinstance(kernel, cuda.CUDAKernelBase)
    assert kernel.argument_types == ARGS
    out = np.ones(100, np.float32)
    kernel[4, 32](out, 3)
    cuda.ForAll(kernel, 100, 0, None, 0)(out, 2)
    assert set(out) == {6.0}

    function = cuda.CachedCUFunction("scale", cuda.CachedPTX("scale", kernel.inspect_llvm()))
    assert isinstance(function.get(), cu.Kernel)

    lazy = cuda.jit(scale)
    assert isinstance(lazy, cuda.AutoJitCUDAKernel)
    lazy[4, 32](out, 0.5)
    assert list(lazy.definitions) == [(cu.Device(0).compute_capability, (ARRAY, types.py_float))]
    assert isinstance(lazy.specialize(out, 0.5), cuda.CUDAKernel)


def test_a_base_kernel_is_configured_as_in_the_original():
    """Two to four entries, dimensions of one to three; a copy shares the code."""
    kernel = cuda.compile_kernel(scale, ARGS)
    stream = cu.Stream()
    made = kernel[(2, 3), 32, stream, 64]
    assert (made.griddim, made.blockdim) == ((2, 3, 1), (32, 1, 1))
    assert (made.stream, made.sharedmem) == (stream, 64)
    assert kernel.griddim == (1, 1, 1)
    assert made.copy().compiled is kernel.compiled
    for wrong in (4, (4,), (1, 2, 3, 4, 5)):
        with pytest.raises(ValueError, match="griddim, blockdim"):
            kernel[wrong]


def test_what_pickles_as_in_the_original():
    """Templates, fixed functions, kernels and their functions do, without what was loaded."""
    kernel = cuda.compile_kernel(scale, ARGS)[1, 8]
    for each in (
        cuda.compile_device_template(double),
        cuda.compile_device(double, types.float32, (types.float32,)),
        cuda.CachedCUFunction("scale", cuda.CachedPTX("scale", kernel.inspect_llvm())),
        kernel,
    ):
        assert type(pickle.loads(pickle.dumps(each))) is type(each)
