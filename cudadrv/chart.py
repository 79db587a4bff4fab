"""Charts of text: one column a value, for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

EIGHTHS = " ▁▂▃▄▅▆▇█"
ROWS = 6
WIDTH = 64


def draw(
    title: str, places: Sequence[int], values: Sequence[float], marked: int, plain: bool = False
) -> str:
    """A chart of *values*, from 0 to 1, with the first and last of *places* below.

    Args:
        marked: the place to point at.
        plain: use no characters but those of ASCII.
    """
    values, places = thin(values), thin(places)
    lines = [title]
    for row in range(ROWS - 1, -1, -1):
        label = {ROWS - 1: "100%", 0: "  0%"}.get(row, "")
        cells = "".join(cell(value * ROWS - row, plain) for value in values)
        lines.append(f"{label:>5} {'|' if plain else '│'}{cells.rstrip()}")
    nearest = min(range(len(places)), key=lambda i: abs(places[i] - marked))
    axis = ["-" if plain else "─"] * len(places)
    axis[nearest] = "^" if plain else "┴"
    lines.append(f"      {'+' if plain else '└'}{''.join(axis)}")
    first, last = f"{places[0]:,}", f"{places[-1]:,}"
    here = f"{marked:,}"
    room = max(len(places) - len(first), 1)
    middle = min(max(nearest - len(first), 1), max(room - len(last) - len(here) - 1, 1))
    shown = "" if here in (first, last) else here
    gap = " " * middle + shown
    lines.append("       " + first + gap + last.rjust(max(room - len(gap), len(last) + 1)))
    return "\n".join(lines)


def thin(items: Sequence[int] | Sequence[float]) -> list[int]:
    """At most WIDTH of the items, evenly, with the first and the last."""
    count = min(len(items), WIDTH)
    if count < 2:
        return list(items)  # type: ignore[arg-type]
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]  # type: ignore[misc]


def cell(height: float, plain: bool) -> str:
    """The character for a column that fills *height* of a row, cut to 0 to 1."""
    filled = min(max(height, 0.0), 1.0)
    if plain:
        return "#" if filled >= 0.5 else " "
    return EIGHTHS[round(filled * 8)]


def is_plain() -> bool:
    """Whether the terminal cannot show more than ASCII."""
    try:
        (EIGHTHS + "│└─┴").encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
