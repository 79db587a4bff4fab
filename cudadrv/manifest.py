"""The manifest beside code that was built ahead of time: files by architecture, and arguments.

A JSON file, named as the code with ".json" added: ``{"format": 1, "files": {"sm_80": "k.cubin"},
"kernels": {"k": {"signature": "...", "arguments": [...]}}}``. An argument is a letter of `struct`
for a number, ["array", dtype, ndim, layout] for an array, or a list of these for a tuple.
"""

from __future__ import annotations

import os
import re
import struct
from typing import Any

from cudadrv.interface import described

FORMAT = 1
ENDING = ".json"


def find(path: str) -> dict[str, Any] | None:
    """The manifest of the code *path*; None if there is none.

    Raises:
        ValueError: it is damaged, or of a newer format.
    """
    place = path + ENDING
    if not os.path.isfile(place):  # noqa: PTH113
        return None
    with open(place, encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    import json  # Most code has no manifest.

    try:
        found = json.loads(text)
        number = found["format"]
        _ = found["files"], found["kernels"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{place} is no manifest of built code ({error}); build again") from None
    if number != FORMAT:
        raise ValueError(f"{place} has format {number}, this cudadrv reads {FORMAT}: update it")
    return found  # type: ignore[no-any-return]


def choose(files: dict[str, str], capability: tuple[int, int]) -> str:
    """The file for a device: the newest architecture that it runs; cubins only of its generation.

    Raises:
        ValueError: none fits; lists those there are.
    """
    best: tuple[tuple[int, int], str] | None = None
    for arch, name in files.items():
        number = re.sub(r"\D", "", arch)
        cc = int(number[:-1]), int(number[-1])
        same = cc[0] == capability[0] or name.endswith((".ptx", ".fatbin"))
        if arch[-1] in "af" and cc != capability:
            continue
        if cc <= capability and same and (best is None or cc > best[0]):
            best = cc, name
    if best is None:
        built = ", ".join(files)
        have = "sm_{}{}".format(*capability)
        raise ValueError(f"the code was built for {built}, and the device is {have}: build for it")
    return best[1]


def expand(layout: list[Any], values: tuple[Any, ...], name: str) -> list[Any]:
    """The parameters that the kernel *name* takes for *values*: arrays become address and lengths.

    Raises:
        TypeError: number, dtype or layout does not fit; names the argument.
    """
    if len(layout) != len(values):
        raise TypeError(f"kernel {name!r} takes {len(layout)} arguments, got {len(values)}")
    parts: list[Any] = []
    for position, (kind, value) in enumerate(zip(layout, values, strict=True)):
        try:
            _expand(kind, value, parts)
        except (TypeError, struct.error, OverflowError) as error:
            raise TypeError(f"kernel {name!r}, argument {position}: {error}") from None
    return parts


def _expand(kind: Any, value: Any, parts: list[Any]) -> None:
    if isinstance(kind, str):
        if kind:
            parts.append(struct.pack(kind, value))
    elif kind and kind[0] == "array":
        _expand_array(kind, value, parts)
    else:
        if len(kind) != len(value):
            raise TypeError(f"it is a tuple of {len(value)}, not of {len(kind)}")
        for each, item in zip(kind, value, strict=True):
            _expand(each, item, parts)


def _expand_array(kind: list[Any], value: Any, parts: list[Any]) -> None:
    _, dtype, ndim, layout = kind
    interface = described(value)
    if interface is None:
        raise TypeError("pass an array on the device: cudadrv.to_device() makes one")
    interface.wait()
    shape, strides = interface.shape, interface.strides
    given = interface.typestr.lstrip("<|=")
    if (given, len(shape)) != (dtype, ndim):
        raise TypeError(f"it is {len(shape)}-dimensional of {given}, not {ndim}-dim. of {dtype}")
    itemsize = int(re.sub(r"\D", "", dtype))
    if layout != "A":
        wanted = _contiguous(shape if layout == "C" else shape[::-1], itemsize)
        wanted = wanted if layout == "C" else wanted[::-1]
        moves = [
            n > 1 and have != want for n, have, want in zip(shape, strides, wanted, strict=True)
        ]
        if any(moves) and 0 not in shape:
            raise TypeError(f"it is not contiguous in {layout} order, as the kernel was built for")
    numbers = [*shape, *(strides if layout == "A" else ())]
    parts.append(struct.pack("Q", interface.address))
    parts += [struct.pack("q", number) for number in numbers]


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for length in reversed(shape):
        strides.append(itemsize)
        itemsize *= length
    return tuple(reversed(strides))
