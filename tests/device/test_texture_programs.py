"""Programs of CUDA C++ with textures and surfaces, as nvcc translates them."""

from __future__ import annotations

import functools
import linecache
import re
from pathlib import Path

import numpy as np

import cudadrv as cu

TEXT = Path(__file__).parents[1] / "data" / "textures_sm75.ptx"


@functools.cache
def program():
    return cu.load(TEXT.read_text(encoding="utf-8"))


def test_blur(context):
    """A kernel blurs an image with filtered reads in a function of its own."""
    host = np.random.default_rng(5).uniform(0, 1, (20, 30, 4)).astype(np.float32)
    image = cu.CudaArray((20, 30), np.float32, 4)
    image.copy_from(host)
    out = cu.CudaArray((20, 30), np.float32, 4, surface=True)
    texture, surface = cu.TextureObject(image, linear=True), cu.SurfaceObject(out)
    program()["blur"].launch((2, 2), (16, 16), texture, surface, 30, 20)
    edges = np.pad(host, ((1, 1), (1, 1), (0, 0)), "edge")
    corner = (edges[:-1, :-1] + edges[1:, :-1] + edges[:-1, 1:] + edges[1:, 1:]) / 4
    wanted = (corner[:-1, :-1] + corner[1:, 1:]) / 2
    assert np.allclose(out.copy_to_host(), wanted, atol=1e-2)


def test_turn(context):
    """Bytes go through a texture, shared memory and a surface."""
    host = np.arange(256, dtype=np.uint8).reshape(16, 16)
    out = cu.CudaArray((16, 16), np.uint8, surface=True)
    texture = cu.TextureObject(cu.CudaArray.from_host(host))
    program()["turn"].launch(1, (16, 16), texture, cu.SurfaceObject(out))
    assert np.array_equal(out.copy_to_host(), host.T)


def test_sums(context):
    """Levels, layers and linear memory are read in loops."""
    levels = cu.MipmappedArray((8, 8), np.float32)
    for number, level in enumerate(levels):
        level.copy_from(np.full(level.shape, 2.0**number, np.float32))
    layers = np.arange(4 * 3 * 5, dtype=np.float32).reshape(4, 3, 5)
    line = np.arange(20, dtype=np.float32).reshape(10, 2)
    out = cu.to_device(np.zeros(3, np.float32))
    program()["sums"].launch(
        1, 1,
        cu.TextureObject(levels, normalized_coords=True),
        cu.TextureObject(cu.CudaArray.from_host(layers, layered=True)),
        cu.TextureObject(cu.to_device(line), channels=2),
        4, out,
    )  # fmt: skip
    assert out.copy_to_host().tolist() == [15, layers[:, 0, 1].sum(), line[:4, 1].sum()]


def test_histogram(context):
    """Many threads count in the elements of a surface."""
    host = np.random.default_rng(6).integers(0, 256, 4096, np.uint8)
    counts = cu.CudaArray(256, np.uint32, surface=True)
    counts.copy_from(np.zeros(256, np.uint32))
    texture = cu.TextureObject(cu.to_device(host))
    program()["histogram"].launch(32, 128, texture, cu.SurfaceObject(counts))
    assert np.array_equal(counts.copy_to_host(), np.bincount(host, minlength=256))


def test_the_examples_of_the_document_run(context):
    """All blocks of code of docs/textures.md run, one after another, in one scope."""
    text = (Path(__file__).parents[2] / "docs" / "textures.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 5
    scope: dict[str, object] = {}
    # Kernels are read from a file.
    for number, block in enumerate(blocks):
        name = f"<docs/textures.md, block {number}>"
        linecache.cache[name] = (len(block), None, block.splitlines(True), name)
        exec(compile(block, name, "exec"), scope)
    picture = np.array(scope["picture"], np.float64)
    picture[10:20] = picture[20:30]
    wanted = picture[..., :3].reshape(24, 2, 32, 2, 3).mean(axis=(1, 3, 4)) / 255
    assert np.allclose(scope["small"].copy_to_host(), wanted, atol=4e-3)
