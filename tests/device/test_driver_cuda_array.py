"""CUDA arrays: shapes and formats, and copies to and from host, device and each other."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import raw

DTYPES = ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32"]
SHAPES = [
    ((13,), {}),
    ((5, 13), {}),
    ((3, 5, 13), {}),
    ((3, 13), {"layered": True}),
    ((3, 5, 13), {"layered": True}),
    ((6, 8, 8), {"cubemap": True}),
    ((12, 8, 8), {"cubemap": True, "layered": True}),
]


def values(shape, dtype="float32"):
    """Different numbers for each element."""
    return np.arange(np.prod(shape), dtype="uint32").astype(dtype).reshape(shape)


@pytest.fixture
def array(context):
    """An array of 4 rows of 6 floats, and what is in it."""
    host = values((4, 6))
    return cu.CudaArray.from_host(host), host


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_format_keeps_its_elements(context, dtype, channels):
    """What was copied in comes back, for each dtype and number of channels."""
    host = values((3, 5, channels) if channels > 1 else (3, 5), dtype)
    array = cu.CudaArray((3, 5), dtype, channels)
    array.copy_from(host)
    assert np.array_equal(array.copy_to_host(), host)
    assert (array.dtype, array.channels, array.shape) == (np.dtype(dtype), channels, (3, 5))


@pytest.mark.parametrize(("shape", "flags"), SHAPES)
def test_every_kind_of_array_keeps_its_elements(context, shape, flags):
    """Copies work for one to three dimensions, layers and faces, on a stream or not."""
    host = values(shape)
    array = cu.CudaArray(shape, np.float32, **flags)
    stream = cu.Stream()
    array.copy_from(host, stream)
    out = np.zeros_like(host)
    array.copy_to(out, stream)
    stream.synchronize()
    assert np.array_equal(out, host)
    array.copy_from(host + 1)
    assert np.array_equal(array.copy_to_host(), host + 1)


@pytest.mark.parametrize(("shape", "flags"), SHAPES)
def test_the_driver_describes_the_array_as_it_was_made(context, shape, flags):
    """An adopted handle has the shape, the format and the flags of the array."""
    array = cu.CudaArray(shape, np.int16, 2, surface=True, **flags)
    adopted = cu.CudaArray.adopt(array.handle, array)
    assert adopted.layout == array.layout
    assert not adopted.owned
    record = array.descriptor
    assert (record.Width, record.NumChannels) == (shape[-1], 2)


@pytest.mark.parametrize(("shape", "flags"), SHAPES)
def test_copies_with_device_memory(context, shape, flags):
    """Device arrays go in and out, on a stream or not, and so do the bytes of device memory."""
    host = values(shape)
    array = cu.CudaArray(shape, np.float32, **flags)
    array.copy_from(cu.to_device(host))
    out = cu.device_array(shape, np.float32)
    array.copy_to(out)
    assert np.array_equal(out.copy_to_host(), host)
    stream = cu.Stream()
    array.copy_from(cu.to_device(host + 1), stream)
    memory = cu.mem_alloc(host.nbytes)
    array.copy_to(memory, stream)
    stream.synchronize()
    got = np.zeros_like(host)
    cu.memcpy(got, memory)
    assert np.array_equal(got, host + 1)


@pytest.mark.parametrize(("shape", "flags"), SHAPES)
def test_copies_between_arrays(context, shape, flags):
    """One array's elements go to another of its shape, on a stream or not."""
    host = values(shape)
    source, target = (cu.CudaArray(shape, np.float32, **flags) for _ in range(2))
    source.copy_from(host)
    target.copy_from(source)
    assert np.array_equal(target.copy_to_host(), host)
    source.copy_from(host + 1)
    stream = cu.Stream()
    source.copy_to(target, stream)
    stream.synchronize()
    assert np.array_equal(target.copy_to_host(), host + 1)


@pytest.mark.parametrize(
    "key", [np.s_[1:3, 2:5], np.s_[2], np.s_[:, 3], np.s_[..., -2:], np.s_[1:2, 4], np.s_[-1, 5]]
)
def test_parts_are_cut_as_numpy_cuts(array, key):
    """A part has NumPy's shape and elements, and writing it changes nothing else."""
    made, host = array
    assert made[key].shape == host[key].shape
    assert np.array_equal(made[key].copy_to_host(), host[key])
    host[key] = -1
    made[key].copy_from(np.full(host[key].shape, -1, np.float32))
    assert np.array_equal(made.copy_to_host(), host)


def test_parts_of_layers_and_volumes(context):
    """A box in three dimensions, and one layer of several."""
    host = values((4, 5, 6, 2), "int32")
    for flags in ({}, {"layered": True}):
        made = cu.CudaArray((4, 5, 6), np.int32, 2, **flags)
        made.copy_from(host)
        assert np.array_equal(made[1:3, 2:, 3:5].copy_to_host(), host[1:3, 2:, 3:5])
        assert np.array_equal(made[2].copy_to_host(), host[2])
        assert np.array_equal(made[:, 1, 4].copy_to_host(), host[:, 1, 4])


