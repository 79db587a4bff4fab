"""Launches: arguments checked and laid out in the memory that the driver reads."""

from __future__ import annotations

import ctypes
import linecache
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cudadrv import capture, driver, raw
from cudadrv.context import current_context
from cudadrv.errors import LaunchError
from cudadrv.interface import described
from cudadrv.launch_config import LaunchConfig, address
from cudadrv.memory import DeviceMemory

if TYPE_CHECKING:
    from cudadrv.kernel import Kernel

SLOT = 16  # every argument starts at a multiple of this in our memory
POINTER = struct.Struct("Q")
INTEGERS = {1: "bB", 2: "hH", 4: "iI", 8: "qQ"}
HOST_ARRAY = "it is an array in host memory: copy it with cudadrv.to_device() first"
FLOATS = {2: "e", 4: "f", 8: "d"}
# The classes of objects of ours whose handle is a device address, as launches met them.
MEMORY: set[type] = set()


class Arguments:
    """Memory for the arguments of one launch, and the array of pointers that the driver takes.

    Attributes:
        argument: what ctypes passes for the array's address.
    """

    __slots__ = ("argument", "memory", "offsets", "pointers", "view")

    def __init__(self, offsets: Sequence[int], nbytes: int) -> None:
        self.memory = ctypes.create_string_buffer(max(nbytes, 1))
        self.offsets = offsets
        self.view = memoryview(self.memory).cast("B")
        base = ctypes.addressof(self.memory)
        pointers = ctypes.c_void_p * max(len(offsets), 1)
        self.pointers = pointers(*(base + offset for offset in offsets))
        self.argument = address(ctypes.addressof(self.pointers))


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
    kinds = tuple(map(type, values))
    quick = kernel.packers.get(kinds)
    if quick is not None:
        try:
            return quick(values, memory)
        except (struct.error, IndexError, OverflowError, ValueError):
            pass  # The long way makes memory, or knows what is wrong.
    sizes: Sequence[int | None] = [None] * len(values)
    if kernel.sizes is not None:
        sizes = kernel.sizes
    if len(values) != len(sizes):
        raise TypeError(
            f"kernel {kernel.name!r} takes {len(sizes)} arguments of {sizes} bytes, got "
            f"{len(values)}"
        )
    parts = []
    floats = kernel.floats or (None,) * len(sizes)
    for position, (value, size, real) in enumerate(zip(values, sizes, floats, strict=True)):
        try:
            parts.append(encode(value, size, real))
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"kernel {kernel.name!r}, argument {position}: {error}") from None
    if quick is None and len(kernel.packers) < MOST_PACKERS:
        quick = packer(kernel, kinds)
        kernel.packers |= {kinds: quick} if quick else {}
    try:
        arguments = memory.pop()
    except IndexError:
        arguments = Arguments(*slots([len(part) for part in parts]))
    view = arguments.view
    for offset, part in zip(arguments.offsets, parts, strict=True):
        view[offset : offset + len(part)] = part
    return arguments


Packer = Callable[[Sequence[Any], list[Arguments]], Arguments]
# Of each kernel: for so many combinations of types there is a packer.
MOST_PACKERS = 64
# struct's letters of NumPy's scalars.
SCALARS = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip


def packer(kernel: Kernel, kinds: tuple[type, ...]) -> Packer | None:
    """What lays out values of exactly these types in one step; None if they need a closer look.

    It raises struct.error, OverflowError or ValueError for values that do not fit or are closed,
    IndexError if there is no memory of an earlier launch.
    """
    sizes = kernel.sizes or []
    wanted = zip(kinds, sizes, kernel.floats or (None,) * len(sizes), strict=False)
    letters = [letter_of(*each) for each in wanted]
    if "" in letters or len(letters) != len(kinds):
        return None
    places = [i for i, kind in enumerate(kinds) if kind in MEMORY]
    text = "".join(f"{letter}{SLOT - struct.calcsize('<' + letter)}x" for letter in letters)
    pack_into = struct.Struct("<" + text).pack_into

    def quick(values: Sequence[Any], memory: list[Arguments]) -> Arguments:
        given = list(values)
        for i in places:
            given[i] = given[i].handle
        arguments = memory.pop()
        pack_into(arguments.memory, 0, *given)
        return arguments

    return quick


