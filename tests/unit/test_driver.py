"""The checked calls and the errors they raise."""

from __future__ import annotations

import ctypes
import inspect
import pickle

import pytest

from cudadrv import checked, driver, errors, raw
from tests.unit.fake_driver import FakeDriver, installed, store


def error_string(code, out):
    """cuGetErrorString that knows two codes."""
    texts = {1: b"a bad value", 700: b"an illegal address"}
    if code not in texts:
        return 1
    return store(out, ctypes.c_char_p, texts[code])


def test_results_are_returned():
    """Out-parameters are not passed; one is returned as a value, several as a tuple."""

    def info(free, total):
        return store(free, ctypes.c_size_t, 3) or store(total, ctypes.c_size_t, 5)

    with installed(FakeDriver(cuMemGetInfo_v2=info, cuCtxGetCurrent=lambda out: 0)):
        assert driver.cuMemGetInfo() == (3, 5)
        assert driver.cuCtxGetCurrent() == 0


def test_strings_are_decoded():
    """A ``const char**`` result is a str."""

    def name(out, function):
        return store(out, ctypes.c_char_p, b"saxpy")

    with installed(FakeDriver(cuKernelGetName=name)):
        assert driver.cuKernelGetName(1) == "saxpy"


def test_signatures_are_those_of_the_header():
    """The checked function has cuda.h's parameter names, without the results."""
    with installed(FakeDriver(cuMemcpyHtoD_v2=lambda *_: 0, cuMemAlloc_v2=lambda *_: 0)):
        assert [*inspect.signature(driver.cuMemcpyHtoD).parameters] == [
            "dstDevice",
            "srcHost",
            "ByteCount",
        ]
        assert [*inspect.signature(driver.cuMemAlloc).parameters] == ["bytesize"]
        with pytest.raises(TypeError, match="bytesize"):
            driver.cuMemAlloc()


def test_every_function_can_be_checked(monkeypatch):
    """Code can be generated for each of the exported functions."""
    monkeypatch.setattr(raw, "function", lambda name: None, raising=False)
    for name in raw.table.FUNCTIONS:
        assert callable(checked.checked(name))


def test_an_error_tells_what_failed():
    """The exception has code, name, function and description, and the message all of them."""
    fake = installed(FakeDriver(cuMemFree_v2=lambda p: 1, cuGetErrorString=error_string))
    with fake, pytest.raises(errors.CudaError) as caught:
        driver.cuMemFree(77)
    error = caught.value
    assert (error.code, error.name) == (1, "CUDA_ERROR_INVALID_VALUE")
    assert (error.function, error.description) == ("cuMemFree_v2", "a bad value")
    assert not error.sticky
    assert "cuMemFree_v2 returned CUDA_ERROR_INVALID_VALUE (1)" in str(error)
    assert "dptr=77" in str(error)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, errors.CudaError),
        (2, errors.OutOfMemory),
        (2, MemoryError),
        (201, errors.InvalidContext),
        (218, errors.JitError),
        (700, errors.LaunchError),
        (701, errors.LaunchError),
        (801, errors.NotSupported),
        (9999, errors.CudaError),
    ],
)
def test_each_cause_has_its_class(code, kind):
    """The class of the exception follows from the code; unknown codes have one too."""
    fake = installed(FakeDriver(cuCtxSynchronize=lambda: code))
    with fake, pytest.raises(kind) as caught:
        driver.cuCtxSynchronize()
    assert caught.value.code == code


def test_a_lost_context_is_marked():
    """After an illegal access every call fails: the error is sticky and says what helps."""
    fake = installed(FakeDriver(cuCtxSynchronize=lambda: 700, cuGetErrorString=error_string))
    with fake, pytest.raises(errors.LaunchError) as caught:
        driver.cuCtxSynchronize()
    assert caught.value.sticky
    assert "new process" in str(caught.value)


def test_every_result_code_has_a_name():
    """No code of the header is shown as unknown."""
    with installed(FakeDriver()):
        for member in raw.CUresult:
            assert driver.error(member.value, "cuInit").name == member.name


def test_errors_survive_pickling():
    """An error that a worker process raises arrives with its attributes."""
    examples = [
        errors.JitError(218, "CUDA_ERROR_INVALID_PTX", "cuLibraryLoadData", "d", "h", "the log"),
        errors.DriverNotFound(["a: b"], "hint"),
        errors.NotSupportedByDriver("cuX", (12, 4), (12, 2)),
        errors.NameNotFound("kernel", "f", ["g"]),
        errors.ForkError(3),
    ]
    for error in examples:
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_init_runs_once():
    """cuInit is called at the first init() of a process only."""
    with installed(FakeDriver()) as fake:
        driver.init()
        driver.init()
        assert fake.called("cuInit") == [(0,)]


def test_unchecked_twin():
    """``driver.f.raw`` returns the code instead of raising."""
    with installed(FakeDriver(cuStreamQuery=lambda stream: 600)):
        assert driver.cuStreamQuery.raw(0) == 600
