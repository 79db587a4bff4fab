"""Which code generator a target gets, as an earlier process found out: nothing is loaded for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite

import cudadrv.config
from cudadrv import nvvm, toolkit

from ..cache import Store, key
from .select import Codegen, choice_of, select
from .target import Dialect, Outdated, PtxVersion, Target

_FIELDS = ("triple", "data_layout", "typed_pointers", "nvvmir_version")


class Recorded:
    """What is known of a code generator without it; see `select.Codegen` for the attributes."""

    def __init__(self, fields: dict[str, Any], find: Callable[[], Codegen]) -> None:
        self.name: str = fields["name"]
        self.identity: str = fields["identity"]
        major, minor = fields["ptx"]
        self.ptx: PtxVersion = (major, minor)
        version = fields["nvvmir_version"]
        self.dialect = Dialect(
            fields["triple"],
            fields["data_layout"],
            fields["typed_pointers"],
            None if version is None else tuple(version),
        )
        self.libdevice = None if fields["libdevice"] is None else Path(fields["libdevice"])
        self._find = find

    def __repr__(self) -> str:
        return f"Recorded({self.identity!r})"

    def compile(self, llvm_ir: str, target: Target) -> str:
        """Compile with the generator itself."""
        return actual(self).compile(llvm_ir, target)

    def compile_lto(self, llvm_ir: str, target: Target) -> bytes | None:
        """Compile with the generator itself."""
        return actual(self).compile_lto(llvm_ir, target)

    def find(self) -> Codegen:
        """The generator itself.

        Raises:
            Outdated: it is another one by now.
        """
        return self._find()


def actual(generator: Codegen) -> Codegen:
    """*generator*, or what it is a record of.

    Raises:
        Outdated: it is another one by now.
    """
    return generator.find() if isinstance(generator, Recorded) else generator


def record(target: Target, force: str | None, store: Store) -> Codegen:
    """What `select` would give, as it was noted in *store*; noted now if it was not.

    Raises:
        NoCodegen: none fits.
    """
    name = key("generator", target.arch, str(target.ptx), choice_of(force), *_surroundings())
    found = store.get(name)
    if found is None:
        generator = select(target, force)
        store.put(name, json.dumps(_fields(generator)).encode())
        return generator
    fields = json.loads(found[0])

    def find() -> Codegen:
        generator = select(target, force)
        if json.loads(json.dumps(_fields(generator))) != fields:
            store.drop(name)
            raise Outdated(name)
        return generator

    return Recorded(fields, find)


def _fields(generator: Codegen) -> dict[str, Any]:
    dialect = generator.dialect
    return {
        "name": generator.name,
        "identity": generator.identity,
        "ptx": generator.ptx,
        "libdevice": None if generator.libdevice is None else str(generator.libdevice),
        **{field: getattr(dialect, field) for field in _FIELDS},
    }


def _surroundings() -> list[str]:
    """All that the choice depends on: versions of what is here, files of what is looked for."""
    libraries = list(nvvm.candidates())
    places = [place for library in libraries for place in nvvm.libdevice_places(library)]
    return [
        sources(),
        llvmlite.__version__,
        *_llvm_stamps(),
        str(cudadrv.config.nvvm()),
        *toolkit.stamps(libraries),
        *(toolkit.stamp(place) for place in dict.fromkeys(places)),
    ]


def _llvm_stamps() -> list[str]:
    folder = Path(llvmlite.__file__).parent / "binding"
    return sorted(toolkit.stamp(file) for file in folder.glob("*llvmlite.*"))


@cache
def sources() -> str:
    """A checksum of the files that turn IR into code: another version of them makes other code."""
    files = sorted(Path(__file__).parent.glob("*.py*"))
    folder = Path(toolkit.__file__).parent
    files += [file for name in _USED for file in sorted(folder.glob(f"{name}.py*"))]
    parts = [part for file in files for part in (file.name, file.read_bytes())]
    # Without files, as in an archive, nothing is known, and no process shares with another.
    return key(*parts) if parts else os.urandom(32).hex()


# Of cudadrv, what compiles and links.
_USED = ("linker", "nvjitlink", "nvrtc", "nvvm", "ptxlink", "toolkit")
