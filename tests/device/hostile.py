"""Calls every public part of cudadrv's objects with hostile values; run as a program, by names.

What is called is found by looking: the names of ``cudadrv.__all__``, the methods and properties of
classes, and the objects that these lead to. A name that is new is called without further ado.
"""

from __future__ import annotations

import fnmatch
import inspect
import io
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import cudadrv as cu
from cudadrv import errors, nvrtc
from tests.device.driver_code import PTX

# What a wrong call may raise; OSError only where files are opened or operating systems asked.
ALLOWED = (
    *(e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)),
    TypeError,
    ValueError,
    IndexError,
    BufferError,
    MemoryError,
    OverflowError,
)
# By the beginning of the name: what it may raise besides. Mappings may raise KeyError.
ALSO: dict[str, tuple[type[BaseException], ...]] = {
    "load": (OSError,),
    "Linker": (OSError, nvrtc.NvrtcError),
    "Graph.to_dot": (OSError,),
    "Context.pop": (RuntimeError,),
}
# Name, or pattern of names -> why it is not called.
EXCLUDED = {
    "use_driver": "would leave the emulator",
    "Context": "takes the handle of a context that exists: adopt() checks",
    "DeviceMemory": "describes memory at a trusted address: adopt() checks",
    "HostMemory": "what PinnedMemory, ManagedMemory and RegisteredMemory share",
    "ManagedMemory": "managed_alloc() makes it",
    "PitchedMemory": "mem_alloc_pitch() makes it",
    "StreamMemory": "mem_alloc_async() makes it",
    "IpcMemory": "ipc_open() makes it",
    "RegisteredMemory": "host_register() makes it",
    "Resource": "what all objects with a handle share",
    "Kernel": "a library makes it",
    "MemoryManager": "a protocol",
    "MappedArray": "NumPy's methods",
    "TensorMap": "tiled() and its like make it",
    "PinnedMemory.adopt": "takes a trusted host address",
    "RegisteredMemory.RELEASE": "is called by finalizers",
    "End.fill": "fills a structure of the driver, for copies",
    "*Node.fill": "fills a structure of the driver, for graphs",
    "*Layout.of": "reads a structure of the driver",
    "ArrayRegion.opposite": "one side of a copy, which copy_from() and copy_to() check",
    "Edge.of": "reads a structure of the driver",
    "GraphExec.of": "takes a handle of the driver",
    "GraphExec": "instantiate() makes it",
    "SmResource": "a device or a green context gives it",
    "Stream.wait_value": "waits for ever, as asked",
    "Device.reset": "ends every other object; tested by itself",
    "Device.release_primary": "ends every other object",
    "Device.primary_flags": "is for all later tests",
}
# Parameters that are addresses: an int is trusted.
TRUSTED = {"function", "handle", "cig"}
DUNDERS = (
    "__array__ __bool__ __call__ __contains__ __copy__ __cuda_array_interface__ __cuda_stream__ "
    "__deepcopy__ __delitem__ __dlpack__ __dlpack_device__ __eq__ __float__ __getitem__ __hash__ "
    "__int__ __iter__ __len__ __reduce__ __repr__ __setitem__"
)


class Value(NamedTuple):
    """A value that is made anew for each call, and how it is written in a report."""

    label: str
    make: Callable[[], Any]


class Raising:
    """An object whose every protocol fails."""

    def fail(self, *_: object, **__: object) -> Any:
        """Fail."""
        raise ValueError("hostile")

    __index__ = __int__ = __float__ = __len__ = __iter__ = __getitem__ = __fspath__ = fail
    __cuda_stream__ = __dlpack__ = __dlpack_device__ = fail
    __cuda_array_interface__ = property(fail)
    handle = ptr = property(fail)


class Lying:
    """An object whose every protocol returns nonsense."""

    __cuda_array_interface__: ClassVar[Any] = {
        "shape": (3,),
        "typestr": 7,
        "data": "x",
        "version": 3,
    }
    handle = "handle"
    dtype = "dtype"
    shape = 5
    nbytes = "many"

    def __cuda_stream__(self) -> Any:
        return "stream"

    def __dlpack_device__(self) -> Any:
        return "device"

    def __dlpack__(self, **_: object) -> Any:
        return 5


class Interface:
    """A device array by the CUDA Array Interface, with changes."""

    def __init__(self, **changes: Any) -> None:
        known = {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 3}
        self.__cuda_array_interface__ = {**known, **changes}


def closed(thing: Any) -> Any:
    """*thing*, closed."""
    thing.close()
    return thing


def deep() -> Any:
    """A tuple in a tuple in a tuple."""
    found: Any = ()
    for _ in range(100):
        found = (found,)
    return found


def frozen() -> Any:
    """A read-only NumPy array."""
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    return array


