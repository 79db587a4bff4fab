"""A driver of Python functions, to see what cudadrv asks of a driver and does with the answers."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cudadrv import checked, library, raw


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
    raw.forget()
    try:
        yield fake
    finally:
        patch.undo()
        raw.forget()
