"""cuLink...: PTX texts joined to one, which takes the place of the cubin."""

from __future__ import annotations

import ctypes
import re
from functools import partial

from cudadrv.raw import table, types

from ..boundary import CONVERTERS, exported
from ..errors import PtxError
from ..program import Program
from ..state import Object, current, find
from ..status import Status, require
from .module import ELF, FATBIN, Log, read_file, read_options

_PTX = table.ENUMS[types.resolve("CUjitInputType")]["CU_JIT_INPUT_PTX"]
_HEADER = re.compile(r"^\s*\.(version|target|address_size)\b[^\n]*$", re.MULTILINE)


class Linker(Object):
    """The texts added so far; *result* keeps what cuLinkComplete gave alive."""

    def __init__(self, options: dict[int, tuple[int, int]]) -> None:
        super().__init__()
        self.errors = Log(options, "ERROR")
        self.texts: list[str] = []
        self.result: ctypes.Array[ctypes.c_char] | None = None

    def add(self, kind: int, image: bytes) -> None:
        """One more input."""
        if kind != _PTX or image.startswith((ELF, FATBIN)):
            self.errors.write("the emulator links PTX only")
            raise Status("NO_BINARY_FOR_GPU")
        self.texts.append(image.split(b"\0")[0].decode(errors="replace"))

    def link(self) -> str:
        """One module of all the texts, for the newest version of PTX among them."""
        require(self.texts)
        headers = [[m[0] for m in _HEADER.finditer(text)] for text in self.texts]
        newest = max(headers, key=lambda lines: _version(lines[0] if lines else ""))
        return "\n".join([*newest, *(_HEADER.sub("", text) for text in self.texts)])


def _version(line: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", line)))


CONVERTERS["CUlinkState"] = partial(find, Linker)


@exported()
def cuLinkCreate_v2(count: int, options: int, values: int) -> Linker:
    current()
    return Linker(read_options(count, options, values))


@exported()
def cuLinkAddData_v2(
    linker: Linker, kind: int, data: int, size: int, name: int, *options: int
) -> None:
    require(data and size)
    linker.add(kind, ctypes.string_at(data, size))


@exported()
def cuLinkAddFile_v2(linker: Linker, kind: int, path: str, *options: int) -> None:
    linker.add(kind, read_file(path))


@exported()
def cuLinkComplete(linker: Linker) -> tuple[int, int]:
    text = linker.link()
    try:
        Program(text).unload()
    except PtxError as error:
        linker.errors.write(str(error))
        raise Status("INVALID_PTX") from None
    linker.errors.write("")
    linker.result = ctypes.create_string_buffer(text.encode())
    return ctypes.addressof(linker.result), len(linker.result)


@exported()
def cuLinkDestroy(linker: Linker) -> None:
    linker.forget()
