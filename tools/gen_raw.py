"""Turns cuda.h and cudaTypedefs.h into cudadrv/raw/table.py: names, types, numbers, versions.

Usage: python tools/gen_raw.py [--check] [FOLDER]

FOLDER holds the two headers; by default it is that of the nvidia-cuda-runtime wheel. With --check
nothing is written, and the exit status is 1 when the table differs from what the headers give.
Needs pcpp and pycparser.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pcpp import Action, OutputDirective, Preprocessor
from pycparser import c_ast, c_parser

TABLE = Path(__file__).parents[1] / "cudadrv" / "raw" / "table.py"
# What the two system headers that cuda.h includes declare, as far as it uses them.
SYSTEM_TYPES = "typedef unsigned long size_t; typedef unsigned uint32_t;"
SYSTEM_TYPES += "typedef unsigned long long uint64_t;\n"
# The functions of cudaProfiler.h, which the wheel does not have.
PROFILER = {
    "cuProfilerInitialize": (
        4000,
        "const char* configFile, const char* outputFile, CUoutput_mode outputMode",
    ),
    "cuProfilerStart": (4000, ""),
    "cuProfilerStop": (4000, ""),
}
PROFILER_ENUMS = {"CUoutput_mode": {"CU_OUT_KEY_VALUE_PAIR": 0, "CU_OUT_CSV": 1}}
# Pointer parameters through which nothing comes back, or not to one object: arrays, in-structs and
# values that are read as well. The parameters of these names are passed by the caller as they are.
NOT_RETURNED = re.compile(
    r"""args | attr | attributes | attrs | attrsIdxs | capabilities | cliqueInfo | ctxCreateParams |
    data | dataSizes | dependencies | dependentNodes | dptrs | dsts | edgeData | extra | from |
    functions | groupParams | input | instantiateParams | iterator | jitOptions |
    jitOptionsValues | kernelParams | kernels | launchParamsList | libraryOptionValues |
    libraryOptions | location | location_out | mapInfoList | mode | nbGroups | nodeParams |
    nodes | numDependencies | numDependentNodes | numEdges | numNodes | numRootNodes | op |
    opList | operations | optionValues | options | pBorderColor | paramArray | paramsArray |
    prefetchLocIdxs | prefetchLocs | remainder | resource | resources | result | rootNodes |
    shareData | size | sizes | srcs | streamCigCaptureParams | tensorMap | to""",
    re.VERBOSE,
)
# The macros that say which ABI version a plain name means.
ALIAS = r"^#define\s+(cu[A-Z]\w*)\s+(?:__CUDA_API_PT[DS][SZ]\()?(?!\1\b)(cu\w+(?<!_ptsz))\)?\s*$"
# ... but in these functions they are results.
RETURNED = re.compile(
    r"cu(Graph\w*NodeGetParams|(Device|Ctx|GreenCtx|Stream)GetDevResource|TexRefGetBorderColor)"
)


class Reader(Preprocessor):  # type: ignore[misc]
    """The C preprocessor, leaving system headers out."""

    def __init__(self, *defines: str) -> None:
        super().__init__()
        self.line_directive = None
        for define in ("__LP64__ 1", "__STDC_VERSION__ 199901L", *defines):
            self.define(define)

    def on_include_not_found(self, *_: object) -> None:
        """Skip stdlib.h and stdint.h, which SYSTEM_TYPES stands for."""
        raise OutputDirective(Action.IgnoreAndRemove)

    def on_comment(self, token: object) -> bool:
        """Drop every comment: the table holds facts only."""
        return False

    def read(self, text: str) -> str:
        """The preprocessed *text*."""
        out = io.StringIO()
        self.parse(text)
        self.write(out)
        return out.getvalue()


class Table:
    """What the headers declare, in dictionaries of plain literals."""

    def __init__(self) -> None:
        self.functions: dict[str, tuple[int, str]] = {}
        self.aliases: dict[str, str] = {}
        self.typedefs: dict[str, str] = {}
        self.enums: dict[str, dict[str, int]] = {}
        self.records: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {}
        self.constants: dict[str, int] = {}
        self.values: dict[str, int] = {}
        self.skipped: list[str] = []

    def add(self, node: c_ast.Node) -> None:
        """Enter one top-level declaration."""
        if isinstance(node, c_ast.Typedef):
            self.add_typedef(node)
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            self.functions[node.name] = (0, self.signature(node.name, node.type))
        elif isinstance(node, c_ast.Decl):
            self.define(node.type, getattr(node.type, "name", None) or "")

    def add_typedef(self, node: c_ast.Typedef) -> None:
        """Enter a typedef; a struct or enum defined in it goes by the typedef's name."""
        inner = getattr(node.type, "type", None)
        tag = getattr(inner, "name", None)
        if self.define(inner, node.name):
            if tag and tag != node.name:
                self.typedefs[tag] = node.name
        else:
            self.typedefs[node.name] = self.spell(node.type)

    def define(self, node: c_ast.Node | None, name: str) -> bool:
        """Enter the struct, union or enum that *node* defines, if it does."""
        if isinstance(node, c_ast.Enum) and node.values:
            self.enums[name] = self.enumerators(node)
        elif isinstance(node, (c_ast.Struct, c_ast.Union)) and node.decls:
            kind = "struct" if isinstance(node, c_ast.Struct) else "union"
            self.records[name] = (kind, tuple(self.fields(node, name)))
        else:
            return False
        return True

    def enumerators(self, node: c_ast.Enum) -> dict[str, int]:
        """Name and value of each enumerator, as a C int."""
        members: dict[str, int] = {}
        value = -1
        for item in node.values.enumerators:
            value = self.number(item.value) if item.value is not None else value + 1
            value = (value + 2**31) % 2**32 - 2**31
            members[item.name] = self.values[item.name] = value
        return members

    def fields(self, node: c_ast.Node, owner: str) -> Iterator[tuple[str, str]]:
        """Name and type of each field; a type without a name is called after its field."""
        for position, field in enumerate(node.decls):
            name = field.name or f"_anonymous{position}"
            kind, suffix = field.type, ""
            while isinstance(kind, c_ast.ArrayDecl):
                suffix += f"[{self.number(kind.dim)}]"
                kind = kind.type
            inner = getattr(kind, "type", None) if isinstance(kind, c_ast.TypeDecl) else kind
            own = f"{owner}_{name}"
            if self.define(inner, getattr(inner, "name", None) or own):
                yield name, (getattr(inner, "name", None) or own) + suffix
            else:
                yield name, self.spell(kind) + suffix

    def number(self, node: c_ast.Node) -> int:
        """The value of a constant expression."""
        if isinstance(node, c_ast.Constant):
            return ord(node.value[1]) if node.type == "char" else int(node.value.rstrip("uUlL"), 0)
        if isinstance(node, c_ast.ID):
            return self.values[node.name]
        if isinstance(node, c_ast.Cast):
            return self.number(node.expr)
        if isinstance(node, c_ast.UnaryOp) and node.op == "sizeof":
            return self.size(self.spell(node.expr.type))
        if isinstance(node, c_ast.UnaryOp):
            value = self.number(node.expr)
            return {"-": -value, "~": ~value, "+": value}[node.op]
        left, right = self.number(node.left), self.number(node.right)
        operations = {"<<": left << max(right, 0), "|": left | right, "+": left + right}
        return {**operations, "-": left - right, "*": left * right}[node.op]

    def size(self, spelled: str) -> int:
        """The size of a type that cuda.h takes the size of: enums and integers."""
        while spelled in self.typedefs:
            spelled = self.typedefs[spelled]
        if spelled in self.enums:
            return 4
        if spelled.endswith("*"):
            return 8
        sizes = {"int": 4, "unsigned int": 4, "unsigned long long": 8, "size_t": 8, "char": 1}
        return sizes[spelled]

    def spell(self, node: c_ast.Node) -> str:
        """A type in one canonical spelling: names and stars, ``const`` in front."""
        if isinstance(node, c_ast.Typename):
            return self.spell(node.type)
        if isinstance(node, c_ast.TypeDecl):
            const = "const " if "const" in node.quals else ""
            return const + self.spell(node.type)
        if isinstance(node, c_ast.IdentifierType):
            return spell_integer(node.names)
        if isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl)):
            if isinstance(node.type, c_ast.FuncDecl):
                return self.spell(node.type)
            return self.spell(node.type) + "*"
        if isinstance(node, c_ast.FuncDecl):
            return f"{self.spell(node.type)}({', '.join(self.parameters(node))})"
        return str(node.name)

    def parameters(self, node: c_ast.FuncDecl) -> Iterator[str]:
        """``type name`` of each parameter."""
        for parameter in node.args.params if node.args else ():
            spelled = self.spell(parameter.type)
            if spelled != "void":
                yield f"{spelled} {parameter.name or ''}".strip()

    def signature(self, name: str, node: c_ast.FuncDecl) -> str:
        """The parameters of an exported function, results marked ``out``."""
        assert self.spell(node.type) == "CUresult", name
        return ", ".join(
            f"out {spelled}" if is_result(name, spelled) else spelled
            for spelled in self.parameters(node)
        )

    def add_constant(self, name: str, text: str) -> None:
        """Enter a macro if it is a number, cast or not, or the name of one."""
        number = re.sub(r"^\(+(\w+ ?\*?\))?|[uU]?\)*$", "", text.strip())
        if re.fullmatch(r"[~-]?(0x[0-9a-fA-F]+|\d+)", number):
            value = int(number.lstrip("~"), 0)
            self.constants[name] = 2**32 - 1 - value if number[0] == "~" else value
        elif number in self.values or number in self.constants:
            self.constants[name] = {**self.constants, **self.values}[number]
        else:
            self.skipped.append(f"{name} = {text}")


