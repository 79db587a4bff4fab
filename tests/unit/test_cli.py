"""The command ``python -m cudadrv``: tables, JSON and exit codes."""

from __future__ import annotations

import json
import re
import sys

import pytest

import cudadrv as cu
from cudadrv import chart, library, module, occupancy_model
from cudadrv.__main__ import main
from cudadrv.errors import DriverNotFound
from cudadrv.toolkit import LibraryNotFound
from tests.device.driver_code import KERNELS, PTX


@pytest.fixture
def file(tmp_path):
    """A file with the test kernels."""
    made = tmp_path / "code.ptx"
    made.write_text(PTX)
    return made


@pytest.fixture
def command(capsys):
    """Run a command in this process; gives the exit code, stdout and stderr."""

    def run(*arguments):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as left:
            code = left.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_info(command):
    """``info`` names driver and devices; as JSON it is what the objects say."""
    device = cu.Device(0)
    code, printed, _ = command("info")
    assert code == 0
    assert device.name in printed and device.arch in printed
    code, printed, _ = command("info", "--json")
    found = json.loads(printed)
    first = found["devices"][0]
    assert (first["name"], first["arch"]) == (device.name, device.arch)
    assert found["emulator"] == cu.is_emulator()
    assert found["cuda_version"] == "{}.{}".format(*cu.driver_version())


def test_attributes(command):
    """``attributes`` prints each attribute by name; as JSON they are numbers."""
    code, printed, _ = command("attributes")
    assert code == 0
    assert re.search(r"WARP_SIZE +32\n", printed)
    assert cu.Device(0).name in printed
    _, printed, _ = command("attributes", "--json")
    assert json.loads(printed)[0]["attributes"]["WARP_SIZE"] == 32


def test_symbols(command):
    """``symbols`` prints every function with its version; ``--missing`` only what is not there."""
    code, printed, _ = command("symbols")
    every = printed.splitlines()
    assert code == 0
    assert "   2.0  cuInit" in every
    _, printed, _ = command("symbols", "--missing")
    missing = printed.splitlines()
    assert missing == [line for line in every if line.endswith("(missing)")]
    assert not any("cuMemAlloc_v2" in line for line in missing)
    _, printed, _ = command("symbols", "--json")
    found = {each["name"]: each for each in json.loads(printed)}
    assert found["cuInit"] == {"name": "cuInit", "introduced": "2.0", "available": True}
    assert len(found) == len(every)


def test_kernels(command, file):
    """``kernels FILE`` lists what is in it, as a table and as JSON."""
    code, printed, _ = command("kernels", file)
    assert code == 0
    assert "scale\n  parameters   8, 4, 8, 4 bytes\n" in printed
    assert "nothing\n  parameters   none\n" in printed
    _, printed, _ = command("kernels", file, "--json")
    found = json.loads(printed)["kernels"]
    assert [each["name"] for each in found] == KERNELS
    assert found[-1]["parameters"] == [8, 4, 8, 4]


def test_find(command):
    """``find`` tells where each library is, or every place that was tried."""
    code, printed, _ = command("find", "--json")
    assert code == 0
    found = {each["name"]: each for each in json.loads(printed)}
    parts = ["driver", "libNVVM", "libdevice", "nvJitLink", "NVRTC", "llvmlite", "numpy"]
    assert list(found) == parts
    assert found["driver"]["version"] == "{}.{}".format(*cu.driver_version())
    assert all(each["path"] or each["tried"] for each in found.values())
    code, printed, _ = command("find")
    assert [line.split()[0] for line in printed.splitlines() if line[0] != " "] == list(found)


def test_find_lists_the_places_tried(command, monkeypatch):
    """What is not there is shown with where it was looked for, and is no failure."""
    monkeypatch.setenv("CUDADRV_NVVM", "/nowhere/libnvvm.so")
    code, printed, _ = command("find")
    assert code == 0
    assert re.search(r"libNVVM +not found\n +tried /nowhere/libnvvm\.so", printed)


def test_find_without_a_driver(command, monkeypatch):
    """Without any driver the exit code is 1, and the other libraries are still shown."""

    def nothing():
        raise DriverNotFound(["/lib/libcuda.so.1: no such file"], "install one")

    monkeypatch.setattr(library, "current", nothing)
    code, printed, _ = command("find")
    assert code == 1
    assert "tried /lib/libcuda.so.1: no such file" in printed
    assert "numpy" in printed


