"""LLVM IR text into native code, by llvmlite."""

from __future__ import annotations

import functools
import threading
from typing import Any

import llvmlite.binding as llvm

_lock = threading.Lock()
_MATH_LIBRARY = "libm.so.6"


@functools.cache
def initialize() -> None:
    """Prepare LLVM for this process: the native target and the C math library's functions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if not llvm.address_of_symbol("exp2f"):
        llvm.load_library_permanently(_MATH_LIBRARY)


def target_machine() -> Any:
    """The host CPU with all its features; an execution engine takes it over."""
    initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


def optimize(text: str, machine: Any, *, fully: bool = True) -> Any:
    """The module of the IR *text*, verified and optimised for *machine*.

    Args:
        fully: run LLVM's O3 pipeline; else only put variables into registers, which is faster.
    """
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    options.loop_interleaving = options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    if fully:
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    return module


class Code:
    """The native code of one module."""

    def __init__(self, text: str, *, fully: bool = True) -> None:
        with _lock:
            machine = target_machine()
            self.engine = llvm.create_mcjit_compiler(optimize(text, machine, fully=fully), machine)
            self.engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function; 0 if the module does not have it."""
        return int(self.engine.get_function_address(name))


@functools.lru_cache(maxsize=512)
def compiled(text: str) -> Code:
    """The native code of a module; the same text is compiled once."""
    return Code(text)


def define(name: str, address: int) -> None:
    """Make generated code that calls *name* reach the function at *address*."""
    initialize()
    llvm.add_symbol(name, address)
