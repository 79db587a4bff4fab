"""libNVVM: finding it, and compiling NVVM IR to PTX with it."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from cudadrv import config, toolkit
from cudadrv.process_local import ProcessLocal
from cudadrv.toolkit import LibraryNotFound, roots

if TYPE_CHECKING:
    from typing_extensions import Self

TRIPLE = "nvptx64-nvidia-cuda"
# The NVVM IR specification demands exactly these: the LLVM 7 dialect's, then the modern one's.
DATA_LAYOUT_LLVM7 = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-"
    "f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
DATA_LAYOUT = (
    "e-p:64:64:64-p3:32:32:32-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-"
    "f32:32:32-f64:64:64-f128:128:128-v16:16:16-v32:32:32-v64:64:64-v128:128:128-"
    "n16:32:64-a:8:8"
)

RESULTS = {
    0: "NVVM_SUCCESS",
    1: "NVVM_ERROR_OUT_OF_MEMORY",
    2: "NVVM_ERROR_PROGRAM_CREATION_FAILURE",
    3: "NVVM_ERROR_IR_VERSION_MISMATCH",
    4: "NVVM_ERROR_INVALID_INPUT",
    5: "NVVM_ERROR_INVALID_PROGRAM",
    6: "NVVM_ERROR_INVALID_IR",
    7: "NVVM_ERROR_INVALID_OPTION",
    8: "NVVM_ERROR_NO_MODULE_IN_PROGRAM",
    9: "NVVM_ERROR_COMPILATION",
    10: "NVVM_ERROR_CANCELLED",
}

_HANDLE = ctypes.c_void_p
_OUT_INT = ctypes.POINTER(ctypes.c_int)
_OUT_SIZE = ctypes.POINTER(ctypes.c_size_t)
_OPTIONS = ctypes.POINTER(ctypes.c_char_p)
_MODULE = (_HANDLE, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p)
_SIGNATURES: dict[str, tuple[object, ...]] = {
    "nvvmVersion": (_OUT_INT, _OUT_INT),
    "nvvmIRVersion": (_OUT_INT, _OUT_INT, _OUT_INT, _OUT_INT),
    "nvvmLLVMVersion": (ctypes.c_char_p, _OUT_INT),
    "nvvmCreateProgram": (ctypes.POINTER(_HANDLE),),
    "nvvmDestroyProgram": (ctypes.POINTER(_HANDLE),),
    "nvvmAddModuleToProgram": _MODULE,
    "nvvmLazyAddModuleToProgram": _MODULE,
    "nvvmCompileProgram": (_HANDLE, ctypes.c_int, _OPTIONS),
    "nvvmVerifyProgram": (_HANDLE, ctypes.c_int, _OPTIONS),
    "nvvmGetCompiledResultSize": (_HANDLE, _OUT_SIZE),
    "nvvmGetCompiledResult": (_HANDLE, ctypes.c_char_p),
    "nvvmGetProgramLogSize": (_HANDLE, _OUT_SIZE),
    "nvvmGetProgramLog": (_HANDLE, ctypes.c_char_p),
}


class NvvmError(RuntimeError):
    """A libNVVM function did not succeed.

    Attributes:
        function: the C function.
        code: its nvvmResult.
        name: the name of *code*.
        log: what the program's log says, empty where there is none.
    """

    def __init__(self, function: str, code: int, log: str = "") -> None:
        self.function = function
        self.code = code
        self.name = RESULTS.get(code, "unknown nvvmResult")
        self.log = log
        super().__init__(f"{function} returned {self.name} ({code})" + (f":\n{log}" if log else ""))


class NvvmNotFound(LibraryNotFound):
    """No usable libNVVM; ``tried`` lists every place with what was wrong there."""

    def __init__(self, what: str, variable: str, tried: Sequence[str]) -> None:
        super().__init__(what, "nvidia-nvvm", variable, tried)


class Probe(NamedTuple):
    """What libNVVM emits for some options.

    Attributes:
        ptx: the PTX ISA version.
        llvm: the LLVM that it is based on.
        producer: what the PTX says of the compiler, its build among that.
    """

    ptx: tuple[int, int]
    llvm: int
    producer: str = ""

    @property
    def typed_pointers(self) -> bool:
        """Whether the IR must be of the LLVM 7 dialect, where pointers have element types."""
        return self.llvm < 17


class Nvvm:
    """One loaded libNVVM.

    Args:
        path: a file, or a library name for the system's loader.

    Raises:
        OSError: it cannot be loaded or is not a libNVVM.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)
        for name in _SIGNATURES:
            if name != "nvvmLLVMVersion" and not hasattr(self._library, name):
                raise OSError(f"{path} does not export {name}: not a libNVVM, or older than CUDA 9")
        self._lock = threading.Lock()
        self._probes: dict[tuple[str, ...], Probe | NvvmError] = {}

    def __repr__(self) -> str:
        return f"Nvvm({self.path!r})"

    def call(self, name: str, *args: object) -> int:
        """Call the C function *name* and return its nvvmResult."""
        function = getattr(self._library, name)
        function.argtypes = _SIGNATURES[name]
        return int(function(*args))

    def _ints(self, name: str, count: int) -> tuple[int, ...]:
        values = [ctypes.c_int() for _ in range(count)]
        code = self.call(name, *map(ctypes.byref, values))
        if code:
            raise NvvmError(name, code)
        return tuple(value.value for value in values)

    @functools.cached_property
    def version(self) -> tuple[int, int]:
        """The version of the interface.

        C: nvvmVersion
        """
        major, minor = self._ints("nvvmVersion", 2)
        return major, minor

    @functools.cached_property
    def ir_version(self) -> tuple[int, int, int, int]:
        """IR major and minor, debug metadata major and minor.

        C: nvvmIRVersion
        """
        major, minor, debug_major, debug_minor = self._ints("nvvmIRVersion", 4)
        return major, minor, debug_major, debug_minor

    def llvm_version(self, arch: str) -> int:
        """The LLVM major version whose IR is read for *arch*, such as "compute_90".

        C: nvvmLLVMVersion; a libNVVM before CUDA 13.1 lacks it and is asked by a trial compilation.
        """
        if not hasattr(self._library, "nvvmLLVMVersion"):
            return self.probe(f"-arch={arch}").llvm
        major = ctypes.c_int()
        code = self.call("nvvmLLVMVersion", arch.encode(), ctypes.byref(major))
        if code:
            raise NvvmError("nvvmLLVMVersion", code, f"architecture {arch!r}")
        return major.value

    def probe(self, *options: str) -> Probe:
        """Compile an empty kernel with *options* (once) and tell what came out.

        Raises:
            NvvmError: libNVVM knows no such architecture or option.
        """
        with self._lock:
            found = self._probes.get(options)
            if found is None:
                found = self._probes[options] = self._probe(options)
        if isinstance(found, NvvmError):
            raise NvvmError(found.function, found.code, found.log)
        return found

    def _probe(self, options: Sequence[str]) -> Probe | NvvmError:
        with Program(self) as program:
            # Without pointer arguments the text is valid in both dialects.
            program.add_module(_PROBE, "probe")
            try:
                ptx = program.compile(options).decode()
            except NvvmError as error:
                return error
        version = re.search(r"^\.version (\d+)\.(\d+)", ptx, re.MULTILINE)
        based_on = re.search(r"Based on (?:NVVM|LLVM) (\d+)", ptx)
        if version is None:
            return NvvmError("nvvmCompileProgram", 0, "the PTX has no .version:\n" + ptx)
        llvm = int(based_on.group(1)) if based_on else 7
        producer = " ".join(
            re.findall(r"^//[ \t]+(\S.*?)\s*$", ptx[: version.start()], re.MULTILINE)
        )
        return Probe((int(version.group(1)), int(version.group(2))), llvm, producer)


