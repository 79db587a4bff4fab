"""What kernels cannot have: each a CompileError at the right line, saying what to write instead."""

from __future__ import annotations

import math
import textwrap

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError, CompileWarning, types
from compiler.dispatch.pipeline import infer_kernel

HOST_ARRAY = np.zeros(4)


def pair(a, b):
    return a, b


NAMESPACE = {
    "cuda": cuda, "math": math, "np": np, "HOST_ARRAY": HOST_ARRAY, "pair": pair,
    "types": types,
}  # fmt: skip

# The body of a kernel k(x, n), the line of the error in it, and words of the message.
BAD = {
    "with": ("with x:\n    pass", 1, "With is not supported"),
    "try": ("try:\n    x[0] = 1\nexcept ValueError:\n    pass", 1, "Try is not supported"),
    "raise": ("n = 1\nraise n", 2, "no exception class"),
    "list": ("y = [1, 2]", 1, "use a tuple"),
    "dict": ("y = {1: 2}", 1, "Dict is not supported"),
    "set": ("y = {1, 2}", 1, "Set is not supported"),
    "comprehension": ("y = [i for i in range(n)]", 1, "length of a tuple must be known"),
    "fstring": ("y = f'{1:q}'", 1, "Unknown format code"),
    "decorated function": ("@cuda.jit\ndef f(v):\n    return v", 2, "no decorators"),
    "function twice": ("def f():\n    return 1\nf = 2", 1, "several meanings"),
    "nested recursion": ("def f(v):\n    return f(v)\nf(1)", 1, "calls itself"),
    "function stored": ("x[0] = lambda: 1", 1, "cannot be stored"),
    "generator": ("y = set(i for i in x)", 1, "argument of sum, any, all or tuple"),
    "class": ("class A:\n    pass", 1, "ClassDef is not supported"),
    "import": ("import math", 1, "top of the file"),
    "global": ("global z\nz = 1", 1, "Global is not supported"),
    "yield": ("yield 1", 1, "Yield is not supported"),
    "in": ("if n in 3:\n    pass", 1, "contains"),
    "star": ("a, b, c, *d = pair(1, 2)", 1, "2 values to unpack"),
    "star of a number": ("y = pair(*n)", 1, "only tuples can"),
    "keyword arguments": ("def f(**k):\n    return 1\nf()", 1, r"\*\*kwargs is not supported"),
    "double star": ("pair(**n)", 1, r"\*\* in a call"),
    "undefined": ("x[0] = zzz", 1, "name 'zzz' is not defined"),
    "before assignment": ("x[0] = y\ny = 1", 1, "no path assigns it"),
    "deleted": ("y = 1\ndel y\nx[0] = y", 3, "no path assigns it"),
    "return value": ("return n", None, "a kernel returns nothing"),
    "two types": ("y = 1\nif n > 3:\n    y = x\nx[0] = y[0]", 2, "use two names"),
    "no such attribute": ("y = x.foo", 1, "has no attribute 'foo'"),
    "module attribute": ("y = math.foo", 1, "math has no attribute 'foo'"),
    "too many indices": ("x[0, 0, 0] = 1", 1, "3 indices for an array of 1"),
    "float index": ("x[0.5] = 1", 1, "cannot index an array"),
    "slice assignment": ("x[0:2] = x.reshape(2, 2)", 1, "2 dimensions does not fit in 1"),
    "slice of a string": ("x[0:2] = 'a'", 1, "is not supported"),
    "reshape": ("y = x[::2].reshape(2, 2)", 1, "C-contiguous"),
    "view of bool": ("y = x.view(np.bool_)", 1, "no view as boolean"),
    "index a number": ("y = n[0]", 1, "is not supported"),
    "call a number": ("y = n(0)", 1, "cannot be called"),
    "call a class": ("y = dict()", 1, "cannot be called in a kernel"),
    "add an array": ("y = x + 1", 1, "would need memory for an array"),
    "wrong argument count": ("y = pair(n)", 1, "cannot be called with 1"),
    "unknown keyword": ("y = pair(n, c=1)", 1, "no further argument 'c'"),
    "unpack count": ("a, b, c = pair(1, 2)", 1, "2 values to unpack into 3"),
    "unpack number": ("a, b = n", 1, "cannot be unpacked"),
    "truth of an array": ("if x:\n    pass", 1, "no truth value"),
    "shared shape": ("s = cuda.shared.array(n, cuda.float32)", 1, "must be a constant"),
    "shared size": ("s = cuda.shared.array(20000, cuda.float32)", 1, "80000 bytes"),
    "shared dtype": ("s = cuda.shared.array(4, 'U3')", 1, "no element type"),
    "negative length": ("s = cuda.shared.array(-4, cuda.float32)", 1, "negative"),
    "grid dimensions": ("i = cuda.grid(4)", 1, "1, 2 or 3"),
    "range float": ("for i in range(0.5):\n    pass", 1, "range takes ints"),
    "range step": ("for i in range(0, 4, 0):\n    pass", 1, "must not be zero"),
    "range arguments": ("for i in range():\n    pass", 1, "one to three"),
    "range of floats": ("r = range(0.5)", 1, "range takes ints"),
    "range of four": ("r = range(1, 2, 3, 4)", 1, "one to three"),
    "loop over number": ("for i in n:\n    pass", 1, "len"),
    "atomic on bools": (
        "y = cuda.shared.array(4, np.bool_)\ncuda.atomic.add(y, 0, 1)",
        2,
        "does not work on boolean",
    ),
    "atomic index": ("cuda.atomic.add(x, (0, 0), 1)", 1, "2 indices"),
    "host array": ("HOST_ARRAY[0] = 1", 1, "read-only"),
    "big integer": ("x[0] = n + 2 ** 70", 1, "does not fit"),
    "mixed tuple index": ("t = (1, x)\ny = t[n]", 2, "differ in type"),
    "tuple index": ("t = (1, 2)\ny = t[2]", 2, "outside a tuple"),
    "string arithmetic": ("y = 'a' + 1", 1, "can only concatenate str"),
    "string stored": ("x[0] = 'a'", 1, "cannot be stored"),
    "match a mapping": ("match x:\n    case {1: 2}:\n        pass", 2, "match a tuple or a value"),
    "patterns of a class": (
        "match n:\n    case complex(1, 2, 3):\n        pass",
        2,
        "positional patterns",
    ),
    "comprehension with if": ("y = [v for v in (1, 2) if v]", 1, "no `if`"),
    "two fors": ("y = sum(v for v in x for w in x)", 1, "one `for`"),
    "boolean index": ("y = x[x > 0]", 1, "use an int or a slice"),
    "list index": ("y = x[[1, 2]]", 1, "use a tuple"),
    "two ellipses": ("y = x[..., ...]", 1, "one ellipsis"),
    "name for an expression": ("y = np.exp(x)", 1, "would need memory"),
    "expression to a function": ("y = pair(x + 1, 2)", 1, "takes arrays"),
    "augmented constant": ("HOST_ARRAY += 1", 1, "no path assigns"),
    "slice of a tuple": ("y = (1, 2, 3)[n:]", 1, "must be constants"),
    "repeated tuple": ("y = (1, 2) * n", 1, "constant number of times"),
    "bytes": ("y = b'a'", 1, "bytes constant"),
    "vector length": ("y = cuda.float4(1, 2)", 1, "4 components"),
    "vector component": ("v = cuda.float2(1, 2)\ny = v.z", 2, "no attribute 'z'"),
    "local memory": ("t = cuda.local.array(70000, cuda.float64)", 1, "560000 bytes"),
    "pointer without dtype": ("y = cuda.carray(n, 3)", 1, "give the dtype"),
    "date unit": ("y = np.timedelta64(n, 'parsecs')", 1, "parsecs"),
    "missing key": ("y = {'a': 1}['b']", 1, "Dict is not supported"),
    "string key": ("y = 'abc'[7]", 1, "IndexError"),
    "sorted": ("y = sorted(x)", 1, "cannot be called in a kernel"),
    "open": ("open('file')", 1, "cannot be called in a kernel"),
    "set of a name": ("y: int\nx[0] = y", 2, "no path assigns"),
    "starred twice": ("y = pair(*(1, 2), 3)", 1, "cannot be called with 3"),
    "matrix product": ("y = x.reshape(2, 2) @ x.reshape(2, 2)", 1, "is not supported"),
    "complex order": ("y = 1j < 2j", 1, "is not supported"),
    "complex floor": ("y = n // 2j", 1, "is not supported"),
    "round of a complex": ("y = round(1j)", 1, "is not supported"),
    "isinstance of a value": ("y = isinstance(n, n)", 1, "is not supported"),
    "getattr of a name": ("y = getattr(x, n)", 1, "cannot be called"),
}