def test_a_part_goes_to_a_part(array):
    """Parts of arrays are copied from one to another, device arrays with gaps as well."""
    made, host = array
    other = cu.CudaArray((10, 10), np.float32)
    other[3:5, 4:7].copy_from(made[1:3, 2:5])
    assert np.array_equal(other[3:5, 4:7].copy_to_host(), host[1:3, 2:5])
    wide = cu.to_device(values((8, 16)))
    made.copy_from(wide[1:5, 3:9])
    assert np.array_equal(made.copy_to_host(), values((8, 16))[1:5, 3:9])


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::-1], np.s_[::2, 1:7], np.s_[:4, ::2]])
def test_host_arrays_of_any_layout(array, view):
    """Host arrays that no copy takes as they are go through a buffer, in both directions."""
    made, _ = array
    base = values((4, 6) if view in (np.s_[::-1], np.s_[:, ::-1]) else (8, 12))
    host = base[view][:4, :6]
    stream = cu.Stream()
    made.copy_from(host, stream)
    out = np.zeros_like(base)
    target = out[view][:4, :6]
    made.copy_to(target, stream)
    stream.synchronize()
    assert np.array_equal(target, host)
    assert np.count_nonzero(out) == np.count_nonzero(host)


@pytest.mark.parametrize(("shape", "flags"), SHAPES)
def test_copies_are_captured(context, shape, flags):
    """Copies on a captured stream become a graph, which does them at each launch."""
    host, got = values(shape), np.zeros(shape, np.float32)
    more = host + 1
    first, second = (cu.CudaArray(shape, np.float32, **flags) for _ in range(2))
    first.copy_from(host)
    stream = cu.Stream()
    with stream.capture() as graph:
        first.copy_from(more, stream)
        second.copy_from(first, stream)
        second.copy_to(got, stream)
        with pytest.raises(ValueError, match="ascontiguousarray"):
            first.copy_from(host[..., ::-1], stream)
    assert np.array_equal(first.copy_to_host(), host)
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert np.array_equal(got, more)


def test_nodes_copy_arrays(context):
    """A graph has nodes that copy parts of arrays to and from memory and each other."""
    host = values((4, 6))
    array, got = cu.CudaArray((4, 6), np.float32), np.zeros((4, 6), np.float32)
    other = cu.to_device(np.zeros((2, 3), np.float32))
    graph = cu.Graph()
    first = graph.add(cu.MemcpyNode.array(array, host))
    second = graph.add(cu.MemcpyNode.array(array[0:2, 0:3], array[2:4, 3:6]), after=[first])
    graph.add(cu.MemcpyNode.array(got, array), after=[second])
    graph.add(cu.MemcpyNode.array(other, array[0:2, 3:6]), after=[second])
    graph.instantiate().launch(stream := cu.Stream())
    stream.synchronize()
    assert np.array_equal(other.copy_to_host(), host[0:2, 3:6])
    host[0:2, 0:3] = host[2:4, 3:6]
    assert np.array_equal(got, host)


