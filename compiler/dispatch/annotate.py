"""The text of inspect_types: a function's source with the types that were found."""

from __future__ import annotations

from .. import types
from ..frontend.infer import Typed


def annotate(typed: Typed) -> str:
    """The source, each line followed by the types of the names that it assigns."""
    function = typed.function
    source = function.source
    arguments = ", ".join(
        f"{name}: {ty}" for name, ty in zip(function.parameters.names, typed.args, strict=True)
    )
    found: dict[int, dict[str, str]] = {}
    for name, value, span in function.writes:
        ty = typed.types.get(value)
        if ty is not None:
            found.setdefault(span.line, {})[name] = str(types.widen(ty))
    lines = [f"{function.name}({arguments}) -> {typed.returns}", "-" * 80]
    first = source.node.lineno
    last = source.node.end_lineno or first
    for number in range(first, last + 1):
        lines.append(f"{number:5}  {source.lines[number - 1].rstrip()}")
        if number in found:
            notes = ", ".join(f"{name}: {ty}" for name, ty in found[number].items())
            lines.append(f"       # {notes}")
    return "\n".join(lines)
