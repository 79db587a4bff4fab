"""Launch attributes: every one by its keyword, and prepared launches that have them."""

from __future__ import annotations

import ctypes
import gc
import re

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import launch_attributes, launch_config, raw
from tests.device.driver_code import PTX, library


@pytest.fixture
def extents():
    """The kernel that writes its grid and block, and its array."""
    return library()["extents"], cu.device_array(6, np.uint32)


def made_of(kernel, grid=4, **attributes):
    """The CUlaunchAttributes of a launch, by number."""
    made = launch_config.config(kernel, grid, 32, 0, None, attributes)
    assert made.raw.numAttrs == len(made.attributes)
    return {each.id: each.value for each in made.attributes}


def test_every_attribute_of_the_header_has_a_row():
    """The table knows all of CUlaunchAttributeID."""
    names = {
        name.removeprefix(launch_attributes.PREFIX).lower()
        for name in raw.CUlaunchAttributeID.__members__
    }
    assert names - {"ignore", "max"} == set(launch_attributes.TABLE)
    fields = {field for field, _ in raw.CUlaunchAttributeValue._fields_}
    assert fields - {"pad"} == {row.field for row in launch_attributes.TABLE.values()}


@pytest.mark.parametrize(
    ("given", "number", "field", "value"),
    [
        ({"cooperative": True}, 2, "cooperative", 1),
        ({"priority": -1}, 8, "priority", -1),
        (
            {"programmatic_stream_serialization": True},
            6,
            "programmaticStreamSerializationAllowed",
            1,
        ),
        ({"mem_sync_domain": "remote"}, 10, "memSyncDomain", 1),
        ({"preferred_shared_memory_carveout": 50}, 14, "sharedMemCarveout", 50),
        ({"nvlink_util_centric_scheduling": 1}, 16, "nvlinkUtilCentricScheduling", 1),
        ({"portable_cluster_size_mode": "require_portable"}, 17, "portableClusterSizeMode", 1),
        ({"shared_memory_mode": "allow_non_portable"}, 18, "sharedMemoryMode", 2),
        (
            {"cluster_scheduling_policy_preference": "load_balancing"},
            5,
            "clusterSchedulingPolicyPreference",
            2,
        ),
        ({"cluster_scheduling_policy_preference": 1}, 5, "clusterSchedulingPolicyPreference", 1),
    ],
)
def test_numbers_and_names_reach_their_field(extents, given, number, field, value):
    """A flag, number or name stands in the field of the union that cuda.h gives it."""
    [(found, union)] = made_of(extents[0], **given).items()
    assert (found, getattr(union, field)) == (number, value)


