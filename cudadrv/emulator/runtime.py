"""Host functions that kernels call: vprintf, clocks, yielding."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from . import jit, scheduler
from .graph import Condition
from .guard import guarded
from .state import find
from .status import Status

_keep: list[Any] = []
_print_lock = threading.Lock()
_SPEC = re.compile(rb"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([diouxXcsfFeEgGaAp%])")


class Runtime:
    """The native code that all kernels share: *run* takes the address of a launch record."""

    def __init__(self) -> None:
        self.code = jit.Code(scheduler.runtime(), fully=False)
        self.block = self.code.address("block")
        run = guarded(self.code.address("run"), self.code.address("emulator.fail"))
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(run)
        for name in ("emulator.fail", "emulator.frame", "emulator.check"):
            jit.define(name, self.code.address(name))


@functools.cache
def install() -> Runtime:
    """Compile what kernels share, and make it known to their code."""
    _define("emulator.vprintf", ctypes.c_int32, vprintf, ctypes.c_uint64, ctypes.c_uint64)
    texts = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64)
    _define("emulator.assertfail", None, assertfail, *texts)
    _define("emulator.condition", None, set_condition, ctypes.c_uint64, ctypes.c_uint32)
    _define("emulator.nanoseconds", ctypes.c_uint64, time.time_ns)
    return Runtime()


def _define(name: str, result: Any, function: Callable[..., Any], *arguments: Any) -> None:
    made = ctypes.CFUNCTYPE(result, *arguments)(function)
    _keep.append(made)
    jit.define(name, ctypes.cast(made, ctypes.c_void_p).value or 0)


def vprintf(form: int, arguments: int) -> int:
    """Device printf: *arguments* are in memory, each aligned to its size.

    Returns:
        the number of arguments, as on a GPU.
    """
    text, count = format_text(ctypes.string_at(form), arguments)
    with _print_lock:
        sys.stdout.write(text.decode(errors="replace"))
        sys.stdout.flush()
    return count


def assertfail(message: int, file: int, line: int, function: int) -> None:
    """What a failed assert() in CUDA C says, on stderr."""
    said, where, who = (ctypes.string_at(at).decode() for at in (message, file, function))
    print(f"{where}:{line}: {who}: Assertion `{said}` failed.", file=sys.stderr)


def set_condition(handle: int, value: int) -> None:
    """Set the variable of a conditional node of a graph."""
    with contextlib.suppress(Status):
        find(Condition, handle).value = value


def format_text(form: bytes, at: int) -> tuple[bytes, int]:
    """The text of a printf, and how many arguments it took."""
    count = 0

    def take(code: str, size: int) -> Any:
        nonlocal at, count
        at = -(-at // size) * size
        value = struct.unpack(f"={code}", ctypes.string_at(at, size))[0]
        at += size
        count += 1
        return value

    def one(match: re.Match[bytes]) -> bytes:
        flags, width, precision, length, kind = match.groups()
        if kind == b"%":
            return b"%"
        width = b"%d" % take("i", 4) if width == b"*" else width
        precision = b"%d" % take("i", 4) if precision == b"*" else precision
        spec = b"%" + flags + width + (b"" if precision is None else b"." + precision)
        return _one(spec, kind.decode(), length or b"", take)

    return _SPEC.sub(one, form), count


def _one(spec: bytes, kind: str, length: bytes, take: Callable[[str, int], Any]) -> bytes:
    if kind in "fFeEgGaA":
        value = take("d", 8)
        if kind in "aA":
            return float(value).hex().encode()
        return bytes((spec + kind.encode()) % value)
    if kind == "s":
        address = take("Q", 8)
        return bytes((spec + b"s") % (ctypes.string_at(address) if address else b"(null)"))
    if kind == "p":
        return b"0x%x" % take("Q", 8)
    wide = length in (b"l", b"ll", b"j", b"z", b"t")
    code, size = ("q", 8) if wide else ("i", 4)
    value = take(code if kind in "di" else code.upper(), size)
    if kind == "c":
        return bytes((spec + b"c") % (value & 255))
    return bytes((spec + (b"d" if kind in "diu" else kind.encode())) % value)
