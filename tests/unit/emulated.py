"""Calls the emulator's driver functions directly, whatever driver the process uses."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from cudadrv import emulator, raw

KERNELS = """.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 total[3] = {5, 6, 7};
.global .attribute(.managed) .align 4 .u32 shared_with_host;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry fill(.param .u64 at, .param .u32 value, .param .u32 count) .maxntid 256 {
  .reg .u64 p; .reg .u32 i, n, v; .reg .pred q;
  ld.param.u64 p, [at]; ld.param.u32 v, [value]; ld.param.u32 n, [count];
  mov.u32 i, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 v, %tid.x; mad.lo.u32 i, i, n, v;
  ld.param.u32 n, [count]; ld.param.u32 v, [value]; setp.ge.u32 q, i, n; @q exit;
  mad.wide.u32 p, i, 4, p; st.global.u32 [p], v; ret; }
.visible .entry stop() { trap; }
.visible .entry stuck() {
  .reg .u32 t; .reg .pred q; mov.u32 t, %tid.x; setp.eq.u32 q, t, 0;
  @q bar.sync 1, 64; @!q bar.sync 2, 64; ret; }
.visible .entry size(.param .u64 at) {
  .shared .align 4 .b8 fixed[100]; .reg .u64 p; .reg .u32 v; ld.param.u64 p, [at];
  mov.u32 v, dynamic; st.global.u32 [p], v; mov.u32 v, %dynamic_smem_size; st.global.u32 [p+4], v;
  mov.u32 v, fixed; st.shared.u32 [v], v; ret; }
.visible .entry grid(.param .u64 at) {
  .reg .u64 p; .reg .u32 v, n; .reg .pred q; ld.param.u64 p, [at]; mov.u32 n, %nctaid.x;
  atom.add.u32 v, [p], 1;
  WAIT: ld.volatile.u32 v, [p]; setp.lt.u32 q, v, n; @q bra WAIT;
  red.add.u32 [p+4], 1; ret; }
"""
SUCCESS = 0


def call(name: str, *arguments: Any) -> int:
    """The CUresult of an exported function of the emulator."""
    symbol = raw.symbol(name)
    address = emulator.open().address(symbol, 13000)
    assert address, f"the emulator has no {symbol}"
    return int(raw.prototype(name)(address)(*arguments))


def get(name: str, kind: Any, *arguments: Any) -> Any:
    """The out-parameter that comes first."""
    out = kind()
    assert call(name, ctypes.byref(out), *arguments) == SUCCESS
    return out.value


def start() -> int:
    """Make the primary context current; gives its handle."""
    assert call("cuInit", 0) == SUCCESS
    handle = get("cuDevicePrimaryCtxRetain", ctypes.c_void_p, 0)
    assert call("cuCtxSetCurrent", handle) == SUCCESS
    return int(handle)


def stop() -> None:
    """Reset the primary context."""
    call("cuCtxSetCurrent", None)
    assert call("cuDevicePrimaryCtxReset", 0) == SUCCESS


def kernel(module: int, name: str) -> int:
    return int(get("cuModuleGetFunction", ctypes.c_void_p, module, name.encode()))


def launch(
    function: int, *arguments: Any, grid: int = 1, block: int = 1, shared: int = 0,
    name: str = "cuLaunchKernel",
) -> int:  # fmt: skip
    """The CUresult of a launch."""
    pointers = (ctypes.c_void_p * max(len(arguments), 1))(*map(ctypes.addressof, arguments))
    rest = (pointers, None) if name == "cuLaunchKernel" else (pointers,)
    return call(name, function, grid, 1, 1, block, 1, 1, shared, None, *rest)


def allocate(nbytes: int) -> int:
    return int(get("cuMemAlloc", ctypes.c_uint64, nbytes))


def read(address: int, count: int) -> list[int]:
    out = np.zeros(count, "u4")
    assert call("cuMemcpyDtoH", out.ctypes.data, address, out.nbytes) == SUCCESS
    return [int(x) for x in out]