@pytest.mark.parametrize(
    ("dst", "src", "error", "message"),
    [
        (np.s_[0:3], np.s_[1:4], ValueError, "overlap"),
        (np.s_[:], np.zeros((4, 5), np.float32), ValueError, "does not match"),
        (np.s_[:], np.zeros((6, 4), np.float32).T, ValueError, "none that copies take"),
        (np.s_[0:0], np.s_[1:1], ValueError, "no elements"),
        (np.s_[:], None, TypeError, "NoneType"),
    ],
)
def test_nodes_that_cannot_copy_arrays(array, dst, src, error, message):
    """The error says what does not match, before there is a node."""
    made, _ = array
    source = made[src] if isinstance(src, slice) else src
    with pytest.raises(error, match=message):
        cu.MemcpyNode.array(made[dst], source)
    with pytest.raises(TypeError, match="neither"):
        cu.MemcpyNode.array(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        cu.MemcpyNode.array(bytes(96), made)


def test_parts_that_overlap(array):
    """Parts of one array that have elements in common are not copied to each other."""
    made, host = array
    with pytest.raises(ValueError, match="overlap"):
        made[0:3].copy_from(made[1:4])
    made[0:2].copy_from(made[2:4])
    host[0:2] = host[2:4]
    assert np.array_equal(made.copy_to_host(), host)


def test_levels_halve(context):
    """Each level of a mipmapped array is half as long, and has elements of its own."""
    whole = cu.MipmappedArray((8, 20), np.float32)
    assert [level.shape for level in whole] == [(8, 20), (4, 10), (2, 5), (1, 2), (1, 1)]
    assert len(cu.MipmappedArray((8, 20), np.float32, levels=2)) == 2
    for number, level in enumerate(whole):
        level.copy_from(np.full(level.shape, number, np.float32))
    for number, level in enumerate(whole):
        assert np.all(level.copy_to_host() == number)
    assert cu.MipmappedArray.adopt(whole.handle, 5, whole).shape == (8, 20)
    layers = cu.MipmappedArray((3, 8, 8), np.uint8, layered=True)
    assert [level.shape for level in layers] == [(3, n, n) for n in (8, 4, 2, 1)]


def test_a_level_keeps_its_array(context):
    """A level, and a part of it, work after the name of the whole is gone."""
    level = cu.MipmappedArray((8, 8), np.float32)[1]
    level.copy_from(values((4, 4)))
    assert np.array_equal(level[2].copy_to_host(), values((4, 4))[2])


def test_elements_of_host_arrays(context):
    """from_host takes the last dimension as channels if it is told so."""
    host = values((3, 5, 4), "uint8")
    array = cu.CudaArray.from_host(host, 4, surface=True)
    assert (array.shape, array.channels) == ((3, 5), 4)
    assert np.array_equal(array.copy_to_host(), host)
    assert cu.CudaArray.from_host(host).shape == (3, 5, 4)
    for wrong in (2, 3, 0):
        with pytest.raises(ValueError, match=f"channels={wrong}"):
            cu.CudaArray.from_host(host, wrong)


def test_normalized_formats(context):
    """Formats named by CUDA have their own number of channels and a dtype."""
    array = cu.CudaArray((4, 4), "UNORM_INT8X4")
    assert (array.dtype, array.channels) == (np.dtype("uint8"), 4)
    host = values((4, 4, 4), "uint8")
    array.copy_from(host)
    assert np.array_equal(array.copy_to_host(), host)
    assert cu.CudaArray((4, 4), "CU_AD_FORMAT_SNORM_INT16X2").dtype == np.int16


BAD = [
    (ValueError, "at least one element", ((4, 0), np.float32), {}),
    (ValueError, "at least one element", ((), np.float32), {}),
    (ValueError, "at least one element", (-3, np.float32), {}),
    (ValueError, "at most three", ((2, 2, 2, 2), np.float32), {}),
    (ValueError, r"MAXIMUM_TEXTURE2D_\w*WIDTH is \d+", ((2, 1 << 30), np.float32), {}),
    (ValueError, "_HEIGHT", ((1 << 40, 2), np.uint8), {}),
    (ValueError, "LAYERED_LAYERS is 2048", ((4096, 2, 2), np.uint8), {"layered": True}),
    (ValueError, "layered arrays are", ((4,), np.float32), {"layered": True}),
    (ValueError, r"a cubemap is \(6, n, n\)", ((6, 4, 5), np.float32), {"cubemap": True}),
    (ValueError, "6 faces", ((12, 4, 4), np.float32), {"cubemap": True}),
    (ValueError, "6 faces", ((7, 4, 4), np.float32), {"cubemap": True, "layered": True}),
    (ValueError, "two-dimensional", ((4, 4, 4), np.float32), {"gather": True}),
    (ValueError, "channels=3", ((4, 4), np.float32, 3), {}),
    (ValueError, "no format 'RGBA'", ((4, 4), "RGBA"), {}),
    (TypeError, "64-bit numbers go as two channels", ((4, 4), np.float64), {}),
    (TypeError, "cannot hold >f4", ((4, 4), ">f4"), {}),
    (TypeError, "cannot hold complex64", (4, np.complex64), {}),
    (TypeError, "cannot hold None", (4, None), {}),
    (TypeError, "shape 2.5", (2.5, np.float32), {}),
    (TypeError, "shape 'ab'", ("ab", np.float32), {}),
    (TypeError, "there is no option 'surfaces'", (4, np.float32), {"surfaces": True}),
]


@pytest.mark.parametrize(("error", "message", "arguments", "flags"), BAD)
def test_arrays_that_cannot_be(context, error, message, arguments, flags):
    """What no device makes is refused before the driver is asked, saying what is wrong."""
    with pytest.raises(error, match=message):
        cu.CudaArray(*arguments, **flags)
    with pytest.raises(error, match=message):
        cu.MipmappedArray(*arguments, **flags)


@pytest.mark.parametrize("levels", [0, -1, 5, 1000])
def test_wrong_numbers_of_levels(context, levels):
    """The error says how many levels the shape has."""
    with pytest.raises(ValueError, match="from 1 to 4"):
        cu.MipmappedArray((8, 8), np.float32, levels=levels)
    with pytest.raises(IndexError, match="there are 4"):
        cu.MipmappedArray((8, 8), np.float32)[levels + 10]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (4, "out of range"),
        (np.s_[0, -7], "out of range"),
        (np.s_[0, 0, 0], "3 indices"),
        (np.s_[::2], "steps of 1"),
        (None, "take ints"),
        ([1, 2], "take ints"),
        ("x", "take ints"),
    ],
)
def test_wrong_indices(array, key, message):
    """Only ints in range and slices of step 1 cut an array."""
    with pytest.raises(IndexError, match=message):
        array[0][key]


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        (np.zeros((4, 5), np.float32), ValueError, r"shape \(4, 5\).*does not match"),
        (np.zeros((4, 6), np.float64), ValueError, "dtype float64"),
        (np.zeros((4, 6, 1), np.float32), ValueError, "must be the same"),
        (bytes(95), ValueError, "does not match"),
        ("text", TypeError, "str is neither"),
        (None, TypeError, "NoneType"),
        ([1, 2], TypeError, "list"),
        (7, TypeError, "int"),
    ],
)
def test_copies_of_what_does_not_fit(array, other, error, message):
    """The error names both shapes and types, or what the thing is not; nothing is copied."""
    made, host = array
    with pytest.raises(error, match=message):
        made.copy_from(other)
    with pytest.raises((error, ValueError)):
        made.copy_to(other)
    assert np.array_equal(made.copy_to_host(), host)


