"""Host memory that a device reads and writes directly: pinned by the driver."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cudadrv import checks, driver, raw
from cudadrv.buffers import host_span
from cudadrv.context import Resource, current_context, in_context
from cudadrv.errors import ClosedError
from cudadrv.memory import DeviceMemory, failure

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


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
        if self._block is None or getattr(self, "closed", False):
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


class HostMemory(HostBlock, Resource):
    """Host memory that the driver has pinned, wherever it comes from.

    Attributes:
        nbytes: its size.
    """

    @property
    def device(self) -> DeviceMemory:
        """The same memory at the address where kernels find it.

        Raises:
            CudaError: it is not mapped, on a system that does not map all.

        C: cuMemHostGetDevicePointer_v2
        """
        address = in_context(driver.cuMemHostGetDevicePointer, self.handle, 0)
        return DeviceMemory(address, self.nbytes, self.context, self)


class PinnedMemory(HostMemory):
    """Host memory that the device reads and writes directly, so that copies are fast."""

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
        flags = flag_bits(portable, mapped, write_combined)
        pointer = ctypes.c_void_p()
        code = driver.cuMemHostAlloc.raw(ctypes.byref(pointer), max(self.nbytes, 1), flags)
        if code:
            raise failure(code, "cuMemHostAlloc", self.nbytes)
        address = pointer.value or 0
        self._block = block(address, self.nbytes)
        super().__init__(address, context, lives=self._block)

    @classmethod
    def adopt(cls, address: int, nbytes: int, owner: object = None) -> PinnedMemory:
        """Use pinned memory that other code allocated and frees; *owner* is kept alive.

        Raises:
            CudaError: the driver has not allocated the address.

        C: cuMemHostGetFlags
        """
        address, size = checks.address(address), checks.size(nbytes)
        in_context(driver.cuMemHostGetFlags, address)
        adopted = cls.__new__(cls)
        adopted.nbytes = size
        adopted._block = block(address, size)
        adopted._block.owner = owner
        Resource.__init__(adopted, address, current_context().handle, owned=False)
        return adopted

    @property
    def flags(self) -> int:
        """The CU_MEMHOSTALLOC_... flags that it has, some of them by itself.

        C: cuMemHostGetFlags
        """
        return int(in_context(driver.cuMemHostGetFlags, self.handle))

    def close(self) -> None:
        """Give the memory up; it is freed when no array or buffer uses it any more."""
        self._handle = None
        self._block = None


class RegisteredMemory(HostMemory):
    """Host memory of other code, pinned until this is closed; ``host_register`` makes it.

    The registered object is kept alive, also by every view.
    """

    def __init__(self, address: int, nbytes: int, keep: object, context: int) -> None:
        """Own the registration of memory that lives at least as long as *keep*."""
        self.nbytes = nbytes
        self._block = block(address, nbytes)
        self._block.owner = keep
        super().__init__(address, context, True, self._block)

    @staticmethod
    def RELEASE(address: int, block: object) -> int:
        """Unregister; the memory lives till then, for *block* is an argument.

        C: cuMemHostUnregister
        """
        return int(raw.cuMemHostUnregister(address))

    def close(self) -> None:
        """Unregister the memory; may be called twice."""
        self._block = None
        super().close()


def host_register(
    memory: Any,
    nbytes: int | None = None,
    portable: bool = True,
    mapped: bool = False,
    read_only: bool = False,
    io_memory: bool = False,
) -> RegisteredMemory:
    """Pin memory that is there already, so that copies of it are fast and kernels can access it.

    Args:
        memory: a contiguous host array or buffer, which is kept alive; or an address with *nbytes*.
        portable: whether it is pinned for every context.
        mapped: whether kernels can access it, at ``device``; most systems map it in any case.
        read_only: whether the device only reads it; needed for a buffer that is read-only.
        io_memory: whether it is memory of another device, such as a mapped register.

    Raises:
        ValueError: it is empty, read-only without *read_only*, or smaller than *nbytes*.
        TypeError: it is no host memory.
        CudaError: part of it is registered already.

    C: cuMemHostRegister_v2
    """
    if hasattr(memory, "__cuda_array_interface__"):
        raise TypeError(f"{type(memory).__name__} is device memory; host memory can be registered")
    if isinstance(memory, int):
        if nbytes is None:
            raise TypeError("an address needs nbytes=")
        address, there, keep = checks.address(memory), checks.size(nbytes), None
    else:
        found = host_span(memory, not read_only, "read-only memory needs read_only=True")
        address, there, keep = found.address, found.nbytes or 0, found.keep
    count = there if nbytes is None else checks.size(nbytes)
    if not 0 < count <= there:
        raise ValueError(f"cannot register {count} bytes: the memory has {there}")
    flags = flag_bits(portable, mapped, io_memory, read_only)
    context = current_context().handle
    driver.cuMemHostRegister(address, count, flags)
    return RegisteredMemory(address, count, keep, context)


def flag_bits(*flags: bool) -> int:
    """The flags as bits, the first one 1."""
    return sum(1 << bit for bit, flag in enumerate(flags) if flag)
