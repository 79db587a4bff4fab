"""nvJitLink: finding it, and linking PTX, cubins, objects and LTO-IR to a cubin with it."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from cudadrv import config, toolkit
from cudadrv.process_local import ProcessLocal
from cudadrv.toolkit import LibraryNotFound

if TYPE_CHECKING:
    from typing_extensions import Self

RESULTS = {
    0: "NVJITLINK_SUCCESS",
    1: "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
    2: "NVJITLINK_ERROR_MISSING_ARCH",
    3: "NVJITLINK_ERROR_INVALID_INPUT",
    4: "NVJITLINK_ERROR_PTX_COMPILE",
    5: "NVJITLINK_ERROR_NVVM_COMPILE",
    6: "NVJITLINK_ERROR_INTERNAL",
    7: "NVJITLINK_ERROR_THREADPOOL",
    8: "NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
    9: "NVJITLINK_ERROR_FINALIZE",
    10: "NVJITLINK_ERROR_NULL_INPUT",
    11: "NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS",
    12: "NVJITLINK_ERROR_INCORRECT_INPUT_TYPE",
    13: "NVJITLINK_ERROR_ARCH_MISMATCH",
    14: "NVJITLINK_ERROR_OUTDATED_LIBRARY",
    15: "NVJITLINK_ERROR_MISSING_FATBIN",
    16: "NVJITLINK_ERROR_UNRECOGNIZED_ARCH",
    17: "NVJITLINK_ERROR_UNSUPPORTED_ARCH",
    18: "NVJITLINK_ERROR_LTO_NOT_ENABLED",
}
# nvJitLinkInputType
INPUTS = {
    "cubin": 1,
    "ptx": 2,
    "ltoir": 3,
    "fatbin": 4,
    "object": 5,
    "library": 6,
    "index": 7,
    "any": 10,
}

# The newest compute capability that a version of CUDA 12 knows (its release notes).
_NEWEST = {(12, 0): (9, 0), (12, 8): (12, 0), (12, 9): (12, 1)}
_ARCH = re.compile(r"-arch=(?:sm|compute|lto)_\d{2,3}[af]?")
_HANDLE = ctypes.c_void_p
_SIZE = (_HANDLE, ctypes.POINTER(ctypes.c_size_t))
_TEXT = (_HANDLE, ctypes.c_char_p)
_RESULTS_OF = ("LinkedCubin", "LinkedPtx", "LinkedLTOIR", "ErrorLog", "InfoLog")
_UINT = ctypes.POINTER(ctypes.c_uint)
_SIGNATURES: dict[str, tuple[object, ...]] = {
    "nvJitLinkVersion": (_UINT, _UINT),
    "nvJitLinkCreate": (
        ctypes.POINTER(_HANDLE),
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_char_p),
    ),
    "nvJitLinkDestroy": (ctypes.POINTER(_HANDLE),),
    "nvJitLinkAddData": (
        _HANDLE,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
    ),
    "nvJitLinkAddFile": (_HANDLE, ctypes.c_int, ctypes.c_char_p),
    "nvJitLinkComplete": (_HANDLE,),
    **{f"nvJitLinkGet{what}Size": _SIZE for what in _RESULTS_OF},
    **{f"nvJitLinkGet{what}": _TEXT for what in _RESULTS_OF},
}
if sys.platform == "win32":
    _LIBRARIES: tuple[str, ...] = ("bin/x64/nvJitLink_*.dll", "bin/nvJitLink_*.dll")
    _LOADER_NAMES: tuple[str, ...] = ("nvJitLink_130_0.dll", "nvJitLink_120_0.dll")
else:
    _LIBRARIES = ("lib/libnvJitLink.so.*", "lib64/libnvJitLink.so.*")
    _LOADER_NAMES = ("libnvJitLink.so.13", "libnvJitLink.so.12")


class NvJitLinkError(RuntimeError):
    """A function of nvJitLink did not succeed.

    Attributes:
        function: the C function.
        code: its nvJitLinkResult.
        name: the name of *code*.
        log: the error log, empty where there is none.
    """

    def __init__(self, function: str, code: int, log: str = "") -> None:
        self.function = function
        self.code = code
        self.name = RESULTS.get(code, "unknown nvJitLinkResult")
        self.log = log
        super().__init__(f"{function} returned {self.name} ({code})" + (f":\n{log}" if log else ""))


class NvJitLink(toolkit.Functions):
    """One loaded nvJitLink.

    Raises:
        OSError: the file cannot be loaded or is not nvJitLink.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, _SIGNATURES, "nvJitLinkCreate")

    def __repr__(self) -> str:
        return f"NvJitLink({self.path!r})"

    @functools.cached_property
    def version(self) -> tuple[int, int] | None:
        """The version of CUDA that it belongs to; None before 12.3, which cannot tell.

        C: nvJitLinkVersion
        """
        if not self.has("nvJitLinkVersion"):
            return None
        major, minor = ctypes.c_uint(), ctypes.c_uint()
        code = self.call("nvJitLinkVersion", ctypes.byref(major), ctypes.byref(minor))
        if code:
            raise NvJitLinkError("nvJitLinkVersion", code)
        return major.value, minor.value


