"""Compiles launchers: C functions that unbox the arguments of a signature and call the driver.

They handle what needs no conversion: device arrays of the expected type, numbers that fit, bools
and None. All else, also whatever is wrong, goes to a Python function that launches or raises.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import cudadrv
from cudadrv import raw
from cudadrv.context import Resource
from cudadrv.launch_config import LaunchConfig
from cudadrv.memory import DeviceMemory
from cudadrv.view import View

from .. import types
from ..types import Array, Boolean, Float, Integer, Scalar, Type

# Offsets in CPython's objects: the type, the value of a float or NumPy scalar, that of bytes.
TYPE_AT, VALUE_AT, BYTES_AT = 8, 16, 32
FASTCALL, KEYWORDS = 0x80, 0x2
SUPPORTED = (
    sys.implementation.name == "cpython"
    and ctypes.sizeof(ctypes.c_void_p) == 8
    and "free-threading" not in sys.version
    and not hasattr(sys, "gettotalrefcount")
)


def offset_of(cls: type, name: str) -> int:
    """Where the member of a ``__slots__`` entry lies in its object.

    The descriptor is PyMemberDescrObject: head, class, name, qualified name, PyMemberDef*; the
    definition is name, type, offset.
    """
    definition = ctypes.c_void_p.from_address(id(cls.__dict__[name]) + 5 * 8).value or 0
    return ctypes.c_ssize_t.from_address(definition + 16).value


class Descriptor(ctypes.Structure):
    """What a launcher reads besides its arguments; its bytes are the ``self`` of the C function."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        ("config", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("library", ctypes.py_object),
        ("watched", ctypes.py_object),
        ("slow", ctypes.py_object),
        ("failed", ctypes.py_object),
    )


class Text:
    """Lines of LLVM IR, with fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def name(self) -> str:
        """A name not used yet."""
        self.count += 1
        return f"%v{self.count}"

    def let(self, code: str) -> str:
        """A value computed by *code*."""
        result = self.name()
        self.lines.append(f"  {result} = {code}")
        return result

    def load(self, base: str, offset: int, kind: str = "ptr") -> str:
        """What lies *offset* bytes behind *base*."""
        return self.let(f"load {kind}, ptr {self.at(base, offset)}")

    def at(self, base: str, offset: int) -> str:
        """The address *offset* bytes behind *base*."""
        return self.let(f"getelementptr i8, ptr {base}, i64 {offset}")

    def need(self, condition: str) -> None:
        """Leave for the Python function unless *condition* holds."""
        self.count += 1
        label = f"ok{self.count}"
        self.lines += [f"  br i1 {condition}, label %{label}, label %slow", f"{label}:"]

    def is_object(self, pointer: str, *objects: object) -> str:
        """Whether *pointer* is one of these Python objects."""
        found = [self.let(f"icmp eq ptr {pointer}, {address(id(each))}") for each in objects]
        result = found[0]
        for other in found[1:]:
            result = self.let(f"or i1 {result}, {other}")
        return result


def address(value: int) -> str:
    """A constant pointer in LLVM's spelling."""
    return f"inttoptr (i64 {value} to ptr)"


def python(name: str) -> str:
    """The address of a function of Python's C API."""
    function = getattr(ctypes.pythonapi, name)
    return address(ctypes.cast(function, ctypes.c_void_p).value or 0)


def can_launch(args: Sequence[Type]) -> bool:
    """Whether a launcher can be compiled for arguments of these types."""
    return SUPPORTED and all(map(is_plain, args)) and raw.available("cuLaunchKernelEx")


def is_plain(ty: Type) -> bool:
    """Whether the launcher can unbox a type."""
    if type(ty) is Float:
        return ty.bits > 16 and has_numpy_layout()
    return ty is types.none or type(ty) in (Array, Boolean, Integer)


@functools.cache
def has_numpy_layout() -> bool:
    """Whether NumPy's scalars keep their value where ``VALUE_AT`` says."""
    number = np.float64(1.5)
    return ctypes.c_double.from_address(id(number) + VALUE_AT).value == 1.5


