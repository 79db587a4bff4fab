"""Random programs: a kernel computes, bit for bit, what CPython computes on NumPy scalars.

Excluded are only the stated exceptions: uint64 beside signed integers, and rows where Python
raises (an int that does not fit a NumPy type, a division of Python ints by zero) or a Python int
leaves 64 bits, where kernels wrap.
"""

from __future__ import annotations

import linecache
import os
import random
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import compiler as cuda
from tests.device.oracle import narrow_as_int

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
INTEGER = ("+", "-", "*", "//", "%", "&", "|", "^")
FLOAT = ("+", "-", "*", "/", "//", "%")
COMPARE = ("<", "<=", "==", "!=", ">", ">=")
EXAMPLES = int(os.environ.get("CUDADRV_TEST_EXAMPLES", "25"))


def checked(value):
    """Raise where a Python int leaves 64 bits."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError
    return value


@dataclass
class Node:
    """An expression: its source for the kernel and for CPython, and the type that it has there."""

    kernel: str
    python: str
    kind: type

    @property
    def is_float(self) -> bool:
        return issubclass(self.kind, float | np.floating)


class Generator:
    """Makes expressions over the variables a, b and c, and programs of them."""

    def __init__(self, seed: int, dtypes: list[str]) -> None:
        self.random = random.Random(seed)
        self.inverts = "?" not in dtypes  # ~ of a NumPy bool is the opposite, of an int is not.
        self.samples = {
            name: narrow_as_int(np.dtype(dtype).type(1))
            for name, dtype in zip("abc", dtypes, strict=True)
        }
        self.variables = [Node(n, n, type(v)) for n, v in self.samples.items()]

    def kind_of(self, python: str) -> type | None:
        """The type that CPython gives, None if it refuses."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = eval(python, {"checked": checked, **self.samples})
        except (TypeError, OverflowError, ZeroDivisionError, ValueError):
            return None
        return type(value)

    def make(self, kernel: str, python: str) -> Node | None:
        kind = self.kind_of(python)
        return None if kind is None else Node(kernel, f"checked({python})", kind)

    def leaf(self) -> Node:
        choice = self.random.random()
        if choice < 0.7:
            return self.random.choice(self.variables)
        if choice < 0.85:
            text = str(self.random.choice([0, 1, 2, 3, 5, 7, 100]))
            return Node(text, text, int)
        text = self.random.choice(["0.5", "2.0", "0.1", "1e3"])
        return Node(text, text, float)

    def expression(self, depth: int) -> Node:
        for _ in range(20):
            node = self.attempt(depth)
            if node is not None:
                return node
        return self.leaf()

    def attempt(self, depth: int) -> Node | None:
        if depth == 0:
            return self.leaf()
        pick = self.random.random()
        x = self.expression(depth - 1)
        if pick < 0.15:
            return self.unary(x)
        y = self.expression(depth - 1)
        if {x.kind, y.kind} & {np.uint64} and {x.kind, y.kind} & {np.int32, np.int64}:
            return None
        if pick < 0.3:
            return self.compare(x, y)
        if pick < 0.4:
            return self.choice(x, y)
        operators = FLOAT if x.is_float or y.is_float else INTEGER
        sign = self.random.choice(operators)
        return self.make(f"({x.kernel} {sign} {y.kernel})", f"({x.python} {sign} {y.python})")

    def unary(self, x: Node) -> Node | None:
        options = ["-{}", "+{}", "abs({})", "({} * {})"]
        if not x.is_float:
            options += ["({} << 3)", "({} >> 2)"] + ["~{}"] * self.inverts
        form = self.random.choice(options)
        if form == "-{}" and issubclass(x.kind, np.unsignedinteger):
            return None
        count = form.count("{}")
        return self.make(form.format(*[x.kernel] * count), form.format(*[x.python] * count))

    def compare(self, x: Node, y: Node) -> Node | None:
        sign = self.random.choice(COMPARE)
        kernel = f"int({x.kernel} {sign} {y.kernel})"
        return self.make(kernel, f"int({x.python} {sign} {y.python})")

    def choice(self, x: Node, y: Node) -> Node | None:
        if x.kind is not y.kind:
            return None  # Python would have one type or the other, kernels have one for both.
        test = self.expression(0)
        function = self.random.choice(["min", "max", None])
        if function:
            text = "{0}({1}, {2})"
            made = (text.format(function, n.kernel, m.kernel) for n, m in [(x, y)])
            return self.make(next(made), f"{function}({x.python}, {y.python})")
        kernel = f"({x.kernel} if {test.kernel} > 1 else {y.kernel})"
        return self.make(kernel, f"({x.python} if {test.python} > 1 else {y.python})")

    def program(self) -> tuple[str, str]:
        """A function's body, for the kernel and for CPython: a branch, a loop and a return."""
        x, y, z = (self.expression(3) for _ in range(3))
        test, count = self.expression(1), self.random.randrange(1, 4)
        lines = [
            "    t = {x}",
            "    if {test} > 1:",
            "        t = {x} if {test} < 3 else {x}",
            "    s = 0",
            f"    for i in range({count}):",
            "        if i == 2:",
            "            continue",
            "        s = s + int({test} > i)",
            "    return t, {y}, {z}, s",
        ]
        text = "\n".join(lines)
        nodes = {"x": x, "y": y, "z": z, "test": test}
        kernel = text.format(**{k: n.kernel for k, n in nodes.items()})
        return kernel, text.format(**{k: n.python for k, n in nodes.items()})


