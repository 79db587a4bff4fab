"""From a Python function to its syntax tree, and from a tree node to its span."""

from __future__ import annotations

import ast
import copy
import linecache
import types
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from ..errors import CompileError, Span

FunctionNode = ast.FunctionDef | ast.Lambda
_TREES: dict[str, tuple[tuple[str, ...], ast.Module]] = {}
# The text of the file of each function when it was first asked for: later it may be edited.
_LINES: WeakKeyDictionary[types.CodeType, tuple[str, ...]] = WeakKeyDictionary()


def remember(pyfunc: Any) -> tuple[str, ...]:
    """The lines of the function's file; from then on what is written to it does not matter."""
    code = pyfunc.__code__
    lines = _LINES.get(code)
    if lines is None:
        linecache.checkcache(code.co_filename)  # The module may have been reloaded.
        lines = tuple(linecache.getlines(code.co_filename, pyfunc.__globals__))
        _LINES[code] = lines
    return lines


# The code of functions that are inlined wherever they are called.
ALWAYS_INLINE: WeakSet[types.CodeType] = WeakSet()


class Source:
    """The text of one function: its tree and the lines that spans quote."""

    def __init__(self, pyfunc: types.FunctionType) -> None:
        self.name = pyfunc.__qualname__.rpartition("<locals>.")[2]
        self.file = pyfunc.__code__.co_filename
        self.node, self.lines = _find(pyfunc)
        self.inline = pyfunc.__code__ in ALWAYS_INLINE

    def inner(self, node: FunctionNode) -> Source:
        """The same text, for a function defined inside this one."""
        made = copy.copy(self)
        made.node = node
        made.inline = False
        made.name = f"{self.name}.{getattr(node, 'name', '<lambda>')}"
        return made

    def span(self, node: ast.AST) -> Span:
        """Where *node* stands; a node of several lines is marked on its first."""
        line: int = getattr(node, "lineno", self.node.lineno)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        # The tree counts UTF-8 bytes; people count characters.
        raw = text.encode()
        col = len(raw[: getattr(node, "col_offset", 0)].decode(errors="ignore"))
        same_line = getattr(node, "end_lineno", line) == line
        end = getattr(node, "end_col_offset", None) if same_line else None
        end_col = len(text.rstrip()) if end is None else len(raw[:end].decode(errors="ignore"))
        return Span(self.file, line, col, end_col, text, self.name)


def _find(pyfunc: types.FunctionType) -> tuple[FunctionNode, tuple[str, ...]]:
    code = pyfunc.__code__
    lines = remember(pyfunc)
    where = f"{pyfunc.__qualname__} defined at {code.co_filename}:{code.co_firstlineno}"
    if not lines:
        raise CompileError(_no_source(where))
    tree = _parse(code.co_filename, lines)
    if tree is None:
        raise CompileError(f"cannot get the source of {where}: the file no longer parses")
    found = [node for node in ast.walk(tree) if _is_definition(node, code)]
    if len(found) > 1:
        found = [node for node in found if _same_positions(node, code)]
    if not found and code.co_filename.startswith("<"):
        raise CompileError(_no_source(where))
    if len(found) != 1:
        raise CompileError(
            f"cannot get the source of {where}: the file has changed since it was imported, or "
            f"several such functions share the line; put each on a line of its own"
        )
    node = found[0]
    assert isinstance(node, ast.FunctionDef | ast.Lambda)
    return node, lines


def _no_source(where: str) -> str:
    return (
        f"cannot get the source of {where}: the file cannot be read; a function made by exec "
        f"needs its text in linecache.cache[filename]"
    )


def _parse(filename: str, lines: tuple[str, ...]) -> ast.Module | None:
    cached = _TREES.get(filename)
    if cached is not None and cached[0] == lines:
        return cached[1]
    try:
        tree = ast.parse("".join(lines), filename)
    except SyntaxError:
        return None
    _TREES[filename] = (lines, tree)
    return tree


def _is_definition(node: ast.AST, code: types.CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return (
            code.co_name == "<lambda>"
            and _parameters(node) == _code_parameters(code)
            and (node.lineno <= code.co_firstlineno <= (node.end_lineno or node.lineno))
        )
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return False
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return first == code.co_firstlineno and _parameters(node) == _code_parameters(code)


def _parameters(node: FunctionNode) -> list[str]:
    a = node.args
    names = [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return names + [arg.arg for arg in (a.vararg, a.kwarg) if arg]


def _code_parameters(code: types.CodeType) -> list[str]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return list(code.co_varnames[:count])


def _same_positions(node: ast.AST, code: types.CodeType) -> bool:
    """Tell lambdas on one line apart by compiling each: same constants, names and code."""
    if not isinstance(node, ast.Lambda):
        return False
    module = compile(ast.Expression(node), code.co_filename, "eval")
    inner = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    if hasattr(code, "co_positions"):
        # Once each: a call of a member of what the module imports has fewer instructions there.
        return dict.fromkeys(inner.co_positions()) == dict.fromkeys(code.co_positions())
    return (inner.co_code, inner.co_consts) == (code.co_code, code.co_consts)
