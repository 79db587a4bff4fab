"""Loading code: PTX, cubin, fatbin and LTO-IR become a Library with kernels and variables."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import weakref
from typing import Any

from cudadrv import checks, driver, manifest, nvjitlink, raw
from cudadrv.context import Resource, current_context
from cudadrv.errors import ClosedError, JitError, NameNotFound
from cudadrv.jit_options import Log, Options
from cudadrv.kernel import Kernel
from cudadrv.memory import DeviceMemory

ELF, FATBIN, LTOIR = b"\x7fELF", b"\x50\xed\x55\xba", b"\xedCN\x7f"
EM_CUDA = 190  # e_machine of a cubin
NOT_FOUND = 500
# The newest PTX version that the drivers of each CUDA version read, from the release notes in the
# PTX ISA manual; a newer driver is not second-guessed.
PTX_OF_CUDA = {
    (10, 0): (6, 3), (10, 1): (6, 4), (10, 2): (6, 5), (11, 0): (7, 0), (11, 1): (7, 1),
    (11, 2): (7, 2), (11, 3): (7, 3), (11, 4): (7, 4),
    (11, 5): (7, 5), (11, 6): (7, 6), (11, 7): (7, 7), (11, 8): (7, 8), (12, 0): (8, 0),
    (12, 1): (8, 1), (12, 2): (8, 2), (12, 3): (8, 3), (12, 4): (8, 4), (12, 5): (8, 5),
    (12, 6): (8, 5), (12, 7): (8, 6), (12, 8): (8, 7), (12, 9): (8, 8), (13, 0): (9, 0),
}  # fmt: skip


def newest_ptx() -> tuple[int, int] | None:
    """The newest PTX version that the driver reads, as (9, 0); None if that is not known.

    C: cuDriverGetVersion
    """
    return None if driver.is_emulator() else PTX_OF_CUDA.get(driver.driver_version())


def loading_mode() -> str:
    """When the driver loads kernels: "lazy", each when it is first used, or "eager", with the code.

    The environment variable CUDA_MODULE_LOADING chooses.

    C: cuModuleGetLoadingMode
    """
    mode = ctypes.c_int()
    driver.init()
    driver.cuModuleGetLoadingMode(ctypes.byref(mode))
    return "lazy" if mode.value == raw.CU_MODULE_LAZY_LOADING else "eager"


def load(code: bytes | str | os.PathLike[str], **options: Any) -> Library:
    """Load PTX text, a cubin, a fatbin or LTO-IR into the current context.

    Args:
        code: the code itself, as str (PTX) or bytes, or the path of a file as a Path object.
            LTO-IR goes through nvJitLink.
        options: of the driver's compiler: max_registers, optimization_level (0 to 4), lineinfo,
            debug, verbose, cache_mode ("none", "cg", "ca"), target ("sm_90"), threads_per_block,
            max_threads_per_block, min_blocks_per_sm, override_directives, fast_compile,
            split_compile, loader_threads, fallback ("ptx", "binary"), and symbols, a dict of the
            addresses of variables that the code only declares. None is as if not given.

    Raises:
        JitError: the driver cannot use the code; its ``log`` says why.
        ValueError: the code is empty, cut short or of another kind.
        TypeError: it is neither text, bytes nor a path, or there is no such option.
        OSError: the file cannot be read.
        LibraryNotFound: the code is LTO-IR, and there is no nvJitLink.

    C: cuLibraryLoadData, or cuModuleLoadDataEx on drivers before 12.0
    """
    if isinstance(code, os.PathLike):
        return load_file(os.fspath(code), Options(options))
    if isinstance(code, str):
        code = code.encode()
    given: object = code
    if not isinstance(given, (bytes, bytearray, memoryview)):
        kind = type(given).__name__
        raise TypeError(f"code of type {kind}: give PTX as str, code as bytes, or a Path to a file")
    return Library(bytes(given), Options(options))


def load_file(path: str, options: Options) -> Library:
    """Load a file; the manifest beside code built ahead of time says how its kernels are called."""
    built = manifest.find(path)
    if built is not None:
        name = manifest.choose(built["files"], current_context().device.compute_capability)
        path = os.path.join(os.path.dirname(path), name)  # noqa: PTH118, PTH120
    with open(path, "rb") as file:  # noqa: PTH123
        library = Library(file.read(), options)
    if built is not None:
        library.layouts = {name: each["arguments"] for name, each in built["kernels"].items()}
    return library


_live: weakref.WeakSet[Library] = weakref.WeakSet()


def _after_fork() -> None:
    """Close every library in a forked child, so that launches prepared by the parent notice."""
    for library in _live:
        library._handle = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Library(Resource):
    """Loaded code.

    Attributes:
        log: what the driver's compiler remarked while loading.
        layouts: the arguments of each kernel that was built ahead of time, see manifest.
        is_library: whether the handle is a CUlibrary (driver 12.0 and newer), not a CUmodule.
    """

    def __init__(self, code: bytes, options: Options | None = None) -> None:
        given: object = code
        if not isinstance(given, bytes):
            raise TypeError(f"code of type {type(given).__name__}: load() takes more than bytes")
        context = current_context()
        options = Options({}) if options is None else options
        if not isinstance(options, Options):
            raise TypeError("options are those that load() takes by keyword")
        if code.startswith(LTOIR):
            code = linked(code, options)
        self.ptx = ptx_text(code)
        self.layouts: dict[str, Any] = {}
        # The driver may write into the log, and read the code, until the library is unloaded.
        self._options = options
        self._log = Log(options.numbers)
        if self.ptx is None:
            self._code = code
            check_binary(code)
        else:
            self._code = code.rstrip(b"\0") + b"\0"
            check_version(self.ptx)
        self.is_library = raw.available("cuLibraryLoadData")
        self.RELEASE = "cuLibraryUnload" if self.is_library else "cuModuleUnload"
        super().__init__(self._load(), context.handle)
        self._remember()

    def _remember(self) -> None:
        _live.add(self)
        # Weak, since each kernel keeps the library loaded.
        self._kernels: weakref.WeakValueDictionary[str, Kernel] = weakref.WeakValueDictionary()

    @classmethod
    def adopt(cls, handle: int, is_library: bool = True) -> Library:
        """Use code that another library loaded and will unload.

        Args:
            handle: its CUlibrary, or with *is_library* False its CUmodule.

        Raises:
            TypeError, ValueError: the handle is none.
        """
        adopted = cls.__new__(cls)
        adopted.ptx, adopted.layouts, adopted._log = None, {}, Log()
        adopted.is_library = is_library
        number = checks.address(handle, "handle")
        if not number:
            raise ValueError("handle=0 is no loaded code")
        Resource.__init__(adopted, number, current_context().handle, owned=False)
        adopted._remember()
        return adopted

    @classmethod
    def adopt_kernel(cls, handle: int, is_library: bool = True) -> Kernel:
        """Use a kernel of code that another library loaded and will unload.

        Args:
            handle: its CUkernel, or with *is_library* False its CUfunction.

        Raises:
            NotSupportedByDriver: the driver is older than 12.5, or 12.3 for a CUfunction.

        C: cuKernelGetLibrary, cuKernelGetName, cuFuncGetModule, cuFuncGetName
        """
        number = checks.address(handle, "handle")
        if not number:
            raise ValueError("handle=0 is no kernel")
        current_context()
        if is_library:
            name, owner = driver.cuKernelGetName(number), driver.cuKernelGetLibrary(number)
        else:
            name, owner = driver.cuFuncGetName(number), driver.cuFuncGetModule(number)
        return Kernel(cls.adopt(owner, is_library), name, number)

    @property
    def log(self) -> str:
        """What the driver's compiler remarked while loading."""
        return self._log.info

    def _load(self) -> int:
        handle, log = ctypes.c_void_p(), self._log
        result = ctypes.byref(handle)
        options = (log.options, log.values, log.count)
        if not self.is_library:
            function = "cuModuleLoadDataEx"
            code = raw.cuModuleLoadDataEx(result, self._code, log.count, log.options, log.values)
        else:
            function = "cuLibraryLoadData"
            code = raw.cuLibraryLoadData(result, self._code, *options, None, None, 0)
            if not code and self.ptx is not None:
                # Compiles now what would else be compiled, and fail, at the first launch.
                code = raw.cuLibraryGetModule(ctypes.byref(ctypes.c_void_p()), handle)
                if code:
                    raw.cuLibraryUnload(handle)
        if code:
            raise self._load_error(code, function)
        return handle.value or 0

    def _load_error(self, code: int, function: str) -> Exception:
        error = driver.error(code, function)
        if not isinstance(error, JitError) and not self._log.error:
            return error  # type: ignore[no-any-return]
        log = self._log.error
        hint = "; ".join(filter(None, [error.hint, f"log:\n{log}" if log else ""]))
        return JitError(code, error.name, function, error.description, hint, log)

    def check_open(self) -> None:
        """Raise ClosedError if the library was closed."""
        if self.closed:
            raw.check_process()
            raise ClosedError("the library of this kernel was closed; load it again")

    def explain(self, text: str) -> str:
        """*text* with what the driver's compiler complained about since, if it did."""
        return f"{text}; compiler log: {self._log.error}" if self._log.error else text

    def __getitem__(self, name: str) -> Kernel:
        """The kernel *name*.

        Raises:
            NameNotFound: there is no such kernel; the error lists those there are.

        C: cuLibraryGetKernel
        """
        handle = self.handle
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is no name of a kernel: names are str")
        kernel = self._kernels.get(name)
        if kernel is None:
            get = "cuLibraryGetKernel" if self.is_library else "cuModuleGetFunction"
            found = ctypes.c_void_p()
            code = getattr(raw, get)(ctypes.byref(found), handle, name.encode())
            if code == NOT_FOUND:
                raise NameNotFound("kernel", name, self._names())
            driver.check(code, get, self.explain(f"kernel {name!r}"))
            kernel = self._kernels[name] = Kernel(self, name, found.value or 0)
            kernel.layout = self.layouts.get(name)
        return kernel

    def floats(self, name: str, sizes: list[int] | None) -> list[bool | None] | None:
        """Which parameters of a kernel are floating-point numbers, as far as PTX tells."""
        found = None if self.ptx is None else ptx_floats(self.ptx, name)
        return found if found is not None and sizes and len(found) == len(sizes) else None

    def kernels(self) -> list[str]:
        """The names of all kernels.

        Raises:
            NotSupportedByDriver: the code is binary, and the driver older than 12.4.

        C: cuLibraryEnumerateKernels, cuKernelGetName
        """
        handle = self.handle
        names = "cuLibraryEnumerateKernels" if self.is_library else "cuModuleEnumerateFunctions"
        if self.ptx is not None and not raw.available(names):
            return ptx_kernels(self.ptx)
        functions = (
            ("cuLibraryGetKernelCount", "cuLibraryEnumerateKernels", "cuKernelGetName")
            if self.is_library
            else ("cuModuleGetFunctionCount", "cuModuleEnumerateFunctions", "cuFuncGetName")
        )
        count, enumerate_all, get_name = (getattr(driver, each) for each in functions)
        handles = (ctypes.c_void_p * count(handle))()
        enumerate_all(handles, len(handles), handle)
        return sorted(get_name(each) for each in handles)

    def _names(self) -> list[str] | None:
        try:
            return self.kernels()
        except RuntimeError:
            return None

    def get_global(self, name: str) -> DeviceMemory:
        """The memory of a global or constant variable, in the current context.

        It is read and written like all memory: ``memcpy(array, lib.get_global("table"))``,
        ``memcpy(lib.get_global("table"), array)``, ``memset(lib.get_global("count"), 0)``.

        Raises:
            NameNotFound: there is no such variable.

        C: cuLibraryGetGlobal
        """
        get = "cuLibraryGetGlobal" if self.is_library else "cuModuleGetGlobal"
        return self._variable(get, name)

    def get_managed(self, name: str) -> DeviceMemory:
        """The memory of a ``__managed__`` variable, which the host reads and writes too.

        Raises:
            NameNotFound: there is no such managed variable.
            NotSupportedByDriver: the driver is older than 12.0.

        C: cuLibraryGetManaged
        """
        return self._variable("cuLibraryGetManaged", name)

    def _variable(self, get: str, name: str) -> DeviceMemory:
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is no name of a variable: names are str")
        handle = self.handle
        context = current_context().handle
        address, nbytes = ctypes.c_uint64(), ctypes.c_size_t()
        code = getattr(raw, get)(ctypes.byref(address), ctypes.byref(nbytes), handle, name.encode())
        if code == NOT_FOUND:
            raise NameNotFound("global", name, None if self.ptx is None else ptx_globals(self.ptx))
        driver.check(code, raw.symbol(get), f"global {name!r}")
        return DeviceMemory(address.value, nbytes.value, context, owner=self)

    def unified_function(self, name: str) -> int:
        """The address of a function that host and device code both call, for a pointer to it.

        Raises:
            NameNotFound: there is no such function.

        C: cuLibraryGetUnifiedFunction
        """
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is no name of a function: names are str")
        found = ctypes.c_void_p()
        code = raw.cuLibraryGetUnifiedFunction(ctypes.byref(found), self.handle, name.encode())
        if code in (NOT_FOUND, raw.CUDA_ERROR_INVALID_VALUE):
            raise NameNotFound("unified function", name, None)
        driver.check(code, "cuLibraryGetUnifiedFunction", f"function {name!r}")
        return found.value or 0


