"""What runs a block: a loop over its threads, or a scheduler of coroutines."""

from __future__ import annotations

from . import layout
from .builder import Module
from .layout import (
    LAUNCH,
    RANGE,
    RESERVED_SHARED_BYTES,
    THREAD,
    WORKER,
    WORKSPACE_BYTES,
)
from .lowlevel import lower

# What a coroutine calls.
CORO = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare i64 @emulator.frame(ptr, i64, i32)
"""


def coroutine(arguments: str, allocas: list[str], lines: list[str]) -> list[str]:
    """The coroutine `thread` around the translated body *lines*, whose last label is done."""
    return [
        f"define ptr @thread({arguments}) presplitcoroutine null_pointer_is_valid {{",
        "entry:",
        "  %coro.id = call token @llvm.coro.id(i32 16, ptr null, ptr null, ptr null)",
        "  %coro.size = call i64 @llvm.coro.size.i64()",
        "  %coro.at = call i64 @emulator.frame(ptr %worker, i64 %coro.size, i32 %thread)",
        "  %coro.frame = inttoptr i64 %coro.at to ptr",
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
    text = _LOOP
    for record in (LAUNCH, WORKER):
        base = f"%{record.name}, ptr %{record.name[0]}, i32 0, i32"
        for field, index in record.index.items():
            text = text.replace(f"{record.name}.{field}!", f"{base} {index}")
    return text


def runtime() -> str:
    """The module all kernels share: `run`, and `block` for kernels of coroutines."""
    module = Module()
    module.types = [record.llvm for record in (LAUNCH, WORKER, THREAD, RANGE)]
    states = ("RUNNABLE", "DONE", "AT_FULL", "AT_BARRIER", "AT_WARP", "GATHERING")
    constants = {name: getattr(layout, name) for name in states}
    # 1024 for its alignment, 16 for that of the reserved part
    constants["SHARED_EXTRA"] = 1024 + 16 + RESERVED_SHARED_BYTES
    constants["RESERVED"] = 16 + RESERVED_SHARED_BYTES
    constants["WORKSPACE"] = WORKSPACE_BYTES
    constants["PARAMETERS"] = 32764  # bytes, the most that a kernel has
    exported = {"run": "run", "run_block": "block"}
    exported |= {name: f"emulator.{name}" for name in ("fail", "frame", "check")}
    lower(module, _RUNTIME, constants, exported)
    return module.text()


# LLVM turns this loop into one over vectors of threads. `launch.next!` is the operands of the
# getelementptr of that field in %l, `worker.x!` in %w.
_LOOP = """
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
  call void @thread(ptr %l, ptr %w, ptr %memory, ptr %shared, i32 %n, i32 %x, i32 %y, i32 %z,
    i32 %cx, i32 %cy, i32 %cz)
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
}
"""


# In the language of lowlevel.py. `run_block` goes round by round: every warp runs until its threads
# all wait for other warps or are done; then complete barriers release theirs. If neither moves
# anything, the block is stuck.
_RUNTIME = """
def run(l: launch):
    w: worker = zeroed(worker)
    w.count = l.block_x * l.block_y * l.block_z
    memory = malloc(l.shared_bytes + SHARED_EXTRA)
    w.shared = (memory + 1023) & ~1023
    w.threads = malloc(w.count * size_of(thread))
    w.states = malloc(w.count)
    while take(l, w):
        pass
    free(w.frames)
    free(w.states)
    free(w.threads)
    free(memory)

