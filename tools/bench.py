"""Runs benchmark cases, each in a process of its own, and prints a JSON line for each value."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MODULES = ("graphs", "host", "cold", "kernels")


def cases() -> dict[str, Any]:
    """Every case by its name."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    for module in MODULES:
        importlib.import_module(f"tools.benchmarks.{module}")
    table: dict[str, Any] = importlib.import_module("tools.benchmarks").CASES
    return table


def run_here(name: str) -> int:
    """Measure one case in this process; 3 if the machine lacks what it needs."""
    case = cases()[name]
    preparation = case.prepare()
    try:
        sampler = next(preparation)
    except importlib.import_module("tools.benchmarks").NotHereError as reason:
        print(f"{name}: skipped, {reason}", file=sys.stderr)
        return 3
    sampler()
    samples = [sampler() for _ in range(case.n)]
    facts = environment()
    for value in samples[0]:
        numbers = [sample[value] for sample in samples]
        line = {
            "name": value,
            "unit": case.unit,
            "min": round(min(numbers), 4),
            "median": round(statistics.median(numbers), 4),
            "max": round(max(numbers), 4),
            "n": case.n,
        }
        print(json.dumps(line | facts), flush=True)
    preparation.close()
    return 0


def environment() -> dict[str, Any]:
    """Commit, device, driver and versions, as they stand in every line."""
    import cudadrv

    device = cudadrv.devices()[0]
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    versions = {"python": platform.python_version()}
    for package in ("numpy", "llvmlite", "nvidia-nvvm"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "commit": commit or None,
        "device": device.name,
        "arch": device.arch,
        "driver": "emulator" if cudadrv.is_emulator() else list(cudadrv.driver_version()),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def run_all(names: list[str]) -> int:
    """Measure the cases one after the other, each in a fresh process; 1 if one failed."""
    failed = []
    for name in names:
        # The driver keeps what it compiles on disk; here every compilation counts.
        variables = {**os.environ, "CUDA_CACHE_DISABLE": "1"}
        if cases()[name].driver == "emulator":
            variables["CUDADRV_DRIVER"] = "emulator"
        command = [sys.executable, __file__, "--here", name]
        if subprocess.run(command, env=variables, cwd=ROOT, check=False).returncode not in (0, 3):
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def best(line: dict[str, Any]) -> float:
    """The best value of a line: the smallest time, the highest rate."""
    return float(line["max" if line["unit"].endswith("/s") else "min"])


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The lines of a report by name; text between them is passed over."""
    lines = [json.loads(text) for text in path.read_text().splitlines() if text.startswith("{")]
    return {line["name"]: line for line in lines}


def show(path: Path) -> int:
    """Print the best and the median value of each line as a table."""
    for name, line in read(path).items():
        print(f"{name:26}{best(line):>12.3f}{line['median']:>12.3f} {line['unit']}")
    return 0


def compare(old: Path, new: Path) -> int:
    """Print the best values of two files side by side, and new / old."""
    before = read(old)
    for name, line in read(new).items():
        if name not in before:
            print(f"{name:26}{'':>12}{best(line):>12.3f} {line['unit']:5} new")
            continue
        ratio = best(line) / best(before[name])
        print(f"{name:26}{best(before[name]):>12.3f}{best(line):>12.3f} ", end="")
        print(f"{line['unit']:5}{ratio:>6.2f} x")
    return 0


def main() -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CASE", help="cases to run; all without")
    parser.add_argument("--list", action="store_true", help="print the cases")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="best values")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print best and median")
    parser.add_argument("--here", metavar="CASE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compare:
        return compare(*options.compare)
    if options.show:
        return show(options.show)
    if options.here:
        return run_here(options.here)
    table = cases()
    if unknown := [name for name in options.names if name not in table]:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(table)}")
    if options.list:
        for case in table.values():
            print(f"{case.name:24}{case.unit:6}{case.prepare.__doc__.splitlines()[0]}")
        return 0
    return run_all(options.names or list(table))


if __name__ == "__main__":
    sys.exit(main())
