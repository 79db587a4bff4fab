"""The environment variables of the compiler, each read when it is asked for."""

from __future__ import annotations

import os


def codegen() -> str:
    """Which code generator: "auto", "nvvm", "nvvm7" (its LLVM 7 dialect) or "llvm"."""
    return os.environ.get("COMPILER_CODEGEN", "auto")
