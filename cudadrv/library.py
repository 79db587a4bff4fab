"""Finding and opening the CUDA driver: the machine's libcuda, or the emulator in its place."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
import threading

from cudadrv import config
from cudadrv.errors import DriverNotFound

TYPE_CHECKING = False  # importing typing would cost more than all else here
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

HINT = (
    "install an NVIDIA driver, name its library in CUDADRV_DRIVER, or set CUDADRV_DRIVER=emulator "
    "to run on the CPU"
)
# The stub that toolkits ship for linking answers this to every call.
STUB_LIBRARY = 34


class Driver(Protocol):
    """What ``raw`` calls: something that knows the C address of each driver function."""

    def address(self, name: str, version: int) -> int:
        """The address of the exported function *name*, introduced by CUDA *version*; 0 if absent.

        *version* counts as CUDA_VERSION does: 13000 is 13.0.
        """

    def refusal(self, name: str) -> int:
        """The address of what to call for a function that is absent; 0 to raise instead."""


class NativeDriver:
    """An opened libcuda."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.path = full_path(path)
        self._lookup: object = None

    def __repr__(self) -> str:
        return f"NativeDriver({self.path!r})"

    def address(self, name: str, version: int) -> int:
        """The address of *name*: the exported symbol, else what the driver's own lookup knows.

        The symbol comes first because its name says the ABI version exactly.

        C: cuGetProcAddress_v2
        """
        try:
            function = getattr(self.library, name)
        except AttributeError:
            return self._ask_driver(name, version)
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def refusal(self, name: str) -> int:
        """Nothing: only a newer driver has the function."""
        return 0

    def _ask_driver(self, name: str, version: int) -> int:
        try:
            lookup = self.library.cuGetProcAddress_v2
        except AttributeError:
            return 0
        base = re.sub(r"(_v\d+)?(_pt[ds][sz])?$", "", name)
        flags = 2 if re.search(r"_pt[ds][sz]$", name) else 1  # per-thread stream, legacy stream
        found, status = ctypes.c_void_p(), ctypes.c_int()
        code = lookup(
            base.encode(),
            ctypes.byref(found),
            ctypes.c_int(version),
            ctypes.c_uint64(flags),
            ctypes.byref(status),
        )
        return 0 if code else found.value or 0


def full_path(path: str) -> str:
    """The file behind a library that was opened by its bare name, where the system tells."""
    if os.sep in path:
        return path
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            maps = file.read()
    except OSError:
        return path
    found = re.search(rf"\S*/{re.escape(path)}\S*", maps)
    return found[0] if found else path


