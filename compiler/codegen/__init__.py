"""LLVM IR -> PTX, by libNVVM or by LLVM's own generator."""

from .select import Codegen, select
from .target import CodegenError, Dialect, NoCodegen, Target, ptx_version

__all__ = [
    "Codegen",
    "CodegenError",
    "Dialect",
    "NoCodegen",
    "Target",
    "ptx_version",
    "select",
]
