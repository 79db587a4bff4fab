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
    mapped,
    mapped_array,
    mapped_array_like,
    pinned,
    pinned_array,
    pinned_array_like,
    to_device,
)

# Many names: one a line would be hundreds.
# fmt: off
# isort: off
from .lang.intrinsics import (
    add_rd, add_rn, add_ru, add_rz, add_sat, bfe, bfi, brev, byte_perm, clock, clock64, clz,
    div_rd, div_rn, div_ru, div_rz, dp2a_hi, dp2a_lo, dp4a, fast_cos, fast_div, fast_exp,
    fast_exp10, fast_exp2, fast_log, fast_log10, fast_log2, fast_pow, fast_rcp, fast_rsqrt,
    fast_sin, fast_sqrt, fast_tan, fast_tanh, ffs, fma, fma_rd, fma_rn, fma_ru, fma_rz,
    funnelshift_l, funnelshift_lc, funnelshift_r, funnelshift_rc, globaltimer, gridid, mul24,
    mul_rd, mul_rn, mul_ru, mul_rz, mulhi, nanosleep, nsmid, nwarpid, popc, rcp_rd, rcp_rn,
    rcp_ru, rcp_rz, sad, saturate, selp, smid, sqrt_rd, sqrt_rn, sqrt_ru, sqrt_rz, sub_rd, sub_rn,
    sub_ru, sub_rz, sub_sat, warpid,
)
from .lang.warp import (
    activemask, all_sync, any_sync, ballot_sync, elect_sync, eq_sync, lanemask_eq, lanemask_ge,
    lanemask_gt, lanemask_le, lanemask_lt, match_all_sync, match_any_sync, reduce_add_sync,
    reduce_and_sync, reduce_max_sync, reduce_min_sync, reduce_or_sync, reduce_xor_sync,
    shfl_down_sync, shfl_sync, shfl_up_sync, shfl_xor_sync,
)
# isort: on
# fmt: on
from . import cg, random, types
from .dispatch.ahead import (
    compile,  # noqa: A004
    compile_all,
    compile_for_current_device,
    compile_ptx,
    compile_ptx_for_current_device,
)
from .dispatch.forall import ForAll
from .dispatch.jit import AutoJitCUDAKernel, DeviceFunction, jit
from .dispatch.kernel import CUDAKernel, CUDAKernelBase
from .dispatch.linkable import (
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
from .dispatch.transfers import In, InOut, Out
from .elements import VECTORS, CPointer, NPDatetime, NPTimedelta
from .errors import CompileError, CompileWarning, TypingError
from .lang import libdevice
from .lang.atomics import atomic
from .lang.extern import ExternFunction, declare_device, declare_device_function
from .lang.hints import (
    cp_async,
    cp_async_commit,
    cp_async_wait,
    cp_async_wait_all,
    ldca,
    ldcg,
    ldcs,
    ldcv,
    ldg,
    ldlu,
    stcg,
    stcs,
    stwb,
    stwt,
)
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
from .lang.memory import (
    const,
    local,
    shared,
)
from .lang.mma import (
    ldmatrix,
    mma_m8n8k4_f64,
    mma_m16n8k8_tf32,
    mma_m16n8k16_bf16,
    mma_m16n8k16_f16,
    mma_m16n8k32_s8,
    mma_m16n8k32_u8,
    stmatrix,
)
from .lang.pointers import carray, farray
from .lang.ptx import (
    asm,
)
from .lang.sync import (
    barrier_arrive,
    barrier_sync,
    cluster_arrive,
    cluster_sync,
    cluster_wait,
    syncthreads,
    syncthreads_and,
    syncthreads_count,
    syncthreads_or,
    syncwarp,
    threadfence,
    threadfence_block,
    threadfence_cluster,
    threadfence_system,
)
from .lang.tuples import literal_unroll
from .reduction import (
    Reduce,
    reduce,
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
from .vectorizing import (
    guvectorize,
    vectorize,
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
    "ForAll",
    "In",
    "InOut",
    "LinkableCode",
    "NPDatetime",
    "NPTimedelta",
    "Object",
    "Out",
    "PTXSource",
    "Reduce",
    "Signature",
    "Stream",
    "TypingError",
    "activemask",
    "add_rd",
    "add_rn",
    "add_ru",
    "add_rz",
    "add_sat",
    "all_sync",
    "any_sync",
    "as_cuda_array",
    "asm",
    "atomic",
    "ballot_sync",
    "barrier_arrive",
    "barrier_sync",
    "bfe",
    "bfi",
    "bfloat16",
    "blockDim",
    "blockIdx",
    "boolean",
    "brev",
    "byte_perm",
    "carray",
    "cg",
    "clock",
    "clock64",
    "cluster_arrive",
    "cluster_sync",
    "cluster_wait",
    "clz",
    "compile",
    "compile_all",
    "compile_for_current_device",
    "compile_ptx",
    "compile_ptx_for_current_device",
    "complex64",
    "complex128",
    "const",
    "cp_async",
    "cp_async_commit",
    "cp_async_wait",
    "cp_async_wait_all",
    "current_context",
    "declare_device",
    "declare_device_function",
    "device_array",
    "device_array_like",
    "div_rd",
    "div_rn",
    "div_ru",
    "div_rz",
    "dp2a_hi",
    "dp2a_lo",
    "dp4a",
    "elect_sync",
    "eq_sync",
    "event",
    "farray",
    "fast_cos",
    "fast_div",
    "fast_exp",
    "fast_exp2",
    "fast_exp10",
    "fast_log",
    "fast_log2",
    "fast_log10",
    "fast_pow",
    "fast_rcp",
    "fast_rsqrt",
    "fast_sin",
    "fast_sqrt",
    "fast_tan",
    "fast_tanh",
    "ffs",
    "float16",
    "float32",
    "float64",
    "fma",
    "fma_rd",
    "fma_rn",
    "fma_ru",
    "fma_rz",
    "from_cuda_array_interface",
    "funnelshift_l",
    "funnelshift_lc",
    "funnelshift_r",
    "funnelshift_rc",
    "get_current_device",
    "globaltimer",
    "grid",
    "gridDim",
    "gridid",
    "gridsize",
    "guvectorize",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_available",
    "is_cuda_array",
    "jit",
    "laneid",
    "lanemask_eq",
    "lanemask_ge",
    "lanemask_gt",
    "lanemask_le",
    "lanemask_lt",
    "ldca",
    "ldcg",
    "ldcs",
    "ldcv",
    "ldg",
    "ldlu",
    "ldmatrix",
    "libdevice",
    "literal_unroll",
    "local",
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "match_all_sync",
    "match_any_sync",
    "mma_m8n8k4_f64",
    "mma_m16n8k8_tf32",
    "mma_m16n8k16_bf16",
    "mma_m16n8k16_f16",
    "mma_m16n8k32_s8",
    "mma_m16n8k32_u8",
    "mul24",
    "mul_rd",
    "mul_rn",
    "mul_ru",
    "mul_rz",
    "mulhi",
    "nanosleep",
    "nsmid",
    "nwarpid",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "popc",
    "random",
    "rcp_rd",
    "rcp_rn",
    "rcp_ru",
    "rcp_rz",
    "reduce",
    "reduce_add_sync",
    "reduce_and_sync",
    "reduce_max_sync",
    "reduce_min_sync",
    "reduce_or_sync",
    "reduce_xor_sync",
    "sad",
    "saturate",
    "selp",
    "shared",
    "shfl_down_sync",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_xor_sync",
    "smid",
    "sqrt_rd",
    "sqrt_rn",
    "sqrt_ru",
    "sqrt_rz",
    "stcg",
    "stcs",
    "stmatrix",
    "stream",
    "stwb",
    "stwt",
    "sub_rd",
    "sub_rn",
    "sub_ru",
    "sub_rz",
    "sub_sat",
    "synchronize",
    "syncthreads",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "syncwarp",
    "threadIdx",
    "threadfence",
    "threadfence_block",
    "threadfence_cluster",
    "threadfence_system",
    "to_device",
    "types",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "vectorize",
    "void",
    "warpid",
    "warpsize",
]  # fmt: skip
