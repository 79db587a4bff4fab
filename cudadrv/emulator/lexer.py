"""PTX text into tokens with line numbers."""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import PtxError


class Token(NamedTuple):
    """A piece of the text, its kind and the line it stands in."""

    kind: str
    text: str
    line: int


_TOKEN = re.compile(
    r"""(?P<space>(?:[ \t\r\f]|//[^\n]*)+)
    |(?P<newline>\n)
    |(?P<comment>/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<number>0[fF][0-9a-fA-F]{8}(?![\w])|0[dD][0-9a-fA-F]{16}(?![\w])
        |0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
        |\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)
    |(?P<word>[A-Za-z_$%][\w$]*(?:(?:\.|::)[\w$]+)*)
    |(?P<directive>\.[A-Za-z_]\w*(?:::\w+)*)
    |(?P<punct>[{}()\[\]<>,;:=+\-*/|!@&~^?])
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of *text*, then one of kind "end".

    Raises:
        PtxError: a character that PTX does not have.
    """
    tokens: list[Token] = []
    line, position = 1, 0
    match = _TOKEN.match
    while found := match(text, position):
        kind = found.lastgroup or ""
        position = found.end()
        if kind == "newline":
            line += 1
        elif kind == "comment":
            line += found.group().count("\n")
        elif kind != "space":
            tokens.append(Token(kind, found.group(), line))
    if position < len(text):
        raise PtxError(f"unexpected character {text[position]!r}", line)
    tokens.append(Token("end", "", line))
    return tokens
