"""Signatures of kernels and device functions, and their notation as strings."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import elements, types
from .types import Signature, Type

_NAMES: dict[str, Type] = {t.name: t for t in types.SCALARS} | {
    "void": types.void, "none": types.none, "bool": types.boolean, "bool_": types.boolean,
    "b1": types.boolean, "i1": types.int8, "i2": types.int16, "i4": types.int32,
    "i8": types.int64, "u1": types.uint8, "u2": types.uint16, "u4": types.uint32,
    "u8": types.uint64, "f4": types.float32, "f8": types.float64, "intp": types.int64,
    "uintp": types.uint64, "int": types.py_int, "float": types.py_float,
    "f2": types.float16, "c8": types.complex64, "c16": types.complex128,
    "complex64": types.complex64,
    "complex128": types.complex128, "complex": types.py_complex,
    "int_": types.int64, "uint": types.uint64, "double": types.float64,
    "bfloat16": types.bfloat16, **elements.VECTORS,
}  # fmt: skip
_MAKERS: dict[str, Callable[[Any], Type]] = {
    "CPointer": elements.CPointer, "NPDatetime": elements.NPDatetime,
    "NPTimedelta": elements.NPTimedelta,
}  # fmt: skip


def parse(text: str) -> Signature | Type:
    """Read a signature or a type: ``"void(float32[:, ::1], int32)"``, ``"float32[:]"``.

    Raises:
        TypeError: *text* is no signature; the message shows what is wrong.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise TypeError(f"signature {text!r} does not parse: {error.msg}") from None
    found: Signature | Type = _evaluate(tree, text)
    return found


def _evaluate(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):
        if node.id not in _NAMES:
            known = ", ".join(sorted(_NAMES))
            raise TypeError(f"signature {text!r}: unknown type {node.id!r}; known: {known}")
        return _NAMES[node.id]
    if isinstance(node, ast.Attribute):
        return _evaluate(ast.Name(node.attr), text)
    maker = _name(node.func) if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and maker in _MAKERS and len(node.args) == 1:
        return _MAKERS[maker](_evaluate(node.args[0], text))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Call) and not node.keywords:
        returns = _evaluate(node.func, text)
        return Signature(returns, tuple(_evaluate(arg, text) for arg in node.args))
    if isinstance(node, ast.Subscript):
        return _evaluate(node.value, text)[_index(node.slice, text)]
    if isinstance(node, ast.Tuple):
        items = tuple(_evaluate(item, text) for item in node.elts)
        return items if _is_bare(node, text) else types.Tuple(items)
    raise TypeError(f"signature {text!r}: cannot read {ast.unparse(node)!r}")


def _name(node: ast.expr) -> str:
    """The name, or last name of an attribute."""
    return str(getattr(node, "id", None) or getattr(node, "attr", ""))


def _is_bare(node: ast.Tuple, text: str) -> bool:
    """Whether the whole text is an unparenthesised or parenthesised argument list."""
    return ast.unparse(node).strip("()") == text.strip().strip("()")


def _index(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_index(item, text) for item in node.elts)
    if isinstance(node, ast.Slice) and node.lower is None and node.upper is None:
        step = node.step
        if step is None:
            return slice(None)
        if isinstance(step, ast.Constant) and isinstance(step.value, int):
            return slice(None, None, step.value)
    raise TypeError(f"signature {text!r}: write ':' or '::1' for each dimension")


def normalize(spec: Any) -> Signature:
    """A Signature from a Signature, a string, or a tuple or list of argument types.

    Raises:
        TypeError: *spec* is none of these.
    """
    if isinstance(spec, str):
        spec = parse(spec)
    if isinstance(spec, Signature):
        return spec
    if isinstance(spec, Type):
        spec = spec.items if isinstance(spec, types.Tuple) else (spec,)
    if isinstance(spec, tuple | list):
        return Signature(None, tuple(_argument(item) for item in spec))
    raise TypeError(f"{spec!r} is no signature: give 'void(float32[:], int32)' or a tuple of types")


def _argument(item: Any) -> Type:
    found = parse(item) if isinstance(item, str) else item
    return found if isinstance(found, Type) else types.from_dtype(found)
