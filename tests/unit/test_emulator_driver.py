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
from tests.unit.emulated import KERNELS, SUCCESS, allocate, call, get, kernel, launch, start, stop


@pytest.fixture(autouse=True)
def context() -> Iterator[int]:
    """The primary context, current; reset afterwards."""
    yield start()
    stop()


@pytest.fixture
def module() -> int:
    """The handle of KERNELS."""
    return int(get("cuModuleLoadData", ctypes.c_void_p, KERNELS.encode()))


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
