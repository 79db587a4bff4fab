"""Code from the disk cache: when it is used, when it must not be, and what it saves."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import textwrap

import pytest

import compiler as cuda
from compiler import types
from compiler.codegen import CodegenError, Target, recorded
from compiler.codegen.llvm import LlvmCodegen
from compiler.codegen.select import select
from compiler.dispatch import linking, pipeline
from compiler.dispatch.linkable import CUSource, PTXSource
from compiler.dispatch.pipeline import Settings, compile_kernel
from cudadrv import nvjitlink
from cudadrv.toolkit import LibraryNotFound
from tests.unit.fake_driver import installed, launching_driver, store
from tests.unit.test_linker import TWICE

pytestmark = pytest.mark.usefixtures("edited_modules")

F32 = types.float32[::1]
TARGET = Target((9, 0))
LLVM = Settings("llvm", cache=True)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("COMPILER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("COMPILER_CACHE", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch):
    """The list of modules that a code generator is given."""
    seen: list[str] = []
    real = pipeline._compiled

    def noted(text, *rest):
        seen.append(text)
        return real(text, *rest)

    monkeypatch.setattr(pipeline, "_compiled", noted)
    return seen


def scale(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= factor


def compiled(pyfunc=scale, target=TARGET, settings=LLVM, args=(F32, types.float32)):
    return compile_kernel(pyfunc, args, target, settings)


def test_second_compilation_is_read(compilations):
    """What was compiled before is not compiled again, and is the same."""
    first = compiled()
    second = compiled()
    assert len(compilations) == 1
    assert second.ptx == first.ptx
    assert "cvt" not in second.name
    assert second.typed.args[0].dtype == types.float32


def test_nothing_is_kept_unasked(folder, compilations):
    """Without the option no folder is made."""
    compiled(settings=Settings("llvm"))
    compiled(settings=Settings("llvm"))
    assert len(compilations) == 2
    assert not folder.exists()


OTHERS = [
    {"target": Target((8, 0))},
    {"target": Target((9, 0), fma=False)},
    {"target": Target((9, 0), fastmath=True)},
    {"target": Target((9, 0), ftz=True)},
    {"target": Target((9, 0), debug=True)},
    {"target": Target((9, 0), opt=1)},
    {"target": Target((9, 0), ptx=(8, 0))},
    {"target": Target((9, 0), suffix="a")},
    {"settings": Settings("llvm", cache=True, max_registers=32)},
    {"settings": Settings("llvm", cache=True, launch_bounds=(64,))},
    {"args": (types.float64[::1], types.float32)},
    {"args": (types.float32[:], types.float32)},
]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_other_options_are_other_code(compilations, other):
    """Each option, architecture and type by itself makes code of its own."""
    compiled()
    compiled(**other)
    compiled(**other)
    assert len(compilations) == 2


def test_generators_do_not_share(compilations):
    """The code of one generator is not taken for that of another."""
    if select(TARGET).name != "nvvm":
        pytest.skip("there is no libNVVM")
    made = {compiled(settings=Settings(name, cache=True)).ptx for name in ("llvm", "nvvm7", "nvvm")}
    assert len(made) == len(compilations) == 3


def module_of(tmp_path, name, text):
    """A module imported anew from a file."""
    path = tmp_path / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    # Another time, or the checker of linecache would think it the same file.
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + len(text) * 10**9))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_edited_callee_is_compiled_anew(tmp_path, compilations):
    """A function that the kernel calls, in another file, is part of what the code is made of."""
    found = []
    for body in ("return x + 1", "return x + 2", "return x + 1"):
        helper = module_of(tmp_path, "helper", f"def step(x):\n    {body}\n").step

        def kernel(x, factor):
            x[0] = helper(x[0])  # noqa: B023

        found.append(compiled(kernel).ptx)
    assert len(compilations) == 2
    assert found[0] == found[2] != found[1]


CONSTANTS = {
    "global": "STEP = {0}\ndef kernel(x, factor):\n    x[0] += STEP\n",
    "closure": """
        def outer(step):
            def kernel(x, factor):
                x[0] += step
            return kernel
        kernel = outer({0})
        """,
    "tuple": """
        import numpy as np
        TABLE = (1, np.float32({0}))
        def kernel(x, factor):
            x[0] += TABLE[1]
        """,
    "class": """
        class Options:
            step = {0}
        def kernel(x, factor):
            x[0] += Options.step
        """,
    "default": """
        def kernel(x, factor):
            x[0] += helper(x[0])
        def helper(x, step={0}):
            return x + step
        """,
}


@pytest.mark.parametrize("text", CONSTANTS.values(), ids=CONSTANTS)
def test_changed_constant_is_compiled_anew(tmp_path, compilations, text):
    """Globals, captured values, attributes and defaults are part of what the code is made of."""
    found = [
        compiled(module_of(tmp_path, "constant", text.format(value)).kernel).ptx
        for value in (3, 5, 3)
    ]
    assert len(compilations) == 2
    assert found[0] == found[2] != found[1]


def test_edited_generator_is_another(monkeypatch, compilations):
    """A change of the files that make code of IR makes every entry void."""
    compiled()
    monkeypatch.setattr(recorded, "sources", lambda: "edited")
    compiled()
    assert len(compilations) == 2


def test_other_libdevice_is_another(monkeypatch, tmp_path):
    """Code made with one libdevice is not used with another."""
    found = select(TARGET, "llvm").libdevice
    if found is None:
        pytest.skip("there is no libdevice")
    copy = tmp_path / "libdevice.10.bc"
    copy.write_bytes(found.read_bytes() + bytes(4))
    identities = [LlvmCodegen(TARGET).identity]
    monkeypatch.setenv("CUDADRV_LIBDEVICE", str(copy))
    identities.append(LlvmCodegen(TARGET).identity)
    assert identities[0] != identities[1]


def test_record_that_is_no_longer_true_is_replaced(monkeypatch, compilations):
    """Where the generator turns out to be another one, the kernel is compiled for that."""
    compiled()
    monkeypatch.setattr(recorded, "_fields", lambda generator: {"name": "another"})

    def other(x, factor):
        x[0] = factor

    made = compiled(other)
    assert "st.global" in made.ptx
    assert len(compilations) == 1 + 1


def test_damaged_entries_are_compiled_again(folder, compilations):
    """With all files cut short the kernel compiles, and the next time it is read."""
    first = compiled()
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:50])
    assert compiled().ptx == first.ptx
    assert compiled().ptx == first.ptx
    assert len(compilations) == 2


def test_folder_that_cannot_be_used_is_a_warning(monkeypatch, tmp_path):
    """The kernel compiles all the same."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COMPILER_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(cuda.CompileWarning, match="COMPILER_CACHE_DIR"):
        assert ".entry scale(" in compiled().ptx


