"""Options and logs of the driver's compiler: keywords become the arrays that the driver takes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from typing import Any

from cudadrv import checks, driver, raw
from cudadrv.process_local import MEMORY, only

LOG_BYTES = 16384
# What each loaded code is given by itself.
LOGS = {
    "info_log_buffer", "info_log_buffer_size_bytes", "error_log_buffer",
    "error_log_buffer_size_bytes",
}  # fmt: skip
# For LTO-IR from before CUDA 12, deprecated, for the driver's own use, or without a value.
LEFT_OUT = {
    "lto", "ftz", "prec_div", "prec_sqrt", "fma", "referenced_kernel_names",
    "referenced_kernel_count", "referenced_variable_names", "referenced_variable_count",
    "optimize_unused_device_variables", "new_sm3x_opt", "position_independent_code", "wall_time",
    "target_from_cucontext", "num_options",
}  # fmt: skip


def number(low: int, high: int) -> Callable[[str, Any], int]:
    """An encoder for integers from *low* to *high*."""

    def encode(name: str, value: Any) -> int:
        given = checks.integer(value, name)
        if not low <= given <= high:
            raise ValueError(f"{name}={value!r}: it is a number from {low} to {high}")
        return given

    return encode


def flag(name: str, value: Any) -> int:
    """0 or 1."""
    if value not in (0, 1):
        raise ValueError(f"{name}={value!r}: it is True or False")
    return int(value)


def word(**choices: int) -> Callable[[str, Any], int]:
    """An encoder for one of some words."""
    return lambda name, value: checks.choice(value, choices, name)


def target(name: str, value: Any) -> int:
    """The CUjit_target of "sm_90" or "compute_90a"."""
    text = value if isinstance(value, str) else ""
    found = re.fullmatch(r"(?:sm|compute)_(\d{2,3}[af]?)", text)
    members = raw.CUjit_target.__members__
    member = f"CU_TARGET_COMPUTE_{found[1].upper()}" if found else ""
    if member not in members:
        known = ", ".join("sm_" + each.rpartition("_")[2].lower() for each in members)
        raise ValueError(f"{name}={value!r}: it is one of {known}")
    return int(members[member])


COUNT = number(1, (1 << 31) - 1)
# The keyword: the enumerator without CU_JIT_ in lower case, and what checks the value.
TABLE: dict[str, tuple[str, Callable[[str, Any], int]]] = {
    "max_registers": ("max_registers", number(1, 255)),
    "threads_per_block": ("threads_per_block", COUNT),
    "optimization_level": ("optimization_level", number(0, 4)),
    "target": ("target", target),
    "fallback": ("fallback_strategy", word(ptx=0, binary=1)),
    "debug": ("generate_debug_info", flag),
    "verbose": ("log_verbose", flag),
    "lineinfo": ("generate_line_info", flag),
    "cache_mode": ("cache_mode", word(none=0, cg=1, ca=2)),
    "fast_compile": ("fast_compile", flag),
    "min_blocks_per_sm": ("min_cta_per_sm", COUNT),
    "max_threads_per_block": ("max_threads_per_block", COUNT),
    "override_directives": ("override_directive_values", flag),
    "split_compile": ("split_compile", number(0, 1 << 16)),
    "loader_threads": ("binary_loader_thread_count", number(0, 1 << 16)),
}
# Further keywords, and what they set.
SYMBOLS = {"global_symbol_names", "global_symbol_addresses", "global_symbol_count"}
# What nvJitLink calls the options that it has too.
LINK_OPTIONS = {
    "max_registers": "-maxrregcount={}",
    "optimization_level": "-O{}",
    "debug": "-g",
    "lineinfo": "-lineinfo",
    "split_compile": "-split-compile={}",
}


class Options:
    """The options of one load, and the memory that they point to.

    Raises:
        TypeError: there is no such option.
        ValueError: a value is out of range.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = {name: value for name, value in given.items() if value is not None}
        self.numbers: dict[int, int] = {}
        self._keep: list[Any] = []
        for name, value in self.given.items():
            if name == "symbols":
                self._add_symbols(value)
                continue
            if name not in TABLE:
                known = ", ".join([*TABLE, "symbols"])
                raise TypeError(f"there is no option {name!r} for loading; there are: {known}")
            enumerator, encode = TABLE[name]
            self.numbers[getattr(raw, f"CU_JIT_{enumerator.upper()}")] = encode(name, value)
        if {"target", "threads_per_block"} <= self.given.keys():
            raise ValueError("target and threads_per_block exclude each other: give one of them")

    def _add_symbols(self, symbols: Any) -> None:
        """Variables that the code declares and does not define, and where they are on the host."""
        if not isinstance(symbols, Mapping):
            raise TypeError(f"symbols={driver.short(symbols)}: give a dict of names and addresses")
        count = len(symbols)
        names = (ctypes.c_char_p * count)(*(str(name).encode() for name in symbols))
        for each in symbols.values():
            only(each, *MEMORY)
        places = [checks.address(getattr(each, "handle", each)) for each in symbols.values()]
        addresses = (ctypes.c_void_p * count)(*places)
        self._keep += [names, addresses, *symbols.values()]
        self.numbers |= {
            raw.CU_JIT_GLOBAL_SYMBOL_NAMES: ctypes.addressof(names),
            raw.CU_JIT_GLOBAL_SYMBOL_ADDRESSES: ctypes.addressof(addresses),
            raw.CU_JIT_GLOBAL_SYMBOL_COUNT: count,
        }

    def link_options(self) -> list[str]:
        """The same for nvJitLink, as far as it has them."""
        found = []
        for name, value in self.given.items():
            text = LINK_OPTIONS.get(name, "")
            if text and (value or "{}" in text):
                found.append(text.format(value))
        return found


class Log:
    """The buffers into which the driver's compiler writes, and all the options of a call."""

    def __init__(self, more: dict[int, int] | None = None) -> None:
        self._info = ctypes.create_string_buffer(LOG_BYTES)
        self._error = ctypes.create_string_buffer(LOG_BYTES)
        options = {
            raw.CU_JIT_INFO_LOG_BUFFER: ctypes.addressof(self._info),
            raw.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: LOG_BYTES,
            raw.CU_JIT_ERROR_LOG_BUFFER: ctypes.addressof(self._error),
            raw.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: LOG_BYTES,
            **(more or {}),
        }
        self.count = len(options)
        self.options = (ctypes.c_int * self.count)(*options)
        self.values = (ctypes.c_void_p * self.count)(*options.values())

    @property
    def info(self) -> str:
        """What the compiler remarked."""
        return self._info.value.decode(errors="replace").strip()

    @property
    def error(self) -> str:
        """What the compiler complained about."""
        return self._error.value.decode(errors="replace").strip()
