"""Finding devices, what they tell of themselves; contexts: flags, limits, the stack, their end."""

from __future__ import annotations

import types

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import attributes, driver, raw
from tests.device.driver_code import library

NO_SUCH = "there is no device"


@pytest.fixture
def own():
    """A context of our own, made current for the test."""
    before = cu.current_context()
    made = cu.Device(0).create_context()
    yield made
    made.close()
    before.set_current()


def test_devices_are_found_by_bus_and_uuid():
    """The place on the bus and the UUID, in any case of letters, give the same device."""
    for device in cu.devices():
        assert cu.Device(device.pci_bus_id) == device
        assert cu.Device(device.uuid) == device
        assert cu.Device(device.uuid[:4] + device.uuid[4:].upper()).ordinal == device.ordinal
        assert cu.Device(np.int64(device.ordinal)) == device


@pytest.mark.parametrize(
    ("which", "kind"),
    [
        ("GPU-00000000-1111-2222-3333-444444444444", ValueError),
        ("ffff:1f:1f.0", ValueError),
        ("gpu", ValueError),
        ("", ValueError),
        (-1, ValueError),
        (1.5, TypeError),
        (None, TypeError),
    ],
)
def test_unknown_devices_are_named(which, kind):
    """What is no device is an error that lists the devices, or says what to give."""
    with pytest.raises(kind, match=NO_SUCH if kind is ValueError else "device="):
        cu.Device(which)
    if isinstance(which, str):
        with pytest.raises(ValueError, match=cu.Device(0).uuid):
            cu.Device(which)


def test_what_a_device_tells_of_others():
    """A device has no peer access to itself, and no peer attributes."""
    device = cu.Device(0)
    assert not device.can_access_peer(device)
    peer = device.peer_attributes(device)
    assert "ACCESS_SUPPORTED" in list(peer)
    assert set(peer.values()) == {None}
    for call in (device.can_access_peer, device.peer_attributes):
        with pytest.raises(TypeError, match="no Device"):
            call(0)


def test_atomic_operations_between_memories():
    """For each operation the device tells what it does on the host's memory, from driver 13.0."""
    device = cu.Device(0)
    if not raw.available("cuDeviceGetHostAtomicCapabilities"):
        pytest.skip("needs a driver of CUDA 13.0")
    found = device.atomic_capabilities()
    assert {"integer_add", "cas", "float_add"} <= found.keys()
    assert "max" not in found
    kinds = {"signed", "unsigned", "reduction", "scalar_32", "scalar_64", "scalar_128"}
    assert all(each <= kinds | {"vector_32x4"} for each in found.values())
    with pytest.raises(TypeError, match="no Device"):
        device.atomic_capabilities(5)


def test_what_only_some_devices_have():
    """The LUID is Windows' alone; the width of textures has room for what arrays hold."""
    device = cu.Device(0)
    luid = device.luid
    assert luid is None or (len(luid[0]) == 8 and luid[1] > 0)
    assert device.can_limit_sms in (True, False)
    assert device.linear_texture_width(raw.CU_AD_FORMAT_FLOAT, 4) >= 1 << 16
    with pytest.raises(cu.CudaError):
        device.linear_texture_width(raw.CU_AD_FORMAT_FLOAT, 3)


def test_flags_of_a_context():
    """A context is made with flags by name or number, tells them, and changes how it waits."""
    before = cu.current_context()
    for flags in ("sched_yield", ["sched_yield", "lmem_resize_to_max"], 2):
        made = cu.Device(0).create_context(flags)
        assert "sched_yield" in made.flags
        made.flags = "sched_blocking_sync"
        assert "sched_blocking_sync" in made.flags
        assert "sched_yield" not in made.flags
        made.close()
    before.set_current()


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"flags": "spin"}, ValueError, r"no \['spin'\], only sched_auto, sched_spin"),
        ({"flags": ["sched_spin", "sched_yield"]}, ValueError, "one way to wait"),
        ({"flags": -1}, ValueError, "flags=-1"),
        ({"flags": 1.5}, TypeError, "float"),
        ({"sm_count": 0}, ValueError, "sm_count=0"),
        ({"sm_count": "all"}, TypeError, "sm_count='all'"),
        ({"cig": (1, -5)}, ValueError, "cig=-5"),
    ],
)
def test_bad_flags_are_refused(given, kind, message):
    """The error names the flag and lists those there are; no context is left behind."""
    before = cu.current_context()
    with pytest.raises(kind, match=message):
        cu.Device(0).create_context(**given)
    assert cu.current_context() == before