EXPRESSIONS = """
None; True; ...; ""; ","; "abc"; "\\udc80"; "a\\0b"; b""; b"bytes"; bytearray(4)
memoryview(bytes(9))[::2]; -1; 0; 1; 2; 3; 7; 31; 100; 2**31; 2**32; 2**32 + 1; 2**63; 2**64
2**64 + 1; -2**63; -2**70; 2**70; 0.5; -0.0; 1e30; float("nan"); float("inf"); 1j; (); (0,)
(1, 2); (-1, 2); ("a",); (None,); (2**70,); []; [1]; [[]]; {}; {"a": 1}; set(); range(3)
object(); int; len; lambda *a: a; slice(None); slice("a"); deep(); Raising(); Lying()
iter([1, 2]); np.float32(1); np.int64(3); np.bool_(True); np.datetime64(1, "s")
np.zeros(4, np.float32); np.zeros(()); np.zeros(0); np.zeros((2, 3))[:, ::2]; np.array([None])
np.array(["a"]); np.zeros(2, [("a", "i4")]); frozen(); np.array([float("nan")])
np.arange(5)[::-1]; cu; cu.Device(0); cu.current_context(); cu.Stream(); cu.Event()
cu.mem_alloc(16); cu.mem_alloc(0); cu.to_device(np.ones(4, np.float32))
cu.to_device(np.ones((2, 2)))[::-1]; cu.DeviceArray; cu.Stream
cu.to_device(np.ones(4)).broadcast_to((2, 4)); cu.device_array((0, 3)); cu.PinnedMemory(16)
cu.mapped_array(4); cu.managed_array(4, "i2"); library(); library()["scale"]
cu.load(PTX)["last_shared"]; closed(cu.Stream()); closed(cu.Event()); closed(cu.mem_alloc(16))
closed(cu.load(PTX)); closed(cu.to_device(np.ones(4, np.float32))); closed(cu.PinnedMemory(16))
cu.CudaArray(4, "f4"); Interface(); Interface(data=(None, False)); Interface(shape=(-1,))
Interface(shape=()); Interface(version="x"); Interface(strides=(2**62,))
Interface(typestr="<f0"); Interface(stream=0); Interface(mask=5); Interface(data=5)
cu.to_device(np.ones(4)).__dlpack__(); np.zeros(3).__dlpack__()
"""


def library() -> cu.Library:
    """A loaded library; parsed once."""
    global _library
    if _library is None or _library.closed:
        _library = cu.load(PTX)
    return _library


_library: cu.Library | None = None


def value(text: str) -> Value:
    """The value that an expression gives."""
    code = compile(text.strip(), "<value>", "eval")
    return Value(text.strip(), lambda: eval(code, globals()))


