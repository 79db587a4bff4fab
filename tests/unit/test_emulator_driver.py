"""The emulator answers driver calls as a driver does, whatever it is given."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cudadrv import emulator, raw
from cudadrv.emulator import boundary, state

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


@pytest.fixture(autouse=True)
def context() -> Iterator[int]:
    """The primary context, current; reset afterwards."""
    assert call("cuInit", 0) == SUCCESS
    handle = get("cuDevicePrimaryCtxRetain", ctypes.c_void_p, 0)
    assert call("cuCtxSetCurrent", handle) == SUCCESS
    yield handle
    call("cuCtxSetCurrent", None)
    assert call("cuDevicePrimaryCtxReset", 0) == SUCCESS


@pytest.fixture
def module() -> int:
    """The handle of KERNELS."""
    return int(get("cuModuleLoadData", ctypes.c_void_p, KERNELS.encode()))


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


# -- memory


def test_ranges_are_checked() -> None:
    """Copies and fills stay inside an allocation."""
    memory, host = allocate(100), np.zeros(200, "u1")
    start = host.ctypes.data
    assert call("cuMemcpyHtoD", memory + 50, start, 50) == SUCCESS
    wrong = raw.CUDA_ERROR_INVALID_VALUE
    assert call("cuMemcpyHtoD", memory + 50, start, 51) == wrong
    assert call("cuMemcpyDtoH", start, memory - 1, 10) == wrong
    assert call("cuMemcpyDtoD", memory, memory + 60, 41) == wrong
    assert call("cuMemsetD8", memory, 0, 101) == wrong
    assert call("cuMemsetD32", memory + 2, 0, 1) == wrong
    assert call("cuMemFree", memory + 4) == wrong
    assert call("cuMemFree", memory) == SUCCESS
    assert call("cuMemcpyHtoD", memory, start, 1) == wrong
    assert call("cuMemFree", memory) == wrong
    assert call("cuMemAlloc", ctypes.byref(ctypes.c_uint64()), 0) == wrong
    too_much = call("cuMemAlloc", ctypes.byref(ctypes.c_uint64()), 1 << 60)
    assert too_much == raw.CUDA_ERROR_OUT_OF_MEMORY


@pytest.mark.parametrize(("width", "name"), [(1, "D8"), (2, "D16"), (4, "D32")])
def test_fills(width: int, name: str) -> None:
    """The pattern repeats, at any count."""
    memory = allocate(64)
    for count in (0, 1, 3, 64 // width):
        assert call("cuMemsetD8", memory, 0, 64) == SUCCESS
        assert (
            call(f"cuMemset{name}", memory, 0x01020304 & ((1 << 8 * width) - 1), count) == SUCCESS
        )
        out = np.zeros(64, "u1")
        assert call("cuMemcpyDtoH", out.ctypes.data, memory, 64) == SUCCESS
        wanted = [4, 3, 2, 1][:width] * count
        assert out.tolist() == wanted + [0] * (64 - len(wanted))


def test_pitched_copy() -> None:
    """A 2D copy moves rows between different pitches."""
    memory, pitch = ctypes.c_uint64(), ctypes.c_size_t()
    out = ctypes.byref(memory), ctypes.byref(pitch)
    assert call("cuMemAllocPitch", *out, 12, 5, 4) == SUCCESS
    assert pitch.value % 512 == 0
    source, back = np.arange(60, dtype="u1").reshape(5, 12), np.zeros((5, 12), "u1")
    copy = raw.CUDA_MEMCPY2D()
    copy.srcMemoryType, copy.srcHost, copy.srcPitch = 1, source.ctypes.data, 12
    copy.dstMemoryType, copy.dstDevice, copy.dstPitch = 2, memory.value, pitch.value
    copy.WidthInBytes, copy.Height = 12, 5
    assert call("cuMemcpy2D", ctypes.byref(copy)) == SUCCESS
    copy = raw.CUDA_MEMCPY2D()
    copy.dstMemoryType, copy.dstHost, copy.dstPitch = 1, back.ctypes.data, 12
    copy.srcMemoryType, copy.srcDevice, copy.srcPitch = 2, memory.value, pitch.value
    copy.srcY, copy.WidthInBytes, copy.Height = 1, 12, 4
    assert call("cuMemcpy2D", ctypes.byref(copy)) == SUCCESS
    assert np.array_equal(back[:4], source[1:])
    copy.Height = 6
    assert call("cuMemcpy2D", ctypes.byref(copy)) == raw.CUDA_ERROR_INVALID_VALUE


def test_pointer_attributes(context: int) -> None:
    """Kind, range and context of a pointer; unknown memory is refused."""
    memory = allocate(64)

    def attribute(name: str, kind: Any, address: int) -> Any:
        out = kind()
        which = getattr(raw, f"CU_POINTER_ATTRIBUTE_{name}")
        code = call("cuPointerGetAttribute", ctypes.byref(out), which, address)
        return out.value if code == SUCCESS else -code

    assert attribute("MEMORY_TYPE", ctypes.c_uint, memory + 5) == raw.CU_MEMORYTYPE_DEVICE
    assert attribute("RANGE_START_ADDR", ctypes.c_uint64, memory + 5) == memory
    assert attribute("RANGE_SIZE", ctypes.c_size_t, memory + 5) == 64
    assert attribute("CONTEXT", ctypes.c_void_p, memory) == context
    host = get("cuMemAllocHost", ctypes.c_void_p, 64)
    assert attribute("MEMORY_TYPE", ctypes.c_uint, host) == raw.CU_MEMORYTYPE_HOST
    assert attribute("MEMORY_TYPE", ctypes.c_uint, 64) == -raw.CUDA_ERROR_INVALID_VALUE


def test_memory_information() -> None:
    """What is allocated is missing from what is free."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    out = ctypes.byref(free), ctypes.byref(total)
    assert call("cuMemGetInfo", *out) == SUCCESS
    before = free.value
    memory = allocate(1 << 20)
    assert call("cuMemGetInfo", *out) == SUCCESS
    assert before - free.value == 1 << 20
    assert call("cuMemFree", memory) == SUCCESS


