"""DLPack: arrays handed over in capsules, both ways."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import dlpack

DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]


class Foreign:
    """Another library's array, as old or as new as wanted; says what it was asked."""

    def __init__(self, array, device=None, old=False):
        self.array = array
        self.device = device
        self.old = old
        self.asked = {}

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, **asked):
        if self.old and "max_version" in asked:
            raise TypeError("unexpected keyword")
        self.asked = asked
        return self.array.__dlpack__(**asked)


def open_hand_overs():
    """How many arrays are handed over and not given back, after a collection."""
    gc.collect()
    return len(dlpack._given), len(dlpack._capsules)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip_of_every_type(dtype, old):
    """What is handed over comes back: same memory, dtype and shape, in both forms of capsule."""
    array = np.arange(6).reshape(2, 3).astype(dtype)
    device = cu.to_device(array)
    taken = cu.from_dlpack(Foreign(device, old=old))
    assert (taken.handle, taken.dtype) == (device.handle, device.dtype)
    np.testing.assert_array_equal(taken.copy_to_host(), array)


def test_round_trip_of_views():
    """Strides may be negative, 0 or transposed; arrays may be empty or without dimensions."""
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    device = cu.to_device(array)
    for key in (..., np.s_[:, ::-1], np.s_[1, ::2, 1:3], np.s_[0:0], np.s_[1, 2, 3, ...]):
        taken = cu.from_dlpack(device[key])
        assert taken.shape == array[key].shape
        np.testing.assert_array_equal(taken.copy_to_host(), array[key])
    np.testing.assert_array_equal(cu.from_dlpack(device.T).copy_to_host(), array.T)
    repeated = cu.from_dlpack(device.broadcast_to((5, 2, 3, 4)))
    assert repeated.readonly and repeated.strides[0] == 0


def test_memory_lives_until_it_is_given_back():
    """The taker keeps the memory; it is given back once, also from another thread."""
    before = open_hand_overs()
    device = cu.to_device(np.arange(100))
    taken = cu.from_dlpack(device)
    part = taken[10:20]
    del device, taken
    assert open_hand_overs() == (before[0] + 1, before[1])
    assert part.copy_to_host().tolist() == list(range(10, 20))
    holder = [part]
    del part
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    assert open_hand_overs() == before


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (2, 0)])
def test_capsules_that_nobody_takes(version):
    """They take back what is inside."""
    before = open_hand_overs()
    capsule = cu.to_device(np.arange(100)).__dlpack__(max_version=version)
    assert open_hand_overs() == (before[0] + 1, before[1] + 1)
    del capsule
    assert open_hand_overs() == before


def test_a_capsule_is_taken_once():
    """The second taker is told so; what is no capsule is a TypeError."""
    for version in (None, (1, 0)):
        capsule = cu.to_device(np.arange(3)).__dlpack__(max_version=version)
        assert cu.from_dlpack(capsule).size == 3
        with pytest.raises(BufferError, match="used already"):
            cu.from_dlpack(capsule)
    for wrong in (None, 5, "dltensor", cu.DeviceArray, object()):
        with pytest.raises(TypeError, match="no DLPack capsule"):
            cu.from_dlpack(wrong)


def test_read_only_needs_the_newer_form():
    """Before DLPack 1.0 nothing says read-only, so it is refused; since then it is told."""
    frozen = cu.to_device(np.arange(3)).broadcast_to((3,))
    with pytest.raises(BufferError, match="read-only"):
        frozen.__dlpack__()
    assert cu.from_dlpack(frozen).readonly
    assert not cu.from_dlpack(frozen, copy=True).readonly


def test_streams(monkeypatch):
    """The consumer's stream waits for the producer's, if it is another one and not -1."""
    waits = []
    monkeypatch.setattr(
        cu.Stream, "wait", lambda self, other: waits.append((self.handle, other.handle))
    )
    stream, other = cu.Stream(), cu.Stream()
    array = cu.to_device(np.zeros(4), stream)
    plain = array.bind(None)
    for made, given in (
        (array, None), (array, 1), (array, 2), (array, other.handle), (plain, other.handle),
        (array, stream.handle), (array, -1), (plain, 1), (plain, None), (plain, -1),
    ):  # fmt: skip
        made.__dlpack__(stream=given)
    s, o = stream.handle, other.handle
    assert waits == [(1, s), (1, s), (2, s), (o, s), (o, 1)]
    for wrong in (0, -2, 2**64):
        with pytest.raises(ValueError, match=f"stream={wrong}"):
            array.__dlpack__(stream=wrong)
    for wrong in ("1", 1.0, True, stream):
        with pytest.raises(TypeError, match="stream"):
            array.__dlpack__(stream=wrong)


def test_a_stream_really_waits():
    """Data written on one stream is there for work on another, without a wait on the host."""
    first, second = cu.Stream(nonblocking=True), cu.Stream(nonblocking=True)
    host = cu.pinned_array(1 << 20, np.float32)
    host[...] = 7
    array = cu.to_device(host, first)
    taken = cu.from_dlpack(array, stream=second)
    out = taken.copy_to_host(stream=second)
    second.synchronize()
    assert (out == 7).all()


def test_what_is_asked_of_the_other_library():
    """Our stream is told as the standard says, and our newest version."""
    foreign, stream = Foreign(cu.to_device(np.zeros(4))), cu.Stream()
    for given, told in ((None, 1), (0, 1), (stream, stream.handle), (2, 2), (-1, -1)):
        cu.from_dlpack(foreign, stream=given)
        assert foreign.asked == {"stream": told, "max_version": (1, 1)}