def letter_of(kind: type, size: int, real: bool | None) -> str:
    """struct's letter for values of this type in a parameter of *size* bytes; "" if there is none.

    A Python int is packed as signed; one that needs the last bit goes the long way.

    Args:
        real: whether the parameter is a floating-point number; None if that is not known.
    """
    if kind is float or (kind in (int, bool) and real):
        letter = FLOATS.get(size, "")
    elif kind in (int, bool):
        letter = INTEGERS.get(size, " ")[0].strip()
    elif kind in MEMORY:
        letter = "Q"
    else:
        letter = SCALARS.get(kind.__name__.rstrip("_"), "") if kind.__module__ == "numpy" else ""
    fits = letter and struct.calcsize("<" + letter) == size
    return letter if fits and real in (None, letter in "efd") else ""


def encode(value: Any, size: int | None, real: bool | None = None) -> bytes:
    """The bytes of one argument.

    Args:
        size: of the parameter; None if the driver does not tell, then *value* must have a type.
        real: whether it is a floating-point number; None if that is not known.
    """
    # Exactly these types: a NumPy float64 is a float too, but has a size.
    if type(value) in (int, float, bool):
        return encode_number(float(value) if real else value, size, real)
    if real is not None and is_real(value) not in (None, real):
        names = {True: "a floating-point number", False: "an integer or an address"}
        raise TypeError(
            f"{driver.short(value)} of type {type(value).__name__} is {names[not real]}, but the "
            f"parameter is {names[real]}: convert it, or pass its bytes"
        )
    if getattr(value, "__cuda_memory__", False):
        MEMORY.add(type(value))
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


def is_real(value: Any) -> bool | None:
    """Whether a value is a floating-point number, and no integer or address; None if neither."""
    if getattr(value, "__cuda_memory__", False) or hasattr(value, "__cuda_array_interface__"):
        return False
    letter = getattr(value, "_type_", None) if isinstance(value, ctypes._SimpleCData) else None
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if letter is None and (kind is None or getattr(value, "shape", None)):
        return None
    if letter in FLOATS.values() or kind == "f":
        return True
    return False if kind in (None, "i", "u", "b") else None


def encode_number(value: float, size: int | None, real: bool | None) -> bytes:
    """The bytes of a Python number for a parameter of *size* bytes."""
    if size is None:
        raise TypeError(
            f"{value!r} has no size, and this driver does not tell the kernel's parameters: "
            "pass a typed value such as numpy.int32(n) or ctypes.c_float(x), or use prepare()"
        )
    if not isinstance(value, int):
        if size not in FLOATS or real is False:
            what = "is an integer or an address of" if real is False else "takes"
            raise TypeError(f"{value!r} is a float, but the parameter {what} {size} bytes")
        return struct.pack("<" + FLOATS[size], value)  # "<" refuses what overflows
    if size not in INTEGERS:
        raise TypeError(f"{value!r} is an int, but the parameter takes {size} bytes")
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise OverflowError(f"{value} does not fit into the {size} bytes of the parameter")
    return struct.pack(INTEGERS[size][value >= 0], value)


def encode_object(value: Any) -> bytes:
    """The bytes of a typed argument: the address of device memory, a scalar, a struct."""
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array)):
        return bytes(value)
    packed = getattr(value, "__cuda_argument__", None)
    if packed is not None:
        return bytes(packed())
    interface = described(value)
    if interface is not None:
        interface.wait()
        return POINTER.pack(interface.address)
    if hasattr(value, "dtype") and hasattr(value, "tobytes") and not getattr(value, "shape", None):
        return bytes(value.tobytes())
    if hasattr(value, "__array_interface__"):
        raise TypeError(HOST_ARRAY)
    raise TypeError(
        f"{type(value).__name__} is no kernel argument: pass device memory, a NumPy or ctypes "
        "scalar, a number, or the bytes of a struct"
    )


def launch(kernel: Kernel, made: LaunchConfig, values: Sequence[Any]) -> None:
    """Start a kernel.

    Raises:
        CudaError: the launch failed, or an earlier kernel did.
    """
    kernel.library.check_open()
    # Without known sizes the memory may be too small for the next launch.
    memory = [] if kernel.sizes is None else kernel.argument_memory
    arguments = pack(kernel, values, memory)
    code = made.start(made.argument, kernel.argument, arguments.argument, None)
    if code:
        retry(kernel, code, made, arguments.argument)
    elif capture.active:
        capture.note(made.raw.hStream, kernel, values)
    # The driver has copied the arguments.
    memory.append(arguments)


def retry(kernel: Kernel, code: int, made: LaunchConfig, arguments: Any) -> None:
    """Launch again after a thread without a context has got one; raise any other failure."""
    if code == raw.CUDA_ERROR_INVALID_CONTEXT and not driver.cuCtxGetCurrent():
        current_context()
        code = made.start(made.argument, kernel.argument, arguments, None)
    if code:
        hint = f"kernel {kernel.name!r}, {made.text}"
        more = driver.HINTS.get(code, "")
        text = f"{hint}; {more}" if more else hint
        kind = LaunchError if code == 1 else None
        raise driver.error(code, "cuLaunchKernelEx", kernel.library.explain(text), kind)