def test_structures_reach_their_field(extents):
    """Events, memory windows, domain maps and nodes become their structs."""
    kernel, out = extents
    event = cu.Event(timing=False)
    window = {"memory": out, "hit_ratio": 0.5, "miss": "normal"}
    values = made_of(
        kernel,
        programmatic_event={"event": event, "trigger_at_block_start": True},
        launch_completion_event=event,
        access_policy_window=window,
        mem_sync_domain_map=(0, 1),
        device_updatable_kernel_node=True,
    )
    assert values[7].programmaticEvent.event == event.handle
    assert (values[7].programmaticEvent.flags, values[7].programmaticEvent.triggerAtBlockStart) == (
        0,
        1,
    )
    assert values[12].launchCompletionEvent.event == event.handle
    policy = values[1].accessPolicyWindow
    assert (policy.base_ptr, policy.num_bytes, policy.hitRatio) == (out.handle, 24, 0.5)
    assert (policy.hitProp, policy.missProp) == (2, 0)
    assert (values[9].memSyncDomainMap.default_, values[9].memSyncDomainMap.remote) == (0, 1)
    assert values[13].deviceUpdatableKernelNode.deviceUpdatable == 1


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"colour": 1}, TypeError, "no attribute 'colour'; it has: access_policy_window"),
        ({"synchronization_policy": "spin"}, TypeError, "no attribute 'synchronization_policy'"),
        ({"priority": "high"}, TypeError, "priority='high'"),
        ({"priority": 1 << 40}, ValueError, "priority=1099511627776: it is a number from"),
        ({"programmatic_stream_serialization": 2}, ValueError, "True or False"),
        ({"preferred_shared_memory_carveout": 101}, ValueError, "from 0 to 100"),
        ({"mem_sync_domain": "far"}, ValueError, "one of default, remote"),
        ({"mem_sync_domain_map": 3}, TypeError, "mem_sync_domain_map=3"),
        ({"mem_sync_domain_map": (0, 300)}, ValueError, "from 0 to 255"),
        ({"mem_sync_domain_map": (0, 1, 2)}, ValueError, "mem_sync_domain_map"),
        ({"access_policy_window": 5}, TypeError, "a dict with memory"),
        ({"access_policy_window": {"nbytes": 4}}, ValueError, r"\['memory'\] is missing"),
        ({"access_policy_window": {"memory": 1, "size": 4}}, ValueError, r"no \['size'\]"),
        ({"access_policy_window": {"memory": 4096}}, ValueError, "needs nbytes"),
        (
            {"access_policy_window": {"memory": 1, "nbytes": 4, "hit_ratio": 2}},
            ValueError,
            "from 0 to 1",
        ),
        (
            {"access_policy_window": {"memory": 1, "nbytes": 4, "miss": "persisting"}},
            ValueError,
            "not persisting",
        ),
        ({"launch_completion_event": "e"}, TypeError, "launch_completion_event='e'"),
        ({"smem": "x"}, TypeError, "smem='x'"),
        ({"smem": -1}, ValueError, "smem=-1"),
        ({"cluster": 2, "cluster_dimension": 2}, TypeError, "give one of them"),
        ({"cluster": 0}, ValueError, "cluster=0: every dimension"),
        ({"cluster": (1, 1, 1, 1)}, ValueError, "one to three dimensions"),
        ({"cluster": "2"}, TypeError, "cluster='2'"),
        ({"cluster": 3}, ValueError, r"cluster=3 does not divide grid=\(32, 1, 1\)"),
        ({"cluster": (2, 2)}, ValueError, "does not divide"),
        ({"cluster": 16}, ValueError, "more than 8 blocks"),
        ({"cluster": 32, "portable_cluster_size_mode": 2}, ValueError, "more than 16 blocks"),
        ({"preferred_cluster_dimension": 2}, ValueError, "needs cluster"),
        ({"cluster": 4, "preferred_cluster_dimension": 2}, ValueError, "multiples of"),
    ],
)
def test_bad_attributes_are_refused(extents, given, kind, message):
    """Each says which attribute is wrong and what it takes, before the driver is called."""
    kernel, out = extents
    if "cluster" in given:
        needs_clusters()
    with pytest.raises(kind, match=message):
        kernel.launch(32, 32, out, **given)
    with pytest.raises(kind, match=message):
        kernel.prepare("P", 32, 32, **given)


def test_events_of_attributes_are_checked(extents):
    """An event with timing, or closed, is refused; also by a launch prepared before."""
    kernel, out = extents
    with pytest.raises(ValueError, match="timing=False"):
        kernel.launch(1, 32, out, launch_completion_event=cu.Event())
    event = cu.Event(timing=False)
    run = kernel.prepare("P", 1, 32, launch_completion_event={"event": event})
    run(out)
    event.close()
    with pytest.raises(cu.ClosedError, match="Event was closed"):
        run(out)
    with pytest.raises(cu.ClosedError, match="Event was closed"):
        kernel.launch(1, 32, out, launch_completion_event=event)


def test_attributes_are_passed_to_the_driver(extents):
    """Launches with hints and events run, plain and prepared, and the event is recorded."""
    kernel, out = extents
    event = cu.Event(timing=False)
    attributes = {
        "priority": 0,
        "preferred_shared_memory_carveout": 25,
        "launch_completion_event": event,
        "mem_sync_domain": "default",
        "access_policy_window": {"memory": out, "hit": "normal"},
    }
    kernel.launch(3, 32, out, **attributes)
    assert out.copy_to_host().tolist() == [3, 1, 1, 32, 1, 1]
    event.synchronize()
    assert event.done
    run = kernel.prepare("P", (2, 2), 64, **attributes)
    gc.collect()
    run(out)
    assert out.copy_to_host().tolist() == [2, 2, 1, 64, 1, 1]


