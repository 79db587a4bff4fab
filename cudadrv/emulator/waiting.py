"""The LLVM IR that decides which waiting threads of a block may go on."""

from __future__ import annotations

# Run a warp as far as it goes. Its threads that wait for one another with the same member mask
# are released when all living members are there; those in `activemask` when nothing else can run.
WARP = """
define internal i1 @warp(ptr %w, ptr %states, ptr %threads, i32 %first, i32 %stop) {
entry:
  %got.p = getelementptr worker.state!
  br label %pass
pass:
  %moved = phi i1 [ false, %entry ], [ true, %again ]
  br label %lane
lane:
  %i = phi i32 [ %first, %pass ], [ %i.next, %lane.end ]
  %ran = phi i1 [ %moved, %pass ], [ %ran.then, %lane.end ]
  %alive = phi i32 [ 0, %pass ], [ %alive.then, %lane.end ]
  %wait = phi i32 [ 0, %pass ], [ %wait.then, %lane.end ]
  %gather = phi i32 [ 0, %pass ], [ %gather.then, %lane.end ]
  %state.p = getelementptr i8, ptr %states, i32 %i
  %state = load i8, ptr %state.p
  %runnable = icmp eq i8 %state, #RUNNABLE
  br i1 %runnable, label %resume, label %note
resume:
  %t = getelementptr %thread, ptr %threads, i32 %i
  %handle.p = getelementptr thread.handle!
  %handle = load ptr, ptr %handle.p
  call void @llvm.coro.resume(ptr %handle)
  %state.got = load i32, ptr %got.p
  %state.new = trunc i32 %state.got to i8
  store i8 %state.new, ptr %state.p
  br label %note
note:
  %s = phi i8 [ %state, %lane ], [ %state.new, %resume ]
  %r = phi i1 [ %ran, %lane ], [ true, %resume ]
  %lane.number = sub i32 %i, %first
  %bit = shl i32 1, %lane.number
  %is.done = icmp eq i8 %s, #DONE
  %is.wait = icmp eq i8 %s, #AT_WARP
  %is.gather = icmp eq i8 %s, #GATHERING
  %alive.bit = select i1 %is.done, i32 0, i32 %bit
  %wait.bit = select i1 %is.wait, i32 %bit, i32 0
  %gather.bit = select i1 %is.gather, i32 %bit, i32 0
  br label %lane.end
lane.end:
  %ran.then = phi i1 [ %r, %note ]
  %alive.then = or i32 %alive, %alive.bit
  %wait.then = or i32 %wait, %wait.bit
  %gather.then = or i32 %gather, %gather.bit
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %stop
  br i1 %more, label %lane, label %groups
groups:
  %base = getelementptr %thread, ptr %threads, i32 %first
  %base.states = getelementptr i8, ptr %states, i32 %first
  %any = icmp ne i32 %wait.then, 0
  br i1 %any, label %group, label %gathering
group:
  %todo = phi i32 [ %wait.then, %groups ], [ %todo.next, %group.end ]
  %released = phi i1 [ false, %groups ], [ %released.then, %group.end ]
  %leader = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %same = call i32 @same(ptr %base, i32 %todo, i32 %leader)
  %leader.t = getelementptr %thread, ptr %base, i32 %leader
  %mask = call i32 @key(ptr %leader.t)
  %members = and i32 %mask, %alive.then
  %others = xor i32 %same, -1
  %absent = and i32 %members, %others
  %complete = icmp eq i32 %absent, 0
  br i1 %complete, label %release, label %group.end
release:
  call void @release(ptr %base, ptr %base.states, i32 %same)
  br label %group.end
group.end:
  %released.then = phi i1 [ %released, %group ], [ true, %release ]
  %todo.next = and i32 %todo, %others
  %todo.any = icmp ne i32 %todo.next, 0
  br i1 %todo.any, label %group, label %groups.end
groups.end:
  br i1 %released.then, label %again, label %gathering
gathering:
  %gather.any = icmp ne i32 %gather.then, 0
  br i1 %gather.any, label %converge, label %done
converge:
  %g.leader = call i32 @llvm.cttz.i32(i32 %gather.then, i1 true)
  %g.same = call i32 @same(ptr %base, i32 %gather.then, i32 %g.leader)
  call void @release(ptr %base, ptr %base.states, i32 %g.same)
  br label %again
again:
  br label %pass
done:
  ret i1 %ran.then
}
declare i32 @llvm.cttz.i32(i32, i1)

define internal i32 @key(ptr %t) alwaysinline {
  %p = getelementptr thread.key!
  %key = load i32, ptr %p
  ret i32 %key
}

define internal i32 @same(ptr %base, i32 %lanes, i32 %leader) {
entry:
  %leader.t = getelementptr %thread, ptr %base, i32 %leader
  %wanted = call i32 @key(ptr %leader.t)
  br label %next
next:
  %todo = phi i32 [ %lanes, %entry ], [ %rest, %next ]
  %found = phi i32 [ 0, %entry ], [ %found.then, %next ]
  %lane = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %minus = sub i32 %todo, 1
  %rest = and i32 %todo, %minus
  %t = getelementptr %thread, ptr %base, i32 %lane
  %key = call i32 @key(ptr %t)
  %equal = icmp eq i32 %key, %wanted
  %bit = shl i32 1, %lane
  %bit.if = select i1 %equal, i32 %bit, i32 0
  %found.then = or i32 %found, %bit.if
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %next, label %done
done:
  ret i32 %found.then
}

define internal void @release(ptr %base, ptr %states, i32 %lanes) {
entry:
  br label %publish
publish:
  %todo = phi i32 [ %lanes, %entry ], [ %rest, %publish ]
  %ballot = phi i32 [ 0, %entry ], [ %ballot.then, %publish ]
  %lane = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %minus = sub i32 %todo, 1
  %rest = and i32 %todo, %minus
  %t = getelementptr %thread, ptr %base, i32 %lane
  %value.p = getelementptr thread.value!
  %value = load i64, ptr %value.p
  %published.p = getelementptr thread.published!
  store i64 %value, ptr %published.p
  %truth = trunc i64 %value to i32
  %truth.bit = and i32 %truth, 1
  %bit = shl i32 %truth.bit, %lane
  %ballot.then = or i32 %ballot, %bit
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %publish, label %wake
wake:
  %todo2 = phi i32 [ %lanes, %publish ], [ %rest2, %wake.lane ]
  %any2 = icmp ne i32 %todo2, 0
  br i1 %any2, label %wake.lane, label %done
wake.lane:
  %lane2 = call i32 @llvm.cttz.i32(i32 %todo2, i1 true)
  %minus2 = sub i32 %todo2, 1
  %rest2 = and i32 %todo2, %minus2
  call void @wake(ptr %base, ptr %states, i32 %lane2, i32 %ballot.then, i32 %lanes)
  br label %wake
done:
  ret void
}

define internal void @wake(ptr %base, ptr %states, i32 %index, i32 %ballot, i32 %members)
    alwaysinline {
  %t = getelementptr %thread, ptr %base, i32 %index
  %ballot.p = getelementptr thread.ballot!
  store i32 %ballot, ptr %ballot.p
  %members.p = getelementptr thread.members!
  store i32 %members, ptr %members.p
  %state.p = getelementptr i8, ptr %states, i32 %index
  store i8 #RUNNABLE, ptr %state.p
  ret void
}
"""