def spell_integer(names: list[str]) -> str:
    """One spelling for each arithmetic type, whatever words the header uses."""
    text = " ".join(names)
    same = {"unsigned": "unsigned int", "long long int": "long long"}
    return same.get(text, text)


def is_result(function: str, parameter: str) -> bool:
    """Whether the function returns a value through this parameter."""
    spelled, _, name = parameter.rpartition(" ")
    if not spelled.endswith("*") or spelled in ("void*", "char*"):
        return False
    if spelled.startswith("const ") and not spelled.endswith("**"):
        return False
    if "(" in spelled or (spelled.startswith("const void") and name != "value"):
        return False
    return not NOT_RETURNED.fullmatch(name) or bool(
        RETURNED.match(function) and spelled.count("*") == 1
    )


def version_number(name: str) -> int:
    """The number that ends an ABI name: 0 for cuX, 2 for cuX_v2."""
    found = re.search(r"_v(\d+)$", name)
    return int(found[1]) if found else 0


def split_twin(name: str) -> tuple[str, str]:
    """The name without the suffix of a per-thread twin, and that suffix."""
    found = re.search(r"_pt(ds|sz)$", name)
    return (name[: found.start()], found[0]) if found else (name, "")


def add_versions(table: Table, typedefs: str) -> None:
    """Give each function the CUDA version that introduced it, from cudaTypedefs.h.

    That header counts versions where cuda.h counts suffixes; sorted, the two lists correspond.
    """
    known: dict[tuple[str, str], list[int]] = {}
    for base, version, twin in set(re.findall(r"\*PFN_(\w+?)_v(\d+)(_pt[ds][sz])?\)", typedefs)):
        known.setdefault((base, twin), []).append(int(version))
    waiting: dict[tuple[str, str], list[str]] = {}
    for name in table.functions:
        plain, twin = split_twin(name)
        waiting.setdefault((re.sub(r"_v\d+$", "", plain), twin), []).append(name)
    for key, names in waiting.items():
        versions = sorted(known.pop(key, []))
        if len(versions) != len(names):
            raise SystemExit(f"{key}: {names} in cuda.h, but {versions} in cudaTypedefs.h")
        names.sort(key=lambda name: version_number(split_twin(name)[0]))
        for name, version in zip(names, versions, strict=True):
            table.functions[name] = (version, table.functions[name][1])
    if known:
        raise SystemExit(f"only in cudaTypedefs.h: {sorted(known)}")


