"""The driver API checked: same names as ``raw``, results returned, errors raised.

``driver.cuMemAlloc(nbytes)`` returns the pointer, or raises a ``CudaError`` that says what failed.
Parameters that cuda.h documents as results are left out of the call and returned: one as a value,
several as a tuple. Handles are ints, 0 for NULL. ``driver.cuEventQuery.raw`` is the unchecked twin.
"""

from __future__ import annotations

from typing import Any

from cudadrv import checked, raw
from cudadrv.checked import *  # noqa: F403 - what the calls are made of, by its __all__

__all__ = list(checked.__all__)


def __getattr__(name: str) -> Any:
    if not name.startswith("cu"):
        raise AttributeError(f"module 'cudadrv.driver' has no attribute {name!r}")
    return raw.remember(globals(), name, checked.function(name))
