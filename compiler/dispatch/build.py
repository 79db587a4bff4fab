"""Builds: kernels of a Python file to code in a file that cudadrv loads without the compiler."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cudadrv import fatbin, manifest, ptxlink
from cudadrv.linker import Linker

from .. import types
from ..codegen import Target
from ..signature import normalize
from ..types import Array, Scalar, Signature, Tuple, Type
from .ahead import code, compile_function
from .arguments import Packer
from .jit import AutoJitCUDAKernel
from .linking import readable
from .options import settings_of, target_options
from .pipeline import Compiled

FORMATS = ("ptx", "cubin", "ltoir", "fatbin", "llvm")


class Item(NamedTuple):
    """A kernel to build."""

    pyfunc: Callable[..., Any]
    signature: Signature
    options: dict[str, Any]


def kernels_of(spec: str, signature: str | None) -> list[Item]:
    """The kernels that ``FILE.py`` or ``FILE.py:name`` means.

    Args:
        signature: of the one kernel named; None: what jit declares.

    Raises:
        ValueError: there is no such kernel, or one without a signature.
        OSError: the file cannot be read.
    """
    path, name = _split(spec)
    module = _imported(path)
    if name:
        if not hasattr(module, name):
            raise ValueError(f"{path} defines no {name}; it has: {', '.join(_names(module))}")
        return [_item(name, getattr(module, name), signature)]
    names = _names(module)
    if not names:
        raise ValueError(f"{path} has no kernel: decorate one with jit, or name a function")
    if signature and len(names) > 1:
        raise ValueError(f"--signature is for one kernel: name it, {path}:{names[0]}")
    return [_item(each, getattr(module, each), signature) for each in names]


def _split(spec: str) -> tuple[Path, str]:
    match = re.fullmatch(r"(.*\.py):(\w+)", spec)
    return (Path(match[1]), match[2]) if match else (Path(spec), "")


def _imported(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    name = "built_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _names(module: Any) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, AutoJitCUDAKernel)]


def _item(name: str, value: Any, signature: str | None) -> Item:
    declared: tuple[Signature, ...] = getattr(value, "signatures", ())
    if signature is None and len(declared) != 1:
        raise ValueError(f"{name} has {len(declared)} signatures: give one with --signature")
    chosen = normalize(signature) if signature else declared[0]
    return Item(getattr(value, "pyfunc", value), chosen, dict(getattr(value, "options", {})))


def build(
    items: Sequence[Item], archs: Sequence[str], form: str, out: Path, ptx: str | None = None
) -> list[Path]:
    """Compile kernels and write code and manifest.

    Args:
        ptx: such as "8.0", the newest PTX that may be written; None: any.
        archs: such as "sm_80"; several make one file each, except in a fatbin.
        form: one of `FORMATS`.
        out: the file; with several architectures theirs stands before its suffix.

    Returns:
        The files written, the manifest last.

    Raises:
        ValueError: an architecture or the form is unknown, or two kernels have one name.
        CompileError, CodegenError, LinkError: a kernel does not compile.
    """
    if form not in FORMATS:
        raise ValueError(f"format {form!r}: one of {', '.join(FORMATS)}")
    codes, made = {}, []
    for arch in archs:
        target = target_of(arch, ptx)
        made = [_compile(item, target, form) for item in items]
        names = [each.name for each in made]
        if len(set(names)) < len(names):
            raise ValueError(f"two kernels have one name: {', '.join(names)}; build them apart")
        codes[arch] = _code(made, target, "cubin" if form == "fatbin" else form)
    written = _write(codes, made, form, out)
    place = Path(f"{out}{manifest.ENDING}")
    text = json.dumps(_manifest(items, made, written, codes), indent=1)
    _replace(place, text.encode())
    return [*dict.fromkeys(written.values()), place]


def target_of(arch: str, ptx: str | None = None) -> Target:
    """The target that an architecture's name means, and the newest PTX that may be written.

    Raises:
        ValueError: one of them is none.
    """
    match = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)([af]?)", arch)
    if match is None:
        raise ValueError(f"architecture {arch!r}: give one such as sm_80 or sm_90a")
    version = re.fullmatch(r"(\d+)\.(\d+)", ptx or "0.0")
    if version is None:
        raise ValueError(f"PTX version {ptx!r}: give one such as 8.0")
    limit = (int(version[1]), int(version[2])) if ptx else None
    return Target((int(match[1]), int(match[2])), limit, match[3])


def _compile(item: Item, target: Target, form: str) -> Compiled:
    options = target_options(item.options)
    reads = readable(target.ptx) if form in ("cubin", "fatbin") else target.ptx
    target = Target(target.cc, reads, target.suffix, **options)
    settings = settings_of(item.options)
    if form not in ("cubin", "fatbin"):
        settings = settings._replace(lto=form == "ltoir")
    return compile_function(item.pyfunc, item.signature, target, settings)


def _code(made: list[Compiled], target: Target, form: str) -> bytes:
    if len(made) == 1:
        result = code(made[0], target, form)
        return result.encode() if isinstance(result, str) else bytes(result)
    if form == "ptx":
        return ptxlink.join({each.name: code(each, target, form) for each in made}).encode()
    if form == "cubin" and not any(each.link for each in made):
        linker = Linker(target.arch)
        for each in made:
            linker.add_ptx(each.ptx, each.name)
        return linker.link()
    raise ValueError(f"{len(made)} kernels in one file of format {form}: name one, FILE.py:kernel")


def _write(codes: dict[str, bytes], made: list[Compiled], form: str, out: Path) -> dict[str, Path]:
    if form == "fatbin":
        _replace(out, fatbin.write(codes))
        return dict.fromkeys(codes, out)
    if len(codes) == 1:
        places = dict.fromkeys(codes, out)
    else:
        places = {arch: out.with_name(f"{out.stem}.{arch}{out.suffix}") for arch in codes}
    for arch, place in places.items():
        _replace(place, codes[arch])
    return places


def _replace(place: Path, data: bytes) -> None:
    """Write a file so that nobody sees half of it."""
    temporary = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)


def _manifest(
    items: Sequence[Item],
    made: Sequence[Compiled],
    written: dict[str, Path],
    codes: dict[str, bytes],
) -> dict[str, Any]:
    kernels = {
        each.name: {
            "signature": str(Signature(None, each.args)),
            "arguments": [argument(ty) for ty in each.args],
        }
        for each in made
    }
    return {
        "format": manifest.FORMAT,
        "files": {arch: place.name for arch, place in written.items()},
        "sha256": {arch: hashlib.sha256(data).hexdigest() for arch, data in codes.items()},
        "kernels": kernels,
    }


def argument(ty: Type) -> Any:
    """How the manifest describes an argument.

    Raises:
        TypeError: there is no description for such a type.
    """
    if isinstance(ty, Array) and isinstance(ty.dtype, Scalar):
        return ["array", ty.dtype.dtype.str.lstrip("<|"), ty.ndim, ty.layout]
    if isinstance(ty, Scalar):
        return Packer(("value",), (ty,)).codes
    if isinstance(ty, Tuple):
        return [argument(item) for item in ty.items]
    if ty == types.none:
        return ""
    raise TypeError(f"a built kernel cannot take {ty}: use arrays, numbers and tuples of them")
