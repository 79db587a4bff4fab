"""The functions of libdevice.10.bc that a module calls, added to its text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm

from .flags import DECLARATION
from .target import Target

_SYMBOL = re.compile(r'@"?([\w.$-]+)"?')


def link(source: str, path: Path, target: Target, context: llvm.ContextRef) -> str:
    """Return *source* with internal definitions of the libdevice functions that it declares.

    Args:
        source: text of a module; each declaration stands on a line of its own.
        path: the file libdevice.10.bc.
        target: decides what __nvvm_reflect answers in the functions.
        context: that of the result's module.
    """
    library = _library(path, context)
    declared = set(DECLARATION.findall(source))
    wanted = {name for name in declared if name.startswith("__nv_") and name in library}
    pieces = library.closure(wanted)
    added = [text for name, text in pieces.items() if name in wanted or name not in declared]
    kept = DECLARATION.sub(lambda line: "" if line.group(1) in wanted else line.group(), source)
    return kept + _reflected("".join(added), target)


class Library:
    """A parsed libdevice, giving the text of single functions."""

    def __init__(self, path: Path, context: llvm.ContextRef) -> None:
        # Values die with their module.
        self._module = llvm.parse_bitcode(path.read_bytes(), context)
        self._values = {value.name: value for value in self._module.functions}
        self._values |= {value.name: value for value in self._module.global_variables}
        structs = [str(struct).partition(" = type ") for struct in self._module.struct_types]
        self._structs = {name: body for name, _, body in structs if body}
        self._pieces: dict[str, tuple[str, frozenset[str]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def closure(self, names: Iterable[str]) -> dict[str, str]:
        """The text of each of *names* and of everything that they use, by name."""
        found: dict[str, str] = {}
        todo = sorted(names)
        while todo:
            name = todo.pop()
            if name not in found:
                found[name], uses = self.piece(name)
                todo.extend(uses)
        return found

    def piece(self, name: str) -> tuple[str, frozenset[str]]:
        """The text of one function or variable, and the names that it uses."""
        if name not in self._pieces:
            text = self._clean(str(self._values[name]))
            uses = {used for used in _SYMBOL.findall(text) if used in self._values}
            self._pieces[name] = text, frozenset(uses - {name})
        return self._pieces[name]

    def _clean(self, text: str) -> str:
        """Make the text independent of its module: no numbered metadata, attributes or strings."""
        for name, body in self._structs.items():
            text = text.replace(name, body)
        text = _REFLECT.sub(lambda call: f"add i32 0, $({self._string(call.group(1))})", text)
        text = _METADATA.sub("", text)
        noted = re.search(r"^; Function Attrs: (.*)\n", text, re.MULTILINE)
        attributes = noted.group(1) if noted else ""
        lines = []
        for line in text.splitlines():
            if line.startswith("define"):
                line = _ATTRIBUTES.sub(f" {attributes}", line)
                line = line.replace("define internal", "define").replace(
                    "define", "define internal"
                )
            elif " asm " in line:
                line = _ATTRIBUTES.sub(" nounwind memory(none)", line)
            elif line.startswith("@"):
                # The tables of libdevice are never written; saying so lets loads be folded.
                line = line.replace(" global ", " constant ")
            else:
                line = _ATTRIBUTES.sub("", line)
            lines.append(line)
        return "\n".join(line for line in lines if line and not line.startswith(";")) + "\n"

    def _string(self, name: str) -> str:
        match = re.search(r'c"(\w+)\\00"', str(self._values[name]))
        assert match, f"libdevice: {name} is no string"
        return match.group(1)


_REFLECT = re.compile(r"call i32 @__nvvm_reflect\(ptr (?:\w+ )*@([\w.]+)\)")
_METADATA = re.compile(r", ![\w.]+ !\d+")
_ATTRIBUTES = re.compile(r" #\d+")

_library = lru_cache(maxsize=1)(Library)


def _reflected(text: str, target: Target) -> str:
    """Give each __nvvm_reflect("name") of the library its value."""
    values = {
        "__CUDA_FTZ": int(target.flushes),
        "__CUDA_PREC_SQRT": int(target.precise_sqrt),
        "__CUDA_ARCH": target.cc[0] * 100 + target.cc[1] * 10,
    }
    return re.sub(r"\$\((\w+)\)", lambda name: str(values.get(name.group(1), 0)), text)
