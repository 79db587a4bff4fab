"""Looks at a file of code without running it: will the driver read it, and what is in it."""

from __future__ import annotations

import importlib
import re
import struct
from pathlib import Path
from typing import Any

from cudadrv import driver, module
from cudadrv.commands import Report
from cudadrv.device import Device
from cudadrv.errors import CudaError, DriverNotFound

ARCH = re.compile(r"(?:sm|compute)_(\d+)(\d)([af]?)")


def check(path: str, arch: str | None = None) -> Report:
    """Whether the driver and the device read the code in a file; not ok if something is wrong.

    Args:
        arch: the architecture it is for, such as "sm_90"; None is the current device's.

    Raises:
        OSError: the file cannot be read.
        ValueError: *arch* is none.
    """
    if arch is not None and not ARCH.fullmatch(arch):
        raise ValueError(f"architecture {arch!r}: give one such as sm_90")
    found: dict[str, Any] = {"file": path, "kind": None, "problems": [], "notes": []}
    found["reads"], found["device"] = _reader(arch)
    try:
        code = Path(path).read_bytes()
        text = module.ptx_text(code)
        if text is None:
            found["kind"] = _binary(code)
            if found["kind"] == "cubin":
                _cubin(code, found)
        else:
            _text(text, found)
    except ValueError as error:
        found["problems"].append(str(error))
    found["ok"] = not found["problems"]
    return Report(found, _show(found), found["ok"])


def _reader(arch: str | None) -> tuple[str | None, str | None]:
    """The newest PTX that the driver reads, and the device's architecture; None if unknown."""
    try:
        newest = module.newest_ptx()
        device = arch or Device(0).arch
    except (DriverNotFound, CudaError):
        return None, arch
    return "{}.{}".format(*newest) if newest else None, device


def _binary(code: bytes) -> str:
    """The kind of binary code.

    Raises:
        ValueError: it is damaged, or no code for a GPU.
    """
    if code.startswith(module.LTOIR):
        return "ltoir"
    module.check_binary(code)
    return "cubin" if code.startswith(module.ELF) else "fatbin"


def _cubin(code: bytes, found: dict[str, Any]) -> None:
    """What the ELF header and the names of the sections tell."""
    flags = struct.unpack_from("<I", code, 48)[0]
    # The architecture moved up by a byte with the eighth version of the format, CUDA 13.
    number = flags >> 8 & 255 if code[8] >= 8 else flags & 255
    found["target"] = f"sm_{number}"
    wanted, has = ARCH.fullmatch(found["target"]), ARCH.fullmatch(found["device"] or "")
    if wanted and has and not (has[1] == wanted[1] and has[2] >= wanted[2]):
        found["problems"].append(f"it is for {found['target']}, the device is {found['device']}")
    constants = ".nv.constant0."
    names = sorted(name for name in _sections(code) if name.startswith(constants))
    found["kernels"] = [
        {"name": name.removeprefix(constants), "parameters": None} for name in names
    ]
    found["variables"] = []


def _sections(code: bytes) -> list[str]:
    """The names of the sections of an ELF file of 64 bits, as far as they are whole."""
    start = struct.unpack_from("<Q", code, 40)[0]
    size, count, names = struct.unpack_from("<HHH", code, 58)
    headers = [code[start + i * size : start + (i + 1) * size] for i in range(count)]
    if names >= count or any(len(header) < 40 for header in headers):
        return []
    at, length = struct.unpack_from("<QQ", headers[names], 24)
    table = code[at : at + length]
    places = (struct.unpack_from("<I", header)[0] for header in headers)
    return [table[place:].split(b"\0")[0].decode(errors="replace") for place in places]


