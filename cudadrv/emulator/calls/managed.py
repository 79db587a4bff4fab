"""Managed memory: all of it is the host's, so advice is only remembered, page by page."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from cudadrv.raw import types

from ..boundary import exported
from ..memory import MANAGED, Allocation
from ..state import Stream, current, place
from ..status import require
from .memory import allocate

DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT = 1, 2, 3, 4
CPU, NOWHERE = -1, -2
PAGE = mmap.PAGESIZE


@exported()
def cuMemAllocManaged(size: int, flags: int) -> int:
    require(flags in (1, 2))
    return allocate(size, MANAGED, flags)


def _managed(address: int | None, size: int) -> Allocation:
    """The managed allocation that *size* bytes from *address* on lie in."""
    found = place(address)
    require(found and found[1].kind == MANAGED and size)
    assert found and address
    require(address + size <= found[1].address + found[1].size)
    return found[1]


def _location(where: Any) -> tuple[int, int]:
    """(type, number) of a CUmemLocation."""
    require(where.type in (DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT))
    require(where.type != DEVICE or where.id == 0, "INVALID_DEVICE")
    require(where.type != HOST_NUMA or where.id >= 0)
    return where.type, where.id


def _say(address: int, size: int, what: str, value: Any) -> None:
    """Note something for whole pages."""
    found = _managed(address, size)
    end = -(-(address + size) // PAGE) * PAGE
    found.said.append((address // PAGE * PAGE, end, what, value))


ADVICE = {
    1: ("mostly", True),
    2: ("mostly", False),
    3: ("preferred", None),
    4: ("preferred", (0, 0)),
    5: ("accessed", None),
    6: ("not accessed", None),
}


@exported()
def cuMemAdvise_v2(address: int, size: int, advice: int, where: Any) -> None:
    current()
    require(advice in ADVICE)
    what, value = ADVICE[advice]
    _managed(address, size)
    _say(address, size, what, _location(where) if value is None else value)


@exported()
def cuMemPrefetchAsync_v2(address: int, size: int, where: Any, flags: int, stream: Stream) -> None:
    require(not flags)
    _managed(address, size)
    _say(address, size, "prefetched", _location(where))


def _pieces(addresses: int, sizes: int, count: int, flags: int) -> list[tuple[int, int]]:
    """(address, size) of the pieces of a batch."""
    require(addresses and sizes and count and not flags)
    words = (ctypes.c_uint64 * count).from_address
    pieces = list(zip(words(addresses), words(sizes), strict=True))
    for each in pieces:
        _managed(*each)
    return pieces


def _places(pieces: list[Any], records: int, firsts: int, kinds: int) -> list[tuple[int, int]]:
    """Where each piece of a batch shall go: each place serves from its first piece on."""
    require(records and firsts and 0 < kinds <= len(pieces))
    where = (types.record(types.resolve("CUmemLocation")) * kinds).from_address(records)
    begins = list((ctypes.c_size_t * kinds).from_address(firsts))
    require(begins[0] == 0 and begins == sorted(set(begins)) and begins[-1] < len(pieces))
    return [
        _location(where[max(k for k in range(kinds) if begins[k] <= i)]) for i in range(len(pieces))
    ]


@exported()
def cuMemPrefetchBatchAsync(
    addresses: int, sizes: int, count: int, where: int, firsts: int, kinds: int, flags: int, on: Any
) -> None:
    pieces = _pieces(addresses, sizes, count, flags)
    for piece, at in zip(pieces, _places(pieces, where, firsts, kinds), strict=True):
        _say(*piece, "prefetched", at)


@exported()
def cuMemDiscardBatchAsync(addresses: int, sizes: int, count: int, flags: int, on: Stream) -> None:
    _pieces(addresses, sizes, count, flags)


@exported()
def cuMemDiscardAndPrefetchBatchAsync(
    addresses: int, sizes: int, count: int, where: int, firsts: int, kinds: int, flags: int, on: Any
) -> None:
    cuMemPrefetchBatchAsync(addresses, sizes, count, where, firsts, kinds, flags, on)


@exported()
def cuStreamAttachMemAsync(stream: Stream, address: int, size: int, flags: int) -> None:
    require(flags in (1, 2, 4) and (flags != 4 or stream is not stream.context.default_stream))
    found = place(address)
    require(found and found[1].kind == MANAGED and found[1].address == address)
    assert found
    require(size in (0, found[1].size))


def _held(said: list[tuple[int, int, str, Any]], at: int, what: str, default: Any) -> Any:
    """What was last said of the page at an address."""
    values = [value for start, end, name, value in said if start <= at < end and name == what]
    return values[-1] if values else default


def _everywhere(address: int, size: int, what: str, default: Any) -> Any:
    """What was said of all pages; *default* if they differ."""
    said = _managed(address, size).said
    marks = {address, *(edge for each in said for edge in each[:2])}
    values = {_held(said, at, what, default) for at in marks if address <= at < address + size}
    return values.pop() if len(values) == 1 else default


def _accessed(address: int, size: int) -> list[tuple[int, int]]:
    """Who was said to access all pages."""
    said = _managed(address, size).said
    marks = {address, *(edge for each in said for edge in each[:2])}
    common: set[tuple[int, int]] | None = None
    for at in (mark for mark in marks if address <= mark < address + size):
        here: set[tuple[int, int]] = set()
        for start, end, what, value in said:
            if start <= at < end and what == "accessed":
                here.add(value)
            elif start <= at < end and what == "not accessed":
                here.discard(value)
        common = here if common is None else common & here
    return sorted(common or ())


def _device_number(where: tuple[int, int]) -> int:
    """A place as a device number."""
    kind, number = where
    return {DEVICE: number, HOST: CPU}.get(kind, NOWHERE)


@exported()
def cuMemRangeGetAttribute(data: int, size: int, number: int, address: int, count: int) -> None:
    current()
    require(data and size and not size % 4)
    _managed(address, count)
    if number == 3:
        found = [_device_number(each) for each in _accessed(address, count)]
        slots = size // 4
        filled = (ctypes.c_int * slots)(*(found + [NOWHERE] * slots)[:slots])
        ctypes.memmove(data, filled, size)
        return
    require(size == 4 and 1 <= number <= 8)
    what = {1: "mostly", 2: "preferred", 5: "preferred", 6: "preferred"}.get(number, "prefetched")
    value = _everywhere(address, count, what, False if number == 1 else (0, 0))
    if number in (2, 4):
        value = _device_number(value)
    elif number > 4:
        value = value[(number - 1) % 2]
    ctypes.c_int.from_address(data).value = int(value)


@exported()
def cuMemRangeGetAttributes(
    data: int, sizes: int, numbers: int, count: int, address: int, length: int
) -> None:
    require(data and sizes and numbers and count)
    targets = (ctypes.c_void_p * count).from_address(data)
    lengths = (ctypes.c_size_t * count).from_address(sizes)
    asked = (ctypes.c_int * count).from_address(numbers)
    for target, size, number in zip(targets, lengths, asked, strict=True):
        cuMemRangeGetAttribute(target, size, number, address, length)