def test_overlap_of_launches(extents):
    """Programmatic serialization lets launches overlap; kernels that do not ask stay in order."""
    kernel, out = extents
    if kernel.device.compute_capability < (9, 0):
        pytest.skip("programmatic launches came with sm_90")
    run = kernel.prepare("P", 5, 32, programmatic_stream_serialization=True)
    with cu.Stream() as stream:
        run(out)
        kernel.launch(6, 32, out, stream=stream, programmatic_stream_serialization=True)
        stream.synchronize()
    cu.current_context().synchronize()
    assert out.copy_to_host()[0] in (5, 6)


def test_attributes_of_graph_nodes_are_refused_outside_of_graphs(extents):
    """A device-updatable launch outside of a capture is an error of the driver that names it."""
    kernel, out = extents
    with pytest.raises(cu.CudaError, match="attributes device_updatable_kernel_node"):
        kernel.launch(1, 32, out, device_updatable_kernel_node=True)


CLUSTERS = """
.version 7.8
.target sm_90
.address_size 64

// out[12 * block + ...] = clusterid, nclusterid, cluster_ctaid, cluster_nctaid, ranks
.visible .entry clusters(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<2>;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %ctaid.y;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mul.wide.u32 %d1, %r0, 40;
    add.u64 %d0, %d0, %d1;
    REGISTERS
    ret;
}
"""
NAMES = ["clusterid.x", "clusterid.y", "nclusterid.x", "nclusterid.y", "cluster_ctaid.x"]
NAMES += ["cluster_ctaid.y", "cluster_nctaid.x", "cluster_nctaid.y", "cluster_ctarank"]
NAMES += ["cluster_nctarank"]


def cluster_kernel(directive=""):
    """A kernel that writes its cluster's special registers for each block."""
    lines = [
        f"mov.u32 %r3, %{name};\n    st.global.u32 [%d0+{4 * i}], %r3;"
        for i, name in enumerate(NAMES)
    ]
    text = CLUSTERS.replace("REGISTERS", "\n    ".join(lines))
    return cu.load(text.replace("out)\n", f"out)\n{directive}\n"))["clusters"]


def needs_clusters():
    """Skip on devices without clusters."""
    if not cu.Device(0).attributes["CLUSTER_LAUNCH"]:
        pytest.skip("clusters came with sm_90")


