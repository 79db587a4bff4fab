"""One PTX function being translated: its names, registers and parameters in LLVM IR."""

from __future__ import annotations

import struct
from collections import ChainMap
from dataclasses import dataclass

from .analysis import Plan, alignment, byte_size
from .builder import Builder, Module
from .errors import PtxError
from .frame_names import ENVIRONMENT, INVARIANT
from .isa import special_register
from .layout import LAUNCH, THREAD, WORKER
from .syntax import (
    Address,
    Block,
    Float,
    Integer,
    Label,
    Name,
    Negated,
    Operand,
    Prototype,
    Variable,
    Vector,
)
from .types import TYPES, Type


@dataclass
class Register:
    """A register of the program: the alloca that holds it, and its type."""

    slot: str
    type: Type


@dataclass
class Place:
    """A variable: *pointer* to it, or its *address* as a PTX program sees it (i64 text)."""

    space: str
    pointer: str = ""
    address: str = ""


class Frame(Builder):
    """Writes one LLVM function; *addresses* are those of the module's global variables."""

    def __init__(self, module: Module, plan: Plan, addresses: dict[str, int]) -> None:
        super().__init__(module)
        self.plan = plan
        self.addresses = addresses
        self.scopes: ChainMap[str, Register | Place] = ChainMap()
        self.labels: ChainMap[str, str] = ChainMap()
        self.prototypes: dict[str, Prototype] = {}
        self.targets: dict[str, list[str]] = {}
        self.is_device_function = False
        self.return_label = "exit"
        self.carry = ""
        self.line = 0

    # -- scopes

    def declare_block(self, block: Block) -> None:
        """Enter *block*: make its registers, variables and labels known."""
        self.scopes = self.scopes.new_child()
        self.labels = self.labels.new_child()
        for name, kind in block.registers.items():
            self.scopes[name] = Register("", TYPES[kind])
        for variable in block.variables:
            self.scopes[variable.name] = self.place(variable)
        for item in block.items:
            if isinstance(item, Label):
                if item.name in self.labels.maps[0]:
                    raise PtxError(f"label {item.name} is defined twice", item.line)
                self.labels[item.name] = self.fresh("L")
        self.prototypes.update(block.prototypes)
        self.targets.update(block.targets)

    def leave_block(self) -> None:
        """Forget what the innermost block declared."""
        self.scopes = self.scopes.parents
        self.labels = self.labels.parents

    def place(self, variable: Variable) -> Place | Register:
        """Where a variable is; local ones get memory here."""
        if variable.space == "reg":
            return Register(self.alloca(TYPES[variable.type].llvm), TYPES[variable.type])
        if variable.space == "shared":
            return Place("shared", address=str(self.plan.shared[id(variable)]))
        if variable.space in ("local", "param"):
            size = max(byte_size(variable), 1)
            pointer = self.alloca(f"[{size} x i8]", max(alignment(variable), 8))
            return Place(variable.space, pointer)
        return Place(variable.space, address=str(self.addresses[variable.name]))

    def look_up(self, name: str) -> Register | Place | None:
        """The register or variable that *name* means here."""
        found = self.scopes.get(name)
        if found is None and name in self.plan.module.variables:
            found = self.place(self.plan.module.variables[name])
            self.scopes.maps[-1][name] = found
        if isinstance(found, Register) and not found.slot:
            found.slot = self.alloca(found.type.llvm)
        return found

    def label_of(self, name: str) -> str:
        """The LLVM label of a label of the program."""
        if name not in self.labels:
            raise PtxError(f"label {name} is not defined", self.line)
        return self.labels[name]

    # -- operands

    def read(self, operand: Operand, type: Type) -> str:
        """The value of *operand* as a value of type.llvm."""
        if isinstance(operand, Name):
            return self.read_name(operand, type)
        if isinstance(operand, Integer):
            return self.integer(operand.value, type)
        if isinstance(operand, Float):
            return self.constant(operand, type)
        if isinstance(operand, Negated):
            value = self.read(operand.name, type)
            return self.op(f"xor i1 {value}, true")
        if isinstance(operand, Vector):
            return self.pack(operand, type)
        raise PtxError("operand of a kind that the instruction does not take", self.line)

    def integer(self, value: int, type: Type) -> str:
        """A whole number as a constant of *type*."""
        if type.is_float and type.lanes == 1:
            return self.constant(Float(_double_bits(float(value)), 64), type)
        if type.kind == "p":
            return "true" if value else "false"
        value &= (1 << type.bits) - 1
        return str(value) if type.lanes == 1 else f"bitcast (i{type.bits} {value} to {type.llvm})"

    def constant(self, value: Float, type: Type) -> str:
        """A floating point literal, exactly."""
        if not type.is_float or type.lanes > 1:
            return self.integer(value.bits, type)
        width = value.width
        if width == type.bits:
            return f"bitcast (i{width} {value.bits} to {type.llvm})"
        source = "float" if width == 32 else "double"
        how = "fpext" if width < type.bits else "fptrunc"
        return self.op(f"{how} {source} bitcast (i{width} {value.bits} to {source}) to {type.llvm}")

    def read_name(self, name: Name, type: Type) -> str:
        """The value of a register, special register or symbol."""
        found = self.look_up(name.text)
        if isinstance(found, Register):
            value = self.op(f"load {found.type.llvm}, ptr {found.slot}")
            return self.reinterpret(value, found.type, type)
        value, bits = self.symbol(name, found)
        if type.kind == "p":
            raise PtxError(f"{name.text} is not a predicate", self.line)
        return self.reinterpret(value, TYPES[f"u{bits}"], type)

    def symbol(self, name: Name, found: Place | None) -> tuple[str, int]:
        """(value, bits) of a variable's address, a function's number or a special register."""
        if found is not None:
            address = found.address or self.op(f"ptrtoint ptr {found.pointer} to i64")
            if not name.offset:
                return address, 64
            return self.op(f"add i64 {address}, {name.offset}"), 64
        function = self.plan.module.aliases.get(name.text, name.text)
        if function in self.plan.addressed:
            return str(self.plan.addressed.index(function) + 1), 64
        special = special_register(self, name.text)
        if special is None:
            raise PtxError(f"{name.text} is not defined", self.line)
        return special

    def write(self, operand: Operand, type: Type, value: str) -> None:
        """Set a destination operand to a value of type.llvm."""
        if isinstance(operand, Name):
            if operand.text == "_":
                return
            found = self.look_up(operand.text)
            if not isinstance(found, Register):
                raise PtxError(f"{operand.text} is not a register", self.line)
            value = self.reinterpret(value, type, found.type)
            self.do(f"store {found.type.llvm} {value}, ptr {found.slot}")
        elif isinstance(operand, Vector):
            self.unpack(operand, type, value)
        else:
            raise PtxError("destination is not a register", self.line)

    def reinterpret(self, value: str, source: Type, target: Type) -> str:
        """The bits of a value as another type: shorter ones are extended, longer ones cut."""
        if source.llvm == target.llvm:
            return value
        bits = self.cast("bitcast", source.llvm, value, source.integer)
        bits = self.resize(bits, source.bits, target.bits, source.signed)
        return self.cast("bitcast", target.integer, bits, target.llvm)

    def pack(self, operand: Vector, type: Type) -> str:
        """`mov.b64 d, {a, b}`: the elements side by side, the first lowest."""
        bits = type.bits // len(operand.items)
        part = TYPES[f"b{bits}"]
        total = "0"
        for index, item in enumerate(operand.items):
            value = self.resize(self.read(item, part), bits, type.bits)
            value = self.op(f"shl {type.integer} {value}, {index * bits}") if index else value
            total = self.op(f"or {type.integer} {total}, {value}") if index else value
        return self.cast("bitcast", type.integer, total, type.llvm)

    def unpack(self, operand: Vector, type: Type, value: str) -> None:
        """`mov.b64 {a, b}, s`: the parts of a value, the lowest first."""
        bits = type.bits // len(operand.items)
        whole = self.cast("bitcast", type.llvm, value, type.integer)
        for index, item in enumerate(operand.items):
            part = self.op(f"lshr {type.integer} {whole}, {index * bits}") if index else whole
            self.write(item, TYPES[f"b{bits}"], self.resize(part, type.bits, bits))

    # -- memory

    def pointer(self, space: str, address: Operand) -> str:
        """The host pointer of `[base+offset]` in *space* ("" for generic)."""
        if not isinstance(address, Address):
            raise PtxError("expected an address in brackets", self.line)
        base, offset = address.base, address.offset
        if isinstance(base, Name):
            found = self.look_up(base.text)
            if isinstance(found, Place) and found.pointer:
                offset += base.offset
                return self.op(f"getelementptr i8, ptr {found.pointer}, i64 {offset}")
            if isinstance(found, Place) and found.space == "shared":
                space = "shared"
        value = self.read(base, TYPES["u64"])
        if offset:
            value = self.op(f"add i64 {value}, {offset}")
        if self.is_private(space):
            # Not an offset from %memory: LLVM takes it that an argument never points to an alloca.
            return self.op(f"inttoptr i64 {value} to ptr")
        root = "%shared" if space == "shared" else "%memory"
        return self.op(f"getelementptr i8, ptr {root}, i64 {value}")

    def access(self, space: str, address: Operand, size: int) -> str:
        """The host pointer for an access of *size* bytes, checked if the kernel is to be."""
        pointer = self.pointer(space, address)
        unknown = self.is_private(space) or (self.plan.has_heap and space != "shared")
        if self.plan.checked and not unknown:
            at = self.op(f"ptrtoint ptr {pointer} to i64")
            self.check(at, size, space == "shared")
        return pointer

    def check(self, address: str, size: int, shared: bool) -> None:
        """End the thread with an error if an access is not to memory that it may access."""
        arguments = ("ptr %launch", "ptr %worker", f"i64 {address}", f"i64 {size}")
        code = self.call("emulator.check", "i64", *arguments, f"i32 {int(shared)}")
        bad, good = self.fresh("bad"), self.fresh("good")
        self.branch(self.icmp("ne", "i64", code, "0"), bad, good)
        self.label(bad)
        self.fail(self.resize(code, 64, 32), address)
        self.label(good)

    def fail(self, code: str, address: str = "0") -> None:
        """End the launch with a CUresult; this thread ends here."""
        coordinates = [f"i32 {variable.split()[1]}" for variable in ENVIRONMENT[5:]]
        arguments = (f"i32 {code}", f"i32 {self.line}", f"i64 {address}", *coordinates)
        self.call("emulator.fail", "void", "ptr %launch", *arguments)
        self.leave()

    def leave(self) -> None:
        """End the thread; a function that is not part of the kernel's body tells its caller."""
        if self.is_device_function:
            self.do(f"store i32 1, ptr {self.worker('exiting')}")
        self.jump("exit")

    def is_private(self, space: str) -> bool:
        """Whether an access may be to a thread's own memory."""
        return space in ("local", "param") or (not space and self.plan.has_local)

    def group(self, space: str) -> str:
        """Metadata of an access that threads of a block may do in any order."""
        return "" if self.is_private(space) else ", !llvm.access.group !1"

    # -- the launch, worker and thread records

    def launch(self, field: str) -> str:
        """The value of a field of the launch record."""
        address = self.op(LAUNCH.address("%launch", field))
        return self.op(f"load {LAUNCH.types[field]}, ptr {address}{INVARIANT}")

    def worker(self, field: str) -> str:
        """The address of a field of the worker record."""
        return self.op(WORKER.address("%worker", field))

    def thread_record(self) -> str:
        """The address of this thread's record."""
        address = self.worker("threads")
        threads = self.op(f"load ptr, ptr {address}")
        return self.op(f"getelementptr %thread, ptr {threads}, i32 %thread")

    def thread(self, record: str, field: str) -> str:
        """The value of a field of a thread's record."""
        address = self.op(THREAD.address(record, field))
        return self.op(f"load {THREAD.types[field]}, ptr {address}")


def _double_bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])
