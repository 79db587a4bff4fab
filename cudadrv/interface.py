"""Device arrays of other libraries as they describe themselves: the CUDA Array Interface."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cudadrv import config, driver
from cudadrv.context import in_context
from cudadrv.layout import extent, is_contiguous, lengths, strides_of

VERSION = 3
TYPESTR = re.compile(r"[<>|=?]([biufcmMSUV])(\d{1,9})(\[[^\]]*\])?")


class Interface(NamedTuple):
    """A checked description.

    Attributes:
        address: of the first element, 0 for an array without elements.
        strides: in bytes; those of C order where the description has none.
        stream: what the data is ordered on; None if there is nothing to wait for.
        nbytes: of all elements together.
        extent: the lowest and the end of the highest byte, counted from *address*.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    typestr: str
    descr: Any
    itemsize: int
    readonly: bool
    stream: int | None
    nbytes: int
    extent: tuple[int, int]

    def contiguous_nbytes(self) -> int:
        """The bytes of all elements, which lie one after another in C or F order.

        Raises:
            ValueError: they do not.
        """
        backwards = is_contiguous(self.shape[::-1], self.strides[::-1], self.itemsize)
        if not backwards and not is_contiguous(self.shape, self.strides, self.itemsize):
            raise ValueError("the device array is not contiguous: copy it to a new one first")
        return self.nbytes

    def wait(self) -> None:
        """Wait until the data is there, unless CUDADRV_CAI_SYNC is 0.

        C: cuStreamSynchronize
        """
        if self.stream is not None and config.cai_sync():
            in_context(driver.cuStreamSynchronize, self.stream)


def described(thing: object) -> Interface | None:
    """How *thing* describes itself; None if it is no device array.

    Raises:
        TypeError, ValueError: the description is wrong; the message names the field.
    """
    if isinstance(thing, type):
        return None
    found = getattr(thing, "__cuda_array_interface__", None)
    return None if found is None else parse(found)


def parse(description: Any) -> Interface:
    """Check a description, the dictionary of ``__cuda_array_interface__``.

    Raises:
        TypeError: a field is missing or of another type.
        ValueError: a field has a value that it cannot have, or the array is masked.
    """
    if not isinstance(description, Mapping):
        kind = type(description).__name__
        raise TypeError(f"__cuda_array_interface__ is a dictionary, not {kind}")
    missing = [key for key in ("shape", "typestr", "data", "version") if key not in description]
    if missing:
        raise TypeError(f"__cuda_array_interface__ has no {missing[0]!r}")
    version = index(description["version"], "version")
    if not 0 <= version <= VERSION:
        raise ValueError(f"version {version} of __cuda_array_interface__: known are 0 to {VERSION}")
    if description.get("mask") is not None:
        raise ValueError("the device array is masked: pass its data and its mask as two arrays")
    typestr, shape = description["typestr"], lengths(description["shape"])
    size = itemsize(typestr)
    strides = strides_of(description.get("strides"), shape, size, "C")
    low, high = extent(shape, strides, size)
    address, readonly = data(description["data"])
    if not address and high > low:
        raise ValueError(f"__cuda_array_interface__ gives no address for {high - low} bytes")
    if address and not -1 < address + low <= address + high <= 2**64:
        raise ValueError(
            f"shape {shape} and strides {strides} at address {address:#x} reach beyond all memory"
        )
    nbytes = size
    for length in shape:
        nbytes *= length
    stream = description.get("stream")
    if stream is not None:
        stream = index(stream, "stream")
        if not 0 < stream < 2**64:
            raise ValueError(f"stream {stream} of __cuda_array_interface__: 1, 2 or a handle")
    descr = description.get("descr")
    return Interface(
        address, shape, strides, typestr, descr, size, readonly, stream, nbytes, (low, high)
    )


def index(value: Any, key: str) -> int:
    """An int of the dictionary."""
    try:
        return operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{key!r} of __cuda_array_interface__ is an int, not {kind}") from None


def data(value: Any) -> tuple[int, bool]:
    """Address and whether it is read-only, from the field ``data``."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"'data' of __cuda_array_interface__ is (address, readonly), not {value!r}")
    address = 0 if value[0] is None else index(value[0], "data")
    if not 0 <= address < 2**64:
        raise ValueError(f"__cuda_array_interface__ gives {address} as an address")
    return address, bool(value[1])


def itemsize(typestr: Any) -> int:
    """The bytes of an element."""
    if not isinstance(typestr, str):
        kind = type(typestr).__name__
        raise TypeError(f"'typestr' of __cuda_array_interface__ is a str, not {kind}")
    found = TYPESTR.fullmatch(typestr)
    if found is None or not int(found[2]):
        raise ValueError(f"typestr {typestr!r} of __cuda_array_interface__ names no device type")
    return int(found[2]) * (4 if found[1] == "U" else 1)
