"""Linking PTX, cubins, objects, archives, LTO-IR and CUDA C++ to one code that `load` takes."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cudadrv import cubin, driver, nvjitlink, nvrtc, ptxlink, raw
from cudadrv.context import current_context
from cudadrv.jit_options import Log
from cudadrv.nvjitlink import Link, NvJitLinkError
from cudadrv.process_local import ProcessLocal
from cudadrv.toolkit import LibraryNotFound

BACKENDS = ("auto", "nvjitlink", "driver", "text")
# By the end of a file's name.
KINDS = {
    ".ptx": "ptx",
    ".cubin": "cubin",
    ".fatbin": "fatbin",
    ".o": "object",
    ".obj": "object",
    ".a": "library",
    ".lib": "library",
    ".ltoir": "ltoir",
    ".cu": "cu",
}
_DRIVER_INPUTS = {
    "cubin": "CU_JIT_INPUT_CUBIN",
    "ptx": "CU_JIT_INPUT_PTX",
    "fatbin": "CU_JIT_INPUT_FATBINARY",
    "object": "CU_JIT_INPUT_OBJECT",
    "library": "CU_JIT_INPUT_LIBRARY",
}


class LinkError(RuntimeError):
    """The inputs do not link: a symbol is missing or defined twice, or an input is refused.

    Attributes:
        backend: which linker said so.
        log: what it said.
    """

    def __init__(self, backend: str, log: str) -> None:
        self.backend = backend
        self.log = log
        super().__init__(f"{backend} cannot link:\n{log}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.backend, self.log)


class Input(NamedTuple):
    """Something to link: of a kind in `KINDS`, with the name that logs call it by."""

    kind: str
    data: bytes
    name: str


class Linker(ProcessLocal):
    """Collects inputs and links them.

    Args:
        arch: such as "sm_90"; None: that of the current device.
        backend: "nvjitlink"; "driver" (cuLink...); "text", which joins PTX and makes PTX, and is
            what the emulator needs; "auto": the first of these that there is and that fits.
        lto: optimise across the inputs that are LTO-IR, with nvJitLink.
        max_registers: the most registers that a thread may use.
        lineinfo, debug: keep line tables, or all debug information.
        options: further options of nvJitLink.

    Raises:
        ValueError: *backend* is unknown.
        LibraryNotFound: nvJitLink is asked for and not there.
    """

    def __init__(
        self,
        arch: str | None = None,
        backend: str = "auto",
        lto: bool = False,
        max_registers: int | None = None,
        lineinfo: bool = False,
        debug: bool = False,
        options: Sequence[str] = (),
    ) -> None:
        if backend not in BACKENDS:
            raise ValueError(f"backend {backend!r}: one of {', '.join(BACKENDS)}")
        self.backend = _choose(arch) if backend == "auto" else backend
        if self.backend == "nvjitlink":
            nvjitlink.find()
        self.arch = arch or current_context().device.arch
        if not re.fullmatch(r"sm_\d{2,3}[af]?", self.arch):
            raise ValueError(f"arch {self.arch!r}: give one such as 'sm_90'")
        self.lto = lto
        self.max_registers = max_registers
        self.lineinfo = lineinfo
        self.debug = debug
        self.options = list(options)
        self.inputs: list[Input] = []
        self.info_log = ""
        self.error_log = ""

    def __repr__(self) -> str:
        return f"Linker({self.arch!r}, {self.backend!r}, {len(self.inputs)} inputs)"

    def add_ptx(self, ptx: str | bytes, name: str = "input.ptx") -> None:
        """Add PTX text."""
        self.add("ptx", ptx.encode() if isinstance(ptx, str) else ptx, name)

    def add_cubin(self, data: bytes, name: str = "input.cubin") -> None:
        """Add a relocatable cubin."""
        self.add("cubin", data, name)

    def add_fatbin(self, data: bytes, name: str = "input.fatbin") -> None:
        """Add a fatbin."""
        self.add("fatbin", data, name)

    def add_object(self, data: bytes, name: str = "input.o") -> None:
        """Add a host object file with device code in it, as nvcc -dc makes it."""
        self.add("object", data, name)

    def add_archive(self, data: bytes, name: str = "input.a") -> None:
        """Add an archive of such objects."""
        self.add("library", data, name)

    def add_ltoir(self, data: bytes, name: str = "input.ltoir") -> None:
        """Add LTO-IR, and with it link-time optimisation."""
        self.lto = True
        self.add("ltoir", data, name)

    def add_cu(self, source: str, name: str = "input.cu", options: Sequence[str] = ()) -> None:
        """Compile CUDA C++ with NVRTC and add what comes out: LTO-IR with *lto*, else PTX.

        Raises:
            NvrtcError: the source does not compile; with its log.
            LibraryNotFound: there is no NVRTC.
        """
        given = ["-rdc=true", f"-arch={self._compute()}", *nvrtc.include_options(), *options]
        if self.lto:
            given.append("-dlto")
        if self.lineinfo or self.debug:
            given.append("-lineinfo")
        with nvrtc.Program(source, name) as program:
            program.compile(given)
            if self.lto:
                self.add("ltoir", program.ltoir, name)
            else:
                self.add("ptx", program.ptx.encode(), name)

    def _compute(self) -> str:
        """The architecture for NVRTC: the nearest lower one that it knows."""
        known = nvrtc.find().architectures()
        number = re.sub(r"\D", "", self.arch)
        wanted = int(number[:-1]), int(number[-1])
        fitting = [cc for cc in known if cc <= wanted] or known[:1]
        suffix = self.arch.lstrip("sm_0123456789") if wanted in known else ""
        return "compute_{}{}".format(*max(fitting)) + suffix

    def add_file(self, path: str | os.PathLike[str], kind: str) -> None:
        """Add a file of a *kind*: "ptx", "cubin", "fatbin", "object", "library", "ltoir", "cu".

        Raises:
            OSError: it cannot be read.
        """
        name, data = os.fspath(path), Path(path).read_bytes()
        if kind == "cu":
            self.add_cu(data.decode(), name, [f"-I{Path(path).resolve().parent}"])
        elif kind == "ltoir":
            self.add_ltoir(data, name)
        else:
            self.add(kind, data, name)

    def add_file_guess_ext(self, path: str | os.PathLike[str]) -> None:
        """Add a file whose kind the end of its name tells: .ptx .cubin .fatbin .o .a .ltoir .cu.

        Raises:
            ValueError: another name.
            OSError: it cannot be read.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in KINDS:
            raise ValueError(f"{os.fspath(path)}: its name ends in none of {', '.join(KINDS)}")
        self.add_file(path, KINDS[suffix])

    def add(self, kind: str, data: bytes, name: str) -> None:
        """Add code of a *kind* that the methods above name, except CUDA C++.

        Raises:
            ValueError: another kind, or no code.
        """
        if kind not in KINDS.values():
            raise ValueError(f"{name}: kind {kind!r} is none of {', '.join(set(KINDS.values()))}")
        given: tuple[object, object] = (data, name)
        if not isinstance(given[0], (bytes, bytearray, memoryview)) or not isinstance(name, str):
            kinds = f"{type(data).__name__} named {name!r}"
            raise TypeError(f"the linker takes code as bytes and its name as str, not {kinds}")
        code = bytes(data)
        if not code.strip(b"\0"):
            raise ValueError(f"{name}: there is nothing in it")
        self.inputs.append(Input(kind, code, name))

    def link(self) -> bytes:
        """Link: a cubin, or PTX from the backend "text".

        Raises:
            LinkError: with the linker's log.

        C: nvJitLinkComplete, or cuLinkComplete
        """
        if not self.inputs:
            raise ValueError("there is nothing to link: add something first")
        if self.backend == "nvjitlink":
            return self._by_nvjitlink()
        return self._by_driver() if self.backend == "driver" else self._by_text()

    def _by_nvjitlink(self) -> bytes:
        options = [f"-arch={self.arch}", *(["-lto"] if self.lto else []), *self.options]
        if self.max_registers is not None:
            options.append(f"-maxrregcount={self.max_registers}")
        options += ["-g"] if self.debug else []
        options += ["-lineinfo"] if self.lineinfo and not self.debug else []
        try:
            # nvJitLink 13 prints this error on stderr and links all the same.
            ptxlink.check(self._texts())
        except ValueError as error:
            self.error_log = str(error)
            raise LinkError("nvJitLink", self.error_log) from None
        try:
            with Link(options) as link:
                for kind, data, name in self.inputs:
                    link.add(kind, data, name)
                link.complete()
                self.info_log, self.error_log = link.info_log, link.error_log
                return self._complete(link.cubin)
        except NvJitLinkError as error:
            self.error_log = error.log
            raise LinkError("nvJitLink", str(error)) from None

    def _complete(self, code: bytes) -> bytes:
        """*code* if nothing is missing in it, which nvJitLink 12 does not always tell."""
        missing = cubin.undefined(code) if "-r" not in self.options else []
        if missing:
            self.error_log = f"undefined: {', '.join(missing)}; no input defines it"
            raise LinkError("nvJitLink", self.error_log)
        return code

    def _by_text(self) -> bytes:
        other = [each.name for each in self.inputs if each.kind != "ptx"]
        if other:
            raise LinkError(
                "text", f"{other[0]} is not PTX, and PTX is all that the emulator can run"
            )
        try:
            return ptxlink.join(self._texts()).encode()
        except ValueError as error:
            self.error_log = str(error)
            raise LinkError("text", self.error_log) from None

    def _texts(self) -> dict[str, str]:
        return {
            f"{each.name} ({number})": each.data.rstrip(b"\0").decode(errors="replace")
            for number, each in enumerate(self.inputs)
            if each.kind == "ptx"
        }

    def _by_driver(self) -> bytes:
        for kind, _, name in self.inputs:
            if kind not in _DRIVER_INPUTS:
                raise LinkError("the driver", f"{name}: it takes no LTO-IR; install nvJitLink")
        log = Log(self._driver_options())
        state = ctypes.c_void_p()
        current_context()
        driver.check(
            raw.cuLinkCreate(log.count, log.options, log.values, ctypes.byref(state)),
            "cuLinkCreate_v2",
        )
        try:
            return self._driven(state.value or 0, log)
        finally:
            self.info_log, self.error_log = log.info, log.error
            raw.cuLinkDestroy(state)

    def _driver_options(self) -> dict[int, int]:
        options = {}
        if self.max_registers is not None:
            options[raw.CU_JIT_MAX_REGISTERS] = self.max_registers
        if self.debug:
            options[raw.CU_JIT_GENERATE_DEBUG_INFO] = 1
        if self.lineinfo or self.debug:
            options[raw.CU_JIT_GENERATE_LINE_INFO] = 1
        return options

    def _driven(self, state: int, log: Log) -> bytes:
        for kind, data, name in self.inputs:
            data = data.rstrip(b"\0") + b"\0" if kind == "ptx" else data
            number = getattr(raw, _DRIVER_INPUTS[kind])
            code = raw.cuLinkAddData(state, number, data, len(data), name.encode(), 0, None, None)
            self._check(code, "cuLinkAddData_v2", log, name)
        image, size = ctypes.c_void_p(), ctypes.c_size_t()
        code = raw.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size))
        self._check(code, "cuLinkComplete", log, "all inputs")
        # The state owns the image.
        return ctypes.string_at(image.value or 0, size.value)

    @staticmethod
    def _check(code: int, function: str, log: Log, name: str) -> None:
        if code:
            error = driver.error(code, function, name)
            raise LinkError("the driver", f"{error}\n{log.error}".strip())


def _choose(arch: str | None) -> str:
    """The backend for an architecture, or for the current device."""
    if arch is None and driver.is_emulator():
        return "text"
    try:
        nvjitlink.find()
    except LibraryNotFound:
        if arch is not None and arch != current_context().device.arch:
            raise
        return "driver"
    return "nvjitlink"
