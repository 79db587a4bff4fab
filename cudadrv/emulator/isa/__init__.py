"""The instructions: one module per family, each adding rows to the table."""

from . import arith, atomics, bits, compare, control, convert, floats, memory, mma, texture, warp
from .special import REGISTERS, special_register
from .table import TABLE, Op, find

__all__ = [
    "REGISTERS", "TABLE", "Op", "arith", "atomics", "bits", "compare", "control", "convert",
    "find", "floats", "memory", "mma", "special_register", "texture", "warp",
]  # fmt: skip
