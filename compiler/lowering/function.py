"""One typed function to one LLVM function."""

from __future__ import annotations

import operator
import re
from typing import Any

from llvmlite import ir

from .. import types
from ..elements import is_captured
from ..errors import CompileError, Span
from ..frontend.calls import Source
from ..frontend.infer import Typed
from ..frontend.ir import Block, Branch, Instr, Jump, Mark, Op, Return, Stop
from ..types import BoundMethod, Closure, Literal, Star, Tuple
from ..typing.registry import Registry
from .builder import Builder, Module
from .casts import cast
from .models import I1, I8, I32, Value
from .variables import Variables


class Program:
    """The LLVM functions of one module, each specialisation once."""

    def __init__(self, module: Module, registry: Registry) -> None:
        self.module = module
        self.registry = registry
        self._functions: dict[Typed, ir.Function] = {}

    def kernel(self, typed: Typed, name: str) -> ir.Function:
        """Lower *typed* as the kernel *name*, whose parameters are the leaves of its arguments."""
        layout = self.module.layout
        params = [memory(leaf) for ty in typed.args for leaf in layout.leaves(ty)]
        function = ir.Function(self.module.llvm, ir.FunctionType(ir.VoidType(), params), name)
        self._mark_kernel(function)
        Lowering(self, typed, function).run()
        return function

    def device(self, typed: Typed) -> ir.Function:
        """Lower *typed* as an internal function, at its first call."""
        function = self._functions.get(typed)
        if function is None:
            layout = self.module.layout
            params = [leaf for ty in typed.args for leaf in layout.leaves(ty)]
            returns = result_type(layout.leaves(typed.returns))
            name = self.module.llvm.get_unique_name(symbol(typed.function.name))
            function = ir.Function(self.module.llvm, ir.FunctionType(returns, params), name)
            function.linkage = "internal"
            function.attributes.add("convergent")  # LLVM removes it where it is not so.
            if typed.function.source.inline:
                function.attributes.add("alwaysinline")
            self._functions[typed] = function
            Lowering(self, typed, function).run()
        return function

    def _mark_kernel(self, function: ir.Function) -> None:
        llvm = self.module.llvm
        if not self.module.dialect.typed_pointers:
            function.type = ir.PointerType()  # llvmlite would print the typed one here.
        node = llvm.add_metadata([function, "kernel", ir.Constant(I32, 1)])
        llvm.add_named_metadata("nvvm.annotations", node)