def test_a_part_of_the_multiprocessors():
    """A context for a part of the device tells its number, or the driver says it cannot."""
    before, refused = cu.current_context(), ""
    try:
        made = cu.Device(0).create_context(sm_count=1)
        assert made.sm_count >= 1
        made.close()
        before.set_current()
    except cu.CudaError as error:
        refused = error.name
    # Without the multi-process service even devices that could do it do not.
    assert refused in ("", "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY")
    assert cu.current_context() == before
    assert before.sm_count is None or before.sm_count > 0


def test_every_abi_makes_contexts():
    """Each version of cuCtxCreate that the driver has makes a context that works."""
    before = cu.current_context()
    calls = {
        "cuCtxCreate_v2": (0, 0),
        "cuCtxCreate_v3": (None, 0, 0, 0),
        "cuCtxCreate_v4": (None, 0, 0),
    }
    for name, arguments in calls.items():
        if raw.available(name):
            made = cu.Context(getattr(driver, name)(*arguments), owned=True)
            assert made.is_current
            assert cu.mem_alloc(16).context == made.handle
            made.close()
    before.set_current()


def test_primary_context_and_its_flags():
    """The primary context is active once used; its flags can be changed while it is."""
    device = cu.Device(0)
    context = device.primary_context()
    assert context.is_primary
    assert device.primary_active
    before = device.primary_flags
    device.primary_flags = "sched_yield"
    assert "sched_yield" in device.primary_flags
    device.primary_flags = before
    assert device.primary_flags == before
    with pytest.raises(ValueError, match="no \\['fast'\\]"):
        device.primary_flags = "fast"


def test_an_own_context_is_not_primary(own):
    """A context of our own is another than the primary one, with its own identity."""
    primary = cu.Device(0).primary_context()
    assert not own.is_primary
    assert own != primary
    assert own.id != primary.id
    assert own.api_version >= 3010
    assert own.device == cu.Device(0)


def test_releasing_the_primary_context(run_python):
    """Our use is given back once; what was made in it is closed, and it can be had anew."""
    code = (
        "import cudadrv as cu\n"
        "device = cu.Device(0)\n"
        "context = device.primary_context()\n"
        "context.set_current()\n"
        "memory = cu.mem_alloc(16)\n"
        "device.release_primary()\n"
        "device.release_primary()\n"
        "print(device.primary_active, context.closed)\n"
        "del memory\n"
        "device.primary_context().set_current()\n"
        "print(cu.mem_alloc(16).nbytes)\n"
    )
    assert run_python(code).split() == ["False", "True", "16"]


def test_limits_are_read_and_set(own):
    """Limits are numbers by name; the driver rounds up what is set."""
    limits = own.limits
    assert limits["CU_LIMIT_STACK_SIZE"] == limits["STACK_SIZE"] > 0
    limits["STACK_SIZE"] = 4000
    assert limits["STACK_SIZE"] >= 4000
    assert {"PRINTF_FIFO_SIZE", "MALLOC_HEAP_SIZE"} <= set(limits)
    assert len(dict(limits)) == len(limits)
    with pytest.raises(KeyError, match="NO_SUCH"):
        limits["NO_SUCH"]
    with pytest.raises(ValueError, match="STACK_SIZE=-1"):
        limits["STACK_SIZE"] = -1
    with pytest.raises(TypeError, match="STACK_SIZE='big'"):
        limits["STACK_SIZE"] = "big"
    with pytest.raises(TypeError, match="deleted"):
        del limits["STACK_SIZE"]


def test_a_limit_that_the_driver_does_not_have_is_none(own, monkeypatch):
    """What the driver calls unsupported reads as None, and setting it is the driver's error."""
    members = {**raw.CUlimit.__members__, "CU_LIMIT_OF_THE_FUTURE": 4711}
    monkeypatch.setattr(raw, "CUlimit", types.SimpleNamespace(__members__=members))
    assert own.limits["OF_THE_FUTURE"] is None
    with pytest.raises(cu.CudaError):
        own.limits["OF_THE_FUTURE"] = 1


