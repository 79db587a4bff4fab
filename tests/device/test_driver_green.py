"""Green contexts: splitting multiprocessors, and running on a part of them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import raw
from cudadrv.errors import NotSupportedByDriver
from cudadrv.green import GreenContext, SmResource
from tests.device.driver_code import library


@pytest.fixture(autouse=True)
def _has_green_contexts():
    """Skip on drivers without green contexts."""
    if not raw.available("cuGreenCtxCreate"):
        pytest.skip("green contexts need a driver of CUDA 12.4")


@pytest.fixture
def whole():
    """All multiprocessors of the device."""
    return SmResource.of(cu.Device(0))


@pytest.fixture
def green(whole):
    """A green context on the smallest part of the device that can be split off."""
    [part], _ = whole.split(1, groups=1)
    made = GreenContext(part)
    yield made
    made.close()


def test_the_structure_has_the_size_of_every_version():
    """CUdevResource has 144 bytes with the numbers at byte 96, in each version of its layout."""
    assert ctypes.sizeof(raw.CUdevResource) == 144
    resource = raw.CUdevResource()
    resource.sm.smCount = 7
    assert bytes(resource)[96:100] == (7).to_bytes(4, "little")


def test_a_device_has_all_its_multiprocessors(whole):
    """The device and the primary context have as many as the attribute says."""
    count = cu.Device(0).attributes["MULTIPROCESSOR_COUNT"]
    assert whole.count == count
    assert SmResource.of(cu.Device(0).primary_context()).count == count
    assert whole.smallest is None or 1 <= whole.smallest <= count
    assert whole.alignment is None or 1 <= whole.alignment <= count


def test_parts_do_not_exceed_the_whole(whole):
    """Parts have at least as many as asked for, and with the rest at most the whole."""
    parts, rest = whole.split(1)
    assert parts
    assert all(part.count >= 1 for part in parts)
    assert sum(part.count for part in parts) + (rest.count if rest else 0) <= whole.count
    [one], others = whole.split(1, groups=1)
    assert one.count == parts[0].count
    assert (others.count if others else 0) <= whole.count - one.count


def test_nothing_is_left_of_a_whole(whole):
    """Splitting off everything leaves no rest."""
    if not cu.is_emulator():
        pytest.skip("which sizes a GPU has depends on its clusters of multiprocessors")
    [every], nothing = whole.split(whole.count)
    assert every.count == whole.count
    assert nothing is None


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((0,), ValueError, "count=0"),
        ((-1,), ValueError, "count=-1"),
        ((100000,), ValueError, "there are only"),
        (("many",), TypeError, "count='many'"),
        ((1, 0), ValueError, "groups=0"),
    ],
)
def test_bad_splits_are_refused(whole, arguments, kind, message):
    """Numbers that are none, or too large, name themselves."""
    with pytest.raises(kind, match=message):
        whole.split(*arguments)


def test_what_has_no_multiprocessors():
    """Only devices and contexts have multiprocessors; green contexts are made of resources."""
    with pytest.raises(TypeError, match="no Device, Context or GreenContext"):
        SmResource.of(5)
    for wrong in ([], ["x"], [None]):
        with pytest.raises(TypeError, match="pass one SmResource or more"):
            GreenContext(wrong)


def test_kernels_run_in_a_green_context(green):
    """Work of the green context's stream and of the context itself sees the common memory."""
    kernel = library()["scale"]
    out, x = cu.to_device(np.zeros(64, np.float32)), cu.to_device(np.arange(64, dtype=np.float32))
    cu.current_context().synchronize()
    with green.stream() as stream:
        kernel.launch(1, 64, out, 2.0, x, 64, stream=stream)
        stream.synchronize()
    np.testing.assert_array_equal(out.copy_to_host(), 2 * np.arange(64))
    with green.as_context() as context:
        assert context.is_current
        assert context.device == green.device
        kernel.launch(1, 64, out, 3.0, x, 64)
        context.synchronize()
    np.testing.assert_array_equal(out.copy_to_host(), 3 * np.arange(64))


def test_a_green_context_knows_its_part(green, whole):
    """Its multiprocessors are those it was made of, and it is not the primary context."""
    assert 1 <= green.sms.count <= whole.count
    with green.as_context() as context:
        assert SmResource.of(context).count == green.sms.count
    if raw.available("cuGreenCtxGetId"):
        assert green.id != cu.Device(0).primary_context().id


def test_events_of_a_green_context(green):
    """An event recorded in it happens when its work is done; it can wait for another's."""
    event = cu.Event(timing=False)
    with green.stream() as stream:
        library()["nothing"].launch(1, 1, stream=stream)
        green.record(event)
        event.synchronize()
        assert event.done
        green.wait(event)
        stream.synchronize()
    with pytest.raises(TypeError, match="no event"):
        green.record("event")


def test_a_closed_green_context_is_refused(whole):
    """After close() it and its context raise ClosedError, and it is off the thread's stack."""
    before = cu.current_context()
    [part], _ = whole.split(1, groups=1)
    green = GreenContext(part)
    context = green.as_context()
    context.push()
    green.close()
    green.close()
    assert cu.current_context() == before
    with pytest.raises(cu.ClosedError):
        green.stream()
    with pytest.raises(cu.ClosedError):
        context.push()


def test_dividing_by_structure_needs_a_newer_driver(whole):
    """Groups of different sizes come with driver 13.1; before, the error says so."""
    if raw.available("cuDevSmResourceSplit"):
        least = whole.smallest or 2
        [part], _ = whole.divide([{"count": least, "backfill": True}])
        assert part.count == least
    else:
        with pytest.raises(NotSupportedByDriver, match=r"13\.1"):
            whole.divide([2])
    with pytest.raises(ValueError, match=r"no \['size'\]"):
        whole.divide([{"size": 2}])
