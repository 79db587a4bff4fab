"""LLVM IR -> PTX, by libNVVM or by LLVM's own generator."""

from .nvvm import NvvmCodegen
from .select import Codegen, select
from .target import CodegenError, Dialect, NoCodegen, Target, ptx_version

__all__ = [
    "Codegen",
    "CodegenError",
    "Dialect",
    "NoCodegen",
    "NvvmCodegen",
    "Target",
    "ptx_version",
    "select",
]
