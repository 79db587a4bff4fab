"""Tensor maps: made, passed to kernels, and every rule that they must keep."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import cudadrv as cu

PTX = """
.version 7.8
.target sm_80
.address_size 64
// out[0..15] = the words of the map
.visible .entry words(.param .u32 first, .param .align 64 .b8 map[128], .param .u64 out)
{
    .reg .b64 %o, %v;
    ld.param.u64 %o, [out];
    cvta.to.global.u64 %o, %o;
    COPIES
    ret;
}
// the same, of a map in device memory
.visible .entry at(.param .u64 map, .param .u64 out)
{
    .reg .b64 %o, %m, %v;
    ld.param.u64 %o, [out];
    cvta.to.global.u64 %o, %o;
    ld.param.u64 %m, [map];
    cvta.to.global.u64 %m, %m;
    LOADS
    ret;
}
"""
COPIES, LOADS = (
    "\n".join(
        f"    ld.{place}+{8 * i}]; st.global.u64 [%o+{8 * i}], %v;".replace("REG", "%v")
        for i in range(16)
    )
    for place in ("param.u64 REG, [map", "global.u64 REG, [%m")
)


@functools.cache
def library():
    return cu.load(PTX.replace("COPIES", COPIES).replace("LOADS", LOADS))


@pytest.fixture(autouse=True)
def device(context):
    """Tensor maps need compute capability 9.0."""
    if context.device.compute_capability < (9, 0):
        pytest.skip("needs a device of compute capability 9.0")


def image(shape=(64, 64), dtype="float32"):
    return cu.to_device(np.zeros(shape, dtype))


def words(tensor_map):
    """What a kernel sees of a map passed by value."""
    out = cu.to_device(np.zeros(16, np.uint64))
    library()["words"].launch(1, 1, 7, tensor_map, out)
    return out.copy_to_host().tobytes()


def test_the_device_says_that_it_has_tensor_maps(context):
    """Its attribute agrees with its compute capability."""
    assert context.device.attributes["TENSOR_MAP_ACCESS_SUPPORTED"] == 1


def test_a_map_is_aligned_and_passed_by_value():
    """It lies at a multiple of 128, and a kernel gets its 128 bytes as they are."""
    maps = [cu.TensorMap.tiled(image(), (8, 16)) for _ in range(5)]
    for each in maps:
        assert each.address % 128 == 0
        assert len(bytes(each)) == 128 and any(bytes(each))
        assert words(each) == bytes(each)


def test_a_map_in_device_memory():
    """copy_to_device gives the bytes at an aligned device address."""
    made = cu.TensorMap.tiled(image(), (8, 16))
    memory, out = made.copy_to_device(), cu.to_device(np.zeros(16, np.uint64))
    assert memory.handle % 128 == 0
    library()["at"].launch(1, 1, memory, out)
    assert out.copy_to_host().tobytes() == bytes(made)


@pytest.mark.parametrize(
    "dtype",
    ["uint8", "int8", "bool", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
     "float32", "float64"],
)  # fmt: skip
def test_every_dtype(dtype):
    """Each NumPy type of numbers without complex parts can be described."""
    box = (8, 16 // np.dtype(dtype).itemsize)
    assert cu.TensorMap.tiled(image((64, 64), dtype), box).tensor.shape == (64, 64)


@pytest.mark.parametrize(
    ("name", "shape", "box"),
    [
        ("BFLOAT16", (64, 64), (8, 16)),
        ("TFLOAT32", (64, 64), (8, 16)),
        ("FLOAT32_FTZ", (64, 64), (8, 16)),
        ("TFLOAT32_FTZ", (64, 64), (8, 16)),
    ],
)
def test_types_that_numpy_does_not_have(name, shape, box):
    """Device memory is described with a type, a shape and, if not in C order, strides."""
    memory = cu.mem_alloc(64 * 64 * 8)
    made = cu.TensorMap.tiled(memory, box, dtype=name, shape=shape)
    assert made.tensor.strides == (64 * (2 if "16" in name else 4),)
    strided = cu.TensorMap.tiled(memory.handle, box, dtype=name, shape=shape, strides=(512,))
    assert strided.tensor.strides == (512,)
    assert bytes(made) != bytes(strided)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank(rank):
    """Arrays of one to five dimensions, and parts of them, can be described."""
    array = image((4,) * (rank - 1) + (32,))
    made = cu.TensorMap.tiled(array, (2,) * (rank - 1) + (8,), element_strides=(1,) * rank)
    assert made.tensor.strides == array.strides[:-1]
    part = array[..., 8:24]
    assert cu.TensorMap.tiled(part, (1,) * (rank - 1) + (8,)).tensor.address == array.handle + 32


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("promotion", ["none", "64B", "128B", "256B"])
def test_options(swizzle, promotion):
    """Swizzles and promotions change the map."""
    plain = cu.TensorMap.tiled(source := image(), (8, 8))
    made = cu.TensorMap.tiled(source, (8, 8), swizzle=swizzle, l2_promotion=promotion, oob_nan=True)
    assert bytes(made) != bytes(plain)


def test_interleaved():
    """Interleaved layouts have at least three dimensions and a swizzle that fits."""
    array = image((4, 4, 8, 16), "uint16")
    cu.TensorMap.tiled(image((4, 4, 8, 8), "uint16"), (1, 2, 2, 8), interleave="16B")
    cu.TensorMap.tiled(array, (1, 2, 2, 16), interleave="32B", swizzle="32B")
    with pytest.raises(ValueError, match="at least 3 dimensions"):
        cu.TensorMap.tiled(image(), (8, 8), interleave="16B")
    with pytest.raises(ValueError, match='needs swizzle="32B"'):
        cu.TensorMap.tiled(array, (1, 2, 2, 16), interleave="32B")


def test_im2col():
    """Columns of pixels of arrays of three to five dimensions."""
    for rank in (3, 4, 5):
        array = image((2, *(16,) * (rank - 2), 32), "float16")
        inner = rank - 2
        made = cu.TensorMap.im2col(array, (-1,) * inner, (-1,) * inner, 32, 64)
        assert words(made) == bytes(made)


def test_wide_maps_need_a_newer_device(context):
    """On devices before 10.0 im2col_wide is NotSupported, saying what it needs."""
    array = image((2, 16, 64), "float16")
    if context.device.compute_capability >= (10, 0):
        assert any(bytes(cu.TensorMap.im2col_wide(array, -1, 1, 64, 64)))
        return
    with pytest.raises(cu.NotSupported, match=r"needs compute capability 10\.0"):
        cu.TensorMap.im2col_wide(array, -1, 1, 64, 64)


def test_replacing_the_address():
    """The map then describes other memory of the same kind, and keeps that alive."""
    first, second = image(), image()
    made, other = cu.TensorMap.tiled(first, (8, 8)), cu.TensorMap.tiled(second, (8, 8))
    made.replace_address(second)
    assert bytes(made) == bytes(other)
    assert made.source is second
    first.close()
    assert words(made) == bytes(other)
    with pytest.raises(ValueError, match="multiple of 16"):
        made.replace_address(second.handle + 4)
    with pytest.raises(ValueError, match="make a new map"):
        made.replace_address(image((32, 64)))
    with pytest.raises(TypeError, match="not ndarray"):
        made.replace_address(np.zeros((64, 64), np.float32))
    assert bytes(made) == bytes(other)


def test_closed_memory_is_refused():
    """A map of closed memory is neither made nor passed to a kernel."""
    array = image()
    made = cu.TensorMap.tiled(array, (8, 8))
    array.close()
    for use in (
        lambda: bytes(made),
        lambda: words(made),
        lambda: cu.TensorMap.tiled(array, (8, 8)),
    ):
        with pytest.raises(cu.ClosedError):
            use()


BAD = [
    ((64, 64), (8,), {}, "box=.*there must be 2"),
    ((64, 64), (0, 8), {}, r"box=\(0, 8\): from 1 to 256"),
    ((64, 64), (257, 8), {}, "from 1 to 256"),
    ((64, 64), (-1, 8), {}, "from 1 to 256"),
    ((64, 64), (8, 3), {}, r"is 12 bytes: it must be a multiple of 16"),
    ((64, 64), (8, 64), {"swizzle": "128B"}, "is 256 bytes: this swizzle allows 128"),
    ((64, 64), (8, 32), {"swizzle": "64B"}, "this swizzle allows 64"),
    ((64, 64), (8, 16), {"swizzle": "32B"}, "this swizzle allows 32"),
    ((64, 64), (8, 8), {"swizzle": "96B"}, "swizzle='96B': there are none, 32B, 64B, 128B"),
    ((64, 64), (8, 8), {"interleave": "64B"}, "interleave='64B': there are none, 16B, 32B"),
    ((64, 64), (8, 8), {"l2_promotion": "512B"}, "there are none, 64B, 128B, 256B"),
    ((64, 64), (8, 8), {"element_strides": (0, 1)}, "element_strides=.*from 1 to 8"),
    ((64, 64), (8, 8), {"element_strides": (9, 1)}, "from 1 to 8"),
    ((64, 64), (8, 8), {"element_strides": (1,)}, "there must be 2"),
    ((64, 62), (8, 8), {}, "multiples of 16 below"),
    ((2,) * 6, (1,) * 6, {}, "1 to 5 dimensions"),
    ((), (), {}, "1 to 5 dimensions"),
    ((0, 64), (8, 8), {}, "begins at 0x0|from 1 to"),
    ((64, 64), (8, 8), {"shape": (128, 64)}, "needs 32768 bytes, the memory has 16384"),
    ((64, 64), (8, 8), {"shape": (64, 64), "strides": (1 << 40,)}, "bytes, the memory has"),
    ((64, 64), (8, 8), {"strides": (256, 8)}, "must touch|the memory has"),
    ((64, 64), (8, 8), {"dtype": "16U6_ALIGN16B", "shape": (64, 64)}, "multiple of 128"),
    ((64, 64), (8, 64), {"dtype": "16U4_ALIGN16B", "shape": (4, 128)}, "box=|128 values"),
    ((64, 64), (8, 32), {"dtype": "UINT32", "oob_nan": True}, "is for floats, not UINT32"),
]


@pytest.mark.parametrize(("shape", "box", "options", "message"), BAD)
def test_rules_of_tiled_maps(shape, box, options, message):
    """Each broken rule is named, before the driver is asked."""
    with pytest.raises(ValueError, match=message):
        cu.TensorMap.tiled(image(shape), box, **options)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (lambda: np.zeros((64, 64), np.float32), {"dtype": "f4", "shape": (64, 64)}, "not ndarray"),
        (lambda: None, {"dtype": "f4", "shape": (64, 64)}, "not NoneType"),
        (lambda: cu.mem_alloc(1 << 14), {}, "say dtype= and shape="),
        (lambda: cu.mem_alloc(1 << 14), {"dtype": "f4"}, "say dtype= and shape="),
        (lambda: image((64, 64), "complex64"), {}, "cannot describe complex64"),
        (lambda: image(), {"dtype": "FLOAT8"}, "cannot describe FLOAT8"),
        (lambda: image(), {"swizzle": 3}, "pass a str"),
        (lambda: image(), {"element_strides": 3}, "pass a sequence of ints"),
        (lambda: image(), {"shape": (64, 2.5)}, "pass a sequence of ints"),
    ],
)
def test_wrong_types(source, options, message):
    """What is no array, no type and no option is a TypeError that says what may be given."""
    with pytest.raises(TypeError, match=message):
        cu.TensorMap.tiled(source(), (8, 8), **options)


def test_misplaced_arrays():
    """An array that does not begin at a multiple of 16, or whose last dimension has gaps."""
    array = image((64, 64))
    with pytest.raises(ValueError, match="needs a multiple of 16"):
        cu.TensorMap.tiled(array[:, 1:], (8, 8))
    with pytest.raises(ValueError, match="must touch"):
        cu.TensorMap.tiled(array[:, ::2], (8, 8))
    with pytest.raises(ValueError, match="must touch"):
        cu.TensorMap.tiled(array.T, (8, 8))
    with pytest.raises(ValueError, match="multiples of 16"):
        cu.TensorMap.tiled(array[::-1], (8, 8))


@pytest.mark.parametrize(
    ("shape", "lower", "upper", "channels", "pixels", "message"),
    [
        ((64, 64), (), (), 16, 64, "3 to 5 dimensions"),
        ((2, 16, 16, 32), (0,), (0, 0), 16, 64, "lower=.*there must be 2"),
        ((2, 16, 16, 32), (0, -129), (0, 0), 16, 64, "from -128 to 127"),
        ((2, 16, 16, 32), (0, 0), (128, 0), 16, 64, "from -128 to 127"),
        ((2, 4, 4, 4, 32), (0, 0, -17), (0, 0, 0), 16, 64, "from -16 to 15"),
        ((2, 16, 32), (0,), (-20,), 16, 64, "no pixel is left"),
        ((2, 16, 32), (0,), (0,), 0, 64, "channels=.*from 1 to 256"),
        ((2, 16, 32), (0,), (0,), 257, 64, "channels=.*from 1 to 256"),
        ((2, 16, 32), (0,), (0,), 16, 1025, "pixels=.*from 1 to 1024"),
        ((2, 16, 32), (0,), (0,), 16, 0, "pixels=.*from 1 to 1024"),
    ],
)
def test_rules_of_im2col_maps(shape, lower, upper, channels, pixels, message):
    """Each broken rule is named, before the driver is asked."""
    with pytest.raises(ValueError, match=message):
        cu.TensorMap.im2col(image(shape), lower, upper, channels, pixels)
