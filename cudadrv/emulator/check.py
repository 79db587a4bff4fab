"""What is wrong with a parsed module: unknown instructions, modifiers and names, found at load."""

from __future__ import annotations

from .analysis import PROVIDED, names_of
from .errors import PtxError
from .isa import REGISTERS, Op
from .syntax import Block, Function, Instruction, Label, Module


def check(module: Module) -> None:
    """Look at every instruction of every function.

    Raises:
        PtxError: the first thing that is wrong.
    """
    if module.address_size != 64:
        raise PtxError("only .address_size 64 is supported", unsupported=True)
    common = {"_", *REGISTERS, *module.variables, *module.functions, *module.aliases}
    for function in module.functions.values():
        if function.body:
            names = {v.name for v in (*function.params, *function.returns)}
            _block(module, function.body, common | names)


def _block(module: Module, block: Block, names: set[str]) -> None:
    labels = [item.name for item in block.items if isinstance(item, Label)]
    inside = names | {*block.registers, *block.targets, *block.prototypes, *labels}
    inside |= {variable.name for variable in block.variables}
    for item in block.items:
        if isinstance(item, Block):
            _block(module, item, inside)
        elif isinstance(item, Instruction):
            _instruction(module, item, inside)


def _instruction(module: Module, instruction: Instruction, names: set[str]) -> None:
    Op(instruction).check_operands()
    guard = (instruction.guard,) if instruction.guard else ()
    for name in names_of((*guard, *instruction.operands)):
        if name not in names:
            raise PtxError(f"{name} is not defined", instruction.line)
        if instruction.opcode == "call":
            _function(module.functions.get(name), instruction)


def _function(function: Function | None, instruction: Instruction) -> None:
    if function and not function.body and function.name not in PROVIDED:
        raise PtxError(f"function {function.name} is declared but not defined", instruction.line)
