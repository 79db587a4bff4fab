"""A kernel of a PTX module into the text of an LLVM module."""

from __future__ import annotations

from collections import ChainMap

from . import scheduler
from .analysis import PROVIDED, SET_CONDITION, Plan, callee, param_layout
from .builder import Module
from .errors import PtxError
from .frame import Frame, Place, Register
from .frame_names import ENVIRONMENT
from .isa import Op
from .layout import DONE, LAUNCH, LEVEL, TEXTURE, THREAD, WORKER
from .syntax import Block, Function, Group, Instruction, Label, Name, Operand, Variable
from .types import TYPES

ARGUMENTS = ", ".join(ENVIRONMENT)


def translate(plan: Plan, addresses: dict[str, int]) -> str:
    """LLVM IR of `block`, which runs a block, or if threads may wait of `thread`, a coroutine."""
    module = Module()
    module.types = [record.llvm for record in (LAUNCH, WORKER, THREAD, LEVEL, TEXTURE)]
    inlined = plan.suspends | {plan.entry.name}
    for name, function in plan.functions.items():
        if name not in inlined:
            Translator(module, plan, addresses).device_function(function)
    suspends = plan.entry.name in plan.suspends
    Translator(module, plan, addresses).kernel(plan.entry, suspends)
    module.functions.append(module.merge(scheduler.CORO if suspends else scheduler.loop()))
    return module.text()


