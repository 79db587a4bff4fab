"""Wrong input: each a specific exception, before the driver is called, that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import KERNELS, PTX, library


@pytest.fixture
def arrays():
    """Two small device arrays."""
    return cu.to_device(np.zeros(8, np.float32)), cu.to_device(np.ones(8, np.float32))


@pytest.fixture
def no_calls(monkeypatch):
    """Fail when a launch reaches the driver."""
    kernel = library()["scale"]
    fail = (lambda *_: pytest.fail("the driver was called"),) * 2
    monkeypatch.setattr(kernel, "starters", fail)
    monkeypatch.setattr(kernel, "last_config", (None, None, None))
    return kernel


def test_unknown_device():
    """The error names the ordinal and says how many devices there are."""
    with pytest.raises(ValueError, match=r"no device 4711; there (is 1 device|are \d+ devices)"):
        cu.Device(4711)
    with pytest.raises(ValueError, match="no device -1"):
        cu.Device(-1)


def test_ptx_that_does_not_parse():
    """JitError carries the log of the driver's compiler."""
    with pytest.raises(cu.JitError) as caught:
        cu.load(PTX.replace("mul.f32", "mull.f32"))
    assert caught.value.name == "CUDA_ERROR_INVALID_PTX"
    assert "mull" in caught.value.log
    assert "mull" in str(caught.value)


def test_text_that_is_no_ptx():
    """Any other text is refused likewise, nothing at all by its own message."""
    with pytest.raises(cu.JitError):
        cu.load("int main() { return 0; }")
    with pytest.raises(ValueError, match="empty"):
        cu.load("")


@pytest.mark.parametrize("code", [None, 5, ["text"]])
def test_code_of_another_type(code):
    """The error says what may be given; 5 is not five bytes of zeros."""
    with pytest.raises(TypeError, match="PTX as str"):
        cu.load(code)


def test_names_and_shapes_of_another_type():
    """The error shows the value."""
    with pytest.raises(TypeError, match="3 is no name of a kernel"):
        library()[3]
    with pytest.raises(TypeError, match="shape 'ab'"):
        cu.device_array("ab")
    with pytest.raises(TypeError, match=r"shape \(2.5,\)"):
        cu.device_array((2.5,))


CUBIN = b"\x7fELF" + bytes(14) + b"\xbe\0" + bytes(20) + (1000).to_bytes(8, "little")
CUBIN += bytes(10) + b"\x40\0\x03\0" + bytes(100)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (b"\x7fELF" + bytes(14) + b"\x3e\0" + bytes(100), "machine 62"),
        (CUBIN, "cut short: it has 162 bytes of at least 1192"),
        (b"\x7fELF", "cut short"),
        (b"\x50\xed\x55\xba\1\0\x10\0" + (500).to_bytes(8, "little"), "16 bytes of at least 516"),
        (b"BC\xc0\xde\0\0\0\0\1", "neither PTX text"),
    ],
)
def test_binary_that_is_no_code(code, message):
    """Other files and cut ones never reach the driver, which would read past their end."""
    with pytest.raises(ValueError, match=message):
        cu.load(code)


def test_a_file_that_is_not_there(tmp_path):
    """The missing file is named."""
    with pytest.raises(FileNotFoundError, match=r"missing\.ptx"):
        cu.load(tmp_path / "missing.ptx")


def test_unknown_kernel():
    """The error lists the kernels there are."""
    with pytest.raises(cu.NameNotFound) as caught:
        library()["scales"]
    assert caught.value.available == tuple(KERNELS)
    assert "'scales'" in str(caught.value) and "last_shared" in str(caught.value)


def test_unknown_global():
    """The error lists the variables there are."""
    with pytest.raises(cu.NameNotFound, match="counter, factor"):
        library().get_global("counters")


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (0, 32, "grid=0"),
        ((4, 0), 32, r"grid=\(4, 0\)"),
        (-1, 32, "grid=-1"),
        (1, 0, "block=0"),
        (1, -3, "block=-3"),
        ((), 32, r"grid=\(\)"),
        ((1, 1, 1, 1), 32, "at most three"),
        (1, (1, 1, 1, 1), "at most three"),
        ((1, 1 << 20), 32, r"grid=\(1, 1048576\)"),
        (1 << 32, 32, "grid=4294967296"),
        (1, (32, 64), "2048 threads"),
        (1, (1, 1, 128), "block="),
    ],
)
def test_bad_grid_or_block(arrays, no_calls, grid, block, message):
    """Zero, negative and too many blocks or threads never reach the driver."""
    out, x = arrays
    with pytest.raises(ValueError, match=message):
        no_calls.launch(grid, block, out, 1.0, x, 8)
    with pytest.raises(ValueError, match=message):
        no_calls.prepare("PfPi", grid, block)