def _text(text: str, found: dict[str, Any]) -> None:
    version = re.search(r"^\s*\.version\s+(\d+)\.(\d+)", text, re.MULTILINE)
    target = re.search(r"^\s*\.target\s+([\w, ]+)", text, re.MULTILINE)
    if version is None or target is None:
        missing = ".version" if version is None else ".target"
        raise ValueError(f"it is no PTX: there is no {missing}")
    found["kind"] = "ptx"
    found["version"] = f"{version[1]}.{version[2]}"
    found["target"] = target[1].split(",")[0].strip()
    limit = found["reads"]
    if limit and (int(version[1]), int(version[2])) > tuple(map(int, limit.split("."))):
        newer = f"it is PTX {found['version']}, and the driver reads up to {limit}"
        found["problems"].append(newer)
    problem = _misfit(found["target"], found["device"])
    found["problems"] += [problem] if problem else []
    found["kernels"] = [{"name": name, "parameters": None} for name in module.ptx_kernels(text)]
    found["variables"] = module.ptx_globals(text)
    _parse(text, found)


def _misfit(target: str, device: str | None) -> str | None:
    """Why code for *target* does not run on *device*."""
    wanted = ARCH.fullmatch(target)
    if wanted is None:
        return f"its target {target!r} is no architecture"
    has = ARCH.fullmatch(device) if device else None
    if has is None:
        return None
    needs, there = (int(wanted[1]), int(wanted[2])), (int(has[1]), int(has[2]))
    fits = {"": there >= needs, "a": there == needs}
    fits["f"] = there >= needs and there[0] == needs[0]
    return None if fits[wanted[3]] else f"it is for {target}, and the device is {device}"


def _parse(text: str, found: dict[str, Any]) -> None:
    """Read it with the emulator's parser, if there is llvmlite, which comes with the emulator."""
    try:
        parser = importlib.import_module("cudadrv.emulator.parser")
        checker = importlib.import_module("cudadrv.emulator.check")
        layout = importlib.import_module("cudadrv.emulator.analysis").param_layout
        failure = importlib.import_module("cudadrv.emulator.errors").PtxError
    except ImportError:
        found["notes"].append("not parsed: that needs llvmlite (pip install 'cudadrv[compiler]')")
        return
    try:
        parsed = parser.parse(text)
        entries = [each for each in parsed.functions.values() if each.is_entry]
        found["kernels"] = [
            {"name": entry.name, "parameters": _parameters(entry.params, layout(entry.params))}
            for entry in sorted(entries, key=lambda each: str(each.name))
        ]
        wanted = ARCH.fullmatch(found["target"])
        if wanted:
            checker.check(parsed, (int(wanted[1]), int(wanted[2])))
    except failure as error:
        serious = not error.unsupported or driver.is_emulator()
        found["problems" if serious else "notes"].append(_explain(error, text))


def _parameters(variables: Any, places: Any) -> list[dict[str, Any]]:
    return [
        {"name": variable.name, "type": variable.type, "offset": offset, "bytes": size}
        for variable, (offset, size) in zip(variables, places, strict=True)
    ]


def _explain(error: Any, text: str) -> str:
    lines = text.split("\n")
    if not error.text and 0 < error.line <= len(lines):
        error.text = lines[error.line - 1]
    return f"the emulator does not run it: {error}" if error.unsupported else str(error)


def _show(found: dict[str, Any]) -> str:
    """The findings for people."""
    lines = [f"{found['file']}: {found['kind'] or 'no code for a GPU'}"]
    if found["kind"] == "ptx":
        reads = f"; the driver reads up to {found['reads']}" if found["reads"] else ""
        lines.append(f"version    {found['version']}{reads}")
    if found["kind"] in ("ptx", "cubin"):
        device = f"; the device is {found['device']}" if found["device"] else ""
        lines.append(f"target     {found['target']}{device}")
        for kernel in found["kernels"]:
            parameters = kernel["parameters"]
            shown = "unknown parameters" if parameters is None else _signature(parameters)
            lines.append(f"kernel     {kernel['name']}({shown})")
        lines += [f"variable   {name}" for name in found["variables"]]
    lines += [f"note       {text}" for text in found["notes"]]
    lines += [f"PROBLEM    {text}" for text in found["problems"]]
    return "\n".join(lines)


def _signature(parameters: list[dict[str, Any]]) -> str:
    shown = []
    for each in parameters:
        count = each["bytes"] * 8 // int(re.sub(r"\D", "", each["type"]) or 8)
        shown.append(f"{each['type']} {each['name']}" + (f"[{count}]" if count > 1 else ""))
    return ", ".join(shown)
