"""What one kernel reaches: functions, shared variables, and whether threads wait or end inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from .errors import PtxError, unsupported
from .isa import find
from .syntax import (
    Address,
    Block,
    Function,
    Group,
    Instruction,
    Integer,
    Label,
    Module,
    Name,
    Negated,
    Operand,
    Pair,
    Variable,
    Vector,
)
from .types import TYPES

# External functions that the emulator provides.
SET_CONDITION = "cudaGraphSetConditional"
PROVIDED = {"vprintf", "malloc", "free", "__assertfail", SET_CONDITION}


def names_in(operand: Operand) -> Iterator[str]:
    """Every name an operand mentions."""
    if isinstance(operand, Name):
        yield operand.text
    elif isinstance(operand, Negated):
        yield operand.name.text
    elif isinstance(operand, Address):
        yield from names_in(operand.base)
        for more in operand.more:
            yield from names_in(more)
    elif isinstance(operand, (Vector, Group)):
        for item in operand.items:
            yield from names_in(item)
    elif isinstance(operand, Pair):
        yield from names_in(operand.first)
        yield from names_in(operand.second)


def names_of(operands: Iterable[Operand]) -> Iterator[str]:
    """Every name that some operands mention."""
    return chain.from_iterable(map(names_in, operands))


def blocks(block: Block) -> Iterator[Block]:
    """A block and all blocks inside it."""
    yield block
    for item in block.items:
        if isinstance(item, Block):
            yield from blocks(item)


def instructions(block: Block) -> Iterator[Instruction]:
    """All instructions of a block, in order."""
    for item in block.items:
        if isinstance(item, Instruction):
            yield item
        elif isinstance(item, Block):
            yield from instructions(item)


def spinning_branches(block: Block) -> Iterator[int]:
    """Ids of branches back over an instruction that looks at what another thread may change."""
    seen: dict[str, int] = {}
    looks = [-1]
    for index, item in enumerate(block.items):
        if isinstance(item, Label):
            seen[item.name] = index
        elif isinstance(item, Block):
            yield from spinning_branches(item)
            if any(observes(inner) for inner in instructions(item)):
                looks.append(index)
        elif item.opcode == "bra":
            target = next(iter(names_in(item.operands[0])), "")
            if seen.get(target, index) < looks[-1]:
                yield id(item)
        elif observes(item):
            looks.append(index)


def observes(instruction: Instruction) -> bool:
    """Whether it reads memory in a way that polls: volatile, ordered, or by an atomic."""
    modifiers = set(instruction.modifiers)
    if instruction.opcode == "ld":
        return bool(modifiers & {"volatile", "relaxed", "acquire", "mmio"})
    if instruction.opcode == "atom":
        return bool(modifiers & {"cas", "exch"}) or instruction.operands[-1] == Integer(0)
    return False


def callee(call: Instruction) -> str:
    """The name a call instruction calls: a function's, or a register's."""
    for operand in call.operands:
        if isinstance(operand, Name):
            return operand.text
    raise PtxError("call without a function", call.line)


def byte_size(variable: Variable) -> int:
    """Bytes a variable occupies."""
    count = 1 if variable.count is None else variable.count
    return TYPES[variable.type].bytes * variable.vector * count


def alignment(variable: Variable) -> int:
    """Bytes a variable is aligned to."""
    return variable.align or TYPES[variable.type].bytes * variable.vector


def param_layout(params: list[Variable]) -> list[tuple[int, int]]:
    """(offset, size) of each parameter in the memory they share."""
    found, at = [], 0
    for param in params:
        at = -(-at // alignment(param)) * alignment(param)
        found.append((at, byte_size(param)))
        at += byte_size(param)
    return found


class Plan:
    """What compiling *entry* needs to know beforehand.

    Attributes:
        functions: the functions it may call, by name.
        suspends, exits: names of those in which a thread may wait or end.
        recursive: names of those that may call themselves.
        shared: offset of each shared variable; shared_bytes: their size without dynamic ones.
        spins: ids of the backward branches of loops that may wait for another thread.
        has_warp_operations: threads may wait for others of their warp.
        has_local: some function has local variables, so generic pointers may point to them.
        checked: accesses are checked; has_heap: but memory from malloc is not known.
        addressed: functions whose address is taken, in order.
    """

    def __init__(
        self, module: Module, entry: Function, addressed: list[str], checked: bool = False
    ) -> None:
        self.module = module
        self.entry = entry
        self.functions: dict[str, Function] = {}
        self.calls: dict[str, set[str]] = {}
        self.suspends: set[str] = set()
        self.exits: set[str] = set()
        self.shared: dict[int, int] = {}
        self.shared_bytes = 0
        self.spins: set[int] = set()
        self.checked = checked
        self.has_heap = False
        self.has_local = False
        self.has_warp_operations = False
        self.addressed = addressed
        self._extern: list[Variable] = []
        self._visit(entry)
        for variable in self._extern:
            self.shared_bytes = -(-self.shared_bytes // alignment(variable)) * alignment(variable)
        for variable in self._extern:
            self.shared[id(variable)] = self.shared_bytes
        if checked:
            self.exits.update(self.functions)
        self._spread(self.suspends)
        self._spread(self.exits)
        self.recursive = {name for name in self.calls if name in self._reached(name)}
        self._find_spins()
        stuck = self.suspends & self.recursive
        if stuck:
            raise unsupported(f"recursive function {min(stuck)} with a barrier or warp operation")

    def _visit(self, function: Function) -> None:
        assert function.body is not None
        self.functions[function.name] = function
        calls = self.calls.setdefault(function.name, set())
        for block in blocks(function.body):
            for variable in block.variables:
                self._variable(variable)
        for instruction in instructions(function.body):
            row, _ = find(instruction)
            if row.barrier or row.warp:
                self.suspends.add(function.name)
            self.has_warp_operations |= row.warp
            self.has_local |= instruction.opcode == "alloca"
            if row.exits:
                self.exits.add(function.name)
            for name in names_of(instruction.operands):
                if name in self.module.variables:
                    self._variable(self.module.variables[name])
            if instruction.opcode == "call":
                calls.update(self._callees(instruction))
        for name in sorted(calls):
            if name not in self.functions:
                self._visit(self.module.functions[name])

    def _find_spins(self) -> None:
        """Note the loops in which a thread may wait for another; it must let others run there."""
        for name, function in self.functions.items():
            assert function.body is not None
            spins = set(spinning_branches(function.body))
            if spins and name not in self.recursive:
                self.spins |= spins
                self.suspends.add(name)
        self._spread(self.suspends)

    def _variable(self, variable: Variable) -> None:
        if variable.space == "local":
            self.has_local = True
        if variable.space != "shared" or id(variable) in self.shared:
            return
        if variable.linkage == "extern" or variable.count == 0:
            if variable not in self._extern:
                self._extern.append(variable)
            return
        align = alignment(variable)
        at = -(-self.shared_bytes // align) * align
        self.shared[id(variable)] = at
        self.shared_bytes = at + byte_size(variable)

    def _callees(self, call: Instruction) -> list[str]:
        name = self.module.aliases.get(callee(call), callee(call))
        function = self.module.functions.get(name)
        if function is None:
            return [f for f in self.addressed if self.module.functions[f].body]
        if function.body:
            return [name]
        if name in PROVIDED:
            self.has_heap |= name == "malloc"
            return []
        raise PtxError(f"function {name} is declared but not defined", call.line)

    def _spread(self, names: set[str]) -> None:
        """Add to *names* every function that calls one of them."""
        grown = True
        while grown:
            more = {f for f, calls in self.calls.items() if calls & names} - names
            names |= more
            grown = bool(more)

    def _reached(self, name: str) -> set[str]:
        seen: set[str] = set()
        todo = list(self.calls[name])
        while todo:
            function = todo.pop()
            if function not in seen:
                seen.add(function)
                todo += self.calls[function]
        return seen


def address_taken(module: Module) -> list[str]:
    """Functions that are used as values; the position, from 1, stands for the address."""
    found: dict[str, None] = {}

    def note(name: str) -> None:
        name = module.aliases.get(name, name)
        if name in module.functions and not module.functions[name].is_entry:
            found[name] = None

    for variable in module.variables.values():
        for value in variable.init:
            note(getattr(value, "name", ""))
    bodies = [function.body for function in module.functions.values() if function.body]
    for instruction in chain.from_iterable(map(instructions, bodies)):
        if instruction.opcode != "call":
            for name in names_of(instruction.operands[1:]):
                note(name)
    return list(found)
