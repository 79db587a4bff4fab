"""What the compiler raises: one class for what it refuses, with the place in the user's source."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A place in the user's source: file, 1-based line, 0-based columns, the line's text."""

    file: str
    line: int
    col: int
    end_col: int
    text: str
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col + 1}"

    def excerpt(self) -> str:
        """The source line, with a caret line under the offending columns."""
        stripped = self.text.lstrip()
        start = max(self.col - (len(self.text) - len(stripped)), 0)
        width = max(min(self.end_col - self.col, len(stripped) - start), 1)
        return f"    {stripped.rstrip()}\n    {' ' * start}{'^' * width}"


class CompileError(Exception):
    """A function cannot be compiled: what is wrong, where, and what to write instead.

    Attributes:
        message: the bare message, without the place.
        span: the place in the user's source, or None where there is none.
        callers: the call sites that led to the function, innermost first.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.callers: list[Span] = []

    @property
    def line(self) -> int | None:
        """The 1-based source line, or None."""
        return self.span.line if self.span else None

    @property
    def file(self) -> str | None:
        """The source file, or None."""
        return self.span.file if self.span else None

    def __str__(self) -> str:
        if self.span is None:
            return self.message
        text = f"{self.span}: {self.message}\n{self.span.excerpt()}"
        for span in self.callers:
            text += f"\n  called from {span.function} at {span}\n{span.excerpt()}"
        return text


class TypingError(CompileError):
    """An operation is not defined for the types that reach it."""


class CompileWarning(UserWarning):
    """Compiled, but the source line it names deserves a look."""