@pytest.mark.parametrize("grid", [1.5, "4", None, np.ones(3)])
def test_a_grid_of_the_wrong_type(arrays, no_calls, grid):
    """What is no number of blocks is a TypeError that shows it."""
    out, x = arrays
    with pytest.raises(TypeError, match="grid="):
        no_calls.launch(grid, 32, out, 1.0, x, 8)


def test_more_threads_than_the_kernel_allows():
    """The kernel's own bound counts, not only the device's."""
    library()["narrow"].launch(1, 64)
    with pytest.raises(ValueError, match=r"65 threads; the kernel allows 64"):
        library()["narrow"].launch(1, 65)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_wrong_number_of_arguments(arrays, no_calls, count):
    """The error names the kernel, what it takes and what it got."""
    out, x = arrays
    arguments = [out, 1.0, x, 8, 9][:count]
    with pytest.raises(TypeError, match=rf"'scale' takes 4 arguments .* got {count}"):
        no_calls.launch(1, 32, *arguments)


def test_arguments_for_a_kernel_without_parameters():
    """A kernel that takes nothing refuses arguments."""
    with pytest.raises(TypeError, match="takes 0 arguments"):
        library()["nothing"].launch(1, 1, 5)


@pytest.mark.parametrize(
    ("position", "value", "error", "message"),
    [
        (0, np.zeros(8, np.float32), TypeError, r"argument 0: .*host memory.*to_device"),
        (0, "text", TypeError, "argument 0: str"),
        (0, [1, 2], TypeError, "argument 0: list"),
        (1, np.float64(1), TypeError, "argument 1: .*float64 has 8 bytes, but .* takes 4"),
        (2, np.int32(1), TypeError, "argument 2: .*int32 has 4 bytes, but .* takes 8"),
        (3, 1 << 40, OverflowError, "argument 3: 1099511627776 does not fit into the 4 bytes"),
        (3, None, TypeError, "argument 3"),
        (3, b"abc", TypeError, "argument 3: .* has 3 bytes"),
    ],
)
def test_wrong_arguments(arrays, no_calls, position, value, error, message):
    """The error names the argument by position, its type and what the kernel takes."""
    out, x = arrays
    arguments = [out, 1.0, x, 8]
    arguments[position] = value
    with pytest.raises(error, match=message):
        no_calls.launch(1, 32, *arguments)


def test_wrong_types_of_a_prepared_launch(no_calls):
    """Letters that do not fit the kernel's parameters are refused when it is prepared."""
    with pytest.raises(TypeError, match="takes 4 of"):
        no_calls.prepare("PfP", 1, 32)
    with pytest.raises(TypeError, match="takes 4 of"):
        no_calls.prepare("PdPi", 1, 32)
    with pytest.raises(ValueError, match="no type"):
        no_calls.prepare("PfPz", 1, 32)


@pytest.mark.parametrize(
    "arguments",
    [(1.0,), (None, 1.0, None, 8, 9), (None, "x", None, 8), (None, 1.0, None, 1 << 40)],
)
def test_wrong_arguments_of_a_prepared_launch(no_calls, arguments):
    """Number and types are checked at each call, naming the kernel."""
    run = no_calls.prepare("PfPi", 1, 32)
    with pytest.raises(TypeError, match="scale"):
        run(*arguments)


def test_host_array_for_a_prepared_launch(no_calls):
    """A host array is no pointer."""
    with pytest.raises(TypeError, match="to_device"):
        no_calls.prepare("PfPi", 1, 32)(np.zeros(8), 1.0, None, 8)


def test_too_much_shared_memory():
    """The error names what was asked for and what the device has."""
    kernel = library()["last_shared"]
    with pytest.raises(ValueError, match=rf"smem=9999999.*{kernel.limits.shared_bytes}"):
        kernel.launch(1, 1, None, 4, smem=9999999)
    with pytest.raises(ValueError, match="smem=-1"):
        kernel.launch(1, 1, None, 4, smem=-1)


def test_closed_memory_is_refused(arrays, no_calls):
    """A freed buffer raises ClosedError in launches, copies and fills, and in views of it."""
    out, x = arrays
    view = out[2:4]
    run = no_calls.prepare("PfPi", 1, 32)
    out.close()
    out.close()
    uses = [
        lambda: no_calls.launch(1, 32, out, 1.0, x, 8),
        lambda: no_calls.launch(1, 32, view, 1.0, x, 8),
        lambda: run(out, 1.0, x, 8),
        lambda: out.copy_to_host(),
        lambda: view.copy_to_host(),
        lambda: out.copy_to_device(np.zeros(8, np.float32)),
        lambda: x.copy_to_device(out),
        lambda: cu.memcpy(out.memory, bytes(4)),
        lambda: cu.memcpy(bytearray(4), out.memory[0:4]),
        lambda: cu.memset(out, 0),
        lambda: out.__cuda_array_interface__,
    ]
    for use in uses:
        with pytest.raises(cu.ClosedError, match="closed"):
            use()


