"""Whatever a kernel's source says, it compiles to valid LLVM IR or is refused by a CompileError."""

from __future__ import annotations

import cmath
import contextlib
import linecache
import math
import warnings
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError, types
from compiler.codegen import Target, select
from compiler.dispatch import pipeline
from compiler.frontend.program import Program as Inference
from compiler.typing.registry import REGISTRY
from tests.unit.mutations import SOURCES, function_of, mutated


class Point(NamedTuple):
    x: float
    y: float


NAMESPACE = {"cuda": cuda, "math": math, "cmath": cmath, "np": np, "Point": Point}
RECORD = types.from_dtype(np.dtype([("a", "i4"), ("b", "f8")]))
ARGUMENTS = (types.float64[::1], types.float64[::1], types.py_int, RECORD[::1])
ROUNDS, SEEDS_A_ROUND = 8, 40


def compile_source(text: str) -> None:
    """From the source to LLVM IR that LLVM reads and verifies."""
    target, settings = Target((8, 0)), pipeline.Settings("llvm")
    name = "mutant.py"
    try:
        generator = select(target, "llvm")
        function = function_of(text, NAMESPACE, name)
        inference = Inference(REGISTRY, generator.libdevice is not None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            typed = pipeline.infer_kernel(function, ARGUMENTS, inference)
            program = pipeline._program(target, settings, generator)
            program.kernel(typed, "kernel")
        llvm.parse_assembly(str(program.module.llvm)).verify()
    finally:
        linecache.cache.pop(name, None)


@pytest.mark.parametrize("index", range(len(SOURCES)))
def test_the_kernels_themselves_compile(index):
    """What is changed at random is right to begin with."""
    compile_source(SOURCES[index])


@pytest.mark.parametrize("part", range(ROUNDS))
def test_changed_kernels_compile_or_are_refused(part):
    """Statements deleted and moved, expressions, operators and names replaced: no other error."""
    seen = 0
    for seed in range(part * SEEDS_A_ROUND, (part + 1) * SEEDS_A_ROUND):
        text = mutated(seed)
        if text is None:
            continue
        seen += 1
        with contextlib.suppress(CompileError):
            compile_source(text)
    assert seen > 0
