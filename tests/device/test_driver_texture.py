"""Texture objects: every kind of source and geometry, filtering, and what cannot be."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv as cu
from tests.device.texture_code import mixed, run, sampled

TEX = {n: f"tex.{n}d.v4.f32.f32 RESULT, [%o, {{{args}}}];"
       for n, args in {1: "%x", 2: "%x, %y", 3: "%x, %y, %z, %w"}.items()}  # fmt: skip
SHAPES = {1: (7,), 2: (5, 7), 3: (3, 5, 7)}
STEP = 1 / 128  # of a texel: coordinates are rounded to 1/256 of one


def image(shape, dtype="float32"):
    """An array of different numbers between 0 and 100."""
    return np.random.default_rng(1).permutation(np.prod(shape)).reshape(shape).astype(dtype)


def places(dimensions, size=8.0, count=300):
    """Coordinates inside and around an array, odd multiples of 1/64 of a texel: off its edges."""
    rng = np.random.default_rng(2)
    steps = rng.integers(-int(size) * 32, 2 * int(size) * 32, (count, dimensions))
    return (steps * 2 + 1).astype(np.float32) / 64


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("mode", ["clamp", "border"])
@pytest.mark.parametrize("linear", [False, True])
def test_coordinates_of_texels(context, dimensions, mode, linear):
    """Without normalized coordinates a texture gives NumPy's elements, or blends of them."""
    host = image(SHAPES[dimensions])
    texture = cu.TextureObject(
        cu.CudaArray.from_host(host), address=mode, linear=linear, border=(5.0,)
    )
    at = places(dimensions)
    got = run(TEX[dimensions], texture, at)[:, 0]
    wanted = sampled(host, at, mode, linear, border=5.0)
    assert np.allclose(got, wanted, atol=2 * STEP * host.max() if linear else 0)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("mode", ["clamp", "border", "wrap", "mirror"])
