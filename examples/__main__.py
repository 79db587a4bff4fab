"""Runs the named examples, or all: ``python -m examples [saxpy ...]``."""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = [
    "saxpy",
    "black_scholes",
    "mandelbrot",
    "reduction",
    "matmul",
    "image_filter",
    "load_ptx",
    "interval",
    "heat",
    "embedding",
]


def main(names: list[str]) -> int:
    """Run *names*; 1 if a check failed, 2 for an unknown name."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no example {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    # An example is a script of its own and imports report from beside it.
    sys.path.insert(0, str(HERE))
    wrong = [name for name in names or NAMES if not importlib.import_module(name).main()]
    print(f"wrong results: {', '.join(wrong)}" if wrong else "all checks hold")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
