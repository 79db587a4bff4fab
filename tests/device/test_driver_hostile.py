"""Whatever the objects are called with, they raise our exceptions or Python's for wrong values."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cudadrv as cu
from cudadrv import errors
from tests.device import hostile

ROOT = Path(__file__).parents[2]
EXAMPLES = 25
NAMES = [name for name in cu.__all__ if not hasattr(errors, name)]


@pytest.fixture(scope="module", autouse=True)
def on_the_emulator():
    """A GPU's driver trusts its caller more than the emulator does."""
    if not cu.is_emulator():
        pytest.skip("hostile values are for the emulator: a GPU may be lost to them")


@pytest.mark.parametrize("first", range(0, len(NAMES), 8), ids=NAMES[::8])
def test_hostile_values(first):
    """No call ends the process, hangs, or raises anything else; the last one made is shown."""
    program = [sys.executable, "-X", "faulthandler", "-m", "tests.device.hostile", str(EXAMPLES)]
    answer = subprocess.run(
        program + NAMES[first : first + 8],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    said = answer.stdout
    failures = [said[max(0, m.start() - 300) : m.end() + 1500] for m in re.finditer("FAILED", said)]
    shown = "\n".join([*failures, said[-300:], answer.stderr])
    assert answer.returncode == 0, f"exit code {answer.returncode}\n{shown}"


def test_exclusions_exist():
    """What is not called is there, and has a reason."""
    for name, reason in hostile.EXCLUDED.items():
        first, _, member = name.partition(".")
        assert reason and (
            not hasattr(cu, first) or hasattr(getattr(cu, first), member or "__class__")
        )
