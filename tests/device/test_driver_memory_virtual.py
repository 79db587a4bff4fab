"""Virtual memory: reserve, map, grant access, unmap, in any order, and end in the right one."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

import cudadrv as cu
from tests.device.driver_code import library


@pytest.fixture
def step():
    """The granularity."""
    if not cu.Device(0).attributes["VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"]:
        pytest.skip("the device has no virtual memory management")
    return cu.granularity()


@pytest.fixture
def pair(step):
    """A range of four pieces, and memory for one."""
    with cu.VirtualMemory(4 * step) as addresses, cu.PhysicalMemory(step) as physical:
        yield addresses, physical


def read(memory):
    """All its bytes."""
    out = bytearray(memory.nbytes)
    cu.memcpy(out, memory)
    return bytes(out)


def test_granularity(step):
    """A power of two; the recommended one is no smaller."""
    assert step > 0
    assert not step & (step - 1)
    assert cu.granularity(0, recommended=True) >= step


def test_sizes_are_rounded_up(step):
    """Both kinds have whole multiples of the granularity."""
    with cu.PhysicalMemory(1) as physical, cu.VirtualMemory(step + 1) as addresses:
        assert physical.nbytes == step
        assert addresses.nbytes == 2 * step
        assert addresses.handle % step == 0
        assert physical.where == 0
        assert physical.properties.type == 1


def test_mapped_memory_is_memory(pair, step):
    """Copies, fills and kernels use a piece once access was granted."""
    addresses, physical = pair
    piece = addresses.map(physical, step)
    assert piece.handle == addresses.handle + step
    assert addresses.access(at=step) == "none"
    addresses.set_access()
    assert addresses.access(0, step) == "readwrite"
    cu.memset(piece, 0x3F800000, width=4)
    library()["scale"].launch(1, 32, piece, 3.0, piece, 10)
    out = np.zeros(11, np.float32)
    cu.memcpy(out, piece, out.nbytes)
    assert out.tolist() == [3.0] * 10 + [1.0]
    addresses.unmap(step)
    assert not addresses.mappings


def test_one_memory_at_two_addresses(pair, step):
    """What is written at one is read at the other."""
    addresses, physical = pair
    first, second = addresses.map(physical), addresses.map(physical, 2 * step)
    addresses.set_access()
    cu.memset(first, 0)
    cu.memcpy(first, b"abcd")
    assert read(second[:6]) == b"abcd\0\0"


def test_pieces_side_by_side_are_one(pair, step):
    """A copy may go across the border of two pieces, and contents stay when pieces are added."""
    addresses, physical = pair
    addresses.map(physical)
    addresses.set_access()
    cu.memset(addresses[:step], 5)
    with cu.PhysicalMemory(2 * step) as more:
        addresses.map(more, step)
        addresses.set_access(at=step)
    cu.memset(addresses[step : 3 * step], 6)
    assert read(addresses[step - 2 : step + 2]) == b"\5\5\6\6"
    cu.memcpy(addresses[step - 2 :], b"wxyz")
    assert read(addresses[step - 2 : step + 2]) == b"wxyz"


def test_memory_lives_until_it_is_unmapped(step):
    """Closing the memory or dropping it while it is mapped loses nothing."""
    addresses = cu.VirtualMemory(step)
    physical = cu.PhysicalMemory(step)
    addresses.map(physical)
    addresses.set_access()
    cu.memset(addresses, 7)
    physical.close()
    del physical
    gc.collect()
    assert set(read(addresses)) == {7}
    addresses.close()
    addresses.close()
    assert addresses.closed


def test_contents_move_to_another_range(step):
    """Memory that is unmapped here and mapped there keeps what is in it."""
    with cu.PhysicalMemory(step) as physical:
        with cu.VirtualMemory(step) as addresses:
            addresses.map(physical)
            addresses.set_access()
            cu.memset(addresses, 8)
        with cu.VirtualMemory(2 * step) as addresses:
            piece = addresses.map(physical, step)
            addresses.set_access()
            assert set(read(piece)) == {8}


def test_garbage_is_unmapped_and_freed(step):
    """A dropped range gives its addresses and its memory back, without a warning."""
    free, _ = cu.current_context().mem_info()
    for _ in range(20):
        memory = cu.virtual_alloc(16 * step)
        cu.memset(memory, 1)
        del memory
    gc.collect()
    after, _ = cu.current_context().mem_info()
    assert free - after < 64 * step


def test_all_in_one(step):
    """virtual_alloc gives memory that can be used at once."""
    with cu.virtual_alloc(step + 1) as memory:
        assert memory.nbytes == 2 * step
        cu.memset(memory, 9)
        assert set(read(memory[-8:])) == {9}
        assert list(memory.mappings) == [0]
        held = cu.PhysicalMemory.of(memory)
        assert held.nbytes == 2 * step
    with held, cu.VirtualMemory(2 * step) as addresses:
        addresses.map(held)
        addresses.set_access()
        assert set(read(addresses[:8])) == {9}


@pytest.mark.parametrize("piece", ["nothing", "no access", "unmapped"])
def test_what_cannot_be_accessed_is_refused(step, run_python, piece):
    """A copy to where nothing is mapped, or not for this device, is an error and no crash."""
    code = (
        "import cudadrv as cu\n"
        "addresses, physical = cu.VirtualMemory(1), cu.PhysicalMemory(1)\n"
        f"if {piece!r} != 'nothing':\n"
        "    addresses.map(physical)\n"
        f"if {piece!r} == 'unmapped':\n"
        "    addresses.set_access()\n"
        "    cu.memcpy(addresses[:4], b'abcd')\n"
        "    addresses.unmap()\n"
        "try:\n"
        "    cu.memcpy(addresses[:4], b'abcd')\n"
        "    cu.current_context().synchronize()\n"
        "except cu.CudaError:\n"
        "    print('refused')\n"
    )
    assert run_python(code).split() == ["refused"]


def test_foreign_memory_is_adopted(pair):
    """It is mapped like any other, and released by whoever made it."""
    addresses, physical = pair
    adopted = cu.PhysicalMemory.adopt(physical.handle, physical.nbytes)
    addresses.map(adopted)
    addresses.unmap()
    adopted.close()
    addresses.map(physical)


def test_only_mapped_memory_can_be_retained(pair):
    """Reserved addresses and other allocations have no handle."""
    with pytest.raises(cu.CudaError):
        cu.PhysicalMemory.of(pair[0])
    with pytest.raises(cu.CudaError):
        cu.PhysicalMemory.of(cu.mem_alloc(64))


def test_access_can_be_taken_back(pair):
    """With "none" the piece stays mapped, its contents too."""
    addresses, physical = pair
    addresses.map(physical)
    addresses.set_access()
    cu.memset(addresses[: physical.nbytes], 4)
    cu.current_context().synchronize()
    addresses.set_access(0, "none")
    assert addresses.access() == "none"
    addresses.set_access(0)
    assert set(read(addresses[:8])) == {4}


def test_memory_for_other_processes(step):
    """A file descriptor of it is the same memory, here and elsewhere."""
    if not cu.Device(0).attributes["HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED"]:
        pytest.skip("the device gives no file descriptors of memory")
    with cu.virtual_alloc(step, handle_type="posix_fd") as memory:
        cu.memset(memory, 3)
        with cu.PhysicalMemory.of(memory) as physical:
            handle = physical.export("posix_fd")
        with cu.PhysicalMemory.import_from(handle, "posix_fd", step) as imported:
            os.close(handle)
            with cu.VirtualMemory(step) as addresses:
                addresses.map(imported)
                addresses.set_access()
                assert set(read(addresses[:8])) == {3}
                cu.memset(addresses, 2)
                assert set(read(memory[:8])) == {2}


def test_memory_for_this_process_alone_is_not_exported(pair):
    """Only what was made for it has a handle for others."""
    with pytest.raises(cu.CudaError):
        pair[1].export("posix_fd")


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda v, p: cu.VirtualMemory(0), ValueError, "nbytes=0"),
        (lambda v, p: cu.VirtualMemory("8"), TypeError, "nbytes='8'"),
        (lambda v, p: cu.VirtualMemory(8, 3), ValueError, "alignment=3: it is a power of two"),
        (lambda v, p: cu.VirtualMemory(8, 0, -1), ValueError, "64 bits"),
        (lambda v, p: cu.VirtualMemory(1 << 62), cu.CudaError, "cuMemAddressReserve"),
        (lambda v, p: cu.PhysicalMemory(-8), ValueError, "nbytes=-8"),
        (lambda v, p: cu.PhysicalMemory(1 << 50), cu.CudaError, r"cuMemCreate"),
        (lambda v, p: cu.PhysicalMemory(8, "gpu"), TypeError, "no place"),
        (lambda v, p: cu.PhysicalMemory(8, 0, "fd"), ValueError, "'posix_fd'"),
        (lambda v, p: cu.PhysicalMemory(8, 4711), ValueError, "no device 4711"),
        (lambda v, p: v.map(v), TypeError, "VirtualMemory is no PhysicalMemory"),
        (lambda v, p: v.map(p, 4096 + 1), ValueError, "it is a multiple of"),
        (lambda v, p: v.map(p, -p.nbytes), ValueError, "at=-"),
        (lambda v, p: v.map(p, v.nbytes), ValueError, "leave the"),
        (lambda v, p: (v.map(p), v.map(p)), ValueError, "are mapped at 0: unmap them first"),
        (lambda v, p: v.unmap(0), ValueError, "nothing is mapped at 0; the positions are: none"),
        (lambda v, p: v.access(), ValueError, "nothing is mapped at 0"),
        (lambda v, p: v.set_access(0, "write"), ValueError, "'none', 'read', 'readwrite'"),
        (lambda v, p: v.set_access(at="x"), TypeError, "at='x'"),
        (lambda v, p: p.export("none"), ValueError, "handle_type='none'"),
        (lambda v, p: cu.PhysicalMemory.import_from("x", "posix_fd", 8), TypeError, "handle='x'"),
        (lambda v, p: cu.PhysicalMemory.import_from(1, "posix_fd", 0), ValueError, "nbytes=0"),
        (lambda v, p: cu.granularity("gpu"), TypeError, "no place"),
    ],
)
def test_bad_uses(pair, use, error, message):
    """Sizes, positions, places, words and handles are checked by name."""
    with pytest.raises(error, match=message):
        use(*pair)


def test_closed_ones_are_refused(pair):
    """Everything that needs the range or the memory says that it was closed."""
    addresses, physical = pair
    addresses.map(physical)
    physical.close()
    with pytest.raises(cu.ClosedError):
        addresses.map(physical, addresses.nbytes // 2)
    addresses.close()
    for use in (
        lambda: addresses.map(physical),
        lambda: addresses.set_access(),
        lambda: addresses.unmap(),
        lambda: addresses.access(),
        lambda: physical.export("posix_fd"),
        lambda: physical.properties,
    ):
        with pytest.raises(cu.ClosedError):
            use()
