"""What kernels can name: each file holds the rows of one subject, their types and their code."""

from . import arrays, atomics, bits, builtin, indices, mathematics, memory, operators, sync

__all__ = [
    "arrays", "atomics", "bits", "builtin", "indices", "mathematics", "memory", "operators", "sync",
]  # fmt: skip
