"""What tells constants apart, and how they are shown."""

from __future__ import annotations

import enum
import struct
from types import UnionType
from typing import Any

import numpy as np


def identity(value: Any) -> tuple[Any, ...]:
    """A hashable key that tells literals apart: 1, 1.0, True, 0.0 and -0.0 all differ."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, np.generic):
        return (value.dtype.str, value.tobytes())
    if isinstance(value, bool | int | str | bytes | UnionType) or value is None:
        return (type(value).__name__, value)
    if isinstance(value, tuple):
        return ("tuple", *(identity(item) for item in value))
    return (type(value).__name__, id(value))


def short(value: Any) -> str:
    """How a constant is shown in the name of its type."""
    if isinstance(value, bool | int | float | str | bytes | tuple | np.generic) or value is None:
        return repr(value)
    if isinstance(value, enum.Enum):
        return str(value)
    return getattr(value, "__name__", None) or type(value).__name__
