"""What stands in a cubin: the symbols that it needs from elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_SYMBOLS, _NOBITS = 2, 8  # types of sections
_LOCAL, _SECTION = 0, 3
# The driver itself defines these for every module.
_PROVIDED = ("vprintf", "malloc", "free", "__assertfail", "__profile", "cuda", "__cuda", "__cnp")


def undefined(code: bytes) -> list[str]:
    """The global symbols that a cubin refers to and that neither it nor the driver defines.

    A linker that reports none of them makes code that no driver loads.
    """
    if not code.startswith(b"\x7fELF"):
        return []
    names = {name for name, section in _symbols(code) if section == 0}
    return sorted(name for name in names if name and not name.startswith((".", *_PROVIDED)))


def check(code: bytes) -> None:
    """Refuse a cubin of which a part is missing: nvJitLink 12 reads beyond the end.

    Raises:
        ValueError: a section lies beyond the end.
    """
    for number, (kind, start, size, _) in enumerate(_sections(code)):
        if kind != _NOBITS and start + size > len(code):
            end = start + size
            raise ValueError(
                f"the code is cut short: section {number} ends at byte {end} of {len(code)}"
            )


def _symbols(code: bytes) -> Iterator[tuple[str, int]]:
    """Name and section of each symbol that is visible outside."""
    sections = list(_sections(code))
    for kind, start, size, link in sections:
        if kind != _SYMBOLS:
            continue
        _, strings, length, _ = sections[link]
        texts = code[strings : strings + length]
        for name, info, _, section, _, _ in struct.iter_unpack(
            "<IBBHQQ", code[start : start + size]
        ):
            if info >> 4 != _LOCAL and info & 15 != _SECTION:
                yield texts[name : texts.index(b"\0", name)].decode(errors="replace"), section


def _sections(code: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Type, offset, size and link of each section (ELF-64)."""
    (table,) = struct.unpack_from("<Q", code, 40)
    entry, count = struct.unpack_from("<HH", code, 58)
    for number in range(count):
        fields = struct.unpack_from("<IIQQQQII", code, table + number * entry)
        yield fields[1], fields[4], fields[5], fields[6]
