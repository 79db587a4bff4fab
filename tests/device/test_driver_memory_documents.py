"""The examples of docs/memory.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cudadrv as cu

TEXT = (Path(__file__).parents[2] / "docs" / "memory.md").read_text(encoding="utf-8")


def test_the_examples_run():
    """All blocks of code run, one after another, in one scope."""
    if not cu.Device(0).attributes["VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"]:
        pytest.skip("the device has no virtual memory management")
    scope: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        exec(block, scope)


def test_every_name_exists():
    """What the text calls is a function of the package, or a method of one of its classes."""
    classes = [cu, *(getattr(cu, name) for name in cu.__all__ if name.endswith(("Memory", "Pool")))]
    called = set(re.findall(r"`(?:m\.|\.)?(\w+)\(", TEXT))
    assert len(called) > 20
    assert {name for name in called if not any(hasattr(each, name) for each in classes)} == set()
