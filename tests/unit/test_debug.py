"""Line tables and variables: in the PTX of each generator, and in what the assembler makes."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import compiler as cuda
from compiler import types
from compiler.codegen import NoCodegen, Target
from compiler.dispatch.pipeline import Settings, compile_device, compile_kernel
from cudadrv import raw
from tests.unit.fake_driver import installed, launching_driver, store
from tests.unit.ir_samples import ptxas

HERE = Path(__file__)
GENERATORS = ["llvm", "nvvm7", "nvvm"]
ARGS = (types.float32[:], types.int32)


def double(x):
    return x * 2 + 1  # DOUBLE


def kernel(x, n):
    i = cuda.grid(1)  # GRID
    total = np.float32(0.0)
    for j in range(n):  # LOOP
        total += double(x[i]) * j
    if i < x.size:  # BOUND
        x[i] = total  # STORE


def line_of(mark: str) -> int:
    """The line of this file that ends in a comment."""
    lines = HERE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


def compiled(codegen: str, function=kernel, args=ARGS, cc=(9, 0), **options) -> str:
    target = Target(cc, debug=options.pop("debug", False))
    try:
        return compile_kernel(function, args, target, Settings(codegen, **options)).ptx
    except NoCodegen as error:
        pytest.skip(str(error))


def lines_in(ptx: str) -> set[int]:
    """The lines of this file that the PTX names."""
    [number] = re.findall(rf'^\s*\.file\s+(\d+) "{re.escape(str(HERE))}"', ptx, re.MULTILINE)
    return {int(line) for line in re.findall(rf"\.loc\s+{number} (\d+) \d+", ptx)}


@pytest.mark.parametrize("codegen", GENERATORS)
def test_lineinfo_names_the_lines(codegen):
    """With lineinfo the PTX names the lines of the Python file, and is optimised as ever."""
    ptx = compiled(codegen, lineinfo=True)
    assert {line_of(mark) for mark in ("GRID", "LOOP", "BOUND", "STORE")} <= lines_in(ptx)
    assert ", debug" not in ptx
    assert ".debug_info" not in ptx
    plain = compiled(codegen)
    assert ".loc" not in plain
    code = re.compile(r"^\s*(?:\.loc.*|\.file.*|//.*|\$L.*:|)\n", re.MULTILINE)
    assert code.sub("", ptx).count("\n") <= 1.1 * code.sub("", plain).count("\n")


@pytest.mark.parametrize("codegen", GENERATORS)
def test_debug_names_every_line(codegen):
    """With debug nothing is inlined or moved: callees have lines of their own."""
    ptx = compiled(codegen, debug=True)
    marks = ("GRID", "LOOP", "BOUND", "STORE", "DOUBLE")
    assert {line_of(mark) for mark in marks} <= lines_in(ptx)
    assert ", debug" in ptx
    assert re.search(r"\.section\s+\.debug_info", ptx)


def assembled(ptx: str, folder: Path, *options: str) -> Path:
    """The cubin that ptxas makes."""
    source, cubin = folder / "k.ptx", folder / "k.cubin"
    source.write_text(ptx)
    command = [str(ptxas()), "-arch=sm_90", *options, str(source), "-o", str(cubin)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return cubin


def readelf(cubin: Path, what: str) -> str:
    command = ["readelf", f"--debug-dump={what}", str(cubin)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


needs_tools = pytest.mark.skipif(
    ptxas() is None or not shutil.which("readelf"), reason="needs ptxas and readelf"
)


@needs_tools
@pytest.mark.parametrize("codegen", GENERATORS)
@pytest.mark.parametrize("option", ["lineinfo", "debug"])
def test_lines_reach_machine_code(codegen, option, tmp_path):
    """The line table of the cubin maps addresses to lines of the Python file."""
    ptx = compiled(codegen, **{option: True})
    cubin = assembled(ptx, tmp_path, "-lineinfo" if option == "lineinfo" else "-g")
    table = readelf(cubin, "decodedline")
    found = {int(line) for line in re.findall(rf"^{re.escape(HERE.name)}\s+(\d+)", table, re.M)}
    assert {line_of(mark) for mark in ("GRID", "LOOP", "STORE")} <= found


@pytest.mark.parametrize("codegen", GENERATORS)
def test_device_functions_have_lines_too(codegen):
    """A C function of a Python function names its lines."""
    try:
        target, settings = Target((9, 0)), Settings(codegen, lineinfo=True)
        ptx = compile_device(double, (types.float32,), target, settings).ptx
    except NoCodegen as error:
        pytest.skip(str(error))
    assert line_of("DOUBLE") in lines_in(ptx)


@pytest.mark.parametrize("name", ["<input>", 'odd \\ "name".py'])
def test_any_file_name_will_do(name):
    """Names of files that are none, and with quotes, are escaped."""
    import linecache

    text = "def f(x):\n    x[0] = 1\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, object] = {}
    exec(compile(text, name, "exec"), namespace)
    ptx = compiled("llvm", namespace["f"], (types.float32[:],), lineinfo=True)
    assert re.search(r"\.loc\s+1 2 5", ptx)


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, set()), ({"lineinfo": True}, {"LINE"}), ({"debug": True}, {"DEBUG"})],
)
def test_driver_is_told_to_keep_lines(options, expected):
    """The driver's compiler would drop lines and variables unless it is told to keep them."""
    seen = []

    def load(out, image, count, names, values):
        numbers = (ctypes.c_int * count).from_address(names)
        settings = (ctypes.c_void_p * count).from_address(values)
        seen.append(dict(zip(numbers, settings, strict=True)))
        return store(out, ctypes.c_void_p, 77)

    def nothing(n):
        if n > 3:
            cuda.syncthreads()

    with installed(launching_driver(cuModuleLoadDataEx=load)):
        cuda.jit(codegen="llvm", **options)(nothing).compile("void(int32)").bind()
    given = seen[0]
    for what in ("LINE", "DEBUG"):
        number = getattr(raw, f"CU_JIT_GENERATE_{what}_INFO")
        assert given.get(number) == (1 if what in expected else None)