def linked(code: bytes, options: Options) -> bytes:
    """LTO-IR as a cubin for the current device; as PTX for the emulator.

    Raises:
        LibraryNotFound: there is no nvJitLink.
        NvJitLinkError: it refuses the code.
    """
    arch = current_context().device.arch
    emulated = driver.is_emulator()
    given = [f"-arch={arch}", "-lto", *options.link_options(), *(["-ptx"] if emulated else [])]
    with nvjitlink.Link(given) as link:
        link.add("ltoir", code)
        link.complete()
        return link.ptx.encode() if emulated else link.cubin


def ptx_text(code: bytes) -> str | None:
    """The text of PTX; None for binary code.

    Raises:
        ValueError: there is no code at all.
    """
    if not code.strip(b"\0 \t\r\n"):
        raise ValueError("there is no code to load: the text or file is empty")
    if code.startswith((ELF, FATBIN)) or b"\0" in code.rstrip(b"\0"):
        return None
    return code.rstrip(b"\0").decode(errors="replace")


def check_binary(code: bytes) -> None:
    """Refuse what is no whole cubin or fatbin: the driver reads as far as the headers tell it.

    Raises:
        ValueError: another kind of file, or the end is missing.
    """
    if code.startswith(ELF) and len(code) >= 64:
        machine = struct.unpack_from("<H", code, 18)[0]
        if machine != EM_CUDA:
            raise ValueError(f"the code is an ELF file for machine {machine}, not a cubin")
        # Offset, entry size and count of the two tables, by the ELF-64 header.
        segments, sections = struct.unpack_from("<QQ", code, 32)
        needs = 0
        for start, (size, count) in zip(
            (segments, sections), struct.iter_unpack("<HH", code[54:62]), strict=True
        ):
            needs = max(needs, start + size * count)
    elif code.startswith(FATBIN) and len(code) >= 16:
        header, size = struct.unpack_from("<HQ", code, 6)
        needs = header + size
    elif code.startswith((ELF, FATBIN)):
        needs = 64
    else:
        raise ValueError(
            f"the code is neither PTX text nor a cubin nor a fatbin: it begins with {code[:8]!r}"
        )
    if len(code) < needs:
        raise ValueError(f"the code is cut short: it has {len(code)} bytes of at least {needs}")


