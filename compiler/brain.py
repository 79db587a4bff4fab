"""bfloat16 on the host: NumPy has no such type, so its numbers are bits or float32."""

from __future__ import annotations

from typing import Any

import numpy as np


def brain_bits(value: Any) -> int:
    """The bits of a number as bfloat16, rounded to even."""
    single = np.float32(value)
    bits = int(single.view(np.uint32))
    if np.isnan(single):
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def rounded(value: Any) -> np.float32:
    """The float32 that has the value of a number as bfloat16."""
    return np.uint32(brain_bits(value) << 16).view(np.float32)