def test_a_cluster_launch_groups_blocks():
    """Blocks know their cluster, their place in it and its size."""
    needs_clusters()
    kernel, out = cluster_kernel(), cu.device_array((2, 8, 10), np.uint32)
    kernel.launch((8, 2), 1, out, cluster=(2, 2))
    found = out.copy_to_host()
    for y in range(2):
        for x in range(8):
            expected = [x // 2, y // 2, 4, 1, x % 2, y % 2, 2, 2, x % 2 + 2 * (y % 2), 4]
            assert found[y, x].tolist() == expected
    kernel.prepare("P", 8, 1, cluster=4)(out)
    assert out.copy_to_host()[0, 5].tolist() == [1, 0, 2, 1, 1, 0, 4, 1, 1, 4]
    kernel.launch(8, 1, out)
    assert out.copy_to_host()[0, 5].tolist() == [5, 0, 8, 1, 0, 0, 1, 1, 0, 1]


def test_a_kernel_with_its_own_cluster_size():
    """Code built for clusters of two is launched so, and refuses another size."""
    needs_clusters()
    kernel = cluster_kernel(".reqnctapercluster 2, 1, 1")
    out = cu.device_array((8, 10), np.uint32)
    kernel.launch(8, 1, out)
    assert out.copy_to_host()[5].tolist() == [2, 0, 4, 1, 1, 0, 2, 1, 1, 2]
    assert kernel.attributes["REQUIRED_CLUSTER_WIDTH"] == 2
    with pytest.raises(cu.CudaError, match="cluster_dimension"):
        kernel.launch(8, 1, out, cluster=4)


def test_sixteen_blocks_need_permission():
    """More than eight blocks a cluster is allowed by the kernel's attribute."""
    needs_clusters()
    kernel = cluster_kernel()
    out = cu.device_array((16, 10), np.uint32)
    with pytest.raises(ValueError, match="NON_PORTABLE_CLUSTER_SIZE_ALLOWED"):
        kernel.launch(16, 1, out, cluster=16)
    kernel.attributes["NON_PORTABLE_CLUSTER_SIZE_ALLOWED"] = 1
    kernel.launch(16, 1, out, cluster=16)
    assert out.copy_to_host()[15].tolist() == [0, 0, 1, 1, 15, 0, 16, 1, 15, 16]


def test_none_is_left_out(extents):
    """An attribute that is None is as if it were not given."""
    assert made_of(extents[0], cluster=None, priority=None, cooperative=False) == {}


def test_text_of_a_configuration(extents):
    """Errors of launches show the sizes and the attributes."""
    made = launch_config.config(extents[0], (4, 2), 32, 16, None, {"priority": 0})
    assert made.text == "grid=(4, 2, 1), block=(32, 1, 1), smem=16, attributes priority"


def test_a_prepared_launch_can_be_read(extents):
    """The generated function has a source, so that tracebacks show its lines."""
    import inspect

    run = extents[0].prepare("P", 1, 32)
    assert "start(made, function, memory[1], None)" in inspect.getsource(run)


def test_arguments_of_every_kind_in_a_prepared_launch(extents):
    """Memory, arrays, addresses, None and foreign arrays, in any order, reach the kernel."""
    kernel = library()["scale"]
    out, x = cu.to_device(np.zeros(4, np.float32)), cu.to_device(np.arange(4, dtype=np.float32))

    class Foreign:
        __cuda_array_interface__ = x.__cuda_array_interface__

    run = kernel.prepare("PfPi", 1, 32)
    for factor, source in enumerate((x, x.memory, x.handle, Foreign(), np.uint64(x.handle)), 1):
        run(out, float(factor), source, 4)
        np.testing.assert_array_equal(out.copy_to_host(), np.arange(4) * factor)
    run(None, 1.0, None, 0)
    with pytest.raises(TypeError, match="no device memory"):
        run(out, 1.0, "x", 4)
    x.close()
    with pytest.raises(cu.ClosedError):
        run(out, 1.0, x, 4)


@pytest.mark.parametrize("convert", [int, np.uint8, np.int64, bool])
def test_repeated_launches_lay_out_the_same(convert):
    """The second launch with the same types, which is packed in one step, gives the same bits."""
    kernel, out = cu.load(PTX)["mixed"], cu.device_array(5, np.uint64)
    pair = bytes(range(16))
    expected = [1, 7, np.array(-0.5).view(np.uint64), *np.frombuffer(pair, np.uint64)]
    for _ in range(3):
        small = convert(1) if convert is not np.int64 else np.uint8(1)
        kernel.launch(1, 1, out, small, np.uint16(7), -0.5, pair)
        assert out.copy_to_host().tolist() == expected


def test_numbers_at_the_edges_of_their_parameters():
    """Also after many launches: the largest unsigned and the least signed numbers arrive."""
    kernel, out = cu.load(PTX)["scale"], cu.to_device(np.zeros(4, np.float32))
    x = cu.to_device(np.arange(4, dtype=np.float32))
    for count in (4, -1, (1 << 32) - 4, 0x7FFFFFFF, np.int32(-5), np.uint32(4), True):
        for factor in (2.0, np.float32(2), np.float16(2).astype(np.float32)):
            cu.memset(out, 0)
            kernel.launch(1, 4, out, factor, x, count)
            signed = int(np.int64(count).astype(np.int32))
            expected = [2.0 * i if i < signed else 0.0 for i in range(4)]
            assert out.copy_to_host().tolist() == expected


def test_wrong_arguments_are_refused_after_good_ones():
    """Launches that went well before do not let wrong ones through."""
    kernel, out = cu.load(PTX)["scale"], cu.to_device(np.zeros(4, np.float32))
    for _ in range(3):
        kernel.launch(1, 4, out, 2.0, out, 4)
    with pytest.raises(OverflowError, match="argument 3: 4294967296 does not fit"):
        kernel.launch(1, 4, out, 2.0, out, 1 << 32)
    with pytest.raises(OverflowError, match="argument 1"):
        kernel.launch(1, 4, out, 1e300, out, 4)
    with pytest.raises(TypeError, match="takes 4 arguments"):
        kernel.launch(1, 4, out, 2.0, out)
    with pytest.raises(TypeError, match="argument 0"):
        kernel.launch(1, 4, "out", 2.0, out, 4)
    gone = cu.to_device(np.zeros(4, np.float32))
    kernel.launch(1, 4, gone, 2.0, out, 4)
    gone.close()
    with pytest.raises(cu.ClosedError, match="argument 0"):
        kernel.launch(1, 4, gone, 2.0, out, 4)


def test_a_changed_list_is_another_grid(extents):
    """A list for the grid may be changed between launches; a closed stream is noticed."""
    kernel, out = extents
    grid = [2, 1]
    for expected in (2, 3):
        grid[0] = expected
        kernel.launch(grid, 32, out)
        assert out.copy_to_host()[0] == expected
    stream = cu.Stream()
    kernel.launch(1, 32, out, stream=stream)
    kernel.launch(1, 32, out, stream=stream)
    stream.close()
    with pytest.raises(cu.ClosedError, match="Stream was closed"):
        kernel.launch(1, 32, out, stream=stream)


def test_an_int_is_a_number_where_the_parameter_is_a_float():
    """PTX tells which parameters are floats: an int becomes one, instead of its bits."""
    kernel, out = cu.load(PTX)["scale"], cu.device_array(4, np.float32)
    assert kernel.floats == [False, True, False, False]
    x = cu.to_device(np.arange(4, dtype=np.float32))
    for _ in range(2):
        kernel.launch(1, 4, out, 3, x, 4)
        assert out.copy_to_host().tolist() == [0, 3, 6, 9]
        kernel.launch(1, 4, out, True, x, 4)
        assert out.copy_to_host().tolist() == [0, 1, 2, 3]
    kernel.launch(1, 4, out, np.float32(2).tobytes(), x, 4)
    assert out.copy_to_host().tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, 2.0, "2.0 is a float, but the parameter is an integer or an address"),
        (0, np.float64(2), "is a floating-point number, but the parameter is an integer"),
        (1, np.int32(2), "is an integer or an address, but the parameter is a floating-point"),
        (1, ctypes.c_int(2), "is an integer or an address, but the parameter is a floating-point"),
        (3, ctypes.c_float(2), "is a floating-point number, but the parameter is an integer"),
        (3, 2.0, "2.0 is a float, but the parameter is an integer"),
    ],
)
def test_numbers_of_the_other_kind_are_refused(position, value, message):
    """A float for an integer or a pointer, or typed the other way, is no bit pattern by mistake."""
    kernel, out = library()["scale"], cu.device_array(4, np.float32)
    arguments = [out, 1.0, out, 4]
    arguments[position] = value
    for _ in range(2):
        with pytest.raises(TypeError, match=f"argument {position}: .*{re.escape(message)}"):
            kernel.launch(1, 4, *arguments)


def test_letters_of_the_other_kind_are_refused():
    """A prepared launch compares its letters with the kinds of the parameters as well."""
    for letters, wrong in (("PiPi", 1), ("PfPf", 3), ("dfPi", 0)):
        with pytest.raises(TypeError, match=f"argument {wrong} of kernel 'scale' is"):
            library()["scale"].prepare(letters, 1, 32)


def test_a_device_array_of_no_dimensions_is_an_address():
    """A foreign array without dimensions is passed as its address, whatever its numbers are."""
    kernel, x = library()["scale"], cu.to_device(np.float32(5))
    out = cu.device_array(1, np.float32)

    class Foreign:
        __cuda_array_interface__ = x.__cuda_array_interface__
        dtype, shape = np.dtype(np.float32), ()

    for source in (x, Foreign()):
        kernel.launch(1, 1, out, 2.0, source, 1)
        assert out.copy_to_host().tolist() == [10]
