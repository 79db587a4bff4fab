"""DLPack: arrays handed over in capsules, from us to other libraries and from them to us.

What we hand over is freed by C code that may call from any thread and after Python has ended: then
nothing of ours may run, so at exit every open hand-over gets a deleter that does nothing.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cudadrv import driver, raw
from cudadrv.context import current_context, in_context
from cudadrv.layout import c_strides, extent
from cudadrv.stream import Stream, stream_handle

if TYPE_CHECKING:
    from cudadrv.view import View

ON_HOST = 1  # CU_MEMORYTYPE_HOST
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
VERSION = (1, 1)  # the newest that we write
READ_ONLY, IS_COPIED = 1, 2
# Type codes by NumPy's kinds, and those of types that come from ml_dtypes.
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
NAMES = {
    "bfloat16": 4,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
SIZES = {0: (8, 16, 32, 64), 1: (8, 16, 32, 64), 2: (16, 32, 64), 5: (64, 128), 6: (8,)}


class DLTensor(ctypes.Structure):
    """Where an array lies; strides count elements."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class DLManagedTensor(ctypes.Structure):
    """A hand-over of DLPack before 1.0."""

    _fields_ = (
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class DLManagedTensorVersioned(ctypes.Structure):
    """A hand-over of DLPack 1.0 and newer."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


Managed = DLManagedTensor | DLManagedTensorVersioned


def _python(result: Any, name: str, *arguments: Any) -> Any:
    """A function of Python's C API, with a type of our own."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_p = ctypes.c_void_p
_new = _python(ctypes.py_object, "PyCapsule_New", _p, _p, _p)
_is_valid = _python(ctypes.c_int, "PyCapsule_IsValid", _p, _p)
_pointer = _python(_p, "PyCapsule_GetPointer", _p, _p)
_set_name = _python(ctypes.c_int, "PyCapsule_SetName", _p, _p)
_set_destructor = _python(ctypes.c_int, "PyCapsule_SetDestructor", _p, _p)
_malloc = _python(_p, "PyMem_RawMalloc", ctypes.c_size_t)
_free = _python(None, "PyMem_RawFree", _p)
_increase = _python(None, "Py_IncRef", ctypes.py_object)


def _forever(thing: Any) -> Any:
    """*thing*, never freed: C code may use it as long as the process lives."""
    _increase(thing)
    return thing


# By version: the names of a capsule that waits, and of one that was taken.
KINDS: dict[bool, tuple[type[Managed], Any, Any]] = {
    versioned: (
        kind,
        _forever(ctypes.create_string_buffer(name)),
        _forever(ctypes.create_string_buffer(b"used_" + name)),
    )
    for versioned, kind, name in (
        (False, DLManagedTensor, b"dltensor"),
        (True, DLManagedTensorVersioned, b"dltensor_versioned"),
    )
}
# What is handed over, by the address of its description, and the capsules that still exist.
_given: dict[int, tuple[object, bool]] = {}
_capsules: dict[int, tuple[int, bool]] = {}


def _take_back(address: int) -> None:
    """Forget what was handed over; the last thing that happens to a description."""
    if _given.pop(address, None) is not None:
        _free(address)


def _capsule_ends(capsule: int) -> None:
    """A capsule is garbage: if nobody took what is inside, take it back."""
    address, versioned = _capsules.pop(capsule)
    if _is_valid(capsule, ctypes.addressof(KINDS[versioned][1])):
        _take_back(address)


_deleter = _forever(ctypes.CFUNCTYPE(None, _p)(_take_back))
_destructor = _forever(ctypes.PYFUNCTYPE(None, _p)(_capsule_ends))


@atexit.register
def _leave() -> None:
    """From now on Python code must not run for what is still handed over."""
    nothing = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, _p).value
    for capsule in list(_capsules):
        _set_destructor(capsule, None)
    for address, (_, versioned) in list(_given.items()):
        KINDS[versioned][0].from_address(address).deleter = nothing