HOSTILE = [value(text) for line in EXPRESSIONS.strip().splitlines() for text in line.split("; ")]
# What fits, by the name of the parameter, so that calls get past the first check.
FITTING = {
    name: [value(text) for text in texts.split("; ")]
    for name, texts in {
        "stream": "None; cu.Stream(); 1",
        "nbytes": "16; 8",
        "shape": "(4,); 4; (2, 2)",
        "dtype": "'f4'; np.float32; 'u1'",
        "strides": "None; (4,)",
        "order": "'C'; 'F'",
        "grid": "1; (1, 1)",
        "block": "32; (8, 4)",
        "smem": "0; 1024",
        "types": "'PfPi'; ''",
        "name": "'scale'; 'factor'; 'counter'",
        "memory": "cu.mem_alloc(64)",
        "dst": "cu.mem_alloc(64); bytearray(64); np.zeros(16, np.float32)",
        "src": "cu.mem_alloc(64); bytes(64); np.zeros(16, np.float32)",
        "ary": "np.ones(4, np.float32); cu.to_device(np.ones(4, np.float32))",
        "obj": "np.ones(4, np.float32)",
        "array": "np.ones(4, np.float32); cu.CudaArray((4, 4), 'f4')",
        "source": "cu.CudaArray((4, 4), 'f4'); cu.to_device(np.zeros((64, 64), np.float32))",
        "width": "4; 1",
        "height": "2",
        "depth": "2",
        "value": "0; 1",
        "event": "cu.Event()",
        "start": "cu.Event()",
        "other": "cu.Event(); cu.Device(0)",
        "context": "cu.current_context()",
        "where": "cu.Device(0); 0; 'host'",
        "advice": "'set_read_mostly'; 'set_accessed_by'",
        "access": "'readwrite'; 'none'",
        "at": "0",
        "to": "'global'",
        "handle_type": "'posix_fd'; 'fabric'",
        "physical": "cu.PhysicalMemory(1)",
        "pool": "None; cu.MemoryPool()",
        "memories": "[cu.managed_alloc(64)]",
        "copies": "[(cu.mem_alloc(8), b'abcd')]",
        "dst_at": "(0, 0); (1, 0, 0)",
        "src_at": "(0, 0); (1, 0, 0)",
        "pitch": "None; 8",
        "element": "4; 1",
        "code": "PTX; PTX.encode()",
        "ptx": "PTX",
        "manager": "None",
        "key": "0; slice(1, 3); (0, 0); ...",
        "library": "library()",
        "channels": "1; 4",
        "box": "(8, 8)",
        "graph": "cu.Graph()",
        "params": "cu.EmptyNode(); cu.MemsetNode(cu.mem_alloc(64), 0)",
        "after": "(); []",
        "node": "cu.Graph().add(cu.EmptyNode())",
        "kernel": "library()['scale']",
    }.items()
}
# How to make one of each class whose constructor cannot say; others are found from these.
INSTANCES: dict[str, Callable[[], Any]] = {
    "Context": cu.current_context,
    "CudaArray": lambda: cu.CudaArray((4, 4), np.float32),
    "Device": lambda: cu.Device(0),
    "DeviceArray": lambda: cu.to_device(np.arange(12, dtype=np.float32).reshape(3, 4)),
    "DeviceMemory": lambda: cu.mem_alloc(64),
    "Event": cu.Event,
    "GreenContext": lambda: cu.GreenContext(cu.SmResource.of(cu.Device(0))),
    "Kernel": lambda: library()["scale"],
    "Library": lambda: cu.load(PTX),
    "Linker": cu.Linker,
    "ManagedMemory": lambda: cu.managed_alloc(64),
    "MipmappedArray": lambda: cu.MipmappedArray((8, 8), np.float32),
    "PinnedMemory": lambda: cu.PinnedMemory(64),
    "PitchedMemory": lambda: cu.mem_alloc_pitch(16, 4),
    "PhysicalMemory": lambda: cu.PhysicalMemory(1),
    "RegisteredMemory": lambda: cu.host_register(bytearray(8192)),
    "SmResource": lambda: cu.SmResource.of(cu.Device(0)),
    "StreamMemory": lambda: cu.mem_alloc_async(64),
    "VirtualMemory": lambda: cu.VirtualMemory(1),
    "Stream": cu.Stream,
    "ChildNode": lambda: cu.ChildNode(cu.Graph()),
    "EmptyNode": cu.EmptyNode,
    "Graph": cu.Graph,
    "GraphExec": lambda: cu.Graph().instantiate(),
    "HostNode": lambda: cu.HostNode(print),
    "MemcpyNode": lambda: cu.MemcpyNode(cu.mem_alloc(8), cu.mem_alloc(8)),
    "MemoryPool": cu.MemoryPool,
    "MemsetNode": lambda: cu.MemsetNode(cu.mem_alloc(64), 0),
    "Node": lambda: cu.Graph().add(cu.EmptyNode()),
    "SurfaceObject": lambda: cu.SurfaceObject(cu.CudaArray((4, 4), "f4", surface=True)),
    "TensorMap": lambda: cu.TensorMap.tiled(cu.to_device(np.zeros((64, 64), "f4")), (8, 8)),
    "TextureObject": lambda: cu.TextureObject(cu.CudaArray((4, 4), "f4")),
}


class Target(NamedTuple):
    """Something to call.

    Attributes:
        find: gives the function, of a fresh object where it is a method.
        parameters: what it takes.
        also: what it may raise besides.
    """

    name: str
    find: Callable[[], Callable[..., Any]]
    parameters: list[inspect.Parameter]
    also: tuple[type[BaseException], ...] = ()


def parameters(function: Any) -> list[inspect.Parameter]:
    """The parameters of a function; three of any kind if it does not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        kind = inspect.Parameter.POSITIONAL_ONLY
        return [inspect.Parameter(name, kind) for name in "abc"]


def targets(group: str) -> Iterator[Target]:
    """What there is to call under one name of ``cudadrv.__all__``."""
    thing = getattr(cu, group)
    if not excluded(group) and callable(thing):
        yield Target(group, lambda: thing, parameters(thing))
    if isinstance(thing, type) and group != "MappedArray":
        yield from class_targets(group, thing, INSTANCES.get(group))
    elif not callable(thing):
        yield from class_targets(group, type(thing), lambda: thing)


def excluded(name: str) -> bool:
    """Whether a name is not to be called."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in EXCLUDED)


