"""Kernels: functions in loaded code that can be launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cudadrv import checks, driver, keeper, launch, launch_config, manifest, raw
from cudadrv.attributes import CACHES, attribute_number
from cudadrv.context import current_context
from cudadrv.device import Device
from cudadrv.errors import CudaError
from cudadrv.occupancy import Occupancy
from cudadrv.process_local import Named, ProcessLocal

if TYPE_CHECKING:
    from cudadrv.module import Library


class Limits(NamedTuple):
    """What a device allows in one launch."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    threads: int
    shared_bytes: int

    @classmethod
    def of(cls, device: Device) -> Limits:
        """The limits of *device*."""
        known = device.attributes

        def axes(name: str, defaults: tuple[int, int, int]) -> tuple[int, int, int]:
            x, y, z = (
                known[f"MAX_{name}_DIM_{axis}"] or default
                for axis, default in zip("XYZ", defaults, strict=True)
            )
            return x, y, z

        static = known["MAX_SHARED_MEMORY_PER_BLOCK"] or 49152
        return cls(
            axes("GRID", (2**31 - 1, 65535, 65535)),
            axes("BLOCK", (1024, 1024, 64)),
            known["MAX_THREADS_PER_BLOCK"] or 1024,
            known["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"] or static,
        )


class Kernel(ProcessLocal):
    """A kernel of a loaded library, which it keeps loaded.

    Attributes:
        name: as in the code, mangled if C++ mangled it.
        library: where it is from.
        handle: what launches take: a CUkernel, or a CUfunction on drivers before 12.0.
        argument: the same as ctypes passes it.
        layout: its Python arguments, if it was built ahead of time, see manifest.
        params: (offset, size) of each parameter in bytes; None if the driver does not tell.
        floats: of each parameter whether it is a floating-point number, None where that is not
            known; None altogether for code that is not PTX.
        limits: of the device that was current when it was looked up.
        max_threads: the largest block that the device and the kernel allow.
    """

    def __init__(self, library: Library, name: str, handle: int) -> None:
        self.name = name
        self.library = library
        self.layout: list[Any] | None = None
        self._handle = handle
        keeper.libraries[handle] = library
        self.argument = launch_config.address(handle)
        device = current_context().device
        self.device = device
        self.attributes = KernelAttributes(self)
        self.params = parameters(handle, library.is_library)
        self.sizes = None if self.params is None else [size for _, size in self.params]
        self.floats = library.floats(name, self.sizes)
        # What earlier launches leave for later ones: see launch.py.
        self.argument_memory: list[launch.Arguments] = []
        self.packers: dict[tuple[type, ...], launch.Packer] = {}
        self.last_config: tuple[Any, Any, Any] = (None, None, None)
        self.limits = Limits.of(device)
        self.max_threads = min(self.limits.threads, self.attributes["MAX_THREADS_PER_BLOCK"])
        self.starters = (launch_config.starter(False), launch_config.starter(True))
        self._allowed_shared = self.attributes["MAX_DYNAMIC_SHARED_SIZE_BYTES"]

    def __repr__(self) -> str:
        return f"Kernel({self.name!r})"

    @property
    def handle(self) -> int:
        """What launches take.

        Raises:
            ClosedError: the library was closed.
        """
        self.library.check_open()
        return self._handle

    @property
    def function(self) -> int:
        """The CUfunction in the current context, for functions that take no CUkernel.

        C: cuKernelGetFunction
        """
        if not self.library.is_library:
            return self.handle
        current_context()
        return int(driver.cuKernelGetFunction(self.handle))

    @property
    def is_loaded(self) -> bool:
        """Whether its code is on the device; under lazy loading the first launch loads it.

        C: cuFuncIsLoaded
        """
        return bool(driver.cuFuncIsLoaded(self.function) == raw.CU_FUNCTION_LOADING_STATE_LOADED)

    def load(self) -> None:
        """Load its code onto the device now, so that the first launch need not.

        C: cuFuncLoad
        """
        driver.cuFuncLoad(self.function)

    def set_cache_config(self, prefer: str) -> None:
        """Say what the kernel prefers where L1 and shared memory share their place.

        Finer: ``kernel.attributes["PREFERRED_SHARED_MEMORY_CARVEOUT"]``, in percent.

        Args:
            prefer: "prefer_none", "prefer_shared", "prefer_l1" or "prefer_equal".

        C: cuKernelSetCacheConfig, or cuFuncSetCacheConfig for a CUfunction
        """
        number = checks.choice(prefer, CACHES, "prefer")
        if self.library.is_library:
            driver.cuKernelSetCacheConfig(self.handle, number, self.device.handle)
        else:
            driver.cuFuncSetCacheConfig(self.handle, number)

    def allow_shared(self, nbytes: int) -> None:
        """Allow launches with *nbytes* of dynamic shared memory; launches do it by themselves.

        Raises:
            ValueError: the device has less, given what the kernel itself uses.

        C: cuKernelSetAttribute
        """
        if nbytes < 0:
            raise ValueError(f"smem={nbytes}: it must not be negative")
        if nbytes <= self._allowed_shared:
            return
        static = self.attributes["SHARED_SIZE_BYTES"]
        if nbytes + static > self.limits.shared_bytes:
            raise ValueError(
                f"smem={nbytes}: with the {static} bytes that kernel {self.name!r} uses itself it "
                f"is more than the {self.limits.shared_bytes} that the device has for a block"
            )
        self.attributes["MAX_DYNAMIC_SHARED_SIZE_BYTES"] = nbytes
        self._allowed_shared = nbytes

    @property
    def occupancy(self) -> Occupancy:
        """How much of the kernel fits on the device at once."""
        return Occupancy(self)

    def launch(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *args: Any,
        stream: object = None,
        smem: int = 0,
        cooperative: bool = False,
        **attributes: Any,
    ) -> None:
        """Start the kernel; it runs while the call returns.

        Args:
            grid: number of blocks: x, or (x,), (x, y), (x, y, z).
            block: number of threads of a block, likewise.
            args: device memory and arrays of any library (their address is passed), NumPy and
                ctypes scalars and structs, bytes of a struct, None for a null pointer; Python
                numbers where the driver tells the size of the parameter.
            stream: a Stream, or that of another library; None is the default stream.
            smem: bytes of dynamic shared memory.
            cooperative: all blocks run at once and can wait for each other.
            attributes: ``cluster=(x, y, z)``, the blocks of a cluster; ``priority=...`` and every
                other launch attribute of cuda.h, see ``cudadrv.launch_attributes.TABLE``.

        Raises:
            ValueError: grid, block, smem or an attribute is more than the device or the kernel
                allows.
            TypeError: number, type or size of the arguments do not fit.
            ClosedError: the library or an argument was closed.
            LaunchError: the driver refused the launch, or an earlier kernel crashed.
            NotSupportedByDriver: attributes need a driver of CUDA 11.6.

        C: cuLaunchKernelEx
        """
        attributes["cooperative"] = cooperative
        made = launch_config.config(self, grid, block, smem, stream, attributes)
        values = args if self.layout is None else manifest.expand(self.layout, args, self.name)
        launch.launch(self, made, values)

    def prepare(
        self,
        types: str,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        stream: object = None,
        smem: int = 0,
        cooperative: bool = False,
        **attributes: Any,
    ) -> Callable[..., None]:
        """Check a launch once and return ``run(*args)``, which repeats it quickly.

        Args:
            types: a letter for each parameter, as in ``struct``: P pointer (device memory, array
                or address), i int32, I uint32, q int64, Q uint64, f float32, d float64, e float16,
                b B h H smaller integers, ? bool.

        Raises:
            TypeError: *types* does not fit the kernel's parameters.
            ValueError: as for ``launch``.

        C: cuLaunchKernelEx
        """
        attributes["cooperative"] = cooperative
        made = launch_config.config(self, grid, block, smem, stream, attributes)
        return launch.prepare(self, types, made)


