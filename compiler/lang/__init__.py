"""What kernels can name: each file holds the rows of one subject, their types and their code."""

from . import (
    arrays,
    atomics,
    bits,
    builtin,
    complexes,
    extern,
    failures,
    indices,
    libdevice,
    mathematics,
    memory,
    methods,
    numbers,
    operators,
    printing,
    records,
    sync,
    tuples,
    ufuncs,
)

__all__ = [
    "arrays", "atomics", "bits", "builtin", "complexes", "extern", "failures", "indices",
    "libdevice", "mathematics", "memory", "methods", "numbers", "operators", "printing",
    "records", "sync", "tuples", "ufuncs",
]  # fmt: skip
