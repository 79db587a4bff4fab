"""DeviceArray: device memory with a shape, as a NumPy array is host memory with one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from cudadrv import capture, dlpack
from cudadrv.copies import transfer
from cudadrv.fills import memset
from cudadrv.interface import Interface, described, parse
from cudadrv.layout import broadcast_strides, strides_of
from cudadrv.memory import DeviceMemory, mem_alloc
from cudadrv.stream import stream_handle
from cudadrv.strided import gather, host_array, host_pointer, move, place, scatter, wait
from cudadrv.view import View, description

if TYPE_CHECKING:
    from typing_extensions import Self


class DeviceArray(View):
    """An array on a device: an owner of memory, or a view into another's.

    As in NumPy, an element (``a[1, 2]``) is a scalar, copied to the host, and ``a[1, 2, ...]`` the
    view of it without dimensions. Slices, fields and reshaped arrays are views of the same memory.
    """

    __cuda_memory__ = True
    __array_priority__ = 1000
    # NumPy's operators and ufuncs refuse device arrays instead of fetching them one by one.
    __array_ufunc__ = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for other libraries, version 3 of the CUDA Array Interface."""
        stream = self.ordered_on()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": description(self.dtype),
            "data": (self.handle if self.size else 0, self.readonly),
            "strides": None if self.c_contiguous else self.strides,
            "version": 3,
            "stream": None if stream is None else stream_handle(stream) or 1,
        }

    # -- elements

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """The parts along the first dimension: views, or the scalars as they are now."""
        if not self.shape:
            raise TypeError("an array without dimensions cannot be iterated over")
        if self.ndim == 1:
            return iter(self.copy_to_host())
        return (self.view_of(i) for i in range(self.shape[0]))

    def __getitem__(self, key: Any) -> Any:
        """The view that basic indexing (ints, slices, ``...``, None, field names) gives.

        With an int for each dimension, and no ``...``, it is the element: a NumPy scalar.

        Raises:
            IndexError: out of range, too many indices, or not basic indexing.

        C: cuMemcpyDtoH_v2, for an element
        """
        return self.getitem(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Copy *value*, of a shape that broadcasts, into a view.

        Args:
            value: a host array or scalar, converted to this dtype as by NumPy, or a device array;
                one of another dtype goes over the host.

        Raises:
            ValueError: the shape does not broadcast, or this array is read-only.
        """
        self.setitem(key, value)

    def getitem(self, item: Any, stream: object = None) -> Any:
        """``self[item]``; an element is there as soon as *stream* is."""
        view = self.view_of(item)
        parts = item if isinstance(item, tuple) else (item,)
        if view.shape or any(part is Ellipsis or isinstance(part, (str, list)) for part in parts):
            return view
        found = view.copy_to_host(stream=stream)
        wait(ordering(stream))
        return found[()]

    def setitem(self, key: Any, value: Any, stream: object = None) -> None:
        """``self[key] = value``, ordered on *stream*; a host array must stay until then."""
        view = self.view_of(key)
        view.check_writable()
        if not isinstance(value, np.ndarray) and described(value) is not None:
            source = as_cuda_array(value)
            if source.dtype == view.dtype:
                same = without_ones(source, view).broadcast_to(view.shape)
                view.copy_to_device(same, stream)
                return
            value = source.copy_to_host(stream=stream)
            wait(ordering(stream))
        if isinstance(value, tuple) and view.dtype.names:  # the fields of one record
            value = np.array(value, view.dtype)
        host = host_array(value)
        if not host.shape:
            view.fill(host, stream)
            return
        host = without_ones(host, view).astype(view.dtype, copy=False)
        broadcast_strides(host.shape, host.strides, view.shape)
        view.copy_to_device(np.broadcast_to(host, view.shape), stream)
        if host is not value:
            wait(ordering(stream))

    def item(self) -> Any:
        """The only element, as a Python object.

        Raises:
            ValueError: there are none or several.
        """
        if self.size != 1:
            raise ValueError(f"an array of {self.size} elements is no single value")
        return self.copy_to_host().item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __eq__(self, other: object) -> Any:
        raise TypeError("device arrays are not compared: copy_to_host() first, or use 'is'")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """A copy on the host, so that ``np.asarray(a)`` works.

        Raises:
            ValueError: ``copy=False`` was asked for.
        """
        if copy is False:
            raise ValueError("a device array cannot be a NumPy array without a copy")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("device arrays are not pickled: pickle copy_to_host() instead")

    def __copy__(self) -> DeviceArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return self.copy()

    # -- DLPack

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind of memory by DLPack's numbers (2 device, 3 pinned, 13 managed), and the device.

        C: cuPointerGetAttribute
        """
        return dlpack.device_kind(self.handle)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule that hands the array to another library, by the array API standard.

        Args:
            stream: that the other library will use the data on, and that waits for it: None and 1
                are the legacy default stream, 2 that of the thread, -1 waits for nothing.
            max_version: the newest DLPack it reads; None is before 1.0.
            dl_device: where it wants the data: here, or (1, 0) for a copy on the host.
            copy: whether it must have or must not have a copy.

        Raises:
            BufferError: what was asked for cannot be given.
            ValueError: *stream* is 0 or below -1.

        C: cuStreamWaitEvent
        """
        device = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) == (dlpack.CPU, 0):
            if copy is False:
                raise BufferError("on the host the array needs a copy, which copy=False forbids")
            export: Any = self.copy_to_host().__dlpack__
            return export(max_version=max_version) if max_version else export()
        if dl_device is not None and tuple(dl_device) != device:
            raise BufferError(f"the array is on DLPack's device {device}, not {dl_device}")
        versioned = max_version is not None and tuple(max_version) >= (1, 0)
        given = self.copy(self.ordered_on()) if copy else self
        if device[0] == dlpack.CUDA_HOST:
            wait(self.ordered_on() or 1)
        else:
            dlpack.hand_over(stream, self.ordered_on())
        return dlpack.give(given, device, versioned, dlpack.IS_COPIED if copy else 0)

    # -- copies

    def copy_to_host(
        self, ary: npt.NDArray[Any] | None = None, stream: object = None
    ) -> npt.NDArray[Any]:
        """Copy the array to the host and return it.

        Args:
            ary: a writable array of this shape and dtype to copy into; else a new one.
            stream: orders the copy; *ary* is ready when the stream is synchronised. An array that
                is not contiguous is waited for. None and 0: the call returns with the copy done,
                which waits for the array's own stream.

        Raises:
            ValueError: shape or dtype of *ary* differ.

        C: cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2
        """
        stream = ordering(stream, self)
        if ary is None:
            ary = np.empty(self.shape, self.dtype, self.order)
        elif not isinstance(ary, np.ndarray):
            raise TypeError(f"{type(ary).__name__} is no NumPy array to copy into")
        elif ary.shape != self.shape or ary.dtype != self.dtype or not ary.flags.writeable:
            raise ValueError(
                f"ary has shape {ary.shape} and dtype {ary.dtype}, the device array {self.shape} "
                f"and {self.dtype}: pass a writable array that matches, or none"
            )
        handle = self.handle
        if self.size == 0:
            return ary
        if self._same_layout(ary):
            transfer("DtoH", host_pointer(ary), handle, self.nbytes, stream)
            capture.note(stream, self, ary)
        else:
            ary[...] = gather(self, stream)
        return ary

    def copy_to_device(self, ary: Any, stream: object = None) -> None:
        """Copy *ary* into this array.

        Args:
            ary: an array of this shape and dtype, on the host or on the device; one that overlaps
                this one is copied as it was.
            stream: orders the copy; *ary* must stay unchanged until then. None and 0: a copy from
                the host is done when the call returns; it waits for the array's own stream.

        Raises:
            ValueError: shape or dtype differ, or this array is read-only.

        C: cuMemcpyHtoD_v2, cuMemcpyDtoD_v2, cuMemcpy2D_v2, cuMemcpy3D_v2 and their Async forms
        """
        self.check_writable()
        if not isinstance(ary, np.ndarray) and is_cuda_array(ary):
            source = as_cuda_array(ary)
            self._check_same(source.shape, source.dtype)
            stream = ordering(stream, self, source)
            if self.size:
                move(self, source, stream)
                capture.note(stream, self, source)
            return
        host, stream = host_array(ary), ordering(stream, self)
        self._check_same(host.shape, host.dtype)
        if self.size and self._same_layout(host):
            transfer("HtoD", self.handle, host_pointer(host), self.nbytes, stream)
            capture.note(stream, self, host)
        elif self.size:
            scatter(self, host, stream)

    def copy(self, stream: object = None) -> DeviceArray:
        """A new array with the same elements, in F order if this one is, else in C order.

        C: cuMemAlloc_v2, cuMemcpyDtoD_v2 and its like
        """
        strides = strides_of(None, self.shape, self.itemsize, self.order)
        made = DeviceArray(mem_alloc(self.nbytes), self.shape, self.dtype, strides)
        if self.size:
            place(made, self, ordering(stream, self))
        return made

    def fill(self, value: Any, stream: object = None) -> None:
        """Give every element the same value, converted to this dtype as by NumPy.

        Raises:
            ValueError: this array is read-only.

        C: cuMemsetD8_v2, cuMemsetD16_v2, cuMemsetD32_v2 and their Async forms
        """
        stream = ordering(stream, self)
        self.check_writable()
        element = host_array(value).astype(self.dtype)
        if element.shape:
            raise ValueError(f"fill takes one value, not an array of shape {element.shape}")
        raw = element.tobytes()
        widths = [n for n in (1, 2, 4) if len(raw) % n == 0 and raw == raw[:n] * (len(raw) // n)]
        if widths and (self.c_contiguous or self.f_contiguous):
            part = self.memory[self.offset : self.offset + self.nbytes]
            memset(part, int.from_bytes(raw[: widths[0]], "little"), None, widths[0], stream)
        elif self.size:
            scatter(self, np.broadcast_to(element, self.shape), stream)
            wait(stream)

    def check_writable(self) -> None:
        """Refuse to be written to.

        Raises:
            ValueError: the array is read-only.
            ClosedError: its memory was closed.
        """
        if self.readonly:
            raise ValueError("the device array is read-only: copy() gives one that is not")
        _ = self.handle

    def _check_same(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if shape != self.shape or dtype != self.dtype:
            raise ValueError(
                f"the source has shape {shape} and dtype {dtype}, the device array {self.shape} "
                f"and {self.dtype}: they must be the same"
            )

    def _same_layout(self, host: npt.NDArray[Any]) -> bool:
        return (self.c_contiguous and host.flags.c_contiguous) or (
            self.f_contiguous and host.flags.f_contiguous
        )

    def close(self) -> None:
        """Free the memory, also under every view of it; using one then raises ClosedError."""
        self.memory.close()

    def __enter__(self) -> Self:
        _ = self.handle
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def without_ones(array: Any, target: View) -> Any:
    """An array without the leading dimensions of length 1 that its target has not."""
    more = array.ndim - target.ndim
    return (
        array.reshape(array.shape[more:]) if more > 0 and set(array.shape[:more]) == {1} else array
    )


def ordering(stream: object, *arrays: View) -> object:
    """A stream to order a copy of *arrays* on.

    None, as 0, asks for a copy that is done on return, after what the arrays are ordered on.

    Raises:
        TypeError: it is no stream.
    """
    if stream is not None and stream_handle(stream):
        return stream
    for array in arrays:
        wait(array.ordered_on())
    return None


def is_cuda_array(obj: object) -> bool:
    """Whether *obj* is a device array of any library: it has ``__cuda_array_interface__``."""
    return not isinstance(obj, type) and hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceArray:
    """A view of another library's device array, or the memory itself as bytes; no copy.

    Args:
        sync: wait for the stream that the other library names, unless CUDADRV_CAI_SYNC is 0.

    Raises:
        TypeError: it has no ``__cuda_array_interface__``.
        ValueError: that is wrong, or describes a masked array.
    """
    if isinstance(obj, DeviceArray):
        return obj
    if not is_cuda_array(obj):
        raise TypeError(f"{type(obj).__name__} is no device array: copy it with to_device()")
    return from_cuda_array_interface(obj.__cuda_array_interface__, obj, sync)


def from_cuda_array_interface(desc: Any, owner: object = None, sync: bool = True) -> DeviceArray:
    """The array that a dictionary of the CUDA Array Interface describes; no copy.

    Args:
        desc: as in version 3 of the interface; its address is trusted.
        owner: kept alive as long as the array.
        sync: wait for the stream that *desc* names, unless CUDADRV_CAI_SYNC is 0.

    Raises:
        TypeError, ValueError: *desc* is wrong; the message names the field.
    """
    found = parse(desc)
    if sync:
        found.wait()
    low, high = found.extent
    memory = DeviceMemory(found.address + low if high else 0, high - low, owner=owner)
    dtype = described_dtype(found)
    return DeviceArray(memory, found.shape, dtype, found.strides, -low, found.readonly, None)


def described_dtype(found: Interface) -> np.dtype[Any]:
    """The dtype of a description: its ``descr`` where the type is a record, else its ``typestr``.

    Raises:
        ValueError: the two do not agree.
    """
    plain: np.dtype[Any] = np.dtype(found.typestr)
    if plain.kind != "V" or not found.descr:
        return plain
    try:
        kind: np.dtype[Any] = np.lib.format.descr_to_dtype(found.descr)
    except (TypeError, ValueError, LookupError):
        raise ValueError(
            f"'descr' of __cuda_array_interface__ is no dtype: {found.descr!r}"
        ) from None
    if kind.itemsize != found.itemsize:
        raise ValueError(f"descr {found.descr!r} does not have the size of typestr {found.typestr}")
    return kind if kind.names else plain
