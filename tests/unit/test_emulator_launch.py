"""The emulator loads PTX and launches kernels as a driver does, and reports what is wrong."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudadrv import raw
from tests.unit.emulated import (
    KERNELS,
    SUCCESS,
    allocate,
    call,
    get,
    kernel,
    launch,
    read,
    start,
    stop,
)


@pytest.fixture(autouse=True)
def context() -> Iterator[int]:
    """The primary context, current; reset afterwards."""
    yield start()
    stop()


@pytest.fixture
def module() -> int:
    """The handle of KERNELS."""
    return int(get("cuModuleLoadData", ctypes.c_void_p, KERNELS.encode()))


# -- loading


def load(image: bytes, size: int = 4096) -> tuple[int, str, int]:
    """(CUresult, error log, the log's size as reported) of loading *image*."""
    log, module = ctypes.create_string_buffer(size), ctypes.c_void_p()
    names = (ctypes.c_int * 2)(raw.CU_JIT_ERROR_LOG_BUFFER, raw.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), size)
    code = call("cuModuleLoadDataEx", ctypes.byref(module), image, 2, names, values)
    return code, log.value.decode(), values[1] or 0


def test_log_of_a_bad_module() -> None:
    """CUDA_ERROR_INVALID_PTX, and a log with line number and text, cut to the buffer."""
    bad = KERNELS.replace("trap;", "wgmma.commit_group;")
    code, log, size = load(bad.encode())
    assert code == raw.CUDA_ERROR_INVALID_PTX
    assert "line 13" in log and "wgmma.commit_group" in log and size == len(log) + 1
    code, short, size = load(bad.encode(), 10)
    assert (code, len(short), size) == (raw.CUDA_ERROR_INVALID_PTX, 9, 10)


def test_errors_found_at_the_first_launch(capfd: pytest.CaptureFixture[str]) -> None:
    """Kernels are translated when they are first launched; an error then is one of the PTX."""
    text = KERNELS.replace("trap;", "mov.u32 %tid.x, 1;")
    module = get("cuModuleLoadData", ctypes.c_void_p, text.encode())
    assert launch(kernel(module, "stop")) == raw.CUDA_ERROR_INVALID_PTX
    assert "line 13; error: %tid.x is not a register" in capfd.readouterr().err


@pytest.mark.parametrize("image", [b"\x7fELF\2\1\1", b"\x50\xed\x55\xba\1\0"])
def test_machine_code_is_refused(image: bytes) -> None:
    """A cubin or fatbin is not for this device."""
    code, log, _ = load(image)
    assert code == raw.CUDA_ERROR_NO_BINARY_FOR_GPU
    assert "PTX" in log


def test_good_module_leaves_an_empty_log() -> None:
    assert load(KERNELS.encode()) == (SUCCESS, "", 1)


def test_kernels_of_a_library(module: int) -> None:
    """Count, enumeration, names, and a missing one."""
    count = get("cuModuleGetFunctionCount", ctypes.c_uint, module)
    functions = (ctypes.c_void_p * count)()
    assert call("cuModuleEnumerateFunctions", functions, count, module) == SUCCESS
    names = [ctypes.string_at(get("cuFuncGetName", ctypes.c_void_p, f)) for f in functions]
    assert names == [b"fill", b"stop", b"stuck", b"size", b"grid"]
    out = ctypes.c_void_p()
    missing = call("cuModuleGetFunction", ctypes.byref(out), module, b"none")
    assert missing == raw.CUDA_ERROR_NOT_FOUND


def test_parameters_of_a_kernel(module: int) -> None:
    """Offsets and sizes, and the end of the list."""
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    found, index = [], 0
    out = ctypes.byref(offset), ctypes.byref(size)
    while call("cuFuncGetParamInfo", kernel(module, "fill"), index, *out) == SUCCESS:
        found.append((offset.value, size.value))
        index += 1
    assert found == [(0, 8), (8, 4), (12, 4)]


def test_function_attributes(module: int) -> None:
    """Sizes that the PTX states."""
    fill, size = kernel(module, "fill"), kernel(module, "size")
    limit = raw.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    assert get("cuFuncGetAttribute", ctypes.c_int, limit, fill) == 256
    shared = raw.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    assert get("cuFuncGetAttribute", ctypes.c_int, shared, size) == 112
    version = raw.CU_FUNC_ATTRIBUTE_PTX_VERSION
    assert get("cuFuncGetAttribute", ctypes.c_int, version, size) == 80


