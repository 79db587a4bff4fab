"""Surface objects: kernels load, store and update the elements of CUDA arrays."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import raw
from tests.device.texture_code import run

# Of each geometry: the shape, whether it is layered, and its coordinates, x in bytes.
GEOMETRIES = {
    "1d": ((8,), False, "{%x}"),
    "2d": ((4, 8), False, "{%x, %y}"),
    "3d": ((3, 4, 8), False, "{%x, %y, %z, %z}"),
    "a1d": ((3, 8), True, "{%y, %x}"),
    "a2d": ((3, 4, 8), True, "{%z, %x, %y, %y}"),
}


def spots(shape):
    """(x, y, z) of every element, in order; of a layered line the layer is y."""
    return np.stack(np.indices(shape).reshape(len(shape), -1)[::-1], 1).astype(np.int32)


def array_of(shape, dtype="uint32", channels=1, layered=False):
    """An array for surfaces with different numbers in it, and these."""
    tail = (channels,) if channels > 1 else ()
    host = np.arange(np.prod(shape + tail)).reshape(shape + tail).astype(dtype)
    array = cu.CudaArray(shape, dtype, channels, surface=True, layered=layered)
    array.copy_from(host)
    return array, host


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_geometry_loads_and_stores(context, geometry):
    """suld and sust reach the element that NumPy has there."""
    shape, layered, where = GEOMETRIES[geometry]
    array, host = array_of(shape, layered=layered)
    surface = cu.SurfaceObject(array)
    at = spots(shape)
    bytes_at = at * np.array([4] + [1] * (at.shape[1] - 1), np.int32)
    got = run(f"suld.b.{geometry}.b32.trap {{%r0}}, [%o, {where}];", surface, bytes_at, "uint32")
    assert np.array_equal(got[:, 0], host.reshape(-1))
    store = f"mul.lo.u32 %r0, %x, 5; sust.b.{geometry}.b32.trap [%o, {where}], {{%r0}};"
    run(store, surface, bytes_at)
    wanted = (bytes_at[:, 0] * 5).astype("uint32").reshape(shape)
    assert np.array_equal(array.copy_to_host(), wanted)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_every_width(context, bits, channels):
    """Elements of 8 to 32 bits and one, two or four channels move as a whole."""
    array, host = array_of((4, 8), f"uint{bits}", channels)
    surface = cu.SurfaceObject(array)
    at = spots((4, 8)) * np.array([bits // 8 * channels, 1], np.int32)
    names = [f"%v{i}" for i in range(channels)]
    kind = {8: "b16", 16: "b16", 32: "b32"}[bits]
    vector = {1: "", 2: "v2.", 4: "v4."}[channels]
    widen = "".join(
        f"mov.b32 %r{i}, {name};" if bits == 32 else f"cvt.u32.u{min(bits, 16)} %r{i}, {name};"
        for i, name in enumerate(names)
    )
    regs = f".reg .{kind} {', '.join(names)};"
    text = f"{{ {regs} suld.b.2d.{vector}b{bits}.trap {{{', '.join(names)}}}, [%o, {{%x, %y}}];"
    got = run(f"{text} {widen} }}", surface, at, "uint32")
    assert np.array_equal(got[:, :channels], host.reshape(-1, channels))
    back = f"sust.b.2d.{vector}b{bits}.trap [%o, {{%z, %y}}], {{{', '.join(names)}}};"
    mirrored = np.c_[at, (7 * bits // 8 * channels - at[:, :1])]
    target, _ = array_of((4, 8), f"uint{bits}", channels)
    values = [f"cvt.u{min(bits, 16)}.u32 %v{i}, %w;" for i in range(channels)]
    if bits == 32:
        values = [f"mov.b32 %v{i}, %w;" for i in range(channels)]
    rows = np.c_[mirrored, np.arange(32, dtype=np.int32) * 3].astype(np.int32)
    run(f"{{ {regs} {' '.join(values)} {back} }}", cu.SurfaceObject(target), rows)
    numbers = np.arange(32).reshape(4, 8)[:, ::-1] * 3
    wanted = np.repeat(numbers.reshape(-1), channels).astype(f"uint{bits}")
    assert np.array_equal(target.copy_to_host().reshape(-1), wanted)


def test_elements_of_64_bits(context):
    """b64 moves two channels of 32 bits at once."""
    array, host = array_of((16,), "uint32", 2)
    text = "{ .reg .b64 %v; suld.b.1d.b64.trap {%v}, [%o, {%x}]; mov.b64 {%r0, %r1}, %v; }"
    got = run(text, cu.SurfaceObject(array), np.arange(16, dtype=np.int32)[:, None] * 8, "uint32")
    assert np.array_equal(got[:, :2], host)


def test_outside(context):
    """With .zero there is nothing outside, with .clamp the nearest element."""
    array, host = array_of((4, 8))
    surface = cu.SurfaceObject(array)
    at = np.array([[-4, 0], [32, 0], [0, -1], [0, 4], [4, 1]], np.int32)
    read = "suld.b.2d.b32.{} {{%r0}}, [%o, {{%x, %y}}];"
    got = run(read.format("zero"), surface, at, "uint32")[:, 0]
    assert got.tolist() == [0, 0, 0, 0, host[1, 1]]
    got = run(read.format("clamp"), surface, at, "uint32")[:, 0]
    assert got.tolist() == [host[0, 0], host[0, 7], host[0, 0], host[3, 0], host[1, 1]]
    run("mov.b32 %r0, 99; sust.b.2d.b32.zero [%o, {%x, %y}], {%r0};", surface, at)
    host[1, 1] = 99
    assert np.array_equal(array.copy_to_host(), host)


@pytest.mark.parametrize("kind", ["add.u32", "min.u32", "max.u32", "and.b32", "or.b32"])
def test_updates(context, kind):
    """sured updates an element, whichever thread comes first."""
    array, host = array_of((8,))
    at = np.repeat(np.arange(8, dtype=np.int32) * 4, 40)[:, None]
    run(f"mov.b32 %r0, 5; sured.b.{kind.replace('.', '.1d.')}.trap [%o, {{%x}}], %r0;",
        cu.SurfaceObject(array), at)  # fmt: skip
    wanted = {
        "add": host + 200, "min": np.minimum(host, 5), "max": np.maximum(host, 5),
        "and": host & 5, "or": host | 5,
    }[kind[:-4]]  # fmt: skip
    assert np.array_equal(array.copy_to_host(), wanted)


def test_levels_and_textures_share_the_elements(context):
    """A surface of a level writes what a texture of the whole reads."""
    whole = cu.MipmappedArray((8, 8), np.float32, surface=True)
    for number, level in enumerate(whole):
        at = spots(level.shape) * np.array([4, 1], np.int32)
        value = np.float32(number + 1).view(np.uint32)
        run(f"mov.b32 %r0, {value}; sust.b.2d.b32.trap [%o, {{%x, %y}}], {{%r0}};",
            cu.SurfaceObject(level), at)  # fmt: skip
    texture = cu.TextureObject(whole, normalized_coords=True)
    places = np.array([[0.5, 0.5, lod, 0] for lod in range(4)], np.float32)
    got = run("tex.level.2d.v4.f32.f32 RESULT, [%o, {%x, %y}], %z;", texture, places)
    assert got[:, 0].tolist() == [1, 2, 3, 4]


def test_queries(context):
    """suq gives the lengths, and the descriptor names the array."""
    array, _ = array_of((4, 8))
    surface = cu.SurfaceObject(array)
    text = "suq.width.b32 %r0, [%o]; suq.height.b32 %r1, [%o];"
    assert run(text, surface, np.zeros((1, 4), np.int32), "int32")[0, :2].tolist() == [8, 4]
    assert surface.resource_descriptor.res.array.hArray == array.handle


def test_surfaces_that_cannot_be(context):
    """Only an open array made for surfaces makes one."""
    with pytest.raises(ValueError, match="surface=True"):
        cu.SurfaceObject(cu.CudaArray((4, 4), np.float32))
    for wrong in (cu.MipmappedArray((4, 4), "f4", surface=True), np.zeros((4, 4)), None, 5):
        with pytest.raises(TypeError, match="of a CudaArray, not of"):
            cu.SurfaceObject(wrong)
    array = cu.CudaArray((4, 4), np.float32, surface=True)
    surface = cu.SurfaceObject(array)
    array.close()
    with pytest.raises(cu.ClosedError):
        cu.SurfaceObject(array)
    with pytest.raises(cu.ClosedError):
        _ = surface.handle


def test_the_driver_refuses_what_is_no_array(context):
    """Raw calls with handles of other kinds are errors, not crashes."""
    record = raw.CUDA_RESOURCE_DESC()
    made = ctypes.c_uint64()
    assert raw.cuSurfObjectCreate(ctypes.byref(made), ctypes.byref(record)) != 0
