"""Kernels in Python: `jit` compiles a function to PTX, and a call launches it.

The names are numba.cuda's, so ``import compiler as cuda`` ports a program.
"""

from typing import Any

import cudadrv
from cudadrv import (
    DeviceArray,
    Event,
    Stream,
    as_cuda_array,
    current_context,
    device_array,
    device_array_like,
    from_cuda_array_interface,
    is_available,
    is_cuda_array,
    managed_array,
    mapped_array,
    mapped_array_like,
    pinned,
    pinned_array,
    pinned_array_like,
    to_device,
)

from . import types
from .dispatch.ahead import (
    compile,  # noqa: A004
    compile_all,
    compile_for_current_device,
    compile_ptx,
    compile_ptx_for_current_device,
)
from .dispatch.jit import AutoJitCUDAKernel, DeviceFunction, jit
from .dispatch.kernel import CUDAKernel, CUDAKernelBase
from .dispatch.linking import (
    LTOIR,
    Archive,
    Bitcode,
    Cubin,
    CUSource,
    Fatbin,
    LinkableCode,
    Object,
    PTXSource,
)
from .elements import VECTORS, CPointer, NPDatetime, NPTimedelta
from .errors import CompileError, CompileWarning, TypingError
from .lang import libdevice
from .lang.atomics import atomic
from .lang.extern import ExternFunction, declare_device, declare_device_function
from .lang.indices import (
    blockDim,
    blockIdx,
    grid,
    gridDim,
    gridsize,
    laneid,
    threadIdx,
    warpsize,
)
from .lang.memory import local, shared
from .lang.pointers import carray, farray
from .lang.sync import (
    syncthreads,
    syncwarp,
    threadfence,
    threadfence_block,
    threadfence_system,
)
from .types import (
    Signature,
    bfloat16,
    boolean,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)

# float32x4 and its kin, by CUDA's names too: float4.
globals().update(VECTORS)


def synchronize() -> None:
    """Wait for all work of the current context.

    C: cuCtxSynchronize
    """
    current_context().synchronize()


def get_current_device() -> cudadrv.Device:
    """The device of the current context."""
    return current_context().device


def stream(*args: Any, **kwargs: Any) -> Stream:
    """A new stream; see cudadrv.Stream."""
    return Stream(*args, **kwargs)


def event(timing: bool = True) -> Event:
    """A new event; see cudadrv.Event."""
    return Event(timing=timing)


__all__ = [
    "LTOIR",
    "Archive",
    "AutoJitCUDAKernel",
    "Bitcode",
    "CPointer",
    "CUDAKernel",
    "CUDAKernelBase",
    "CUSource",
    "CompileError",
    "CompileWarning",
    "Cubin",
    "DeviceArray",
    "DeviceFunction",
    "Event",
    "ExternFunction",
    "Fatbin",
    "LinkableCode",
    "NPDatetime",
    "NPTimedelta",
    "Object",
    "PTXSource",
    "Signature",
    "Stream",
    "TypingError",
    "as_cuda_array",
    "atomic",
    "bfloat16",
    "blockDim",
    "blockIdx",
    "boolean",
    "carray",
    "compile",
    "compile_all",
    "compile_for_current_device",
    "compile_ptx",
    "compile_ptx_for_current_device",
    "complex64",
    "complex128",
    "current_context",
    "declare_device",
    "declare_device_function",
    "device_array",
    "device_array_like",
    "event",
    "farray",
    "float16",
    "float32",
    "float64",
    "from_cuda_array_interface",
    "get_current_device",
    "grid",
    "gridDim",
    "gridsize",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_available",
    "is_cuda_array",
    "jit",
    "laneid",
    "libdevice",
    "local",
    "managed_array",
    "mapped_array",
    "mapped_array_like",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "shared",
    "stream",
    "synchronize",
    "syncthreads",
    "syncwarp",
    "threadIdx",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "to_device",
    "types",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "void",
    "warpsize",
]  # fmt: skip
__all__ += list(VECTORS)
