"""The environment variables of the compiler, each read when it is asked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def codegen() -> str:
    """Which code generator: "auto", "nvvm", "nvvm7" (its LLVM 7 dialect) or "llvm"."""
    return os.environ.get("COMPILER_CODEGEN", "auto")


def cache() -> bool | None:
    """Whether compiled code is kept on disk; None: as each kernel says."""
    value = os.environ.get("COMPILER_CACHE", "").strip().lower()
    return None if not value else value not in ("0", "off")


def cache_folder() -> Path:
    """The folder of compiled code."""
    if given := os.environ.get("COMPILER_CACHE_DIR"):
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base), "cudadrv-compiler")  # noqa: PTH111 (never raises)


def cache_limit() -> int:
    """The most bytes that compiled code takes on disk.

    Raises:
        ValueError: the variable is no number.
    """
    value = os.environ.get("COMPILER_CACHE_SIZE", "").strip() or "1024"
    try:
        return int(float(value) * 2**20)
    except (ValueError, OverflowError):
        raise ValueError(f"COMPILER_CACHE_SIZE={value!r}: give a number of MiB") from None


def dump_assembly() -> bool:
    """Whether PTX is printed when it is made."""
    return os.environ.get("COMPILER_DUMP_ASSEMBLY", "") not in ("", "0")
