"""The examples and the README's Python run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "examples").glob("[a-z]*.py") if path.stem != "report")
SNIPPETS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S
)


def run(*command: str) -> str:
    answer = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.parametrize("name", NAMES)
def test_example_agrees_with_numpy(name: str) -> None:
    """Every example is listed, and ends with status 0 after a check against NumPy."""
    assert re.search("agrees with NumPy|: skipped, ", run("-m", "examples", name))


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_readme_runs(number: int, tmp_path) -> None:
    """Each Python block of the README runs as a file of its own."""
    path = tmp_path / "snippet.py"
    path.write_text("import sys\nsys.path.insert(0, '')\n" + SNIPPETS[number], encoding="utf-8")
    run(str(path))
