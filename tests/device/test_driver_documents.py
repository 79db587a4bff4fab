"""The examples of docs/driver.md."""

from __future__ import annotations

import re
from pathlib import Path

from cudadrv import launch_attributes

TEXT = (Path(__file__).parents[2] / "docs" / "driver.md").read_text(encoding="utf-8")


def test_the_examples_run():
    """All blocks of code run, one after another, in one scope."""
    scope: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) >= 7
    for block in blocks:
        exec(block, scope)


def test_every_launch_attribute_is_described():
    """The table of keywords has each attribute that a launch takes."""
    names = {
        name
        for name, row in launch_attributes.TABLE.items()
        if launch_attributes.LAUNCH in row.places
    }
    assert {name for name in names if f"`{name}`" not in TEXT} == set()