def test_check_of_good_code(command, file):
    """``check`` shows version, target, kernels with their parameters, and variables."""
    code, printed, _ = command("check", file)
    assert code == 0
    assert "kernel     scale(u64 out, f32 a, u64 x, u32 n)\n" in printed
    assert "kernel     mixed(u64 out, u8 b, u16 h, f64 d, b8 pair[16])\n" in printed
    assert "variable   counter\n" in printed
    _, printed, _ = command("check", file, "--json")
    found = json.loads(printed)
    assert (found["kind"], found["version"], found["target"]) == ("ptx", "7.8", "sm_80")
    assert found["ok"] and not found["problems"]
    first = next(each for each in found["kernels"] if each["name"] == "scale")["parameters"][1]
    assert first == {"name": "a", "type": "f32", "offset": 8, "bytes": 4}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("sm_80", "sm_90a"), "it is for sm_90a, and the device is sm_86"),
        (("sm_80", "sm_100f"), "it is for sm_100f, and the device is sm_86"),
        (("sm_80", "fast"), "its target 'fast' is no architecture"),
        (("mul.f32", "mull.f32"), "mull"),
        ((".version 7.8", ""), "it is no PTX: there is no .version"),
        ((".target sm_80", ""), "it is no PTX: there is no .target"),
        ((PTX, "  \n"), "there is no code"),
        ((PTX, "\x7fELF" + "\0" * 80), "an ELF file for machine 0"),
        ((PTX, "a\0b"), "neither PTX text nor a cubin"),
    ],
)
def test_check_of_bad_code(command, file, change, problem):
    """What is wrong is named, and the exit code is 1."""
    file.write_text(PTX.replace(*change))
    code, printed, _ = command("check", file, "--arch", "sm_86")
    assert code == 1
    assert re.search(f"PROBLEM +.*{re.escape(problem)}", printed)
    code, printed, _ = command("check", file, "--json", "--arch", "sm_86")
    assert code == 1
    assert problem in "\n".join(json.loads(printed)["problems"])


def test_check_of_a_cubin(command, tmp_path):
    """Of a cubin the architecture and the kernels are shown; another architecture is a problem."""
    try:
        linker = cu.Linker("sm_86", backend="nvjitlink")
    except LibraryNotFound as error:
        pytest.skip(str(error).splitlines()[0])
    linker.add_ptx(PTX)
    file = tmp_path / "code.cubin"
    file.write_bytes(linker.link())
    code, printed, _ = command("check", file, "--arch", "sm_89", "--json")
    found = json.loads(printed)
    assert code == 0
    assert (found["kind"], found["target"]) == ("cubin", "sm_86")
    assert [each["name"] for each in found["kernels"]] == KERNELS
    for arch in ("sm_80", "sm_90"):
        code, printed, _ = command("check", file, "--arch", arch)
        assert code == 1
        assert f"it is for sm_86, the device is {arch}" in printed
    file.write_bytes(file.read_bytes()[:-100])
    code, printed, _ = command("check", file)
    assert code == 1
    assert "cut short" in printed


def test_check_of_newer_ptx(command, file, monkeypatch):
    """PTX that is newer than the driver reads is a problem that names both versions."""
    monkeypatch.setattr(module, "newest_ptx", lambda: (7, 5))
    code, printed, _ = command("check", file)
    assert code == 1
    assert "it is PTX 7.8, and the driver reads up to 7.5" in printed


def test_check_without_llvmlite(command, file, monkeypatch):
    """Without llvmlite the header and the names are read, and the rest is said to be unknown."""
    monkeypatch.setitem(sys.modules, "cudadrv.emulator.parser", None)
    code, printed, _ = command("check", file)
    assert code == 0
    assert "kernel     scale(unknown parameters)" in printed
    assert "note       not parsed: that needs llvmlite" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("kernels", "/nowhere.ptx"), 1, "FileNotFoundError"),
        (("check", "/nowhere.ptx"), 1, "FileNotFoundError"),
        (("check", "/"), 1, "IsADirectoryError"),
        (("check", "FILE", "--arch", "gpu"), 1, "architecture 'gpu'"),
        (("occupancy", "FILE", "no_such"), 1, "NameNotFound"),
        (("occupancy", "--block", "0"), 1, "--block 0: it is a number from 1 to 1024"),
        (("occupancy", "--registers", "300"), 1, "--registers 300: it is a number from 1 to 255"),
        (("occupancy", "--shared", "-1"), 1, "--shared -1"),
        (("occupancy", "--shared", "999999999"), 1, "has up to"),
        (("occupancy", "--arch", "sm_42"), 1, "none of sm_50"),
        (("occupancy", "FILE"), 2, "a file needs the name of a kernel"),
        (("occupancy", "--block", "many"), 2, "invalid int value"),
        (("no_such_command",), 2, "invalid choice"),
        ((), 2, "required"),
    ],
)
def test_errors_and_exit_codes(command, file, arguments, code, said):
    """A failure is one line and exit code 1, a wrong command line exit code 2; no traceback."""
    given = [str(file) if each == "FILE" else each for each in arguments]
    left, printed, error = command(*given)
    assert left == code
    assert said in error
    assert "Traceback" not in error
    assert not printed