def kernel(body: str, tmp_path) -> object:
    """A function k(x, n) with this body, in a file of its own so that it has a source."""
    text = "def k(x, n):\n" + textwrap.indent(body, "    ") + "\n"
    path = tmp_path / "k.py"
    path.write_text(text)
    namespace = dict(NAMESPACE)
    exec(compile(text, str(path), "exec"), namespace)
    return namespace["k"]


@pytest.mark.parametrize("name", BAD)
def test_bad_kernels_are_refused(name, tmp_path):
    """The error names the line and says what is wrong; nothing internal leaks."""
    body, line, words = BAD[name]
    with pytest.raises(CompileError, match=words) as caught:
        infer_and_lower(kernel(body, tmp_path))
    if line is not None:
        assert caught.value.line == line + 1
        shown = str(caught.value).splitlines()
        assert shown[0].startswith(f"{tmp_path / 'k.py'}:{line + 1}:")
        assert "^" in shown[2]


def infer_and_lower(function) -> None:
    """Compile for float64[::1] and a Python int."""
    from compiler.codegen import Target
    from compiler.dispatch.pipeline import Settings, compile_kernel

    compile_kernel(function, (types.float64[::1], types.py_int), Target((7, 5)), Settings("llvm"))


def test_an_error_in_a_callee_shows_the_call():
    """The error stands in the callee, and the chain of calls follows."""

    def inner(v):
        return v.nothing

    def outer(x):
        x[0] = inner(x)

    with pytest.raises(CompileError, match="nothing") as caught:
        infer_kernel(outer, (types.float64[::1],))
    assert "called from" in str(caught.value)
    assert "x[0] = inner(x)" in str(caught.value)


