"""Functions defined inside a kernel, to SSA form: def and lambda, with what they capture."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..errors import CompileError
from . import internal
from .calls import Parameters, parameters_of
from .expressions import Expressions, stored
from .ir import Function, Instr

FunctionNode = ast.FunctionDef | ast.Lambda


class LocalFunction:
    """A function whose definition stands inside another; called with what it captures first.

    Attributes:
        parameters: those captured, then those declared.
        captured: how many are captured.
        build: makes its SSA form, some loops unrolled.
    """

    def __init__(
        self, parameters: Parameters, build: Callable[[dict[str, int] | None], Function]
    ) -> None:
        self.parameters = parameters
        self.build = build
        self.__name__ = parameters.name


class Functions(Expressions):
    """Visitors of function definitions."""

    functions: dict[str, ast.FunctionDef]
    locals_made: dict[FunctionNode, LocalFunction]
    walk: Callable[..., Function]

    # AST: FunctionDef(identifier name, arguments args, stmt* body, expr* decorator_list, ...)
    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise CompileError("a function inside a kernel has no decorators", self.span(node))
        names = definitions(self.source.node)
        if names.count(node.name) > 1:
            raise CompileError(
                f"{node.name} has several meanings here: give this function a name of its own",
                self.span(node),
            )
        # What it captures is read where it is read, as Python does: here only the defaults are.
        self.b.env[node.name] = self._closure_of(node)

    # AST: Lambda(arguments args, expr body)
    def visit_Lambda(self, node: ast.Lambda) -> Instr:
        return self._closure_of(node)

    def read_function(self, name: str, node: ast.AST) -> Instr:
        """The function that a local name stands for, with what it captures as it is now."""
        self.read(name, node)
        return self._closure_of(self.functions[name])

    def _closure_of(self, node: FunctionNode) -> Instr:
        span = self.span(node)
        captured = self._captured(node)
        if isinstance(node, ast.FunctionDef) and node.name in captured:
            raise CompileError(
                f"{node.name} calls itself: define it outside the kernel, with @jit(device=True)",
                span,
            )
        values = [self.read(name, node) for name in captured if name not in self.functions]
        inner = [name for name in captured if name in self.functions]
        values += [self.read_function(name, node) for name in inner]
        names = [name for name in captured if name not in self.functions] + inner
        defaults = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        values += [self.visit(default) for default in defaults]
        local = self.b.const(self._local(node, names), span)
        return self.b.apply(internal.make_closure, [local, *values], span)

    def _local(self, node: FunctionNode, names: list[str]) -> LocalFunction:
        """The function of a definition, one however often it is read."""
        if node not in self.locals_made:
            shape = parameters_of(node, getattr(node, "name", "<lambda>"), self.span, names)
            source, span = self.source.inner(node), self.span(node)

            def build(unroll: dict[str, int] | None) -> Function:
                return self.walk(Function(shape, source, span), self.pyfunc, unroll)

            self.locals_made[node] = LocalFunction(shape, build)
        return self.locals_made[node]

    def _captured(self, node: FunctionNode) -> list[str]:
        """The names of the enclosing function that *node* reads."""
        return [name for name in free_names(node) if name in self.locals]


def defined(node: FunctionNode) -> dict[str, ast.FunctionDef]:
    """The functions defined directly inside *node*, the last of each name."""
    if isinstance(node, ast.Lambda):
        return {}
    found: dict[str, ast.FunctionDef] = {}
    work: list[ast.AST] = list(reversed(node.body))
    while work:
        child = work.pop()
        if isinstance(child, ast.FunctionDef):
            found[child.name] = child
        elif not isinstance(child, ast.Lambda | ast.ClassDef):
            work += reversed(list(ast.iter_child_nodes(child)))
    return found


def definitions(node: FunctionNode) -> list[str]:
    """The names of functions defined inside *node*, and those that it assigns otherwise."""
    names, work = [], list(ast.iter_child_nodes(node))
    while work:
        child = work.pop()
        if isinstance(child, ast.FunctionDef):
            names.append(child.name)
        elif not isinstance(child, ast.Lambda | ast.ClassDef):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                names.append(child.id)
            work += ast.iter_child_nodes(child)
    return names


def free_names(node: FunctionNode) -> list[str]:
    """The names that a function reads and does not define."""
    args = node.args
    own = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    own |= {a.arg for a in (args.vararg, args.kwarg) if a}
    own |= set(stored(node)) | set(defined(node))
    names: dict[str, None] = {}
    work: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    while work:
        child = work.pop()
        if isinstance(child, ast.FunctionDef | ast.Lambda):
            names.update(dict.fromkeys(free_names(child)))
            work += child.args.defaults
        else:
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                names[child.id] = None
            work += ast.iter_child_nodes(child)
    return [name for name in names if name not in own]
