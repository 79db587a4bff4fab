"""NVRTC: finding it, and compiling CUDA C++ to PTX, cubin or LTO-IR with it."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from cudadrv import config, toolkit
from cudadrv.process_local import ProcessLocal
from cudadrv.toolkit import LibraryNotFound

if TYPE_CHECKING:
    from typing_extensions import Self

_HANDLE = ctypes.c_void_p
_INT = ctypes.POINTER(ctypes.c_int)
_STRINGS = ctypes.POINTER(ctypes.c_char_p)
_SIZE = (_HANDLE, ctypes.POINTER(ctypes.c_size_t))
_TEXT = (_HANDLE, ctypes.c_char_p)
_RESULTS_OF = ("PTX", "CUBIN", "LTOIR", "OptiXIR", "ProgramLog")
_SIGNATURES: dict[str, tuple[object, ...]] = {
    "nvrtcVersion": (_INT, _INT),
    "nvrtcGetErrorString": (ctypes.c_int,),
    "nvrtcGetNumSupportedArchs": (_INT,),
    "nvrtcGetSupportedArchs": (_INT,),
    "nvrtcCreateProgram": (
        ctypes.POINTER(_HANDLE),
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int,
        _STRINGS,
        _STRINGS,
    ),
    "nvrtcDestroyProgram": (ctypes.POINTER(_HANDLE),),
    "nvrtcCompileProgram": (_HANDLE, ctypes.c_int, _STRINGS),
    "nvrtcAddNameExpression": _TEXT,
    "nvrtcGetLoweredName": (_HANDLE, ctypes.c_char_p, _STRINGS),
    **{f"nvrtcGet{what}Size": _SIZE for what in _RESULTS_OF},
    **{f"nvrtcGet{what}": _TEXT for what in _RESULTS_OF},
}
if sys.platform == "win32":
    _LIBRARIES: tuple[str, ...] = ("bin/x64/nvrtc64_*_0.dll", "bin/nvrtc64_*_0.dll")
    _LOADER_NAMES: tuple[str, ...] = ("nvrtc64_130_0.dll", "nvrtc64_120_0.dll")
else:
    _LIBRARIES = ("lib/libnvrtc.so.*", "lib64/libnvrtc.so.*")
    _LOADER_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12")


class NvrtcError(RuntimeError):
    """A function of NVRTC did not succeed.

    Attributes:
        function: the C function.
        code: its nvrtcResult.
        name: the name of *code*.
        log: the log of the compilation, empty where there is none.
    """

    def __init__(self, function: str, code: int, name: str, log: str = "") -> None:
        self.function = function
        self.code = code
        self.name = name
        self.log = log
        super().__init__(f"{function} returned {name} ({code})" + (f":\n{log}" if log else ""))


class Nvrtc(toolkit.Functions):
    """One loaded NVRTC.

    Raises:
        OSError: the file cannot be loaded or is not NVRTC.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, _SIGNATURES, "nvrtcCreateProgram")
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def __repr__(self) -> str:
        return f"Nvrtc({self.path!r})"

    def error(self, function: str, code: int, log: str = "") -> NvrtcError:
        """The exception for a result code.

        C: nvrtcGetErrorString
        """
        name = self._library.nvrtcGetErrorString(code) or b"unknown nvrtcResult"
        return NvrtcError(function, code, name.decode(), log)

    @functools.cached_property
    def version(self) -> tuple[int, int]:
        """The version of CUDA that it belongs to.

        C: nvrtcVersion
        """
        major, minor = ctypes.c_int(), ctypes.c_int()
        code = self.call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        if code:
            raise self.error("nvrtcVersion", code)
        return major.value, minor.value

    def architectures(self) -> list[tuple[int, int]]:
        """The compute capabilities that it compiles for, ascending.

        C: nvrtcGetSupportedArchs
        """
        count = ctypes.c_int()
        code = self.call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        if code:
            raise self.error("nvrtcGetNumSupportedArchs", code)
        numbers = (ctypes.c_int * count.value)()
        code = self.call("nvrtcGetSupportedArchs", numbers)
        if code:
            raise self.error("nvrtcGetSupportedArchs", code)
        return [divmod(number, 10) for number in numbers]


