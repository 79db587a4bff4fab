"""What is wrong with a parsed module: unknown instructions, modifiers and names, found at load."""

from __future__ import annotations

import re

from .analysis import PROVIDED, names_of
from .errors import PtxError
from .isa import REGISTERS, Op
from .syntax import Block, Function, Instruction, Label, Module


def check(module: Module, capability: tuple[int, int]) -> None:
    """Look at the target and at every instruction of every function.

    Raises:
        PtxError: the first thing that is wrong.
    """
    if module.address_size != 64:
        raise PtxError("only .address_size 64 is supported", unsupported=True)
    for name in module.target:
        _target(name, capability)
    common = {"_", *REGISTERS, *module.variables, *module.functions, *module.aliases}
    for function in module.functions.values():
        if function.body:
            names = {v.name for v in (*function.params, *function.returns)}
            _block(module, function.body, common | names)


def _target(name: str, capability: tuple[int, int]) -> None:
    """sm_90 runs on 9.0 and later, sm_90a on 9.0 only, sm_100f on 10.0 to 10.9."""
    wanted = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)([af]?)", name)
    if not wanted:
        return
    least, kind = (int(wanted[1]), int(wanted[2])), wanted[3]
    fits = capability >= least
    if kind:
        fits &= capability == least if kind == "a" else capability[0] == least[0]
    if not fits:
        has = f"the device has compute capability {capability[0]}.{capability[1]}"
        raise PtxError(f".target {name} does not run here: {has} (CUDADRV_EMULATOR_CC sets it)")


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
    op = Op(instruction)
    op.check_operands()
    op.check_modifiers()
    guard = (instruction.guard,) if instruction.guard else ()
    for name in names_of((*guard, *instruction.operands)):
        if name not in names:
            raise PtxError(f"{name} is not defined", instruction.line)
        if instruction.opcode == "call":
            _function(module.functions.get(name), instruction)


def _function(function: Function | None, instruction: Instruction) -> None:
    if function and not function.body and function.name not in PROVIDED:
        raise PtxError(f"function {function.name} is declared but not defined", instruction.line)
