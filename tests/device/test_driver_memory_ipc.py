"""Device memory of one process in another, by IPC handles."""

from __future__ import annotations

import pickle

import pytest

import cudadrv as cu


@pytest.fixture
def shared():
    """Memory with a handle; on the emulator, which has none, that it says so."""
    memory = cu.mem_alloc(4096)
    cu.memset(memory, 5)
    cu.current_context().synchronize()
    if cu.is_emulator():
        with pytest.raises(cu.NotSupported, match="cuIpcGetMemHandle"):
            memory.ipc_handle()
        with pytest.raises(cu.NotSupported, match="cuIpcOpenMemHandle_v2"):
            cu.ipc_open(bytes(80))
        pytest.skip("the emulator shares no memory between processes")
    return memory


OPEN = "import cudadrv as cu\nmemory = cu.ipc_open(bytes.fromhex({!r}){})\n"


def test_another_process_reads_and_writes_it(shared, run_python):
    """The child sees what is there, and this process what the child writes."""
    handle = pickle.loads(pickle.dumps(shared.ipc_handle()))
    code = OPEN.format(handle.hex(), "") + (
        "out = bytearray(4)\n"
        "cu.memcpy(out, memory, 4)\n"
        "cu.memset(memory, 6)\n"
        "cu.current_context().synchronize()\n"
        "print(memory.nbytes, set(out))\n"
        "memory.close()\n"
        "memory.close()\n"
        "print(memory.closed)\n"
    )
    assert run_python(code) == "4096 {5}\nTrue\n"
    out = bytearray(4096)
    cu.memcpy(out, shared)
    assert set(out) == {6}


def test_a_part_is_shared_as_a_part(shared, run_python):
    """The handle of a view opens at its first byte and has its size."""
    cu.memcpy(shared[100:104], b"abcd")
    code = OPEN.format(shared[100:104].ipc_handle().hex(), "")
    code += "out = bytearray(4)\nwith memory:\n    cu.memcpy(out, memory)\nprint(out.decode())\n"
    assert run_python(code) == "abcd\n"


def test_handles_of_other_libraries(shared, run_python):
    """64 bytes are the driver's own handle, to which the size must be told."""
    plain = bytes(cu.driver.cuIpcGetMemHandle(shared.handle))
    code = OPEN.format(plain.hex(), ", 4096") + "print(memory.nbytes)\n"
    assert run_python(code) == "4096\n"


def test_dropped_memory_is_closed(shared, run_python):
    """Garbage collection and the exit of the process close it without a word."""
    code = OPEN.format(shared.ipc_handle().hex(), "")
    code += "del memory\n" + OPEN.format(shared.ipc_handle().hex(), "") + "print('fine')\n"
    assert run_python(code) == "fine\n"


def test_only_plain_memory_has_a_handle(shared):
    """Managed memory and that of a pool are refused by the driver."""
    for memory in (cu.managed_alloc(4096), cu.mem_alloc_async(4096)):
        with pytest.raises(cu.CudaError):
            memory.ipc_handle()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((b"",), ValueError, "80 or 64 bytes, this has 0"),
        ((bytes(79),), ValueError, "this has 79"),
        ((bytes(64),), TypeError, "give nbytes="),
        ((bytes(64), 0), ValueError, "nbytes=0"),
        ((bytes(64), "8"), TypeError, "nbytes='8'"),
        ((bytes(80), 8), TypeError, "goes with the 64 bytes"),
        (("x" * 80,), TypeError, "pass bytes"),
        ((5,), TypeError, "pass bytes"),
        ((bytes(80),), cu.CudaError, "cuIpcOpenMemHandle_v2"),
    ],
)
def test_bad_handles(arguments, error, message):
    """Wrong types and sizes are refused by name, what is no handle by the driver."""
    with pytest.raises(error, match=message):
        cu.ipc_open(*arguments)


def test_no_handle_of_no_memory():
    """Empty and closed memory has none."""
    with pytest.raises(ValueError, match="0 bytes"):
        cu.mem_alloc(0).ipc_handle()
    memory = cu.mem_alloc(8)
    memory.close()
    with pytest.raises(cu.ClosedError):
        memory.ipc_handle()
