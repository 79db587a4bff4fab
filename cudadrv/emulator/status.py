"""How an emulated driver function fails: with a CUresult."""

from __future__ import annotations

from typing import Any

from cudadrv.raw import table

CODES = table.ENUMS["CUresult" if "CUresult" in table.ENUMS else "cudaError_enum"]


class Status(Exception):
    """The call returns this CUresult instead of CUDA_SUCCESS.

    *results* are out-parameters that are stored all the same.
    """

    def __init__(self, name: str) -> None:
        self.results: Any = None
        self.code = CODES[f"CUDA_ERROR_{name}"]
        super().__init__(name)

    @classmethod
    def of(cls, code: int) -> Status:
        """The Status of the CUresult *code*."""
        made = cls("UNKNOWN")
        made.code = code
        return made


def require(condition: object, name: str = "INVALID_VALUE") -> None:
    """Fail with CUDA_ERROR_*name* unless *condition* holds."""
    if not condition:
        raise Status(name)
