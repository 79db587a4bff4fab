"""Low-level functions written as Python text into LLVM IR: integers, records and pointers.

Integers are 64 bits wide and unsigned. A parameter or variable annotated with the name of a record
is a pointer to one, or to an array of them; `bytes` is a pointer to bytes.
"""

from __future__ import annotations

import ast

from .builder import Builder, Module
from .layout import LAUNCH, RANGE, THREAD, WORKER

RECORDS = {record.name: record for record in (LAUNCH, WORKER, THREAD, RANGE)}
_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "udiv", ast.Mod: "urem",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "lshr",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "ult", ast.LtE: "ule", ast.Gt: "ugt", ast.GtE: "uge",
}  # fmt: skip
# Functions it may call besides its own: (result, types of the parameters).
_EXTERNAL = {
    "malloc": ("ptr", "i64"),
    "free": ("void", "ptr"),
    "min": ("i64", "i64 i64"),
}
_NAMES = {"min": "llvm.umin.i64"}


def lower(module: Module, text: str, constants: dict[str, int], exported: dict[str, str]) -> None:
    """Add the functions of *text* to *module*; *exported* ones get the names it gives them."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    signatures = {node.name: _signature(node) for node in functions}
    for node in functions:
        _Function(module, signatures, constants, exported).define(node)


def _signature(node: ast.FunctionDef) -> tuple[str, str]:
    kinds = [_kind(argument.annotation) for argument in node.args.args]
    types = " ".join("i64" if kind == "int" else kind if kind == "i32" else "ptr" for kind in kinds)
    return "void" if node.returns is None else "i64", types


def _kind(annotation: ast.expr | None) -> str:
    return annotation.id if isinstance(annotation, ast.Name) else "int"


class _Function(Builder):
    def __init__(
        self,
        module: Module,
        signatures: dict[str, tuple[str, str]],
        constants: dict[str, int],
        symbols: dict[str, str],
    ) -> None:
        super().__init__(module)
        self.symbols = symbols
        self.signatures = signatures
        self.constants = constants
        self.slots: dict[str, str] = {}
        self.kinds: dict[str, str] = {}

    def define(self, node: ast.FunctionDef) -> None:
        """`define i64 @name(parameters) { ... }`"""
        result, types = self.signatures[node.name]
        names = [argument.arg for argument in node.args.args]
        parameters = [f"{kind} %{name}" for kind, name in zip(types.split(), names, strict=True)]
        for argument, parameter in zip(node.args.args, parameters, strict=True):
            self.kinds[argument.arg] = _kind(argument.annotation)
            self.store(argument.arg, self.widen(parameter.split()[0], f"%{argument.arg}"))
        self.statements(node.body)
        if not self.terminated:
            self.end("ret void" if result == "void" else "ret i64 0")
        linkage = "" if node.name in self.symbols else "internal "
        name = self.symbols.get(node.name, node.name)
        head = f"define {linkage}{result} @{name}({', '.join(parameters)}) {{\nentry:"
        self.module.functions.append("\n".join([head, *self.allocas, *self.lines, "}"]))

    def widen(self, kind: str, value: str) -> str:
        """A value of a type as i64."""
        if kind == "ptr":
            return self.op(f"ptrtoint ptr {value} to i64")
        return self.cast("zext", kind, value, "i64")

    def narrow(self, kind: str, value: str) -> str:
        """An i64 as a value of a type."""
        if kind == "ptr":
            return self.op(f"inttoptr i64 {value} to ptr")
        return self.cast("trunc", "i64", value, kind)

    def store(self, name: str, value: str) -> None:
        """Set a variable."""
        if name not in self.slots:
            self.slots[name] = self.alloca("i64")
        self.do(f"store i64 {value}, ptr {self.slots[name]}")

    # -- statements

    def statements(self, body: list[ast.stmt]) -> None:
        """A list of statements."""
        for node in body:
            getattr(self, f"visit_{type(node).__name__}")(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        self.end("ret void" if node.value is None else f"ret i64 {self.value(node.value)}")

    def visit_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        assert isinstance(node.target, ast.Name) and node.value
        self.kinds[node.target.id] = _kind(node.annotation)
        self.store(node.target.id, self.value(node.value))

    def visit_Assign(self, node: ast.Assign) -> None:
        self.assign(node.targets[0], self.value(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        value = self.op(
            f"{_BINARY[type(node.op)]} i64 {self.value(node.target)}, {self.value(node.value)}"
        )
        self.assign(node.target, value)

    def assign(self, target: ast.expr, value: str) -> None:
        """Store into a variable, field or element."""
        if isinstance(target, ast.Name):
            self.store(target.id, value)
            return
        pointer, kind = self.address(target)
        self.do(f"store {kind} {self.narrow(kind, value)}, ptr {pointer}")

    def visit_If(self, node: ast.If) -> None:
        yes, no, end = self.fresh("yes"), self.fresh("no"), self.fresh("end")
        self.branch(self.truth(node.test), yes, no)
        self.label(yes)
        self.statements(node.body)
        if not self.terminated:
            self.jump(end)
        self.label(no)
        self.statements(node.orelse)
        self.label(end)

    def visit_While(self, node: ast.While) -> None:
        test, body, end = self.fresh("test"), self.fresh("body"), self.fresh("end")
        self.label(test)
        self.branch(self.truth(node.test), body, end)
        self.label(body)
        self.statements(node.body)
        if not self.terminated:
            self.jump(test)
        self.label(end)

    def visit_For(self, node: ast.For) -> None:
        """`for i in range(stop):`"""
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        name, stop = node.target.id, node.iter.args[0]
        self.store(name, "0")
        one = ast.AugAssign(ast.Name(name), ast.Add(), ast.Constant(1))
        test = ast.Compare(ast.Name(name), [ast.Lt()], [stop])
        self.visit_While(ast.While(test, [*node.body, one], []))

    # -- expressions

    def truth(self, node: ast.expr) -> str:
        """The i1 whether a value is not 0."""
        return self.icmp("ne", "i64", self.value(node), "0")

    def value(self, node: ast.expr) -> str:
        """An expression as i64."""
        if isinstance(node, ast.Constant):
            return str(int(node.value))  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            if node.id in self.constants:
                return str(self.constants[node.id])
            return self.op(f"load i64, ptr {self.slots[node.id]}")
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            return self.op(f"{_BINARY[type(node.op)]} i64 {left}, {right}")
        if isinstance(node, ast.UnaryOp):
            return self.op(f"xor i64 {self.value(node.operand)}, -1")
        if isinstance(node, ast.Compare):
            left, right = self.value(node.left), self.value(node.comparators[0])
            return self.widen("i1", self.icmp(_COMPARE[type(node.ops[0])], "i64", left, right))
        if isinstance(node, ast.Call):
            return self.call_named(node)
        pointer, kind = self.address(node)
        return self.widen(kind, self.op(f"load {kind}, ptr {pointer}"))

    def record(self, node: ast.expr) -> tuple[str, str]:
        """(pointer, name of its type) of a record: a variable or an element of an array."""
        if isinstance(node, ast.Subscript):
            pointer, kind = self.record(node.value)
            index = self.value(node.slice)
            element = "i8" if kind == "bytes" else f"%{kind}"
            return self.op(f"getelementptr {element}, ptr {pointer}, i64 {index}"), kind
        assert isinstance(node, ast.Name)
        return self.narrow("ptr", self.value(node)), self.kinds[node.id]

    def address(self, node: ast.expr) -> tuple[str, str]:
        """(pointer, type) of a field, an element of a field, or a byte."""
        if isinstance(node, ast.Attribute):
            pointer, kind = self.record(node.value)
            record = RECORDS[kind]
            return self.op(record.address(pointer, node.attr)), record.types[node.attr]
        assert isinstance(node, ast.Subscript)
        if isinstance(node.value, ast.Attribute):
            pointer, kind = self.address(node.value)
            element = kind.strip("[]").split(" x ")[1]
            index = self.value(node.slice)
            return self.op(f"getelementptr {element}, ptr {pointer}, i64 {index}"), element
        return self.record(node)[0], "i8"

    def call_named(self, node: ast.Call) -> str:
        """A call of another function of the text, of an external one, or of one given below."""
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        special = getattr(self, f"call_{name}", None)
        if special is not None:
            return str(special(*node.args))
        result, types = self.signatures.get(name) or _EXTERNAL[name]
        values = [self.value(argument) for argument in node.args]
        return self.call_typed(_NAMES.get(name, name), result, types, values)

    def call_typed(self, name: str, result: str, types: str, values: list[str]) -> str:
        """A call with i64 values as arguments of the *types*."""
        kinds = types.split()
        arguments = [f"{k} {self.narrow(k, v)}" for k, v in zip(kinds, values, strict=True)]
        if not name.startswith("%") and name not in self.signatures:
            value = self.call(name, result, *arguments)
            return self.widen(result, value) if value else ""
        prefix = "" if name.startswith("%") else "@"
        text = f"call {result} {prefix}{self.symbols.get(name, name)}({', '.join(arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.widen(result, self.op(text))

    def call_block(self, pointer: ast.expr, *arguments: ast.expr) -> str:
        """`block(f, ...)`: run a block."""
        return self.call_through("void", pointer, arguments)

    def call_thread(self, pointer: ast.expr, *arguments: ast.expr) -> str:
        """`thread(f, ...)`: start a thread; gives its coroutine."""
        return self.call_through("ptr", pointer, arguments)

    def call_through(self, result: str, pointer: ast.expr, arguments: tuple[ast.expr, ...]) -> str:
        """Call a function pointer; the types of the arguments are ptr and i32."""
        target = self.narrow("ptr", self.value(pointer))
        types = " ".join("ptr" if self.is_pointer(node) else "i32" for node in arguments)
        return self.call_typed(target, result, types, [self.value(node) for node in arguments])

    def is_pointer(self, node: ast.expr) -> bool:
        """Whether an expression is a pointer to a record or to bytes."""
        return isinstance(node, ast.Name) and self.kinds.get(node.id) in (*RECORDS, "bytes")

    def call_lowest_bit(self, value: ast.expr) -> str:
        """`lowest_bit(x)`: the number of the lowest bit set; x is not 0."""
        return self.call("llvm.cttz.i64", "i64", f"i64 {self.value(value)}", "i1 true")

    def call_resume(self, handle: ast.expr) -> str:
        """`resume(coroutine)`: call the function its frame begins with."""
        frame = self.narrow("ptr", self.value(handle))
        self.do(f"call fastcc void {self.op(f'load ptr, ptr {frame}')}(ptr {frame})")
        return ""

    def call_zeroed(self, name: ast.Name) -> str:
        """`zeroed(record)`: a local record of zeros."""
        slot = self.alloca(f"%{name.id}", 64)
        self.do(f"store %{name.id} zeroinitializer, ptr {slot}")
        return self.widen("ptr", slot)

    def call_size_of(self, name: ast.Name) -> str:
        """`size_of(record)`: its bytes."""
        end = self.op(f"getelementptr %{name.id}, ptr null, i32 1")
        return self.widen("ptr", end)

    def call_fetch_add(self, target: ast.expr, value: ast.expr) -> str:
        """`fetch_add(x.field, n)`: add atomically; gives what was there."""
        pointer, kind = self.address(target)
        amount = self.narrow(kind, self.value(value))
        return self.widen(kind, self.op(f"atomicrmw add ptr {pointer}, {kind} {amount} monotonic"))

    def call_claim(self, target: ast.expr, value: ast.expr) -> str:
        """`claim(x.field, n)`: make a 0 into n atomically; gives what was there."""
        pointer, kind = self.address(target)
        new = self.narrow(kind, self.value(value))
        pair = self.op(f"cmpxchg ptr {pointer}, {kind} 0, {kind} {new} seq_cst seq_cst")
        return self.widen(kind, self.op(f"extractvalue {{ {kind}, i1 }} {pair}, 0"))
