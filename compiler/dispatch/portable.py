"""Functions as values that pickle: by name where they can be imported, else by their source.

A function is compiled from its source, so its bytecode alone, which other picklers send, is no use.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import dis
import functools
import importlib
import linecache
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..frontend.source import Source


class Imported:
    """A module, or something in one, that pickles as its name."""

    def __init__(self, module: str, path: str = "") -> None:
        self.module = module
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return found, (self.module, self.path)


class Index(NamedTuple):
    """Stands for another function of the same bundle."""

    position: int


class Text(NamedTuple):
    """What one function is made of: its source and the values of the names in it.

    Attributes:
        source: its lines, with empty ones before them, so that messages name the right line.
        free: the names that it has from the function around it.
        indentation: of its first line.
    """

    source: str
    filename: str
    name: str
    qualname: str
    module: str
    free: tuple[str, ...]
    indentation: str
    defaults: tuple[Any, ...] | None
    named_defaults: dict[str, Any] | None
    values: dict[str, Any]
    outer: dict[str, Any]


class Bundle:
    """A function and the functions that it needs, to be pickled; unpickled it is the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        name = importable(self.function)
        if name is not None:
            return pyfunc_of, (Imported(self.function.__module__, name),)
        order = [self.function]
        texts = []
        for function in order:  # It grows while it is walked.
            texts.append(text_of(function, order))
        return made, (tuple(texts),)


def importable(function: Any) -> str | None:
    """The dotted name by which another process finds a function, or a kernel of it."""
    module = sys.modules.get(function.__module__)
    if module is None or function.__module__ == "__main__":
        return None
    try:
        there = found(function.__module__, function.__qualname__)
    except (AttributeError, ImportError):
        return None
    same = there is function or getattr(there, "pyfunc", None) is function
    return function.__qualname__ if same else None


def found(module: str, path: str) -> Any:
    """A module, or what the dotted *path* names in it."""
    there: Any = importlib.import_module(module)
    for name in filter(None, path.split(".")):
        there = getattr(there, name)
    return there


def pyfunc_of(there: Any) -> Any:
    """A function, or that of a kernel."""
    return getattr(there, "pyfunc", there)


def text_of(function: Any, order: list[Any]) -> Text:
    """Describe a function; plain functions that it uses are appended to *order*."""
    source = Source(function)
    node, code = source.node, function.__code__
    if isinstance(node, ast.Lambda):
        raise TypeError(
            f"a lambda at {source.file}:{node.lineno} does not pickle: give it a name with def"
        )
    lines = source.lines[node.lineno - 1 : node.end_lineno]
    indentation = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    import hashlib  # It loads OpenSSL, which no kernel needs.

    digest = hashlib.blake2b("".join(lines).encode(), digest_size=4).hexdigest()
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    return Text(
        "\n" * (node.lineno - 1 - bool(indentation)) + header(code, indentation) + "".join(lines),
        f"<{Path(source.file).name} {digest}>",
        function.__name__,
        function.__qualname__,
        function.__module__,
        code.co_freevars,
        indentation,
        function.__defaults__,
        function.__kwdefaults__,
        {name: portable(value, order) for name, value in used(function)},
        {name: portable(cell.cell_contents, order) for name, cell in cells},
    )


def header(code: types.CodeType, indentation: str) -> str:
    """The line of the function around an indented one, which has its free names as parameters."""
    return f"def around({', '.join(code.co_freevars)}):\n" if indentation else ""


def used(function: Any) -> Iterator[tuple[str, Any]]:
    """The names of the module that a function uses, and their values."""
    for name in sorted(names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
        elif not hasattr(builtins, name):
            continue


def names(code: types.CodeType) -> set[str]:
    """The global names that code, and functions defined in it, load."""
    loaded = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return loaded.union(*map(names, inner))


@functools.cache
def language() -> dict[int, Imported]:
    """The names of the kernel language, by the identity of the objects that they stand for."""
    package = importlib.import_module("compiler")
    return {
        id(value): Imported("compiler", name)
        for name, value in vars(package).items()
        if type(value).__module__.startswith("compiler.lang")
    }


def portable(value: Any, order: list[Any]) -> Any:
    """What stands for a value in a bundle."""
    if isinstance(value, types.ModuleType):
        return Imported(value.__name__)
    if id(value) in language():
        return language()[id(value)]
    if isinstance(value, types.FunctionType) and importable(value) is None:
        if all(value is not each for each in order):
            order.append(value)
        return Index(next(i for i, each in enumerate(order) if each is value))
    return value


def made(texts: tuple[Text, ...]) -> Any:
    """The first function of a bundle."""
    functions = [function_of(text) for text in texts]

    def value_of(value: Any) -> Any:
        return functions[value.position] if isinstance(value, Index) else value

    for text, function in zip(texts, functions, strict=True):
        function.__globals__.update({name: value_of(v) for name, v in text.values.items()})
        for name, cell in zip(text.free, function.__closure__ or (), strict=True):
            cell.cell_contents = value_of(text.outer[name])
    return functions[0]


def function_of(text: Text) -> Any:
    """A function made from its source, its names without values yet."""
    source = text.source
    if text.indentation:
        source += f"\n{text.indentation}return {text.name}\n"
    lines = source.splitlines(keepends=True)
    linecache.cache[text.filename] = (len(source), None, lines, text.filename)
    tree = ast.parse(source, text.filename)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == text.name:
            # Defaults and annotations are values already.
            node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
            node.args.kw_defaults = [each and ast.Constant(None) for each in node.args.kw_defaults]
            break
    flags = __future__.annotations.compiler_flag
    code = compile(ast.fix_missing_locations(tree), text.filename, "exec", flags, dont_inherit=True)
    namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": text.module}
    exec(code, namespace)
    around = namespace.pop("around", None)
    function = around(*text.free) if around else namespace[text.name]
    function.__module__, function.__qualname__ = text.module, text.qualname
    function.__defaults__, function.__kwdefaults__ = text.defaults, text.named_defaults
    return function
