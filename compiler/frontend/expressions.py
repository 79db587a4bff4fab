"""Python syntax tree to SSA form: expressions and names."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import CompileError, Span
from . import internal
from .ir import Block, Instr, Op
from .source import Source
from .ssa import Builder

BINARY: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}  # fmt: skip
# What an array does in place; anything else has the operator itself.
AUGMENTED: dict[Callable[..., Any], Callable[..., Any]] = {
    function: getattr(operator, f"i{function.__name__.rstrip('_')}") for function in BINARY.values()
}
UNARY: dict[type[ast.unaryop], Callable[..., Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Invert: operator.invert, ast.Not: operator.not_,
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip

# What to write instead, for the syntax that kernels do not have.
INSTEAD = {
    "Try": "test the condition before with `if`",
    "With": "call what it does before and after",
    "SetComp": "write a for loop",
    "DictComp": "write a for loop",
    "GeneratorExp": "it can only be the argument of sum, any, all or tuple; write a for loop",
    "List": "use a tuple, or a shared or local array",
    "Set": "use a tuple",
    "Dict": "use several variables or arrays",
    "ClassDef": "define it outside the kernel",
    "Yield": "store the values in an array",
    "YieldFrom": "store the values in an array",
    "Await": "kernels are not asynchronous",
    "Import": "import at the top of the file",
    "ImportFrom": "import at the top of the file",
    "Global": "pass an array of one element to write to",
    "Nonlocal": "pass an array of one element to write to",
    "MatchMapping": "match a tuple or a value",
}


class Expressions:
    """Visitors of expressions; Syntax adds those of statements."""

    def __init__(self, builder: Builder, source: Source, pyfunc: Callable[..., Any]) -> None:
        self.b = builder
        self.source = source
        self.pyfunc = pyfunc
        self.locals: set[str] = set()
        self.functions: dict[str, ast.FunctionDef] = {}
        self._free = _closure(pyfunc)

    def span(self, node: ast.AST) -> Span:
        """Where *node* stands."""
        return self.source.span(node)

    def refuse(self, node: ast.AST) -> NoReturn:
        """Raise the error for syntax that kernels do not have."""
        kind = type(node).__name__
        advice = INSTEAD.get(kind)
        text = f"{kind} is not supported in a kernel" + (f": {advice}" if advice else "")
        raise CompileError(text, self.span(node))

    def visit(self, node: ast.expr) -> Instr:
        """Emit the code of an expression."""
        visitor = getattr(self, f"visit_{type(node).__name__}", None)
        if visitor is None:
            self.refuse(node)
        result: Instr = visitor(node)
        return result

    # AST: Constant(constant value, string? kind)
    def visit_Constant(self, node: ast.Constant) -> Instr:
        if isinstance(node.value, bytes):
            raise CompileError("a bytes constant is not supported in a kernel", self.span(node))
        return self.b.const(node.value, self.span(node))

    # AST: JoinedStr(expr* values)
    def visit_JoinedStr(self, node: ast.JoinedStr) -> Instr:
        return self.b.apply(internal.text, [self.visit(v) for v in node.values], self.span(node))

    # AST: FormattedValue(expr value, int conversion, expr? format_spec)
    def visit_FormattedValue(self, node: ast.FormattedValue) -> Instr:
        span = self.span(node)
        value = self.visit(node.value)
        spec = self.visit(node.format_spec) if node.format_spec else self.b.const("", span)
        return self.b.apply(
            internal.formatted, [value, self.b.const(node.conversion, span), spec], span
        )

    # AST: Name(identifier id, expr_context ctx)
    def visit_Name(self, node: ast.Name) -> Instr:
        if node.id in self.functions:
            return self.read_function(node.id, node)
        if node.id in self.locals:
            return self.read(node.id, node)
        return self.b.const(self.lookup(node.id, node), self.span(node))

    def read_function(self, name: str, node: ast.AST) -> Instr:
        """The value of a function defined inside the kernel (Functions does it)."""
        raise NotImplementedError

    def read(self, name: str, node: ast.AST) -> Instr:
        """The value that a local name has here."""
        value = self.b.env.get(name) or self.b.undefined(name)
        self.b.function.reads.append((name, value, self.span(node)))
        return value

    def lookup(self, name: str, node: ast.expr) -> Any:
        """The object that a closure, global or builtin name stands for, frozen from now on."""
        for namespace in (self._free, self.pyfunc.__globals__, vars(builtins)):
            if name in namespace:
                return namespace[name]
        raise CompileError(f"name {name!r} is not defined", self.span(node))

    # AST: UnaryOp(unaryop op, expr operand)
    def visit_UnaryOp(self, node: ast.UnaryOp) -> Instr:
        return self.b.apply(UNARY[type(node.op)], [self.visit(node.operand)], self.span(node))

    # AST: BinOp(expr left, operator op, expr right)
    def visit_BinOp(self, node: ast.BinOp) -> Instr:
        # A chain of left operands is walked in a loop: long sums would exhaust the stack.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        value = self.visit(chain[-1].left)
        for part in reversed(chain):
            function = BINARY[type(part.op)]
            value = self.b.apply(function, [value, self.visit(part.right)], self.span(part))
        return value

    # AST: Compare(expr left, cmpop* ops, expr* comparators)
    def visit_Compare(self, node: ast.Compare) -> Instr:
        left = self.visit(node.left)
        return self._compare(node, left, 0)

    def _compare(self, node: ast.Compare, left: Instr, index: int) -> Instr:
        kind = type(node.ops[index])
        right = self.visit(node.comparators[index])
        if kind in COMPARE:
            result = self.b.apply(COMPARE[kind], [left, right], self.span(node))
        else:
            result = self.b.apply(operator.contains, [right, left], self.span(node))
            if kind is ast.NotIn:
                result = self.b.apply(operator.not_, [result], self.span(node))
        if index + 1 == len(node.ops):
            return result
        return self._short_circuit(result, lambda: self._compare(node, right, index + 1), node)

    def _short_circuit(
        self, first: Instr, rest: Callable[[], Instr], node: ast.expr, stop_if: bool = False
    ) -> Instr:
        """*first* if its truth is *stop_if*, else what *rest* emits."""
        span = self.span(node)
        go_on, end = self.b.new_block(), self.b.new_block()
        name = f".value{node.lineno}.{node.col_offset}.{first.id}"
        self.b.env[name] = first
        then, other = (end, go_on) if stop_if else (go_on, end)
        self.b.branch(first, then, other, span)
        self.b.start(go_on, span)
        self.b.env[name] = rest()
        self.b.jump(end)
        self.b.start(end, span)
        return self.b.env.pop(name)

    # AST: BoolOp(boolop op, expr* values)
    def visit_BoolOp(self, node: ast.BoolOp) -> Instr:
        stop_if = isinstance(node.op, ast.Or)

        def chain(index: int) -> Instr:
            value = self.visit(node.values[index])
            if index + 1 == len(node.values):
                return value
            return self._short_circuit(value, lambda: chain(index + 1), node, stop_if)

        return chain(0)

    def condition(self, node: ast.expr, then: Block, other: Block) -> None:
        """Branch on an expression; `and`, `or` and `not` become control flow."""
        if isinstance(node, ast.BoolOp):
            span = self.span(node)
            for value in node.values[:-1]:
                go_on = self.b.new_block()
                is_and = isinstance(node.op, ast.And)
                self.condition(value, go_on if is_and else then, other if is_and else go_on)
                if not self.b.start(go_on, span):
                    return
            self.condition(node.values[-1], then, other)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, other, then)
        else:
            self.b.branch(self.visit(node), then, other, self.span(node))

    # AST: IfExp(expr test, expr body, expr orelse)
    def visit_IfExp(self, node: ast.IfExp) -> Instr:
        span = self.span(node)
        then, other, end = self.b.new_block(), self.b.new_block(), self.b.new_block()
        name = f".value{node.lineno}.{node.col_offset}.{end.id}"
        self.condition(node.test, then, other)
        for block, value in ((then, node.body), (other, node.orelse)):
            if self.b.start(block, span):
                self.b.env[name] = self.visit(value)
                self.b.jump(end)
        self.b.start(end, span)
        return self.b.env.pop(name)

    # AST: NamedExpr(expr target, expr value)
    def visit_NamedExpr(self, node: ast.NamedExpr) -> Instr:
        value = self.visit(node.value)
        self.b.assign(node.target.id, value, self.span(node))
        return value

    # AST: Call(expr func, expr* args, keyword* keywords)
    def visit_Call(self, node: ast.Call) -> Instr:
        callee = self.visit(node.func)
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            return self.generator(callee, node)
        if callee.op is Op.CONST and callee.attr is getattr and len(node.args) == 2:
            name = self.constant(node.args[1])
            if isinstance(name, str):
                return self.b.emit(Op.ATTR, [self.visit(node.args[0])], name, self.span(node))
        args = [self.visit(arg) for arg in node.args]
        names = []
        for keyword in node.keywords:
            if keyword.arg is None:
                raise CompileError("** in a call is not supported in a kernel", self.span(keyword))
            names.append(keyword.arg)
            args.append(self.visit(keyword.value))
        return self.b.emit(Op.CALL, [callee, *args], tuple(names), self.span(node))

    def constant(self, node: ast.expr) -> Any:
        """The value of a constant or of a name from outside; None for anything else."""
        if isinstance(node, ast.Name) and node.id not in self.locals:
            return self.lookup(node.id, node)
        return node.value if isinstance(node, ast.Constant) else None

    def generator(self, callee: Instr, node: ast.Call) -> Instr:
        """A call whose argument is a generator expression (Loops does it)."""
        raise NotImplementedError

    # AST: Starred(expr value, expr_context ctx)
    def visit_Starred(self, node: ast.Starred) -> Instr:
        return self.b.apply(internal.star, [self.visit(node.value)], self.span(node))

    # AST: Attribute(expr value, identifier attr, expr_context ctx)
    def visit_Attribute(self, node: ast.Attribute) -> Instr:
        return self.b.emit(Op.ATTR, [self.visit(node.value)], node.attr, self.span(node))

    # AST: Subscript(expr value, expr slice, expr_context ctx)
    def visit_Subscript(self, node: ast.Subscript) -> Instr:
        args = [self.visit(node.value), self.visit(node.slice)]
        return self.b.apply(operator.getitem, args, self.span(node))

    # AST: Tuple(expr* elts, expr_context ctx)
    def visit_Tuple(self, node: ast.Tuple) -> Instr:
        items = [self.visit(item) for item in node.elts]
        return self.b.apply(internal.make_tuple, items, self.span(node))

    # AST: Slice(expr? lower, expr? upper, expr? step)
    def visit_Slice(self, node: ast.Slice) -> Instr:
        span = self.span(node)
        parts = [
            self.b.const(None, span) if part is None else self.visit(part)
            for part in (node.lower, node.upper, node.step)
        ]
        return self.b.apply(slice, parts, span)


def _closure(pyfunc: Callable[..., Any]) -> dict[str, Any]:
    names = pyfunc.__code__.co_freevars
    cells = pyfunc.__closure__ or ()
    values = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue  # Not assigned yet: reading it is the error, not having it.
    return values


def changed(node: ast.AST) -> list[str]:
    """The names that *node* assigns, or a field of which it assigns."""
    return _assigned(node)[1]


def stored(node: ast.AST) -> list[str]:
    """The names that *node* assigns, without those of functions defined inside it."""
    return _assigned(node)[0]


def _assigned(node: ast.AST) -> tuple[list[str], list[str]]:
    """What stored and changed give; kept with the node, as loops in loops ask again."""
    kept: tuple[list[str], list[str]] | None = node.__dict__.get(".assigned")
    if kept is not None:
        return kept
    names: dict[str, None] = {}
    fields: dict[str, None] = {}
    work = list(ast.iter_child_nodes(node))
    while work:
        child = work.pop()
        if isinstance(child, _LEAVES):
            continue
        _note(child, names, fields)
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            work += _children(child)
    found = list(names), [*names, *fields]
    node.__dict__[".assigned"] = found
    return found


# What assigns nothing, and holds nothing that does.
_LEAVES = (ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)


def _children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Name):
        return []
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _note(child: ast.AST, names: dict[str, None], fields: dict[str, None]) -> None:
    """Add what *child* itself assigns."""
    if isinstance(child, ast.Name):
        if not isinstance(child.ctx, ast.Load):
            names[child.id] = None
    elif isinstance(child, ast.Attribute):
        if isinstance(child.ctx, ast.Store) and isinstance(child.value, ast.Name):
            fields[child.value.id] = None
    elif isinstance(child, ast.For | ast.GeneratorExp | ast.ListComp):
        names[f".counter{child.lineno}.{child.col_offset}"] = None
        names[f".result{child.lineno}.{child.col_offset}"] = None
    elif isinstance(child, ast.FunctionDef | ast.MatchAs | ast.MatchStar) and child.name:
        names[child.name] = None
