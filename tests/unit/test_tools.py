"""The tools of the tree: line counts, benchmark reports, the examples' PNG writer."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A module's docstring,
of two lines."""

# a comment
NAME = """text
that is no docstring"""


class Thing:
    """What it is."""

    def method(self):  # a comment beside code
        """What it does."""
        return (
            NAME
        )
'''


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_lines_with_code_count() -> None:
    """Blank lines, comments and docstrings are free; other strings and brackets count."""
    assert load("tools/size.py").code_lines(SOURCE) == 7


def test_size_names_the_part_over_budget(monkeypatch, capsys) -> None:
    """A part over its budget is named and fails the command."""
    size = load("tools/size.py")
    monkeypatch.setitem(size.BUDGETS, "cudadrv", 1)
    assert size.main() == 1
    over = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "OVER" in line]
    assert "cudadrv" in over


def test_compare_takes_the_best_of_each_unit(tmp_path, capsys) -> None:
    """Times compare by their minimum, rates by their maximum."""
    for name, factor in (("old", 1), ("new", 2)):
        lines = [
            {"name": "a", "unit": "ms", "min": 3 * factor, "max": 90},
            {"name": "b", "unit": "GB/s", "min": 1, "max": 50 * factor},
        ]
        (tmp_path / name).write_text("\n".join(json.dumps(line) for line in lines))
    assert load("tools/bench.py").compare(tmp_path / "old", tmp_path / "new") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["a", "3.000", "6.000", "ms", "2.00", "x"],
        ["b", "50.000", "100.000", "GB/s", "2.00", "x"],
    ]


def test_show_passes_over_other_text(tmp_path, capsys) -> None:
    """A report that has warnings between its lines shows best and median all the same."""
    line = json.dumps({"name": "a", "unit": "us", "min": 1, "median": 2, "max": 3})
    (tmp_path / "report").write_text(f"a warning\n{line}\n")
    assert load("tools/bench.py").show(tmp_path / "report") == 0
    assert capsys.readouterr().out.split() == ["a", "1.000", "2.000", "us"]


def test_unknown_benchmark_is_refused() -> None:
    """A name that is no case ends the command with the names that are."""
    answer = subprocess.run(
        [sys.executable, "tools/bench.py", "nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert "emulator_saxpy" in answer.stderr


def test_unknown_example_is_refused() -> None:
    """A name that is no example ends the command with the names that are."""
    answer = subprocess.run(
        [sys.executable, "-m", "examples", "nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert "mandelbrot" in answer.stderr


@pytest.mark.parametrize("shape", [(3, 5), (4, 2, 3)])
def test_png_holds_the_pixels(shape, tmp_path, monkeypatch) -> None:
    """A PNG that the examples write reads back as the same pixels."""
    imageio = pytest.importorskip("imageio.v3", reason="imageio reads the PNG back")
    import numpy as np

    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape) * 5
    path = tmp_path / "a.png"
    path.write_bytes(load("examples/report.py").png(pixels))
    assert np.array_equal(imageio.imread(path), pixels)


@pytest.mark.skipif(not hasattr(math, "cbrt"), reason="the description is of Python 3.11 and newer")
def test_the_description_of_the_language_is_up_to_date(run_python):
    """docs/language.md is what the tables say now."""
    run_python("from tools.gen_language import main; raise SystemExit(main(['--check']))")


def test_the_table_of_instructions_is_up_to_date(run_python):
    """docs/intrinsics.md is what the table says now."""
    run_python("from tools.gen_intrinsics import main; raise SystemExit(main(['--check']))")
