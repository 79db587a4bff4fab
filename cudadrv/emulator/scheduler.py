"""The LLVM IR that runs a block: a loop over its threads, or a scheduler of coroutines."""

from __future__ import annotations

from . import layout
from .builder import Module
from .layout import LAUNCH, THREAD, WORKER
from .waiting import BARRIERS, WARP

# What a coroutine calls.
CORO = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare ptr @emulator.frame(ptr, i64, i32)
"""

FAIL = """
define void @emulator.fail(ptr %launch, i32 %code, i32 %tx, i32 %ty, i32 %tz,
                                    i32 %bx, i32 %by, i32 %bz) noinline {
  %error = getelementptr inbounds %launch, ptr %launch, i32 0, i32 ERROR
  %swap = cmpxchg ptr %error, i32 0, i32 %code seq_cst seq_cst
  %first = extractvalue { i32, i1 } %swap, 1
  br i1 %first, label %note, label %done
note:
  %block = getelementptr inbounds %launch, ptr %launch, i32 0, i32 BLOCK
  %block1 = getelementptr i32, ptr %block, i32 1
  %block2 = getelementptr i32, ptr %block, i32 2
  %thread = getelementptr inbounds %launch, ptr %launch, i32 0, i32 THREAD
  %thread1 = getelementptr i32, ptr %thread, i32 1
  %thread2 = getelementptr i32, ptr %thread, i32 2
  store i32 %bx, ptr %block
  store i32 %by, ptr %block1
  store i32 %bz, ptr %block2
  store i32 %tx, ptr %thread
  store i32 %ty, ptr %thread1
  store i32 %tz, ptr %thread2
  br label %done
done:
  ret void
}
"""
for _word, _field in (("ERROR", "error"), ("BLOCK", "error_block"), ("THREAD", "error_thread")):
    FAIL = FAIL.replace(f"i32 {_word}\n", f"i32 {LAUNCH.index[_field]}\n")


def coroutine(arguments: str, allocas: list[str], lines: list[str]) -> list[str]:
    """The coroutine `thread` around the translated body *lines*, whose last label is done."""
    return [
        f"define ptr @thread({arguments}) presplitcoroutine null_pointer_is_valid {{",
        "entry:",
        "  %coro.id = call token @llvm.coro.id(i32 16, ptr null, ptr null, ptr null)",
        "  %coro.size = call i64 @llvm.coro.size.i64()",
        "  %coro.frame = call ptr @emulator.frame(ptr %worker, i64 %coro.size, i32 %thread)",
        "  %coro = call ptr @llvm.coro.begin(token %coro.id, ptr %coro.frame)",
        *allocas,
        *lines,
        "  br label %suspend",
        "suspend:",
        "  call void @llvm.coro.end(ptr %coro, i1 false, token none)",
        "  ret ptr %coro",
        "}",
    ]


def loop() -> str:
    """`block` for a kernel whose threads never wait: a loop that calls `thread`."""
    return _fill(_LOOP_BLOCK)


def runtime() -> str:
    """The module all kernels share: `run`, and `block` for kernels of coroutines."""
    module = Module()
    module.types = [record.llvm for record in (LAUNCH, WORKER, THREAD)]
    for part in (_RUN, _FRAME, _COROUTINE_BLOCK, WARP, BARRIERS, FAIL):
        module.functions.append(module.merge(_fill(part)))
    return module.text()


def _fill(text: str) -> str:
    """Put field numbers and states into a text."""
    for record in (LAUNCH, WORKER, THREAD):
        base = f"%{record.name}, ptr %{record.name[0]}, i32 0, i32"
        for field, index in record.index.items():
            text = text.replace(f"{record.name}.{field}!", f"{base} {index}")
    for name in ("RUNNABLE", "DONE", "AT_FULL", "AT_BARRIER", "AT_WARP", "GATHERING"):
        text = text.replace(f"#{name}", str(getattr(layout, name)))
    # 1024 for its alignment, 16 for that of the reserved part
    return text.replace("#SHARED_EXTRA", str(1024 + 16 + layout.RESERVED_SHARED_BYTES))


# In these texts, `launch.next!` is the operands of the getelementptr of that field in %l,
# `worker.x!` in %w and `thread.x!` in %t.
_RUN = """
define void @run(ptr noundef %l) {
entry:
  %w = alloca %worker, align 64
  %w.size.p = getelementptr %worker, ptr null, i32 1
  %w.size = ptrtoint ptr %w.size.p to i64
  call void @llvm.memset.p0.i64(ptr %w, i8 0, i64 %w.size, i1 false)
  %bx.p = getelementptr launch.block_x!
  %by.p = getelementptr launch.block_y!
  %bz.p = getelementptr launch.block_z!
  %bx = load i32, ptr %bx.p
  %by = load i32, ptr %by.p
  %bz = load i32, ptr %bz.p
  %bxy = mul i32 %bx, %by
  %count = mul i32 %bxy, %bz
  %count.p = getelementptr worker.count!
  store i32 %count, ptr %count.p
  %shared.p = getelementptr launch.shared_bytes!
  %shared.n = load i32, ptr %shared.p
  %shared.64 = zext i32 %shared.n to i64
  %shared.size = add i64 %shared.64, #SHARED_EXTRA
  %shared.raw = call ptr @malloc(i64 %shared.size)
  %shared.int = ptrtoint ptr %shared.raw to i64
  %shared.up = add i64 %shared.int, 1023
  %shared.aligned = and i64 %shared.up, -1024
  %shared = inttoptr i64 %shared.aligned to ptr
  %w.shared = getelementptr worker.shared!
  store ptr %shared, ptr %w.shared
  %count.64 = zext i32 %count to i64
  %records.n = mul i64 %count.64, 1
  %records.size = mul i64 %records.n, ptrtoint (ptr getelementptr (%thread, ptr null, i32 1) to i64)
  %records = call ptr @malloc(i64 %records.size)
  %w.threads = getelementptr worker.threads!
  store ptr %records, ptr %w.threads
  %states = call ptr @malloc(i64 %records.n)
  %w.states = getelementptr worker.states!
  store ptr %states, ptr %w.states
  %next.p = getelementptr launch.next!
  %limit.p = getelementptr launch.limit!
  %limit = load i64, ptr %limit.p
  %chunk.p = getelementptr launch.chunk!
  %chunk = load i64, ptr %chunk.p
  %gx.p = getelementptr launch.grid_x!
  %gy.p = getelementptr launch.grid_y!
  %gx = load i32, ptr %gx.p
  %gy = load i32, ptr %gy.p
  %gx.64 = zext i32 %gx to i64
  %gy.64 = zext i32 %gy to i64
  %error.p = getelementptr launch.error!
  %block.p = getelementptr launch.block!
  %block.f = load ptr, ptr %block.p
  br label %take
take:
  %first = atomicrmw add ptr %next.p, i64 %chunk monotonic
  %any = icmp ult i64 %first, %limit
  br i1 %any, label %chunk.start, label %done
chunk.start:
  %past = add i64 %first, %chunk
  %stop = call i64 @llvm.umin.i64(i64 %past, i64 %limit)
  br label %block
block:
  %b = phi i64 [ %first, %chunk.start ], [ %b.next, %block.end ]
  %error = load atomic i32, ptr %error.p monotonic, align 4
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %go, label %done
go:
  %cx.64 = urem i64 %b, %gx.64
  %yz = udiv i64 %b, %gx.64
  %cy.64 = urem i64 %yz, %gy.64
  %cz.64 = udiv i64 %yz, %gy.64
  %cx = trunc i64 %cx.64 to i32
  %cy = trunc i64 %cy.64 to i32
  %cz = trunc i64 %cz.64 to i32
  call void %block.f(ptr %l, ptr %w, i32 %cx, i32 %cy, i32 %cz)
  br label %block.end
block.end:
  %b.next = add nuw i64 %b, 1
  %more = icmp ult i64 %b.next, %stop
  br i1 %more, label %block, label %take
done:
  %w.frames = getelementptr worker.frames!
  %frames = load ptr, ptr %w.frames
  call void @free(ptr %frames)
  call void @free(ptr %states)
  call void @free(ptr %records)
  call void @free(ptr %shared.raw)
  ret void
}
declare i64 @llvm.umin.i64(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_HEAD = """
define void @block(ptr noundef %l, ptr noundef %w, i32 %cx, i32 %cy, i32 %cz)
    null_pointer_is_valid {
entry:
  %bx.p = getelementptr launch.block_x!
  %by.p = getelementptr launch.block_y!
  %bz.p = getelementptr launch.block_z!
  %bx = load i32, ptr %bx.p, !invariant.load !0
  %by = load i32, ptr %by.p, !invariant.load !0
  %bz = load i32, ptr %bz.p, !invariant.load !0
  %memory.p = getelementptr launch.memory!
  %memory = load ptr, ptr %memory.p, !invariant.load !0
  %shared.p = getelementptr worker.shared!
  %shared = load ptr, ptr %shared.p
"""

_ARGUMENTS = (
    "ptr %l, ptr %w, ptr %memory, ptr %shared, i32 %n, i32 %x, i32 %y, i32 %z, "
    "i32 %cx, i32 %cy, i32 %cz"
)

_LOOP_BLOCK = f"""
{_HEAD}
  br label %loop.z
loop.z:
  %z = phi i32 [ 0, %entry ], [ %z.next, %end.y ]
  %zy = mul i32 %z, %by
  br label %loop.y
loop.y:
  %y = phi i32 [ 0, %loop.z ], [ %y.next, %end.x ]
  %row = add i32 %zy, %y
  %start = mul i32 %row, %bx
  br label %loop.x
loop.x:
  %x = phi i32 [ 0, %loop.y ], [ %x.next, %loop.x ]
  %n = add i32 %start, %x
  call void @thread({_ARGUMENTS})
  %x.next = add nuw nsw i32 %x, 1
  %x.more = icmp ult i32 %x.next, %bx
  br i1 %x.more, label %loop.x, label %end.x, !llvm.loop !2
end.x:
  %y.next = add nuw nsw i32 %y, 1
  %y.more = icmp ult i32 %y.next, %by
  br i1 %y.more, label %loop.y, label %end.y
end.y:
  %z.next = add nuw nsw i32 %z, 1
  %z.more = icmp ult i32 %z.next, %bz
  br i1 %z.more, label %loop.z, label %done
done:
  ret void
}}
"""

# Memory for the coroutine of thread *n*; they lie side by side.
_FRAME = """
define ptr @emulator.frame(ptr %w, i64 %size, i32 %n) {
  %frames.p = getelementptr worker.frames!
  %frames = load ptr, ptr %frames.p
  %up = add i64 %size, 15
  %each = and i64 %up, -16
  %missing = icmp eq ptr %frames, null
  br i1 %missing, label %allocate, label %ready
allocate:
  %count.p = getelementptr worker.count!
  %count = load i32, ptr %count.p
  %count.64 = zext i32 %count to i64
  %all = mul i64 %each, %count.64
  %more = add i64 %all, 64
  %new = call ptr @malloc(i64 %more)
  store ptr %new, ptr %frames.p
  br label %ready
ready:
  %base = phi ptr [ %frames, %0 ], [ %new, %allocate ]
  %base.int = ptrtoint ptr %base to i64
  %base.up = add i64 %base.int, 63
  %base.aligned = and i64 %base.up, -64
  %n.64 = zext i32 %n to i64
  %offset = mul i64 %each, %n.64
  %at = add i64 %base.aligned, %offset
  %frame = inttoptr i64 %at to ptr
  ret ptr %frame
}
"""

# Round by round: every warp runs until its threads all wait for other warps or are done; then
# complete barriers release theirs. If neither moves anything, the block is stuck.
_COROUTINE_BLOCK = f"""
{_HEAD}
  %count.p = getelementptr worker.count!
  %count = load i32, ptr %count.p
  %arrived.p = getelementptr worker.arrived!
  call void @llvm.memset.p0.i64(ptr %arrived.p, i8 0, i64 64, i1 false)
  %states.p = getelementptr worker.states!
  %states = load ptr, ptr %states.p
  %threads.p = getelementptr worker.threads!
  %threads = load ptr, ptr %threads.p
  %count.64 = zext i32 %count to i64
  %state.p = getelementptr worker.state!
  %thread.p = getelementptr launch.thread!
  %start.thread = load ptr, ptr %thread.p
  %warps.p = getelementptr launch.has_warp_operations!
  %warps.n = load i32, ptr %warps.p
  %warps = icmp ne i32 %warps.n, 0
  br label %start
start:
  %n = phi i32 [ 0, %entry ], [ %n.next, %started ]
  %x = phi i32 [ 0, %entry ], [ %x.then, %started ]
  %y = phi i32 [ 0, %entry ], [ %y.then, %started ]
  %z = phi i32 [ 0, %entry ], [ %z.then, %started ]
  %handle = call ptr %start.thread({_ARGUMENTS})
  %t = getelementptr %thread, ptr %threads, i32 %n
  %handle.p = getelementptr thread.handle!
  store ptr %handle, ptr %handle.p
  %start.state = load i32, ptr %state.p
  %start.state.8 = trunc i32 %start.state to i8
  %start.state.p = getelementptr i8, ptr %states, i32 %n
  store i8 %start.state.8, ptr %start.state.p
  %n.next = add nuw i32 %n, 1
  %x.next = add nuw i32 %x, 1
  %x.wrap = icmp eq i32 %x.next, %bx
  %x.then = select i1 %x.wrap, i32 0, i32 %x.next
  %x.carry = zext i1 %x.wrap to i32
  %y.next = add nuw i32 %y, %x.carry
  %y.wrap = icmp eq i32 %y.next, %by
  %y.then = select i1 %y.wrap, i32 0, i32 %y.next
  %y.carry = zext i1 %y.wrap to i32
  %z.then = add nuw i32 %z, %y.carry
  br label %started
started:
  %last = icmp eq i32 %n.next, %count
  br i1 %last, label %round, label %start
round:
  br i1 %warps, label %warp, label %check
warp:
  %first = phi i32 [ 0, %round ], [ %first.next, %warp ]
  %moved = phi i1 [ false, %round ], [ %moved.then, %warp ]
  %end = add i32 %first, 32
  %stop = call i32 @llvm.umin.i32(i32 %end, i32 %count)
  %ran = call i1 @warp(ptr %w, ptr %states, ptr %threads, i32 %first, i32 %stop)
  %moved.then = or i1 %moved, %ran
  %first.next = add i32 %first, 32
  %warps.more = icmp ult i32 %first.next, %count
  br i1 %warps.more, label %warp, label %check
check:
  %progress = phi i1 [ false, %round ], [ %moved.then, %warp ]
  br label %look
look:
  %i = phi i32 [ 0, %check ], [ %i.next, %look ]
  %all.full = phi i1 [ true, %check ], [ %all.full.then, %look ]
  %running = phi i1 [ %progress, %check ], [ %running.then, %look ]
  %all.done = phi i1 [ true, %check ], [ %all.done.then, %look ]
  %s.p = getelementptr i8, ptr %states, i32 %i
  %s = load i8, ptr %s.p
  %s.done = icmp eq i8 %s, #DONE
  %s.full = icmp eq i8 %s, #AT_FULL
  %s.either = or i1 %s.done, %s.full
  %s.runs = icmp eq i8 %s, #RUNNABLE
  %running.then = or i1 %running, %s.runs
  %all.full.then = and i1 %all.full, %s.either
  %all.done.then = and i1 %all.done, %s.done
  %i.next = add nuw nsw i32 %i, 1
  %i.more = icmp ult i32 %i.next, %count
  br i1 %i.more, label %look, label %looked
looked:
  br i1 %all.done.then, label %done, label %barriers
barriers:
  br i1 %all.full.then, label %pass, label %some
pass:
  %j = phi i32 [ 0, %barriers ], [ %j.next, %pass.end ]
  %t.j = getelementptr %thread, ptr %threads, i32 %j
  %p.p = getelementptr i8, ptr %states, i32 %j
  %p = load i8, ptr %p.p
  %p.full = icmp eq i8 %p, #AT_FULL
  br i1 %p.full, label %pass.on, label %pass.end
pass.on:
  %h = load ptr, ptr %t.j
  call void @llvm.coro.resume(ptr %h)
  %p.new = load i32, ptr %state.p
  %p.new.8 = trunc i32 %p.new to i8
  store i8 %p.new.8, ptr %p.p
  br label %pass.end
pass.end:
  %j.next = add nuw nsw i32 %j, 1
  %j.more = icmp ult i32 %j.next, %count
  br i1 %j.more, label %pass, label %round
some:
  %released = call i1 @barriers(ptr %w, ptr %states, ptr %threads, i32 %count)
  %alive = or i1 %released, %running.then
  br i1 %alive, label %resume.all, label %stuck
resume.all:
  br i1 %warps, label %round, label %resume.next
resume.next:
  %k = phi i32 [ 0, %resume.all ], [ %k.next, %resume.end ]
  %t.k = getelementptr %thread, ptr %threads, i32 %k
  %r.p = getelementptr i8, ptr %states, i32 %k
  %r = load i8, ptr %r.p
  %r.runnable = icmp eq i8 %r, #RUNNABLE
  br i1 %r.runnable, label %resume.it, label %resume.end
resume.it:
  %h.k = load ptr, ptr %t.k
  call void @llvm.coro.resume(ptr %h.k)
  %r.new = load i32, ptr %state.p
  %r.new.8 = trunc i32 %r.new to i8
  store i8 %r.new.8, ptr %r.p
  br label %resume.end
resume.end:
  %k.next = add nuw nsw i32 %k, 1
  %k.more = icmp ult i32 %k.next, %count
  br i1 %k.more, label %resume.next, label %round
stuck:
  call void @emulator.fail(ptr %l, i32 702, i32 0, i32 0, i32 0, i32 %cx, i32 %cy, i32 %cz)
  br label %done
done:
  ret void
}}
declare i32 @llvm.umin.i32(i32, i32)
declare void @llvm.coro.resume(ptr)
"""