# struct's letters for a parameter list: Q-sized pointers, integers and floats.
LETTERS = frozenset("PbB?hHiIqQefd")


def prepare(kernel: Kernel, types: str, made: LaunchConfig) -> Callable[..., None]:
    """Generate ``run(a0, a1, ...)``, which packs into memory made beforehand and launches.

    Each call in progress has its own memory, so that threads can share the function.
    """
    if not isinstance(types, str):
        raise TypeError(f"types={types!r}: give a str, one letter for each argument")
    sizes = check_types(kernel, types)
    layout = struct.Struct(types)
    offsets = [struct.calcsize(types[: i + 1]) - size for i, size in enumerate(sizes)]
    free: list[tuple[Any, Any, Arguments]] = []

    def more() -> tuple[Any, Any, Arguments]:
        arguments = Arguments(offsets, layout.size)
        return arguments.memory, arguments.argument, arguments

    def check_open() -> None:
        _ = kernel.handle, [each.handle for each in made.resources]

    def fail(code: int, arguments: Any) -> None:
        retry(kernel, code, made, arguments)

    scope: dict[str, Any] = {
        **{f"resource{i}": each for i, each in enumerate(made.resources)},
        "DeviceMemory": DeviceMemory,
        "MEMORY": MEMORY,
        "append": free.append,
        "check_open": check_open,
        "error": struct.error,
        "fail": fail,
        "function": kernel.argument,
        "kernel": kernel,
        "library": kernel.library,
        "made": made.argument,
        "more": more,
        "pack": layout.pack_into,
        "pointer": pointer,
        "pop": free.pop,
        "start": made.start,
        "types": types,
    }
    source = run_source(types, len(made.resources))
    filename = f"<cudadrv launch of {kernel.name}({types})>"
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    run = scope["run"]
    run.__name__ = run.__qualname__ = kernel.name
    return run  # type: ignore[no-any-return]


def run_source(types: str, resources: int) -> str:
    """The text of the function that ``prepare`` returns."""
    names = [f"a{i}" for i in range(len(types))]
    # An int passes as it is. Nothing else does that has __index__, an array of one number has too.
    # Memory that is no part of another's is open if it has a handle, and None is no number.
    address_of = "{0}._handle if {0}.__class__ is DeviceMemory and {0}._root is None else "
    address_of += "{0} if {0}.__class__ is int else "
    address_of += "{0}.handle if {0}.__class__ in MEMORY else pointer({0})"
    packed = [
        address_of.format(name) if letter == "P" else name
        for name, letter in zip(names, types, strict=True)
    ]
    closed = ["library", *(f"resource{i}" for i in range(resources))]
    pointers = [name for name, letter in zip(names, types, strict=True) if letter == "P"]
    return RUN.format(
        pointers=", ".join(pointers),
        parameters=", ".join(names),
        packed="".join(f", {each}" for each in packed),
        closed=" or ".join(f"{each}._handle is None" for each in closed),
    )


RUN = """\
def run({parameters}):
    if {closed}:
        check_open()
    try:
        memory = pop()
    except IndexError:
        memory = more()
    try:
        pack(memory[0], 0{packed})
    except error as problem:
        for each in [{pointers}]:
            pointer(each)
        raise TypeError(f"kernel {{kernel.name!r}}, types {{types!r}}: {{problem}}") from None
    code = start(made, function, memory[1], None)
    if code:
        fail(code, memory[1])
    append(memory)
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
    for position, (letter, real) in enumerate(zip(types, kernel.floats or (), strict=False)):
        if real is not None and real != (letter in "efd"):
            what = "a floating-point number" if real else "an integer or an address"
            raise TypeError(
                f"types={types!r}: argument {position} of kernel {kernel.name!r} is {what}, "
                f"not {letter!r}"
            )
    return sizes


def pointer(value: Any) -> int:
    """The device address of an argument that is not an int."""
    if getattr(value, "__cuda_memory__", False):
        MEMORY.add(type(value))
        return int(value.handle)
    if value is None:
        return 0
    interface = described(value)
    if interface is not None:
        interface.wait()
        return interface.address
    if isinstance(value, ctypes._SimpleCData):
        return int(value.value or 0)
    if hasattr(value, "__array_interface__") and getattr(value, "shape", None):
        raise TypeError(HOST_ARRAY)
    if hasattr(value, "__index__"):
        return int(value.__index__())
    raise TypeError(f"{driver.short(value)} is no device memory and no address")
