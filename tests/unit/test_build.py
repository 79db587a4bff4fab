"""python -m compiler build: the files and manifests it writes, and its errors."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

from compiler.__main__ import main
from compiler.codegen import Target, select
from cudadrv import fatbin, manifest, nvjitlink
from cudadrv.toolkit import LibraryNotFound, roots

SOURCE = """
import compiler as cuda

@cuda.jit("void(float32[::1], float32[:, :], int32)")
def scale(out, x, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i, 0] * 2

def plain(out):
    out[0] = 1
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def jitlink():
    try:
        nvjitlink.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))


def test_ptx_and_manifest_are_written(file, tmp_path, capsys):
    """The PTX of all kernels and a manifest of their arguments are written and named."""
    out = tmp_path / "k.ptx"
    assert main(["build", str(file), "--arch", "sm_80", "-o", str(out)]) == 0
    assert capsys.readouterr().out.split() == [str(out), f"{out}.json"]
    assert ".target sm_80" in out.read_text()
    found = manifest.find(str(out))
    assert found["files"] == {"sm_80": "k.ptx"}
    wanted = [["array", "f4", 1, "C"], ["array", "f4", 2, "A"], "i"]
    assert found["kernels"]["scale"]["arguments"] == wanted


@pytest.mark.parametrize("version", ["7.8", "8.4", "9.0"])
def test_ptx_is_as_old_as_asked(version, file, tmp_path):
    """For a driver that reads no newer PTX, none is written."""
    out = tmp_path / "k.ptx"
    assert main(["build", str(file), "--ptx", version, "-o", str(out)]) == 0
    written = re.search(r"^\.version (\d+)\.(\d+)", out.read_text(), re.MULTILINE)
    assert tuple(map(int, written.groups())) <= tuple(map(int, version.split(".")))


def test_each_architecture_has_its_file(file, tmp_path, jitlink):
    """Several architectures make one cubin each, and a device gets the nearest of its kind."""
    out = tmp_path / "k.cubin"
    arguments = ["build", f"{file}:plain", "--signature", "void(int64[::1])"]
    arguments += ["--arch", "sm_80,sm_86,sm_90", "--format", "cubin", "-o", str(out)]
    assert main(arguments) == 0
    files = manifest.find(str(out))["files"]
    assert all((tmp_path / name).read_bytes().startswith(b"\x7fELF") for name in files.values())
    assert manifest.choose(files, (8, 9)) == "k.sm_86.cubin"
    assert manifest.choose(files, (9, 0)) == "k.sm_90.cubin"
    with pytest.raises(ValueError, match="sm_120"):
        manifest.choose(files, (12, 0))


def test_fatbin_is_what_the_tool_writes(file, tmp_path, jitlink):
    """A fatbin of two architectures has the very bytes that NVIDIA's tool writes of the same."""
    tool = next((path for root in roots() for path in root.glob("bin/fatbinary*")), None)
    if tool is None:
        pytest.skip("there is no fatbinary")
    images = []
    for arch in ("80", "90"):
        out = tmp_path / f"{arch}.cubin"
        arguments = ["build", str(file), "--arch", f"sm_{arch}", "--format", "cubin"]
        assert main([*arguments, "-o", str(out)]) == 0
        images.append(f"--image3=kind=elf,sm={arch},file={out}")
    theirs = tmp_path / "theirs.fatbin"
    command = [str(tool), "--64", f"--create={theirs}", "-compress=false", *images]
    subprocess.run(command, check=True, capture_output=True)
    ours = tmp_path / "ours.fatbin"
    arguments = ["build", str(file), "--arch", "sm_80,sm_90", "--format", "fatbin"]
    assert main([*arguments, "-o", str(ours)]) == 0
    assert ours.read_bytes() == theirs.read_bytes()


def test_fatbin_takes_ptx_too():
    """PTX is an entry of its own kind and version; what is neither PTX nor cubin is refused."""
    data = fatbin.write({"compute_80": b".version 8.1\n.target sm_80\n"})
    kind, _, header, size, _, _, minor, major, arch = struct.unpack_from("<HHIQIIHHI", data, 16)
    assert (kind, minor, major, arch) == (1, 1, 8, 80)
    assert len(data) == 16 + header + size
    with pytest.raises(ValueError, match="neither"):
        fatbin.write({"sm_80": b"text"})


