"""Edges of a photograph: a 5 x 5 Gaussian, then the Sobel gradient, one pixel a thread."""

import math
import sys

import numpy as np
from report import Report

import compiler as cuda

WEIGHTS = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)


@cuda.jit(device=True)
def clamp(i, size):
    """The nearest index inside 0 .. size - 1: the border repeats its pixels."""
    return max(0, min(i, size - 1))


@cuda.jit
def blur(out, image):
    """Grey levels of an RGB image, smoothed by a 5 x 5 Gaussian."""
    x, y = cuda.grid(2)
    height, width = out.shape
    if x >= width or y >= height:
        return
    total = cuda.float32(0)
    for j in range(5):
        row = clamp(y + j - 2, height)
        for i in range(5):
            col = clamp(x + i - 2, width)
            red, green, blue = image[row, col, 0], image[row, col, 1], image[row, col, 2]
            grey = cuda.float32(0.299) * red + cuda.float32(0.587) * green
            grey += cuda.float32(0.114) * blue
            total += WEIGHTS[j] * WEIGHTS[i] * grey
    out[y, x] = total


@cuda.jit
def sobel(out, grey):
    """The length of the gradient, as bytes."""
    x, y = cuda.grid(2)
    height, width = out.shape
    if x >= width or y >= height:
        return
    above, below = clamp(y - 1, height), clamp(y + 1, height)
    left, right = clamp(x - 1, width), clamp(x + 1, width)
    gx = grey[above, right] + 2.0 * grey[y, right] + grey[below, right]
    gx -= grey[above, left] + 2.0 * grey[y, left] + grey[below, left]
    gy = grey[below, left] + 2.0 * grey[below, x] + grey[below, right]
    gy -= grey[above, left] + 2.0 * grey[above, x] + grey[above, right]
    out[y, x] = min(255.0, math.sqrt(gx * gx + gy * gy))


def reference(image):
    """The same two filters by NumPy, in float64."""
    height, width = image.shape[:2]
    grey = np.pad(image @ np.array([0.299, 0.587, 0.114]), 2, mode="edge")
    smooth = sum(
        WEIGHTS[j] * WEIGHTS[i] * grey[j : j + height, i : i + width]
        for j in range(5)
        for i in range(5)
    )
    p = np.pad(smooth, 1, mode="edge")
    column = p[:-2] + 2 * p[1:-1] + p[2:]
    row = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    return np.minimum(255, np.hypot(column[:, 2:] - column[:, :-2], row[2:] - row[:-2]))


def main() -> bool:
    """Filter the photograph of an astronaut; True if NumPy agrees."""
    try:
        from skimage import data
    except ImportError:
        print("image filter: skipped, its photograph comes with scikit-image")
        return True
    image = data.astronaut()
    height, width = image.shape[:2]
    report = Report(f"image filter, {width} x {height} pixels, Gaussian and Sobel")
    device_image = cuda.to_device(image)
    smooth = cuda.device_array((height, width), np.float32)
    edges = cuda.device_array((height, width), np.uint8)
    block = (32, 8)
    grid = (-(-width // block[0]), -(-height // block[1]))

    def launch():
        blur[grid, block](smooth, device_image)
        sobel[grid, block](edges, smooth)

    report.time(launch)
    # The kernel cuts the fraction off; float32 may put a value on the other side of an integer.
    report.check(edges.copy_to_host(), np.floor(reference(image)), atol=1)
    report.write_png("edges.png", edges.copy_to_host())
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
