"""Device memory, pinned host memory, and copies between them."""

from __future__ import annotations

import ctypes
import operator
from typing import Any

from cudadrv import driver
from cudadrv.context import Resource, current_context, in_context
from cudadrv.errors import ClosedError
from cudadrv.stream import stream_handle


class DeviceMemory(Resource):
    """Bytes on a device.

    Attributes:
        nbytes: how many.
    """

    RELEASE = "cuMemFree"
    # Marks what has a device address in ``handle``, for launches.
    __cuda_memory__ = True

    def __init__(
        self, handle: int, nbytes: int, context: int = 0, owner: object = None, owned: bool = False
    ) -> None:
        """Describe memory that exists; ``mem_alloc`` makes new one.

        Args:
            handle: its device address.
            owner: what to keep alive as long as this object.
            owned: whether this object frees it.
        """
        self.nbytes = nbytes
        self.owner = owner
        # What is closed for this to be closed: one step away however often memory was cut.
        self._root = getattr(owner, "_root", None) or (
            owner if isinstance(owner, Resource) else None
        )
        super().__init__(handle, context, owned)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.nbytes} bytes)"

    @property
    def handle(self) -> int:
        """The device address.

        Raises:
            ClosedError: the memory, or the memory that it is a part of, was closed.
        """
        root = self._root
        if self._handle is None or (root is not None and root._handle is None):
            raise ClosedError(f"device memory of {self.nbytes} bytes was closed; allocate it anew")
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether it, or what it is a part of, was closed."""
        root = self._root
        return self._handle is None or (root is not None and root._handle is None)

    def __getitem__(self, part: slice) -> DeviceMemory:
        """The bytes from ``part.start`` to ``part.stop``, sharing this memory."""
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise TypeError("device memory is cut with memory[start:stop], in bytes")
        start, stop, _ = part.indices(self.nbytes)
        return DeviceMemory(self.handle + start, max(0, stop - start), self.context, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The bytes as a one-dimensional array of uint8."""
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.handle, False),
            "strides": None,
            "version": 3,
        }


def mem_alloc(nbytes: int) -> DeviceMemory:
    """Allocate *nbytes* on the device of the current context, not cleared, aligned to 256.

    Raises:
        ValueError: *nbytes* is negative.
        OutOfMemory: the device has not got as much.

    C: cuMemAlloc_v2
    """
    nbytes = operator.index(nbytes)
    if nbytes < 0:
        raise ValueError(f"cannot allocate {nbytes} bytes: the size must not be negative")
    context = current_context().handle
    if nbytes == 0:
        return DeviceMemory(0, 0, context)
    pointer = ctypes.c_uint64()
    code = driver.cuMemAlloc.raw(ctypes.byref(pointer), nbytes)
    if code:
        raise driver.error(code, "cuMemAlloc_v2", memory_hint(code, nbytes))
    return DeviceMemory(pointer.value, nbytes, context, owned=True)


def memory_hint(code: int, nbytes: int) -> str:
    """For a failed allocation: what was asked for and what there is."""
    asked = f"asked for {amount(nbytes)}"
    try:
        free, total = driver.cuMemGetInfo()
    except RuntimeError:
        return asked
    return f"{asked}, {amount(free)} of {amount(total)} are free; close buffers or use smaller ones"


def amount(nbytes: int) -> str:
    """A number of bytes as people write it."""
    value, unit = float(nbytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}" if unit != "bytes" else f"{nbytes} bytes"