def test_memory_elsewhere_is_refused():
    """Arrays on the host say to_device(); other libraries' kinds of memory are named."""
    for wrong in (np.zeros(3), Foreign(cu.to_device(np.zeros(3)), device=(10, 0))):
        with pytest.raises(BufferError, match="to_device"):
            cu.from_dlpack(wrong)
    with pytest.raises(BufferError, match="to_device"):
        cu.from_dlpack(np.zeros(3).__dlpack__())


def test_kinds_of_memory():
    """Device, managed and pinned memory are told apart, and all of them taken."""
    device = cu.current_context().device.ordinal
    managed, mapped = cu.managed_array(4, np.float32), cu.mapped_array(4, np.float32)
    managed[...], mapped[...] = 5, 6
    for array, kind, value in ((managed, (13, device), 5), (mapped, (3, 0), 6)):
        ours = cu.as_cuda_array(array)
        assert ours.__dlpack_device__() == kind
        taken = cu.from_dlpack(ours)
        assert taken.copy_to_host().tolist() == [value] * 4
    assert cu.device_array(3).__dlpack_device__() == (2, device)
    assert cu.device_array(0).__dlpack_device__() == (2, device)


def test_what_was_asked_for_is_given_or_refused():
    """A copy, none, on the device or on the host."""
    device = cu.to_device(np.arange(4))
    capsule = device.__dlpack__(copy=True, max_version=(1, 0))
    assert cu.from_dlpack(capsule).handle != device.handle
    assert cu.from_dlpack(device, copy=True).handle != device.handle
    device.__dlpack__(dl_device=device.__dlpack_device__(), copy=False)
    assert dlpack.take(device.__dlpack__(dl_device=(1, 0))).device == (1, 0)
    with pytest.raises(BufferError, match="copy=False"):
        device.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="not"):
        device.__dlpack__(dl_device=(2, 99))


def test_numpy_takes_a_copy_on_the_host():
    """numpy.from_dlpack with device="cpu" works where NumPy knows it."""
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy before 2.1 has no device=")
    device = cu.to_device(np.arange(4))
    assert np.from_dlpack(device, device="cpu").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["S3", "M8[s]", ">f4", "V3", [("a", "f4")], "U1"])
def test_types_that_dlpack_lacks(dtype):
    """They are a BufferError that names the type; the array itself is all right."""
    with pytest.raises(BufferError, match="no type"):
        cu.device_array(3, dtype).__dlpack__()


def test_types_that_numpy_lacks():
    """bfloat16 and 8-bit floats are ml_dtypes' or plain bytes; anything else is refused."""
    for code, bits, size in ((4, 16, 2), (10, 8, 1), (12, 8, 1)):
        assert dlpack.type_of(code, bits, 1).itemsize == size
    for code, bits, lanes in ((2, 8, 1), (0, 4, 1), (2, 32, 4), (3, 64, 1), (99, 8, 1), (4, 8, 1)):
        with pytest.raises(BufferError, match="no dtype"):
            dlpack.type_of(code, bits, lanes)


def test_damaged_capsules():
    """What no array is like is refused, and stays the giver's."""
    before = open_hand_overs()
    damage = (("ndim", -1), ("ndim", 65), ("code", 77), ("lanes", 2), ("data", None))
    for field, value in (*damage, ("byte_offset", 2**64 - 2**20)):
        capsule = cu.to_device(np.arange(4)).__dlpack__()
        address = dlpack._capsules[id(capsule)][0]
        setattr(dlpack.DLManagedTensor.from_address(address).tensor, field, value)
        with pytest.raises(BufferError):
            cu.from_dlpack(capsule)
        del capsule
    capsule = cu.to_device(np.arange(4)).__dlpack__(max_version=(1, 0))
    dlpack.DLManagedTensorVersioned.from_address(dlpack._capsules[id(capsule)][0]).major = 2
    with pytest.raises(BufferError, match="DLPack 2"):
        cu.from_dlpack(capsule)
    del capsule
    assert open_hand_overs() == before


def test_sizes_of_the_structures():
    """Those of dlpack.h on 64-bit machines."""
    assert ctypes.sizeof(dlpack.DLTensor) == 48
    assert ctypes.sizeof(dlpack.DLManagedTensor) == 64
    assert ctypes.sizeof(dlpack.DLManagedTensorVersioned) == 80


AT_EXIT = """
import atexit, ctypes
@atexit.register
def last():  # after dlpack's own, which is registered later
    # C code that calls the deleter when Python has ended, as static destructors of libraries do.
    made = dlpack.DLManagedTensorVersioned.from_address(address)
    libc = ctypes.CDLL(None)
    assert libc.__cxa_atexit(ctypes.c_void_p(made.deleter), ctypes.c_void_p(address), None) == 0
    print("done")

import numpy as np, cudadrv as cu
from cudadrv import dlpack
arrays = [cu.to_device(np.arange(4)) for _ in range(3)]
loose = arrays[0].__dlpack__()                   # a capsule that nobody takes
kept = cu.from_dlpack(arrays[1])                 # one of ours
foreign = arrays[2].__dlpack__(max_version=(1, 0))
address = dlpack._capsules[id(foreign)][0]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="C's __cxa_atexit is not on Windows")
def test_nothing_runs_after_python_has_ended(run_python):
    """Capsules and hand-overs that are open at exit do no harm, whoever deletes them then."""
    assert run_python(AT_EXIT).strip() == "done"