@pytest.mark.parametrize("linear", [False, True])
def test_normalized_coordinates(context, dimensions, mode, linear):
    """Coordinates from 0 to 1 span the array, and every address mode goes on outside of it."""
    host = image((8,) * dimensions)
    texture = cu.TextureObject(
        cu.CudaArray.from_host(host), address=mode, linear=linear, normalized_coords=True
    )
    at = places(dimensions) / 8
    got = run(TEX[dimensions], texture, at)[:, 0]
    wanted = sampled(host, at, mode, linear, normalized=True)
    assert np.allclose(got, wanted, atol=2 * STEP * host.max() if linear else 0)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_layers(context, dimensions, linear):
    """A layered texture reads one layer, the nearest there is, and filters inside of it."""
    host = image((4, *SHAPES[dimensions]))
    texture = cu.TextureObject(cu.CudaArray.from_host(host, layered=True), linear=linear)
    at = places(dimensions, count=200)
    layers = np.arange(len(at)) % 6
    args = {1: "%x, %y", 2: "%x, %y, %z, %w"}[dimensions]
    instruction = f"tex.a{dimensions}d.v4.f32.f32 RESULT, [%o, {{{args}}}];"
    got = run(instruction, texture, mixed(layers, *at.T))[:, 0]
    wanted = np.array(
        [
            sampled(host[min(layer, 3)], place[None], linear=linear)[0]
            for layer, place in zip(layers, at, strict=True)
        ]
    )
    assert np.allclose(got, wanted, atol=2 * STEP * host.max() if linear else 0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32"])
def test_integers_are_read_as_they_are(context, dtype):
    """Without normalized_read the channels of an integer texture are its integers."""
    info = np.iinfo(dtype)
    host = np.random.default_rng(3).integers(info.min, info.max, (4, 6, 4), dtype, endpoint=True)
    array = cu.CudaArray((4, 6), dtype, 4)
    array.copy_from(host)
    texture = cu.TextureObject(array)
    y, x = np.mgrid[:4, :6].reshape(2, -1)
    kind = "s32" if info.min else "u32"
    got = run(
        f"tex.2d.v4.{kind}.f32 RESULT, [%o, {{%x, %y}}];", texture,
        np.stack([x, y], 1).astype(np.float32) + 0.5, "int32" if info.min else "uint32",
    )  # fmt: skip
    assert np.array_equal(got, host.reshape(-1, 4))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_integers_are_read_as_fractions(context, dtype):
    """With normalized_read they are floats up to 1, the least signed one -1 as well."""
    info = np.iinfo(dtype)
    host = np.array([info.min, info.min + 1, 0, 1, info.max // 2, info.max], dtype)
    texture = cu.TextureObject(cu.CudaArray.from_host(host), normalized_read=True)
    got = run(TEX[1], texture, np.arange(6, dtype=np.float32)[:, None] + 0.5)[:, 0]
    assert np.allclose(got, np.maximum(host / info.max, -1), atol=1e-6)
    blended = cu.TextureObject(cu.CudaArray.from_host(host), normalized_read=True, linear=True)
    got = run(TEX[1], blended, np.array([[5.0]], np.float32))[0, 0]
    assert np.isclose(got, (host[4] / info.max + 1) / 2, atol=1e-3)


def test_half_floats_and_formats_of_fractions(context):
    """float16 is read as float, and UNORM and SNORM formats as fractions by themselves."""
    half = np.linspace(-2, 2, 6).astype(np.float16)
    at = np.arange(6, dtype=np.float32)[:, None] + 0.5
    assert np.array_equal(run(TEX[1], cu.TextureObject(cu.CudaArray.from_host(half)), at)[:, 0],
                          half.astype(np.float32))  # fmt: skip
    array = cu.CudaArray(6, "UNORM_INT8X2")
    array.copy_from(np.arange(12, dtype=np.uint8).reshape(6, 2) * 20)
    got = run(TEX[1], cu.TextureObject(array), at)[:, :2]
    assert np.allclose(got, np.arange(12).reshape(6, 2) * 20 / 255, atol=1e-6)


def test_srgb(context):
    """srgb makes the colours linear and leaves the opacity."""
    host = np.arange(0, 256, 5, dtype=np.uint8)
    array = cu.CudaArray(len(host), np.uint8, 4)
    array.copy_from(np.repeat(host, 4).reshape(-1, 4))
    texture = cu.TextureObject(array, srgb=True, normalized_read=True)
    got = run(TEX[1], texture, np.arange(len(host), dtype=np.float32)[:, None] + 0.5)
    part = host / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    assert np.allclose(got[:, :3], linear[:, None], atol=4e-3)
    assert np.allclose(got[:, 3], part, atol=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_device_arrays_of_one_dimension(context, channels):
    """They are read by integers; outside there are zeros."""
    host = image((50, channels) if channels > 1 else (50,))
    texture = cu.TextureObject(cu.to_device(host), channels=channels)
    at = np.arange(-5, 60, dtype=np.int32)
    got = run("tex.1d.v4.f32.s32 RESULT, [%o, {%x}];", texture, at[:, None])
    wanted = np.zeros((len(at), channels), np.float32)
    inside = (at >= 0) & (at < 50)
    wanted[inside] = host.reshape(50, channels)
    assert np.array_equal(got[:, :channels], wanted)


@pytest.mark.parametrize("linear", [False, True])
def test_device_arrays_of_two_dimensions(context, linear):
    """They are read by x and y, also as a part of a wider array."""
    host = image((6, 16))
    whole = cu.to_device(host)
    at = places(2)
    for array, same in ((whole, host), (whole[:, :9], host[:, :9])):
        texture = cu.TextureObject(array, linear=linear)
        got = run(TEX[2], texture, at)[:, 0]
        atol = 2 * STEP * host.max() if linear else 0
        assert np.allclose(got, sampled(same, at, linear=linear), atol=atol)


def test_levels(context):
    """tex.level reads the level asked for, with mip_linear a blend of two; bias and clamp apply."""
    whole = cu.MipmappedArray((16, 16), np.float32)
    for number, level in enumerate(whole):
        level.copy_from(np.full(level.shape, 10.0 * number, np.float32))
    at = np.array([[0.5, 0.5, lod, 0] for lod in (-1, 0, 0.4, 0.6, 1, 2.25, 3.5, 9)], np.float32)
    instruction = "tex.level.2d.v4.f32.f32 RESULT, [%o, {%x, %y}], %z;"
    near = cu.TextureObject(whole, normalized_coords=True)
    got = run(instruction, near, at)[:, 0]
    assert got.tolist()[:6] == [0, 0, 0, 10, 10, 20] and got[7] == 40
    smooth = cu.TextureObject(
        whole,
        normalized_coords=True,
        mip_linear=True,
        linear=True,
        trilinear_optimization=False,
    )
    got = run(instruction, smooth, at)[:, 0]
    assert np.allclose(got, [0, 0, 4, 6, 10, 22.5, 35, 40], atol=0.1)
    moved = cu.TextureObject(
        whole,
        normalized_coords=True,
        mip_linear=True,
        mip_bias=1.0,
        mip_clamp=(0.0, 2.0),
        trilinear_optimization=False,
    )
    got = run(instruction, moved, at)[:, 0]
    assert np.allclose(got, [0, 10, 14, 16, 20, 20, 20, 20], atol=0.1)


def test_gradients_choose_the_level(context):
    """tex.grad reads the level in which the longer gradient is one texel long."""
    whole = cu.MipmappedArray((16, 16), np.float32)
    for number, level in enumerate(whole):
        level.copy_from(np.full(level.shape, number, np.float32))
    texture = cu.TextureObject(
        whole, normalized_coords=True, mip_linear=True, trilinear_optimization=False
    )
    steps = np.array([[0.5, 0.0, 2.0**k / 16, 0] for k in range(5)], np.float32)
    instruction = "tex.grad.2d.v4.f32.f32 RESULT, [%o, {%x, %x}], {%z, %y}, {%y, %z};"
    assert np.allclose(run(instruction, texture, steps)[:, 0], range(5), atol=0.1)


def test_cubemaps(context):
    """A direction chooses the face it points to; the layer chooses the cube."""
    host = np.arange(12, dtype=np.float32).repeat(16).reshape(12, 4, 4)
    host += np.arange(16, dtype=np.float32).reshape(4, 4) / 100
    array = cu.CudaArray((12, 4, 4), np.float32, cubemap=True, layered=True)
    array.copy_from(host)
    texture = cu.TextureObject(array, normalized_coords=True)
    ways = np.array([
        [1, 0.3, 0.3], [-1, 0.3, 0.3], [0.3, 1, 0.3], [0.3, -1, 0.3], [0.3, 0.3, 1], [0.3, 0.3, -1]
    ])  # fmt: skip
    # Where on each face that is: (column, row).
    spots = [(1, 1), (2, 1), (2, 2), (2, 1), (2, 1), (1, 1)]
    for layer in (0, 1):
        got = run(
            "tex.acube.v4.f32.f32 RESULT, [%o, {%x, %y, %z, %w}];", texture,
            mixed(np.full(6, layer), *ways.T),
        )[:, 0]  # fmt: skip
        wanted = [host[6 * layer + face, y, x] for face, (x, y) in enumerate(spots)]
        assert np.array_equal(got, np.array(wanted, np.float32))


def test_gather(context):
    """tld4 gives one channel of the four texels that linear filtering would blend."""
    host = image((5, 7, 2))
    array = cu.CudaArray((5, 7), np.float32, 2, gather=True)
    array.copy_from(host)
    got = run("tld4.g.2d.v4.f32.f32 RESULT, [%o, {%x, %y}];", cu.TextureObject(array),
              np.array([[3.1, 2.2], [0.0, 0.0]], np.float32))  # fmt: skip
    green = host[..., 1]
    assert got[0].tolist() == [green[2, 2], green[2, 3], green[1, 3], green[1, 2]]
    assert got[1].tolist() == [green[0, 0]] * 4


def test_queries(context):
    """txq gives the lengths of the texture."""
    texture = cu.TextureObject(cu.CudaArray((3, 5, 7), np.float32))
    text = "".join(f"txq.{what}.b32 %r{i}, [%o];" for i, what in
                   enumerate(("width", "height", "depth")))  # fmt: skip
    got = run(text, texture, np.zeros((1, 4), np.float32), "int32")
    assert got[0, :3].tolist() == [7, 5, 3]


def test_descriptors_come_back(context):
    """What a texture was made with can be asked for."""
    array = cu.CudaArray((4, 4), np.uint8)
    texture = cu.TextureObject(
        array, address=("wrap", "mirror"), linear=True, normalized_coords=True,
        normalized_read=True, anisotropy=4, mip_bias=0.5,
    )  # fmt: skip
    how = texture.texture_descriptor
    assert list(how.addressMode) == [0, 2, 1]
    assert (how.filterMode, how.flags, how.maxAnisotropy, how.mipmapLevelBias) == (1, 2, 4, 0.5)
    floats = cu.CudaArray((4, 4), np.float32)
    # Drivers do not tell the colour of the border.
    how = cu.TextureObject(floats, address="border", border=(1, 2, 3)).texture_descriptor
    assert list(how.addressMode) == [3, 3, 1]
    what = texture.resource_descriptor
    assert (what.resType, what.res.array.hArray) == (0, array.handle)
    linear = cu.to_device(np.zeros(30, np.int16))
    what = cu.TextureObject(linear).resource_descriptor.res.linear
    assert (what.devPtr, what.sizeInBytes, what.numChannels) == (linear.handle, 60, 1)


def test_views_of_formats(context):
    """A view reads the bytes of the elements as another format of as many."""
    host = image((4, 8), "uint32") * 77_777_777
    array = cu.CudaArray((4, 8), np.uint8, 4)
    array.copy_from(host.view(np.uint8).reshape(4, 8, 4))
    texture = cu.TextureObject(array, view=cu.ResourceView("UINT_1X32"))
    at = np.array([[0.5, 0.5], [7.5, 3.5], [3.5, 2.5]], np.float32)
    got = run("tex.2d.v4.u32.f32 RESULT, [%o, {%x, %y}];", texture, at, "uint32")
    assert got[:, 0].tolist() == [host[0, 0], host[3, 7], host[2, 3]]
    assert texture.view_descriptor.format == 13
    with pytest.raises(cu.CudaError):
        cu.TextureObject(array, view=cu.ResourceView("UINT_1X8"))


def test_views_of_fractions(context):
    """A view of some layers of a format of fractions still reads fractions."""
    host = image((3, 4, 8), "uint8")
    array = cu.CudaArray((3, 4, 8), "UNORM_INT8X1", layered=True)
    array.copy_from(host)
    texture = cu.TextureObject(array, view=cu.ResourceView(layers=(1, 1)))
    got = run("tex.a2d.v4.f32.f32 RESULT, [%o, {%x, %y, %z, %w}];", texture,
              mixed([0], [2.5], [1.5]))  # fmt: skip
    assert np.isclose(got[0, 0], host[1, 1, 2] / 255, atol=1e-6)


def test_views_of_levels_and_layers(context):
    """The levels and layers of a view count from its first ones."""
    whole = cu.MipmappedArray((8, 8), np.float32)
    for number, level in enumerate(whole):
        level.copy_from(np.full(level.shape, number, np.float32))
    texture = cu.TextureObject(
        whole, normalized_coords=True, mip_clamp=(0, 0), view=cu.ResourceView(levels=(2, 3))
    )
    at = np.array([[0.5, 0.5, 0, 0]], np.float32)
    assert run("tex.level.2d.v4.f32.f32 RESULT, [%o, {%x, %y}], %z;", texture, at)[0, 0] == 2
    host = image((4, 5, 7))
    layers = cu.CudaArray.from_host(host, layered=True)
    texture = cu.TextureObject(layers, view=cu.ResourceView(layers=(1, 2)))
    got = run("tex.a2d.v4.f32.f32 RESULT, [%o, {%x, %y, %z, %w}];", texture,
              mixed([0, 1, 3], [1.5] * 3, [2.5] * 3))  # fmt: skip
    assert got[:, 0].tolist() == [host[1, 2, 1], host[2, 2, 1], host[2, 2, 1]]


def test_a_texture_keeps_its_source(context):
    """The array lives as long as the texture, and the texture ends when the array is closed."""
    texture = cu.TextureObject(cu.CudaArray.from_host(image((4, 4))))
    assert run(TEX[2], texture, np.array([[1.5, 2.5]], np.float32))[0, 0] == image((4, 4))[2, 1]
    texture.source.close()
    with pytest.raises(cu.ClosedError):
        _ = texture.handle
    texture.close()
    texture.close()
    with pytest.raises(cu.ClosedError):
        run(TEX[2], texture, np.zeros((1, 2), np.float32))


def array_of(dtype="float32", shape=(4, 32)):
    return lambda: cu.CudaArray(shape, dtype)


def plane(shape=(4, 32), dtype="float32"):
    return lambda: cu.to_device(np.zeros(shape, dtype))


BAD = [
    (lambda: np.zeros((4, 4)), {}, TypeError, "ndarray: copy host arrays"),
    (lambda: None, {}, TypeError, "NoneType"),
    (lambda: 5, {}, TypeError, "int"),
    (array_of(), {"address": "repeat"}, ValueError, "address='repeat'"),
    (array_of(), {"address": ("wrap",) * 4, "normalized_coords": True}, ValueError, "up to three"),
    (array_of(), {"address": "wrap"}, ValueError, "needs normalized_coords=True"),
    (array_of("int32"), {"linear": True}, ValueError, "linear=True on int32"),
    (array_of("uint8"), {"linear": True}, ValueError, "needs normalized_read=True"),
    (array_of("int32"), {"normalized_read": True}, ValueError, "reads uint8, .*not int32"),
    (array_of("UNORM_INT8X4"), {"normalized_read": False}, ValueError, "always read as fractions"),
    (array_of(), {"srgb": True}, ValueError, "srgb=True is for uint8"),
    (array_of(), {"anisotropy": 17}, ValueError, "anisotropy=17"),
    (array_of(), {"border": (1, 2, 3, 4, 5)}, ValueError, "four channels"),
    (array_of(), {"channels": 2}, ValueError, "the array has 1"),
    (array_of(), {"mip_clamp": (2.0, 1.0)}, ValueError, "mip_clamp"),
    (array_of(), {"view": cu.ResourceView("RGB")}, ValueError, "no view format 'RGB'"),
    (array_of(), {"view": cu.ResourceView(levels=(0, 1))}, ValueError, "levels=.*from 0 to 0"),
    (array_of(), {"view": cu.ResourceView(layers=(1, 0))}, ValueError, "layers=.*from 0 to 0"),
    (plane((40,)), {"view": cu.ResourceView()}, TypeError, "view= is for CUDA arrays"),
    (lambda: cu.MipmappedArray((4, 4), "f4"), {}, ValueError, "mipmapped array needs"),
    (plane((40,)), {"linear": True}, ValueError, "read by integers"),
    (plane((40,)), {"normalized_coords": True}, ValueError, "read by integers"),
    (plane((4, 5)), {}, ValueError, "multiple of 32"),
    (plane((4, 4, 32)), {}, ValueError, "no line and no plane"),
    (plane((4, 32)), {"channels": 4}, ValueError, "no line and no plane"),
    (plane((0,)), {}, ValueError, "no line and no plane"),
    (plane((8,), "float64"), {}, TypeError, "64-bit numbers"),
    (lambda: plane((64,))()[1:], {}, ValueError, "multiples of 512"),
    (lambda: plane((64,))()[::2], {}, ValueError, "must touch"),
    (lambda: plane((32, 32))().T, {}, ValueError, "must touch"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "options", "error", "message"), BAD)
def test_textures_that_cannot_be(context, source, options, error, message):
    """The error names the option or the property of the array, before the driver is asked."""
    with pytest.raises(error, match=message):
        cu.TextureObject(source(), **options)


def test_closed_sources_are_refused(context):
    """A closed array or device array makes no texture."""
    for source in (cu.CudaArray((4, 4), "f4"), cu.to_device(np.zeros(32, "f4"))):
        source.close()
        with pytest.raises(cu.ClosedError):
            cu.TextureObject(source)
