"""What contexts and green contexts ask of drivers of every age, and the structs they pass."""

from __future__ import annotations

import ctypes
import struct

import pytest

import cudadrv as cu
from cudadrv import raw
from cudadrv.errors import NotSupportedByDriver
from cudadrv.green import GreenContext, SmResource
from tests.unit.fake_driver import FakeDriver, installed, store

CONTEXT = 0x5000


def device_functions():
    """What finding a device and its attributes needs."""

    def stored(value):
        return lambda out, *others: store(out, ctypes.c_int, value)

    return {
        "cuDeviceGetCount": stored(1),
        "cuDeviceGet": stored(0),
        "cuDeviceGetAttribute": stored(9),
        "cuCtxGetDevice": stored(0),
        "cuCtxGetCurrent": lambda out: store(out, ctypes.c_void_p, CONTEXT),
        "cuCtxPushCurrent_v2": lambda context: 0,
        "cuCtxPopCurrent_v2": lambda out: store(out, ctypes.c_void_p, CONTEXT),
        "cuCtxDestroy_v2": lambda context: 0,
        "cuDevicePrimaryCtxRetain": lambda out, device: store(out, ctypes.c_void_p, CONTEXT),
    }


def made(out, *others):
    """A call that makes a context."""
    return store(out, ctypes.c_void_p, CONTEXT + 16)


def driver_with(version=13000, **functions):
    """A driver that has a device, and *functions*."""
    return FakeDriver(version, **{**device_functions(), **functions})


def test_a_plain_context_is_made_by_the_oldest_call():
    """Without parameters cuCtxCreate_v2 does; where it is gone, cuCtxCreate_v4."""
    newer = {"cuCtxCreate_v3": made, "cuCtxCreate_v4": made}
    with installed(driver_with(cuCtxCreate_v2=made, **newer)) as fake:
        context = cu.Device(0).create_context("sched_spin")
        assert fake.called("cuCtxCreate_v2")[0][1:] == (1, 0)
        context.close()
    with installed(driver_with(**newer)) as fake:
        cu.Device(0).create_context(["sched_yield", "map_host"]).close()
        [(_, parameters, flags, device)] = fake.called("cuCtxCreate_v4")
        assert (bool(parameters), flags, device) == (True, 10, 0)
        assert not fake.called("cuCtxCreate_v3")


def test_a_part_of_the_multiprocessors_is_asked_for():
    """The affinity is a CUexecAffinityParam with the number of multiprocessors, in v3 and v4."""
    seen = []

    def third(out, affinity, count, flags, device):
        found = raw.CUexecAffinityParam.from_address(affinity)
        seen.append((found.type, found.param.smCount.val, count))
        return made(out)

    def fourth(out, parameters, flags, device):
        given = raw.CUctxCreateParams.from_address(parameters)
        assert not given.cigParams
        return third(out, given.execAffinityParams, given.numExecAffinityParams, flags, device)

    for functions in ({"cuCtxCreate_v3": third}, {"cuCtxCreate_v4": fourth}):
        with installed(driver_with(cuCtxCreate_v2=made, **functions)):
            cu.Device(0).create_context(sm_count=12).close()
    assert seen == [(raw.CU_EXEC_AFFINITY_TYPE_SM_COUNT, 12, 1)] * 2


def test_a_context_in_graphics_is_made_by_the_newest_call():
    """The parameters of CUDA in graphics are passed by cuCtxCreate_v4 alone."""
    seen = []

    def fourth(out, parameters, flags, device):
        given = raw.CUctxCreateParams.from_address(parameters)
        shared = raw.CUctxCigParam.from_address(given.cigParams)
        seen.append((given.numExecAffinityParams, shared.sharedDataType, shared.sharedData))
        return made(out)

    with installed(driver_with(cuCtxCreate_v2=made, cuCtxCreate_v4=fourth)):
        cu.Device(0).create_context(cig=(1, 0x7000)).close()
    assert seen == [(0, raw.CIG_DATA_TYPE_D3D12_COMMAND_QUEUE, 0x7000)]
    old = driver_with(12000, cuCtxCreate_v2=made)
    with installed(old), pytest.raises(NotSupportedByDriver, match=r"12\.5"):
        cu.Device(0).create_context(cig=(1, 0x7000))


def test_an_old_driver_has_no_parts():
    """A part of the multiprocessors needs driver 11.4, and the error says so."""
    old = driver_with(11000, cuCtxCreate_v2=made)
    with installed(old), pytest.raises(NotSupportedByDriver, match=r"11\.4"):
        cu.Device(0).create_context(sm_count=2)


