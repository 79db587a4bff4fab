"""What kernels can name: each file holds the rows of one subject, their types and their code."""

from . import arrays, atomics, builtin, indices, mathematics, memory, operators, sync

__all__ = [
    "arrays", "atomics", "builtin", "indices", "mathematics", "memory", "operators", "sync",
]  # fmt: skip