def everything(x, flags, n, pair, z):
    i = cuda.grid(1)
    half = np.float16(1.5)
    part = cuda.shared.array(8, np.float32)
    view = x[1:, ::2]
    before, after = n, n + 1
    before, after = after, before
    big = flags[i] and n > 3
    first, second = pair
    small = np.uint8(7)
    z = z * 2
    name = (first, second, z)
    mixed = 0
    if n > 2:
        mixed = 2.5
    part[i] = x[i, 0] + view[0, 0] + half + small + mixed
    if big:
        x[0, 0] = part[0] + before + after + name[0] + z.real


EVERYTHING = (
    types.float32[:, :], types.boolean[::1], types.int32,
    types.Tuple((types.int64, types.float32)), types.complex64,
)  # fmt: skip


@needs_tools
@pytest.mark.parametrize("codegen", GENERATORS)
def test_variables_are_described(codegen, tmp_path):
    """With debug the cubin has every variable of the kernel by name, with its type and place."""
    ptx = compiled(codegen, everything, EVERYTHING, debug=True)
    text = readelf(assembled(ptx, tmp_path, "-g"), "info")
    entries = re.split(r"<[0-9a-f]+><[0-9a-f]+>: Abbrev", text)
    found = {}
    for entry in entries:
        for name in re.findall(r"DW_AT_name\s+: (?:\(.*\): )?(\w+)", entry):
            found[name] = entry
    names = "x flags n pair z i half part view before after big first second small name mixed"
    for name in names.split():
        assert re.search(r"DW_TAG_(variable|formal_parameter)", found[name])
        assert "DW_AT_location" in found[name]
    for kind in ("float16", "float32", "int32", "int64", "uint8", "bool", "float64"):
        assert kind in found
    for member in ("data", "shape", "strides", "real", "imag", "item0", "item2"):
        assert member in found


@pytest.mark.parametrize("codegen", GENERATORS)
def test_variables_follow_assignments(codegen):
    """A value that two names exchange is stored under each where the assignment stands."""

    def swap(x, n):
        first, second = x[0], x[1]
        for _ in range(n):
            first, second = second, first
        x[0] = first

    made = compile_kernel(swap, ARGS, Target((9, 0), debug=True), Settings(codegen))
    assert made.llvm_ir.count('call void @"llvm.dbg.declare"(') == 5
    assert made.llvm_ir.count("store float") >= 4


def test_optimised_code_has_no_variables():
    """Lines alone leave no stores behind."""
    made = compile_kernel(kernel, ARGS, Target((9, 0)), Settings("llvm", lineinfo=True))
    assert "dbg.declare" not in made.llvm_ir
    assert "alloca" not in made.llvm_ir