class PinnedMemory(Resource):
    """Host memory that the device reads and writes directly, so that copies are fast.

    Attributes:
        nbytes: its size.
    """

    RELEASE = "cuMemFreeHost"

    def __init__(self, nbytes: int) -> None:
        """Allocate *nbytes* in the current context, usable from every context.

        C: cuMemHostAlloc
        """
        self.nbytes = nbytes
        context = current_context().handle
        super().__init__(driver.cuMemHostAlloc(max(nbytes, 1), 1), context)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The bytes as a one-dimensional array of uint8."""
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.handle, False),
            "strides": None,
            "version": 3,
        }


class Span:
    """One end of a copy: an address with its size, on the device or on the host."""

    def __init__(self, address: Any, nbytes: int | None, on_device: bool, keep: object) -> None:
        self.address = address
        self.nbytes = nbytes
        self.on_device = on_device
        self.keep = keep


def span(thing: Any, writable: bool) -> Span:
    """Where the bytes of *thing* lie.

    Raises:
        TypeError: it has no bytes that can be copied.
        ValueError: they are not contiguous, or read-only where they must be written.
    """
    if isinstance(thing, DeviceMemory):
        return Span(thing.handle, thing.nbytes, True, thing)
    if isinstance(thing, int):
        return Span(thing, None, True, None)
    interface = getattr(thing, "__cuda_array_interface__", None)
    if interface is not None:
        return Span(interface["data"][0], interface_nbytes(interface), True, thing)
    try:
        view = memoryview(thing)
    except TypeError:
        raise TypeError(
            f"cannot copy {type(thing).__name__}: it is neither device memory nor a host buffer"
        ) from None
    if not (view.c_contiguous or view.f_contiguous):
        raise ValueError("the host array is not contiguous: copy numpy.ascontiguousarray(array)")
    if writable and view.readonly:
        raise ValueError("the destination is read-only")
    return Span(host_address(thing, view), view.nbytes, False, view)


def host_address(thing: Any, view: memoryview) -> Any:
    """What ctypes passes for the memory of a host buffer."""
    interface = getattr(thing, "__array_interface__", None)
    if interface is not None:
        return interface["data"][0]
    if isinstance(thing, bytes):
        return thing
    if view.readonly:
        return bytes(view)
    return ctypes.byref(ctypes.c_char.from_buffer(thing)) if view.nbytes else None


def interface_nbytes(interface: dict[str, Any]) -> int:
    """The size of a contiguous array that another library describes.

    Raises:
        ValueError: it is not contiguous.
    """
    shape, itemsize = interface["shape"], int(interface["typestr"][2:])
    nbytes = itemsize
    expected = []
    for length in reversed(shape):
        expected.append(nbytes)
        nbytes *= length
    strides = interface.get("strides")
    if strides is not None and nbytes and tuple(strides) != tuple(reversed(expected)):
        forward = itemsize
        for length, stride in zip(shape, strides, strict=True):
            if stride != forward:
                raise ValueError("the device array is not contiguous: copy it to a new one first")
            forward *= length
    return nbytes


def memcpy(dst: Any, src: Any, nbytes: int | None = None, stream: object = None) -> None:
    """Copy bytes between device and host memory, or within either.

    Args:
        dst: device memory, a contiguous device array of any library, a device address, or a
            writable contiguous host buffer.
        src: the same, or a read-only host buffer.
        nbytes: how many; by default all of *src*, which must then fit into *dst*.
        stream: where to order it. Without, the call returns when the copy is done; with, host
            memory must stay unchanged until then.

    Raises:
        ValueError: more bytes than *dst* or *src* has.
        ClosedError: a buffer was closed.

    C: cuMemcpyHtoD_v2, cuMemcpyDtoH_v2, cuMemcpyDtoD_v2, and their Async forms
    """
    target, source = span(dst, True), span(src, False)
    count = copy_size(target, source, nbytes)
    if count == 0:
        return
    if not (target.on_device or source.on_device):
        ctypes.memmove(target.address, source.address, count)
        return
    kind = ("DtoD" if source.on_device else "HtoD") if target.on_device else "DtoH"
    transfer(kind, target.address, source.address, count, stream)


def transfer(kind: str, dst: Any, src: Any, nbytes: int, stream: object) -> None:
    """Copy *nbytes*, more than none, in the direction *kind*: "HtoD", "DtoH" or "DtoD".

    C: cuMemcpyHtoD_v2 and its like, or the Async form if there is a stream
    """
    if stream is None:
        in_context(getattr(driver, "cuMemcpy" + kind), dst, src, nbytes)
    else:
        function = getattr(driver, "cuMemcpy" + kind + "Async")
        in_context(function, dst, src, nbytes, stream_handle(stream))


def copy_size(target: Span, source: Span, nbytes: int | None) -> int:
    """How many bytes to copy, checked against both ends."""
    if nbytes is None:
        nbytes = source.nbytes if source.nbytes is not None else target.nbytes
        if nbytes is None:
            raise ValueError("a copy between two addresses needs nbytes=")
    if nbytes < 0:
        raise ValueError(f"cannot copy {nbytes} bytes: the size must not be negative")
    for name, end in (("destination", target), ("source", source)):
        if end.nbytes is not None and nbytes > end.nbytes:
            raise ValueError(
                f"cannot copy {nbytes} bytes: the {name} has {end.nbytes}; copy fewer with nbytes="
            )
    return nbytes


def memset(
    dst: Any, value: int, nbytes: int | None = None, width: int = 1, stream: object = None
) -> None:
    """Fill device memory with a value of *width* bytes, repeated.

    Args:
        dst: device memory or a contiguous device array; a device address needs *nbytes*.
        value: signed or unsigned, of *width* bytes.
        nbytes: how much to fill, a multiple of *width*; by default all.
        width: 1, 2 or 4.

    Raises:
        ValueError: the size, the width or the value does not fit.

    C: cuMemsetD8_v2, cuMemsetD16_v2, cuMemsetD32_v2, and their Async forms
    """
    target = span(dst, True)
    if not target.on_device:
        raise TypeError("memset fills device memory; this is host memory")
    if nbytes is None:
        nbytes = target.nbytes
    if nbytes is None or width not in (1, 2, 4) or nbytes % width or nbytes < 0:
        raise ValueError(f"cannot fill {nbytes} bytes with values of width {width} (1, 2 or 4)")
    if target.nbytes is not None and nbytes > target.nbytes:
        raise ValueError(f"cannot fill {nbytes} bytes: the destination has {target.nbytes}")
    if not -(1 << (8 * width - 1)) <= value < 1 << (8 * width):
        raise ValueError(f"{value} does not fit into {width} bytes")
    if nbytes == 0:
        return
    arguments = (target.address, value & ((1 << 8 * width) - 1), nbytes // width)
    if stream is None:
        in_context(getattr(driver, f"cuMemsetD{8 * width}"), *arguments)
    else:
        function = getattr(driver, f"cuMemsetD{8 * width}Async")
        in_context(function, *arguments, stream_handle(stream))
