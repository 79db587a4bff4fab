"""PTX text into a syntax.Module."""

from __future__ import annotations

import struct

from .errors import PtxError
from .lexer import Token, tokenize
from .syntax import (
    Address,
    Block,
    Float,
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
    Prototype,
    Reference,
    Variable,
    Vector,
)
from .types import TYPES

LINKAGE = {".visible", ".extern", ".weak", ".common"}
SPACES = {".reg", ".global", ".const", ".shared", ".local", ".param", ".tex"}
# Directives between a function's parameters and its body, with the numbers that follow them.
FUNCTION_DIRECTIVES = {
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".noreturn", ".pragma",
    ".explicitcluster", ".reqnctapercluster", ".maxclusterrank", ".blocksareclusters",
    ".abi_preserve", ".abi_preserve_control", ".unified", ".attribute",
}  # fmt: skip


def parse(text: str) -> Module:
    """The module that *text* says.

    Raises:
        PtxError: a syntax error, with the number and text of its line.
    """
    try:
        return _Parser(tokenize(text)).module()
    except PtxError as error:
        lines = text.split("\n")
        if 0 < error.line <= len(lines):
            error.text = lines[error.line - 1]
        raise


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.out = Module()
        self.source: tuple[int, int] | None = None

    # -- tokens

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, text: str) -> bool:
        token = self.tokens[self.at]
        if token.text == text and token.kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected {text!r}")

    def word(self, what: str) -> str:
        if self.now.kind != "word":
            raise self.error(f"expected {what}")
        return self.next().text

    def integer(self) -> int:
        negative = self.accept("-")
        if self.now.kind != "number" or not self.now.text[0].isdigit():
            raise self.error("expected an integer")
        value = _integer(self.next())
        return -value if negative else value

    def error(self, message: str) -> PtxError:
        found = self.now.text or "the end of the text"
        return PtxError(f"{message}, found {found!r}", self.now.line)

    def rest_of_line(self) -> list[Token]:
        line, found = self.now.line, []
        while self.now.line == line and self.now.kind != "end":
            found.append(self.next())
        return found

    # -- module

    def module(self) -> Module:
        if self.now.text != ".version":
            raise self.error("a module starts with .version")
        while self.now.kind != "end":
            self.directive()
        return self.out

    def directive(self) -> None:
        token = self.now
        simple = {
            ".version": self.version, ".target": self.target, ".address_size": self.address_size,
            ".file": self.file, ".section": self.section, ".alias": self.alias, ".loc": self.loc,
            ".pragma": self.skip_statement,
        }  # fmt: skip
        if token.text in simple:
            self.next()
            simple[token.text]()
            return
        linkage = ""
        while self.now.text in LINKAGE:
            linkage = self.next().text[1:]
        if self.now.text in (".entry", ".func"):
            self.function(linkage)
        elif self.now.text in SPACES:
            for variable in self.variables(linkage):
                self.add_variable(variable)
        elif not self.accept(";"):
            raise self.error("expected a module directive")

    def add_variable(self, variable: Variable) -> None:
        known = self.out.variables.get(variable.name)
        if known is None or known.linkage == "extern":
            self.out.variables[variable.name] = variable
        elif variable.linkage != "extern":
            raise PtxError(f"{variable.name} is defined twice", variable.line)

    def version(self) -> None:
        major, _, minor = self.next().text.partition(".")
        if not (major.isdigit() and minor.isdigit()):
            raise self.error("expected a version such as 8.0")
        self.out.version = (int(major), int(minor))

    def target(self) -> None:
        names = [self.word("a target")]
        while self.accept(","):
            names.append(self.word("a target"))
        self.out.target = tuple(names)

    def address_size(self) -> None:
        self.out.address_size = self.integer()

    def file(self) -> None:
        tokens = self.rest_of_line()
        if len(tokens) > 1 and tokens[0].kind == "number" and tokens[1].kind == "string":
            self.out.files[int(tokens[0].text)] = tokens[1].text[1:-1]

    def section(self) -> None:
        self.next()
        self.expect("{")
        while not self.accept("}"):
            if self.next().kind == "end":
                raise self.error("expected '}'")

    def alias(self) -> None:
        name = self.word("a name")
        self.expect(",")
        self.out.aliases[name] = self.word("a function")
        self.expect(";")

    def skip_statement(self) -> None:
        while not self.accept(";"):
            if self.next().kind == "end":
                raise self.error("expected ';'")

    # -- variables

    def variables(self, linkage: str = "") -> list[Variable]:
        """`.space .attributes .type name[n] = init, name ...;`"""
        first = self.variable(linkage)
        found = [first]
        while self.accept(","):
            more = Variable(first.space, first.type, "", self.now.line, first.align)
            more.vector, more.linkage = first.vector, linkage
            found.append(self.declarator(more))
        self.expect(";")
        return found

    def variable(self, linkage: str = "") -> Variable:
        token = self.next()
        found = Variable(token.text[1:].partition("::")[0], "", "", token.line, linkage=linkage)
        while self.now.kind == "directive":
            self.variable_attribute(found)
        if not found.type:
            raise self.error("expected a type")
        return self.declarator(found)

    def variable_attribute(self, found: Variable) -> None:
        text = self.next().text[1:]
        if text == "align":
            align = self.integer()
            if align < 1 or align & (align - 1):
                raise PtxError(f"alignment {align} is not a power of two", self.now.line)
            found.align = found.align or align
        elif text in ("v2", "v4", "v8"):
            found.vector = int(text[1])
        elif text == "attribute":
            self.expect("(")
            while not self.accept(")"):
                found.managed |= self.next().text == ".managed"
        elif text == "ptr":
            # `.ptr .global .align 4`: about what it points to
            if self.now.text in SPACES:
                self.next()
            if self.accept(".align"):
                self.integer()
        elif text in TYPES or text in ("texref", "samplerref", "surfref"):
            found.type = text if text in TYPES else "b64"
        else:
            self.at -= 1
            raise self.error("expected a type")

    def declarator(self, found: Variable) -> Variable:
        found.line = self.now.line
        if self.now.kind == "word":
            found.name = self.next().text
        while self.accept("["):
            size = 0
            if self.now.text != "]":
                size = self.integer()
            found.count = size if found.count is None else found.count * size
            self.expect("]")
        if self.accept("="):
            found.init = self.initialiser()
            if found.count == 0:
                found.count = len(found.init)
        return found

    def initialiser(self) -> list[Integer | Float | Reference]:
        if not self.accept("{"):
            return [self.initial_value()]
        found: list[Integer | Float | Reference] = []
        while not self.accept("}"):
            found += self.initialiser()
            self.accept(",")
        return found

    def initial_value(self) -> Integer | Float | Reference:
        if self.now.kind in ("number", "punct"):
            value = self.number()
            if isinstance(value, Integer) and self.accept("("):
                inner = self.reference()
                self.expect(")")
                return Reference(inner.name, inner.offset, inner.generic, value.value)
            return value
        return self.reference()

    def reference(self) -> Reference:
        name = self.word("a symbol")
        generic = name == "generic" and self.accept("(")
        if generic:
            name = self.word("a symbol")
            self.expect(")")
        return Reference(name, self.offset(), generic)

    def offset(self) -> int:
        if self.accept("+"):
            return self.integer()
        if self.accept("-"):
            return -self.integer()
        return 0

    def number(self) -> Integer | Float:
        negative = self.accept("-")
        token = self.now
        if token.kind != "number":
            raise self.error("expected a number")
        self.next()
        text = token.text
        if text[:2] in ("0f", "0F", "0d", "0D"):
            width = 32 if text[1] in "fF" else 64
            bits = int(text[2:], 16)
            return Float(bits ^ (negative << (width - 1)), width)
        if text[:2] not in ("0x", "0X") and ("." in text or "e" in text.lower()):
            value = -float(text) if negative else float(text)
            return Float(struct.unpack("<Q", struct.pack("<d", value))[0], 64)
        number = _integer(token)
        return Integer(-number if negative else number)

    # -- functions

    def function(self, linkage: str) -> None:
        is_entry = self.next().text == ".entry"
        while self.now.text in (".attribute", ".noreturn"):
            self.function_directive({})
        returns = self.params() if not is_entry and self.now.text == "(" else []
        line = self.now.line
        found = Function(self.word("a function name"), is_entry, line, linkage, returns)
        found.params = self.params() if self.now.text == "(" else []
        while self.now.kind == "directive":
            self.function_directive(found.directives)
        if not self.accept(";"):
            self.source = None
            found.body = self.block()
        known = self.out.functions.get(found.name)
        if known is not None and known.body and found.body:
            raise PtxError(f"{found.name} is defined twice", line)
        if known is None or found.body:
            self.out.functions[found.name] = found

    def function_directive(self, into: dict[str, tuple[int, ...]]) -> None:
        if self.now.text not in FUNCTION_DIRECTIVES:
            raise self.error("expected a function directive or body")
        name = self.next().text[1:]
        values: list[int] = []
        if self.accept("("):
            while not self.accept(")"):
                self.next()
        while self.now.kind in ("number", "string"):
            token = self.next()
            values.append(_integer(token) if token.kind == "number" else 0)
            if not self.accept(","):
                break
        if name == "pragma":
            self.accept(";")
        into[name] = tuple(values)

    def params(self) -> list[Variable]:
        self.expect("(")
        found: list[Variable] = []
        while not self.accept(")"):
            if self.now.text not in (".param", ".reg"):
                raise self.error("expected .param")
            found.append(self.variable())
            if not self.accept(",") and self.now.text != ")":
                raise self.error("expected ',' or ')'")
        return found

    # -- bodies

    def block(self) -> Block:
        self.expect("{")
        found = Block()
        while not self.accept("}"):
            self.statement(found)
        return found

    def statement(self, block: Block) -> None:
        token = self.now
        if token.kind == "directive":
            self.body_directive(block)
        elif token.text == "{":
            block.items.append(self.block())
        elif token.kind == "word" and self.tokens[self.at + 1].text == ":":
            self.at += 2
            self.label(token, block)
        elif token.kind == "word" or token.text == "@":
            block.items.append(self.instruction())
        elif not self.accept(";"):
            raise self.error("expected an instruction")

    def label(self, name: Token, block: Block) -> None:
        if self.accept(".callprototype"):
            returns = self.params() if self.now.text == "(" else []
            self.word("'_'")
            params = self.params() if self.now.text == "(" else []
            while self.now.kind == "directive":
                self.function_directive({})
            block.prototypes[name.text] = Prototype(returns, params)
            self.expect(";")
        elif self.now.text in (".branchtargets", ".calltargets"):
            self.next()
            names = [self.word("a label")]
            while self.accept(","):
                names.append(self.word("a label"))
            block.targets[name.text] = names
            self.expect(";")
        else:
            block.items.append(Label(name.text, name.line))

    def body_directive(self, block: Block) -> None:
        text = self.now.text
        if text == ".reg":
            self.registers(block)
        elif text in SPACES:
            block.variables += self.variables()
        elif text == ".loc":
            self.next()
            self.loc()
        elif text == ".pragma":
            self.skip_statement()
        elif text in LINKAGE:
            self.next()
        else:
            raise self.error("expected a declaration or an instruction")

    def loc(self) -> None:
        tokens = self.rest_of_line()
        if len(tokens) > 1 and tokens[0].kind == tokens[1].kind == "number":
            self.source = (int(tokens[0].text), int(tokens[1].text))

    def registers(self, block: Block) -> None:
        """`.reg .b32 %r<5>;` or `.reg .pred p, q;`"""
        self.next()
        kind = self.next().text[1:]
        if kind not in TYPES:
            self.at -= 1
            raise self.error("expected a register type")
        while True:
            name = self.word("a register name")
            if self.accept("<"):
                for index in range(self.integer()):
                    block.registers[f"{name}{index}"] = kind
                self.expect(">")
            else:
                block.registers[name] = kind
            if not self.accept(","):
                break
        self.expect(";")

    def instruction(self) -> Instruction:
        guard: Name | Negated | None = None
        if self.accept("@"):
            negated = self.accept("!")
            guard = Name(self.word("a predicate"))
            guard = Negated(guard) if negated else guard
        token = self.now
        opcode, *modifiers = self.word("an instruction").split(".")
        operands: list[Operand] = []
        while not self.accept(";"):
            operands.append(self.operand())
            if not self.accept(",") and self.now.text != ";":
                raise self.error("expected ',' or ';'")
        source = self.source
        return Instruction(opcode, tuple(modifiers), tuple(operands), token.line, guard, source)

    def operand(self) -> Operand:
        token = self.now
        if token.kind == "word":
            self.next()
            if self.tokens[self.at].text in "|+-":
                return self.after_name(token.text)
            return Name(token.text)
        if token.kind == "number" or token.text == "-":
            return self.number()
        if self.accept("["):
            return self.address()
        if self.accept("{"):
            return Vector(self.operands_until("}"))
        if self.accept("("):
            return Group(self.operands_until(")"))
        if self.accept("!"):
            return Negated(Name(self.word("a predicate")))
        raise self.error("expected an operand or ';'")

    def after_name(self, name: str) -> Operand:
        if self.accept("|"):
            return Pair(Name(name), self.operand())
        return Name(name, self.offset())

    def operands_until(self, end: str) -> tuple[Operand, ...]:
        found: list[Operand] = []
        while not self.accept(end):
            found.append(self.operand())
            if not self.accept(",") and self.now.text != end:
                raise self.error(f"expected ',' or {end!r}")
        return tuple(found)

    def address(self) -> Address:
        base: Name | Integer
        if self.now.kind == "number":
            base = Integer(self.integer())
        else:
            base = Name(self.word("an address"))
        offset = self.offset()
        more: list[Operand] = []
        while self.accept(","):
            more.append(self.operand())
        self.expect("]")
        return Address(base, offset, tuple(more))


def _integer(token: Token) -> int:
    text = token.text.rstrip("U")
    try:
        if text[:2] in ("0x", "0X", "0b", "0B"):
            return int(text, 0)
        if len(text) > 1 and text[0] == "0":
            return int(text, 8)
        return int(text)
    except ValueError:
        raise PtxError(f"not an integer: {token.text!r}", token.line) from None