def test_closed_library_is_refused(arrays):
    """Kernels and prepared launches of a closed library raise ClosedError."""
    out, x = arrays
    lib = cu.load(PTX)
    kernel = lib["scale"]
    run = kernel.prepare("PfPi", 1, 32)
    memory = lib.get_global("counter")
    lib.close()
    uses = [
        lambda: lib["scale"],
        lambda: lib.kernels(),
        lambda: kernel.launch(1, 32, out, 1.0, x, 8),
        lambda: run(out, 1.0, x, 8),
        lambda: kernel.function,
        lambda: cu.memset(memory, 0),
    ]
    for use in uses:
        with pytest.raises(cu.ClosedError, match="closed"):
            use()


def test_closed_stream_and_event_are_refused(arrays, no_calls):
    """A closed stream is not taken for the default stream."""
    out, x = arrays
    stream, event = cu.Stream(), cu.Event()
    run = no_calls.prepare("PfPi", 1, 32, stream)
    stream.close()
    event.close()
    uses = [
        lambda: no_calls.launch(1, 32, out, 1.0, x, 8, stream=stream),
        lambda: run(out, 1.0, x, 8),
        lambda: out.copy_to_host(stream=stream),
        lambda: stream.synchronize(),
        lambda: stream.done,
        lambda: event.record(),
        lambda: event.synchronize(),
    ]
    for use in uses:
        with pytest.raises(cu.ClosedError, match="closed"):
            use()


def test_copies_out_of_range():
    """A copy that does not fit names both sizes."""
    memory = cu.mem_alloc(100)
    with pytest.raises(ValueError, match="101 bytes: the destination has 100"):
        cu.memcpy(memory, bytes(101))
    with pytest.raises(ValueError, match="100 bytes: the destination has 50"):
        cu.memcpy(bytearray(50), memory)
    with pytest.raises(ValueError, match="80 bytes: the source has 70"):
        cu.memcpy(memory, bytes(70), 80)
    with pytest.raises(ValueError, match="negative"):
        cu.memcpy(memory, bytes(70), -1)
    with pytest.raises(ValueError, match="200 bytes: the destination has 100"):
        cu.memset(memory, 0, 200)


def test_copies_of_what_is_no_memory():
    """What has no bytes, cannot be written or has gaps is refused."""
    memory = cu.mem_alloc(100)
    with pytest.raises(TypeError, match="str"):
        cu.memcpy(memory, "text")
    with pytest.raises(ValueError, match="read-only"):
        cu.memcpy(bytes(100), memory)
    with pytest.raises(ValueError, match="not contiguous"):
        cu.memcpy(memory, np.zeros(50, np.uint8)[::2])
    with pytest.raises(ValueError, match="nbytes"):
        cu.memcpy(memory.handle, memory.handle)


def test_bad_fills():
    """Width and value of a fill are checked."""
    memory = cu.mem_alloc(100)
    for value, width in ((256, 1), (-129, 1), (1 << 32, 4), (0, 3), (0, 8)):
        with pytest.raises(ValueError, match=r"fit|width"):
            cu.memset(memory, value, width=width)
    with pytest.raises(ValueError, match="width"):
        cu.memset(memory, 0, 99, width=2)


def test_bad_allocations():
    """Negative sizes are refused; too large ones are OutOfMemory, telling what there is."""
    with pytest.raises(ValueError, match="-5"):
        cu.mem_alloc(-5)
    with pytest.raises(cu.OutOfMemory, match=r"asked for 1024.0 TiB.*free"):
        cu.mem_alloc(1 << 50)
    with pytest.raises(MemoryError):
        cu.device_array(1 << 50)


def test_events_that_cannot_be_timed():
    """elapsed_ms says which event is missing what."""
    recorded = cu.Event()
    recorded.record()
    recorded.synchronize()
    with pytest.raises(ValueError, match="never recorded"):
        recorded.elapsed_ms(cu.Event())
    with pytest.raises(ValueError, match="timing=True"):
        recorded.elapsed_ms(cu.Event(timing=False))


def test_what_is_no_stream():
    """Anything without a handle is refused as a stream."""
    with pytest.raises(TypeError, match="no stream"):
        cu.Event().record("stream")