def check_version(ptx: str | None) -> None:
    """Refuse PTX that is newer than the driver reads, with a message that names both versions.

    Raises:
        JitError: with CUDA_ERROR_UNSUPPORTED_PTX_VERSION, as the driver would.
    """
    found = re.search(r"^\s*\.version\s+(\d+)\.(\d+)", ptx or "", re.MULTILINE)
    limit = newest_ptx() if found else None
    if found is None or limit is None:
        return
    version = int(found[1]), int(found[2])
    if version > limit:
        has = "{}.{}".format(*driver.driver_version())
        raise driver.error(
            raw.CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            "load",
            f"the code is PTX {version[0]}.{version[1]}, and driver {has} reads PTX up to "
            f"{limit[0]}.{limit[1]}: compile for that version or to a cubin, or update the driver",
        )


def ptx_kernels(ptx: str) -> list[str]:
    """The names of the kernels in PTX text."""
    return sorted(re.findall(r"\.entry\s+([\w$%]+)", ptx))


def ptx_floats(ptx: str, name: str) -> list[bool | None] | None:
    """Of each parameter of a kernel whether it is a floating-point number; None where unknown.

    Bits (.b32), as some compilers declare everything, and structs are unknown.
    """
    found = re.search(rf"\.entry\s+{re.escape(name)}\s*\(([^)]*)\)", ptx)
    if found is None:
        return None
    kinds = [re.search(r"\.([usf])\d+\s", each) for each in found[1].split(",")]
    arrays = ["[" in each for each in found[1].split(",")]
    return [
        kind[1] == "f" if kind and not array else None
        for kind, array in zip(kinds, arrays, strict=True)
    ]


def ptx_globals(ptx: str) -> list[str]:
    """The names of the module's variables in PTX text."""
    lines = re.findall(r"^\s*(?:\.\w+\s+)*\.(?:global|const)\s([^=;]*)", ptx, re.MULTILINE)
    words = (re.sub(r"\[.*", "", line).split() for line in lines)
    return sorted(found[-1] for found in words if found)
