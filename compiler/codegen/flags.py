"""Floating-point options of a target as flags and attributes in the text of a module."""

from __future__ import annotations

import re

from .target import Target

# What nvcc takes for these functions with -use_fast_math.
_FAST = "cosf|exp10f|expf|log10f|log2f|logf|powf|sincosf|sinf|tanf|tanhf"
_FAST_CANDIDATE = re.compile(rf'@("?)__nv_({_FAST})\b')
DECLARATION = re.compile(r'^declare [^@\n]*@"?([\w.$-]+)"?\([^\n]*\n?', re.MULTILINE)


def with_fast_functions(source: str) -> str:
    """Call the approximations that fastmath allows: __nv_fast_sinf for __nv_sinf and so on."""
    seen: set[str] = set()

    def once(declaration: re.Match[str]) -> str:
        first = declaration.group(1) not in seen
        seen.add(declaration.group(1))
        return declaration.group() if first else ""

    return DECLARATION.sub(once, _FAST_CANDIDATE.sub(r"@\1__nv_fast_\2", source))


def uncontracted(source: str) -> str:
    """Take the flag "contract" from all instructions; libNVVM obeys it whatever its options."""
    return _CONTRACT.sub(r"\1", source)


def annotated(source: str, target: Target) -> str:
    """Say in the IR for LLVM what libNVVM has options for: contraction, approximation, flushing."""
    source = _CONTRACTIBLE.sub(r"\1 contract", source) if target.fma else uncontracted(source)
    ftz = ".ftz" if target.flushes else ""
    used: set[str] = set()
    if not target.precise_div:
        full = f"llvm.nvvm.div.full{ftz}"
        source, count = _DIVISION.subn(rf"= call float @{full}(float \1, float \2)", source)
        used |= {f"declare float @{full}(float, float)"} if count else set()
        source = _SCALING.sub(r"= fdiv arcp afn", source)
    if not target.precise_sqrt:
        root = f"llvm.nvvm.sqrt.approx{ftz}.f"
        source, count = _SQUARE_ROOT.subn(rf"\1 float @{root}", source)
        used |= {f"declare float @{root}(float)"} if count else set()
    if target.flushes:
        source = _DEFINITION.sub(_flushing, source)
    missing = [line for line in sorted(used) if line.partition("(")[0] not in source]
    return "\n".join([source, *missing, ""])


_CONTRACT = re.compile(r"(= (?:(?:tail )?call|[a-z]+)(?: [a-z]+)*?) contract(?= )")
_CONTRACTIBLE = re.compile(r"(= (?:fadd|fsub|fmul))(?= )")
# By a variable, except of one, which is a reciprocal, and that is exact enough.
_DIVISION = re.compile(
    r"= fdiv(?: [a-z]+)* float (?!1\.0+e\+0+,|0x3ff0000000000000,)(\S+), (%\S+?)(?=,|\s)",
    re.IGNORECASE,
)
_SCALING = re.compile(r"= fdiv(?=(?: [a-z]+)* float )")
_SQUARE_ROOT = re.compile(r'(call(?: [a-z]+)*) float @"?llvm\.(?:sqrt\.f32|nvvm\.sqrt\.f)"?(?=\()')
_DEFINITION = re.compile(r"^define [^\n]*", re.MULTILINE)


def _flushing(definition: re.Match[str]) -> str:
    """Put the attribute where the grammar has attributes: after the parameters."""
    line = definition.group()
    depth = 0
    for place in range(line.index("(", line.index("@")), len(line)):
        depth += {"(": 1, ")": -1}.get(line[place], 0)
        if depth == 0:
            return f'{line[: place + 1]} "denormal-fp-math-f32"="preserve-sign"{line[place + 1 :]}'
    return line
