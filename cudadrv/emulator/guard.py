"""Turns a memory fault of a kernel into an error of its launch, instead of the process's end."""

from __future__ import annotations

import ctypes
import sys

from . import jit

# The value of launch.error_block[0] where the faulting block is not known.
NOWHERE = 0xFFFFFFFF
_SIGNALS = (7, 11)  # SIGBUS, SIGSEGV
_FLAGS = 0x40000004  # SA_NODEFER, SA_SIGINFO
_PLACE = 700  # CUDA_ERROR_ILLEGAL_ADDRESS
_NEEDED = ("__sigsetjmp", "siglongjmp", "sigaction", "pthread_getspecific", "pthread_setspecific")

# `guarded` is `run` between a setjmp and its end. A fault jumps back there if this thread is in one
# and computes: with Python's lock held, it is Python code that faults, in a callback. Every other
# fault goes to whom it went before. 1024 bytes hold a jmp_buf of any machine, then the address.
_TEXT = """
@old = internal global [65 x [160 x i8]] zeroinitializer, align 16
declare i32 @__sigsetjmp(ptr, i32) returns_twice
declare void @siglongjmp(ptr, i32) noreturn
declare i32 @sigaction(i32, ptr, ptr)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @emulator.holds_gil()

define i32 @install(i32 %signal, ptr %action) {
  %old = getelementptr [160 x i8], ptr @old, i32 %signal
  %r = call i32 @sigaction(i32 %signal, ptr %action, ptr %old)
  ret i32 %r
}

define void @handler(i32 %signal, ptr %info, ptr %context) {
  %buffer = call ptr @pthread_getspecific(i32 KEY)
  %outside = icmp eq ptr %buffer, null
  br i1 %outside, label %other, label %inside
inside:
  %gil = call i32 @emulator.holds_gil()
  %python = icmp ne i32 %gil, 0
  br i1 %python, label %other, label %ours
ours:
  %from = getelementptr i8, ptr %info, i32 16
  %address = load i64, ptr %from
  %to = getelementptr i8, ptr %buffer, i32 1016
  store i64 %address, ptr %to
  call void @siglongjmp(ptr %buffer, i32 1)
  unreachable
other:
  %old = getelementptr [160 x i8], ptr @old, i32 %signal
  %r = call i32 @sigaction(i32 %signal, ptr %old, ptr null)
  ret void
}

define void @guarded(ptr %launch) {
  %buffer = alloca [1024 x i8], align 16
  %outer = call ptr @pthread_getspecific(i32 KEY)
  %set = call i32 @pthread_setspecific(i32 KEY, ptr %buffer)
  %jumped = call i32 @__sigsetjmp(ptr %buffer, i32 0) returns_twice
  %fault = icmp ne i32 %jumped, 0
  br i1 %fault, label %failed, label %begin
begin:
  call void inttoptr (i64 RUN to ptr)(ptr %launch)
  br label %end
failed:
  %from = getelementptr i8, ptr %buffer, i32 1016
  %address = load i64, ptr %from
  call void inttoptr (i64 FAIL to ptr)(ptr %launch, i32 PLACE, i32 0, i64 %address,
    i32 0, i32 0, i32 0, i32 NOWHERE, i32 0, i32 0)
  br label %end
end:
  %unset = call i32 @pthread_setspecific(i32 KEY, ptr %outer)
  ret void
}
"""
_keep: list[object] = []


class _Action(ctypes.Structure):
    """struct sigaction as C libraries on Linux have it."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint8 * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def guarded(run: int, fail: int) -> int:
    """The address of a function like the one at *run* that survives faults; *run* off Linux."""
    library = ctypes.CDLL(None)
    if sys.platform != "linux" or not all(hasattr(library, name) for name in _NEEDED):
        return run
    key = ctypes.c_uint()
    if library.pthread_key_create(ctypes.byref(key), None):
        return run
    holds = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p)
    jit.define("emulator.holds_gil", holds.value or 0)
    text = _TEXT
    values = {"KEY": key.value, "RUN": run, "FAIL": fail, "PLACE": _PLACE, "NOWHERE": NOWHERE}
    for name, value in values.items():
        text = text.replace(f" {name}", f" {value}")
    code = jit.Code(text, fully=False)
    install = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(code.address("install"))
    action = _Action(handler=code.address("handler"), flags=_FLAGS)
    for signal in _SIGNALS:
        install(signal, ctypes.addressof(action))
    _keep.extend([code, install])
    return code.address("guarded")