class Link(ProcessLocal):
    """Inputs that become one cubin.

    Close it, or use it in a ``with`` statement. One link belongs to one thread at a time.
    """

    def __init__(self, options: Sequence[str], library: NvJitLink | None = None) -> None:
        """Start with *options*, such as "-arch=sm_90", "-lto", "-maxrregcount=32".

        Raises:
            NvJitLinkError: an option is unknown, or there is no -arch.
            ValueError: the architecture is none; nvJitLink might end the process over it.

        C: nvJitLinkCreate
        """
        for option in options:
            if option.startswith("-arch=") and not _ARCH.fullmatch(option):
                raise ValueError(f"option {option!r}: give an architecture, such as -arch=sm_90")
        self.library = library or find()
        self._check_arch(options)
        self._handle = _HANDLE()
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        code = self.library.call("nvJitLinkCreate", ctypes.byref(self._handle), len(options), array)
        if code:
            log = self.error_log if self._handle else ""
            raise NvJitLinkError("nvJitLinkCreate", code, log or f"options {list(options)}")

    def _check_arch(self, options: Sequence[str]) -> None:
        """Refuse what nvJitLink before CUDA 13 ends the process over: an architecture too new."""
        version = self.library.version or (12, 0)
        newest = max((cc for since, cc in _NEWEST.items() if since <= version), default=(9, 0))
        for option in options:
            number = re.sub(r"\D", "", option) if option.startswith("-arch=") else "0"
            if version < (13, 0) and (int(number[:-1] or 0), int(number[-1])) > newest:
                known = "sm_{}{}".format(*newest)
                raise ValueError(
                    f"option {option!r}: nvJitLink {version[0]}.{version[1]} knows architectures "
                    f"up to {known}; install a newer nvidia-nvjitlink"
                )

    @property
    def handle(self) -> int:
        """The nvJitLinkHandle; 0 once closed."""
        return self._handle.value or 0

    def add(self, kind: str, data: bytes, name: str = "input") -> None:
        """Add *data* of a *kind* in `INPUTS`; *name* stands for it in the logs.

        C: nvJitLinkAddData
        """
        # The size of PTX counts the zero at its end.
        data = data.rstrip(b"\0") + b"\0" if kind == "ptx" else data
        self._call("nvJitLinkAddData", INPUTS[kind], data, len(data), name.encode())

    def add_file(self, kind: str, path: str) -> None:
        """Add the file *path*; kind "any" lets nvJitLink tell by its content.

        C: nvJitLinkAddFile
        """
        self._call("nvJitLinkAddFile", INPUTS[kind], path.encode())

    def complete(self) -> None:
        """Link; afterwards there are a cubin, PTX or LTO-IR.

        C: nvJitLinkComplete
        """
        self._call("nvJitLinkComplete")

    @property
    def cubin(self) -> bytes:
        """The linked cubin.

        C: nvJitLinkGetLinkedCubin
        """
        return self._result("LinkedCubin")

    @property
    def ptx(self) -> str:
        """The linked PTX, with options "-lto" and "-ptx".

        C: nvJitLinkGetLinkedPtx
        """
        return self._result("LinkedPtx").rstrip(b"\0").decode()

    @property
    def ltoir(self) -> bytes:
        """The linked LTO-IR, since CUDA 13.

        C: nvJitLinkGetLinkedLTOIR
        """
        return self._result("LinkedLTOIR")

    @property
    def error_log(self) -> str:
        """What went wrong.

        C: nvJitLinkGetErrorLog
        """
        return _log(self._result("ErrorLog"))

    @property
    def info_log(self) -> str:
        """What was remarked, with option "-verbose" also the resources of each kernel.

        C: nvJitLinkGetInfoLog
        """
        return _log(self._result("InfoLog"))

    def close(self) -> None:
        """Free it; may be called twice.

        C: nvJitLinkDestroy
        """
        if self._handle:
            self.library.call("nvJitLinkDestroy", ctypes.byref(self._handle))
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
            raise ValueError(f"{name}: the link is closed; make a new Link")
        if not self.library.has(name):
            raise NotImplementedError(f"{self.library.path} has no {name}: use a newer nvJitLink")
        code = self.library.call(name, self._handle, *args)
        if code:
            raise NvJitLinkError(name, code, "" if "Log" in name else self.error_log)

    def _result(self, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvJitLinkGet{what}Size", ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvJitLinkGet{what}", buffer)
        return buffer.raw


def _log(data: bytes) -> str:
    return data.rstrip(b"\0").decode(errors="replace").strip()


def candidates(tried: list[str] | None = None) -> Iterator[str]:
    """Where an nvJitLink may be, as `toolkit.files` finds it; *tried* gets the places without."""
    tried = [] if tried is None else tried
    return toolkit.files(_LIBRARIES, _LOADER_NAMES, config.nvjitlink(), tried)


@functools.cache
def find() -> NvJitLink:
    """The first nvJitLink that loads, from the places `toolkit.files` names.

    Raises:
        LibraryNotFound: with every place tried.
    """
    tried: list[str] = []
    for path in candidates(tried):
        try:
            return NvJitLink(path)
        except OSError as error:
            tried.append(f"{path}: {error}")
    raise LibraryNotFound("nvJitLink", "nvidia-nvjitlink", "CUDADRV_NVJITLINK", tried)