class Program(ProcessLocal):
    """One source file of CUDA C++.

    Close it, or use it in a ``with`` statement. One program belongs to one thread at a time.
    """

    def __init__(
        self,
        source: str,
        name: str = "program.cu",
        headers: Mapping[str, str] | None = None,
        library: Nvrtc | None = None,
    ) -> None:
        """Take *source*; *name* stands for it in messages.

        Args:
            headers: texts by the name that the source includes them under.

        C: nvrtcCreateProgram
        """
        given: tuple[object, ...] = (source, name)
        if not all(isinstance(each, str) for each in given):
            kinds = f"{type(source).__name__} named {name!r}"
            raise TypeError(f"the source and its name are text, not {kinds}")
        self.library = library or find()
        self._handle = _HANDLE()
        headers = headers or {}
        names = (ctypes.c_char_p * len(headers))(*(key.encode() for key in headers))
        texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
        code = self.library.call(
            "nvrtcCreateProgram",
            ctypes.byref(self._handle),
            source.encode(),
            name.encode(),
            len(headers),
            texts,
            names,
        )
        if code:
            raise self.library.error("nvrtcCreateProgram", code)

    @property
    def handle(self) -> int:
        """The nvrtcProgram; 0 once closed."""
        return self._handle.value or 0

    def add_name(self, expression: str) -> None:
        """Ask for the mangled name of a function or variable, before compiling.

        C: nvrtcAddNameExpression
        """
        self._call("nvrtcAddNameExpression", expression.encode())

    def lowered_name(self, expression: str) -> str:
        """The mangled name of what `add_name` asked for.

        C: nvrtcGetLoweredName
        """
        name = ctypes.c_char_p()
        self._call("nvrtcGetLoweredName", expression.encode(), ctypes.byref(name))
        return (name.value or b"").decode()

    def compile(self, options: Sequence[str] = ()) -> None:
        """Compile with *options*, such as "-arch=sm_90", "-dlto", "-rdc=true", "-I/folder".

        Raises:
            NvrtcError: with the compiler's log.

        C: nvrtcCompileProgram
        """
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self._call("nvrtcCompileProgram", len(options), array)

    @property
    def ptx(self) -> str:
        """The PTX.

        C: nvrtcGetPTX
        """
        return self._result("PTX").rstrip(b"\0").decode()

    @property
    def cubin(self) -> bytes:
        """The cubin, if compiled for "sm_..".

        C: nvrtcGetCUBIN
        """
        return self._result("CUBIN")

    @property
    def ltoir(self) -> bytes:
        """The LTO-IR, if compiled with "-dlto".

        C: nvrtcGetLTOIR
        """
        return self._result("LTOIR")

    @property
    def optix_ir(self) -> bytes:
        """The input of OptiX, if compiled with "--optix-ir".

        C: nvrtcGetOptiXIR
        """
        return self._result("OptiXIR")

    @property
    def log(self) -> str:
        """Errors and warnings of the compilation.

        C: nvrtcGetProgramLog
        """
        return self._result("ProgramLog").rstrip(b"\0").decode(errors="replace").strip()

    def close(self) -> None:
        """Free it; may be called twice.

        C: nvrtcDestroyProgram
        """
        if self._handle:
            self.library.call("nvrtcDestroyProgram", ctypes.byref(self._handle))
            self._handle = _HANDLE()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if sys is not None and not sys.is_finalizing() and hasattr(self, "_handle"):
            self.close()

    def _call(self, name: str, *args: object) -> None:
        if not self._handle:
            raise ValueError(f"{name}: the program is closed; make a new Program")
        code = self.library.call(name, self._handle, *args)
        if code:
            raise self.library.error(name, code, "" if "Log" in name else self.log)

    def _result(self, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", buffer)
        return buffer.raw


def candidates(tried: list[str] | None = None) -> Iterator[str]:
    """Where an NVRTC may be, as `toolkit.files` finds it; *tried* gets the places without."""
    tried = [] if tried is None else tried
    return toolkit.files(_LIBRARIES, _LOADER_NAMES, config.nvrtc(), tried)


@functools.cache
def find() -> Nvrtc:
    """The first NVRTC that loads, from the places `toolkit.files` names.

    Raises:
        LibraryNotFound: with every place tried.
    """
    tried: list[str] = []
    for path in candidates(tried):
        try:
            return Nvrtc(path)
        except OSError as error:
            tried.append(f"{path}: {error}")
    raise LibraryNotFound("NVRTC", "nvidia-cuda-nvrtc", "CUDADRV_NVRTC", tried)


def include_options() -> list[str]:
    """Options that name the include folders of the toolkits found, best first."""
    folders = [Path(root, "include") for root in toolkit.roots()]
    return [f"-I{folder}" for folder in folders if folder.is_dir()][:1]
