"""Every kind of code that can be linked to a kernel, made by CUDA's own tools; without a GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import compiler as cuda
from compiler import cache, int32
from compiler.codegen import Target
from compiler.dispatch import ahead
from compiler.dispatch.linkable import CUSource, LinkableCode, code_of
from compiler.dispatch.linking import link
from compiler.dispatch.options import settings_of
from compiler.dispatch.pipeline import compile_kernel
from cudadrv import LinkError, fatbin, nvjitlink, nvrtc
from cudadrv.toolkit import LibraryNotFound

SOURCE = 'extern "C" __device__ __noinline__ int triple(int x) { return 3 * x; }\n'
SIGNATURE = "void(int32[::1])"
ARCH = "sm_90"


def nvcc(folder: Path, name: str, *options: str) -> Path:
    """What nvcc makes of SOURCE."""
    source, out = folder / "triple.cu", folder / name
    source.write_text(SOURCE)
    tool = shutil.which("nvcc")
    if tool is None or shutil.which("gcc") is None:
        pytest.skip("needs nvcc and gcc")
    given = source if "-lib" not in options else nvcc(folder, "part.o", "-dc")
    command = [tool, f"-arch={ARCH}", *options, str(given), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def rtc(folder: Path, name: str, *options: str) -> Path:
    """What NVRTC makes of SOURCE."""
    out = folder / name
    with nvrtc.Program(SOURCE, "triple.cu") as program:
        arch = ARCH if out.suffix == ".cubin" else ARCH.replace("sm", "compute")
        program.compile(["-rdc=true", f"-arch={arch}", *options])
        made = {".ptx": "ptx", ".cubin": "cubin", ".ltoir": "ltoir"}[out.suffix]
        data = getattr(program, made)
    out.write_bytes(data.encode() if isinstance(data, str) else data)
    return out


def source(folder: Path) -> Path:
    out = folder / "triple.cu"
    out.write_text(SOURCE)
    return out


def packed(folder: Path) -> Path:
    """A fatbin of our own making."""
    out = folder / "own.fatbin"
    out.write_bytes(fatbin.write({ARCH: rtc(folder, "t.cubin").read_bytes()}))
    return out


def bitcode(folder: Path) -> Path:
    """LLVM bitcode, as clang makes it for NVPTX."""
    import llvmlite.binding as llvm

    text = """
    target triple = "nvptx64-nvidia-cuda"
    define i32 @triple(i32 %x) noinline {
      %r = mul i32 %x, 3
      ret i32 %r
    }
    """
    out = folder / "triple.bc"
    out.write_bytes(llvm.parse_assembly(text).as_bitcode())
    return out


MAKERS: dict[str, Any] = {
    "cu": source,
    "bc": bitcode,
    "fatbin": packed,
    **{f"rtc {kind}": (lambda folder, k=kind: rtc(folder, f"t.{k}")) for kind in ("ptx", "cubin")},
    "rtc ltoir": lambda folder: rtc(folder, "t.ltoir", "-dlto"),
    "nvcc ptx": lambda folder: nvcc(folder, "t.ptx", "-rdc=true", "-ptx"),
    "nvcc cubin": lambda folder: nvcc(folder, "t.cubin", "-rdc=true", "-cubin"),
    "nvcc fatbin": lambda folder: nvcc(folder, "t.fatbin", "-rdc=true", "-fatbin"),
    "nvcc ltoir": lambda folder: nvcc(folder, "t.ltoir", "-dlto", "-rdc=true", "-ltoir"),
    "object": lambda folder: nvcc(folder, "t.o", "-dc"),
    "archive": lambda folder: nvcc(folder, "t.a", "-lib"),
}


@pytest.fixture(autouse=True)
def libraries():
    """All of this needs nvJitLink, and most of it NVRTC."""
    try:
        nvjitlink.find()
        nvrtc.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))


@pytest.fixture(params=MAKERS)
def file(request, tmp_path) -> Path:
    """A file of each kind that defines triple."""
    made: Path = MAKERS[request.param](tmp_path)
    return made


def cubin(kernel, **options) -> bytes:
    """The linked code of a kernel."""
    made, _ = ahead.compile(kernel, SIGNATURE, device=False, cc=(9, 0), output="cubin", **options)
    return bytes(made)


def test_each_kind_is_linked_by_jit(file):
    """A file in the list of links resolves the declared function."""
    triple = cuda.declare_device("triple", "int32(int32)")

    def kernel(x):
        x[0] = triple(x[0])

    with pytest.raises(LinkError, match="triple"):
        cubin(kernel)
    made = cubin(kernel, link=[file])
    assert made.startswith(b"\x7fELF")
    assert b".text.kernel" in made


def test_each_kind_is_linked_by_its_declaration(file):
    """A file given with the declaration is linked where the function is called, through others."""
    triple = cuda.declare_device("triple", "int32(int32)", link=file)

    @cuda.jit(device=True)
    def sixfold(x):
        return triple(x) * 2

    def kernel(x):
        x[0] = sixfold(x[0])

    assert b".text.kernel" in cubin(kernel)


def test_kinds_are_linked_together(tmp_path):
    """Codes of several kinds at once, each with a function, make one kernel."""
    parts = []
    functions = []
    for number, kind in enumerate(("ptx", "cubin", "ltoir", "fatbin", "cu")):
        text = SOURCE.replace("triple", f"triple{number}")
        source = CUSource(text, f"part{number}.cu")
        if kind != "cu":
            with nvrtc.Program(text, "part.cu") as program:
                lto = ["-dlto"] if kind == "ltoir" else []
                arch = "compute_90" if kind in ("ptx", "ltoir") else ARCH
                program.compile(["-rdc=true", f"-arch={arch}", *lto])
                data = getattr(program, "cubin" if kind == "fatbin" else kind)
            data = data.encode() if isinstance(data, str) else data
            path = tmp_path / f"part.{kind}"
            path.write_bytes(fatbin.write({ARCH: data}) if kind == "fatbin" else data)
            parts.append(path)
        else:
            parts.append(source)
        functions.append(cuda.declare_device(f"triple{number}", "int32(int32)"))
    first, second, third, fourth, fifth = functions

    def kernel(x):
        x[0] = first(second(third(fourth(fifth(x[0])))))

    assert b".text.kernel" in cubin(kernel, link=parts)


def test_same_function_from_two_files_is_told(tmp_path):
    """A function that two links define is an error that names it."""
    triple = cuda.declare_device("triple", "int32(int32)")

    def kernel(x):
        x[0] = triple(x[0])

    other = tmp_path / "other.ptx"
    other.write_bytes(rtc(tmp_path, "t.ptx").read_bytes())
    with pytest.raises(LinkError, match="triple"):
        cubin(kernel, link=[tmp_path / "t.ptx", other])


@pytest.mark.parametrize("kind", ["ptx", "cubin", "ltoir", "fatbin"])
def test_broken_file_is_told(kind, tmp_path):
    """A file that is cut short is an error of the linker, with the file's name, and no crash."""
    triple = cuda.declare_device("triple", "int32(int32)")

    def kernel(x):
        x[0] = triple(x[0])

    if kind == "fatbin":
        whole = packed(tmp_path).read_bytes()
    else:
        options = ["-dlto"] if kind == "ltoir" else []
        whole = rtc(tmp_path, f"whole.{kind}", *options).read_bytes()
    for length in (20, len(whole) // 2):
        path = tmp_path / f"broken.{kind}"
        path.write_bytes(whole[:length])
        with pytest.raises((LinkError, ValueError), match=r"broken|triple|cut short"):
            cubin(kernel, link=[path])


@pytest.mark.parametrize("suffix", [".ptx", ".cubin", ".fatbin", ".o", ".a", ".ltoir", ".bc"])
def test_missing_and_empty_files_are_told(suffix, tmp_path):
    """A file that is not there, or has nothing in it, is an error with its name."""
    path = tmp_path / f"none{suffix}"
    kernel = cuda.jit(link=[path])(lambda x: None)
    with pytest.raises(FileNotFoundError, match="none"):
        kernel.compile(SIGNATURE)
    path.write_bytes(b"")

    def empty(x):
        x[0] = 1

    with pytest.raises((LinkError, ValueError), match="none"):
        cubin(empty, link=[path])


def test_lto_crosses_the_languages(tmp_path):
    """With LTO-IR of C++ and of Python, the C++ function is inlined and gone."""
    code = CUSource(SOURCE.replace("__noinline__ ", ""), "triple.cu")
    triple = cuda.declare_device("triple", "int32(int32)", link=code)

    def kernel(x):
        x[0] = triple(x[0]) + 1

    made = cubin(kernel)
    assert b".text.kernel" in made
    assert b"triple" not in made
    assert b"triple" in cubin(kernel, lto=False)
    assert b"triple" not in cubin(kernel, lto=True)


def test_python_function_is_called_by_nvcc(tmp_path):
    """Device functions of Python, as PTX and as cubin, link to a program that nvcc compiled."""
    ptx, returns = ahead.compile(
        lambda x, n: x * n + 1, "int32(int32, int64)", cc=(9, 0), abi_info={"abi_name": "scaled"}
    )
    assert returns == int32
    text = """
    extern "C" __device__ int scaled(int, long long);
    extern "C" __global__ void user(int *x) { *x = scaled(*x, 7); }
    """
    (tmp_path / "user.cu").write_text(text)
    tool = shutil.which("nvcc")
    if tool is None or shutil.which("gcc") is None:
        pytest.skip("needs nvcc and gcc")
    command = [tool, f"-arch={ARCH}", "-dc", "user.cu", "-o", "user.o"]
    subprocess.run(command, check=True, cwd=tmp_path)
    with nvjitlink.Link([f"-arch={ARCH}"]) as link:
        link.add("object", (tmp_path / "user.o").read_bytes(), "user.o")
        link.add("ptx", ptx.encode(), "scaled.ptx")
        link.complete()
        assert b".text.user" in link.cubin


def test_codes_know_their_kind(tmp_path):
    """A path becomes the code of the kind that its name tells, whatever the case of letters."""
    for suffix, kind in ((".PTX", "ptx"), (".obj", "object"), (".lib", "library"), (".BC", "bc")):
        path = tmp_path / f"file{suffix}"
        path.write_bytes(b"x")
        code = code_of(path)
        assert isinstance(code, LinkableCode)
        assert (code.kind, code.name) == (kind, str(path))
    assert cache.key("x") != cache.key("y")


def test_debug_information_links_with_that_of_cuda_source():
    """A kernel in debug mode is optimised as one with CUDA C++ that has line information."""
    code = cuda.CUSource('extern "C" __device__ int thrice(int x) { return 3 * x; }', "thrice.cu")
    thrice = cuda.declare_device("thrice", "int32(int32)", link=code)

    def work(x):
        x[0] = thrice(x[0])

    target = Target((9, 0), debug=True)
    made = compile_kernel(work, (int32[::1],), target, settings_of({"lto": True}))
    assert made.ltoir
    assert link(made, target, "sm_90").startswith(b"\x7fELF")