def test_refused_code_is_not_kept(compilations):
    """An error is raised anew each time."""

    def bad(x, factor):
        x[0] = cuda.libdevice.tanhf(factor)

    for _ in range(2):
        with pytest.raises(CodegenError):
            pipeline._code("nonsense", TARGET, LLVM, select(TARGET, "llvm"))
    assert len(compilations) == 2


def test_lto_is_kept_too(compilations):
    """LTO-IR comes back with the PTX."""
    if select(TARGET).name != "nvvm":
        pytest.skip("there is no libNVVM")
    settings = Settings(lto=True, cache=True)
    first, second = compiled(settings=settings), compiled(settings=settings)
    assert len(compilations) == 1
    assert first.ltoir == second.ltoir
    assert first.ltoir


@pytest.fixture
def links(monkeypatch):
    """The list of compilations that were linked; each link gives another result."""
    seen: list[object] = []

    def noted(compiled, target):
        seen.append(compiled)
        return f"linked {len(seen)}".encode()

    monkeypatch.setattr(linking, "link", noted)
    return seen


def linked(*codes, **settings):
    made = compiled(settings=Settings("llvm", cache=True, link=codes, **settings))
    return linking._linked(made, TARGET)


def test_linked_code_is_kept(links, tmp_path):
    """What was linked with the same codes is not linked again; changed bytes are other code."""
    file = tmp_path / "twice.ptx"
    file.write_text(TWICE)
    first = linked(file)
    assert linked(file) == first
    assert linked(PTXSource(TWICE, str(file))) == first
    file.write_text(TWICE + "\n")
    assert linked(file) != first
    assert len(links) == 2


def test_what_is_linked_may_ask_for_less(links):
    """Without the option nothing that is linked is kept."""
    made = compiled(settings=Settings("llvm", link=(PTXSource(TWICE),)))
    assert linking._linked(made, TARGET) != linking._linked(made, TARGET)


def test_what_includes_is_linked_each_time(links):
    """CUDA C++ that includes files is compiled again, because these may have changed."""
    code = CUSource("__device__ int f() { return 1; }")
    assert linked(code) == linked(code)
    code = CUSource("#  include <f.h>\n__device__ int f() { return 1; }")
    assert linked(code) != linked(code)