def test_nonsense_is_no_traceback(command, file):
    """A file that the driver refuses is an error with the driver's reason."""
    file.write_text("nonsense")
    code, _, error = command("kernels", file)
    assert code == 1
    assert error.startswith("JitError")


def test_help_documents_the_exit_codes(command):
    """``--help`` lists the commands and what the exit codes mean."""
    code, printed, _ = command("--help")
    assert code == 0
    for word in ("info", "find", "check", "occupancy", "exit codes: 0", "--json"):
        assert word in printed


def test_occupancy_of_numbers(command):
    """Without a file it is computed for an architecture, without any device."""
    code, printed, _ = command("occupancy", "--arch", "sm_90", "--registers", 64, "--block", 256)
    assert code == 0
    assert "occupancy       50%: 4 blocks, 32 warps; limited by registers" in printed
    titles = re.findall("occupancy against (.*)", printed)
    assert titles == [
        "threads of a block",
        "registers of a thread",
        "bytes of shared memory of a block",
    ]
    _, printed, _ = command("occupancy", "--arch", "sm_75", "--shared", 32768, "--json")
    found = json.loads(printed)
    assert found["result"] == {"blocks": 2, "warps": 16, "occupancy": 0.5, "limit": "shared memory"}
    assert [block for block, _ in found["by_block"]] == list(range(32, 1025, 32))
    assert found["by_registers"][0] == [1, 0.5]
    assert found["by_shared"][0] == [0, 1.0]


def test_occupancy_of_a_kernel(command, file):
    """With a file the kernel's own registers, shared memory and largest block count."""
    code, printed, _ = command("occupancy", file, "narrow", "--json")
    assert code == 0
    found = json.loads(printed)
    kernel = cu.load(PTX)["narrow"]
    assert found["registers"] == kernel.attributes["NUM_REGS"]
    assert [block for block, _ in found["by_block"]] == [32, 64]
    assert found["block"] == 64
    assert found["result"]["blocks"] == kernel.occupancy.max_active_blocks(64)


@pytest.mark.parametrize(
    ("arch", "block", "registers", "shared", "expected"),
    [
        ("sm_90", 1024, 32, 0, (2, 64, 1.0, "warps")),
        ("sm_90", 1024, 65, 0, (0, 0, 0.0, "registers")),
        ("sm_90", 32, 16, 0, (32, 32, 0.5, "blocks")),
        ("sm_90", 128, 16, 100 << 10, (2, 8, 0.125, "shared memory")),
        ("sm_90", 128, 16, 228 << 10, (0, 0, 0.0, "shared memory")),
        ("sm_86", 256, 40, 0, (6, 48, 1.0, "warps")),
        ("sm_75", 96, 33, 0, (10, 30, 30 / 32, "warps")),
    ],
)
def test_the_model_of_a_multiprocessor(arch, block, registers, shared, expected):
    """Blocks, warps and what limits them, as in NVIDIA's tables for these architectures."""
    assert occupancy_model.of_arch(arch).run(block, registers, shared) == expected


def test_charts():
    """A chart has a title, rows of one column a value, an axis with a mark, and its ends below."""
    drawn = chart.draw("title", [10, 20, 30, 40], [0, 0.5, 1, 0.25], 20).splitlines()
    assert drawn[0] == "title"
    assert drawn[1] == " 100% │  █"
    assert drawn[chart.ROWS] == "   0% │ ███"
    assert drawn[chart.ROWS + 1] == "      └─┴──"
    assert drawn[-1].split() == ["10", "20", "40"]
    plain = chart.draw("title", list(range(200)), [1.0] * 200, 199, plain=True)
    assert plain.isascii()
    assert max(map(len, plain.splitlines())) <= 80


def test_a_terminal_of_ascii_gets_ascii(run_python):
    """Where the terminal cannot show blocks, the chart is drawn with #."""
    code = "from cudadrv.__main__ import main; main(['occupancy', '--arch', 'sm_90'])"
    assert "#" in run_python(code, PYTHONIOENCODING="ascii")


def test_a_closed_pipe_is_no_error(run_python):
    """Output into a program that stops reading ends quietly."""
    code = (
        "import os, subprocess, sys\n"
        "run = [sys.executable, '-m', 'cudadrv', 'symbols']\n"
        "made = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
        "made.stdout.close()\n"
        "print(b'Traceback' in made.stderr.read())\n"
    )
    assert run_python(code).split() == ["False"]