def test_recursion_without_end_is_refused():
    """A function that calls itself on every path has no type to return."""

    def again(n):
        return again(n)

    with pytest.raises(CompileError, match="calls itself on every path"):
        infer_kernel(again, (types.py_int,))


def test_a_name_that_some_path_leaves_unassigned_is_warned_of(tmp_path):
    """The warning names it and the line that reads it; it compiles."""
    body = "if n > 3:\n    y = 1.0\nx[0] = y"
    with pytest.warns(CompileWarning, match="y may be unassigned") as caught:
        infer_and_lower(kernel(body, tmp_path))
    assert caught[0].lineno == 4


def test_code_behind_a_false_constant_is_not_typed(tmp_path):
    """What cannot run may be ill-typed: kernels can be configured by constants."""
    infer_and_lower(kernel("if types is None:\n    x.foo\nif 1 > 2:\n    x.bar", tmp_path))
    infer_and_lower(kernel("if x.ndim == 1:\n    y = 1\nelif x:\n    y = 2", tmp_path))


def test_source_that_cannot_be_had_is_refused():
    """A function made by exec has no source, and the error says what to do."""
    namespace: dict[str, object] = {}
    exec("def k(x):\n    x[0] = 1", namespace)
    with pytest.raises(CompileError, match=r"cannot get the source of k.*linecache"):
        infer_kernel(namespace["k"], (types.float64[::1],))


def test_builtins_have_no_source():
    """Only Python functions can be compiled."""
    with pytest.raises(CompileError, match="not a Python function"):
        infer_kernel(len, (types.float64[::1],))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cuda.grid(1), "only inside a kernel"),
        (lambda: cuda.syncthreads(), "only inside a kernel"),
        (lambda: cuda.jit(fastmaths=True), "no option fastmaths"),
        (lambda: cuda.jit("int32(int32)")(pair), "must return void"),
    ],
)
def test_misuse_on_the_host(call, words):
    """Kernel functions, unknown options and signatures are refused where they are written."""
    with pytest.raises((RuntimeError, TypeError), match=words):
        call()
