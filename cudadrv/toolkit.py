"""Finding the optional parts of a CUDA toolkit, and calling the C functions of its libraries."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path


class LibraryNotFound(ImportError):
    """A library of the toolkit is not there; ``tried`` lists every place looked at."""

    def __init__(self, what: str, wheel: str, variable: str, tried: Sequence[str]) -> None:
        self.tried = list(tried)
        super().__init__(
            f"{what} not found; install the wheel {wheel}, or set {variable} to the file; "
            "tried:\n" + "\n".join(f"  {place}" for place in tried)
        )


def files(
    patterns: Sequence[str], names: Sequence[str], override: str | None, tried: list[str]
) -> Iterator[str]:
    """Where a library may be: *override* alone, else files below `roots`, then bare names.

    Args:
        patterns: paths in a toolkit, as for glob.
        names: what the system's loader is asked for.
        tried: gets the places without one.
    """
    if override:
        yield override
        return
    for root in roots():
        found = [file for pattern in patterns for file in sorted(root.glob(pattern))]
        yield from map(str, found[:1])
        if not found:
            tried.append(f"{root}: no {' or '.join(patterns)}")
    yield from names


def stamps(places: Iterable[str]) -> list[str]:
    """What changes with the libraries in *places*, as `files` gives them, without loading them.

    A line a file: its path, its size and when it changed. For a bare name: the files of the
    name that the environment puts first, and the cache of the system's loader.
    """
    found: list[str] = []
    for place in places:
        if os.sep in place:
            found.append(stamp(place))
        else:
            folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
            found += [stamp(os.path.join(folder, place)) for folder in folders if folder]  # noqa: PTH118
            found.append(stamp("/etc/ld.so.cache"))
    return list(dict.fromkeys(found))


def stamp(path: str | os.PathLike[str]) -> str:
    """The path, size and time of the last change of a file, or that there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return f"{os.fspath(path)}: none"
    return f"{os.fspath(path)}: {status.st_size} {status.st_mtime_ns}"


class Functions:
    """The C functions of one loaded library, of which an older version may lack some.

    Args:
        path: a file, or a library name for the system's loader.
        signatures: for each function the types of its arguments; each returns an int.
        needed: one without which the file is another library.

    Raises:
        OSError: it cannot be loaded or is another library.
    """

    def __init__(self, path: str, signatures: dict[str, tuple[object, ...]], needed: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)
        self._signatures = signatures
        if not self.has(needed):
            raise OSError(f"{path} does not export {needed}: it is another library")

    def has(self, name: str) -> bool:
        """Whether this version of the library exports *name*."""
        return hasattr(self._library, name)

    def call(self, name: str, *args: object) -> int:
        """Call *name* and return its result code."""
        function = getattr(self._library, name)
        function.argtypes = self._signatures[name]
        return int(function(*args))


def roots() -> Iterator[Path]:
    """Directories in the shape of a CUDA toolkit, best first; each exists and comes once."""
    seen: set[Path] = set()
    for root in _roots():
        if root not in seen and root.is_dir():
            seen.add(root)
            yield root


# Folders of wheels: one of each CUDA from 13 on, before that one of each library.
_WHEELS = ("cu[0-9]*", "cuda_nvcc", "nvjitlink", "cuda_nvrtc", "cuda_runtime")


def _roots() -> Iterator[Path]:
    for wheels in (Path(entry or ".", "nvidia") for entry in sys.path):
        for pattern in _WHEELS if wheels.is_dir() else ():
            yield from _newest_first(wheels, pattern)
    for prefix in (os.environ.get("CONDA_PREFIX"), sys.prefix):
        if prefix:
            yield from (Path(prefix, "targets/x86_64-linux"), Path(prefix, "Library"), Path(prefix))
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        for entry in os.environ.get(variable, "").split(os.pathsep):
            if entry:
                yield Path(entry)
    if sys.platform == "win32":
        programs = os.environ.get("PROGRAMFILES", r"C:\Program Files")
        yield from _newest_first(Path(programs, "NVIDIA GPU Computing Toolkit", "CUDA"), "v*")
    else:
        yield Path("/usr/local/cuda")
        yield from _newest_first(Path("/usr/local"), "cuda-*")
        yield from (Path("/opt/cuda"), Path("/usr/lib/nvidia-cuda-toolkit"))


def _newest_first(directory: Path, pattern: str) -> list[Path]:
    def version(path: Path) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", path.name))

    return sorted(directory.glob(pattern), key=version, reverse=True)