def function_of(body: str, name: str):
    """A Python function with a source that can be found."""
    text = f"def f(a, b, c):\n{body}\n"
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = {"checked": checked}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"]


def column(generator: random.Random, dtype: str, count: int) -> np.ndarray:
    """Values of a type: small ones, its ends, and any bits."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([generator.random() < 0.5 for _ in range(count)])
    if kind == "f":
        special = [0.0, -0.0, 1.0, -2.5, 1e4, np.inf, -np.inf, np.nan, 6e-8]
        values = [generator.choice([*special, generator.gauss(0, 10)]) for _ in range(count)]
        return np.array(values, dtype)
    info = np.iinfo(dtype)
    ends = [0, 1, 2, 3, info.max, info.min, info.max // 2]
    values = [generator.choice([*ends, generator.randrange(100)]) for _ in range(count)]
    return np.array(values, dtype)


def reference(function, columns: list[np.ndarray]) -> list[tuple | None]:
    """CPython's results; None where it raises."""
    rows = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for row in zip(*columns, strict=True):
            try:
                rows.append(function(*map(narrow_as_int, row)))
            except (OverflowError, ZeroDivisionError):
                rows.append(None)
    return rows


@pytest.mark.parametrize("codegen", ["nvvm7", "llvm"])
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
@given(seed=st.integers(0, 2**32), dtypes=st.lists(st.sampled_from(DTYPES), min_size=3, max_size=3))
def test_random_programs(codegen, seed, dtypes):
    """All results agree, where CPython has one."""
    generator = Generator(seed, dtypes)
    kernel_body, python_body = generator.program()
    expected = reference(
        function_of(python_body, "python"),
        columns := [column(generator.random, dtype, 24) for dtype in dtypes],
    )
    device = function_of(kernel_body, f"kernel {seed} {dtypes}")

    @cuda.jit(fma=False, codegen=codegen)
    def kernel(a, b, c, floats, ints):
        i = cuda.grid(1)
        if i < a.size:
            t, y, z, s = device(a[i], b[i], c[i])
            floats[0, i], floats[1, i], floats[2, i], floats[3, i] = t, y, z, s
            ints[0, i] = wrapped(t)
            ints[1, i] = wrapped(y)
            ints[2, i] = wrapped(z)

    floats, ints = np.zeros((4, 24)), np.zeros((3, 24), np.int64)
    kernel[1, 32](*columns, floats, ints)
    for i, row in enumerate(expected):
        if row is not None:
            compare_row(row, floats[:, i], ints[:, i], kernel_body)


def wrapped(value):
    """An integer as it is, anything else as 0."""
    return 0 if isinstance(value, float | np.floating) else value


def compare_row(row: tuple, floats: np.ndarray, ints: np.ndarray, body: str) -> None:
    """Assert that the results of one thread are CPython's."""
    with np.errstate(all="ignore"):
        for position, value in enumerate(row[:3]):
            if isinstance(value, float | np.floating):
                np.testing.assert_array_equal(floats[position], np.float64(value), body)
            else:
                bits = (int(value) + 2**63) % 2**64 - 2**63
                assert ints[position] == bits, (body, value)
        assert floats[3] == row[3]