def give(array: View, device: tuple[int, int], versioned: bool, flags: int = 0) -> Any:
    """A capsule that hands over an array; it lives until the taker deletes it.

    Raises:
        BufferError: its dtype or strides cannot be described.
    """
    code, bits = type_code(array.dtype)
    steps = [divmod(stride, array.itemsize) for stride in array.strides]
    if any(rest for _, rest in steps):
        raise BufferError(
            f"DLPack counts strides in elements, and {array.strides} are no multiples of "
            f"{array.itemsize} bytes: copy() the array first"
        )
    if array.readonly and not versioned:
        raise BufferError("the array is read-only, which DLPack can only tell since version 1.0")
    kind, name, _ = KINDS[versioned]
    ndim, size = array.ndim, ctypes.sizeof(kind)
    numbers = [*array.shape, *(step for step, _ in steps)]
    address = _malloc(size + 8 * len(numbers))
    if not address:
        raise MemoryError
    ctypes.memset(address, 0, size)
    ctypes.memmove(address + size, (ctypes.c_int64 * len(numbers))(*numbers), 8 * len(numbers))
    made = kind.from_address(address)
    made.tensor = DLTensor(
        array.handle if array.size else None, *device, ndim, code, bits, 1,
        address + size, address + size + 8 * ndim, 0,
    )  # fmt: skip
    made.deleter = ctypes.cast(_deleter, _p).value
    if isinstance(made, DLManagedTensorVersioned):
        made.major, made.minor = VERSION
        made.flags = flags | (READ_ONLY if array.readonly else 0)
    _given[address] = (array, versioned)
    capsule = _new(address, ctypes.addressof(name), ctypes.cast(_destructor, _p))
    _capsules[id(capsule)] = (address, versioned)
    return capsule


def type_code(dtype: np.dtype[Any]) -> tuple[int, int]:
    """DLPack's code and bits of a dtype.

    Raises:
        BufferError: it has none.
    """
    bits = 8 * dtype.itemsize
    code = NAMES.get(dtype.name, CODES.get(dtype.kind, -1))
    if not dtype.isnative or (dtype.name not in NAMES and bits not in SIZES.get(code, ())):
        raise BufferError(f"DLPack has no type for {dtype}: view() it as another one")
    return code, bits