def test_globals(module: int) -> None:
    """A variable's address and size; it can be read and written."""
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    out = ctypes.byref(address), ctypes.byref(size)
    assert call("cuModuleGetGlobal", *out, module, b"total") == SUCCESS
    assert size.value == 12
    assert read(address.value, 3) == [5, 6, 7]
    assert call("cuMemsetD32", address.value, 9, 3) == SUCCESS
    assert read(address.value, 3) == [9, 9, 9]
    assert call("cuModuleGetGlobal", *out, module, b"fill") == raw.CUDA_ERROR_NOT_FOUND
    assert call("cuLibraryGetManaged", *out, module, b"total") == raw.CUDA_ERROR_NOT_FOUND
    assert call("cuLibraryGetManaged", *out, module, b"shared_with_host") == SUCCESS


# -- launching


def test_launch(module: int) -> None:
    """Every thread of every block runs, and no more."""
    out = allocate(4 * 1000)
    assert call("cuMemsetD32", out, 1, 1000) == SUCCESS
    arguments = ctypes.c_uint64(out), ctypes.c_uint32(77), ctypes.c_uint32(990)
    assert launch(kernel(module, "fill"), *arguments, grid=10, block=100) == SUCCESS
    assert read(out, 1000) == [77] * 990 + [1] * 10


def test_packed_parameters(module: int) -> None:
    """The `extra` list is another way to pass them."""
    out = allocate(40)
    packed = ctypes.create_string_buffer(
        out.to_bytes(8, "little") + (3).to_bytes(4, "little") + (10).to_bytes(4, "little"), 16
    )
    size = ctypes.c_size_t(16)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), None)
    arguments = (1, 1, 1, 16, 1, 1, 0, None, None, extra)
    assert call("cuLaunchKernel", kernel(module, "fill"), *arguments) == SUCCESS
    assert read(out, 10) == [3] * 10


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [(0, 1, 0), (1, 0, 0), (1, 1025, 0), (2**31, 1, 0), (1, 257, 0), (1, 1, 60000)],
)
def test_sizes_out_of_range(module: int, grid: int, block: int, shared: int) -> None:
    """Empty or too large grids, blocks and shared memory are refused."""
    arguments = ctypes.c_uint64(0), ctypes.c_uint32(0), ctypes.c_uint32(0)
    code = launch(kernel(module, "fill"), *arguments, grid=grid, block=block, shared=shared)
    assert code == raw.CUDA_ERROR_INVALID_VALUE


def test_dynamic_shared_memory(module: int) -> None:
    """It starts behind the static, aligned; more than 48 KiB must be asked for."""
    out = allocate(8)
    function = kernel(module, "size")
    assert launch(function, ctypes.c_uint64(out), shared=500) == SUCCESS
    assert read(out, 2) == [112, 500]
    attribute = raw.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    assert launch(function, ctypes.c_uint64(out), shared=100_000) == raw.CUDA_ERROR_INVALID_VALUE
    assert call("cuFuncSetAttribute", function, attribute, 100_000) == SUCCESS
    assert launch(function, ctypes.c_uint64(out), shared=100_000) == SUCCESS
    assert call("cuFuncSetAttribute", function, attribute, 10**6) == raw.CUDA_ERROR_INVALID_VALUE


def test_trap_fails_all_later_calls(module: int, capfd: pytest.CaptureFixture[str]) -> None:
    """The launch itself succeeds, then the context is lost, until it is reset."""
    memory = allocate(4)
    assert launch(kernel(module, "stop"), grid=3, block=7) == SUCCESS
    assert "kernel stop, block" in capfd.readouterr().err
    assert call("cuCtxSynchronize") == raw.CUDA_ERROR_LAUNCH_FAILED
    assert call("cuMemsetD8", memory, 0, 4) == raw.CUDA_ERROR_LAUNCH_FAILED
    assert launch(kernel(module, "stop")) == raw.CUDA_ERROR_LAUNCH_FAILED


