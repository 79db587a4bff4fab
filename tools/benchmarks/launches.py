"""Launches for the benchmarks: of kernels, in a loop of machine code, and by other packages."""

from __future__ import annotations

import ctypes
import sys
import time
import timeit
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

import compiler as cuda
import cudadrv
from compiler.dispatch import native
from compiler.dispatch.kernel import HOT
from cudadrv import launch_config, raw
from cudadrv.launch import pack
from tools.benchmarks import Sampler

EMPTY_PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry four(.param .u64 a, .param .u64 b, .param .u32 n, .param .f32 x) { ret; }
"""
LOOP = """
define void @loop(i64 %n, ptr %config, ptr %function, ptr %parameters) {{
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %after, %next ]
  %code = call i32 {launch}(ptr %config, ptr %function, ptr %parameters, ptr null)
  %after = add i64 %i, 1
  %more = icmp ult i64 %after, %n
  br i1 %more, label %next, label %done
done:
  ret void
}}
"""
NOTHING = """
define i32 @launch(ptr %config, ptr %function, ptr %parameters, ptr %extra) {{ ret i32 0 }}
define i32 @current(ptr %context) {{
  store i64 {context}, ptr %context
  ret i32 0
}}
"""
EMPTY_C = 'extern "C" __global__ void four(float *a, float *b, int n, float x) {}'


@cuda.jit
def small(a: Any, b: Any, n: Any, x: Any) -> None:
    """Four arguments, nothing to do."""


@cuda.jit
def large(
    a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any,
    i: Any, j: Any, k: Any, m: Any, n: Any, o: Any, p: Any, q: Any,
) -> None:  # fmt: skip
    """Sixteen."""


def hot(kernel: Any, *args: Any) -> Any:
    """A configured kernel, its launcher compiled."""
    configured = kernel[1, 1]
    for _ in range(HOT):
        configured(*args)
    return configured


def loop(kernel: cudadrv.Kernel, values: tuple[Any, ...]) -> Callable[[int], float]:
    """Microseconds of a launch in a loop such as C's, the arguments laid out before."""
    code = native.compiled(LOOP.format(launch=native.address(raw.address("cuLaunchKernelEx"))))
    address = code.get_function_address("loop")
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 3)(address)
    made = launch_config.config(kernel, 1, 1, 0, None, {})
    arguments = pack(kernel, values, [])
    context = cudadrv.current_context()

    def measure(count: int) -> float:
        context.synchronize()
        start = time.perf_counter()
        run(count, ctypes.addressof(made.raw), kernel.handle, arguments.pointers)
        elapsed = time.perf_counter() - start
        context.synchronize()
        assert code
        return elapsed / count * 1e6

    return measure


def loop_of_kernel(kernel: Any, args: tuple[Any, ...]) -> Callable[[int], float]:
    """The same for the parameters that a Python kernel has for these arguments."""
    special = kernel.specialize(*args)
    leaves = special._packer.pack(args, None, [])
    codes = special._packer.codes
    typed = (np.dtype(code).type(leaf) for code, leaf in zip(codes, leaves, strict=True))
    return loop(special.bind(), tuple(typed))


def without_driver() -> Sampler:
    """A sampler of the nanoseconds of a hot kernel's call when the driver does nothing."""
    code = native.compiled(NOTHING.format(context=cudadrv.current_context().handle))
    replaced = {"cuLaunchKernelEx": "launch", "cuCtxGetCurrent": "current"}

    def address(name: str) -> int:
        return int(code.get_function_address(replaced[name]))

    replacement: Any = SimpleNamespace(address=address, available=raw.available)
    setattr(native, "raw", replacement)  # noqa: B010 - it is no part of what the module offers
    x = cudadrv.to_device(np.ones(1, np.float32))
    names = {"kernel": hot(small, x, x, 1, 2.0), "x": x}
    timer = timeit.Timer("kernel(x, x, 1, 2.0)", globals=names)
    empty = timeit.Timer("pass")
    count = 100_000
    return lambda: {"launcher": (timer.timeit(count) - empty.timeit(count)) / count * 1e9}


def peers() -> dict[str, timeit.Timer]:
    """A launch of four arguments by every other package that is installed and works here."""
    found = {}
    if cudadrv.is_emulator():
        return {}
    for make in (by_cuda_core, by_cupy, by_triton, by_numba):
        try:
            way = make()
            way.timeit(1)
        except Exception as error:  # noqa: BLE001 - whatever another package does wrong
            print(f"{make.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        else:
            found[f"{make.__name__.removeprefix('by_')}_launch"] = way
    return found


def by_cuda_core() -> timeit.Timer:
    """cuda.core, with addresses and NumPy scalars."""
    try:
        core = import_module("cuda.core")
        core.Program  # noqa: B018 - older ones have it elsewhere
    except (ImportError, AttributeError):
        core = import_module("cuda.core.experimental")
    device = core.Device()
    device.set_current()
    stream = device.create_stream()
    options = core.ProgramOptions(arch=f"sm_{device.arch}")
    kernel = core.Program(EMPTY_C, "c++", options).compile("cubin").get_kernel("four")
    config = core.LaunchConfig(grid=1, block=1)
    memory = cudadrv.mem_alloc(1024)
    names = {
        "launch": core.launch, "stream": stream, "config": config, "kernel": kernel,
        "memory": memory, "address": memory.handle, "one": np.int32(1), "two": np.float32(2),
    }  # fmt: skip
    return timeit.Timer("launch(stream, config, kernel, address, address, one, two)", globals=names)


def by_cupy() -> timeit.Timer:
    """CuPy's RawKernel."""
    cupy = import_module("cupy")
    kernel = cupy.RawKernel(EMPTY_C, "four")
    x = cupy.ones(1, np.float32)
    names = {"kernel": kernel, "args": (x, x, np.int32(1), np.float32(2))}
    return timeit.Timer("kernel((1,), (1,), args)", globals=names)


def by_triton() -> timeit.Timer:
    """Triton, with torch's tensors."""
    kernel = import_module("triton").jit(nothing)[(1,)]
    names = {"kernel": kernel, "x": import_module("torch").ones(1, device="cuda")}
    return timeit.Timer("kernel(x, x, 1, 2.0)", globals=names)


def by_numba() -> timeit.Timer:
    """numba.cuda, configured once."""
    if not hasattr(np, "row_stack"):
        setattr(np, "row_stack", np.vstack)  # noqa: B010 - it asks for what NumPy dropped
    numba_cuda = import_module("numba.cuda")
    kernel = numba_cuda.jit(nothing)[1, 1]
    names = {"kernel": kernel, "x": numba_cuda.to_device(np.ones(1, np.float32))}
    return timeit.Timer("kernel(x, x, 1, 2.0)", globals=names)


# The empty kernel of the packages that compile Python; Triton reads annotations as types.
def nothing(a, b, n, x):  # type: ignore[no-untyped-def]
    """Do nothing."""