# Release the barriers whose threads are all there; each gets the number of threads that came with
# a true predicate (ballot) and the number of threads (members).
BARRIERS = """
define internal i1 @barriers(ptr %w, ptr %states, ptr %threads, i32 %count) {
entry:
  %arrived.p = getelementptr worker.arrived!
  %waiting.p = getelementptr worker.waiting!
  %expected.p = getelementptr worker.expected!
  %ones.p = getelementptr worker.ones!
  call void @llvm.memset.p0.i64(ptr %waiting.p, i8 0, i64 64, i1 false)
  call void @llvm.memset.p0.i64(ptr %ones.p, i8 0, i64 64, i1 false)
  br label %scan
scan:
  %i = phi i32 [ 0, %entry ], [ %i.next, %scan.end ]
  %live = phi i32 [ 0, %entry ], [ %live.then, %scan.end ]
  %state.p = getelementptr i8, ptr %states, i32 %i
  %state = load i8, ptr %state.p
  %living = icmp ne i8 %state, #DONE
  %living.1 = zext i1 %living to i32
  %live.then = add i32 %live, %living.1
  switch i8 %state, label %scan.end [
    i8 #AT_BARRIER, label %count.it
    i8 #AT_FULL, label %count.full
  ]
count.full:
  %f.waiting = load i32, ptr %waiting.p
  %f.more = add i32 %f.waiting, 1
  store i32 %f.more, ptr %waiting.p
  store i32 0, ptr %expected.p
  br label %scan.end
count.it:
  %t = getelementptr %thread, ptr %threads, i32 %i
  %id = call i32 @key(ptr %t)
  %need.p = getelementptr thread.expected!
  %need = load i32, ptr %need.p
  %value.p = getelementptr thread.value!
  %value = load i64, ptr %value.p
  %one = trunc i64 %value to i32
  %waiting.i = getelementptr i32, ptr %waiting.p, i32 %id
  %waiting = load i32, ptr %waiting.i
  %waiting.then = add i32 %waiting, 1
  store i32 %waiting.then, ptr %waiting.i
  %ones.i = getelementptr i32, ptr %ones.p, i32 %id
  %ones = load i32, ptr %ones.i
  %ones.then = add i32 %ones, %one
  store i32 %ones.then, ptr %ones.i
  %expected.i = getelementptr i32, ptr %expected.p, i32 %id
  store i32 %need, ptr %expected.i
  br label %scan.end
scan.end:
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %scan, label %decide
decide:
  %b = phi i32 [ 0, %scan.end ], [ %b.next, %decide.end ]
  %any = phi i1 [ false, %scan.end ], [ %any.then, %decide.end ]
  %waiting.b = getelementptr i32, ptr %waiting.p, i32 %b
  %w.b = load i32, ptr %waiting.b
  %arrived.b = getelementptr i32, ptr %arrived.p, i32 %b
  %a.b = load i32, ptr %arrived.b
  %expected.b = getelementptr i32, ptr %expected.p, i32 %b
  %e.b = load i32, ptr %expected.b
  %used = icmp ne i32 %w.b, 0
  %all = icmp eq i32 %e.b, 0
  %wanted = select i1 %all, i32 %live.then, i32 %e.b
  %there = add i32 %w.b, %a.b
  %enough = icmp uge i32 %there, %wanted
  %complete = and i1 %used, %enough
  br i1 %complete, label %reset, label %keep
reset:
  store i32 0, ptr %arrived.b
  br label %decide.end
keep:
  store i32 0, ptr %waiting.b
  br label %decide.end
decide.end:
  %any.then = phi i1 [ true, %reset ], [ %any, %keep ]
  %b.next = add i32 %b, 1
  %b.more = icmp ult i32 %b.next, 16
  br i1 %b.more, label %decide, label %wake.all
wake.all:
  br i1 %any.then, label %wake, label %done
wake:
  %j = phi i32 [ 0, %wake.all ], [ %j.next, %wake.end ]
  %state.j = getelementptr i8, ptr %states, i32 %j
  %s.j = load i8, ptr %state.j
  %at = icmp eq i8 %s.j, #AT_BARRIER
  %at.full = icmp eq i8 %s.j, #AT_FULL
  %at.any = or i1 %at, %at.full
  br i1 %at.any, label %maybe, label %wake.end
maybe:
  %t.j = getelementptr %thread, ptr %threads, i32 %j
  %key.j = call i32 @key(ptr %t.j)
  %id.j = select i1 %at.full, i32 0, i32 %key.j
  %waiting.j = getelementptr i32, ptr %waiting.p, i32 %id.j
  %n.j = load i32, ptr %waiting.j
  %free = icmp ne i32 %n.j, 0
  br i1 %free, label %go, label %wake.end
go:
  %ones.j = getelementptr i32, ptr %ones.p, i32 %id.j
  %o.j = load i32, ptr %ones.j
  call void @wake(ptr %threads, ptr %states, i32 %j, i32 %o.j, i32 %n.j)
  br label %wake.end
wake.end:
  %j.next = add i32 %j, 1
  %j.more = icmp ult i32 %j.next, %count
  br i1 %j.more, label %wake, label %done
done:
  ret i1 %any.then
}
"""
