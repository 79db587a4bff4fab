"""Device memory that another process allocated with ``mem_alloc``."""

from __future__ import annotations

import struct
from typing import Any

from cudadrv import checks, driver, raw
from cudadrv.context import current_context
from cudadrv.memory import IPC_BYTES, IPC_FORMAT, DeviceMemory

LAZY_PEER_ACCESS = 1


class IpcMemory(DeviceMemory):
    """Device memory of another process, until it is closed; ``ipc_open`` makes it."""

    def __init__(self, base: int, offset: int, nbytes: int, context: int) -> None:
        """Own what was opened at *base*; the memory begins *offset* bytes from there."""
        super().__init__(base + offset, nbytes, context, owned=True, more=(base,))

    @staticmethod
    def RELEASE(address: int, base: int) -> int:
        """Close it; the other process has the memory still.

        C: cuIpcCloseMemHandle
        """
        return int(raw.cuIpcCloseMemHandle(base))


def ipc_open(handle: bytes, nbytes: int | None = None) -> IpcMemory:
    """The memory of another process whose ``DeviceMemory.ipc_handle()`` gave these bytes.

    It must be closed before the other process frees the memory. An event of each side, made with
    ``interprocess=True``, orders their work.

    Args:
        handle: 80 bytes of ``ipc_handle()``; or the 64 of a CUipcMemHandle.
        nbytes: for 64 bytes, the size of the allocation.

    Raises:
        TypeError: it is not bytes, or *nbytes* is missing or too much.
        ValueError: it has another number of them.
        CudaError: it is a handle of this very process, or its memory is gone.

    C: cuIpcOpenMemHandle_v2
    """
    if not isinstance(handle, (bytes, bytearray)):
        raise TypeError(f"{driver.short(handle)} is no IPC handle: pass bytes")
    if len(handle) == struct.calcsize(IPC_FORMAT):
        if nbytes is not None:
            raise TypeError("nbytes= goes with the 64 bytes of other libraries; these know it")
        data, offset, size = struct.unpack(IPC_FORMAT, handle)
    elif len(handle) == IPC_BYTES:
        if nbytes is None:
            raise TypeError("64 bytes do not tell the size: give nbytes=")
        data, offset, size = handle, 0, checks.size(nbytes, least=1)
    else:
        raise ValueError(f"an IPC handle of memory has 80 or 64 bytes, this has {len(handle)}")
    context = current_context().handle
    given: Any = raw.CUipcMemHandle.from_buffer_copy(data)
    base = driver.cuIpcOpenMemHandle(given, LAZY_PEER_ACCESS)
    return IpcMemory(base, offset, size, context)
