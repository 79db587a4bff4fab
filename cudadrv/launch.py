"""Launches: grid, block and arguments checked and laid out in the memory that the driver reads."""

from __future__ import annotations

import ctypes
import linecache
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cudadrv import driver, raw
from cudadrv.context import Resource, current_context
from cudadrv.errors import LaunchError
from cudadrv.stream import stream_handle

if TYPE_CHECKING:
    from cudadrv.kernel import Kernel

SLOT = 16  # every argument starts at a multiple of this in our memory
POINTER = struct.Struct("Q")
INTEGERS = {1: "bB", 2: "hH", 4: "iI", 8: "qQ"}
HOST_ARRAY = "it is an array in host memory: copy it with cudadrv.to_device() first"
FLOATS = {2: "e", 4: "f", 8: "d"}


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


def config(
    kernel: Kernel, grid: Any, block: Any, smem: int, stream: object, cooperative: bool
) -> Any:
    """The checked CUlaunchConfig of a launch; what it points to lives as long as it does."""
    stream = stream_handle(stream)
    grid, block = (tuple(size) if isinstance(size, list) else size for size in (grid, block))
    key = (grid, block, smem, stream, cooperative)
    known = kernel.last_config
    if known[0] == key:
        return known[1]
    grid = dim3(grid, "grid", kernel.limits.grid)
    block = dim3(block, "block", kernel.limits.block)
    check_block(kernel, block)
    if smem:
        kernel.allow_shared(smem)
    made = raw.CUlaunchConfig(*grid, *block, smem, stream)
    if cooperative:
        attribute = raw.CUlaunchAttribute(id=raw.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        attribute.value.cooperative = 1
        made.kept = attribute
        made.attrs = ctypes.addressof(attribute)
        made.numAttrs = 1
    # Never changed after this, so that threads may share it.
    kernel.last_config = (key, made)
    return made


def launcher(cooperative: bool) -> Callable[[Any, int, Any, Any], int]:
    """What starts a kernel: (byref of a CUlaunchConfig, function, parameters, None) -> CUresult.

    C: cuLaunchKernelEx, or on drivers before 11.8 cuLaunchKernel or cuLaunchCooperativeKernel
    """
    if raw.available("cuLaunchKernelEx"):
        return raw.cuLaunchKernelEx
    plain = raw.cuLaunchCooperativeKernel if cooperative else raw.cuLaunchKernel

    def launch(made: Any, function: int, parameters: Any, extra: None) -> int:
        made = made._obj
        grid = (made.gridDimX, made.gridDimY, made.gridDimZ)
        block = (made.blockDimX, made.blockDimY, made.blockDimZ)
        rest = (parameters,) if cooperative else (parameters, extra)
        return int(plain(function, *grid, *block, made.sharedMemBytes, made.hStream, *rest))

    return launch


class Arguments:
    """Memory for the arguments of one launch, and the array of pointers that the driver takes."""

    __slots__ = ("memory", "offsets", "pointers", "view")

    def __init__(self, offsets: Sequence[int], nbytes: int) -> None:
        self.memory = ctypes.create_string_buffer(max(nbytes, 1))
        self.offsets = offsets
        self.view = memoryview(self.memory).cast("B")
        base = ctypes.addressof(self.memory)
        pointers = ctypes.c_void_p * max(len(offsets), 1)
        self.pointers = pointers(*(base + offset for offset in offsets))


def slots(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where arguments of these sizes go in our memory, and how much they need in all."""
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end += -(-max(size, 1) // SLOT) * SLOT
    return offsets, end


def pack(kernel: Kernel, values: Sequence[Any], memory: list[Arguments]) -> Arguments:
    """Lay out *values* for one launch, checked against the kernel's parameters where known.

    Args:
        memory: of earlier launches of this kernel, to be used again.

    Raises:
        TypeError: their number or a type does not fit.
        OverflowError: a number is too large for its parameter.
    """
    sizes: Sequence[int | None] = [None] * len(values)
    if kernel.sizes is not None:
        sizes = kernel.sizes
    if len(values) != len(sizes):
        raise TypeError(
            f"kernel {kernel.name!r} takes {len(sizes)} arguments of {sizes} bytes, got "
            f"{len(values)}"
        )
    parts = []
    for position, (value, size) in enumerate(zip(values, sizes, strict=True)):
        try:
            parts.append(encode(value, size))
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"kernel {kernel.name!r}, argument {position}: {error}") from None
    try:
        arguments = memory.pop()
    except IndexError:
        arguments = Arguments(*slots([len(part) for part in parts]))
    view = arguments.view
    for offset, part in zip(arguments.offsets, parts, strict=True):
        view[offset : offset + len(part)] = part
    return arguments


def encode(value: Any, size: int | None) -> bytes:
    """The bytes of one argument.

    Args:
        size: of the parameter; None if the driver does not tell, then *value* must have a type.
    """
    # Exactly these types: a NumPy float64 is a float too, but has a size.
    if type(value) in (int, float, bool):
        return encode_number(value, size)
    if getattr(value, "__cuda_memory__", False):
        coded = POINTER.pack(value.handle)
    elif value is None:
        coded = bytes(8)
    elif isinstance(value, (bytes, bytearray)):
        coded = bytes(value)
    else:
        coded = encode_object(value)
    if size is not None and len(coded) != size:
        raise TypeError(
            f"{driver.short(value)} of type {type(value).__name__} has {len(coded)} bytes, "
            f"but the parameter takes {size}: pass a scalar or struct of that size"
        )
    return coded


def encode_number(value: float, size: int | None) -> bytes:
    """The bytes of a Python number for a parameter of *size* bytes."""
    if size is None:
        raise TypeError(
            f"{value!r} has no size, and this driver does not tell the kernel's parameters: "
            "pass a typed value such as numpy.int32(n) or ctypes.c_float(x), or use prepare()"
        )
    if not isinstance(value, int):
        if size not in FLOATS:
            raise TypeError(f"{value!r} is a float, but the parameter takes {size} bytes")
        return struct.pack(FLOATS[size], value)
    if size not in INTEGERS:
        raise TypeError(f"{value!r} is an int, but the parameter takes {size} bytes")
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise OverflowError(f"{value} does not fit into the {size} bytes of the parameter")
    return struct.pack(INTEGERS[size][value >= 0], value)


def encode_object(value: Any) -> bytes:
    """The bytes of a typed argument: the address of device memory, a scalar, a struct."""
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array)):
        return bytes(value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return POINTER.pack(interface["data"][0] or 0)
    if hasattr(value, "dtype") and hasattr(value, "tobytes") and not getattr(value, "shape", None):
        return bytes(value.tobytes())
    if hasattr(value, "__array_interface__"):
        raise TypeError(HOST_ARRAY)
    raise TypeError(
        f"{type(value).__name__} is no kernel argument: pass device memory, a NumPy or ctypes "
        "scalar, a number, or the bytes of a struct"
    )


def launch(kernel: Kernel, made: Any, values: Sequence[Any], cooperative: bool) -> None:
    """Start a kernel.

    Raises:
        CudaError: the launch failed, or an earlier kernel did.
    """
    start = kernel.launchers[cooperative]
    # Without known sizes the memory may be too small for the next launch.
    memory = [] if kernel.sizes is None else kernel.argument_memory
    arguments = pack(kernel, values, memory)
    try:
        given = (ctypes.byref(made), kernel.handle, arguments.pointers, None)
        code = start(*given)
        if code:
            retry(kernel, code, lambda: start(*given), made)
    finally:
        memory.append(arguments)


def retry(kernel: Kernel, code: int, again: Callable[[], int], made: Any) -> None:
    """Launch again after a thread without a context has got one; raise any other failure."""
    if code == raw.CUDA_ERROR_INVALID_CONTEXT and not driver.cuCtxGetCurrent():
        current_context()
        code = again()
    if code:
        grid = (made.gridDimX, made.gridDimY, made.gridDimZ)
        block = (made.blockDimX, made.blockDimY, made.blockDimZ)
        hint = f"kernel {kernel.name!r}, grid={grid}, block={block}, smem={made.sharedMemBytes}"
        more = driver.HINTS.get(code, "")
        text = f"{hint}; {more}" if more else hint
        kind = LaunchError if code == 1 else None
        raise driver.error(code, "cuLaunchKernelEx", kernel.library.explain(text), kind)


# struct's letters for a parameter list: Q-sized pointers, integers and floats.
LETTERS = frozenset("PbB?hHiIqQefd")


def prepare(
    kernel: Kernel, types: str, made: Any, stream: object, cooperative: bool
) -> Callable[..., None]:
    """Generate ``run(a0, a1, ...)``, which packs into memory made beforehand and launches.

    Each call in progress has its own memory, so that threads can share the function.
    """
    sizes = check_types(kernel, types)
    layout = struct.Struct(types)
    offsets = [struct.calcsize(types[: i + 1]) - size for i, size in enumerate(sizes)]
    names = [f"a{i}" for i in range(len(types))]
    packed = [
        f"{name} if {name}.__class__ is int else pointer({name})" if letter == "P" else name
        for name, letter in zip(names, types, strict=True)
    ]
    source = RUN.format(parameters=", ".join(names), packed="".join(f", {each}" for each in packed))
    scope: dict[str, Any] = {
        "Arguments": Arguments,
        "check_open": lambda: (kernel.handle, stream_handle(stream)),
        "config": made,
        "error": struct.error,
        "free": [],
        "function": kernel.handle,
        "kernel": kernel,
        "library": kernel.library,
        "made": ctypes.byref(made),
        "offsets": offsets,
        "pack_into": layout.pack_into,
        "pointer": pointer,
        "retry": retry,
        "size": layout.size,
        "start": kernel.launchers[cooperative],
        "stream": stream if isinstance(stream, Resource) else kernel.library,
        "types": types,
    }
    filename = f"<cudadrv launch of {kernel.name}({types})>"
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    run = scope["run"]
    run.__name__ = run.__qualname__ = kernel.name
    return run  # type: ignore[no-any-return]


RUN = """\
def run({parameters}):
    if library._handle is None or stream._handle is None:
        check_open()
    try:
        memory = free.pop()
    except IndexError:
        memory = Arguments(offsets, size)
    try:
        pack_into(memory.memory, 0{packed})
        code = start(made, function, memory.pointers, None)
        if code:
            retry(kernel, code, lambda: start(made, function, memory.pointers, None), config)
    except error as problem:
        raise TypeError(f"kernel {{kernel.name!r}}, types {{types!r}}: {{problem}}") from None
    finally:
        free.append(memory)
"""


def check_types(kernel: Kernel, types: str) -> list[int]:
    """The size of each type of a prepared launch, after comparing them with the kernel's.

    Raises:
        ValueError: there is no such letter.
        TypeError: the kernel takes others.
    """
    unknown = sorted(set(types) - LETTERS)
    if unknown:
        known = "".join(sorted(LETTERS))
        raise ValueError(f"types={types!r}: there is no type {unknown}, only {known}")
    sizes = [struct.calcsize(letter) for letter in types]
    if kernel.sizes is not None and sizes != kernel.sizes:
        raise TypeError(
            f"types={types!r} are {len(sizes)} arguments of {sizes} bytes, but kernel "
            f"{kernel.name!r} takes {len(kernel.sizes)} of {kernel.sizes}"
        )
    return sizes


def pointer(value: Any) -> int:
    """The device address of an argument that is not an int."""
    if getattr(value, "__cuda_memory__", False):
        return int(value.handle)
    if value is None:
        return 0
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return int(interface["data"][0] or 0)
    if isinstance(value, ctypes._SimpleCData):
        return int(value.value or 0)
    if hasattr(value, "__array_interface__") and getattr(value, "shape", None):
        raise TypeError(HOST_ARRAY)
    if hasattr(value, "__index__"):
        return int(value.__index__())
    raise TypeError(f"{driver.short(value)} is no device memory and no address")
