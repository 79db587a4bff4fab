"""Codes to link to kernels: files, and data with callbacks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Callback = Callable[[Any], None]


class LinkableCode:
    """Code to link to kernels, with what to call when it is loaded and unloaded.

    Args:
        data: the code.
        name: what logs call it.
        setup_callback: called with the cudadrv.Library that was loaded, once a context.
        teardown_callback: called with its handle before it is unloaded.
    """

    kind = ""

    def __init__(
        self,
        data: bytes | str,
        name: str | None = None,
        setup_callback: Callback | None = None,
        teardown_callback: Callback | None = None,
    ) -> None:
        for callback in (setup_callback, teardown_callback):
            if callback is not None and not callable(callback):
                raise TypeError(f"{callback!r} is no callback: give a function")
        self.data = data.encode() if isinstance(data, str) else bytes(data)
        self.name = name or f"<{self.kind}>"
        self.setup_callback = setup_callback
        self.teardown_callback = teardown_callback

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class PTXSource(LinkableCode):
    """PTX text."""

    kind = "ptx"


class CUSource(LinkableCode):
    """CUDA C++, compiled with NVRTC."""

    kind = "cu"


class Cubin(LinkableCode):
    """A relocatable cubin."""

    kind = "cubin"


class Fatbin(LinkableCode):
    """A fatbin with relocatable code."""

    kind = "fatbin"


class Object(LinkableCode):
    """A host object file with relocatable device code."""

    kind = "object"


class Archive(LinkableCode):
    """An archive of such objects."""

    kind = "library"


class LTOIR(LinkableCode):
    """LTO-IR, of nvcc -dlto, NVRTC or libNVVM."""

    kind = "ltoir"


class Bitcode(LinkableCode):
    """LLVM bitcode for NVPTX."""

    kind = "bc"


_CLASSES = {
    cls.kind: cls for cls in (PTXSource, CUSource, Cubin, Fatbin, Object, Archive, LTOIR, Bitcode)
}


def code_of(item: Any) -> LinkableCode:
    """The code that a member of a list of links stands for: itself, or the file it names.

    Raises:
        TypeError: it is neither a code nor a path.
        ValueError: the name of the file does not tell what it is.
        OSError: the file cannot be read.
    """
    if isinstance(item, LinkableCode):
        return item
    if not isinstance(item, str | os.PathLike):
        raise TypeError(f"link: {item!r} is neither a path nor a code such as PTXSource(text)")
    from cudadrv.linker import KINDS

    suffix = Path(item).suffix.lower()
    kind = "bc" if suffix == ".bc" else KINDS.get(suffix)
    if kind is None:
        raise ValueError(f"link: {item}: its name ends in none of {', '.join(KINDS)}, .bc")
    return _CLASSES[kind](Path(item).read_bytes(), os.fspath(item))


def wants_lto(link: tuple[Any, ...], lto: bool | None) -> bool:
    """Whether to optimise across Python and what is linked: as told, else where it is possible.

    Raises:
        LibraryNotFound: it is asked for, and there is no nvJitLink.
    """
    if not lto and (lto is False or not any(code_of(i).kind in ("cu", "ltoir") for i in link)):
        return False
    from cudadrv import nvjitlink, toolkit

    try:
        nvjitlink.find()
    except toolkit.LibraryNotFound:
        if lto:
            raise
        return False
    return True