def test_peer_access_that_is_there_already_is_no_error():
    """Enabling twice and disabling what is not enabled do nothing; other codes are errors."""
    answers = {"cuCtxEnablePeerAccess": 704, "cuCtxDisablePeerAccess": 705}
    functions = {name: lambda *_, code=code: code for name, code in answers.items()}
    with installed(driver_with(**functions)) as fake:
        one, other = cu.Context(CONTEXT), cu.Context(CONTEXT + 32)
        one.enable_peer_access(other)
        one.disable_peer_access(other)
        assert fake.called("cuCtxEnablePeerAccess") == [(CONTEXT + 32, 0)]
    apart = driver_with(cuCtxEnablePeerAccess=lambda *_: 217)
    with installed(apart), pytest.raises(cu.CudaError, match="PEER_ACCESS_UNSUPPORTED"):
        one.enable_peer_access(other)


def sm_resource(out, count):
    """Write a CUdevResource of *count* multiprocessors."""
    found = raw.CUdevResource.from_address(out)
    found.type, found.sm.smCount = raw.CU_DEV_RESOURCE_TYPE_SM, count
    return 0


def green_driver(**functions):
    """A driver of an H200's 132 multiprocessors that splits them in eights."""

    def split(result, count, given, rest, flags, least):
        number = ctypes.c_uint.from_address(count)
        whole = raw.CUdevResource.from_address(given).sm.smCount
        if not result:
            number.value = whole // 8
            return 0
        for i in range(number.value):
            sm_resource(result + 144 * i, 8)
        return sm_resource(rest, whole - 8 * number.value)

    known = {
        "cuDeviceGetDevResource": lambda device, out, kind: sm_resource(out, 132),
        "cuDevSmResourceSplitByCount": split,
        "cuDevResourceGenerateDesc": lambda out, *others: store(out, ctypes.c_void_p, 0x9000),
        "cuGreenCtxCreate": lambda out, *others: store(out, ctypes.c_void_p, 0xA000),
        "cuGreenCtxDestroy": lambda green: 0,
        "cuCtxFromGreenCtx": lambda out, green: store(out, ctypes.c_void_p, 0xB000),
    }
    return driver_with(**{**known, **functions})


def test_splitting_asks_for_the_number_of_parts_first():
    """The parts are counted with no result, then made; what is left over is the rest."""
    with installed(green_driver()) as fake:
        parts, rest = SmResource.of(cu.Device(0)).split(8, large_clusters=True)
        assert [part.count for part in parts] == [8] * 16
        assert rest.count == 4
        counted, split = fake.called("cuDevSmResourceSplitByCount")
        assert (counted[0], counted[3]) == (None, None)
        assert split[0] and split[4:] == (2, 8)
        assert repr(parts[0]) == "SmResource(8 multiprocessors)"
        # Before 13.1 the driver tells no more than the number.
        assert (parts[0].smallest, parts[0].alignment) == (None, None)


def test_groups_are_described_to_the_driver():
    """Each group is a CU_DEV_SM_RESOURCE_GROUP_PARAMS of 64 bytes, all else zero."""
    assert ctypes.sizeof(raw.CU_DEV_SM_RESOURCE_GROUP_PARAMS) == 64
    seen = []

    def split(result, groups, given, rest, flags, wanted):
        kind = raw.CU_DEV_SM_RESOURCE_GROUP_PARAMS * groups
        seen.extend(bytes(each) for each in kind.from_address(wanted))
        sm_resource(result, 16)
        return sm_resource(result + 144, 8)

    with installed(green_driver(cuDevSmResourceSplit=split)):
        whole = SmResource.of(cu.Device(0))
        parts, rest = whole.divide([16, {"count": 8, "coscheduled": 4, "backfill": True}])
    assert [part.count for part in parts] == [16, 8]
    assert rest is None
    numbers = [list(struct.unpack("<16I", each)) for each in seen]
    assert numbers == [[16] + [0] * 15, [8, 4, 0, 1] + [0] * 12]


def test_a_green_context_has_a_default_stream():
    """The descriptor is made of the resources, and the flag that older drivers need is set."""
    with installed(green_driver()) as fake:
        parts, _ = SmResource.of(cu.Device(0)).split(8)
        green = GreenContext(parts[:2])
        [(_, resources, count)] = fake.called("cuDevResourceGenerateDesc")
        assert resources and count == 2
        [(_, described, device, flags)] = fake.called("cuGreenCtxCreate")
        assert (described, device, flags) == (0x9000, 0, raw.CU_GREEN_CTX_DEFAULT_STREAM)
        context = green.as_context()
        assert context.handle == 0xB000
        green.close()
        assert fake.called("cuGreenCtxDestroy") == [(0xA000,)]
        with pytest.raises(cu.ClosedError):
            _ = context.handle


def test_green_contexts_need_a_newer_driver():
    """Before 12.4 the error names the version."""
    old = driver_with(12020)
    with installed(old), pytest.raises(NotSupportedByDriver, match=r"12\.4"):
        SmResource.of(cu.Device(0))