# -- contexts, streams, events, handles


def test_context_stack(context: int) -> None:
    """Contexts stack up per thread, and a destroyed one is known no more."""
    made = get("cuCtxCreate", ctypes.c_void_p, None, 0, 0)
    assert get("cuCtxGetCurrent", ctypes.c_void_p) == made
    assert get("cuCtxPopCurrent", ctypes.c_void_p) == made
    assert get("cuCtxGetCurrent", ctypes.c_void_p) == context
    assert call("cuCtxDestroy", made) == SUCCESS
    assert call("cuCtxPushCurrent", made) == raw.CUDA_ERROR_INVALID_CONTEXT
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(call("cuCtxSynchronize")))
    thread.start()
    thread.join()
    assert seen == [raw.CUDA_ERROR_INVALID_CONTEXT]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cuModuleUnload", (12345,)),
        ("cuStreamSynchronize", (12345,)),
        ("cuEventQuery", (None,)),
        ("cuFuncLoad", (12345,)),
        ("cuLaunchKernel", (99, 1, 1, 1, 1, 1, 1, 0, None, None, None)),
    ],
)
def test_unknown_handles(name: str, arguments: tuple[Any, ...]) -> None:
    """They are refused, not followed."""
    assert call(name, *arguments) == raw.CUDA_ERROR_INVALID_HANDLE


def test_handles_of_another_kind(module: int) -> None:
    """A module is no stream, and an unloaded module is nothing."""
    assert call("cuStreamSynchronize", module) == raw.CUDA_ERROR_INVALID_HANDLE
    function = kernel(module, "fill")
    assert call("cuModuleUnload", module) == SUCCESS
    assert call("cuModuleUnload", module) == raw.CUDA_ERROR_INVALID_HANDLE
    assert launch(function) == raw.CUDA_ERROR_INVALID_HANDLE


def test_null_results_are_refused() -> None:
    """A missing out-pointer is an invalid value."""
    assert call("cuMemAlloc", None, 10) == raw.CUDA_ERROR_INVALID_VALUE
    assert call("cuDeviceGetCount", None) == raw.CUDA_ERROR_INVALID_VALUE


