"""Ahead of time: Python functions to PTX, LTO-IR, cubins or LLVM IR, without any GPU."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import cudadrv

from .. import types
from ..codegen import Target
from ..codegen.target import ARCHITECTURES
from ..signature import normalize
from ..types import Signature, Type
from .linkable import code_of
from .linking import link as link_code
from .linking import readable
from .options import settings_of, target_options
from .pipeline import Compiled, Settings, compile_device, compile_kernel

OUTPUTS = ("ptx", "ltoir", "cubin", "llvm")
OLDEST = min(ARCHITECTURES)


def compile_function(
    pyfunc: Callable[..., Any],
    signature: Signature,
    target: Target,
    settings: Settings,
    device: bool = False,
    name: str | None = None,
) -> Compiled:
    """Compile a kernel, or with *device* a function that C code can call.

    Raises:
        TypeError: a kernel is declared to return something.
        CompileError: it cannot be compiled.
    """
    pyfunc = getattr(pyfunc, "pyfunc", pyfunc)
    if not inspect.isfunction(pyfunc):
        raise TypeError(f"{pyfunc!r} is no Python function")
    if device:
        return compile_device(pyfunc, signature.args, target, settings, name, signature.returns)
    if signature.returns not in (None, types.none):
        raise TypeError(f"the signature {signature} of a kernel must return void")
    return compile_kernel(pyfunc, signature.args, target, settings)


def code(compiled: Compiled, target: Target, output: str, max_registers: int | None = None) -> Any:
    """The code of a compiled function: text for "ptx" and "llvm", else bytes.

    Raises:
        ValueError: there is no such output, or no LTO-IR without libNVVM.
        LinkError: a cubin needs something that is not linked.
    """
    if output == "ptx":
        if compiled.too_new and target.ptx is not None:
            limit = "{}.{}".format(*target.ptx)
            raise ValueError(f"no code generator writes PTX {limit} or older for {target.arch}")
        return compiled.ptx
    if output == "llvm":
        return compiled.llvm_ir
    if output == "cubin":
        return link_code(compiled, target, target.arch, max_registers)
    if output == "ltoir":
        if compiled.ltoir is None:
            raise ValueError("LTO-IR comes from libNVVM: install the wheel nvidia-nvvm")
        return compiled.ltoir
    raise ValueError(f"output {output!r}: one of {', '.join(OUTPUTS)}")


def compile(  # noqa: A001
    pyfunc: Callable[..., Any],
    sig: Any,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = True,
    fastmath: bool = False,
    cc: tuple[int, int] | None = None,
    opt: bool | int | None = None,
    abi: str = "c",
    abi_info: dict[str, Any] | None = None,
    output: str = "ptx",
    forceinline: bool = False,
    launch_bounds: Any = None,
    **options: Any,
) -> tuple[Any, Type]:
    """Compile *pyfunc* for a signature; no GPU is needed.

    Args:
        sig: such as "float32(float32, int32)" or a tuple of argument types.
        device: make a device function with C's calling convention; else a kernel. An array is
            passed as its address, lengths and, unless contiguous, strides in bytes (int64 each).
        cc: compute capability; 7.5, which runs everywhere, by default.
        abi: "c"; "numba" is the same here.
        abi_info: ``{"abi_name": symbol}`` names the device function.
        output: "ptx", "ltoir", "cubin" or "llvm".
        forceinline: for callers of numba.cuda; LTO inlines what it pays to inline.
        options: further options of jit: `fma`, `ftz`, `link`, `codegen`, `max_registers`, ...

    Returns:
        The code, and the type that the function returns.

    Raises:
        CompileError: the function cannot be compiled.
        CodegenError: no code generator fits.
    """
    made, target = _compile(
        pyfunc, sig, device, cc or OLDEST, abi, abi_info, output,
        {"debug": bool(debug), "lineinfo": lineinfo, "fastmath": fastmath,
         "opt": _level(opt), "launch_bounds": launch_bounds, **options},
    )  # fmt: skip
    return code(made, target, output, options.get("max_registers")), made.returns


def _level(opt: bool | int | None) -> int:
    """The level that numba's flag means: True is 3, False is 0."""
    if opt is None or opt is True:
        return 3
    return int(opt)


def _compile(
    pyfunc: Callable[..., Any],
    sig: Any,
    device: bool,
    cc: tuple[int, int],
    abi: str,
    abi_info: dict[str, Any] | None,
    output: str,
    options: dict[str, Any],
) -> tuple[Compiled, Target]:
    if abi not in ("c", "numba"):
        raise NotImplementedError(f"abi {abi!r}: 'c' and 'numba' are supported")
    if output not in OUTPUTS:
        raise NotImplementedError(f"output {output!r}: one of {', '.join(OUTPUTS)}")
    reads = readable(None) if output == "cubin" else None
    target = Target(cc, reads, **target_options(options))
    settings = settings_of(options)
    if output != "cubin":
        settings = settings._replace(lto=output == "ltoir")
    name = (abi_info or {}).get("abi_name")
    return compile_function(pyfunc, normalize(sig), target, settings, device, name), target


def compile_all(
    pyfunc: Callable[..., Any], sig: Any, device: bool = True, output: str = "ltoir", **options: Any
) -> tuple[list[Any], Type]:
    """As `compile`, with the codes of all that must be linked to it in a list after its own.

    CUDA C++ is compiled to *output*; other codes are given as they are.
    """
    made, target = _compile(
        pyfunc, sig, device, options.pop("cc", None) or OLDEST, options.pop("abi", "c"),
        options.pop("abi_info", None), output, {**options, "opt": _level(options.get("opt"))},
    )  # fmt: skip
    codes = [code(made, target, output)]
    for item in map(code_of, made.link):
        if item.kind == "cu":
            linker = cudadrv.Linker(target.arch, "text", lto=output == "ltoir")
            linker.add_cu(item.data.decode(), item.name)
            codes.append(linker.inputs[0].data)
        else:
            codes.append(item.data)
    return codes, made.returns


def compile_ptx(
    pyfunc: Callable[..., Any], sig: Any, device: bool = False, abi: str = "numba", **options: Any
) -> tuple[str, Type]:
    """As `compile`, to PTX, and to a kernel unless *device*."""
    text, returns = compile(pyfunc, sig, device=device, abi=abi, **{**options, "output": "ptx"})
    return text, returns


def compile_for_current_device(
    pyfunc: Callable[..., Any], sig: Any, **options: Any
) -> tuple[Any, Type]:
    """As `compile`, for the compute capability of the current device."""
    cc = cudadrv.current_context().device.compute_capability
    return compile(pyfunc, sig, **{**options, "cc": cc})


def compile_ptx_for_current_device(
    pyfunc: Callable[..., Any], sig: Any, **options: Any
) -> tuple[str, Type]:
    """As `compile_ptx`, for the compute capability of the current device."""
    cc = cudadrv.current_context().device.compute_capability
    return compile_ptx(pyfunc, sig, **{**options, "cc": cc})
