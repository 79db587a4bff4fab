"""What is linked to compiled functions: files and codes, and the loading of the result."""

from __future__ import annotations

import re
import weakref
from dataclasses import replace
from pathlib import Path

import cudadrv

from .. import cache
from ..codegen import CodegenError, Target, ptx_version
from ..codegen.target import PtxVersion
from .linkable import Callback, LinkableCode, code_of
from .pipeline import Compiled


def link(
    compiled: Compiled, target: Target, arch: str | None = None, max_registers: int | None = None
) -> bytes:
    """A cubin of a compiled function and all that it needs; PTX for the emulator.

    Args:
        arch: None: that of the current device.

    Raises:
        LinkError: something is missing or there twice.
    """
    linker = cudadrv.Linker(
        arch, max_registers=max_registers, lineinfo=compiled.lineinfo, debug=compiled.debug
    )
    if compiled.too_new and linker.backend == "driver":
        raise _too_new(compiled)
    lto = compiled.ltoir is not None and linker.backend == "nvjitlink"
    if lto:
        assert compiled.ltoir is not None
        linker.add_ltoir(compiled.ltoir, compiled.name)
    else:
        linker.add_ptx(compiled.ptx, compiled.name)
    for code in map(code_of, compiled.link):
        _add(linker, code, target)
    return linker.link()


def readable(limit: PtxVersion | None, backend: str = "nvjitlink") -> PtxVersion | None:
    """The newest PTX that a linker reads too, where *limit* is that of who loads; None: any."""
    from cudadrv import nvjitlink, toolkit

    try:
        version = nvjitlink.find().version if backend == "nvjitlink" else None
    except toolkit.LibraryNotFound:
        version = None
    if version is None:
        return limit
    return ptx_version(version) if limit is None else min(limit, ptx_version(version))


def _too_new(compiled: Compiled) -> Exception:
    """The error for code that only nvJitLink could link."""
    found = re.search(r"^\.version (\S+)", compiled.ptx, re.MULTILINE)
    made = found[1] if found else "of another version"
    reads = "{}.{}".format(*ptx_version(cudadrv.driver_version()))
    has = "{}.{}".format(*cudadrv.driver_version())
    return _refused(
        "the driver",
        f"{compiled.name} is PTX {made}, and driver {has} reads PTX up to {reads}: install "
        f"nvidia-nvjitlink, which makes a cubin of it, or choose another code generator with "
        f"COMPILER_CODEGEN or jit(codegen=...)",
    )


def _refused(backend: str, log: str) -> Exception:
    from cudadrv.linker import LinkError

    return LinkError(backend, log)


def _add(linker: cudadrv.Linker, code: LinkableCode, target: Target) -> None:
    if code.kind == "cu":
        folder = Path(code.name).resolve().parent
        linker.add_cu(code.data.decode(), code.name, [f"-I{folder}"])
    elif code.kind == "bc":
        from ..codegen.llvm import LlvmCodegen  # it loads LLVM

        try:
            target = replace(target, ptx=readable(target.ptx, linker.backend))
            ptx = LlvmCodegen(target).compile_bitcode(code.data, target)
        except CodegenError as error:
            raise _refused("llvm", f"{code.name}: {error.log}") from None
        linker.add_ptx(ptx, code.name)
    elif code.kind == "ltoir":
        linker.add_ltoir(code.data, code.name)
    else:
        linker.add(code.kind, code.data, code.name)


def load(compiled: Compiled) -> cudadrv.Library:
    """Load into the current context, linked first if there is something to link.

    Raises:
        LinkError: something is missing or there twice.
        JitError: the driver refuses the code.
    """
    if not compiled.link and not compiled.too_new and compiled.ltoir is None:
        kept = {name: True for name in ("lineinfo", "debug") if getattr(compiled, name)}
        return cudadrv.load(compiled.ptx, **kept)
    device = cudadrv.current_context().device
    library = cudadrv.load(_linked(compiled, Target(device.compute_capability)))
    codes = [item for item in compiled.link if isinstance(item, LinkableCode)]
    for code in codes:
        if code.setup_callback is not None:
            code.setup_callback(library)
    ends = [code.teardown_callback for code in codes if code.teardown_callback is not None]
    if ends:
        # Finalizers run from the last to the first, so this one comes before the unloading.
        weakref.finalize(library, _tear_down, ends, library.handle)
    return library


def _linked(compiled: Compiled, target: Target) -> bytes:
    """As `link`, from the cache if the same was linked before."""
    codes = [code_of(item) for item in compiled.link]
    store = cache.store(compiled.cached)
    if store is None or any(code.kind == "cu" and _INCLUDES.search(code.data) for code in codes):
        return link(compiled, target)
    from ..codegen.recorded import sources

    name = cache.key(
        "linked",
        sources(),
        *_linkers(),
        target.arch,
        f"{compiled.lineinfo} {compiled.debug}",
        compiled.ptx,
        compiled.ltoir or b"",
        *(part for code in codes for part in (code.kind, code.name, code.data)),
    )
    found = store.get(name)
    if found is not None:
        return found[0]
    linked = link(compiled, target)
    store.put(name, linked)
    return linked


# What is included may change and the code that includes it not, so that is linked every time.
_INCLUDES = re.compile(rb"#\s*(?:include|embed)|__has_include|__has_embed|__DATE__|__TIME")


def _linkers() -> list[str]:
    """What changes with the linkers that there are, the driver's own among them."""
    from cudadrv import nvjitlink, nvrtc, toolkit

    driver = "emulator" if cudadrv.is_emulator() else str(cudadrv.driver_version())
    return [driver, *toolkit.stamps([*nvjitlink.candidates(), *nvrtc.candidates()])]


def _tear_down(callbacks: list[Callback], handle: int) -> None:
    for callback in callbacks:
        callback(handle)