class Translator(Frame):
    """Writes the statements of a function."""

    # -- functions

    def kernel(self, function: Function, suspends: bool) -> None:
        """The function that is one thread of the kernel, `thread`."""
        assert function.body is not None
        self.kernel_params(function.params)
        self.statements(function.body)
        self.label("exit")
        if self.plan.exits - {function.name}:
            self.do(f"store i32 0, ptr {self.worker('exiting')}")
        head = f"define internal void @thread({ARGUMENTS}) alwaysinline null_pointer_is_valid {{"
        lines = [head, "entry:", *self.allocas, *self.lines, "  ret void", "}"]
        if suspends:
            self.set_state(DONE)
            lines = scheduler.coroutine(ARGUMENTS, self.allocas, self.lines)
        self.module.functions.append("\n".join(lines))

    def kernel_params(self, params: list[Variable]) -> None:
        """Make the parameters known, in the memory that the launch gives."""
        if not params:
            return
        block = self.launch("params")
        for param, (offset, _) in zip(params, param_layout(params), strict=True):
            pointer = self.op(f"getelementptr i8, ptr {block}, i64 {offset}")
            self.scopes[param.name] = Place("kernel param", pointer)

    def device_function(self, function: Function) -> None:
        """`define internal void @f(environment, ptr result..., ptr parameter...)`"""
        assert function.body is not None
        self.is_device_function = True
        names = [f"%p{i}" for i in range(len(function.returns) + len(function.params))]
        self.bind_params(function, names)
        self.statements(function.body)
        self.label("exit")
        self.function_results(function, names)
        arguments = ", ".join([*ENVIRONMENT, *(f"ptr {name}" for name in names)])
        head = f"define internal void {symbol(function.name)}({arguments}) null_pointer_is_valid {{"
        lines = [head, "entry:", *self.allocas, *self.lines, "  ret void", "}"]
        self.module.functions.append("\n".join(lines))

    def bind_params(self, function: Function, pointers: list[str]) -> None:
        """Make parameters and results known under their names, in the memory *pointers*."""
        for variable, pointer in zip([*function.returns, *function.params], pointers, strict=True):
            if variable.space == "reg":
                kind = TYPES[variable.type]
                register = Register(self.alloca(kind.llvm), kind)
                value = self.op(f"load {kind.llvm}, ptr {pointer}")
                self.do(f"store {kind.llvm} {value}, ptr {register.slot}")
                self.scopes[variable.name] = register
            else:
                self.scopes[variable.name] = Place("param", pointer)

    def function_results(self, function: Function, pointers: list[str]) -> None:
        """Store results that are registers where the caller expects them."""
        for variable, pointer in zip(function.returns, pointers, strict=False):
            found = self.scopes[variable.name]
            if isinstance(found, Register):
                value = self.op(f"load {found.type.llvm}, ptr {found.slot}")
                self.do(f"store {found.type.llvm} {value}, ptr {pointer}")

    # -- statements

    def statements(self, block: Block) -> None:
        """Translate a block."""
        self.declare_block(block)
        for item in block.items:
            if isinstance(item, Instruction):
                self.line = item.line
                self.instruction(item)
            elif isinstance(item, Label):
                self.label(self.labels[item.name])
            else:
                self.statements(item)
        self.leave_block()

    def instruction(self, raw: Instruction) -> None:
        """Translate an instruction, with a branch around it if it is guarded."""
        op = Op(raw)
        if raw.guard is None:
            self.emit(op)
            return
        yes, no = self.fresh("do"), self.fresh("skip")
        self.branch(self.read(raw.guard, TYPES["pred"]), yes, no)
        self.label(yes)
        self.emit(op)
        self.label(no)

    def emit(self, op: Op) -> None:
        """Translate an instruction; an error gets its line."""
        try:
            op.emit(self)
        except PtxError as error:
            error.line = error.line or op.raw.line
            raise
        except (IndexError, KeyError) as error:
            what = f"{op.raw.name!r} lacks an operand or a modifier"
            raise PtxError(what, op.raw.line) from error

    # -- calls

    def call_function(self, raw: Instruction) -> None:
        """`call (results), f, (arguments), prototype;`"""
        at = next(i for i, operand in enumerate(raw.operands) if isinstance(operand, Name))
        results = raw.operands[0].items if isinstance(raw.operands[0], Group) and at else ()
        rest = raw.operands[at + 1 :]
        arguments = rest[0].items if rest and isinstance(rest[0], Group) else ()
        name = self.plan.module.aliases.get(callee(raw), callee(raw))
        pointers = [self.argument(operand) for operand in (*results, *arguments)]
        function = self.plan.module.functions.get(name)
        if function is None:
            self.call_indirect(raw.operands[at], len(results), pointers)
        elif function.body is None and name in PROVIDED:
            self.call_provided(name, pointers)
        else:
            self.call_direct(function, pointers)
        for operand, pointer in zip(results, pointers, strict=False):
            self.store_result(operand, pointer)

    def argument(self, operand: Operand) -> str:
        """A pointer to the memory of an argument or result."""
        found = self.look_up(operand.text) if isinstance(operand, Name) else None
        if isinstance(found, Place) and found.pointer:
            return found.pointer
        kind = found.type if isinstance(found, Register) else TYPES["b64"]
        slot = self.alloca(kind.llvm)
        self.do(f"store {kind.llvm} {self.read(operand, kind)}, ptr {slot}")
        return slot

    def store_result(self, operand: Operand, pointer: str) -> None:
        """Put a call's result into a register."""
        found = self.look_up(operand.text) if isinstance(operand, Name) else None
        if isinstance(found, Register):
            self.write(operand, found.type, self.op(f"load {found.type.llvm}, ptr {pointer}"))

    def call_direct(self, function: Function, pointers: list[str]) -> None:
        """Call a function that is known by name."""
        if len(pointers) != len(function.returns) + len(function.params):
            raise PtxError(f"{function.name} takes {len(function.params)} arguments", self.line)
        if function.name in self.plan.suspends:
            self.inline(function, pointers)
            return
        environment = ", ".join(ENVIRONMENT)
        arguments = ", ".join([environment, *(f"ptr {pointer}" for pointer in pointers)])
        self.do(f"call void {symbol(function.name)}({arguments})")
        if function.name in self.plan.exits:
            self.leave_if_exiting()

    def leave_if_exiting(self) -> None:
        """After a call in which the thread may have ended: end here too."""
        exiting = self.op(f"load i32, ptr {self.worker('exiting')}")
        stay = self.fresh("stay")
        self.branch(self.icmp("ne", "i32", exiting, "0"), "exit", stay)
        self.label(stay)

    def inline(self, function: Function, pointers: list[str]) -> None:
        """Translate the body in place: a thread can only wait in the coroutine itself."""
        assert function.body is not None
        saved = self.scopes, self.labels, self.return_label, self.prototypes, self.targets
        self.scopes, self.labels, self.prototypes, self.targets = ChainMap(), ChainMap(), {}, {}
        self.return_label = self.fresh("return")
        self.bind_params(function, pointers)
        self.statements(function.body)
        self.label(self.return_label)
        self.function_results(function, pointers)
        self.scopes, self.labels, self.return_label, self.prototypes, self.targets = saved

    def call_indirect(self, operand: Operand, results: int, pointers: list[str]) -> None:
        """A switch over all functions whose address is taken and that take such arguments."""
        number = self.read(operand, TYPES["u64"])
        done, wrong = self.fresh("called"), self.fresh("wrong")
        fitting = []
        for index, name in enumerate(self.plan.addressed):
            function = self.plan.module.functions[name]
            same = len(function.returns) == results
            if function.body and same and len(function.params) + results == len(pointers):
                fitting.append((index + 1, self.fresh("f"), function))
        cases = " ".join(f"i64 {index}, label %{label}" for index, label, _ in fitting)
        self.end(f"switch i64 {number}, label %{wrong} [ {cases} ]")
        for _, label, function in fitting:
            self.label(label)
            self.call_direct(function, pointers)
            self.jump(done)
        self.label(wrong)
        self.fail("717")
        self.label(done)

    def call_provided(self, name: str, pointers: list[str]) -> None:
        """Call a function that the emulator provides."""
        if name == "vprintf":
            arguments = [f"i64 {self.op(f'load i64, ptr {p}')}" for p in pointers[-2:]]
            value = self.call("emulator.vprintf", "i32", *arguments)
            self.do(f"store i32 {value}, ptr {pointers[0]}")
        elif name == "__assertfail":
            kinds = ("i64", "i64", "i32", "i64")
            loaded = [self.op(f"load {k}, ptr {p}") for k, p in zip(kinds, pointers, strict=False)]
            arguments = [f"{k} {v}" for k, v in zip(kinds, loaded, strict=True)]
            self.call("emulator.assertfail", "void", *arguments)
            self.fail("710")
        elif name == SET_CONDITION:
            handle, value = (
                self.op(f"load {k}, ptr {p}") for k, p in zip(("i64", "i32"), pointers, strict=True)
            )
            self.call("emulator.condition", "void", f"i64 {handle}", f"i32 {value}")
        elif name == "malloc":
            size = self.op(f"load i64, ptr {pointers[1]}")
            self.do(f"store ptr {self.call('malloc', 'ptr', f'i64 {size}')}, ptr {pointers[0]}")
        else:
            self.call("free", "void", f"ptr {self.op(f'load ptr, ptr {pointers[-1]}')}")

    # -- waiting

    def set_state(self, state: int) -> None:
        """Tell the scheduler what this thread waits for."""
        self.do(f"store i32 {state}, ptr {self.worker('state')}")

    def suspend(self, state: int, **fields: str) -> str:
        """Wait in *state* with the fields of the thread record set; gives the record."""
        record = self.thread_record()
        for field, value in fields.items():
            address = self.op(THREAD.address(record, field))
            self.do(f"store {THREAD.types[field]} {value}, ptr {address}")
        self.wait(state)
        return record

    def wait(self, state: int) -> None:
        """Wait in *state*; the scheduler resumes the coroutine here."""
        self.set_state(state)
        resume = self.fresh("resume")
        got = self.op("call i8 @llvm.coro.suspend(token none, i1 false)")
        self.end(f"switch i8 {got}, label %suspend [ i8 0, label %{resume} i8 1, label %suspend ]")
        self.label(resume)


def symbol(name: str) -> str:
    """The name of a translated function."""
    return f'@"f.{name}"'
