"""Exceptions that kernels raised, raised again on the host."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

import cudadrv
from cudadrv import driver
from cudadrv.copies import memcpy
from cudadrv.fills import memset
from cudadrv.stream import stream_handle

from ..frontend.internal import formatted
from ..lowering.builder import Failure
from ..lowering.failures import FAILURE, NUMBER, PLACE, VALUES, WORDS


class KernelError(RuntimeError):
    """Where a kernel raised an exception: the cause of that exception.

    Attributes:
        place: "FILE:LINE, in FUNCTION".
        block, thread: which thread it was, (x, y, z) each.
    """

    def __init__(self, place: str, block: tuple[int, ...], thread: tuple[int, ...]) -> None:
        super().__init__(f"{place}, block {block}, thread {thread}")
        self.place, self.block, self.thread = place, block, thread


def check(kernel: cudadrv.Kernel, failures: tuple[Failure, ...], stream: Any) -> None:
    """Wait for *stream*, and raise what the kernel raised there."""
    driver.cuStreamSynchronize(stream_handle(stream))
    buffer = kernel.library.get_global(FAILURE)
    raw = bytearray(8 * WORDS)
    memcpy(raw, buffer)
    words = struct.unpack(f"<{WORDS}q", raw)
    if words[0]:
        memset(buffer, 0)
        driver.cuCtxSynchronize()
        failure = failures[words[NUMBER]]
        place = words[PLACE:VALUES]
        cause = KernelError(failure.place, place[:3], place[3:])
        raise exception(failure, iter(words[VALUES:]), cause) from cause


def exception(failure: Failure, words: Iterator[int], cause: KernelError) -> BaseException:
    """The exception; a message, its first argument, says where it was raised."""
    args = [_value(template, words) for template in failure.args] or [""]
    if isinstance(args[0], str):
        args[0] = f"{args[0]}\n{cause}" if args[0] else str(cause)
    try:
        made = failure.exception(*args)
    except TypeError:  # The class wants other arguments than the kernel gave.
        made = failure.exception.__new__(failure.exception)
        made.args = tuple(args)
    return made


def _value(template: tuple[Any, ...], words: Iterator[int]) -> Any:
    kind, *rest = template
    if kind == "constant":
        return rest[0]
    if kind in ("bool", "int"):
        word = next(words)
        return bool(word) if kind == "bool" else word if rest[0] else word & (2**64 - 1)
    if kind == "float":
        number = _float(next(words))
        return number if rest[0] == 64 else getattr(np, f"float{rest[0]}")(number)
    if kind == "complex":
        return complex(_float(next(words)), _float(next(words)))
    if kind == "format":
        item = _value(rest[0], words)
        return formatted(item, ord(rest[1][1]) if rest[1] else -1, rest[2])
    items = [_value(item, words) for item in rest]
    return tuple(items) if kind == "tuple" else "".join(map(str, items))


def _float(word: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", word))[0]
    return value