def test_events_take_time() -> None:
    """Time between two events; events without timing or not recorded have none."""
    stream = get("cuStreamCreate", ctypes.c_void_p, 0)
    first, second = (get("cuEventCreate", ctypes.c_void_p, 0) for _ in range(2))
    elapsed = ctypes.c_float()
    ask = (ctypes.byref(elapsed), first, second)
    assert call("cuEventElapsedTime", *ask) == raw.CUDA_ERROR_INVALID_HANDLE
    for event in (first, second):
        assert call("cuEventRecord", event, stream) == SUCCESS
    assert call("cuEventElapsedTime", *ask) == SUCCESS
    assert elapsed.value >= 0
    untimed = get("cuEventCreate", ctypes.c_void_p, 2)
    assert call("cuEventRecord", untimed, None) == SUCCESS
    code = call("cuEventElapsedTime", ctypes.byref(elapsed), first, untimed)
    assert code == raw.CUDA_ERROR_INVALID_HANDLE


def test_host_functions_run() -> None:
    """cuLaunchHostFunc calls back with its data."""
    seen: list[int] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert call("cuLaunchHostFunc", None, address, 1234) == SUCCESS
    assert seen == [1234]


# -- the boundary


def test_functions_by_name() -> None:
    """cuGetProcAddress gives callable addresses, of the version asked for."""
    found, status = ctypes.c_void_p(), ctypes.c_int()
    out = ctypes.byref(found), 13000, 0, ctypes.byref(status)
    assert call("cuGetProcAddress", b"cuMemAlloc", *out) == SUCCESS
    assert found.value == emulator.open().address("cuMemAlloc_v2", 3020)
    assert call("cuGetProcAddress", b"cuNothing", *out) == SUCCESS
    assert (found.value, status.value) == (None, 1)
    assert call("cuGetProcAddress", b"cuKernelGetName", ctypes.byref(found), 11000, 0, out[-1]) == 0
    assert (found.value, status.value) == (None, 2)


def test_unknown_functions_have_no_address() -> None:
    """What the emulator lacks is absent, so that callers can tell."""
    assert emulator.open().address("cuGLInit", 13000) == 0
    assert emulator.open().address("cuNothing", 13000) == 0


def test_every_function_is_in_the_header() -> None:
    """Each exported name is one that cuda.h declares, and takes what it declares."""
    for name in boundary.FUNCTIONS:
        assert name in raw.table.FUNCTIONS, name


def test_per_thread_variants() -> None:
    """The exports for per-thread default streams are there too."""
    assert emulator.open().address("cuLaunchKernel_ptsz", 7000)
    assert emulator.open().address("cuMemcpyHtoD_v2_ptds", 7000)


def test_internal_errors_do_not_escape(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A bug in the emulator is CUDA_ERROR_UNKNOWN and a traceback, not a crash."""

    def broken(*arguments: Any) -> None:
        raise RuntimeError("broken on purpose")

    made = boundary.Callback("cuCtxSynchronize", broken)
    function: Callable[[], int] = raw.prototype("cuCtxSynchronize")(made.address)
    assert function() == raw.CUDA_ERROR_UNKNOWN
    assert "broken on purpose" in capfd.readouterr().err


def test_errors_have_names() -> None:
    """Names and descriptions of codes."""
    text = ctypes.c_void_p()
    out = ctypes.byref(text)
    assert call("cuGetErrorName", raw.CUDA_ERROR_INVALID_PTX, out) == SUCCESS
    assert ctypes.string_at(text.value or 0) == b"CUDA_ERROR_INVALID_PTX"
    assert call("cuGetErrorName", 12321, out) == raw.CUDA_ERROR_INVALID_VALUE
    assert call("cuGetErrorString", raw.CUDA_ERROR_INVALID_VALUE, out) == SUCCESS
    assert ctypes.string_at(text.value or 0) == b"invalid value"


def test_device() -> None:
    """It says what it is."""
    name = ctypes.create_string_buffer(100)
    assert call("cuDeviceGetName", name, 100, 0) == SUCCESS
    assert name.value == b"cudadrv PTX emulator"
    major = raw.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    assert get("cuDeviceGetAttribute", ctypes.c_int, major, 0) == state.device.capability[0]
    assert get("cuDeviceGetAttribute", ctypes.c_int, raw.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0) == 32
    assert call("cuDeviceGet", ctypes.byref(ctypes.c_int()), 1) == raw.CUDA_ERROR_INVALID_DEVICE
    assert call("cuDeviceGetName", name, 100, 3) == raw.CUDA_ERROR_INVALID_DEVICE
