"""The examples of docs/graphs.md."""

from __future__ import annotations

import re
from pathlib import Path

import cudadrv as cu

TEXT = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text(encoding="utf-8")


def test_the_examples_run():
    """All blocks of code run, one after another, in one scope."""
    scope: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(block, scope)


def test_every_kind_of_node_is_described():
    """The table has each class that ``Graph.add`` takes."""
    kinds = [
        name
        for name in cu.__all__
        if isinstance(getattr(cu, name), type) and issubclass(getattr(cu, name), cu.NodeParams)
    ]
    assert [name for name in kinds if name != "NodeParams" and f"`{name}" not in TEXT] == []
