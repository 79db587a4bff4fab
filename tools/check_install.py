"""Checks an installed cudadrv that has no llvmlite beside it: all modules are there, it imports."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ASK_EMULATOR = "import cudadrv; cudadrv.use_driver('emulator'); cudadrv.init()"


def missing(tree: Path) -> list[str]:
    """The files of *tree*'s packages that the installation lacks."""
    lacking = []
    for name in ("cudadrv", "compiler"):
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            return [f"{name}/"]
        installed = Path(spec.submodule_search_locations[0])
        for path in (tree / name).rglob("*.py*"):
            inside = path.relative_to(tree / name)
            if path.suffix in (".py", ".pyi") and not (installed / inside).exists():
                lacking.append(f"{name}/{inside.as_posix()}")
    return lacking


def main(tree: Path) -> int:
    """Print what is wrong; 1 if anything is."""
    problems = [f"not in the wheel: {name}" for name in missing(tree)]
    if importlib.util.find_spec("llvmlite"):
        problems.append("llvmlite came with cudadrv; it belongs to cudadrv[compiler]")
    answer = subprocess.run(
        [sys.executable, "-c", ASK_EMULATOR], capture_output=True, text=True, check=False
    )
    if answer.returncode == 0 or "llvmlite" not in answer.stderr.splitlines()[-1]:
        problems.append(f"the emulator without llvmlite should ask for it, not: {answer.stderr}")
    print("\n".join(problems) or "complete, and asks for llvmlite when the emulator needs it")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
