"""The binding of libNVVM: finding it, compiling with it, its errors."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from compiler.codegen import Dialect
from cudadrv import nvjitlink, nvrtc, nvvm
from tests.unit.ir_samples import kernel, module

DIALECT = Dialect(nvvm.TRIPLE, nvvm.DATA_LAYOUT_LLVM7, typed_pointers=True)
VERSION = "!nvvmir.version = !{!1}\n!1 = !{i32 2, i32 0}\n"
STORE = module(DIALECT, kernel("k", ["i32*"], ["store i32 42, i32* %a0"]) + VERSION)


@pytest.fixture(scope="module")
def library() -> nvvm.Nvvm:
    try:
        return nvvm.find()
    except nvvm.NvvmNotFound as error:
        pytest.skip(str(error))


def test_import_takes_no_library():
    """Importing the binding loads neither numpy nor llvmlite, nor libNVVM."""
    code = (
        "import sys, cudadrv.nvvm; print({'numpy', 'llvmlite'} & set(sys.modules));"
        "print('nvvm.so' in open('/proc/self/maps').read() if sys.platform == 'linux' else False)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["set()", "False"]


def test_text_becomes_ptx(library):
    """A module with one kernel becomes PTX for the architecture asked for."""
    with nvvm.Program(library) as program:
        program.add_module(STORE)
        program.verify(["-arch=compute_80"])
        ptx = program.compile(["-arch=compute_80"])
    assert b".target sm_80" in ptx
    assert b".visible .entry k(" in ptx
    assert not ptx.endswith(b"\0")


def test_modules_are_linked(library):
    """A function that one module declares and another defines is no longer external."""
    body = kernel("k", ["i32*"], ["%x = call i32 @used()", "store i32 %x, i32* %a0"])
    caller = module(DIALECT, body + "declare i32 @used()\n" + VERSION)
    callee = module(DIALECT, "define i32 @used() {\n  ret i32 7\n}\n" + VERSION)
    with nvvm.Program(library) as program:
        program.add_module(caller, "caller")
        program.add_module(callee, "callee")
        ptx = program.compile(["-arch=compute_90"]).decode()
    assert ".extern" not in ptx
    assert ", 7;" in ptx


def test_library_in_text_is_refused(library):
    """libNVVM would fail without a word on text that is to be linked lazily."""
    with nvvm.Program(library) as program, pytest.raises(ValueError, match="bitcode"):
        program.lazy_add_module(STORE.encode())


def test_refused_ir_gives_the_log(library):
    """An error in the IR is an NvvmError with libNVVM's own words."""
    with nvvm.Program(library) as program:
        program.add_module(STORE.replace("i32 42", "i64 42"), "faulty")
        with pytest.raises(nvvm.NvvmError) as caught:
            program.compile(["-arch=compute_90"])
    assert caught.value.function == "nvvmCompileProgram"
    assert caught.value.name.startswith("NVVM_ERROR_")
    assert "faulty" in caught.value.log


def test_log_shows_the_offending_line(library):
    """The error has the line of the IR that the log only counts, with a mark at the column."""
    text = "define void @k() {\n  call void @nowhere()\n  ret void\n}\n"
    with nvvm.Program(library) as program:
        program.add_module(text, "my module")
        with pytest.raises(nvvm.NvvmError) as caught:
            program.compile(["-arch=compute_90"])
    [place] = [n for n, line in enumerate(caught.value.log.splitlines()) if "nowhere'" in line]
    remark, line, mark = caught.value.log.splitlines()[place : place + 3]
    assert remark.startswith("my module (2, 12)")
    assert line == "    call void @nowhere()"
    assert mark.index("^") == line.index("@nowhere")


def test_unknown_option_is_named(library):
    """A refused option is NVVM_ERROR_INVALID_OPTION and the log names it."""
    with nvvm.Program(library) as program:
        program.add_module(STORE)
        with pytest.raises(nvvm.NvvmError) as caught:
            program.compile(["-arch=compute_90", "-no-such-option"])
    assert caught.value.name == "NVVM_ERROR_INVALID_OPTION"
    assert "-no-such-option" in caught.value.log


def test_closed_program_is_refused(library):
    """close() may be called twice; using the program afterwards is a ValueError."""
    program = nvvm.Program(library)
    assert program.handle
    program.close()
    program.close()
    assert program.handle == 0
    with pytest.raises(ValueError, match="closed"):
        program.add_module(STORE)


def test_versions(library):
    """The versions have their documented shape, and the dialect changes at compute_100."""
    assert library.version >= (1, 0)
    assert len(library.ir_version) == 4
    assert library.llvm_version("compute_90") == 7
    assert library.llvm_version("compute_100") >= 17
    with pytest.raises(nvvm.NvvmError):
        library.llvm_version("compute_10")


