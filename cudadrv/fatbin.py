"""Fatbins: one container for the codes of several architectures, of which the driver picks one."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

MAGIC, VERSION, HEADER = 0xBA55ED50, 1, 16
PTX, ELF = 1, 2
ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
# 64-bit code, made on Linux; what the tools write, and all that the driver looks at.
FLAGS = 0x11


def write(codes: Mapping[str, bytes]) -> bytes:
    """A fatbin of cubins and PTX, by architecture ("sm_90") or virtual one ("compute_90").

    Raises:
        ValueError: an architecture or a code is none.
    """
    entries = b"".join(_entry(arch, code) for arch, code in codes.items())
    if not entries:
        raise ValueError("there is no code to put into the fatbin")
    return struct.pack("<IHHQ", MAGIC, VERSION, HEADER, len(entries)) + entries


def _entry(arch: str, code: bytes) -> bytes:
    number = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if number is None:
        raise ValueError(f"architecture {arch!r}: give one such as 'sm_90' or 'compute_90'")
    if code.startswith(b"\x7fELF"):
        kind, version = ELF, (8, 1)
    else:
        found = re.search(rb"^\s*\.version\s+(\d+)\.(\d+)", code, re.MULTILINE)
        if found is None:
            raise ValueError(f"{arch}: the code is neither a cubin nor PTX")
        kind, version = PTX, (int(found[2]), int(found[1]))
        code = code.rstrip(b"\0") + b"\0"
    code += bytes(-len(code) % 8)
    fields = (kind, 0x101, ENTRY.size, len(code), 0, 0, *version, int(number[1]), 0, 0, FLAGS, 0, 0)
    return ENTRY.pack(*fields) + code