def read_headers(folder: Path) -> Table:
    """The table of the headers in *folder*."""
    text = (folder / "cuda.h").read_text(encoding="utf-8")
    internal = Reader("__CUDA_API_VERSION_INTERNAL 1", "__attribute__(x)")
    table = Table()
    for node in c_parser.CParser().parse(SYSTEM_TYPES + internal.read(text)).ext:
        table.add(node)
    for name, macro in internal.macros.items():
        if macro.arglist is None and name.startswith("CU"):
            table.add_constant(name, "".join(token.value for token in macro.value))
    table.aliases = dict(re.findall(ALIAS, text, re.MULTILINE))
    add_versions(table, (folder / "cudaTypedefs.h").read_text(encoding="utf-8"))
    table.functions |= PROFILER
    table.enums |= PROFILER_ENUMS
    for name in ("size_t", "uint32_t", "uint64_t"):
        del table.typedefs[name]
    return table


def literal(name: str, kind: str, entries: dict[str, Any]) -> Iterator[str]:
    """A dictionary as source text, an entry a line."""
    yield f"\n{name}: {kind} = {{"
    for key, value in sorted(entries.items()):
        if isinstance(value, dict):
            yield f"    {key!r}: {{"
            yield from (f"        {inner!r}: {number}," for inner, number in value.items())
            yield "    },"
        else:
            yield f"    {key!r}: {value!r},"
    yield "}"