def take(l: launch, w: worker) -> int:
    b = fetch_add(l.next, l.chunk)
    stop = min(b + l.chunk, l.limit)
    if b >= stop:
        return 0
    while b < stop:
        if l.error != 0:
            return 0
        rest = b // l.grid_x
        block(l.block, l, w, b % l.grid_x, rest % l.grid_y, rest // l.grid_y)
        b += 1
    return 1

def fail(l: launch, code: i32, line: i32, address: int,
         tx: i32, ty: i32, tz: i32, bx: i32, by: i32, bz: i32):
    if claim(l.error, code) == 0:
        l.error_line = line
        l.error_address = address
        l.error_thread[0] = tx
        l.error_thread[1] = ty
        l.error_thread[2] = tz
        l.error_block[0] = bx
        l.error_block[1] = by
        l.error_block[2] = bz

# The CUresult of an access of some bytes, a power of two: 0 if it may be done.
def check(l: launch, w: worker, address: int, size: int, shared: i32) -> int:
    if address & (size - 1):
        return 716
    end = address + size
    if (address >= w.shared) & (end <= w.shared + l.shared_bytes + RESERVED):
        return 0
    if shared:
        return 700
    if (address >= l.params) & (end <= l.params + PARAMETERS):
        return 0
    if (l.workspace != 0) & (address >= l.workspace) & (end <= l.workspace + WORKSPACE):
        return 0
    ranges: range = l.ranges
    low = 0
    high = l.range_count
    while low < high:
        middle = (low + high) >> 1
        if ranges[middle].start <= address:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 700
    if end <= ranges[low - 1].end:
        return 0
    return 700

# Memory for the coroutine of thread n; they lie side by side.
def frame(w: worker, size: int, n: i32) -> int:
    each = (size + 15) & ~15
    if w.frames == 0:
        w.frames = malloc(each * w.count + 64)
    return ((w.frames + 63) & ~63) + each * n

def run_block(l: launch, w: worker, cx: i32, cy: i32, cz: i32):
    for i in range(16):
        w.arrived[i] = 0
    start(l, w, cx, cy, cz)
    states: bytes = w.states
    while 1:
        moved = 0
        if l.has_warp_operations:
            first = 0
            while first < w.count:
                moved |= run_warp(w, first, min(first + 32, w.count))
                first += 32
        full = 1
        done = 1
        for i in range(w.count):
            s = states[i]
            done &= s == DONE
            full &= (s == DONE) | (s == AT_FULL)
            moved |= s == RUNNABLE
        if done:
            return
        if full:
            resume_all(w, AT_FULL)
        else:
            if (release_barriers(w) | moved) == 0:
                fail(l, 702, 0, 0, 0, 0, 0, cx, cy, cz)
                return
            if l.has_warp_operations == 0:
                resume_all(w, RUNNABLE)

def start(l: launch, w: worker, cx: i32, cy: i32, cz: i32):
    threads: thread = w.threads
    states: bytes = w.states
    shared: bytes = w.shared
    memory: bytes = l.memory
    n = 0
    for z in range(l.block_z):
        for y in range(l.block_y):
            for x in range(l.block_x):
                threads[n].handle = thread(l.thread, l, w, memory, shared, n, x, y, z, cx, cy, cz)
                states[n] = w.state
                n += 1

def resume_all(w: worker, state: int):
    threads: thread = w.threads
    states: bytes = w.states
    for i in range(w.count):
        if states[i] == state:
            resume(threads[i].handle)
            states[i] = w.state

# Run a warp as far as it goes. Its threads that wait for one another with the same member mask
# are released when all living members are there; those in `activemask` when nothing else can run.
def run_warp(w: worker, first: int, stop: int) -> int:
    threads: thread = w.threads
    states: bytes = w.states
    moved = 0
    while 1:
        alive = 0
        waiting = 0
        gathering = 0
        i = first
        while i < stop:
            if states[i] == RUNNABLE:
                resume(threads[i].handle)
                states[i] = w.state
                moved = 1
            bit = 1 << (i - first)
            s = states[i]
            alive |= bit * (s != DONE)
            waiting |= bit * (s == AT_WARP)
            gathering |= bit * (s == GATHERING)
            i += 1
        released = 0
        while waiting:
            leader = first + lowest_bit(waiting)
            group = same_key(w, first, waiting, threads[leader].key)
            if (threads[leader].key & alive & ~group) == 0:
                release(w, first, group)
                released = 1
            waiting &= ~group
        if (released == 0) & (gathering != 0):
            leader = first + lowest_bit(gathering)
            release(w, first, same_key(w, first, gathering, threads[leader].key))
            released = 1
        if released == 0:
            return moved
        moved = 1

def same_key(w: worker, first: int, lanes: int, key: int) -> int:
    threads: thread = w.threads
    found = 0
    while lanes:
        lane = lowest_bit(lanes)
        found |= (threads[first + lane].key == key) << lane
        lanes &= lanes - 1
    return found

def release(w: worker, first: int, group: int):
    threads: thread = w.threads
    ballot = 0
    lanes = group
    while lanes:
        lane = lowest_bit(lanes)
        threads[first + lane].published = threads[first + lane].value
        ballot |= (threads[first + lane].value & 1) << lane
        lanes &= lanes - 1
    lanes = group
    while lanes:
        wake(w, first + lowest_bit(lanes), ballot, group)
        lanes &= lanes - 1

def wake(w: worker, n: int, ballot: int, members: int):
    threads: thread = w.threads
    states: bytes = w.states
    threads[n].ballot = ballot
    threads[n].members = members
    states[n] = RUNNABLE

# Release the barriers whose threads are all there; each gets the number of threads that came with
# a true predicate (ballot) and the number of threads (members).
def release_barriers(w: worker) -> int:
    threads: thread = w.threads
    states: bytes = w.states
    for b in range(16):
        w.waiting[b] = 0
        w.ones[b] = 0
    live = 0
    for i in range(w.count):
        live += states[i] != DONE
        if (states[i] == AT_BARRIER) | (states[i] == AT_FULL):
            if states[i] == AT_FULL:
                threads[i].key = 0
                threads[i].expected = 0
                threads[i].value = 0
            b = threads[i].key
            w.waiting[b] += 1
            w.ones[b] += threads[i].value
            w.expected[b] = threads[i].expected
    released = 0
    for b in range(16):
        wanted = w.expected[b]
        if wanted == 0:
            wanted = live
        if (w.waiting[b] != 0) & (w.waiting[b] + w.arrived[b] >= wanted):
            w.arrived[b] = 0
            released |= 1 << b
    for i in range(w.count):
        if (states[i] == AT_BARRIER) | (states[i] == AT_FULL):
            b = threads[i].key
            if released >> b & 1:
                wake(w, i, w.ones[b], w.waiting[b])
    return released
"""
