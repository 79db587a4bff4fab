"""Memory that one process allocates and another one uses."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import cudadrv as cu
from cudadrv.shareable import HANDLE_TYPES


@pytest.fixture
def child():
    """Runs code in a process of its own, which gets a file descriptor; returns what it prints."""

    def run(code, *descriptors):
        answer = subprocess.run(
            [sys.executable, "-c", "import cudadrv as cu\n" + code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            pass_fds=descriptors,
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    return run


def test_a_pool_is_shared(child):
    """The child finds the memory in the pool by a descriptor and what describes the memory."""
    supported = cu.Device(0).attributes["MEMPOOL_SUPPORTED_HANDLE_TYPES"] or 0
    if not supported & HANDLE_TYPES["posix_fd"]:
        pytest.skip("the device shares no pools by file descriptors")
    stream = cu.Stream()
    with cu.MemoryPool(handle_type="posix_fd") as pool:
        memory = cu.mem_alloc_async(64, stream, pool)
        cu.memset(memory, 5, stream=stream)
        stream.synchronize()
        handle = pool.export("posix_fd")
        printed = child(
            "stream, out = cu.Stream(), bytearray(64)\n"
            f"pool = cu.MemoryPool.import_from({handle}, 'posix_fd')\n"
            f"memory = pool.import_memory({memory.export()!r}, 64, stream)\n"
            "cu.memcpy(out, memory)\n"
            "cu.memset(memory, 6, stream=stream)\n"
            "memory.free()\n"
            "stream.synchronize()\n"
            "print(set(out))\n",
            handle,
        )
        os.close(handle)
        assert printed.split() == ["{5}"]
        out = bytearray(64)
        cu.memcpy(out, memory)
        assert set(out) == {6}
        memory.free()
        stream.synchronize()
