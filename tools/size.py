"""Counts the hand-written lines of each part and fails when one is over its budget.

A line counts when it holds code: blank lines, comments and docstrings do not.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Raising a budget is a commit of its own, with the reason in its message.
BUDGETS = {"cudadrv": 10500, "cudadrv/emulator": 9500, "compiler": 18000}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """The number of lines of *source* that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(source)))


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines of *tree* that docstrings cover."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node, clean=False) is not None:
                lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def is_generated(source: str) -> bool:
    """Whether the first line says that a tool wrote the file."""
    return source.startswith("# GENERATED")


def hand_written(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every hand-written Python file below *folder* and its text."""
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not is_generated(source):
            yield path, source


def part_of(path: Path) -> str:
    """The most specific budget that counts *path*."""
    name = path.relative_to(ROOT).as_posix()
    return max((part for part in BUDGETS if name.startswith(part + "/")), key=len)


def main() -> int:
    """Print a line for each part; 1 if one is over its budget."""
    totals = dict.fromkeys(BUDGETS, 0)
    files = dict.fromkeys(BUDGETS, 0)
    for folder in ("cudadrv", "compiler"):
        for path, source in hand_written(ROOT / folder):
            part = part_of(path)
            totals[part] += code_lines(source)
            files[part] += 1
    for part, budget in BUDGETS.items():
        over = "  OVER BUDGET" if totals[part] > budget else ""
        print(f"{part:18}{totals[part]:6,} of {budget:6,} lines in {files[part]:3} files{over}")
    return int(any(totals[part] > budget for part, budget in BUDGETS.items()))


if __name__ == "__main__":
    sys.exit(main())
