"""What kernels can name: each file holds the rows of one subject, their types and their code."""

from . import (
    arrays,
    atomics,
    bits,
    builtin,
    complexes,
    constants,
    elementwise,
    extern,
    failures,
    hints,
    indices,
    intrinsics,
    libdevice,
    mathematics,
    memory,
    methods,
    numbers,
    operators,
    pointers,
    printing,
    ptx,
    records,
    sync,
    times,
    tuples,
    ufuncs,
    vectors,
    warp,
)

__all__ = [
    "arrays", "atomics", "bits", "builtin", "complexes", "constants", "elementwise", "extern",
    "failures", "hints", "indices", "intrinsics", "libdevice", "mathematics", "memory", "methods",
    "numbers", "operators", "pointers", "printing", "ptx", "records", "sync", "times", "tuples",
    "ufuncs", "vectors", "warp",
]  # fmt: skip
