"""Writes docs/driver_api.md: every function of cuda.h, who answers it and what uses it.

Usage: python tools/gen_driver_docs.py [--check] [--calls FOLDER]

FOLDER is what a run of the tests on a GPU left under CUDADRV_TEST_CALLS: the functions that were
called there. They are kept in docs/called_on_gpu.json. With --check nothing is written, and the
exit status is 1 when the page is not up to date.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cudadrv import raw
from cudadrv.emulator.boundary import FUNCTIONS
from cudadrv.raw import table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "driver_api.md"
CALLS = ROOT / "docs" / "called_on_gpu.json"


def base(name: str) -> str:
    """The name without ABI version and per-thread suffix."""
    return re.sub(r"_v\d+$", "", re.sub(r"_pt[ds][sz]$", "", name))


def bases() -> list[str]:
    """Every base name of cuda.h."""
    return sorted({base(name) for name in table.FUNCTIONS})


def users() -> dict[str, list[str]]:
    """Base name -> the functions, classes and methods whose docstring names it after "C:".

    Classes also use what releases their objects.
    """
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "cudadrv").glob("*.py")):
        for name, text in docstrings(ast.parse(path.read_text(encoding="utf-8")), path.stem):
            for function in mentioned(text):
                known = found.setdefault(function, [])
                known += [] if name in known else [name]
    return found


def mentioned(docstring: str) -> Iterator[str]:
    """The base names of the functions on a docstring's line "C:"."""
    for line in re.findall(r"^\s*C: (.*(?:\n +\S.*)*)", docstring, re.MULTILINE):
        yield from (base(raw_name(each)) for each in re.findall(r"\bcu[A-Z]\w+", line))


def raw_name(name: str) -> str:
    """The exported symbol, or the name itself where it belongs to another library."""
    try:
        return raw.symbol(name)
    except AttributeError:
        return name


def docstrings(tree: ast.AST, owner: str) -> Iterator[tuple[str, str]]:
    """Dotted name and docstring of everything public that is defined in *tree*."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            name = owner if node.name == "__init__" else f"{owner}.{node.name}"
            yield name, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                yield from ((name, f"C: {function}") for function in released(node))
                yield from docstrings(node, name)


def released(node: ast.ClassDef) -> Iterator[str]:
    """The function that a class names as its RELEASE."""
    for item in node.body:
        targets = getattr(item, "targets", [getattr(item, "target", None)])
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        value = getattr(item, "value", None)
        if "RELEASE" in names and isinstance(value, ast.Constant) and value.value:
            yield str(value.value)


def answered() -> set[str]:
    """The base names that the emulator answers."""
    importlib.import_module("cudadrv.emulator")
    return {base(name) for name in FUNCTIONS}


def merge(folder: Path) -> None:
    """Keep what the worker processes of a run on a GPU noted."""
    notes = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if not notes:
        raise SystemExit(f"{folder} holds no notes: run the tests with CUDADRV_TEST_CALLS={folder}")
    succeeded = sorted({base(name) for note in notes for name in note["succeeded"]})
    refused = sorted({base(name) for note in notes for name in note["refused"]} - {*succeeded})
    kept = {"device": notes[0]["device"], "driver": notes[0]["driver"]}
    kept |= {"succeeded": succeeded, "refused": refused}
    CALLS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def rows(calls: dict[str, Any]) -> Iterator[str]:
    """A row for each base name."""
    used, emulated = users(), answered()
    marks = dict.fromkeys(calls["refused"], "refused") | dict.fromkeys(calls["succeeded"], "yes")
    for name in bases():
        versions = raw.versions(name if name in table.FUNCTIONS else raw.symbol(name))
        plain = [each for each in versions if not re.search(r"_pt[ds][sz]$", each)]
        since = "{}.{}".format(*min(versions.values()))
        suffixes = " ".join(each.removeprefix(name).lstrip("_") or "v1" for each in plain)
        suffixes += " +per-thread" if len(versions) > len(plain) else ""
        objects = ", ".join(f"`{each}`" for each in used.get(name, []))
        emulator = "yes" if name in emulated else ""
        cells = (f"`{name}`", since, suffixes, objects, emulator, marks.get(name, ""))
        yield f"| {' | '.join(cells)} |"


INTRODUCTION = """\
<!-- Written by tools/gen_driver_docs.py. -->
# The driver API, function by function

cuda.h {version} declares {bases} functions, {exported} with their older ABI versions and per-thread-stream twins.
Each can be called as `cudadrv.raw.NAME` and, checked, as `cudadrv.driver.NAME`.

- {used} are used by an object or function of `cudadrv`,
- {emulated} are answered by the emulator; the others return `CUDA_ERROR_NOT_SUPPORTED` there,
- {called} were called successfully by the tests on a GPU: {device}, driver {driver}. What they call in processes that they start,
  such as the opening of other processes' memory, is not counted.

Used by an object, but not called successfully on that card: {uncalled}.
"""  # noqa: E501


def page() -> str:
    """The text of docs/driver_api.md."""
    calls = json.loads(CALLS.read_text(encoding="utf-8"))
    known, emulated, used = bases(), answered(), users()
    on_card = [name for name in known if name in calls["succeeded"]]
    missing = sorted(name for name in known if name in used and name not in calls["succeeded"])
    version = "{}.{}".format(*raw.split_version(raw.CUDA_VERSION))
    uncalled = ", ".join(f"`{name}`" for name in missing) or "none"
    counts = INTRODUCTION.format(
        version=version,
        bases=len(known),
        exported=len(table.FUNCTIONS),
        used=sum(name in used for name in known),
        emulated=sum(name in emulated for name in known),
        called=len(on_card),
        device=calls["device"],
        driver=calls["driver"],
        uncalled=uncalled,
    )
    lines = [
        counts,
        "| function | since | ABI versions | used by | emulator | on the GPU |",
        "|---|---|---|---|---|---|",
        *rows(calls),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--calls", type=Path)
    options = parser.parse_args()
    if options.calls:
        merge(options.calls)
    text = page()
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
    print("up to date" if same else f"{PAGE} differs: run python tools/gen_driver_docs.py")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
