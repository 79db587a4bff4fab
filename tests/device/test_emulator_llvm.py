"""PTX from LLVM's own generator, at every optimisation level and for several architectures."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.device.ptx import Buffer, function, launch, load, target

IR = """
target triple = "nvptx64-nvidia-cuda"
@shared = internal addrspace(3) global [256 x float] undef, align 4
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier0()

define ptx_kernel void @saxpy(i32 %n, float %a, ptr %x, ptr %y) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %bd = mul i32 %b, %d
  %i = add i32 %bd, %t
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %do, label %done
do:
  %j = sext i32 %i to i64
  %px = getelementptr float, ptr %x, i64 %j
  %py = getelementptr float, ptr %y, i64 %j
  %vx = load float, ptr %px
  %vy = load float, ptr %py
  %m = fmul float %vx, %a
  %s = fadd float %m, %vy
  store float %s, ptr %py
  br label %done
done:
  ret void
}

define ptx_kernel void @sums(ptr %x, ptr %out) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %bd = mul i32 %b, %d
  %i = add i32 %bd, %t
  %px = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %px
  %own = getelementptr [256 x float], ptr addrspace(3) @shared, i32 0, i32 %t
  store float %v, ptr addrspace(3) %own
  br label %loop
loop:
  %k = phi i32 [ 128, %entry ], [ %k.next, %next ]
  call void @llvm.nvvm.barrier0()
  %active = icmp ult i32 %t, %k
  br i1 %active, label %add, label %next
add:
  %u = add i32 %t, %k
  %other = getelementptr [256 x float], ptr addrspace(3) @shared, i32 0, i32 %u
  %p = load float, ptr addrspace(3) %own
  %q = load float, ptr addrspace(3) %other
  %r = fadd float %p, %q
  store float %r, ptr addrspace(3) %own
  br label %next
next:
  %k.next = lshr i32 %k, 1
  %more = icmp ne i32 %k.next, 0
  br i1 %more, label %loop, label %end
end:
  %first = icmp eq i32 %t, 0
  br i1 %first, label %write, label %done
write:
  %total = load float, ptr addrspace(3) %own
  %po = getelementptr float, ptr %out, i32 %b
  store float %total, ptr %po
  br label %done
done:
  ret void
}
"""


@pytest.fixture(params=[(75, 0), (80, 3), (90, 3)], ids=str)
def module(request: pytest.FixtureRequest) -> int:
    """The module of IR, for an architecture and at an optimisation level."""
    arch, level = request.param
    if arch > int(target()[3:]):
        pytest.skip("the PTX is for a newer device")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    made = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = made.create_target_machine(cpu=f"sm_{arch}", opt=level)
    return load(machine.emit_assembly(llvm.parse_assembly(IR)))


def test_saxpy(module: int) -> None:
    """Product and sum are rounded apart, as the IR says, in a loop that may be vectorised."""
    x, y = (np.random.default_rng(seed).standard_normal(1000).astype("f4") for seed in (1, 2))
    buffers = Buffer(x), Buffer(y)
    kernel = function(module, "saxpy")
    launch(kernel, 8, 128, ctypes.c_int32(950), ctypes.c_float(0.3), *buffers)
    buffers[0].read()
    wanted = np.where(np.arange(1000) < 950, np.float32(0.3) * x + y, y)
    assert np.array_equal(buffers[1].read(), wanted)


def test_block_sums(module: int) -> None:
    """A tree of sums in shared memory."""
    x = np.random.default_rng(3).standard_normal(256 * 5).astype("f4")
    buffers = Buffer(x), Buffer(np.zeros(5, "f4"))
    launch(function(module, "sums"), 5, 256, *buffers)
    buffers[0].read()
    tree = x.reshape(5, 256)
    while tree.shape[1] > 1:
        tree = tree[:, : tree.shape[1] // 2] + tree[:, tree.shape[1] // 2 :]
    assert np.array_equal(buffers[1].read(), tree[:, 0])