def test_copies_between_arrays_that_differ(array):
    """Shape and format must be the same, and a mipmapped array is no array."""
    made, _ = array
    with pytest.raises(ValueError, match="must be the same"):
        made.copy_from(cu.CudaArray((6, 4), np.float32))
    with pytest.raises(ValueError, match="1 x SIGNED_INT32"):
        made.copy_to(cu.CudaArray((4, 6), np.int32))
    with pytest.raises(ValueError, match="one by one"):
        made[0:3, 0].copy_from(made[0, 0:3])
    with pytest.raises(TypeError, match="MipmappedArray"):
        made.copy_from(cu.MipmappedArray((4, 6), np.float32))


def test_destinations_that_cannot_be_written(array):
    """A read-only host array and a device array with gaps between elements are refused."""
    made, host = array
    with pytest.raises(ValueError, match="read-only"):
        made.copy_to(host.tobytes())
    with pytest.raises(ValueError, match="contiguous one first"):
        made.copy_to(cu.device_array((6, 4), np.float32).T)


def test_formats_without_numbers(context):
    """A compressed array can be described, but its elements are not copied as numbers."""
    with pytest.raises((TypeError, cu.NotSupported), match=r"no numbers|NOT_SUPPORTED"):
        cu.CudaArray((16, 16), "BC1_UNORM").copy_to_host()


def test_closed_arrays_are_refused(array):
    """After close() every use raises ClosedError, and so does a level of a closed whole."""
    made, host = array
    part = made[1:3]
    made.close()
    made.close()
    whole = cu.MipmappedArray((8, 8), np.float32)
    level = whole[1]
    whole.close()
    uses = [
        lambda: made.handle,
        lambda: made.copy_from(host),
        lambda: part.copy_to_host(),
        lambda: made.descriptor,
        lambda: level.copy_to_host(),
        lambda: whole[0],
    ]
    assert made.closed and level.closed
    for use in uses:
        with pytest.raises(cu.ClosedError):
            use()


def test_questions_that_an_array_has_no_answer_to(array):
    """Planes, sparse properties and requirements of a plain array are errors of the driver."""
    made, _ = array
    for ask in (
        lambda: made.plane(1),
        lambda: made.memory_requirements,
        lambda: made.sparse_properties,
    ):
        with pytest.raises(cu.CudaError, match="INVALID_VALUE"):
            ask()
    with pytest.raises(ValueError, match="count from 0"):
        made.plane(-1)


def test_too_much_memory(context):
    """OutOfMemory says what was asked for and what there is."""
    with pytest.raises(MemoryError, match=r"asked for shape=\(16384, 16384, 16384\).*free"):
        cu.CudaArray((16384, 16384, 16384), np.float32, 4)


def test_arrays_of_other_code(context):
    """An array that was made by a raw call is adopted, used and left to its maker."""
    record = raw.CUDA_ARRAY_DESCRIPTOR(Width=8, Height=4, Format=32, NumChannels=2)
    made = ctypes.c_void_p()
    assert raw.cuArrayCreate(ctypes.byref(made), ctypes.byref(record)) == 0
    adopted = cu.CudaArray.adopt(made.value)
    host = np.arange(64, dtype=np.float32).reshape(4, 8, 2)
    adopted.copy_from(host)
    assert np.array_equal(adopted.copy_to_host(), host)
    adopted.close()
    assert raw.cuArrayDestroy(made.value) == 0
