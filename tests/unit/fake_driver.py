"""A driver of Python functions, to see what cudadrv asks of a driver and does with the answers."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cudadrv import checked, context_state, device, library, raw


class FakeDriver:
    """Answers the exported functions it was given; each call is noted in ``calls``."""

    def __init__(self, version: int = 13000, **functions: Callable[..., int]) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._callbacks: dict[str, Any] = {}
        self._add("cuInit", lambda flags: 0)
        self._add("cuDriverGetVersion", lambda out: store(out, ctypes.c_int, version))
        for name, function in functions.items():
            self._add(name, function)

    def _add(self, name: str, function: Callable[..., int]) -> None:
        def noted(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            return function(*arguments)

        self._callbacks[name] = raw.prototype(name)(noted)

    def address(self, name: str, version: int) -> int:
        """The protocol of a driver: the C address of the exported function, 0 if absent."""
        callback = self._callbacks.get(name)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0 if callback else 0

    def refusal(self, name: str) -> int:
        """The protocol of a driver: nothing to call for what is absent."""
        return 0

    def called(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of each call of *name*."""
        return [arguments for called, arguments in self.calls if called == name]


def store(address: int, kind: Any, value: Any) -> int:
    """Write a result through an out-parameter; returns CUDA_SUCCESS."""
    kind.from_address(address).value = value
    return 0


@contextlib.contextmanager
def installed(fake: FakeDriver | None) -> Iterator[FakeDriver | None]:
    """Make *fake* the driver of the process; None leaves it unopened."""
    patch = pytest.MonkeyPatch()
    patch.setattr(library, "_current", fake)
    patch.setattr(library, "_choice", None)
    patch.setattr(checked, "_initialized", None)
    # Contexts of one driver are none of another's.
    patch.setattr(device, "_primary", {})
    patch.setattr(context_state, "_ends", {})
    raw.forget()
    try:
        yield fake
    finally:
        patch.undo()
        raw.forget()


def old_driver(version: int = 11040, **functions: Callable[..., int]) -> FakeDriver:
    """A driver of CUDA 11.4: no libraries, no cuLaunchKernelEx, no parameter information."""

    def zero(*arguments):
        return 0

    def current(out):
        return store(out, ctypes.c_void_p, 64)

    def attribute(out, number, function):
        return store(out, ctypes.c_int, 1024)

    def one(out, *arguments):
        return store(out, ctypes.c_int, 1)

    def load(out, image, *options):
        return store(out, ctypes.c_void_p, 77)

    def find(out, handle, name):
        if ctypes.string_at(name) != b"f":
            return 500
        return store(out, ctypes.c_void_p, 88)

    known = {
        "cuCtxGetCurrent": current,
        "cuCtxPushCurrent_v2": zero,
        "cuCtxPopCurrent_v2": zero,
        "cuCtxGetDevice": lambda out: store(out, ctypes.c_int, 0),
        "cuDeviceGet": lambda out, ordinal: store(out, ctypes.c_int, ordinal),
        "cuDeviceGetCount": one,
        "cuDeviceGetAttribute": lambda out, number, device: store(out, ctypes.c_int, 1024),
        "cuModuleLoadDataEx": load,
        "cuModuleUnload": zero,
        "cuModuleGetFunction": find,
        "cuFuncGetAttribute": attribute,
        "cuLaunchKernel": zero,
        "cuLaunchCooperativeKernel": zero,
    }
    return FakeDriver(version=version, **{**known, **functions})


def launching_driver(version: int = 13090, **functions: Callable[..., int]) -> FakeDriver:
    """A driver of compute capability 9.0 that loads and launches but runs nothing."""

    def find(out, handle, name):
        return store(out, ctypes.c_void_p, 88)

    def attribute(out, number, device):
        return store(out, ctypes.c_int, {75: 9, 76: 0}.get(number, 1024))

    given = {"cuModuleGetFunction": find, "cuDeviceGetAttribute": attribute, **functions}
    return old_driver(version, **given)
