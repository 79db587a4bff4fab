"""The one error that loading PTX raises: what is wrong, in which line."""

from __future__ import annotations


class PtxError(Exception):
    """PTX that cannot be run.

    Attributes:
        line: line number in the PTX text, from 1; 0 if it is about the whole module.
        text: that line.
        unsupported: it is PTX, but the emulator does not have it (else it is not PTX at all).
    """

    def __init__(self, message: str, line: int = 0, *, unsupported: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.text = ""
        self.unsupported = unsupported

    def __str__(self) -> str:
        kind = "unsupported" if self.unsupported else "error"
        if not self.line:
            return f"ptx {kind}: {self.message}"
        return f"ptx, line {self.line}; {kind}: {self.message}\n  {self.text.strip()}"


def unsupported(message: str, line: int = 0) -> PtxError:
    """A PtxError for valid PTX that the emulator does not run."""
    return PtxError(message, line, unsupported=True)
