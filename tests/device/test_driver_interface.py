"""The CUDA Array Interface: what we tell other libraries, and what we believe of them."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu
from cudadrv.interface import parse
from tests.device.driver_code import library


class Foreign:
    """A device array of another library: only its description."""

    def __init__(self, description, owner=None):
        self.__cuda_array_interface__ = description
        self.owner = owner


def description(**changes):
    """A right description, with changes; a field that becomes Ellipsis is left out."""
    known = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3, **changes}
    return {key: value for key, value in known.items() if value is not ...}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"shape": ...}, TypeError, "has no 'shape'"),
        ({"typestr": ...}, TypeError, "has no 'typestr'"),
        ({"data": ...}, TypeError, "has no 'data'"),
        ({"version": ...}, TypeError, "has no 'version'"),
        ({"version": "3"}, TypeError, "'version'"),
        ({"version": 4}, ValueError, "version 4"),
        ({"version": -1}, ValueError, "version -1"),
        ({"shape": (-1,)}, ValueError, "negative"),
        ({"shape": (2.5,)}, TypeError, "shape"),
        ({"shape": "ab"}, TypeError, "shape"),
        ({"shape": None}, TypeError, "shape"),
        ({"typestr": 4}, TypeError, "typestr"),
        ({"typestr": "<x4"}, ValueError, "<x4"),
        ({"typestr": "|O8"}, ValueError, "O8"),
        ({"typestr": "<f0"}, ValueError, "<f0"),
        ({"typestr": "f4"}, ValueError, "f4"),
        ({"data": 4096}, TypeError, "data"),
        ({"data": ("4096", False)}, TypeError, "data"),
        ({"data": (4096,)}, TypeError, "data"),
        ({"data": (None, False)}, ValueError, "no address"),
        ({"data": (0, False)}, ValueError, "no address"),
        ({"data": (-8, False)}, ValueError, "-8"),
        ({"data": (2**64, False)}, ValueError, "address"),
        ({"data": (2**64 - 8, False)}, ValueError, "beyond all memory"),
        ({"strides": (4, 4)}, ValueError, "one a dimension"),
        ({"strides": ("4",)}, TypeError, "strides"),
        ({"strides": (-4096,)}, ValueError, "beyond all memory"),
        ({"mask": Foreign({})}, ValueError, "masked"),
        ({"stream": 0}, ValueError, "stream 0"),
        ({"stream": "1"}, TypeError, "stream"),
        ({"typestr": "|V8", "descr": 5}, ValueError, "descr"),
        ({"typestr": "|V8", "descr": [("a", "<f4")]}, ValueError, "size"),
    ],
)
def test_wrong_descriptions(changes, error, message):
    """Each is refused by the field that is wrong, before anything is done with it."""
    with pytest.raises(error, match=message):
        cu.from_cuda_array_interface(description(**changes))


@pytest.mark.parametrize("wrong", [None, 5, "shape", [("shape", (4,))]])
def test_descriptions_that_are_no_dictionaries(wrong):
    """The error says what was found instead."""
    with pytest.raises(TypeError, match=r"dictionary|no device array"):
        cu.as_cuda_array(Foreign(wrong))


def test_wrong_descriptions_never_reach_a_kernel_or_a_copy():
    """Launches and copies check descriptions too."""
    wrong = Foreign(description(data=(None, False)))
    kernel, out = library()["scale"], np.zeros(4, np.float32)
    for use in (
        lambda: kernel.launch(1, 32, wrong, 1.0, wrong, 4),
        lambda: cu.memcpy(out, wrong),
        lambda: cu.memset(wrong, 0),
        lambda: cu.to_device(wrong),
    ):
        with pytest.raises(ValueError, match="no address"):
            use()


def test_the_owner_lives_as_long_as_the_array():
    """The foreign object is kept; records and strides come across."""
    record = np.dtype([("a", "i4"), ("b", "f8")], align=True)
    host = np.zeros(6, record)
    host["a"] = range(6)
    device = cu.to_device(host)
    taken = cu.as_cuda_array(Foreign(device[::-2].__cuda_array_interface__, device))
    assert taken.memory.owner.owner is device
    assert taken.dtype == record
    np.testing.assert_array_equal(taken.copy_to_host(), host[::-2])


def test_the_stream_is_told():
    """None where there is nothing to wait for, a handle elsewhere, never 0."""
    stream = cu.Stream()
    array = cu.to_device(np.zeros(4), stream)
    assert array.__cuda_array_interface__["stream"] == stream.handle
    assert array[1:].__cuda_array_interface__["stream"] == stream.handle
    assert cu.to_device(np.zeros(4)).__cuda_array_interface__["stream"] is None
    assert array.bind(cu.Stream.per_thread).__cuda_array_interface__["stream"] == 2
    assert array.bind(None).__cuda_array_interface__["stream"] is None
    with pytest.raises(TypeError, match="no stream"):
        array.bind("stream")


def test_the_stream_is_waited_for(monkeypatch):
    """Importing synchronises the stream that is named, unless told not to."""
    stream, waited = cu.Stream(), []
    array = cu.to_device(np.zeros(4, np.float32), stream)
    foreign = Foreign(array.__cuda_array_interface__, array)
    monkeypatch.setattr(cu.driver, "cuStreamSynchronize", waited.append)
    cu.as_cuda_array(foreign)
    cu.memcpy(np.zeros(4, np.float32), foreign)
    assert waited == [stream.handle] * 2
    cu.as_cuda_array(foreign, sync=False)
    monkeypatch.setenv("CUDADRV_CAI_SYNC", "0")
    cu.as_cuda_array(foreign)
    assert len(waited) == 2


def test_read_only_is_told_and_believed():
    """A read-only array says so, and one of another library is not written to."""
    array = cu.to_device(np.zeros(4, np.float32))
    frozen = array.broadcast_to((4,))
    assert frozen.__cuda_array_interface__["data"] == (array.handle, True)
    taken = cu.as_cuda_array(Foreign(frozen.__cuda_array_interface__, array))
    assert taken.readonly and taken[1:].readonly
    for write in (
        lambda: taken.fill(1),
        lambda: cu.memcpy(Foreign(frozen.__cuda_array_interface__), bytes(16)),
    ):
        with pytest.raises(ValueError, match="read-only"):
            write()


def test_records_with_fields_out_of_order():
    """NumPy has no description of them: they are handed over as bytes."""
    host = np.ones(3, [("a", "i4"), ("b", "f8")])
    view = cu.to_device(host)[["b", "a"]]
    taken = cu.as_cuda_array(Foreign(view.__cuda_array_interface__, view))
    assert taken.dtype == "V12"
    np.testing.assert_array_equal(view.copy_to_host(), host[["b", "a"]])


def test_kernels_do_not_write_into_read_only_arrays():
    """A kernel that reads one runs; one that writes is refused before the launch."""

    @cuda.jit
    def double(target, source):
        i = cuda.grid(1)
        if i < target.size:
            target[i] = 2 * source[i]

    array = cu.to_device(np.arange(4, dtype=np.float32))
    frozen, out = array.broadcast_to((4,)), cu.device_array_like(array)
    double[1, 32](out, frozen)
    assert out.copy_to_host().tolist() == [0, 2, 4, 6]
    for target in (frozen, Foreign(frozen.__cuda_array_interface__, array)):
        with pytest.raises(cuda.TypingError, match="read-only"):
            double[1, 32](target, out)


def test_older_versions_are_understood():
    """Versions 0 to 2 have fewer fields and mean the same; an empty array needs no address."""
    for version in range(4):
        found = parse(description(version=version, strides=None, descr=[("", "<f4")]))
        assert (found.address, found.strides, found.stream) == (4096, (4,), None)
    assert parse(description(shape=(0, 3), data=(None, True))).nbytes == 0
    empty = cu.from_cuda_array_interface(description(shape=(0, 3), data=(0, False)))
    assert empty.copy_to_host().shape == (0, 3)


def test_classes_are_no_arrays():
    """A class has the attribute too, but describes nothing."""
    assert not cu.is_cuda_array(cu.DeviceArray)
    with pytest.raises(TypeError, match="no device array"):
        cu.as_cuda_array(cu.DeviceArray)
