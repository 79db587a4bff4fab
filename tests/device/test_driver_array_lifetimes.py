"""CUDA arrays, textures, surfaces and tensor maps under many makings and any values at all."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cudadrv as cu
from cudadrv.errors import STICKY

# What bad values may raise; anything else is a fault of ours.
ALLOWED = (TypeError, ValueError, IndexError, BufferError, MemoryError, OverflowError, cu.CudaError)
UNKNOWN = 999


def make_array():
    return cu.CudaArray((64, 64), np.float32, 4, surface=True)


MAKERS = {
    "CudaArray": make_array,
    "MipmappedArray": lambda: cu.MipmappedArray((64, 64), np.float32),
    "TextureObject": lambda: cu.TextureObject(make_array()),
    "SurfaceObject": lambda: cu.SurfaceObject(make_array()),
    "level": lambda: cu.MipmappedArray((64, 64), np.float32)[1],
}


@pytest.mark.parametrize("kind", MAKERS)
def test_nothing_is_left_behind(alone, context, kind):
    """A thousand objects, half closed and half collected, leave the free memory as it was."""
    for _ in range(20):
        MAKERS[kind]().close()
    gc.collect()
    before = context.mem_info()[0]
    for turn in range(1000):
        made = MAKERS[kind]()
        if turn % 2:
            made.close()
        del made
    gc.collect()
    assert before - context.mem_info()[0] < 500 * 64 * 64 * 4


numbers = st.one_of(
    st.integers(-3, 70),
    st.sampled_from([1 << 31, 1 << 32, 1 << 63, -(1 << 63), 1 << 70]),
    st.floats(allow_nan=True),
    st.none(),
    st.booleans(),
)
words = st.one_of(
    st.sampled_from(["wrap", "none", "128B", "uint8", "f4", "HALF", "BFLOAT16", "UINT_4X8", ""]),
    st.text(max_size=3),
)
values = st.recursive(
    st.one_of(numbers, words, st.binary(max_size=4)),
    lambda x: st.lists(x, max_size=5),
    max_leaves=6,
)
shapes = st.one_of(
    st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple), st.tuples(numbers), values
)
dtypes = st.one_of(st.sampled_from(["uint8", "float32", "int16", "BC1_UNORM", "NV12"]), values)


def quietly(make):
    """Call *make*; only the errors that bad values may raise are let pass."""
    try:
        return make()
    except ALLOWED as error:
        code = getattr(error, "code", 0)
    assert code not in (*STICKY, UNKNOWN)
    return None


FLAGS = ("layered", "surface", "cubemap", "gather", "depth", "color")


@settings(max_examples=150, deadline=None)
@given(shapes, dtypes, values, st.sets(st.sampled_from(FLAGS)), values, values)
def test_arrays_of_any_values(shape, dtype, channels, flags, key, other):
    """Whatever is given makes an array or raises an error that says why."""
    if isinstance(shape, tuple) and any(isinstance(n, int) and n > 1 << 30 for n in shape):
        shape = shape[:1]
    array = quietly(lambda: cu.CudaArray(shape, dtype, channels, **dict.fromkeys(flags, True)))
    quietly(lambda: cu.MipmappedArray(shape, dtype, channels, other))
    if array is not None:
        part = quietly(lambda: array[key])
        quietly(lambda: (part or array).copy_from(other))
        quietly(lambda: (part or array).copy_to(other))
        quietly(lambda: cu.SurfaceObject(array))
        array.close()


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "channels": values, "address": values, "linear": st.booleans(),
        "normalized_coords": st.booleans(), "normalized_read": st.booleans(),
        "srgb": st.booleans(), "border": values, "anisotropy": numbers, "mip_bias": numbers,
        "mip_clamp": values, "seamless": st.booleans(),
    },
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["array", "levels", "line", "plane", "other"]), dtypes, OPTIONS, values)
def test_textures_of_any_values(kind, dtype, options, other):
    """Whatever is given makes a texture or raises an error that says why."""
    makers = {
        "array": lambda: cu.CudaArray((8, 8), dtype),
        "levels": lambda: cu.MipmappedArray((8, 8), dtype),
        "line": lambda: cu.device_array(64, dtype),
        "plane": lambda: cu.device_array((8, 32), dtype),
        "other": lambda: other,
    }
    source = quietly(makers[kind])
    made = quietly(lambda: cu.TextureObject(source, **options))
    if made is not None:
        made.close()


MAP_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "element_strides": values, "dtype": dtypes, "shape": shapes, "strides": shapes,
        "interleave": words, "swizzle": words, "l2_promotion": words, "oob_nan": st.booleans(),
    },
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.just("array"), values), shapes, MAP_OPTIONS, values, numbers)
def test_tensor_maps_of_any_values(source, box, options, corner, number):
    """Whatever is given makes a tensor map or raises an error that says why."""
    given = cu.to_device(np.zeros((8, 8, 64), np.float16)) if source == "array" else source
    quietly(lambda: cu.TensorMap.tiled(given, box, **options))
    quietly(lambda: cu.TensorMap.im2col(given, corner, corner, number, number, **options))
    quietly(lambda: cu.TensorMap.im2col_wide(given, number, number, number, number, **options))
