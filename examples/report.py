"""Runs one example's kernel, checks its result and prints the device, the times and the verdict."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cudadrv

OUTPUT = Path(__file__).with_name("output")


class Report:
    """Collects what one example has to say; `finish` tells whether its check held."""

    def __init__(self, title: str) -> None:
        device = cudadrv.current_context().device
        major, minor = cudadrv.driver_version()
        emulated = ", emulated on the CPU" if cudadrv.is_emulator() else f", driver {major}.{minor}"
        self._right = True
        print(title)
        self.line("device", f"{device.name} ({device.arch}){emulated}")

    def line(self, label: str, text: str) -> None:
        """Print one indented line."""
        print(f"  {label:8}{text}", flush=True)

    def time(self, launch: Callable[[], object]) -> None:
        """Run *launch* once as a program would, then again between two events, and print both."""
        context = cudadrv.current_context()
        start = time.perf_counter()
        launch()
        context.synchronize()
        first_ms = (time.perf_counter() - start) * 1e3
        before, after = cudadrv.Event(), cudadrv.Event()
        times = []
        while len(times) < 3 or (len(times) < 20 and sum(times) < 200):
            before.record()
            launch()
            after.record()
            after.synchronize()
            times.append(after.elapsed_ms(before))
        self.line("first", f"{first_ms:.1f} ms, loading and compiling included")
        self.line("then", f"{min(times):.3f} ms, best of {len(times)}")

    def check(self, got: np.ndarray, want: np.ndarray, rtol: float = 0, atol: float = 0) -> None:
        """Compare *got* with what NumPy computed."""
        got, want = np.asarray(got), np.asarray(want)
        difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
        if np.allclose(got, want, rtol=rtol, atol=atol):
            self.line("check", f"agrees with NumPy, largest difference {difference.max():.3g}")
        else:
            wrong = np.count_nonzero(difference > atol + rtol * np.abs(want))
            self.line("check", f"WRONG: {wrong} of {difference.size} values differ from NumPy")
            self._right = False

    def write_png(self, name: str, pixels: np.ndarray) -> None:
        """Write *pixels*, uint8 of shape (height, width) or (height, width, 3), as a PNG file."""
        OUTPUT.mkdir(exist_ok=True)
        path = OUTPUT / name
        path.write_bytes(png(pixels))
        self.line("wrote", str(path))

    def finish(self) -> bool:
        """Whether every check held."""
        return self._right


def png(pixels: np.ndarray) -> bytes:
    """The PNG file of a grey or RGB image of uint8."""
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + pixels.nbytes // height), np.uint8)  # filter byte 0, then pixels
    rows[:, 1:] = pixels.reshape(height, -1)
    color = 2 if pixels.ndim == 3 else 0
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes())),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
