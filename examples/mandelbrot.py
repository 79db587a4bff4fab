"""The Mandelbrot set, one pixel a thread, written as a PNG."""

import sys

import numpy as np
from report import Report

import compiler as cuda

LIMIT = 200
LEFT, TOP = -2.0, -1.125


@cuda.jit(device=True)
def escape_time(cr, ci):
    """How many steps of z = z*z + c stay within radius 2."""
    zr = zi = cr * 0.0
    for step in range(LIMIT):
        zr2 = zr * zr
        zi2 = zi * zi
        if zr2 + zi2 > 4.0:
            return step
        zi = 2.0 * zr * zi + ci
        zr = zr2 - zi2 + cr
    return LIMIT


@cuda.jit
def mandelbrot(steps, pixel):
    """Escape times of a rectangle whose pixels are *pixel* wide and high."""
    x, y = cuda.grid(2)
    height, width = steps.shape
    if x < width and y < height:
        steps[y, x] = escape_time(LEFT + x * pixel, TOP + y * pixel)


def reference(shape, pixel):
    """The same escape times by NumPy, all pixels at once."""
    y, x = np.indices(shape)
    c = (LEFT + x * pixel) + 1j * (TOP + y * pixel)
    z = np.zeros_like(c)
    steps = np.full(shape, LIMIT, np.int32)
    active = np.ones(shape, bool)
    for step in range(LIMIT):
        escaped = active & (z.real**2 + z.imag**2 > 4.0)
        steps[escaped] = step
        active &= ~escaped
        z[active] = z[active] ** 2 + c[active]
    return steps


def colors(steps):
    """Black inside the set, outside from brown over orange to white."""
    shade = np.where(steps == LIMIT, 0, np.sqrt(steps / LIMIT))
    return np.stack([255 * np.clip(shade * k, 0, 1) for k in (3.0, 1.6, 0.9)], -1).astype(np.uint8)


def main() -> bool:
    """Draw 768 x 576 pixels; True if NumPy agrees."""
    height, width = 576, 768
    pixel = 3.0 / width
    report = Report(f"Mandelbrot set, {width} x {height}, float64, {LIMIT} steps")
    steps = cuda.device_array((height, width), np.int32)
    block = (32, 8)
    grid = (-(-width // block[0]), -(-height // block[1]))
    report.time(lambda: mandelbrot[grid, block](steps, pixel))
    got, want = steps.copy_to_host(), reference((height, width), pixel)
    # A fused multiply-add rounds once where NumPy rounds twice: orbits at the edge differ.
    report.line("same", f"{np.mean(got == want):.3%} of the pixels, bit for bit")
    report.check(np.mean(got != want), 0.0, atol=0.01)
    report.write_png("mandelbrot.png", colors(got))
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
