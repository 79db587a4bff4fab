"""Tensor maps at work: the Tensor Memory Accelerator copies the boxes that they describe."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import cudadrv as cu

PTX = """
.version 8.0
.target sm_90
.address_size 64
// out[i] = the i-th of 256 words that the map's box at (x, y) has
.visible .entry box(.param .align 128 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y)
{
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b64 arrived;
    .reg .pred %first, %done;
    .reg .b32 %t, %x, %y, %tile, %bar, %at, %v;
    .reg .b64 %m, %o, %q;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %tile, tile;
    mov.u32 %bar, arrived;
    ld.param.u32 %x, [x];
    ld.param.u32 %y, [y];
    mov.b64 %m, map;
    cvta.param.u64 %m, %m;
    @%first mbarrier.init.shared.b64 [%bar], 1;
    @%first fence.proxy.async;
    bar.sync 0;
    @%first mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 1024;
    @%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%tile], [%m, {%x, %y}], [%bar];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;
    @!%done bra WAIT;
    mad.lo.u32 %at, %t, 4, %tile;
    ld.shared.b32 %v, [%at];
    ld.param.u64 %o, [out];
    cvta.to.global.u64 %o, %o;
    mul.wide.u32 %q, %t, 4;
    add.u64 %o, %o, %q;
    st.global.b32 [%o], %v;
    ret;
}
"""


@functools.cache
def library():
    return cu.load(PTX)


@pytest.fixture(autouse=True)
def device(context):
    """The accelerator is there from compute capability 9.0 on."""
    if context.device.compute_capability < (9, 0):
        pytest.skip("needs a device of compute capability 9.0")


def box(tensor_map, x, y):
    """The box at column x and row y, as the kernel sees it: 8 rows of 32."""
    out = cu.to_device(np.zeros((8, 32), np.float32))
    library()["box"].launch(1, 256, tensor_map, out, x, y)
    return out.copy_to_host()


def test_boxes_have_the_elements_of_numpy():
    """A box has what NumPy's slice has; outside of the array there are zeros."""
    host = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    array = cu.to_device(host)
    made = cu.TensorMap.tiled(array, (8, 32))
    assert np.array_equal(box(made, 40, 16), host[16:24, 40:72])
    padded = np.zeros((72, 128), np.float32)
    padded[:64, :96] = host
    assert np.array_equal(box(made, 80, 60), padded[60:68, 80:112])


def test_a_part_and_a_new_address():
    """Maps of a part of an array, and of other memory after replace_address."""
    host = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    array, other = cu.to_device(host), cu.to_device(-host)
    made = cu.TensorMap.tiled(array[8:40, 32:], (8, 32))
    assert np.array_equal(box(made, 4, 3), host[11:19, 36:68])
    made = cu.TensorMap.tiled(array, (8, 32))
    made.replace_address(other)
    assert np.array_equal(box(made, 4, 3), -host[3:11, 4:36])


def test_swizzled_boxes():
    """With a swizzle of 128 bytes, row r has its pieces of 16 bytes at the positions xor r."""
    host = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    made = cu.TensorMap.tiled(cu.to_device(host), (8, 32), swizzle="128B")
    pieces = box(made, 0, 0).reshape(8, 8, 4)
    wanted = host[:8, :32].reshape(8, 8, 4)
    for row in range(8):
        assert np.array_equal(pieces[row][np.arange(8) ^ row], wanted[row])
