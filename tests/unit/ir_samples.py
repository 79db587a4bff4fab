"""LLVM IR for the tests of code generation, in the dialect of a generator."""

from __future__ import annotations

import re
import shutil
import site
import subprocess
from pathlib import Path

from compiler.codegen import Codegen, Dialect
from compiler.lang.libdevice_table import SIGNATURES

TYPES = {"v": "void", "h": "i16", "i": "i32", "l": "i64", "f": "float", "d": "double"}
TYPES |= {"I": "i32*", "F": "float*", "D": "double*", "C": "i8*"}


def module(dialect: Dialect, body: str) -> str:
    """A module of *body*, which is written with typed pointers."""
    if not dialect.typed_pointers:
        body = re.sub(r"\b(?:i8|i16|i32|i64|float|double|void \([^)]*\))\*", "ptr", body)
    return (
        f'target triple = "{dialect.triple}"\ntarget datalayout = "{dialect.data_layout}"\n{body}'
    )


def kernel(name: str, parameters: list[str], lines: list[str]) -> str:
    """A kernel with the parameters %0, %1, ..., and the metadata that makes it one."""
    named = ", ".join(f"{kind} %a{n}" for n, kind in enumerate(parameters))
    body = "\n".join(f"  {line}" for line in [*lines, "ret void"])
    return (
        f"define void @{name}({named}) {{\n{body}\n}}\n"
        f"!nvvm.annotations = !{{!0}}\n"
        f'!0 = !{{void ({", ".join(parameters)})* @{name}, !"kernel", i32 1}}\n'
    )


def calls(names: list[str]) -> str:
    """A kernel that calls each of *names* of libdevice and stores what it returns."""
    lines = ["%i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"]
    parameters = [TYPES[letter] for letter in "hilfdIFDC"]
    places = {kind: f"%a{n}" for n, kind in enumerate(parameters)}
    declarations = ["declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()"]
    parameters += [f"{kind}*" for kind in parameters[:5]]
    for n, name in enumerate(names):
        result, *arguments = (TYPES[letter] for letter in SIGNATURES[name])
        given = ", ".join(f"{kind} {places[kind]}" for kind in arguments)
        declarations.append(f"declare {result} @{name}({', '.join(arguments)})")
        if result == "void":
            lines.append(f"call void @{name}({given})")
            continue
        place = f"%a{parameters.index(f'{result}*', 9)}"
        lines += [
            f"%r{n} = call {result} @{name}({given})",
            f"%i{n} = add i32 %i, {n}",
            f"%p{n} = getelementptr {result}, {result}* {place}, i32 %i{n}",
            f"store volatile {result} %r{n}, {result}* %p{n}",
        ]
    return kernel("k", parameters, lines) + "\n".join(declarations) + "\n"


def generator_module(generator: Codegen, names: list[str]) -> str:
    """The module of `calls` in the dialect of *generator*."""
    return module(generator.dialect, calls(names))


def instructions(ptx: str) -> list[str]:
    """The operation names of the instructions in *ptx*, in order."""
    return re.findall(r"^\t(?:@!?%p\d+ )?([a-z][\w.]*)(?:\s[^;]*)?;", ptx, re.MULTILINE)


def ptxas() -> Path | None:
    """The assembler of the wheel nvidia-cuda-nvcc, or of an installed toolkit."""
    wheels = [Path(folder, "nvidia", "cu13", "bin", "ptxas") for folder in site.getsitepackages()]
    found = [wheel for wheel in wheels if wheel.is_file()]
    installed = shutil.which("ptxas")
    return found[0] if found else Path(installed) if installed else None


def assemble(ptx: str, arch: str, folder: Path) -> None:
    """Assemble *ptx* for *arch*; raises CalledProcessError with the assembler's words."""
    source = folder / "k.ptx"
    source.write_text(ptx)
    command = [str(ptxas()), "-arch", arch, "-O0", "-o", str(folder / "k.cubin"), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True)