def render(table: Table, folder: Path) -> str:
    """The text of table.py."""
    digest = hashlib.sha256((folder / "cuda.h").read_bytes()).hexdigest()
    version = table.constants["CUDA_VERSION"]
    number = f"{version // 1000}.{version % 1000 // 10}"
    lines = [
        f"# GENERATED by tools/gen_raw.py from cuda.h {number} (sha256 {digest}). Do not edit.",
        "# fmt: off",
        "# ruff: noqa",
        '"""What cuda.h declares, as plain literals."""',
        *literal("FUNCTIONS", "dict[str, tuple[int, str]]", table.functions),
        *literal("ALIASES", "dict[str, str]", table.aliases),
        *literal("TYPEDEFS", "dict[str, str]", table.typedefs),
        *literal("RECORDS", "dict[str, tuple[str, tuple[tuple[str, str], ...]]]", table.records),
        *literal("ENUMS", "dict[str, dict[str, int]]", table.enums),
        *literal("CONSTANTS", "dict[str, int]", table.constants),
    ]
    return "\n".join(lines) + "\n"


def default_folder() -> Path:
    """Where the nvidia-cuda-runtime wheel keeps cuda.h."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for header in sorted(Path(root).glob("cu*/include/cuda.h"), reverse=True):
            return header.parent
    raise SystemExit("cuda.h not found: pip install nvidia-cuda-runtime, or name its folder")


def main() -> int:
    """Write the table, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    folder = options.folder or default_folder()
    table = read_headers(folder)
    text = render(table, folder)
    print(
        f"{len(table.functions)} functions, {len(table.aliases)} aliases, {len(table.enums)} enums "
        f"of {sum(map(len, table.enums.values()))} values, {len(table.records)} records, "
        f"{len(table.constants)} constants from {folder}"
    )
    print("macros left out:", "; ".join(table.skipped))
    if not options.check:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    same = TABLE.exists() and TABLE.read_text(encoding="utf-8") == text
    print("up to date" if same else f"{TABLE} differs: run python tools/gen_raw.py")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
