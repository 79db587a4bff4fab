"""Finding and choosing the driver."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys

import pytest

from cudadrv import config, errors, library
from tests.unit.fake_driver import FakeDriver, installed, store


def test_the_stub_is_never_a_candidate():
    """The unversioned libcuda.so, a toolkit's stub, is not looked for; the soname comes first."""
    names = library.candidates()
    assert not [name for name in names if name.endswith("libcuda.so")]
    if sys.platform != "win32":
        assert names[0] == "libcuda.so.1"
        assert "/usr/lib/wsl/lib/libcuda.so.1" in names


def test_the_error_lists_every_place(monkeypatch):
    """DriverNotFound has an entry for each candidate, and says how to go on."""
    places = ["libno-such-1.so", "/no/such/libcuda.so.1"]
    monkeypatch.setattr(library, "candidates", lambda: places)
    with pytest.raises(errors.DriverNotFound) as caught:
        library.open_native()
    assert [entry.split(":")[0] for entry in caught.value.tried] == places
    assert "CUDADRV_DRIVER" in str(caught.value)
    assert all(place in str(caught.value) for place in places)


def test_a_wrong_path_is_named():
    """A path that the user chose fails loudly, with the variable to correct."""
    with pytest.raises(errors.DriverNotFound, match=r"/no/such/libcuda(.|\n)*CUDADRV_DRIVER"):
        library.open_driver("/no/such/libcuda.so.1")


def test_a_library_that_is_no_driver_is_named():
    """So does a library that exists but has no driver functions."""
    with pytest.raises(errors.DriverNotFound, match="without cuInit"):
        library.open_driver(ctypes.util.find_library("m"))


def device_count(count: int):
    """cuDeviceGetCount that answers *count*."""
    return lambda out: store(out, ctypes.c_int, count)


@pytest.mark.parametrize(
    ("fake", "reason"),
    [
        (FakeDriver(cuDeviceGetCount=device_count(1)), None),
        (FakeDriver(cuDeviceGetCount=device_count(0)), "0 devices"),
        (FakeDriver(cuInit=lambda flags: 34, cuDeviceGetCount=device_count(1)), "stub"),
        (FakeDriver(cuInit=lambda flags: 100, cuDeviceGetCount=device_count(1)), "100"),
        (FakeDriver(), "not a CUDA driver"),
    ],
)
def test_only_a_driver_that_works_is_taken(fake, reason):
    """A library must initialise and have a device; else the reason is told."""
    found = library.why_unusable(fake)
    assert found is None if reason is None else reason in found


def test_auto_says_that_it_takes_the_emulator(monkeypatch, capsys):
    """Without a driver, auto opens the emulator and prints one line on stderr."""
    emulator = FakeDriver()
    monkeypatch.setattr(library, "candidates", lambda: ["libno-such-1.so"])
    monkeypatch.setattr(library, "open_emulator", lambda: emulator)
    assert library.open_driver("auto") is emulator
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "emulator" in printed.err and "CUDADRV_DRIVER" in printed.err


def test_the_chosen_emulator_is_silent(monkeypatch, capsys):
    """Who asks for the emulator is not told about it."""
    monkeypatch.setattr(library, "open_emulator", FakeDriver)
    library.open_driver("emulator")
    assert capsys.readouterr().err == ""


def test_auto_prefers_a_driver_that_works(monkeypatch, capsys):
    """A usable driver is taken without a word, and the emulator is not even imported."""
    native = FakeDriver()
    monkeypatch.setattr(library, "open_native", lambda: native)
    monkeypatch.setattr(library, "open_emulator", lambda: pytest.fail("opened the emulator"))
    assert library.open_driver("auto") is native
    assert capsys.readouterr().err == ""


def test_a_missing_llvmlite_is_named(monkeypatch):
    """Without a driver and without llvmlite, the error tells how to get either."""
    monkeypatch.setattr(library, "candidates", lambda: ["libno-such-1.so"])
    monkeypatch.setitem(sys.modules, "cudadrv.emulator", None)
    with pytest.raises(errors.DriverNotFound) as caught:
        library.open_driver("auto")
    assert "llvmlite" in str(caught.value)
    assert "libno-such-1.so" in str(caught.value)


def test_the_variable_chooses(monkeypatch):
    """CUDADRV_DRIVER is read when the driver is first needed; unset or empty means auto."""
    monkeypatch.setenv("CUDADRV_DRIVER", "/some/libcuda.so.1")
    assert config.driver() == "/some/libcuda.so.1"
    monkeypatch.setenv("CUDADRV_DRIVER", "")
    assert config.driver() == "auto"


def test_use_driver_comes_before_the_variable(monkeypatch):
    """A choice in the program overrides the variable."""
    opened = []
    monkeypatch.setenv("CUDADRV_DRIVER", "/from/variable")
    monkeypatch.setattr(library, "open_driver", opened.append)
    with installed(None):
        library.use_driver("/from/program")
        library.current()
    assert opened == ["/from/program"]


def test_use_driver_is_refused_once_one_is_open():
    """Changing the driver of a running process is an error; repeating the choice is none."""
    with installed(FakeDriver()) as fake:
        library.use_driver(fake)
        with pytest.raises(RuntimeError, match="too late"):
            library.use_driver("/another/libcuda.so.1")
        with pytest.raises(RuntimeError, match="too late"):
            library.use_driver(FakeDriver())


def test_native_functions_are_found_by_their_exact_name():
    """A native library gives the address of what it exports, and 0 for what it does not."""
    native = library.NativeDriver(ctypes.util.find_library("c") or "libc.so.6")
    assert native.address("getpid", 2000) != 0
    assert native.address("cuNoSuchFunction", 2000) == 0
    assert native.path.startswith("/") or sys.platform == "win32"


def test_no_driver_at_all_is_an_exception_for_the_user(run_python):
    """With a driver that cannot be opened: is_available is false, a call raises DriverNotFound."""
    code = (
        "import cudadrv\n"
        "print(cudadrv.is_available())\n"
        "try:\n"
        "    cudadrv.mem_alloc(10)\n"
        "except cudadrv.DriverNotFound as error:\n"
        "    print(len(error.tried))\n"
    )
    assert run_python(code, CUDADRV_DRIVER="/no/such/libcuda.so.1").split() == ["False", "1"]