@pytest.mark.parametrize("address", [0, 8, 1 << 62])
def test_faults_fail_all_later_calls(
    module: int, address: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """An access where there is no memory is CUDA_ERROR_ILLEGAL_ADDRESS, not the process's end."""
    fill = kernel(module, "fill")
    values = ctypes.c_uint64(address), ctypes.c_uint32(1), ctypes.c_uint32(1 << 20)
    assert launch(fill, *values, grid=4096, block=256) == SUCCESS
    assert call("cuCtxSynchronize") == raw.CUDA_ERROR_ILLEGAL_ADDRESS
    assert "kernel fill" in capfd.readouterr().err
    stop()
    start()
    again = kernel(int(get("cuModuleLoadData", ctypes.c_void_p, KERNELS.encode())), "fill")
    out = allocate(4)
    assert launch(again, ctypes.c_uint64(out), ctypes.c_uint32(7), ctypes.c_uint32(1)) == SUCCESS
    assert read(out, 1) == [7]


def test_other_faults_stay_what_they_were() -> None:
    """A fault of Python code still ends the process, after kernels ran too."""
    program = (
        "import ctypes, faulthandler, cudadrv\n"
        "faulthandler.enable()\n"
        f"cudadrv.load({KERNELS!r})['size'].launch(1, 1, cudadrv.mem_alloc(8))\n"
        "print('ran', flush=True)\n"
        "ctypes.string_at(8)\n"
    )
    environment = {**os.environ, "CUDADRV_DRIVER": "emulator"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout == "ran\n", done.stderr
    assert done.returncode == -signal.SIGSEGV
    assert "in string_at" in done.stderr


def test_deadlock_is_an_error(module: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Threads that wait for others that never come do not hang the process."""
    assert launch(kernel(module, "stuck"), block=64) == SUCCESS
    assert call("cuCtxSynchronize") == raw.CUDA_ERROR_LAUNCH_TIMEOUT
    assert "kernel stuck, block (0, 0, 0): " in capfd.readouterr().err


def test_cooperative_grid(module: int) -> None:
    """All blocks run at the same time, so they can wait for one another; too many are refused."""
    out = allocate(8)
    assert call("cuMemsetD32", out, 0, 2) == SUCCESS
    function, name = kernel(module, "grid"), "cuLaunchCooperativeKernel"
    assert launch(function, ctypes.c_uint64(out), grid=8, name=name) == SUCCESS
    assert read(out, 2) == [8, 8]
    code = launch(function, ctypes.c_uint64(out), grid=100_000, name=name)
    assert code == raw.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


def test_launches_from_many_threads(module: int, context: int) -> None:
    """Threads of the host may launch at the same time."""
    function, results = kernel(module, "fill"), []

    def work(number: int) -> None:
        assert call("cuCtxSetCurrent", context) == SUCCESS
        out = allocate(4 * 5000)
        for _ in range(5):
            arguments = ctypes.c_uint64(out), ctypes.c_uint32(number), ctypes.c_uint32(5000)
            assert launch(function, *arguments, grid=40, block=128) == SUCCESS
        results.append(set(read(out, 5000)) == {number})

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 6


def test_occupancy(module: int) -> None:
    """Blocks per multiprocessor follow from threads and shared memory."""
    fill = kernel(module, "fill")
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    assert get(name, ctypes.c_int, fill, 256, 0) == 8
    assert get(name, ctypes.c_int, fill, 64, 100_000) == 2
    grid, block = ctypes.c_int(), ctypes.c_int()
    out = ctypes.byref(grid), ctypes.byref(block)
    assert call("cuOccupancyMaxPotentialBlockSize", *out, fill, None, 0, 0) == SUCCESS
    assert block.value == 256 and grid.value % 8 == 0


# -- checked kernels


WILD = """.version 8.0
.target sm_80
.address_size 64
.file 1 "wild.cu"
.visible .entry k(.param .u64 at, .param .u32 shift) {
  .shared .align 4 .b8 s[64]; .reg .u64 p, q; .reg .u32 t, v;
  ld.param.u64 p, [at]; ld.param.u32 v, [shift]; cvt.u64.u32 q, v; add.u64 p, p, q;
  mov.u32 t, %tid.x; mad.wide.u32 p, t, 4, p;
  .loc 1 17 3
  st.global.u32 [p], t;
  ret; }
.func store(.param .u64 at) { .reg .u64 p; ld.param.u64 p, [at]; st.u32 [p], 1; ret; }
.visible .entry far(.param .u64 at, .param .u32 offset) {
  .shared .align 4 .b8 s[64]; .reg .u64 p; .reg .u32 t; .param .b64 x;
  ld.param.u32 t, [offset]; mov.u64 p, s; cvt.u64.u32 p, t; st.shared.u32 [p], 1;
  ld.param.u64 p, [at]; st.param.b64 [x], p; call store, (x); ret; }
"""


@pytest.fixture
def wild(monkeypatch: pytest.MonkeyPatch) -> int:
    """A module whose kernels are checked."""
    monkeypatch.setenv("CUDADRV_EMULATOR_CHECK", "1")
    return int(get("cuModuleLoadData", ctypes.c_void_p, WILD.encode()))


@pytest.mark.parametrize(
    ("shift", "block", "name"),
    [
        (0, 16, "SUCCESS"),
        (0, 17, "ERROR_ILLEGAL_ADDRESS"),
        (60, 2, "ERROR_ILLEGAL_ADDRESS"),
        (1 << 31, 1, "ERROR_ILLEGAL_ADDRESS"),
        (2, 1, "ERROR_MISALIGNED_ADDRESS"),
    ],
)
def test_checked_accesses(
    wild: int, shift: int, block: int, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """An access outside of all allocations, or misaligned, is an error and tells where it was."""
    arguments = ctypes.c_uint64(allocate(64)), ctypes.c_uint32(shift)
    assert launch(kernel(wild, "k"), *arguments, block=block) == SUCCESS
    assert call("cuCtxSynchronize") == getattr(raw, f"CUDA_{name}")
    said = capfd.readouterr().err
    assert ("line 10: st.global.u32 [p], t;" in said) == (name != "SUCCESS")
    assert ("source wild.cu:17" in said) == (name != "SUCCESS")


@pytest.mark.parametrize(
    ("offset", "global_offset", "line"), [(60, 60, 0), (60, 64, 12), (4096, 0, 15)]
)
def test_checked_shared_memory_and_functions(
    wild: int, offset: int, global_offset: int, line: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Shared memory has an end, and functions are checked as kernels are."""
    arguments = ctypes.c_uint64(allocate(64) + global_offset), ctypes.c_uint32(offset)
    assert launch(kernel(wild, "far"), *arguments) == SUCCESS
    code = raw.CUDA_ERROR_ILLEGAL_ADDRESS if line else SUCCESS
    assert call("cuCtxSynchronize") == code
    said = capfd.readouterr().err
    assert f"PTX line {line}: " in said if line else not said


# -- linking

CALLER = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) seven();
.extern .global .align 4 .b32 factor;
.visible .entry k(.param .u64 at) { .reg .u64 p; .reg .u32 v, w; .param .b32 r;
  ld.param.u64 p, [at]; call (r), seven; ld.param.b32 v, [r]; ld.global.u32 w, [factor];
  mul.lo.u32 v, v, w; st.global.u32 [p], v; ret; }
"""
CALLEE = """.version 8.2
.target sm_80
.address_size 64
.visible .global .align 4 .b32 factor = 6;
.visible .func (.param .b32 r) seven() { st.param.b32 [r], 7; ret; }
"""


def test_linking() -> None:
    """A function and a variable of another text are found; a missing one is told in the log."""
    log = ctypes.create_string_buffer(500)
    names = (ctypes.c_int * 2)(raw.CU_JIT_ERROR_LOG_BUFFER, raw.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 500)
    state = ctypes.c_void_p()
    assert call("cuLinkCreate", 2, names, values, ctypes.byref(state)) == SUCCESS
    image, size = ctypes.c_void_p(), ctypes.c_size_t()
    results = ctypes.byref(image), ctypes.byref(size)

    def add(text: str, kind: int) -> int:
        data = text.encode()
        return call("cuLinkAddData", state, kind, data, len(data), None, 0, None, None)

    assert add(CALLER, raw.CU_JIT_INPUT_PTX) == SUCCESS
    assert call("cuLinkComplete", state, *results) == raw.CUDA_ERROR_INVALID_PTX
    assert b"not defined" in log.value
    assert add(CALLEE, raw.CU_JIT_INPUT_CUBIN) == raw.CUDA_ERROR_NO_BINARY_FOR_GPU
    assert add(CALLEE, raw.CU_JIT_INPUT_PTX) == SUCCESS
    assert call("cuLinkComplete", state, *results) == SUCCESS
    module, out = get("cuModuleLoadData", ctypes.c_void_p, image), allocate(4)
    assert call("cuLinkDestroy", state) == SUCCESS
    assert call("cuLinkDestroy", state) == raw.CUDA_ERROR_INVALID_HANDLE
    assert launch(kernel(module, "k"), ctypes.c_uint64(out)) == SUCCESS
    assert read(out, 1) == [42]
