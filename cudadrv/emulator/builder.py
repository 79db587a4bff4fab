"""LLVM IR text, one instruction at a time."""

from __future__ import annotations


class Module:
    """The LLVM module being written: declarations and helper functions come once."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self.functions: list[str] = []
        self.types: list[str] = []

    def declare(self, name: str, result: str, arguments: str) -> None:
        """Make an external function known."""
        self.declarations[name] = f"declare {result} @{name}({arguments})"

    def helper(self, name: str, text: str) -> None:
        """Add a function written as IR text, once; its declarations are merged with the others."""
        if name not in self.helpers:
            self.helpers[name] = ""
            self.helpers[name] = self.merge(text)

    def merge(self, text: str) -> str:
        """*text* without its declarations, which are kept."""
        lines = []
        for line in text.split("\n"):
            if line.startswith("declare "):
                self.declarations[line.partition("@")[2].partition("(")[0]] = line
            else:
                lines.append(line)
        return "\n".join(lines)

    def text(self) -> str:
        """The whole module."""
        parts = [*self.types, *self.declarations.values(), *self.helpers.values(), *self.functions]
        return "\n".join([*parts, METADATA])


# !0: an empty node for !invariant.load. !1: the access group of the loop over a block's threads.
METADATA = """
!0 = !{}
!1 = distinct !{}
!2 = distinct !{!2, !3, !4}
!3 = !{!"llvm.loop.parallel_accesses", !1}
!4 = !{!"llvm.loop.mustprogress"}
"""


class Builder:
    """The body of one function: instructions in basic blocks, allocas gathered at its start."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.count = 0
        self.terminated = False

    def fresh(self, prefix: str = "v") -> str:
        """A name that this function has not used yet, without its %."""
        self.count += 1
        return f"{prefix}{self.count}"

    def do(self, text: str) -> None:
        """An instruction without a value."""
        if self.terminated:
            self.label(self.fresh("dead"))
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        """An instruction with a value; gives its name."""
        name = "%" + self.fresh()
        self.do(f"{name} = {text}")
        return name

    def call(self, name: str, result: str, *arguments: str) -> str:
        """Call the function or intrinsic *name*; arguments as "i32 %x"."""
        types = ", ".join(_type_of(argument) for argument in arguments)
        if name not in self.module.helpers:
            self.module.declare(name, result, types)
        text = f"call {result} @{name}({', '.join(arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def label(self, name: str) -> None:
        """Start a basic block; the one before falls through to it."""
        if not self.terminated:
            self.lines.append(f"  br label %{name}")
        self.lines.append(f"{name}:")
        self.terminated = False

    def jump(self, label: str) -> None:
        """End the block by going to *label*."""
        self.end(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """End the block by going to one of two labels."""
        self.end(f"br i1 {condition}, label %{yes}, label %{no}")

    def end(self, text: str) -> None:
        """A terminator."""
        self.do(text)
        self.terminated = True

    def alloca(self, kind: str, align: int = 0) -> str:
        """Memory of the function, taken at its entry; gives the pointer."""
        name = "%" + self.fresh("a")
        self.allocas.append(f"  {name} = alloca {kind}" + (f", align {align}" if align else ""))
        return name

    # -- shorthands

    def icmp(self, test: str, kind: str, x: str, y: str) -> str:
        """Compare two integers; gives an i1."""
        return self.op(f"icmp {test} {kind} {x}, {y}")

    def select(self, condition: str, kind: str, x: str, y: str) -> str:
        """One of two values."""
        return self.op(f"select i1 {condition}, {kind} {x}, {kind} {y}")

    def cast(self, how: str, source: str, value: str, target: str) -> str:
        """A conversion; nothing where the types are the same."""
        return value if source == target else self.op(f"{how} {source} {value} to {target}")

    def resize(self, value: str, source: int, target: int, signed: bool = False) -> str:
        """An integer of *source* bits as one of *target* bits."""
        how = "trunc" if target < source else ("sext" if signed else "zext")
        return self.cast(how, f"i{source}", value, f"i{target}")


def _type_of(argument: str) -> str:
    """The type in "i32 %x" or "<2 x half> %x"."""
    if argument[0] == "<":
        return argument[: argument.index(">") + 1]
    return argument.partition(" ")[0]
