"""Memory and semaphores of other APIs, such as Vulkan, used from CUDA."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from cudadrv import driver, raw
from cudadrv.array_layout import make_layout
from cudadrv.context import Resource, current_context, in_context
from cudadrv.cuda_array import MipmappedArray, level_count
from cudadrv.memory import DeviceMemory
from cudadrv.stream import stream_handle

MEMORY, SEMAPHORE = "CU_EXTERNAL_MEMORY_HANDLE_TYPE_", "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_"


class ExternalMemory(Resource):
    """Memory that another API allocated and exported.

    Attributes:
        nbytes: its size.
    """

    RELEASE = "cuDestroyExternalMemory"

    def __init__(
        self, handle: int | str, nbytes: int, kind: str = "opaque_fd", dedicated: bool = False
    ) -> None:
        """Import memory into the current context.

        Args:
            handle: a file descriptor, which belongs to the driver if this succeeds; on Windows a
                handle or its name; the address of an NvSciBuf object.
            nbytes: the size that was exported.
            kind: the CUexternalMemoryHandleType: "opaque_fd", "dmabuf_fd", "d3d12_heap", ...
            dedicated: whether the memory was allocated for one resource alone.

        Raises:
            ValueError: there is no such kind, or a number that no memory has.

        C: cuImportExternalMemory
        """
        made = raw.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
        self.nbytes = made.size = positive("nbytes", nbytes)
        fill_handle(made, handle, kind, MEMORY, raw.CUexternalMemoryHandleType)
        made.flags = raw.CUDA_EXTERNAL_MEMORY_DEDICATED if dedicated else 0
        context = current_context().handle
        super().__init__(driver.cuImportExternalMemory(ctypes.byref(made)), context)

    def map(self, offset: int = 0, nbytes: int | None = None) -> DeviceMemory:
        """A part of it as device memory; it is unmapped when that is closed or collected.

        Raises:
            ValueError: the part is not inside.

        C: cuExternalMemoryGetMappedBuffer
        """
        start = operator.index(offset)
        size = self.nbytes - start if nbytes is None else positive("nbytes", nbytes)
        if not 0 <= start < start + size <= self.nbytes:
            raise ValueError(f"{size} bytes from {start} on: the memory has {self.nbytes}")
        made = raw.CUDA_EXTERNAL_MEMORY_BUFFER_DESC(offset=start, size=size)
        address = driver.cuExternalMemoryGetMappedBuffer(self.handle, ctypes.byref(made))
        return DeviceMemory(address, size, self.context, self, owned=True)

    def map_array(
        self,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike,
        channels: int | None = None,
        levels: int = 1,
        offset: int = 0,
        **flags: bool,
    ) -> MipmappedArray:
        """A part of it as a mipmapped array, of one level unless it has more.

        Args:
            shape, dtype, channels, levels, flags: as for MipmappedArray.
            offset: where it begins, in bytes.

        C: cuExternalMemoryGetMappedMipmappedArray
        """
        layout = make_layout(shape, dtype, channels, flags)
        made = raw.CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC(offset=operator.index(offset))
        if not 0 <= offset < self.nbytes:
            raise ValueError(f"offset={offset}: the memory has {self.nbytes} bytes")
        made.arrayDesc, made.numLevels = layout.record(), level_count(layout, levels)
        get = driver.cuExternalMemoryGetMappedMipmappedArray
        handle = get(self.handle, ctypes.byref(made))
        return MipmappedArray.adopt(handle, made.numLevels, self, owned=True)


class ExternalSemaphore(Resource):
    """A semaphore or fence that another API made and exported."""

    RELEASE = "cuDestroyExternalSemaphore"

    def __init__(self, handle: int | str, kind: str = "opaque_fd") -> None:
        """Import a semaphore into the current context.

        Args:
            handle: as for ExternalMemory.
            kind: the CUexternalSemaphoreHandleType: "opaque_fd", "timeline_semaphore_fd", ...

        Raises:
            ValueError: there is no such kind.

        C: cuImportExternalSemaphore
        """
        made = raw.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        fill_handle(made, handle, kind, SEMAPHORE, raw.CUexternalSemaphoreHandleType)
        context = current_context().handle
        super().__init__(driver.cuImportExternalSemaphore(ctypes.byref(made)), context)

    def signal(self, value: int = 0, stream: object = None) -> None:
        """Signal it when the present work of *stream* is done.

        Args:
            value: of a fence or timeline semaphore; the key of a keyed mutex.

        C: cuSignalExternalSemaphoresAsync
        """
        made = raw.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()
        made.params.fence.value = made.params.keyedMutex.key = operator.index(value)
        self._queue(driver.cuSignalExternalSemaphoresAsync, made, stream)

    def wait(self, value: int = 0, stream: object = None, timeout_ms: int = 0xFFFFFFFF) -> None:
        """Let later work of *stream* wait for it.

        Args:
            value: of a fence or timeline semaphore; the key of a keyed mutex.
            timeout_ms: for a keyed mutex alone; by default without end.

        C: cuWaitExternalSemaphoresAsync
        """
        made = raw.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()
        made.params.fence.value = made.params.keyedMutex.key = operator.index(value)
        made.params.keyedMutex.timeoutMs = operator.index(timeout_ms)
        self._queue(driver.cuWaitExternalSemaphoresAsync, made, stream)

    def _queue(self, call: Any, made: Any, stream: object) -> None:
        handles = (ctypes.c_void_p * 1)(self.handle)
        in_context(call, handles, ctypes.byref(made), 1, stream_handle(stream))


def positive(name: str, number: int) -> int:
    """*number*, if it is more than none.

    Raises:
        TypeError: it is no int.
        ValueError: it is not more.
    """
    known = operator.index(number)
    if not 0 < known < 1 << 64:
        raise ValueError(f"{name}={number!r}: it must be more than none, of 64 bits")
    return known


def fill_handle(made: Any, handle: Any, kind: str, prefix: str, enumeration: Any) -> None:
    """Enter a handle of another API into the record that the driver takes.

    Raises:
        TypeError: a handle of another type.
        ValueError: there is no such kind, or no such descriptor.
    """
    kinds = {name.removeprefix(prefix).lower(): n for name, n in enumeration.__members__.items()}
    if kind not in kinds:
        raise ValueError(f"kind={kind!r}: there are {', '.join(kinds)}")
    made.type = kinds[kind]
    if isinstance(handle, str) and not kind.endswith(("fd", "kmt")) and "nvsci" not in kind:
        made.kept = ctypes.create_unicode_buffer(handle)
        made.handle.win32.name = ctypes.addressof(made.kept)
        return
    if not isinstance(handle, int) or isinstance(handle, bool):
        raise TypeError(f"{handle!r} of type {type(handle).__name__} is no handle of kind {kind!r}")
    if kind.endswith("fd"):
        if not 0 <= handle < 1 << 31:
            raise ValueError(f"{handle} is no file descriptor")
        made.handle.fd = handle
    elif "nvsci" in kind:
        setattr(made.handle, "nvSciBufObject" if prefix == MEMORY else "nvSciSyncObj", handle)
    else:
        made.handle.win32.handle = handle