@pytest.mark.parametrize("form", ["llvm", "ltoir"])
def test_other_formats_are_written(form, file, tmp_path):
    """LLVM IR and LTO-IR are written as they are."""
    if select(Target((9, 0))).name != "nvvm":
        pytest.skip("there is no libNVVM")
    out = tmp_path / "k.out"
    assert main(["build", str(file), "--arch", "sm_90", "--format", form, "-o", str(out)]) == 0
    assert out.stat().st_size > 100


def test_inspect_prints_the_stages(file, capsys):
    """inspect prints source with types, LLVM IR and PTX."""
    assert main(["inspect", str(file)]) == 0
    text = capsys.readouterr().out
    assert all(f"-- scale: {stage}" in text for stage in ("source", "llvm", "ptx"))
    assert ".visible .entry scale(" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{file}:absent"], "defines no absent"),
        (["{file}:plain"], "--signature"),
        (["{file}.gone"], "no such file"),
        (["{file}", "--arch", "sm_x"], "sm_x"),
        (["{file}", "--arch", "sm_10"], "oldest"),
        (["{file}", "--ptx", "new"], "PTX version 'new'"),
        (["{file}", "--arch", "sm_90", "--ptx", "6.0"], "no code generator"),
        (["{file}:plain", "--signature", "void(int64)"], "int64"),
    ],
)
def test_errors_are_one_message(arguments, message, file, tmp_path, capsys):
    """What cannot be built is said on stderr, with status 1, and nothing is written."""
    given = [each.replace("{file}", str(file)) for each in arguments]
    assert main(["build", *given, "-o", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_damaged_manifest_is_told(tmp_path):
    """A manifest that does not parse, or of a newer format, is a ValueError that names it."""
    place = tmp_path / "k.ptx.json"
    place.write_text("{")
    with pytest.raises(ValueError, match="build again"):
        manifest.find(str(tmp_path / "k.ptx"))
    place.write_text(json.dumps({"format": 99, "files": {}, "kernels": {}}))
    with pytest.raises(ValueError, match="99"):
        manifest.find(str(tmp_path / "k.ptx"))


class OnDevice:
    """An array's interface without an array."""

    def __init__(self, array):
        self.__cuda_array_interface__ = {**array.__array_interface__, "strides": array.strides}


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(4), "f8"),
        (np.zeros((2, 2), np.float32), "2-dim"),
        (np.zeros(8, np.float32)[::2], "contiguous"),
    ],
)
def test_unfit_arrays_are_refused(array, message):
    """An array of another dtype, dimension or layout than built for is a TypeError."""
    with pytest.raises(TypeError, match=message):
        manifest.expand([["array", "f4", 1, "C"]], (OnDevice(array),), "k")


def test_arguments_expand_to_parameters():
    """An array becomes address, lengths and strides; a tuple its items; None nothing."""
    array = np.zeros((3, 4), np.float32)
    layout = [["array", "f4", 2, "A"], ["f", "i"], ""]
    parts = manifest.expand(layout, (OnDevice(array), (1.5, 2), None), "k")
    assert [len(part) for part in parts] == [8, 8, 8, 8, 8, 4, 4]
    assert b"".join(parts[1:5]) == np.array([3, 4, 16, 4]).tobytes()


def test_built_code_needs_no_compiler(file, tmp_path):
    """Reading a manifest and laying out arguments imports neither the compiler nor llvmlite."""
    out = tmp_path / "k.ptx"
    assert main(["build", str(file), "-o", str(out)]) == 0
    program = (
        "import sys; sys.modules['llvmlite'] = sys.modules['compiler'] = None\n"
        "import cudadrv.module, cudadrv.linker\n"
        f"found = cudadrv.manifest.find({str(out)!r})\n"
        "print(len(cudadrv.manifest.expand(['i', 'd'], (1, 2.0), 'k')), *found['kernels'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["2", "scale"], done.stderr
