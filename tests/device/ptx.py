"""Runs PTX snippets, one thread per element, and calls the driver for tests of the emulator."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cudadrv import raw

Array = npt.NDArray[Any]


def check(code: int) -> None:
    """Fail unless a driver function succeeded."""
    assert code == 0, raw.CUresult(code).name


def start() -> None:
    """Make the primary context current."""
    check(raw.cuInit(0))
    context = ctypes.c_void_p()
    check(raw.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(raw.cuCtxSetCurrent(context))


def target() -> str:
    """The architecture of the device, as .target names it."""
    start()
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(raw.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0))
    return f"sm_{major.value}{minor.value}"


def load(text: str) -> int:
    """The handle of a module of PTX *text*; a failure shows what the driver's log says."""
    start()
    log = ctypes.create_string_buffer(8192)
    options = (ctypes.c_int * 2)(
        raw.CU_JIT_ERROR_LOG_BUFFER, raw.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
    )
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
    module = ctypes.c_void_p()
    image = ctypes.create_string_buffer(text.encode())
    code = raw.cuModuleLoadDataEx(ctypes.byref(module), ctypes.addressof(image), 2, options, values)
    assert code == 0, f"{raw.CUresult(code).name}: {log.value.decode()}\n{text}"
    return module.value or 0


def function(module: int, name: str) -> int:
    """The handle of a kernel of a module."""
    found = ctypes.c_void_p()
    check(raw.cuModuleGetFunction(ctypes.byref(found), module, name.encode()))
    return found.value or 0


class Buffer:
    """Device memory with the contents of an array."""

    def __init__(self, array: Array) -> None:
        self.array = np.ascontiguousarray(array)
        self.pointer = ctypes.c_uint64()
        check(raw.cuMemAlloc(ctypes.byref(self.pointer), max(self.array.nbytes, 1)))
        if array.nbytes:
            check(raw.cuMemcpyHtoD(self.pointer, self.array.ctypes.data, array.nbytes))

    def read(self) -> Array:
        """What is there now; frees the memory."""
        out = np.empty_like(self.array)
        if out.nbytes:
            check(raw.cuMemcpyDtoH(out.ctypes.data, self.pointer, out.nbytes))
        check(raw.cuMemFree(self.pointer))
        return out


def launch(
    kernel: int, grid: int, block: int | tuple[int, int, int], *arguments: Any, shared: int = 0
) -> None:
    """Launch with ctypes values or Buffers as arguments, and wait."""
    values = [a.pointer if isinstance(a, Buffer) else a for a in arguments]
    pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(v) for v in values))
    x, y, z = block if isinstance(block, tuple) else (block, 1, 1)
    check(raw.cuLaunchKernel(kernel, grid, 1, 1, x, y, z, shared, None, pointers, None))
    check(raw.cuCtxSynchronize())


def module_text(body: str, params: int = 1, declarations: str = "") -> str:
    """A module with one kernel `k` of *params* pointers p0, p1, ... around *body*."""
    arguments = ", ".join(f".param .u64 p{i}" for i in range(params))
    return (
        f".version 8.0\n.target {target()}\n.address_size 64\n{declarations}\n"
        f".visible .entry k({arguments})\n{{\n{body}\nret;\n}}\n"
    )


def run(text: str, grid: int, block: int | tuple[int, int, int], *arrays: Array) -> list[Array]:
    """Run kernel `k` of a module on copies of *arrays*; gives what it left there."""
    kernel = function(load(text), "k")
    buffers = [Buffer(array) for array in arrays]
    launch(kernel, grid, block, *buffers)
    return [buffer.read() for buffer in buffers]


def _register(kind: str) -> str:
    bits = kind.lstrip("usbf")
    return kind if kind in ("f32", "f64", "pred") else f"b{bits}"


def _move(kind: str) -> str:
    """The type that loads and stores a register of *kind*."""
    if kind.endswith("x2"):
        return "b32"
    return "b16" if kind in ("f16", "bf16") else kind


@functools.cache
def _elementwise(code: str, result: str, kinds: tuple[str, ...]) -> int:
    """A kernel that computes `d` from `a`, `b`, `c`, ... for each element."""
    start()
    names = "abce"[: len(kinds)]
    lines = [".reg .u32 i, t; .reg .u64 at, base; .reg .pred p, q;"]
    sizes = {"d": result, **dict(zip(names, kinds, strict=True))}
    for name, kind in sizes.items():
        lines.append(f".reg .{_register(_move(kind))} {name};")
    lines.append("mov.u32 i, %ctaid.x; mov.u32 t, %ntid.x; mul.lo.u32 i, i, t;")
    lines.append("mov.u32 t, %tid.x; add.u32 i, i, t;")
    for index, (name, kind) in enumerate(sizes.items()):
        width = np.dtype(dtype(kind)).itemsize
        address = f"ld.param.u64 base, [p{index}]; mad.wide.u32 at, i, {width}, base;"
        if name != "d":
            lines.append(f"{address} ld.global.{_move(kind)} {name}, [at];")
    width = np.dtype(dtype(result)).itemsize
    lines.append(code)
    lines.append(f"ld.param.u64 base, [p0]; mad.wide.u32 at, i, {width}, base;")
    lines.append(f"st.global.{_move(result)} [at], d;")
    return function(load(module_text("\n".join(lines), len(sizes))), "k")


def dtype(kind: str) -> str:
    """The NumPy type that holds a PTX type."""
    letter = {"b": "u", "s": "i"}.get(kind[0], kind[0])
    if kind.startswith("bf") or kind.endswith("x2"):
        return "u4" if kind.endswith("x2") else "u2"
    return f"{letter}{int(kind[1:]) // 8}"


def elementwise(code: str, result: str, kinds: Sequence[str], *arrays: Array) -> Array:
    """`d` of type *result* for each element of *arrays*, which PTX *code* reads as a, b, c, e."""
    kernel = _elementwise(code, result, tuple(kinds))
    count = len(arrays[0])
    padded = -(-count // 64) * 64
    inputs = []
    for array, kind in zip(arrays, kinds, strict=True):
        whole = np.zeros(padded, dtype(kind))
        whole[:count] = array
        inputs.append(Buffer(whole))
    out = Buffer(np.zeros(padded, dtype(result)))
    launch(kernel, padded // 64, 64, out, *inputs)
    for buffer in inputs:
        buffer.read()
    return out.read()[:count]
