"""The options of jit: which there are, and what each sets."""

from __future__ import annotations

from typing import Any

from ..lang.extern import sequence
from .linkable import code_of, wants_lto
from .pipeline import Settings

TARGET_OPTIONS = ("debug", "fastmath", "fma", "opt", "ftz", "prec_div", "prec_sqrt")
OPTIONS = (
    *TARGET_OPTIONS, "codegen", "link", "lto", "lineinfo", "max_registers", "launch_bounds",
    "boundscheck",
    "cache", "inline", "extensions",
)  # fmt: skip


def target_options(options: dict[str, Any]) -> dict[str, Any]:
    """Those that are attributes of the target."""
    return {name: options[name] for name in TARGET_OPTIONS if name in options}


def settings_of(options: dict[str, Any]) -> Settings:
    """The options of jit that are no part of the target, checked.

    Raises:
        TypeError, ValueError, OSError: one is of no use; the message says which.
    """
    link, lto = sequence(options.get("link")), options.get("lto")
    for item in link:
        code_of(item)
    bounds = sequence(options.get("launch_bounds"))
    registers = options.get("max_registers")
    numbers = bounds if registers is None else (*bounds, registers)
    if len(bounds) > 3 or not all(isinstance(n, int) and n > 0 for n in numbers):
        raise ValueError(
            f"launch_bounds={bounds}, max_registers={registers}: give positive ints, and as "
            f"bounds threads of a block, blocks of a multiprocessor, blocks of a cluster"
        )
    return Settings(
        options.get("codegen"),
        # Undecided until it is known what the functions that are called link.
        wants_lto(link, lto) or (None if lto is None else False),
        link,
        bool(options.get("lineinfo")),
        registers,
        bounds,
        bool(options.get("boundscheck")),
        bool(options.get("cache")),
    )