def candidates() -> list[str]:
    """Names and paths of the driver's library, the likeliest first.

    The unversioned libcuda.so is never among them: it is what a toolkit's stub is called.
    """
    if sys.platform == "win32":
        system = os.path.join(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32")  # noqa: PTH118
        return ["nvcuda.dll", os.path.join(system, "nvcuda.dll")]  # noqa: PTH118
    folders = [
        "/usr/lib/wsl/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/lib/x86_64-linux-gnu/nvidia/current",
        "/usr/lib/aarch64-linux-gnu/tegra",
        "/usr/lib/aarch64-linux-gnu/nvidia",
        "/usr/local/cuda/compat",
        "/run/opengl-driver/lib",
    ]
    return ["libcuda.so.1", *(f"{folder}/libcuda.so.1" for folder in folders)]


def why_unusable(driver: Driver) -> str | None:
    """What keeps *driver* from running kernels; None when it initialises and has a device.

    C: cuInit, cuDeviceGetCount
    """
    init, count = driver.address("cuInit", 2000), driver.address("cuDeviceGetCount", 2000)
    if not init or not count:
        return "it is not a CUDA driver: it exports no cuInit"
    code = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(init)(0)
    if code == STUB_LIBRARY:
        return "it is the stub for linking, not a driver"
    if code:
        return f"cuInit returned {code}"
    number = ctypes.c_int()
    code = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(count)(ctypes.byref(number))
    if code or not number.value:
        return f"cuDeviceGetCount returned {code} and {number.value} devices"
    return None


def open_path(path: str) -> NativeDriver:
    """The driver in the file *path*, for a choice the user made: it is not tried out here.

    Raises:
        DriverNotFound: the file cannot be loaded, or is no driver.
    """
    hint = "correct CUDADRV_DRIVER or use_driver(): a path, 'emulator' or 'auto'"
    try:
        driver = NativeDriver(path)
    except OSError as error:
        raise DriverNotFound([f"{path}: {error}"], hint) from None
    if not hasattr(driver.library, "cuInit"):
        raise DriverNotFound([f"{path}: a library without cuInit, so no CUDA driver"], hint)
    return driver


def open_native(usable: bool = True) -> NativeDriver:
    """The machine's driver.

    Args:
        usable: pass over libraries that do not initialise or show no device.

    Raises:
        DriverNotFound: nothing on the list works.
    """
    tried = []
    for place in candidates():
        try:
            driver = NativeDriver(place)
        except OSError as error:
            tried.append(f"{place}: {error}")
            continue
        problem = why_unusable(driver) if usable else None
        if problem is None:
            return driver
        tried.append(f"{driver.path}: {problem}")
    raise DriverNotFound(tried, HINT)


def open_emulator() -> Driver:
    """The emulator, which is imported only here.

    Raises:
        DriverNotFound: llvmlite, which it compiles with, is not installed.
    """
    try:
        # By name, since the emulator is a driver for this package, not a part under it.
        emulator = importlib.import_module("cudadrv.emulator")
        driver: Driver = emulator.open()
    except ImportError as error:
        hint = "the emulator needs llvmlite: pip install 'cudadrv[compiler]'"
        raise DriverNotFound([f"cudadrv.emulator: {error}"], hint) from error
    return driver


def open_driver(choice: str) -> Driver:
    """The driver that *choice* names: "auto", "emulator" or a path.

    "auto" takes the emulator when no driver works, and says so in one line on stderr.

    Raises:
        DriverNotFound: nothing could be opened.
    """
    if choice == "emulator":
        return open_emulator()
    if choice != "auto":
        return open_path(choice)
    try:
        return open_native()
    except DriverNotFound as error:
        missing = error
    try:
        driver = open_emulator()
    except DriverNotFound as error:
        raise DriverNotFound((*missing.tried, *error.tried), f"{HINT}; {error.hint}") from None
    print(
        f"cudadrv: no usable CUDA driver ({reason(missing)}); kernels run on the PTX emulator. "
        "CUDADRV_DRIVER=emulator silences this line.",
        file=sys.stderr,
    )
    return driver


def reason(error: DriverNotFound) -> str:
    """Why there is no driver, in a few words: the first library that exists, else the first try."""
    loaded = [place for place in error.tried if "cannot open shared object" not in place]
    return (loaded or ["no libcuda.so.1"])[0]


_lock = threading.Lock()
_choice: str | None = None
_current: Driver | None = None


def current() -> Driver:
    """The driver of this process, opened at the first call.

    Raises:
        DriverNotFound: there is none.
    """
    global _current
    if _current is None:
        with _lock:
            if _current is None:
                _current = open_driver(_choice or config.driver())
    return _current


def opened() -> Driver | None:
    """The driver of this process, if one is open already."""
    return _current


def use_driver(choice: str | Driver) -> None:
    """Choose the driver of this process, instead of the variable CUDADRV_DRIVER.

    Args:
        choice: "auto", "emulator", the path of a libcuda, or an object with an ``address`` method.

    Raises:
        RuntimeError: another driver is open already.
    """
    global _choice, _current
    with _lock:
        if isinstance(choice, (str, os.PathLike)):
            choice = os.fspath(choice)
            if _current is not None and choice != (_choice or config.driver()):
                raise RuntimeError(
                    f"use_driver({choice!r}) came too late: {_current!r} is open already; "
                    "call it before the first use of CUDA"
                )
            _choice = choice
        elif _current not in (None, choice):
            raise RuntimeError(f"use_driver came too late: {_current!r} is open already")
        else:
            _current = choice
