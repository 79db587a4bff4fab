"""What cudadrv reads in PTX by itself, and what it asks of an old driver."""

from __future__ import annotations

import ctypes

import pytest

import cudadrv as cu
from cudadrv import errors, module
from tests.unit.fake_driver import FakeDriver, installed, old_driver

PTX = ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry f() { ret; }\n"
PTX += ".extern .global .align 4 .u32 g;\n.visible .entry h()\n{ ret; }\n"
PTX += ".global .align 4 .b8 table[16] = {1};\n.const .f64 c = 0d0;\n"


def test_ptx_newer_than_the_driver_is_refused():
    """The error names the version of the code, of the driver and what that reads."""
    with installed(FakeDriver(version=12020)), pytest.raises(errors.JitError) as caught:
        module.check_version(PTX)
    assert caught.value.name == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
    assert all(text in str(caught.value) for text in ("PTX 8.3", "driver 12.2", "up to 8.2"))


@pytest.mark.parametrize("version", [12030, 13000, 14020])
def test_ptx_that_the_driver_reads_passes(version):
    """Older PTX is loaded, and so is any on a driver newer than this package knows."""
    with installed(FakeDriver(version=version)):
        module.check_version(PTX)
        module.check_version(None)


def test_newest_ptx():
    """The newest PTX version follows from the driver's; unknown is None."""
    for version, newest in ((12020, (8, 2)), (12060, (8, 5)), (13000, (9, 0)), (15000, None)):
        with installed(FakeDriver(version=version)):
            assert module.newest_ptx() == newest


def test_names_in_ptx():
    """Kernels and variables are found in the text, for drivers that cannot list them."""
    assert module.ptx_kernels(PTX) == ["f", "h"]
    assert module.ptx_globals(PTX) == ["c", "g", "table"]
    assert module.ptx_globals(".global ;\n.const [4];\n.global .u32 g;") == ["g"]


def test_kinds_of_parameters_in_ptx():
    """Floats are told from integers; bits, structs and pointers with attributes as they are."""
    text = """.visible .entry f(
        .param .u64 .ptr .global .align 1 f_param_0, .param .f32 f_param_1,
        .param .align 8 .b8 f_param_2[16], .param .b32 f_param_3, .param .s16 x, .param .f64 y
    ) { ret; } .entry g() { }"""
    assert module.ptx_floats(text, "f") == [False, True, None, None, False, True]
    assert module.ptx_floats(text, "g") == [None]
    assert module.ptx_floats(text, "h") is None


def test_text_and_binary_are_told_apart():
    """PTX may end in NULs; ELF, fatbin and anything with NULs inside is binary."""
    assert module.ptx_text(PTX.encode() + b"\0") == PTX
    for binary in (b"\x7fELF\x02", b"\x50\xed\x55\xba", b"ab\0cd"):
        assert module.ptx_text(binary) is None


OLD_PTX = PTX.replace("8.3", "7.4")


def test_an_old_driver_loads_modules():
    """Without cuLibrary the code is loaded by cuModuleLoadDataEx, with the log buffers."""
    with installed(old_driver()) as fake:
        library = cu.load(OLD_PTX)
        assert library.handle == 77
        assert library.kernels() == ["f", "h"]
        [arguments] = fake.called("cuModuleLoadDataEx")
        assert arguments[2] == 4
        with pytest.raises(errors.NameNotFound, match="f, h"):
            library["x"]
        library.close()
        assert fake.called("cuModuleUnload") == [(77,)]


def test_an_old_driver_launches():
    """Without cuLaunchKernelEx the launch goes through the call with eleven parameters."""
    values = []

    def launch(*arguments):
        # The memory of the arguments lives no longer than the call.
        pointer = ctypes.c_void_p.from_address(arguments[9]).value
        values.append(ctypes.c_int.from_address(pointer).value)
        return 0

    with installed(old_driver(cuLaunchKernel=launch)) as fake:
        kernel = cu.load(OLD_PTX)["f"]
        assert kernel.params is None
        kernel.launch((2, 3), 32, ctypes.c_int(5), smem=64)
        kernel.prepare("i", 4, 16)(6)
        kernel.launch(1, 1, ctypes.c_int(5), cooperative=True)
        first, second = fake.called("cuLaunchKernel")
        assert first[:8] == (88, 2, 3, 1, 32, 1, 1, 64)
        assert second[:8] == (88, 4, 1, 1, 16, 1, 1, 0)
        assert values == [5, 6]
        [cooperative] = fake.called("cuLaunchCooperativeKernel")
        assert cooperative[:7] == (88, 1, 1, 1, 1, 1, 1)


def test_attributes_need_a_newer_driver():
    """Launch attributes need cuLaunchKernelEx; the error says which driver has it."""
    with installed(old_driver()) as fake:
        kernel = cu.load(OLD_PTX)["f"]
        for attributes in ({"priority": 1}, {"cluster": 2}):
            with pytest.raises(errors.NotSupportedByDriver, match=r"11\.6"):
                kernel.launch(2, 32, ctypes.c_int(5), **attributes)
        assert not fake.called("cuLaunchKernel")


def test_an_untyped_number_needs_a_size():
    """Where the driver does not tell the parameters, a plain number says how to type it."""
    with installed(old_driver()):
        kernel = cu.load(OLD_PTX)["f"]
        with pytest.raises(TypeError, match=r"argument 0: 5 has no size.*numpy\.int32"):
            kernel.launch(1, 1, 5)


def test_the_log_of_a_failed_load_is_kept():
    """What the driver's compiler wrote into the buffer is in the error."""

    def load(out, image, count, options, values):
        names = (ctypes.c_int * count).from_address(options)
        buffers = (ctypes.c_void_p * count).from_address(values)
        ctypes.memmove(buffers[list(names).index(5)], b"line 3: nonsense\0", 17)
        return 218

    fake = old_driver(cuModuleLoadDataEx=load)
    with installed(fake), pytest.raises(errors.JitError) as caught:
        cu.load(OLD_PTX)
    assert caught.value.log == "line 3: nonsense"
    assert "line 3: nonsense" in str(caught.value)
    assert caught.value.function == "cuModuleLoadDataEx"


def test_collecting_after_the_driver_is_gone_calls_nothing():
    """What is collected late does not open another driver, nor call into it."""
    with installed(old_driver()) as fake:
        library = cu.load(OLD_PTX)
    with installed(None):
        library.close()
        assert cu.library.opened() is None
    assert fake.called("cuModuleUnload") == []
