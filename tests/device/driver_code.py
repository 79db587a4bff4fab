"""PTX for the tests of cudadrv, written by hand."""

from __future__ import annotations

import functools

import cudadrv as cu

PTX = """
.version 7.8
.target sm_80
.address_size 64

.visible .global .align 4 .u32 counter[4];
.visible .const .align 4 .f32 factor = 0f40000000;

// out[i] = a * x[i] for i < n
.visible .entry scale(.param .u64 out, .param .f32 a, .param .u64 x, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<3>;
    .reg .b64 %d<5>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [n];
    setp.ge.s32 %p, %r3, %r4;
    @%p ret;
    ld.param.u64 %d0, [out];
    ld.param.u64 %d1, [x];
    ld.param.f32 %f0, [a];
    cvta.to.global.u64 %d0, %d0;
    cvta.to.global.u64 %d1, %d1;
    mul.wide.s32 %d2, %r3, 4;
    add.s64 %d3, %d1, %d2;
    add.s64 %d4, %d0, %d2;
    ld.global.f32 %f1, [%d3];
    mul.f32 %f2, %f0, %f1;
    st.global.f32 [%d4], %f2;
    ret;
}

// out[0..5] = the extents of the grid and of the block
.visible .entry extents(.param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .b64 %d;
    ld.param.u64 %d, [out];
    cvta.to.global.u64 %d, %d;
    mov.u32 %r0, %nctaid.x;
    mov.u32 %r1, %nctaid.y;
    mov.u32 %r2, %nctaid.z;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %ntid.y;
    mov.u32 %r5, %ntid.z;
    st.global.u32 [%d], %r0;
    st.global.u32 [%d+4], %r1;
    st.global.u32 [%d+8], %r2;
    st.global.u32 [%d+12], %r3;
    st.global.u32 [%d+16], %r4;
    st.global.u32 [%d+20], %r5;
    ret;
}

// out[0..3] = each argument, as a 64-bit pattern
.visible .entry mixed(.param .u64 out, .param .u8 b, .param .u16 h, .param .f64 d,
                      .param .align 8 .b8 pair[16])
{
    .reg .b32 %r<2>;
    .reg .b64 %d<6>;
    ld.param.u64 %d0, [out];
    cvta.to.global.u64 %d0, %d0;
    ld.param.u8 %r0, [b];
    cvt.u64.u32 %d1, %r0;
    ld.param.u16 %r1, [h];
    cvt.u64.u32 %d2, %r1;
    ld.param.b64 %d3, [d];
    ld.param.b64 %d4, [pair];
    ld.param.b64 %d5, [pair+8];
    st.global.b64 [%d0], %d1;
    st.global.b64 [%d0+8], %d2;
    st.global.b64 [%d0+16], %d3;
    st.global.b64 [%d0+24], %d4;
    st.global.b64 [%d0+32], %d5;
    ret;
}

.extern .shared .align 4 .b8 dynamic[];

// writes 7 into the last of `bytes` bytes of dynamic shared memory, and reads it into out[0]
.visible .entry last_shared(.param .u64 out, .param .u32 bytes)
{
    .reg .b32 %r<4>;
    .reg .b64 %d;
    ld.param.u64 %d, [out];
    cvta.to.global.u64 %d, %d;
    ld.param.u32 %r0, [bytes];
    mov.u32 %r1, dynamic;
    add.u32 %r1, %r1, %r0;
    mov.u32 %r2, 7;
    st.shared.u32 [%r1+-4], %r2;
    ld.shared.u32 %r3, [%r1+-4];
    st.global.u32 [%d], %r3;
    ret;
}

.visible .entry nothing()
{
    ret;
}

// at most 64 threads a block
.visible .entry narrow()
.maxntid 64, 1, 1
{
    ret;
}

// counter[0] += 1, in one thread; out[0] = factor
.visible .entry count(.param .u64 out)
{
    .reg .b32 %r;
    .reg .f32 %f;
    .reg .b64 %d;
    ld.global.u32 %r, [counter];
    add.u32 %r, %r, 1;
    st.global.u32 [counter], %r;
    ld.param.u64 %d, [out];
    cvta.to.global.u64 %d, %d;
    ld.const.f32 %f, [factor];
    st.global.f32 [%d], %f;
    ret;
}
"""
KERNELS = ["count", "extents", "last_shared", "mixed", "narrow", "nothing", "scale"]


@functools.cache
def library() -> cu.Library:
    """The kernels above, loaded once for all tests."""
    return cu.load(PTX)
