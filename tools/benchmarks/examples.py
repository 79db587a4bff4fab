"""The examples' kernels, freshly decorated, as the cases measure them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def fresh(example: str, kernel: str) -> Any:
    """A kernel of an example, from an execution of its file that nothing has seen before."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(f"fresh_{example}", EXAMPLES / f"{example}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kernel)