def unbox(text: Text, ty: Type, value: str, accepted: Sequence[Type]) -> list[str]:
    """Check one argument; the addresses of its leaves."""
    if isinstance(ty, Array):
        return unbox_array(text, ty, value, accepted)
    if ty is types.none:
        text.need(text.is_object(value, None))
        return []
    if isinstance(ty, Boolean):
        text.need(text.is_object(value, True, False))
        return [stored(text, "i8", text.let(f"zext i1 {text.is_object(value, True)} to i8"))]
    assert isinstance(ty, Scalar)
    if ty not in accepted:  # A NumPy scalar of just this type.
        text.need(text.is_object(text.load(value, TYPE_AT), ty.dtype.type))
        return [text.at(value, VALUE_AT)]
    if isinstance(ty, Float):
        return [unbox_float(text, ty, value)]
    assert isinstance(ty, Integer)
    return [unbox_int(text, ty, value)]


def unbox_array(text: Text, ty: Array, value: str, accepted: Sequence[Type]) -> list[str]:
    """The leaves of a device array that has been launched with before, and is still open."""
    text.need(text.is_object(text.load(value, TYPE_AT), cudadrv.DeviceArray))
    known = text.load(value, offset_of(View, "kernel_type"))
    text.need(text.is_object(known, *accepted))
    memory = text.load(value, offset_of(View, "memory"))
    root = text.load(memory, offset_of(DeviceMemory, "_root"))
    whole = text.is_object(root, None)
    for owner in (memory, text.let(f"select i1 {whole}, ptr {memory}, ptr {root}")):
        handle = text.load(owner, offset_of(Resource, "_handle"))
        text.need(text.let(f"icmp ne ptr {handle}, {address(id(None))}"))
    leaves = text.load(value, offset_of(View, "leaves"))
    count = 1 + ty.ndim * (2 if ty.layout == "A" else 1)
    return [text.at(leaves, BYTES_AT + 8 * i) for i in range(count)]


def unbox_float(text: Text, ty: Float, value: str) -> str:
    """A Python float; one that overflows float32 is left to Python to refuse."""
    text.need(text.is_object(text.load(value, TYPE_AT), float))
    number = text.load(value, VALUE_AT, "double")
    if ty.bits == 64:
        return stored(text, "double", number)
    narrow = text.let(f"fptrunc double {number} to float")
    infinity = "0x7FF0000000000000"
    size = text.let(f"call float @llvm.fabs.f32(float {narrow})")
    before = text.let(f"call double @llvm.fabs.f64(double {number})")
    fits = text.let(f"fcmp une float {size}, {infinity}")
    was = text.let(f"fcmp oeq double {before}, {infinity}")
    text.need(text.let(f"or i1 {fits}, {was}"))
    return stored(text, "float", narrow)


def unbox_int(text: Text, ty: Integer, value: str) -> str:
    """A Python int that fits."""
    text.need(text.is_object(text.load(value, TYPE_AT), int))
    convert = python("PyLong_AsLongLongAndOverflow")
    number = text.let(f"call i64 {convert}(ptr {value}, ptr %overflow)")
    text.need(text.let(f"icmp eq i32 {text.load('%overflow', 0, 'i32')}, 0"))
    low = -(1 << (ty.bits - 1)) if ty.signed else 0
    high = (1 << (ty.bits - 1 if ty.signed else min(ty.bits, 63))) - 1
    text.need(text.let(f"icmp sge i64 {number}, {low}"))
    text.need(text.let(f"icmp sle i64 {number}, {high}"))
    if ty.bits == 64:
        return stored(text, "i64", number)
    narrow = text.let(f"trunc i64 {number} to i{ty.bits}")
    return stored(text, f"i{ty.bits}", narrow)


def stored(text: Text, kind: str, value: str) -> str:
    """The address of a value on the stack."""
    place = text.name()
    text.lines.insert(0, f"  {place} = alloca i64")
    text.lines.append(f"  store {kind} {value}, ptr {place}")
    return place


