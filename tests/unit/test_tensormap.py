"""Tensor maps on drivers that there are none of here: newer ones, and none that may be asked."""

from __future__ import annotations

import ctypes

import pytest

import cudadrv as cu
from tests.unit.fake_driver import installed, launching_driver, store

ADDRESS = 1 << 20


def driver(asked, version=13050):
    """A driver that fills maps with 0x5A and notes what it was asked."""

    def encode(tensor, *given):
        asked.append((tensor, *given))
        ctypes.memset(tensor, 0x5A, 128)
        return 0

    def classify(tensor, wanted, out):
        asked.append((tensor, wanted))
        return store(out, ctypes.c_int, 2 if wanted == 2 else 1)

    more = {"cuTensorMapSetAllocationClass": classify} if version >= 13050 else {}
    return launching_driver(version, cuTensorMapEncodeTiled=encode, **more)


def array_at(address, count):
    """The words of a C array of 64 bits."""
    return list((ctypes.c_uint64 * count).from_address(address))


def test_the_driver_gets_the_innermost_dimension_first():
    """Shapes, strides, boxes and steps are reversed for the driver; the map is aligned."""
    asked = []
    seen = {}

    def encode(tensor, kind, rank, address, shape, strides, box, steps, *options):
        small = ctypes.c_uint32 * 3
        seen["shape"], seen["strides"] = array_at(shape, 3), array_at(strides, 2)
        seen["box"], seen["steps"] = [list(small.from_address(each)) for each in (box, steps)]
        asked.append((tensor, kind, rank, address, *options))
        return 0

    fake = launching_driver(cuTensorMapEncodeTiled=encode)
    with installed(fake):
        made = cu.TensorMap.tiled(
            ADDRESS, (2, 4, 32), dtype="float16", shape=(8, 16, 64), strides=(8192, 256),
            element_strides=(1, 2, 1), swizzle="64B", l2_promotion="256B", oob_nan=True,
        )  # fmt: skip
    assert seen == {
        "shape": [64, 16, 8], "strides": [256, 8192], "box": [32, 4, 2], "steps": [1, 2, 1],
    }  # fmt: skip
    assert asked == [(made.address, 6, 3, ADDRESS, 0, 2, 3, 1)]
    assert made.address % 128 == 0


def test_allocation_classes():
    """The class asked for goes to the driver, and the one in effect comes back."""
    asked = []
    with installed(driver(asked)):
        made = cu.TensorMap.tiled(ADDRESS, (8, 16), dtype="float32", shape=(64, 64))
        assert made.set_allocation_class("large") == "large"
        assert made.set_allocation_class() == "small"
        assert asked[-2:] == [(made.address, 2), (made.address, 0)]
        with pytest.raises(ValueError, match="there are AUTO, SMALL, LARGE"):
            made.set_allocation_class("huge")
        with pytest.raises(TypeError, match="pass a str"):
            made.set_allocation_class(2)


def test_older_drivers_have_no_allocation_classes():
    """The error names both versions."""
    with installed(driver([], 13000)):
        made = cu.TensorMap.tiled(ADDRESS, (8, 16), dtype="float32", shape=(64, 64))
        with pytest.raises(cu.NotSupportedByDriver, match=r"needs driver 13\.5.* is 13\.0"):
            made.set_allocation_class("small")


def test_an_older_device_is_asked_nothing():
    """Below compute capability 9.0 the error says so before the driver is called."""
    asked = []
    fake = driver(asked)
    old = launching_driver(
        cuDeviceGetAttribute=lambda out, number, device: store(
            out, ctypes.c_int, {75: 8, 76: 6}.get(number, 1024)
        )
    )
    old._callbacks |= {
        name: each for name, each in fake._callbacks.items() if name.startswith("cuTensor")
    }
    with installed(old), pytest.raises(cu.NotSupported, match=r"9\.0, the device has 8\.6"):
        cu.TensorMap.tiled(ADDRESS, (8, 16), dtype="float32", shape=(64, 64))
    assert not asked
