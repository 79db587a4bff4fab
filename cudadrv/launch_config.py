"""Launch configurations: grid, block, shared memory, stream and attributes, checked once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cudadrv import checks, launch_attributes, raw
from cudadrv.errors import CudaError
from cudadrv.stream import stream_handle

if TYPE_CHECKING:
    from cudadrv.kernel import Kernel

Dim = tuple[int, int, int]
# Blocks of a cluster: on every device that has clusters, and at most.
PORTABLE_CLUSTER, LARGEST_CLUSTER = 8, 16


def dim3(size: Any, what: str, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    """A grid or block as three numbers.

    Args:
        size: a positive int, or one to three of them.
        what: "grid" or "block", for the message.
        limits: the largest x, y and z of the device.

    Raises:
        TypeError: it is no int and no sequence of them.
        ValueError: it has a number below 1 or above the limit, or more than three.
    """
    try:
        given = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        x, y, z = (each.__index__() for each in (*given, *(1,) * (3 - len(given))))
    except (AttributeError, TypeError):
        raise TypeError(f"{what}={size!r}: pass an int or up to three ints") from None
    except ValueError:
        raise ValueError(f"{what}={size!r}: it has at most three dimensions") from None
    if not given or x < 1 or y < 1 or z < 1:
        raise ValueError(f"{what}={size!r}: every dimension must be at least 1")
    if x > limits[0] or y > limits[1] or z > limits[2]:
        raise ValueError(f"{what}={size!r}: the device allows at most {limits}")
    return x, y, z


def check_block(kernel: Kernel, block: tuple[int, int, int]) -> None:
    """Refuse a block of more threads than the device or the kernel allows.

    Raises:
        ValueError: too many threads.
    """
    threads = block[0] * block[1] * block[2]
    if threads > kernel.max_threads:
        limits = kernel.limits
        why = (
            f"the device allows {limits.threads}"
            if kernel.max_threads == limits.threads
            else f"the kernel allows {kernel.max_threads} because of its registers or its bounds"
        )
        raise ValueError(
            f"block={block} has {threads} threads; {why}: use a smaller block and a larger grid"
        )


class LaunchConfig:
    """A checked CUlaunchConfig; never changed after it was made, so that threads may share it.

    Attributes:
        raw: the structure.
        argument: what ctypes passes for its address.
        attributes: the CUlaunchAttributes that it points to.
        resources: what it names that can be closed: stream, events, memory.
        start: the function that launches it, see ``starter``.
    """

    __slots__ = ("argument", "attributes", "raw", "resources", "start")

    def __init__(
        self,
        kernel: Kernel,
        grid: Any,
        block: Any,
        smem: int,
        stream: object,
        attributes: Mapping[str, Any],
    ) -> None:
        if attributes.keys() - {"cooperative"}:
            raw.address("cuLaunchKernelEx")
        grid = dim3(grid, "grid", kernel.limits.grid)
        block = dim3(block, "block", kernel.limits.block)
        check_block(kernel, block)
        check_clusters(kernel, grid, attributes)
        self.attributes = (raw.CUlaunchAttribute * len(attributes))()
        for made, (name, value) in zip(self.attributes, attributes.items(), strict=True):
            launch_attributes.fill(made, name, value, launch_attributes.LAUNCH)
        smem = checks.size(smem, "smem")
        if smem:
            kernel.allow_shared(smem)
        self.raw = raw.CUlaunchConfig(*grid, *block, smem, stream_handle(stream))
        if attributes:
            self.raw.attrs = ctypes.addressof(self.attributes)
            self.raw.numAttrs = len(attributes)
        self.resources = launch_attributes.resources({**attributes, "stream": stream})
        self.argument = ctypes.byref(self.raw)
        self.start = kernel.starters[bool(attributes.get("cooperative"))]

    @property
    def text(self) -> str:
        """The configuration, for a message."""
        made = self.raw
        grid = (made.gridDimX, made.gridDimY, made.gridDimZ)
        block = (made.blockDimX, made.blockDimY, made.blockDimZ)
        shown = f"grid={grid}, block={block}, smem={made.sharedMemBytes}"
        numbers = {
            getattr(raw, launch_attributes.PREFIX + name.upper()): name
            for name in launch_attributes.TABLE
        }
        names = [numbers[each.id] for each in self.attributes]
        return f"{shown}, attributes {', '.join(names)}" if names else shown


def config(
    kernel: Kernel, grid: Any, block: Any, smem: int, stream: object, attributes: dict[str, Any]
) -> LaunchConfig:
    """The configuration of a launch; that of the launch before if it is the same.

    Args:
        attributes: see ``launch_attributes``; also ``cluster``, which is short for
            ``cluster_dimension``. What is None is left out.

    Raises:
        NotSupportedByDriver: there are attributes, and the driver is older than 11.6.
    """
    key: Any = (grid, block, smem, attributes.get("cooperative"))
    known, known_stream, made = kernel.last_config
    simple = len(attributes) == ("cooperative" in attributes)
    if simple and known == key and known_stream is stream:
        if made.resources:
            stream_handle(stream)
        return made  # type: ignore[no-any-return]
    # A list may change, and be the same list still.
    key = tuple(tuple(each) if isinstance(each, list) else each for each in key)
    if "cluster" in attributes:
        if "cluster_dimension" in attributes:
            raise TypeError("cluster and cluster_dimension are the same: give one of them")
        attributes["cluster_dimension"] = attributes.pop("cluster")
    given = {name: value for name, value in attributes.items() if value is not None}
    if not given.get("cooperative", True):
        del given["cooperative"]
    made = LaunchConfig(kernel, grid, block, smem, stream, given)
    if simple:
        kernel.last_config = (key, stream, made)
    return made


def check_clusters(kernel: Kernel, grid: Dim, attributes: Mapping[str, Any]) -> None:
    """Refuse clusters that the device or the kernel does not allow, or that do not fill the grid.

    Raises:
        ValueError: says which limit is broken.
    """
    cluster = attributes.get("cluster_dimension")
    preferred = attributes.get("preferred_cluster_dimension")
    if cluster is None:
        if preferred is not None:
            raise ValueError("preferred_cluster_dimension needs cluster, whose multiple it is")
        return
    require_clusters(kernel)
    size = check_cluster(cluster, "cluster", grid)
    limit = largest_cluster(kernel, attributes)
    if size[0] * size[1] * size[2] > limit:
        raise ValueError(
            f"cluster={cluster!r} has more than {limit} blocks; up to {LARGEST_CLUSTER} may do "
            'after kernel.attributes["NON_PORTABLE_CLUSTER_SIZE_ALLOWED"] = 1'
        )
    if preferred is not None:
        wide = check_cluster(preferred, "preferred_cluster_dimension", grid)
        if wide[0] % size[0] or wide[1] % size[1] or wide[2] != size[2]:
            raise ValueError(
                f"preferred_cluster_dimension={preferred!r}: x and y must be multiples of those of "
                f"cluster={cluster!r}, and z the same"
            )


def require_clusters(kernel: Kernel) -> None:
    """Raise ValueError if the device has no clusters."""
    if not kernel.device.attributes["CLUSTER_LAUNCH"]:
        raise ValueError(
            f"{kernel.device.name} ({kernel.device.arch}) has no clusters, which came with sm_90"
        )


def check_cluster(given: Any, name: str, grid: Dim) -> Dim:
    """The extents of a cluster, each of which must divide that of the grid."""
    try:
        size = launch_attributes.extent(given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}={given!r}: {error}") from None
    if any(blocks % each for blocks, each in zip(grid, size, strict=True)):
        raise ValueError(f"{name}={given!r} does not divide grid={grid}")
    return size


def largest_cluster(kernel: Kernel, attributes: Mapping[str, Any]) -> int:
    """How many blocks a cluster of *kernel* may have."""
    if attributes.get("portable_cluster_size_mode") in ("allow_non_portable", 2):
        return LARGEST_CLUSTER
    try:
        allowed = kernel.attributes["NON_PORTABLE_CLUSTER_SIZE_ALLOWED"]
    except CudaError:
        allowed = 0
    return LARGEST_CLUSTER if allowed else PORTABLE_CLUSTER


def starter(cooperative: bool) -> Callable[[Any, Any, Any, None], int]:
    """What starts a kernel: (config, function, parameters, None) -> CUresult.

    The first three are addresses as ctypes passes them: ``byref(x)``, ``address(n)``. The function
    has no argument types to convert to, which takes 0.2 us off a call of ctypes.

    C: cuLaunchKernelEx, or on drivers before 11.6 cuLaunchKernel or cuLaunchCooperativeKernel
    """
    if raw.available("cuLaunchKernelEx"):
        make = ctypes.WINFUNCTYPE if hasattr(ctypes, "WINFUNCTYPE") else ctypes.CFUNCTYPE
        return make(ctypes.c_int)(raw.address("cuLaunchKernelEx"))
    plain = raw.cuLaunchCooperativeKernel if cooperative else raw.cuLaunchKernel

    def start(made: Any, function: Any, parameters: Any, extra: None) -> int:
        made = made._obj
        grid = (made.gridDimX, made.gridDimY, made.gridDimZ)
        block = (made.blockDimX, made.blockDimY, made.blockDimZ)
        rest = (parameters,) if cooperative else (parameters, extra)
        return int(plain(function, *grid, *block, made.sharedMemBytes, made.hStream, *rest))

    return start


def address(number: int) -> Any:
    """An address or handle as ctypes passes it to a function without argument types."""
    return ctypes.c_void_p.from_param(number)
