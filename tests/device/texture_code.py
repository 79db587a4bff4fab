"""PTX that reads textures and surfaces, and what NumPy says that linear filtering gives."""

from __future__ import annotations

import functools

import numpy as np

import cudadrv as cu

TEXT = """
.version 7.8
.target sm_80
.address_size 64

// out[i] = what the instruction gives for the four words x, y, z, w of places[i]
.visible .entry run(.param .u64 object, .param .u64 places, .param .u64 out, .param .u32 n)
{
    .reg .pred %p;
    .reg .b64 %o, %q, %a;
    .reg .b32 %i, %n, %t, %x, %y, %z, %w, %r<4>;
    .reg .b64 %d<2>;
    mov.u32 %i, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %i, %n, %t;
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    ld.param.u64 %o, [object];
    ld.param.u64 %a, [places];
    cvta.to.global.u64 %a, %a;
    mul.wide.u32 %q, %i, 16;
    add.u64 %a, %a, %q;
    ld.global.v4.b32 {%x, %y, %z, %w}, [%a];
    mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;
    INSTRUCTION
    ld.param.u64 %a, [out];
    cvta.to.global.u64 %a, %a;
    add.u64 %a, %a, %q;
    st.global.v4.b32 [%a], {%r0, %r1, %r2, %r3};
    ret;
}
"""
RESULT = "{%r0, %r1, %r2, %r3}"


@functools.cache
def kernel(instruction: str) -> cu.Kernel:
    """The kernel above around an instruction, in which RESULT stands for the four results."""
    return cu.load(TEXT.replace("INSTRUCTION", instruction.replace("RESULT", RESULT)))["run"]


def run(instruction: str, thing, places, dtype="float32"):
    """What the instruction gives for each row of *places*: an array of four columns."""
    rows = np.zeros((len(places), 4), np.asarray(places).dtype)
    rows[:, : np.asarray(places).shape[1]] = places
    out = cu.to_device(np.zeros((len(rows), 4), dtype))
    where = cu.to_device(np.ascontiguousarray(rows))
    kernel(instruction).launch(-(-len(rows) // 64), 64, thing, where, out, len(rows))
    return out.copy_to_host()


def mixed(whole, *floats):
    """Rows of an integer and floats, as words."""
    columns = [np.asarray(whole, np.int32).view(np.float32)]
    columns += [np.asarray(each, np.float32) for each in floats]
    return np.stack(columns, axis=1)


def texel(index, length, mode):
    """Which of *length* elements index means in an address mode; -1 is the border."""
    index = np.asarray(index, np.int64)
    if mode == "wrap":
        return index % length
    if mode == "mirror":
        rest = index % (2 * length)
        return np.where(rest < length, rest, 2 * length - 1 - rest)
    if mode == "border":
        return np.where((index < 0) | (index >= length), -1, index)
    return np.clip(index, 0, length - 1)


def sampled(host, places, mode="clamp", linear=False, normalized=False, border=0.0):
    """What a texture of a NumPy array gives at each place, x first."""
    weights, chosen = [], []
    for axis, column in enumerate(np.asarray(places, np.float64).T[: host.ndim]):
        length = host.shape[host.ndim - 1 - axis]
        at = column * length if normalized else column
        if linear:
            fine = np.floor((at - 0.5) * 256 + 0.5) / 256
            low = np.floor(fine)
            pair = [(low, 1 - (fine - low)), (low + 1, fine - low)]
        else:
            pair = [(np.floor(at), np.ones(len(at)))]
        chosen.append([texel(index, length, mode) for index, _ in pair])
        weights.append([weight for _, weight in pair])
    total = np.zeros(len(places))
    for corner in np.ndindex(*(len(each) for each in chosen)):
        index = tuple(chosen[axis][which] for axis, which in enumerate(corner))[::-1]
        inside = np.all([part >= 0 for part in index], axis=0)
        value = np.where(inside, host[tuple(np.maximum(part, 0) for part in index)], border)
        total += value * np.prod([weights[a][w] for a, w in enumerate(corner)], axis=0)
    return total