def body(args: Sequence[Type], accepted: Sequence[Sequence[Type]]) -> str:
    """The LLVM IR of a launcher for a signature.

    Args:
        accepted: of each argument, the types of arrays that it takes; of a scalar its own type if
            Python numbers are taken, nothing if only NumPy's scalars are.
    """
    text = Text()
    text.need(text.let(f"icmp eq i64 %count, {len(args)}"))
    text.need(text.let("icmp eq ptr %keywords, null"))
    for which in ("library", "watched"):
        owner = text.load("%self", BYTES_AT + getattr(Descriptor, which).offset)
        handle = text.load(owner, offset_of(Resource, "_handle"))
        text.need(text.let(f"icmp ne ptr {handle}, {address(id(None))}"))
    leaves = []
    for position, (ty, takes) in enumerate(zip(args, accepted, strict=True)):
        leaves += unbox(text, ty, text.load("%args", 8 * position), takes)
    current = address(raw.address("cuCtxGetCurrent"))
    text.need(text.let(f"icmp eq i32 {text.let(f'call i32 {current}(ptr %context)')}, 0"))
    wanted = text.load("%self", BYTES_AT + Descriptor.context.offset)
    text.need(text.let(f"icmp eq ptr {text.load('%context', 0)}, {wanted}"))
    for position, leaf in enumerate(leaves):
        text.lines.append(f"  store ptr {leaf}, ptr {text.at('%parameters', 8 * position)}")
    config = text.load("%self", BYTES_AT + Descriptor.config.offset)
    function = text.load("%self", BYTES_AT + Descriptor.function.offset)
    return WHOLE.format(
        checks="\n".join(text.lines),
        parameters=max(len(leaves), 1),
        config=config,
        function=function,
        launch=address(raw.address("cuLaunchKernelEx")),
        save=python("PyEval_SaveThread"),
        restore=python("PyEval_RestoreThread"),
        vectorcall=python("PyObject_Vectorcall"),
        from_long=python("PyLong_FromLong"),
        call=python("PyObject_CallFunctionObjArgs"),
        increment=python("Py_IncRef"),
        decrement=python("Py_DecRef"),
        none=address(id(None)),
        slow=BYTES_AT + Descriptor.slow.offset,
        failed=BYTES_AT + Descriptor.failed.offset,
    )


WHOLE = """\
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)

define ptr @launcher(ptr %self, ptr %args, i64 %count, ptr %keywords) {{
  %overflow = alloca i32
  %context = alloca ptr
  %parameters = alloca ptr, i64 {parameters}
{checks}
  %thread = call ptr {save}()
  %code = call i32 {launch}(ptr {config}, ptr {function}, ptr %parameters, ptr null)
  call void {restore}(ptr %thread)
  %well = icmp eq i32 %code, 0
  br i1 %well, label %done, label %wrong
done:
  call void {increment}(ptr {none})
  ret ptr {none}
wrong:
  %wide = sext i32 %code to i64
  %number = call ptr {from_long}(i64 %wide)
  %failed_at = getelementptr i8, ptr %self, i64 {failed}
  %failed = load ptr, ptr %failed_at
  %raised = call ptr (ptr, ...) {call}(ptr %failed, ptr %number, ptr null)
  call void {decrement}(ptr %number)
  ret ptr %raised
slow:
  %slow_at = getelementptr i8, ptr %self, i64 {slow}
  %slow_function = load ptr, ptr %slow_at
  %answer = call ptr {vectorcall}(ptr %slow_function, ptr %args, i64 %count, ptr %keywords)
  ret ptr %answer
}}
"""


class MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Launcher:
    """The machine code for one signature, from which a callable for each configuration is made."""

    def __init__(self, args: Sequence[Type], accepted: Sequence[Sequence[Type]]) -> None:
        """Compile it.

        Args:
            args: a signature for which ``can_launch`` holds.
            accepted: as for ``body``.
        """
        # What the code refers to by address.
        self._kept = (args, accepted)
        self._engine = compiled(body(args, accepted))
        code = self._engine.get_function_address("launcher")
        self._definition = MethodDef(b"launch", code, FASTCALL | KEYWORDS, None)

    def bind(
        self,
        kernel: cudadrv.Kernel,
        config: LaunchConfig,
        context: int,
        slow: Callable[..., None],
        failed: Callable[[int], None],
    ) -> Callable[..., None]:
        """A callable that launches *kernel* as *config* says.

        Args:
            context: the handle of the context that must be current.
            slow: is called with the arguments if they are not what the code handles.
            failed: is called with the CUresult of a launch that failed, and raises.
        """
        library, watched = kernel.library, (*config.resources, kernel.library)[0]
        made = ctypes.addressof(config.raw)
        described = Descriptor(context, made, kernel.handle, library, watched, slow, failed)
        kept = (self, config, library, watched, slow, failed)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
        make.restype = ctypes.py_object
        launch: Callable[..., None] = make(
            ctypes.addressof(self._definition), bytes(described), kept
        )
        return launch


def compiled(text: str) -> Any:
    """An execution engine that holds the optimised machine code of LLVM IR."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(text)
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
