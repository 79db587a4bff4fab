"""Several PTX texts to one, for the emulator: what a linker does to machine code, done to text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADER = re.compile(r"^\s*\.(version|target|address_size)\b([^\n]*)", re.MULTILINE)
_KIND = re.compile(r"\.(?:entry|func|global|const|shared|alias)\b")
_LINKING = re.compile(r"\.(?:extern|visible|weak|common)\b")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class _Piece(NamedTuple):
    """One directive of a module: a function or variable, or anything else with an empty name."""

    name: str
    text: str
    linking: str
    defines: bool


def join(texts: Mapping[str, str]) -> str:
    """One PTX module of all the *texts*, given by the names that errors call them by.

    Symbols that are not visible stay apart even where they have the same name.

    Raises:
        ValueError: a symbol is defined twice, or declared and not defined.
    """
    modules = {name: _Module(text, number) for number, (name, text) in enumerate(texts.items())}
    homes = _homes(modules)
    lines, declared = [], []
    for name, module in modules.items():
        for piece in module.pieces:
            if piece.linking == ".extern":
                declared.append((piece.name, name, piece.text))
            elif not piece.name or homes.get(piece.name, name) == name:
                lines.append(piece.text)
    return "\n".join([_header(modules), *_declarations(declared, homes), *lines, ""])


def check(texts: Mapping[str, str]) -> None:
    """Refuse texts of which two define one symbol.

    Raises:
        ValueError: names the symbol and both texts.
    """
    _homes({name: _Module(text, 0) for name, text in texts.items()})


def _homes(modules: Mapping[str, _Module]) -> dict[str, str]:
    """Which module's definition of each visible symbol counts: a strong one before a weak one."""
    homes: dict[str, str] = {}
    strong: set[str] = set()
    for name, module in modules.items():
        for piece in module.pieces:
            if not piece.defines or not piece.linking:
                continue
            is_strong = piece.linking == ".visible"
            if is_strong and piece.name in strong:
                first = homes[piece.name]
                raise ValueError(f"{piece.name!r} is defined twice: in {first} and in {name}")
            if is_strong or piece.name not in homes:
                homes[piece.name] = name
            strong |= {piece.name} if is_strong else set()
    return homes


def _declarations(declared: list[tuple[str, str, str]], homes: dict[str, str]) -> list[str]:
    """What is declared, before its use; shared memory of the launch needs no definition."""
    kept: dict[str, str] = {}
    for name, where, text in declared:
        if name not in homes and name not in _BUILT_IN and not re.search(r"\.shared\b", text):
            raise ValueError(f"{name!r} is declared in {where} and defined nowhere")
        if ".func" in text or name not in homes:
            kept[name] = text.replace(".extern", ".visible", 1) if name in homes else text
    return list(kept.values())


_BUILT_IN = {"vprintf", "malloc", "free", "__assertfail"}


def _header(modules: Mapping[str, _Module]) -> str:
    version = max((m.version for m in modules.values()), key=lambda v: [*map(int, v.split("."))])
    target = max((m.target for m in modules.values()), key=_number)
    return f".version {version}\n.target {target}\n.address_size 64\n"


def _number(target: str) -> int:
    found = re.search(r"\d+", target)
    return int(found[0]) if found else 0


class _Module:
    """One text: its header, and its directives at the outermost level."""

    def __init__(self, text: str, number: int) -> None:
        text = _COMMENT.sub("", text)
        header = {key: value.strip() for key, value in _HEADER.findall(text)}
        self.version = header.get("version", "6.0")
        self.target = header.get("target", "sm_75").split(",")[0].strip()
        self.pieces = [_piece(each) for each in _split(_HEADER.sub("", text))]
        private = {p.name for p in self.pieces if p.name and not p.linking}
        if number and private:
            names = re.compile(r"(?<![\w$%.])(" + "|".join(map(re.escape, private)) + r")(?![\w$])")
            self.pieces = [
                p._replace(
                    name=names.sub(rf"\1$u{number}", p.name) if p.name else "",
                    text=names.sub(rf"\1$u{number}", p.text),
                )
                for p in self.pieces
            ]


def _split(text: str) -> list[str]:
    """The directives of a module: each ends with a semicolon or a closing brace outside braces."""
    plain = _STRING.sub(lambda string: "s" * len(string[0]), text)
    pieces, depth, start = [], 0, 0
    for found in re.finditer(r"[{};]", plain):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        head = plain[start : found.start()]
        body = found[0] == "}" and re.search(r"\.(?:entry|func)\b|\.section\b", head)
        if depth == 0 and (found[0] == ";" or body):
            pieces.append(text[start : found.end()].strip())
            start = found.end()
    return [piece for piece in pieces if piece not in ("", ";")]


def _piece(text: str) -> _Piece:
    kind = _KIND.search(text.partition("{")[0])
    if not kind:
        return _Piece("", text, "", False)
    linking = _LINKING.search(text[: kind.start()])
    head = text[kind.end() :]
    if kind[0] in (".entry", ".func"):
        # A result stands in parentheses before the name.
        found = re.match(r"\s*(?:\.\w+\s+)*(?:\([^)]*\)\s*)?([\w$%]+)", head)
        defines = "{" in text
    else:
        found = re.match(r"[^=;\[]*?([\w$%]+)\s*(?:\[|=|;)", head)
        defines = linking is None or linking[0] != ".extern"
    return _Piece(found[1] if found else "", text, linking[0] if linking else "", defines)