def class_targets(
    name: str, cls: type, make: Callable[[], Any] | None, depth: int = 0
) -> Iterator[Target]:
    """Class methods; of an object also methods, properties and what these lead to."""
    for member in dir(cls):
        full, static = f"{name}.{member}", inspect.getattr_static(cls, member)
        if (
            excluded(full)
            or (member[0] == "_" and member not in DUNDERS.split())
            or member.isupper()
        ):
            continue
        if isinstance(static, (classmethod, staticmethod)):
            found = getattr(cls, member)
            yield Target(full, lambda found=found: found, parameters(found))
        elif make is not None and isinstance(static, property):
            yield from property_targets(full, member, static, make, depth)
        elif make is not None and inspect.isfunction(static):
            find = lambda member=member: getattr(make(), member)  # noqa: E731
            also = (KeyError,) if issubclass(cls, Mapping) else ()
            yield Target(full, find, parameters(static)[1:], also)


def property_targets(
    full: str, member: str, static: property, make: Callable[[], Any], depth: int
) -> Iterator[Target]:
    """Reading, writing, and the members of an object of cudadrv that it gives."""
    yield Target(full, lambda: lambda: getattr(make(), member), [])
    if static.fset is not None:
        taken = parameters(static.fset)[1:]
        yield Target(f"{full}=", lambda: lambda value: setattr(make(), member, value), taken)
    try:
        found = getattr(make(), member)
    except ALLOWED:
        return
    cls = type(found)
    if cls.__module__.startswith("cudadrv") and cls.__name__ not in cu.__all__ and depth < 2:
        inner = lambda: getattr(make(), member)  # noqa: E731
        yield from class_targets(cls.__name__, cls, inner, depth + 1)


def values(name: str) -> st.SearchStrategy[Value]:
    """Hostile values for a parameter, often enough one that fits."""
    hostile = HOSTILE
    if name in TRUSTED:
        hostile = [v for v in HOSTILE if not isinstance(_made(v), int)]
    fitting = FITTING.get(name)
    chosen = st.sampled_from(hostile)
    return st.one_of(st.sampled_from(fitting), chosen, chosen) if fitting else chosen


def _made(given: Value) -> Any:
    try:
        return given.make()
    except ALLOWED:
        return None


def draw_call(data: Any, target: Target) -> tuple[list[Value], dict[str, Value]]:
    """Arguments for a call that the signature allows."""
    positional, named = [], {}
    for parameter in target.parameters:
        optional = parameter.default is not parameter.empty
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += data.draw(st.lists(values(parameter.name), max_size=4))
        elif parameter.kind is parameter.VAR_KEYWORD:
            keys = st.sampled_from(["cluster", "priority", "surface", "cubemap", "x"])
            named.update(data.draw(st.dictionaries(keys, values(parameter.name), max_size=2)))
        elif optional and data.draw(st.booleans()):
            continue
        elif parameter.kind is parameter.POSITIONAL_ONLY or not (optional or named):
            positional.append(data.draw(values(parameter.name)))
        else:
            named[parameter.name] = data.draw(values(parameter.name))
    return positional, named


def fresh() -> None:
    """Undo what calls may have done to the process."""
    cu.set_memory_manager(None)
    cu.Device(0).primary_context().set_current()


def consume(result: Any) -> None:
    """Look at what a call returned: generators and context managers run, reprs are made."""
    if hasattr(result, "__enter__") and not hasattr(result, "close"):
        with result:
            pass
    if inspect.isgenerator(result):
        list(zip(range(5), result, strict=False))
    repr(result)


def call(target: Target, positional: list[Value], named: dict[str, Value], log: Any) -> None:
    """Make one call, which must succeed or raise what is allowed."""
    shown = [v.label for v in positional] + [f"{k}={v.label}" for k, v in named.items()]
    print(f"{target.name}({', '.join(shown)})", file=log, flush=True)
    allowed = (*ALLOWED, *target.also)
    for prefix, more in ALSO.items():
        allowed += more if target.name.startswith(prefix) else ()
    fresh()
    try:
        arguments = [v.make() for v in positional]
        keywords = {k: v.make() for k, v in named.items()}
        consume(target.find()(*arguments, **keywords))
    except allowed:
        pass
    said = sys.stderr.getvalue()  # type: ignore[union-attr]
    assert "internal error" not in said, said


def attempt(target: Target, examples: int, log: Any) -> None:
    """Call one target with many values.

    Raises:
        BaseException: what a call raised that it must not.
    """

    @settings(
        max_examples=examples if target.parameters else 2,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def run(data: Any) -> None:
        call(target, *draw_call(data, target), log)

    run()


def main(names: list[str], examples: int) -> int:
    """Call everything under some names; prints each call, and what went wrong after it."""
    log, failed = sys.stdout, 0
    sys.stderr = io.StringIO()
    os.chdir(tempfile.mkdtemp())
    for target in (target for name in names for target in targets(name)):
        try:
            attempt(target, examples, log)
        except BaseException:  # noqa: BLE001 (whatever it was, it must not be)
            failed += 1
            print("FAILED", traceback.format_exc(limit=-4), file=log)
            sys.stderr = io.StringIO()
    return failed and 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], int(sys.argv[1])))