def type_of(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    """The dtype of a code; one that NumPy lacks is ml_dtypes', or bytes where that is missing.

    Raises:
        BufferError: it has none.
    """
    if lanes == 1 and bits in SIZES.get(code, ()):
        kind = next(kind for kind, number in CODES.items() if number == code)
        return np.dtype("?") if kind == "b" else np.dtype(f"{kind}{bits // 8}")
    name = next((name for name, number in NAMES.items() if number == code), None)
    if lanes != 1 or name is None or bits != (16 if code == NAMES["bfloat16"] else 8):
        raise BufferError(f"DLPack's type {code} of {bits} bits and {lanes} lanes is no dtype")
    try:
        found: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        found = np.dtype(f"V{bits // 8}")
    return found


def device_kind(address: int) -> tuple[int, int]:
    """DLPack's number for the memory at an address, and the number of its device.

    C: cuPointerGetAttribute
    """
    if not address:
        return CUDA, current_context().device.ordinal
    if pointer_attribute(raw.CU_POINTER_ATTRIBUTE_IS_MANAGED, address):
        kind = CUDA_MANAGED
    elif pointer_attribute(raw.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == ON_HOST:
        return CUDA_HOST, 0
    else:
        kind = CUDA
    return kind, pointer_attribute(raw.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)


def pointer_attribute(attribute: int, address: int) -> int:
    """An attribute of the memory at an address, of those that are 32 bits wide.

    C: cuPointerGetAttribute
    """
    found = ctypes.c_int()
    in_context(driver.cuPointerGetAttribute, ctypes.byref(found), attribute, address)
    return found.value


def hand_over(stream: int | None, producer: object) -> None:
    """Let the *stream* of the array API standard wait for what the data is ordered on.

    C: cuEventRecord, cuStreamWaitEvent
    """
    if stream is None:
        stream = 1
    if not isinstance(stream, int) or isinstance(stream, bool):
        raise TypeError(f"stream={stream!r}: it is an int, or None")
    if stream == -1:
        return
    if not 0 < stream < 2**64:
        raise ValueError(f"stream={stream}: it is 1, 2, a handle, or -1 to wait for nothing")
    since = stream_handle(producer) or 1
    if since != stream:
        Stream.adopt(stream).wait(Stream.adopt(since))


class Taken(NamedTuple):
    """An array that was handed to us.

    Attributes:
        strides: in bytes.
        owner: gives it back when it is garbage.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    device: tuple[int, int]
    readonly: bool
    owner: object


class Owner:
    """What was handed to us; the giver's deleter is called when this is garbage."""

    def __init__(self, deleter: int | None, address: int) -> None:
        if deleter:
            end = weakref.finalize(self, _give_back, deleter, address, os.getpid())
            end.atexit = False


def _give_back(deleter: int, address: int, process: int) -> None:
    if not sys.is_finalizing() and process == os.getpid():
        ctypes.CFUNCTYPE(None, _p)(deleter)(address)


def take(capsule: Any) -> Taken:
    """Take over what a capsule holds.

    Raises:
        TypeError: it is no capsule of DLPack.
        BufferError: it was taken already, or describes what no array is.
    """
    versioned = _version(capsule)
    kind, name, used = KINDS[versioned]
    address = _pointer(id(capsule), ctypes.addressof(name))
    made = kind.from_address(address)
    if isinstance(made, DLManagedTensorVersioned) and made.major != VERSION[0]:
        raise BufferError(f"the capsule is of DLPack {made.major}, known is {VERSION[0]}")
    tensor = made.tensor
    dtype = type_of(tensor.code, tensor.bits, tensor.lanes)
    shape = _numbers(tensor.shape, tensor.ndim)
    strides = c_strides(shape, dtype.itemsize)
    if tensor.strides:
        steps = _numbers(tensor.strides, tensor.ndim)
        strides = tuple(step * dtype.itemsize for step in steps)
    if min(shape, default=0) < 0 or (not tensor.data and 0 not in shape):
        raise BufferError(f"the capsule describes shape {shape} at address {tensor.data}")
    start = (tensor.data or 0) + tensor.byte_offset
    low, high = extent(shape, strides, dtype.itemsize)
    if not 0 <= start + low <= start + high < 1 << 64:
        raise BufferError(
            f"the capsule describes shape {shape} and strides {strides} at address {start:#x}, "
            "which reach beyond all memory"
        )
    _set_name(id(capsule), ctypes.addressof(used))
    return Taken(
        start,
        shape,
        strides,
        dtype,
        (tensor.device_type, tensor.device_id),
        bool(versioned and made.flags & READ_ONLY),
        Owner(made.deleter, address),
    )


def _version(capsule: Any) -> bool:
    """Whether an unused capsule is one of DLPack 1.0 and newer."""
    for versioned, (_, name, used) in KINDS.items():
        if _is_valid(id(capsule), ctypes.addressof(name)):
            return versioned
        if _is_valid(id(capsule), ctypes.addressof(used)):
            raise BufferError("the DLPack capsule was used already: ask for a new one")
    raise TypeError(f"{type(capsule).__name__} is no DLPack capsule")


def _numbers(address: int | None, count: int) -> tuple[int, ...]:
    if not 0 <= count <= 64 or (count and not address):
        raise BufferError(f"the capsule describes {count} dimensions")
    return tuple((ctypes.c_int64 * count).from_address(address)) if address and count else ()
