"""Host memory that a device reads and writes directly: pinned by the driver."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cudadrv import checks, driver
from cudadrv.context import Resource, current_context, in_context
from cudadrv.errors import ClosedError
from cudadrv.memory import DeviceMemory, failure

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PORTABLE, MAPPED, WRITE_COMBINED = 1, 2, 4


class HostBlock:
    """Memory with a host address, as a buffer and as a NumPy array.

    The driver's memory goes when the last view of it has gone: close() alone pulls no memory from
    under an array.
    """

    nbytes: int
    _block: Any = None

    @property
    def buffer(self) -> memoryview:
        """The bytes, writable; the view keeps them alive.

        Raises:
            ClosedError: the memory was closed.
        """
        if self._block is None:
            raise ClosedError(f"memory of {self.nbytes} bytes was closed; allocate it anew")
        # A cast view can be indexed, and Python casts none that is empty.
        return memoryview(self._block).cast("B") if self.nbytes else memoryview(bytearray())

    def __buffer__(self, flags: int) -> memoryview:
        return self.buffer

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """The bytes as a one-dimensional array of uint8, without a copy unless asked for."""
        import numpy as np

        array = np.frombuffer(self.buffer, np.uint8)
        return np.array(array, dtype) if copy else np.asarray(array, dtype)

    def array(self, shape: Any, dtype: npt.DTypeLike, order: Any = "C") -> np.ndarray[Any, Any]:
        """The bytes from the first on as a NumPy array; it keeps them alive.

        Raises:
            ValueError: it does not fit.
        """
        import numpy as np

        try:
            return np.ndarray(shape, dtype, self.buffer, order=order)
        except TypeError as error:
            if "too small" not in str(error):
                raise
            raise ValueError(
                f"an array of shape {shape} and dtype {np.dtype(dtype)} does not fit into "
                f"{self.nbytes} bytes"
            ) from None


def block(address: int, nbytes: int) -> Any:
    """*nbytes* at an address as a ctypes array, which finalizers can be tied to."""
    return (ctypes.c_ubyte * nbytes).from_address(address)


class PinnedMemory(HostBlock, Resource):
    """Host memory that the device reads and writes directly, so that copies are fast.

    Attributes:
        nbytes: its size.
    """

    RELEASE = "cuMemFreeHost"

    def __init__(
        self,
        nbytes: int,
        portable: bool = True,
        mapped: bool = False,
        write_combined: bool = False,
    ) -> None:
        """Allocate *nbytes* in the current context.

        Args:
            portable: whether every context can copy from and to it as fast.
            mapped: whether kernels can access it, at ``device``; most systems map it in any case.
            write_combined: whether the host's writes bypass its caches: faster for the device, and
                very slow for the host to read.

        Raises:
            ValueError: *nbytes* is negative.
            OutOfMemory: the host cannot pin as much.

        C: cuMemHostAlloc
        """
        self.nbytes = checks.size(nbytes)
        context = current_context().handle
        flags = PORTABLE * bool(portable) | MAPPED * bool(mapped)
        flags |= WRITE_COMBINED * bool(write_combined)
        pointer = ctypes.c_void_p()
        code = driver.cuMemHostAlloc.raw(ctypes.byref(pointer), max(self.nbytes, 1), flags)
        if code:
            raise failure(code, "cuMemHostAlloc", self.nbytes)
        address = pointer.value or 0
        self._block = block(address, self.nbytes)
        super().__init__(address, context, lives=self._block)

    @property
    def flags(self) -> int:
        """The CU_MEMHOSTALLOC_... flags that it has, some of them by itself.

        C: cuMemHostGetFlags
        """
        return int(in_context(driver.cuMemHostGetFlags, self.handle))

    @property
    def device(self) -> DeviceMemory:
        """The same memory at the address where kernels find it.

        C: cuMemHostGetDevicePointer_v2
        """
        return mapped_memory(self)

    def close(self) -> None:
        """Give the memory up; it is freed when no array or buffer uses it any more."""
        self._handle = None
        self._block = None


def mapped_memory(memory: Any) -> DeviceMemory:
    """Pinned host memory as the device sees it."""
    address = in_context(driver.cuMemHostGetDevicePointer, memory.handle, 0)
    return DeviceMemory(address, memory.nbytes, memory.context, memory)
