"""Occupancy: what fits on a multiprocessor, and the blocks that fill it."""

from __future__ import annotations

import pytest

import cudadrv as cu
from cudadrv import occupancy_model
from tests.device.driver_code import PTX, library


@pytest.fixture
def shared():
    """The kernel whose dynamic shared memory is the caller's."""
    return library()["last_shared"]


@pytest.fixture
def multiprocessor():
    """The attributes of the device."""
    return cu.Device(0).attributes


def test_active_blocks_are_what_the_threads_allow(shared, multiprocessor):
    """A small kernel is limited by the threads and blocks of a multiprocessor alone."""
    threads = multiprocessor["MAX_THREADS_PER_MULTIPROCESSOR"]
    most = multiprocessor["MAX_BLOCKS_PER_MULTIPROCESSOR"]
    for block in (32, 128, 512, (16, 32)):
        size = 512 if block == (16, 32) else block
        assert shared.occupancy.max_active_blocks(block) == min(threads // size, most)
        assert shared.occupancy.max_active_blocks(block, caching=False) >= 1
    assert shared.occupancy.fraction(512) == 1


@pytest.mark.parametrize("name", ["scale", "last_shared", "narrow"])
def test_the_model_agrees_with_the_driver(name):
    """What is computed from the device's attributes is what the driver says."""
    kernel = cu.load(PTX)[name]
    has = occupancy_model.of_device(kernel.device.attributes)
    registers, static = (kernel.attributes[key] for key in ("NUM_REGS", "SHARED_SIZE_BYTES"))
    for block in range(32, kernel.max_threads + 1, 32):
        for smem in (0, 1000, 9000, 40000):
            expected = has.run(block, registers, static + smem).blocks
            assert kernel.occupancy.max_active_blocks(block, smem) == expected, (block, smem)


def test_shared_memory_lowers_the_occupancy(shared, multiprocessor):
    """Blocks that need 40 KiB each are as many as have room, and the fraction says so."""
    room = multiprocessor["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"]
    blocks = shared.occupancy.max_active_blocks(64, 40 << 10)
    assert 1 <= blocks <= room // (40 << 10)
    warps = multiprocessor["MAX_THREADS_PER_MULTIPROCESSOR"] // 32
    assert shared.occupancy.fraction(64, 40 << 10) == 2 * blocks / warps


def test_the_proposed_block_can_be_launched():
    """The block keeps to the kernel's bounds and to the limit, and the grid fills the device."""
    kernel = library()["narrow"]
    grid, block = kernel.occupancy.max_potential_block_size()
    assert 32 <= block <= 64
    active = kernel.occupancy.max_active_blocks(block)
    assert grid == active * kernel.device.attributes["MULTIPROCESSOR_COUNT"]
    assert kernel.occupancy.max_potential_block_size(limit=32)[1] == 32
    assert kernel.occupancy.max_potential_block_size(limit=5000, caching=False)[1] <= 64
    kernel.launch(grid, block)


def test_shared_memory_may_depend_on_the_block(shared):
    """A Python function of the block size tells the shared memory, which limits the block."""
    asked = []

    def shared_bytes(block):
        asked.append(block)
        return 1024 * block

    _, block = shared.occupancy.max_potential_block_size(shared_bytes)
    assert asked and all(0 < each <= 1024 for each in asked)
    assert 0 < block * 1024 <= shared.limits.shared_bytes
    assert shared.occupancy.max_potential_block_size(lambda block: 0)[1] > block


def test_what_the_function_raises_is_raised(shared):
    """An exception of the function comes out, not a crash of the driver."""
    with pytest.raises(ZeroDivisionError):
        shared.occupancy.max_potential_block_size(lambda block: 1 // 0)
    with pytest.raises(ValueError, match="smem=-4"):
        shared.occupancy.max_potential_block_size(lambda block: -4)
    with pytest.raises(TypeError):
        shared.occupancy.max_potential_block_size(lambda block: "many")


def test_available_shared_memory(shared, multiprocessor):
    """What eight blocks can have each lets eight run but for what the device keeps of each."""
    nbytes = shared.occupancy.available_dynamic_smem(8, 64)
    kept = multiprocessor["RESERVED_SHARED_MEMORY_PER_BLOCK"] or 0
    assert kept < nbytes <= multiprocessor["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"] // 8
    assert shared.occupancy.max_active_blocks(64, nbytes - kept) >= 8
    assert shared.occupancy.available_dynamic_smem(4, (8, 8)) >= nbytes


def test_clusters(multiprocessor):
    """Clusters of two blocks are at most half as many as blocks; eight blocks always make one."""
    kernel = library()["nothing"]
    if not multiprocessor["CLUSTER_LAUNCH"]:
        with pytest.raises(ValueError, match="has no clusters"):
            kernel.occupancy.max_potential_cluster_size(64)
        pytest.skip("clusters came with sm_90")
    blocks = kernel.occupancy.max_active_blocks(64) * multiprocessor["MULTIPROCESSOR_COUNT"]
    clusters = kernel.occupancy.max_active_clusters(64, 64, 2)
    assert 1 <= clusters <= blocks // 2
    assert kernel.occupancy.max_active_clusters((8, 8), 64, (2, 2)) <= clusters
    assert kernel.occupancy.max_potential_cluster_size(64) == 8


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda o: o.max_active_blocks(0), ValueError, "block=0"),
        (lambda o: o.max_active_blocks("x"), TypeError, "block='x'"),
        (lambda o: o.max_active_blocks(32, -1), ValueError, "smem=-1"),
        (lambda o: o.max_active_blocks(32, 1 << 64), ValueError, "smem=18446744073709551616"),
        (lambda o: o.max_active_blocks(32, 1.5), TypeError, "float"),
        (lambda o: o.max_potential_block_size(limit=-3), ValueError, "limit=-3"),
        (lambda o: o.max_potential_block_size("x"), TypeError, "str"),
        (lambda o: o.available_dynamic_smem(0, 32), ValueError, "blocks=0"),
        (lambda o: o.available_dynamic_smem(1, 5000), ValueError, "block=5000"),
        (lambda o: o.max_active_clusters(7, 32, 2), ValueError, "has no clusters|does not divide"),
        (
            lambda o: o.max_active_clusters(8, 32, 2, colour=1),
            (TypeError, ValueError),
            "has no clusters|colour",
        ),
    ],
)
def test_bad_input_is_refused(shared, call, kind, message):
    """Wrong sizes name themselves, before the driver is asked."""
    with pytest.raises(kind, match=message):
        call(shared.occupancy)


def test_a_closed_library_is_refused():
    """Occupancy of a kernel whose library was closed raises ClosedError."""
    lib = cu.load(".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry f() { ret; }")
    kernel = lib["f"]
    lib.close()
    with pytest.raises(cu.ClosedError):
        kernel.occupancy.max_active_blocks(32)