def test_probe_sees_what_is_emitted(library):
    """A probe tells the PTX version of a compilation with the same options, and the dialect."""
    probe = library.probe("-arch=compute_75")
    with nvvm.Program(library) as program:
        program.add_module(STORE)
        ptx = program.compile(["-arch=compute_75"]).decode()
    assert f".version {probe.ptx[0]}.{probe.ptx[1]}\n" in ptx
    assert probe.typed_pointers
    assert not library.probe("-arch=compute_100").typed_pointers


def test_refused_probe_is_refused_again(library):
    """An architecture that libNVVM does not know raises each time it is asked for."""
    for _ in range(2):
        with pytest.raises(nvvm.NvvmError, match=r"compute_10\b"):
            library.probe("-arch=compute_10")


def test_override_is_the_only_candidate(monkeypatch, tmp_path):
    """CUDADRV_NVVM stands alone: a wrong one is an error that names it, not a silent fallback."""
    wrong = tmp_path / "libnvvm.so.4"
    monkeypatch.setenv("CUDADRV_NVVM", str(wrong))
    assert list(nvvm.candidates()) == [str(wrong)]
    with pytest.raises(nvvm.NvvmNotFound) as caught:
        nvvm.find()
    assert len(caught.value.tried) == 1
    assert str(wrong) in caught.value.tried[0]
    assert "CUDADRV_NVVM" in str(caught.value)


def test_other_library_is_refused(monkeypatch):
    """A library that is no libNVVM is not taken for one."""
    with pytest.raises(OSError, match="nvvmVersion"):
        nvvm.Nvvm("libc.so.6" if sys.platform == "linux" else "kernel32.dll")


@pytest.fixture
def bare(monkeypatch):
    """No libNVVM is to be found but where the test puts one."""
    for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "CUDADRV_NVVM", "CUDADRV_LIBDEVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "prefix", "/nowhere")


def test_wheel_comes_before_toolkit(bare, monkeypatch, tmp_path):
    """Wheels, newest major first, come before conda and CUDA_HOME, which may list several."""
    homes = [tmp_path / name for name in ("one", "two")]
    places = [tmp_path / "site/nvidia/cu13", tmp_path / "site/nvidia/cu12", tmp_path / "conda"]
    for place in [*homes, *places]:
        place.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.setenv("CUDA_HOME", os.pathsep.join(map(str, homes)))
    found = [root for root in nvvm.roots() if tmp_path in root.parents]
    assert found == [*places, *homes]


@pytest.mark.skipif(sys.platform != "linux", reason="file names of Linux")
def test_places_without_libnvvm_are_told(bare, monkeypatch, tmp_path):
    """A toolkit without libNVVM is among the places tried; one with it is a candidate."""
    (tmp_path / "full/nvvm/lib64").mkdir(parents=True)
    (tmp_path / "full/nvvm/lib64/libnvvm.so.4").touch()
    (tmp_path / "empty").mkdir()
    homes = f"{tmp_path / 'empty'}:{tmp_path / 'full'}"
    monkeypatch.setenv("CUDA_HOME", homes)
    tried: list[str] = []
    paths = list(nvvm.candidates(tried))
    assert str(tmp_path / "full/nvvm/lib64/libnvvm.so.4") in paths
    assert paths[-1] == "libnvidia-nvvm.so.4"
    assert any(place.startswith(f"{tmp_path / 'empty'}: ") for place in tried)


def test_libdevice_override_must_exist(monkeypatch, tmp_path):
    """CUDADRV_LIBDEVICE stands alone."""
    monkeypatch.setenv("CUDADRV_LIBDEVICE", str(tmp_path / "none.bc"))
    with pytest.raises(nvvm.NvvmNotFound, match=r"none\.bc") as caught:
        nvvm.libdevice()
    assert len(caught.value.tried) == 1
    (tmp_path / "none.bc").touch()
    assert nvvm.libdevice() == tmp_path / "none.bc"


@pytest.mark.skipif(sys.platform != "linux", reason="names of files on Linux")
@pytest.mark.parametrize(
    ("place", "candidates"),
    [
        ("cuda_nvcc/nvvm/lib64/libnvvm.so", nvvm.candidates),
        ("nvjitlink/lib/libnvJitLink.so.12", nvjitlink.candidates),
        ("cuda_nvrtc/lib/libnvrtc.so.12", nvrtc.candidates),
        ("cu13/lib/libnvrtc.so.13", nvrtc.candidates),
    ],
)
def test_wheels_of_each_cuda_are_found(place, candidates, monkeypatch, tmp_path):
    """Wheels of CUDA 12, which have a folder a library, are found as those of 13 are."""
    file = tmp_path / "nvidia" / place
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert next(iter(candidates())) == str(file)
