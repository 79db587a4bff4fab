"""Kernels of what is more than one instruction: atomics, hints, copies, groups, tensor cores."""

from __future__ import annotations

import compiler as cuda
from compiler import cg, random, types

F32 = types.float32


def atomics(a8, a16, u32, a64, f16, f32, f64, c):
    part = cuda.shared.array(4, cuda.int16)
    cuda.atomic.add(a8, 0, 1)
    cuda.atomic.max(a16, 0, 1)
    cuda.atomic.cas(part, 0, 1, 2)
    cuda.atomic.nanmin(f16, 0, 1.5)
    cuda.atomic.add(f16, 0, 1.5)
    cuda.atomic.max(f64, 0, 1.5, scope="sys")
    cuda.atomic.exch(f32, 0, 1.5, order="seq_cst")
    cuda.atomic.min(a64, 0, 1, order="acq_rel", scope="cta")
    cuda.atomic.dec(u32, 0, 3)
    cuda.atomic.xor(u32, 0, 3)
    cuda.atomic.add(c, 0, 1j)
    cuda.atomic.sub(f64, 0, 1.0)
    cuda.atomic.compare_and_swap(f32, 1.0, 2.0)


def hints(a, b, c, o):
    cuda.stwb(o, 0, cuda.ldg(a, 0) + cuda.ldcg(b, 0) + cuda.ldcs(c, 0))
    cuda.stcs(a, 0, cuda.ldcv(a, 0))
    cuda.stwt(b, 0, cuda.ldlu(b, 0))
    cuda.stcg(c, 0, cuda.ldca(c, 0))


def copies(a, o):
    part = cuda.shared.array((2, 32), cuda.float32)
    i = cuda.threadIdx.x
    cuda.cp_async(part, (0, i), a, i)
    cuda.cp_async_commit()
    cuda.cp_async(part, (1, 4 * (i % 8)), a, 4 * (i % 8), 4)
    cuda.cp_async_wait(0)
    cuda.cp_async_wait_all()
    cuda.syncthreads()
    o[i] = part[0, i] + part[1, i]


def groups(a, o):
    grid, block = cg.this_grid(), cg.this_thread_block()
    tile = cg.tiled_partition(block, 8)
    grid.sync()
    o[grid.thread_rank()] = tile.reduce(a[0]) + tile.exclusive_scan(a[1], max)
    if a[2] > 0:
        lanes = cg.coalesced_threads()
        o[lanes.thread_rank()] = lanes.reduce(a[3]) + lanes.ballot(a[4] > 0)
    block.sync()


def clusters(o):
    cluster = cg.this_cluster()
    cluster.sync()
    cuda.cluster_arrive()
    cuda.threadfence_cluster()
    cuda.cluster_wait()
    o[cluster.thread_rank()] = cluster.num_blocks()


def products(u, f, d):
    part = cuda.shared.array((32, 8), cuda.float16)
    i = cuda.threadIdx.x
    x = cuda.ldmatrix(part, (i, 0), 4)
    y = cuda.ldmatrix(part, (i, 0), 2, transposed=True)
    z = (f[0], f[1], f[2], f[3])
    for function in (cuda.mma_m16n8k16_f16, cuda.mma_m16n8k16_bf16, cuda.mma_m16n8k8_tf32):
        z = function(x, y, z)
    for function in (cuda.mma_m16n8k32_s8, cuda.mma_m16n8k32_u8):
        u[0], u[1], u[2], u[3] = function(x, y, (u[0], u[1], u[2], u[3]))
    f[0], f[1], f[2], f[3] = z
    d[0], d[1] = cuda.mma_m8n8k4_f64((d[0],), (d[1],), (d[2], d[3]))


def stores(o):
    part = cuda.shared.array((32, 8), cuda.float16)
    cuda.stmatrix(part, (cuda.laneid, 0), (o[0], o[1], o[2], o[3]))
    cuda.syncthreads()
    o[0] = part[0, 0]


def numbers(states, o):
    o[0] = random.xoroshiro128p_normal_float32(states, 0)
    o[1], o[2] = random.philox_normal_float32(1, 2)


def reports(a, o):
    assert a[0] > 0, f"{a[0]:.3f}"
    print("value", a[0], cuda.threadIdx.x, a[1] > 0, f"{a[2]:8.2f}", sep="; ")
    o[0] = a[0] // a[1]
    if a[1] == 3:
        raise ValueError("three", a[1])


_STATES = types.Array(types.from_dtype(random.xoroshiro128p_dtype), 1, "C")
_ATOMIC = (
    types.int8, types.int16, types.uint32, types.int64, types.float16, F32, types.float64,
    types.complex128,
)  # fmt: skip
# Name: the kernel, its argument types, the lowest compute capability.
KERNELS = {
    "atomics": (atomics, tuple(ty[::1] for ty in _ATOMIC), (7, 5)),
    "hints": (
        hints,
        (F32[::1], types.int8[::1], types.complex64[::1], types.complex128[::1]),
        (7, 5),
    ),
    "copies": (copies, (F32[::1], F32[::1]), (8, 0)),
    "groups": (groups, (types.int32[::1], types.int32[::1]), (7, 5)),
    "clusters": (clusters, (types.int32[::1],), (9, 0)),
    "products": (products, (types.int32[::1], F32[::1], types.float64[::1]), (8, 0)),
    "stores": (stores, (types.uint32[::1],), (9, 0)),
    "numbers": (numbers, (_STATES, F32[::1]), (7, 5)),
    "reports": (reports, (F32[::1], F32[::1]), (7, 5)),
}
