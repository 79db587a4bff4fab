"""Compiled code on disk: bytes by key, safe among processes, the least recently used dropped."""

from __future__ import annotations

import os
import struct
import threading
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from . import config
from .errors import CompileWarning

# Of the entries; another number makes other keys.
FORMAT = 1
_DIGEST = 32
# What processes that were killed leave is older than this, in seconds.
_ABANDONED = 3600.0


def key(*parts: str | bytes) -> str:
    """The name of what is made from *parts*, in hexadecimal digits."""
    hashed = _sha256(b"%d" % FORMAT)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hashed.update(struct.pack("<Q", len(data)))
        hashed.update(data)
    return str(hashed.hexdigest())


def _sha256(data: bytes) -> Any:
    import hashlib  # Not for kernels that are not kept: it loads OpenSSL.

    return hashlib.sha256(data)


class Store:
    """Entries in one folder, each a file that bears its key and a checksum.

    A folder that cannot be used costs one CompileWarning, and nothing is kept from then on.

    Args:
        folder: where; it is made when it is needed.
        limit: of the size of all entries in bytes.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.usable = True
        self._used: int | None = None  # bytes in the folder, as far as this process knows

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r}, {self.limit})"

    def get(self, name: str) -> list[bytes] | None:
        """The parts that were put under a key; None if there are none, or if they are damaged."""
        place = self._place(name)
        try:
            data = place.read_bytes()
        except OSError:
            return None
        parts = _unpacked(name, data)
        try:
            if parts is None:
                place.unlink()
            else:
                os.utime(place)  # it counts as used now
        except OSError:
            pass  # A folder that is read only still has what is in it.
        return parts

    def put(self, name: str, *parts: bytes) -> None:
        """Keep *parts* under a key; what others read meanwhile is the whole of it or nothing."""
        if not self.usable:
            return
        data = _packed(name, parts)
        place = self._place(name)
        temporary = place.with_name(f"{name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                temporary.write_bytes(data)
                temporary.replace(place)
            finally:
                temporary.unlink(missing_ok=True)
            self._account(len(data))
        except OSError as error:
            self._give_up(error)

    def drop(self, name: str) -> None:
        """Forget what was put under a key."""
        try:
            self._place(name).unlink(missing_ok=True)
        except OSError as error:
            self._give_up(error)

    def _place(self, name: str) -> Path:
        return self.folder / f"{name}.entry"

    def _give_up(self, error: OSError) -> None:
        self.usable = False
        warnings.warn(
            f"compiled code cannot be kept in {self.folder} ({error.strerror or error}): make room "
            f"or name another folder in COMPILER_CACHE_DIR; COMPILER_CACHE=0 keeps nothing",
            CompileWarning,
            stacklevel=2,
        )

    def _account(self, more: int) -> None:
        """Add to the size, and drop the entries that were not used for longest if it is too much.

        Down to nine tenths of the limit, so that not every entry costs a walk over the folder.
        """
        self._used = None if self._used is None else self._used + more
        if self._used is not None and self._used <= self.limit:
            return
        entries = sorted(self._entries())
        self._used = sum(size for _, size, _ in entries)
        if self._used <= self.limit:
            return
        for _, size, place in entries:
            if self._used <= self.limit * 0.9:
                break
            place.unlink(missing_ok=True)
            self._used -= size

    def _entries(self) -> list[tuple[float, int, Path]]:
        """When each was used, its size and its file; leftovers are deleted."""
        found = []
        for item in os.scandir(self.folder):
            try:
                status = item.stat()
            except OSError:
                continue  # another process was faster
            if item.name.endswith(".entry"):
                found.append((status.st_mtime, status.st_size, Path(item.path)))
            elif item.name.endswith(".tmp") and time.time() - status.st_mtime > _ABANDONED:
                Path(item.path).unlink(missing_ok=True)
        return found


def _packed(name: str, parts: tuple[bytes, ...]) -> bytes:
    head = struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts))
    body = b"".join((bytes.fromhex(name), head, *parts))
    return bytes(_sha256(body).digest()) + body


def _unpacked(name: str, data: bytes) -> list[bytes] | None:
    body = data[_DIGEST:]
    if _sha256(body).digest() != data[:_DIGEST]:
        return None
    start = len(name) // 2
    if body[:start] != bytes.fromhex(name):
        return None
    (count,) = struct.unpack_from("<Q", body, start)
    sizes = struct.unpack_from(f"<{count}Q", body, start + 8)
    start += 8 * (count + 1)
    parts = []
    for size in sizes:
        parts.append(body[start : start + size])
        start += size
    return parts


def store(wanted: bool) -> Store | None:
    """Where code is kept: None if it is not to be.

    Args:
        wanted: what the kernel asks for; the variable COMPILER_CACHE has the last word.
    """
    decided = config.cache()
    if not (wanted if decided is None else decided):
        return None
    return _store(config.cache_folder(), config.cache_limit())


_store = cache(Store)