def test_other_linker_links_again(links, monkeypatch):
    """Another nvJitLink, or another driver, links anew."""
    first = linked(PTXSource(TWICE))
    monkeypatch.setenv("CUDADRV_NVJITLINK", "/somewhere/libnvJitLink.so.13")
    assert linked(PTXSource(TWICE)) != first


@pytest.fixture
def run_file(run_python, tmp_path):
    """Run code from a file, in which functions have their source."""

    def run(code: str, **environment: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(code)
        return run_python(f"import runpy; runpy.run_path({str(path)!r})", **environment)

    return run


def test_ir_is_the_same_in_every_process(run_file):
    """The text of the IR depends on no addresses, and not on the order of sets."""
    code = """
import compiler as cuda, math, numpy as np
from compiler import types
from compiler.dispatch import ahead
class P:
    a, b, c = 1, 2.0, 3
def helper(v, *rest, scale=2): return math.exp(v) * len(rest) * scale + P.a + P.b
def outer(n):
    def inner(x): return x + n
    return inner
add = outer(5)
def kernel(x, y, n):
    part = cuda.shared.array(32, np.float32); i = cuda.grid(1)
    part[i % 32] = x[i]; cuda.syncthreads()
    for name in (1, 2.0): y[i] += helper(x[i], name, add(part[0])) ** 2
    cuda.atomic.add(y, 0, math.sin(x[i]))
print(ahead.compile(kernel, "void(float32[:], float64[:], int32)", device=False, output="llvm")[0])
"""
    texts = {run_file(code, PYTHONHASHSEED=seed) for seed in ("0", "1", "2")}
    assert len(texts) == 1


SECOND = """
import ctypes, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "ctypes.dlopen" else 0)
import numpy as np
import compiler as cuda
from tests.unit.fake_driver import installed, launching_driver

@cuda.jit(cache=True)
def saxpy(a, x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + out[i]

class OnDevice:
    __cuda_array_interface__ = {
        "shape": (8,), "typestr": "<f4", "data": (4096, False), "version": 3, "strides": None}

with installed(launching_driver()) as fake:
    saxpy[1, 8](2.0, OnDevice(), OnDevice())
    assert len(fake.called("cuLaunchKernel")) == 1
    image = fake.called("cuModuleLoadDataEx")[0]
print("llvmlite.binding" in sys.modules, [n for n in opened if "llvm" in n or "nvvm" in n])
"""


@pytest.mark.parametrize("codegen", ["llvm", "nvvm7"])
def test_second_process_loads_no_code_generator(run_file, codegen):
    """A process that finds its kernel in the cache reaches the launch without LLVM or libNVVM."""
    if codegen == "nvvm7" and select(TARGET).name != "nvvm":
        pytest.skip("there is no libNVVM")
    environment = {"COMPILER_CODEGEN": codegen}
    assert run_file(SECOND, **environment).strip() != "False []"
    assert run_file(SECOND, **environment).strip() == "False []"


def test_second_process_links_nothing(monkeypatch):
    """A kernel with linked code is loaded as it was linked before."""
    try:
        nvjitlink.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))
    twice = cuda.declare_device("twice", "int32(int32)", PTXSource(TWICE))
    images = []

    def load(out, image, *options):
        images.append(ctypes.string_at(image, 4))
        return store(out, ctypes.c_void_p, 77)

    def run():
        @cuda.jit(cache=True)
        def kernel(n):
            if twice(n) == 3:
                cuda.syncthreads()

        with installed(launching_driver(cuModuleLoadDataEx=load)):
            kernel[1, 1](5)

    run()
    monkeypatch.setattr(nvjitlink, "Link", None)
    run()
    assert images == [b"\x7fELF", b"\x7fELF"]


def test_import_loads_no_code_generator(run_python):
    """Importing the compiler, and decorating, loads no LLVM, no libNVVM, linker nor emulator."""
    code = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "ctypes.dlopen" else 0)
import compiler
@compiler.jit
def kernel(x): x[0] = compiler.libdevice.sinf(x[0])
heavy = {"llvmlite.binding", "cudadrv.emulator", "cudadrv.nvvm", "cudadrv.linker", "hashlib"}
print(sorted(heavy & set(sys.modules)), [name for name in opened if "lib" in name])
"""
    assert run_python(code).strip() == "[] []"
