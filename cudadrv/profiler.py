"""Telling a profiler, such as Nsight, which part of a program to record."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cudadrv import driver
from cudadrv.context import in_context


def start() -> None:
    """Let the profiler record, if one runs that waits for this.

    C: cuProfilerStart
    """
    in_context(driver.cuProfilerStart)


def stop() -> None:
    """Let the profiler record no more.

    C: cuProfilerStop
    """
    in_context(driver.cuProfilerStop)


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Let the profiler record what runs in the ``with`` block, however that ends.

    C: cuProfilerStart, cuProfilerStop
    """
    start()
    try:
        yield
    finally:
        stop()
