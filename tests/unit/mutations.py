"""Valid kernels as source, and random changes of their syntax trees."""

from __future__ import annotations

import ast
import copy
import linecache
import random
from collections.abc import Callable
from typing import Any

SOURCES = (
    """
def kernel(x, y, n, r):
    i = cuda.grid(1)
    total, best = 0.0, x[0]
    for j, value in enumerate(x):
        if value > best and j % 2 == 0:
            best = value
        elif value < 0:
            continue
        else:
            total += value * 2 - n
    while n > 3:
        n -= 1
        if n == 5:
            break
    else:
        total = -total
    y[i] = total if best > 1 else math.sqrt(abs(best))
""",
    """
def kernel(x, y, n, r):
    def scale(v, factor=2, *rest, offset=0):
        return v * factor + offset + len(rest) + n
    a, (b, *c) = 1, (n, 3, 4.5)
    pair = Point(a, y=b)
    f = lambda v: scale(v, offset=pair.x)
    y[0] = f(a) + scale(b, 3, *c) + sum(v * 2 for v in c) + pair[1]
    for item in (a, 2.5, True):
        y[1] += item
    match pair:
        case Point(1, y) if y > n:
            x[0] = y
        case (p, q):
            x[0] = p | 3 if q else ~p
        case _:
            pass
    del a
""",
    """
def kernel(x, y, n, r):
    s = cuda.shared.array(8, np.float32)
    t = cuda.local.array((2, 3), np.int32)
    s[:] = x[:8] * 2 + 1
    t[0] = 3
    t[1, ::2] += t[0, :2]
    cuda.syncthreads()
    y[1:] = x[:-1]
    y[...] = np.where(x > 0, np.exp(x), y)
    r[0].a = t.sum() + s.max()
    r.b[1] = r[1]["a"] << 2
    v = cuda.float4(1, 2, 3, n)
    v.x = v.y ** 2
    y[n] = v.x / v.w - x.T.size + x.shape[0] + (x == y).any()
    cuda.atomic.add(y, 0, s[n])
""",
    """
def kernel(x, y, n, r):
    z = complex(x[0], n) * 2j
    d = np.timedelta64(n, "s") + np.timedelta64(1, "h")
    if d > np.timedelta64(5, "m") and not z == 1:
        y[0] = z.real + abs(z) + cmath.sqrt(z).imag
    name = "double"
    if name == "double" or n is None:
        y[1] = round(x[1], 2) + divmod(n, 3)[0] + pow(n, 2, 7)
    assert n > 0, "positive"
    if n > 100:
        raise ValueError("large", n)
    q = range(n, 10, 2)
    y[2] = len(q) + (3 in q) + q[0] + math.gcd(n, 12) + int(x[2]) // n
    print("n", n, f"{x[0]:.2f}")
    k = (w := n + 1) if 0 < n <= 4 else n
    y[3] = k + w + min(x[0], y[0], 3) + isinstance(n, int)
""",
)


def expressions(tree: ast.AST) -> list[tuple[ast.AST, str, int | None]]:
    """Where expressions stand: the parent, its field, and the index in a list."""
    found: list[tuple[ast.AST, str, int | None]] = []
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                found.append((node, name, None))
            elif isinstance(value, list):
                found += [(node, name, i) for i, v in enumerate(value) if isinstance(v, ast.expr)]
    return found


def get(place: tuple[ast.AST, str, int | None]) -> Any:
    """What stands at a place."""
    node, name, index = place
    value = getattr(node, name)
    return value if index is None else value[index]


def put(place: tuple[ast.AST, str, int | None], value: Any) -> None:
    """Replace what stands at a place."""
    node, name, index = place
    if index is None:
        setattr(node, name, value)
    else:
        getattr(node, name)[index] = value


def replace_expression(tree: ast.Module, rng: random.Random) -> None:
    """An expression becomes another one of the function, or a constant."""
    places = [
        p for p in expressions(tree) if not isinstance(getattr(get(p), "ctx", None), ast.Store)
    ]
    place = rng.choice(places)
    pool: list[ast.expr] = [copy.deepcopy(get(rng.choice(places)))]
    pool += [ast.Constant(value) for value in (0, -1, 2.5, None, True, "text", 2**70, ...)]
    pool += [ast.Tuple([], ast.Load()), ast.Name("undefined", ast.Load())]
    pool += [ast.Name(name, ast.Load()) for name in ("x", "r", "n", "math", "np", "len", "Point")]
    put(place, rng.choice(pool))


def drop_statement(tree: ast.Module, rng: random.Random) -> None:
    """A statement goes."""
    bodies = [n for n in ast.walk(tree) if isinstance(getattr(n, "body", None), list)]
    node: Any = rng.choice(bodies[1:])
    node.body.pop(rng.randrange(len(node.body)))
    node.body = node.body or [ast.Pass()]


def move_statement(tree: ast.Module, rng: random.Random) -> None:
    """A statement is repeated somewhere else."""
    bodies = [n for n in ast.walk(tree) if isinstance(getattr(n, "body", None), list)][1:]
    source: Any = rng.choice(bodies)
    target: Any = rng.choice(bodies)
    statement = copy.deepcopy(rng.choice(source.body))
    target.body.insert(rng.randrange(len(target.body) + 1), statement)


def change_operator(tree: ast.Module, rng: random.Random) -> None:
    """An operator becomes another one."""
    kinds = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.LShift, ast.BitAnd,
             ast.FloorDiv, ast.MatMult)  # fmt: skip
    found = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp | ast.AugAssign)]
    if found:
        rng.choice(found).op = rng.choice(kinds)()


def drop_item(tree: ast.Module, rng: random.Random) -> None:
    """An argument, item or operand of several goes."""
    lists = [
        getattr(node, name)
        for node in ast.walk(tree)
        for name in ("args", "elts", "keywords", "generators", "cases", "handlers", "targets")
        if isinstance(getattr(node, name, None), list) and getattr(node, name)
    ]
    if lists:
        chosen = rng.choice(lists)
        chosen.pop(rng.randrange(len(chosen)))


def rename(tree: ast.Module, rng: random.Random) -> None:
    """A name becomes another one of the function."""
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    rng.choice(names).id = rng.choice(names).id


def change_attribute(tree: ast.Module, rng: random.Random) -> None:
    """An attribute becomes another one."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    if found:
        rng.choice(found).attr = rng.choice([*(n.attr for n in found), "nothing", "__class__", "T"])


CHANGES: tuple[Callable[[ast.Module, random.Random], None], ...] = (
    replace_expression, replace_expression, drop_statement, move_statement, change_operator,
    drop_item, rename, change_attribute,
)  # fmt: skip


def mutated(seed: int) -> str | None:
    """The source of a kernel with a few random changes; None if Python refuses it."""
    rng = random.Random(seed)
    tree = ast.parse(rng.choice(SOURCES))
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice(CHANGES)(tree, rng)
    try:
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        compile(text, "mutant", "exec")
    except (SyntaxError, ValueError, TypeError, RecursionError, AttributeError, IndexError):
        return None
    return text


def function_of(text: str, namespace: dict[str, Any], name: str) -> Callable[..., Any]:
    """The function *kernel* of a source that linecache knows under *name*."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    values = dict(namespace)
    exec(compile(text, name, "exec"), values)
    made: Callable[..., Any] = values["kernel"]
    return made