def test_cache_configuration(own):
    """What kernels prefer, by name."""
    own.cache_config = "prefer_l1"
    assert own.cache_config == "prefer_l1"
    with pytest.raises(ValueError, match="'prefer_shared'"):
        own.cache_config = "shared"


def test_priorities_and_the_l2_cache(own):
    """The most urgent priority is the lowest number; the L2 cache is given back at any time."""
    least, greatest = own.priority_range
    assert greatest <= least == 0
    own.reset_persisting_l2()


def test_an_event_of_a_whole_context(own):
    """An event recorded in a context happens when all its work is done, and can be waited for."""
    event = cu.Event(timing=False)
    cu.memset(cu.mem_alloc(1 << 16), 1)
    own.record(event)
    own.wait(event)
    event.synchronize()
    assert event.done
    with pytest.raises(TypeError, match="not an event"):
        own.record("event")
    event.close()
    with pytest.raises(cu.ClosedError):
        own.wait(event)


def test_a_closed_context_is_refused(own):
    """After close() every use raises ClosedError, of every object for the same context."""
    same = cu.Context.adopt(own.handle)
    own.close()
    own.close()
    for context in (own, same):
        assert context.closed and not context.is_current
        assert "closed" in repr(context)
        for use in (context.push, context.set_current, context.synchronize, context.mem_info):
            with pytest.raises(cu.ClosedError, match="closed"):
                use()
        with pytest.raises(cu.ClosedError):
            _ = context.limits["STACK_SIZE"]


def test_closing_inside_of_a_block_keeps_the_stack():
    """A context closed inside of its ``with`` block takes nothing else off the stack."""
    before = cu.current_context()
    own = cu.Device(0).create_context()
    before.set_current()
    with own:
        own.close()
        assert cu.current_context() == before
    assert cu.current_context() == before


def test_adopting_contexts(own):
    """A handle, or an object that has one, becomes a context that we do not destroy."""

    class Foreign:
        handle = own.handle

    for foreign in (own.handle, Foreign(), own):
        adopted = cu.Context.adopt(foreign)
        assert adopted == own
        if foreign is not own:
            adopted.close()
            assert not own.closed
    for wrong, kind in ((0, ValueError), (-5, ValueError), ("x", TypeError), (None, TypeError)):
        with pytest.raises(kind, match="context="):
            cu.Context.adopt(wrong)


def test_peer_access_between_contexts(own):
    """A context needs no access to itself; two on one device have none to each other."""
    with pytest.raises(ValueError, match="its own memory"):
        own.enable_peer_access(own)
    with pytest.raises(TypeError, match="no context"):
        own.enable_peer_access(5)
    primary = cu.Device(0).primary_context()
    if cu.is_emulator():
        with pytest.raises(cu.CudaError, match="PEER_ACCESS_UNSUPPORTED"):
            own.enable_peer_access(primary)
        own.disable_peer_access(primary)


def test_names_of_flags():
    """Numbers become names and back, and every flag of the header has one."""
    for names in ({"sched_auto"}, {"sched_spin", "map_host"}, {"sched_auto", "sync_memops"}):
        assert attributes.context_flag_names(attributes.context_flags(names)) == names
    assert attributes.context_flags(0x45) == 0x45
    assert sum(set(attributes.flag_numbers().values())) == raw.CU_CTX_FLAGS_MASK


def test_what_lived_in_a_closed_context_is_let_go():
    """Closing memory whose context is gone does nothing, and the next context is not harmed."""
    before = cu.current_context()
    own = cu.Device(0).create_context()
    memory = cu.mem_alloc(24)
    own.close()
    before.set_current()
    memory.close()
    library()["nothing"].launch(1, 1)
    before.synchronize()


def test_contexts_come_and_go():
    """Twenty contexts with memory, one after another, leave the device's memory as it was."""
    before = cu.current_context()
    cu.Device(0).create_context().close()
    before.set_current()
    free, _ = before.mem_info()
    for _ in range(20):
        made = cu.Device(0).create_context()
        cu.memset(cu.mem_alloc(64 << 20), 0)
        made.close()
        before.set_current()
    assert before.mem_info()[0] >= free - (256 << 20)
