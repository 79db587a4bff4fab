"""Loading with options, variables of loaded code, and foreign code: what a Library offers."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import jit_options, nvjitlink, nvrtc, raw
from cudadrv.module import loading_mode
from cudadrv.toolkit import LibraryNotFound
from tests.device.driver_code import KERNELS, PTX, library

MANAGED = """
.version 7.8
.target sm_80
.address_size 64

.visible .global .attribute(.managed) .align 4 .u32 shared_count[2] = {5, 7};
.visible .global .align 4 .u32 plain = 3;

.visible .entry bump()
{
    .reg .b32 %r;
    ld.global.u32 %r, [shared_count];
    add.u32 %r, %r, 1;
    st.global.u32 [shared_count], %r;
    ret;
}
"""


@pytest.fixture
def lib():
    """The test kernels, loaded for one test."""
    with cu.load(PTX) as loaded:
        yield loaded


def test_every_option_of_the_header_is_known():
    """Each CUjit_option is a keyword, set with a keyword, or left out on purpose."""
    names = {name.removeprefix("CU_JIT_").lower() for name in raw.CUjit_option.__members__}
    keywords = {enumerator for enumerator, _ in jit_options.TABLE.values()}
    known = [keywords, jit_options.SYMBOLS, jit_options.LOGS, jit_options.LEFT_OUT]
    assert names == set().union(*known)
    assert sum(map(len, known)) == len(names)


def test_code_loads_with_options():
    """Options of the compiler are passed on, and the kernel computes the same."""
    options = {
        "max_registers": 32,
        "optimization_level": 1,
        "lineinfo": True,
        "verbose": True,
        "cache_mode": "cg",
        "debug": None,
    }
    kernel = cu.load(PTX, **options)["scale"]
    assert kernel.attributes["NUM_REGS"] <= 32
    out, x = cu.device_array(4, np.float32), cu.to_device(np.arange(4, dtype=np.float32))
    kernel.launch(1, 32, out, 2.0, x, 4)
    assert out.copy_to_host().tolist() == [0, 2, 4, 6]


def test_options_become_numbers():
    """Words, flags and architectures have the numbers of cuda.h."""
    made = jit_options.Options(
        {"target": "sm_90a", "fallback": "binary", "cache_mode": "ca", "debug": True}
    )
    assert made.numbers == {
        raw.CU_JIT_TARGET: raw.CU_TARGET_COMPUTE_90A,
        raw.CU_JIT_FALLBACK_STRATEGY: raw.CU_PREFER_BINARY,
        raw.CU_JIT_CACHE_MODE: raw.CU_JIT_CACHE_OPTION_CA,
        raw.CU_JIT_GENERATE_DEBUG_INFO: 1,
    }
    assert jit_options.Options({"max_registers": 40, "debug": True}).link_options() == [
        "-maxrregcount=40",
        "-g",
    ]
    assert jit_options.Options({"debug": False}).link_options() == []


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"registers": 3}, TypeError, "no option 'registers' .*; there are: max_registers"),
        ({"max_registers": 0}, ValueError, "max_registers=0: it is a number from 1 to 255"),
        ({"max_registers": "few"}, TypeError, "max_registers='few'"),
        ({"optimization_level": 5}, ValueError, "from 0 to 4"),
        ({"lineinfo": 2}, ValueError, "lineinfo=2: it is True or False"),
        ({"target": "sm_42"}, ValueError, "target='sm_42'.*sm_90"),
        ({"target": 90}, ValueError, "target=90"),
        ({"cache_mode": "l1"}, ValueError, "'cg'"),
        ({"target": "sm_90", "threads_per_block": 64}, ValueError, "exclude each other"),
        ({"symbols": 5}, TypeError, "symbols=5"),
        ({"symbols": {"x": -1}}, ValueError, "address=-1"),
    ],
)
def test_bad_options_are_refused(given, kind, message):
    """The error names the option and what it takes, before anything is loaded."""
    with pytest.raises(kind, match=message):
        cu.load(PTX, **given)


def test_variables_are_memory(lib):
    """A variable is read, written, filled and cut like all device memory."""
    counter = lib.get_global("counter")
    cu.memset(counter, 0)
    cu.memcpy(counter[4:12], np.array([7, 8], np.uint32))
    found = np.zeros(4, np.uint32)
    cu.memcpy(found, counter)
    assert found.tolist() == [0, 7, 8, 0]
    array = cu.as_cuda_array(counter)
    assert array.copy_to_host().view(np.uint32).tolist() == [0, 7, 8, 0]
    lib.close()
    with pytest.raises(cu.ClosedError):
        cu.memcpy(found, counter)


def test_managed_variables_are_shared_with_the_host():
    """A managed variable is found as such; the host reads what the kernel wrote."""
    lib = cu.load(MANAGED)
    managed = lib.get_managed("shared_count")
    assert managed.nbytes == 8
    lib["bump"].launch(1, 1)
    cu.current_context().synchronize()
    found = np.zeros(2, np.uint32)
    cu.memcpy(found, managed)
    assert found.tolist() == [6, 7]
    with pytest.raises(cu.NameNotFound):
        lib.get_managed("plain")
    assert lib.get_global("plain").nbytes == 4


@pytest.mark.parametrize("get", ["get_global", "get_managed", "unified_function"])
def test_names_that_are_none(lib, get):
    """An unknown name is NameNotFound, another type TypeError."""
    with pytest.raises(cu.NameNotFound, match="'nothing_like_it'"):
        getattr(lib, get)("nothing_like_it")
    with pytest.raises(TypeError, match="names are str"):
        getattr(lib, get)(3)


def test_adopting_code_and_kernels(lib):
    """Code and kernels that another library loaded are used, and not unloaded."""
    adopted = cu.Library.adopt(lib.handle)
    assert adopted.kernels() == KERNELS
    adopted["nothing"].launch(1, 1)
    adopted.close()
    assert lib.kernels() == KERNELS
    kernel = cu.Library.adopt_kernel(lib["extents"].handle)
    assert kernel.name == "extents"
    out = cu.device_array(6, np.uint32)
    kernel.launch(3, 32, out)
    assert out.copy_to_host()[0] == 3


def test_adopting_modules_and_functions(lib):
    """A CUmodule and a CUfunction serve as well."""
    module = cu.driver.cuLibraryGetModule(lib.handle)
    assert cu.Library.adopt(module, is_library=False).kernels() == KERNELS
    kernel = cu.Library.adopt_kernel(lib["extents"].function, is_library=False)
    out = cu.device_array(6, np.uint32)
    kernel.launch(4, 32, out)
    assert out.copy_to_host()[0] == 4
    assert kernel.function == kernel.handle


@pytest.mark.parametrize("adopt", [cu.Library.adopt, cu.Library.adopt_kernel])
def test_what_cannot_be_adopted(adopt):
    """NULL, negative numbers and other objects are refused before the driver sees them."""
    for wrong, kind in ((0, ValueError), (-1, ValueError), ("lib", TypeError), (None, TypeError)):
        with pytest.raises(kind, match="handle="):
            adopt(wrong)


def test_lazy_loading():
    """The driver tells how it loads; a kernel can be loaded ahead of its launch."""
    assert loading_mode() in ("lazy", "eager")
    kernel = cu.load(PTX)["narrow"]
    kernel.load()
    assert kernel.is_loaded


def test_preferences_of_a_kernel(lib):
    """A kernel's cache preference and carveout can be set; wrong values name themselves."""
    kernel = lib["scale"]
    kernel.set_cache_config("prefer_l1")
    kernel.attributes["PREFERRED_SHARED_MEMORY_CARVEOUT"] = 25
    assert kernel.attributes["PREFERRED_SHARED_MEMORY_CARVEOUT"] == 25
    with pytest.raises(ValueError, match="prefer='l1'"):
        kernel.set_cache_config("l1")
    with pytest.raises(TypeError, match="PREFERRED_SHARED_MEMORY_CARVEOUT='half'"):
        kernel.attributes["PREFERRED_SHARED_MEMORY_CARVEOUT"] = "half"
    with pytest.raises(ValueError, match="as large"):
        kernel.attributes["PREFERRED_SHARED_MEMORY_CARVEOUT"] = 1 << 40
    lib.close()
    with pytest.raises(cu.ClosedError):
        _ = kernel.attributes["NUM_REGS"]
    with pytest.raises(cu.ClosedError):
        kernel.set_cache_config("prefer_l1")


def lto_code(source):
    """LTO-IR of CUDA C++ for this device; skips where there is no NVRTC or nvJitLink."""
    try:
        nvjitlink.find()
        program = nvrtc.Program(source)
    except LibraryNotFound as error:
        pytest.skip(str(error).splitlines()[0])
    arch = cu.Device(0).arch.replace("sm_", "compute_")
    with program:
        program.compile([f"-arch={arch}", "-dlto"])
        return program.ltoir


def test_link_time_code_loads():
    """LTO-IR is linked for the device and runs."""
    code = lto_code('extern "C" __global__ void seven(int *out) { *out = 7; }')
    out = cu.device_array(1, np.int32)
    cu.load(code, max_registers=32)["seven"].launch(1, 1, out)
    assert out.copy_to_host().tolist() == [7]


def test_symbols_on_the_host():
    """What a variable on the host stands for is passed to the driver; the emulator has it not."""
    if not cu.is_emulator():
        pytest.skip("what a GPU's driver does depends on the code")
    with pytest.raises(cu.NotSupported):
        cu.load(PTX, symbols={"x": 4096})


def test_one_library_is_shared():
    """The library of the other tests still works after all this."""
    assert library().kernels() == KERNELS