_PROBE = f"""target triple = "{TRIPLE}"
target datalayout = "{DATA_LAYOUT_LLVM7}"
define void @probe() {{
  ret void
}}
!nvvm.annotations = !{{!0}}
!0 = !{{void ()* @probe, !"kernel", i32 1}}
!nvvmir.version = !{{!1}}
!1 = !{{i32 2, i32 0}}
"""


_PLACE = re.compile(r"(.+?) \((\d+), (\d+)\)")


class Program(ProcessLocal):
    """Modules of NVVM IR that are compiled together.

    Close it, or use it in a ``with`` statement. One program belongs to one thread at a time.
    """

    def __init__(self, nvvm: Nvvm | None = None) -> None:
        """Make an empty program, in the libNVVM that `find` gives unless told.

        C: nvvmCreateProgram
        """
        self.nvvm = nvvm or find()
        self._handle = _HANDLE()
        self._texts: dict[str, str] = {}
        code = self.nvvm.call("nvvmCreateProgram", ctypes.byref(self._handle))
        if code:
            raise NvvmError("nvvmCreateProgram", code)

    @property
    def handle(self) -> int:
        """The nvvmProgram; 0 once closed."""
        return self._handle.value or 0

    def add_module(self, ir: str | bytes, name: str = "module") -> None:
        """Add a module, text or bitcode.

        C: nvvmAddModuleToProgram
        """
        self._add("nvvmAddModuleToProgram", ir, name)

    def lazy_add_module(self, bitcode: bytes, name: str = "module") -> None:
        """Add a library in bitcode, of which only what other modules use is linked.

        C: nvvmLazyAddModuleToProgram
        """
        if not bitcode.startswith(b"BC"):
            raise ValueError(f"{name}: only bitcode can be added lazily; use add_module for text")
        self._add("nvvmLazyAddModuleToProgram", bitcode, name)

    def verify(self, options: Sequence[str] = ()) -> None:
        """Check the modules.

        C: nvvmVerifyProgram
        """
        self._with_options("nvvmVerifyProgram", options)

    def compile(self, options: Sequence[str] = ()) -> bytes:
        """Compile and link the modules; return PTX text (LTO-IR with "-gen-lto").

        Args:
            options: such as "-arch=compute_90", "-opt=3", "-ftz=1", "-fma=0", "-g".

        Raises:
            NvvmError: with the program's log.

        C: nvvmCompileProgram, nvvmGetCompiledResult
        """
        self._with_options("nvvmCompileProgram", options)
        data = self._text("nvvmGetCompiledResultSize", "nvvmGetCompiledResult")
        binary = "-gen-lto" in options
        return data if binary else data.rstrip(b"\0")

    @property
    def log(self) -> str:
        """Errors and warnings of the last compilation or check.

        C: nvvmGetProgramLog
        """
        data = self._text("nvvmGetProgramLogSize", "nvvmGetProgramLog")
        return data.rstrip(b"\0").decode(errors="replace").strip()

    def close(self) -> None:
        """Free the program; again is harmless.

        C: nvvmDestroyProgram
        """
        if self._handle:
            self.nvvm.call("nvvmDestroyProgram", ctypes.byref(self._handle))
            self._handle = _HANDLE()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _call(self, name: str, *args: object) -> None:
        if not self._handle:
            raise ValueError(f"{name}: the program is closed; make a new Program")
        code = self.nvvm.call(name, self._handle, *args)
        if code:
            raise NvvmError(name, code, "" if "Log" in name else self._shown(self.log))

    def _shown(self, log: str) -> str:
        """The log, with each line of a module's text that it names below the remark."""
        lines = []
        for line in log.splitlines():
            lines.append(line)
            found = _PLACE.match(line)
            text = self._texts.get(found[1], "").splitlines() if found else []
            if found and 0 < int(found[2]) <= len(text):
                # The column counts from nought.
                lines += [f"  {text[int(found[2]) - 1]}", f"  {' ' * int(found[3])}^"]
        return "\n".join(lines)

    def _add(self, function: str, ir: str | bytes, name: str) -> None:
        if isinstance(ir, str):
            self._texts[name] = ir
        data = ir.encode() if isinstance(ir, str) else ir
        self._call(function, data, len(data), name.encode())

    def _with_options(self, function: str, options: Sequence[str]) -> None:
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self._call(function, len(options), array)

    def _text(self, size_function: str, function: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(size_function, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(function, buffer)
        return buffer.raw


# -- finding -----------------------------------------------------------------------------------


def find() -> Nvvm:
    """The first libNVVM that loads, in the order of `candidates`.

    Raises:
        NvvmNotFound: with every place tried.
    """
    tried: list[str] = []
    for path in candidates(tried):
        nvvm = load(path, tried)
        if nvvm is not None:
            return nvvm
    raise NvvmNotFound("libNVVM", "CUDADRV_NVVM", tried)


def load(path: str, tried: list[str] | None = None) -> Nvvm | None:
    """Load the libNVVM at *path*, once in a process; or give None, and the reason in *tried*."""
    try:
        return _load(path)
    except OSError as error:
        if tried is not None:
            tried.append(f"{path}: {error}")
        return None


_load = functools.lru_cache(maxsize=None)(Nvvm)


def candidates(tried: list[str] | None = None) -> Iterator[str]:
    """Where a libNVVM may be: files that exist, then names for the system's loader.

    The order: CUDADRV_NVVM (then nothing else), pip wheels, conda, CUDA_HOME and CUDA_PATH,
    installed toolkits from the newest, the system's loader, the driver's own copy.

    Args:
        tried: gets the places without one.
    """
    tried = [] if tried is None else tried
    return toolkit.files(_LIBRARIES, _LOADER_NAMES, config.nvvm(), tried)


def libdevice(nvvm: Nvvm | None = None) -> Path:
    """The file libdevice.10.bc: CUDADRV_LIBDEVICE, else that beside *nvvm*, else the first found.

    Raises:
        NvvmNotFound: with every place tried.
    """
    places = libdevice_places(nvvm.path if nvvm else "")
    for place in places:
        if place.is_file():
            return place
    tried = [f"{place}: no such file" for place in places]
    raise NvvmNotFound("libdevice.10.bc", "CUDADRV_LIBDEVICE", tried)


def libdevice_places(library: str = "") -> list[Path]:
    """Where libdevice.10.bc may be for the libNVVM of this path, the best place first."""
    if override := config.libdevice():
        return [Path(override)]
    own = list(Path(library).parents)[:3] if library and Path(library).is_absolute() else []
    return [root / _LIBDEVICE for root in [*own, *roots()]]


_LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"
_LIBRARIES: tuple[str, ...]
_LOADER_NAMES: tuple[str, ...]
if sys.platform == "win32":
    _LIBRARIES = ("nvvm/bin/x64/nvvm64_*.dll", "nvvm/bin/nvvm64_*.dll", "bin/x64/nvvm64_*.dll")
    _LOADER_NAMES = ("nvvm64_40_0.dll", "nvvm70.dll")
else:
    # The bare name is that of the wheels of CUDA 12.
    _LIBRARIES = ("nvvm/lib64/libnvvm.so*", "lib/libnvvm.so.*", "lib64/libnvvm.so.*")
    # The last is the driver's own copy: whatever else is there, it suits the driver.
    _LOADER_NAMES = ("libnvvm.so.4", "libnvidia-nvvm.so.4")