def symbol(name: str) -> str:
    """*name* with only the characters that PTX identifiers have."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def memory(leaf: ir.Type) -> ir.Type:
    """The type of a kernel parameter that carries *leaf*: a bool takes a byte."""
    return I8 if leaf == I1 else leaf


def result_type(leaves: list[ir.Type]) -> ir.Type:
    """The LLVM return type of a function that returns these leaves."""
    if not leaves:
        return ir.VoidType()
    return leaves[0] if len(leaves) == 1 else ir.LiteralStructType(leaves)


class Lowering:
    """The walk over one function."""

    def __init__(self, program: Program, typed: Typed, function: ir.Function) -> None:
        self.program = program
        self.typed = typed
        self.function = function
        self.blocks = {block: function.append_basic_block(f"b{block.id}") for block in typed.blocks}
        first = self.blocks[typed.blocks[0]]
        self.b = Builder(program.module, ir.IRBuilder(first))
        self.debug = program.module.debug
        self._marks: dict[tuple[Block, Instr | None], list[Mark]] = {}
        if self.debug is not None:
            form = typed.function
            self.scope = self.debug.subprogram(function, form.name, form.span)
            if self.debug.variables:
                self.variables = Variables(self.debug, self.b, typed, self.scope)
                for mark in form.marks:
                    self._marks.setdefault((mark.block, mark.after), []).append(mark)
        self.values: dict[Instr, Value] = {}
        self.ends: dict[Block, ir.Block] = {}
        self._phis: list[tuple[Instr, list[ir.PhiInstr]]] = []

    def run(self) -> None:
        """Lower every block, then connect the phis."""
        for block in self.typed.blocks:
            self.b.llvm.position_at_end(self.blocks[block])
            self._at(self.typed.function.span)
            if block is self.typed.blocks[0]:
                self._arguments()
            phis = list(block.phis())
            for instr in phis:
                self._instruction(instr)
            self._write(block, None)
            for instr in block.instrs[len(phis) :]:
                self._instruction(instr)
                self._write(block, instr)
            self._terminator(block)
            self.ends[block] = self.b.llvm.block
        for instr, phis in self._phis:
            self._connect(instr, phis)

    def _at(self, span: Span) -> None:
        """What is emitted now comes from *span*."""
        self.b.span = span
        if self.debug is not None:
            self.b.llvm.debug_metadata = self.debug.location(span, self.scope)

    def _arguments(self) -> None:
        leaves = list(self.function.args)
        self.arguments: list[Value] = []
        for ty in self.typed.args:
            expected = self.b.layout.leaves(ty)
            taken, leaves = leaves[: len(expected)], leaves[len(expected) :]
            restored = [
                leaf if leaf.type == want else self.b.llvm.trunc(leaf, want)
                for leaf, want in zip(taken, expected, strict=True)
            ]
            self.arguments.append(Value(ty, tuple(restored)))

    def _instruction(self, instr: Instr) -> None:
        ty = self.typed.types.get(instr)
        if ty is None or (isinstance(ty, Literal) and instr not in self.typed.callees):
            return  # Literals become constants where they are used.
        self._at(instr.span)
        try:
            self.values[instr] = LOWER[instr.op](self, instr)
        except CompileError as error:
            if error.span is None:
                error.span = instr.span
            raise

    def _write(self, block: Block, after: Instr | None) -> None:
        """Store what names are assigned after an instruction, for debuggers."""
        for mark in self._marks.get((block, after), ()):
            ty = self.typed.types.get(mark.value)
            if mark.value in self.values or isinstance(ty, Literal):
                self._at(mark.span)
                self.variables.write(mark, self.value(mark.value))

    def value(self, instr: Instr) -> Value:
        """The value of an instruction lowered before."""
        ty = self.typed.types.get(instr)
        return self._settled(Value(ty)) if isinstance(ty, Literal) else self.values[instr]

    def _settled(self, value: Value) -> Value:
        """*value*; the array itself where it is one that the source names."""
        if not is_captured(value.type):
            return value
        source = value.type.value  # type: ignore[attr-defined]
        return self.b.captured(source, self.typed.captured[id(source)])

    def _terminator(self, block: Block) -> None:
        end = block.terminator
        if end is not None and not isinstance(end, Jump):
            self._at(end.span)
        if isinstance(end, Jump):
            self.b.llvm.branch(self.blocks[end.target])
        elif isinstance(end, Branch):
            self._branch(block, end)
        elif isinstance(end, Stop):
            self.b.llvm.unreachable()
        else:
            assert isinstance(end, Return)
            self._return(end)

    def _branch(self, block: Block, end: Branch) -> None:
        condition = self.value(end.condition)
        if isinstance(condition.type, Literal):
            self.b.llvm.branch(self.blocks[end.then if condition.type.value else end.other])
            return
        truth = self._truth(condition)
        self.b.llvm.cbranch(truth, self.blocks[end.then], self.blocks[end.other])

    def _truth(self, value: Value) -> ir.Value:
        ty = value.type
        if isinstance(ty, types.Scalar):
            return cast(self.b, value, types.boolean).leaf
        if isinstance(ty, Tuple | types.NoneType):
            return I1(int(bool(getattr(ty, "items", ()))))
        row, match = self.program.registry.resolve(operator.not_, (ty,))
        if isinstance(match.returns, Literal):
            return I1(int(not match.returns.value))
        return self.b.llvm.not_(row.lower(self.b, match, value).leaf)

    def _return(self, end: Return) -> None:
        returns = self.typed.returns
        value = Value(Literal(None)) if end.value is None else self.value(end.value)
        leaves = cast(self.b, value, returns).leaves
        if not leaves:
            self.b.llvm.ret_void()
        elif len(leaves) == 1:
            self.b.llvm.ret(leaves[0])
        else:
            packed: ir.Value = ir.Constant(self.function.function_type.return_type, ir.Undefined)
            for index, leaf in enumerate(leaves):
                packed = self.b.llvm.insert_value(packed, leaf, index)
            self.b.llvm.ret(packed)

    # Instructions, by op

    def lower_const(self, instr: Instr) -> Value:
        return self._object(instr.attr)

    def _object(self, value: Any) -> Value:
        lower = self.program.registry.values[id(value)][1]
        result: Value = lower(self.b, value)
        return result

    def lower_arg(self, instr: Instr) -> Value:
        position: int = instr.attr
        return self.arguments[position]

    def lower_phi(self, instr: Instr) -> Value:
        ty = self.typed.types[instr]
        phis = [self.b.llvm.phi(leaf) for leaf in self.b.layout.leaves(ty)]
        self._phis.append((instr, phis))
        return Value(ty, tuple(phis))

    def _connect(self, instr: Instr, phis: list[ir.PhiInstr]) -> None:
        ty = self.typed.types[instr]
        for pred, arg in zip(instr.block.preds, instr.args, strict=True):
            if (pred, instr.block) not in self.typed.edges:
                continue
            end = self.ends[pred]
            self.b.llvm.position_before(end.terminator)
            known = arg.op is not Op.UNDEF and arg in self.typed.types
            value = cast(self.b, self.value(arg), ty) if known else self.b.zero(ty)
            for phi, leaf in zip(phis, value.leaves, strict=True):
                phi.add_incoming(leaf, end)

    def _operands(self, instr: Instr) -> list[Value]:
        """The arguments of a call: ``*tuple`` spliced in, what a bound callee brings first."""
        values: list[Value] = []
        for arg in instr.args[1:] if instr.op is Op.CALL else instr.args:
            value = self.value(arg)
            items = self.b.items(value) if isinstance(value.type, Star) else [value]
            values += map(self._settled, items)
        if instr.op is not Op.CALL:
            return values
        callee = self.value(instr.args[0])
        if isinstance(callee.type, BoundMethod):
            return [Value(callee.type.owner, callee.leaves), *values]
        if isinstance(callee.type, Closure):
            split = callee.type.function.parameters.captured
            items = self.b.items(callee)
            return [*items[:split], *values, *items[split:]]
        return values

    def lower_match(self, instr: Instr) -> Value:
        """Emit the code of a registry row."""
        row, match = self.typed.matches[instr]
        operands = self._operands(instr)
        args = [
            operands[place] if ty is None else cast(self.b, operands[place], ty)
            for place, ty in zip(self.typed.orders[instr], match.args, strict=True)
        ]
        result: Value = row.lower(self.b, match, *args)
        return result

    def lower_call(self, instr: Instr) -> Value:
        """Emit a call: of a row, or of another Python function."""
        if instr not in self.typed.callees:
            return self.lower_match(instr)
        callee, sources = self.typed.callees[instr]
        operands = self._operands(instr)
        leaves: list[ir.Value] = []
        for source, ty in zip(sources, callee.args, strict=True):
            leaves += cast(self.b, self._given(source, operands), ty).leaves
        function = self.program.device(callee)
        return unpack(self.b, self.b.llvm.call(function, leaves), callee.returns)

    @staticmethod
    def _given(source: Source, operands: list[Value]) -> Value:
        if isinstance(source, Literal):
            return Value(source)
        if isinstance(source, int):
            return operands[source]
        items = [operands[position] for position in source]
        leaves = tuple(leaf for item in items for leaf in item.leaves)
        return Value(Tuple(tuple(item.type for item in items)), leaves)

    def lower_attr(self, instr: Instr) -> Value:
        if instr in self.typed.callees:
            return self.lower_call(instr)
        owner = self.value(instr.args[0])
        ty = self.typed.types[instr]
        if isinstance(owner.type, Literal) and not isinstance(ty, BoundMethod):
            member = getattr(owner.type.value, instr.attr, None)
            if id(member) in self.program.registry.values:
                return self._object(member)
        if isinstance(ty, BoundMethod):
            return Value(ty, cast(self.b, owner, ty.owner).leaves)
        wide = cast(self.b, owner, types.widen(owner.type))
        row = self.program.registry.find_attribute(wide.type, instr.attr)
        assert row is not None
        result: Value = row.lower(self.b, wide, ty)
        return result


def unpack(b: Builder, result: ir.Value, ty: types.Type) -> Value:
    """The value that a call returned, from its LLVM result."""
    count = len(b.layout.leaves(ty))
    if count == 0:
        return Value(ty)
    if count == 1:
        return Value(ty, (result,))
    return Value(ty, tuple(b.llvm.extract_value(result, i) for i in range(count)))


LOWER: dict[Op, Any] = {
    Op.CONST: Lowering.lower_const,
    Op.ARG: Lowering.lower_arg,
    Op.PHI: Lowering.lower_phi,
    Op.APPLY: Lowering.lower_call,
    Op.CALL: Lowering.lower_call,
    Op.ATTR: Lowering.lower_attr,
}