def parameters(handle: int, is_kernel: bool) -> list[tuple[int, int]] | None:
    """Offset and size of each parameter; None on drivers before 12.4.

    C: cuKernelGetParamInfo, cuFuncGetParamInfo
    """
    name = "cuKernelGetParamInfo" if is_kernel else "cuFuncGetParamInfo"
    if not raw.available(name):
        return None
    ask = getattr(driver, name)
    found: list[tuple[int, int]] = []
    while True:
        try:
            found.append(ask(handle, len(found)))
        except CudaError as error:
            if error.name == "CUDA_ERROR_INVALID_VALUE":
                return found
            if error.name == "CUDA_ERROR_NOT_SUPPORTED":
                return None
            raise


class KernelAttributes(Named, MutableMapping[str, int]):
    """The attributes of a kernel, by name without CU_FUNC_ATTRIBUTE_; some can be set."""

    def __init__(self, kernel: Kernel) -> None:
        # Not the kernel: the cycle would keep its library loaded until the garbage collector runs.
        self._handle = kernel._handle
        self._library = kernel.library
        self._is_kernel = kernel.library.is_library
        self._device = kernel.device.handle

    def __getitem__(self, name: str) -> int:
        number = attribute_number("CUfunction_attribute", name)
        self._library.check_open()
        if self._is_kernel:
            return int(driver.cuKernelGetAttribute(number, self._handle, self._device))
        return int(driver.cuFuncGetAttribute(number, self._handle))

    def __setitem__(self, name: str, value: int) -> None:
        number = attribute_number("CUfunction_attribute", name)
        value = checks.integer(value, name)
        if not -(1 << 31) <= value < 1 << 31:
            raise ValueError(f"{name}={value}: no attribute of a kernel is as large")
        self._library.check_open()
        if self._is_kernel:
            driver.cuKernelSetAttribute(number, value, self._handle, self._device)
        else:
            driver.cuFuncSetAttribute(self._handle, number, value)

    def __delitem__(self, name: str) -> None:
        raise TypeError("an attribute of a kernel cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        for member in raw.CUfunction_attribute.__members__:
            name = member.partition("ATTRIBUTE_")[2]
            if name != "MAX":
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)
