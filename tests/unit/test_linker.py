"""Linking without a GPU: nvJitLink and NVRTC, and PTX joined as text."""

from __future__ import annotations

import ctypes
import ctypes.util

import pytest

import cudadrv
from cudadrv import cubin, nvjitlink, nvrtc, ptxlink
from cudadrv.linker import Linker, LinkError
from cudadrv.toolkit import LibraryNotFound
from tests.unit.fake_driver import FakeDriver, installed, store

TWICE = """
.version 8.0
.target sm_80
.address_size 64
.visible .func (.param .b32 r) twice(.param .b32 x)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r0, [x];
  add.s32 %r0, %r0, %r0;
  st.param.b32 [r], %r0;
  ret;
}
"""
CALLER = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) twice(.param .b32 x);
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [p];
  ld.u32 %r0, [%d0];
  {
  .param .b32 x0;
  .param .b32 r0;
  st.param.b32 [x0], %r0;
  call (r0), twice, (x0);
  ld.param.b32 %r0, [r0];
  }
  st.u32 [%d0], %r0;
  ret;
}
"""
SOURCE = 'extern "C" __device__ int twice(int x) { return 2 * x; }'


@pytest.fixture(scope="module")
def jitlink() -> nvjitlink.NvJitLink:
    try:
        return nvjitlink.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def rtc() -> nvrtc.Nvrtc:
    try:
        return nvrtc.find()
    except LibraryNotFound as error:
        pytest.skip(str(error))


def test_ptx_is_linked_to_a_cubin(jitlink):
    """What one PTX declares and another defines becomes one cubin."""
    linker = Linker("sm_80")
    linker.add_ptx(CALLER)
    linker.add_ptx(TWICE)
    cubin = linker.link()
    assert cubin.startswith(b"\x7fELF")
    assert b".text.k" in cubin


@pytest.mark.parametrize("backend", ["nvjitlink", "text"])
def test_missing_symbol_is_named(backend, jitlink):
    """A function that nothing defines is an error whose log names it."""
    linker = Linker("sm_80", backend)
    linker.add_ptx(CALLER)
    with pytest.raises(LinkError) as caught:
        linker.link()
    assert "twice" in caught.value.log
    assert linker.error_log


@pytest.mark.parametrize("backend", ["nvjitlink", "text"])
def test_duplicate_symbol_is_named(backend, jitlink):
    """A function that two inputs define is an error whose log names it."""
    linker = Linker("sm_80", backend)
    for text in (CALLER, TWICE, TWICE):
        linker.add_ptx(text)
    with pytest.raises(LinkError) as caught:
        linker.link()
    assert "twice" in caught.value.log


def test_invalid_ptx_has_the_log(jitlink):
    """PTX that does not assemble is a LinkError with the assembler's words."""
    linker = Linker("sm_80")
    linker.add_ptx(CALLER.replace("add.s32", "add.s33").replace("st.u32", "st.u33"))
    linker.add_ptx(TWICE)
    with pytest.raises(LinkError, match="u33"):
        linker.link()


def test_max_registers_reach_the_cubin(jitlink):
    """The limit of registers is given to nvJitLink, which tells what it used."""
    linker = Linker("sm_80", max_registers=24, options=["-verbose"])
    linker.add_ptx(CALLER)
    linker.add_ptx(TWICE)
    linker.link()
    assert "registers" in linker.info_log


@pytest.mark.parametrize("arch", ["sm_9", "nonsense", "sm_999"])
def test_unknown_architecture_is_refused(arch, jitlink):
    """An architecture that does not exist is an error, not the end of the process."""
    linker_made = pytest.raises((ValueError, LinkError))
    with linker_made:
        linker = Linker(arch, "nvjitlink")
        linker.add_ptx(TWICE)
        linker.link()
    with pytest.raises((ValueError, nvjitlink.NvJitLinkError)):
        nvjitlink.Link([f"-arch={arch}"])


def test_unknown_option_is_named(jitlink):
    """An option that nvJitLink does not know is in the error."""
    with pytest.raises(nvjitlink.NvJitLinkError, match="-nonsense") as caught:
        nvjitlink.Link(["-arch=sm_80", "-nonsense"])
    assert caught.value.name == "NVJITLINK_ERROR_UNRECOGNIZED_OPTION"


def test_source_is_inlined_by_lto(jitlink, rtc):
    """LTO-IR of two sources is optimised as one: the called function is gone."""
    caller = 'extern "C" __device__ int twice(int);'
    caller += 'extern "C" __global__ void k(int* p) { *p = twice(*p); }'
    linker = Linker("sm_90", lto=True)
    linker.add_cu(caller, "caller.cu")
    linker.add_cu(SOURCE, "twice.cu")
    assert [each.kind for each in linker.inputs] == ["ltoir", "ltoir"]
    cubin = linker.link()
    assert b".text.k" in cubin
    assert b"twice" not in cubin


def test_source_error_has_the_log(rtc):
    """CUDA C++ that does not compile is an error with file, line and reason."""
    with pytest.raises(nvrtc.NvrtcError, match=r"bad.cu\(1\)") as caught:
        Linker("sm_90", "text").add_cu("int f( {", "bad.cu")
    assert caught.value.name == "NVRTC_ERROR_COMPILATION"


def test_nvrtc_gives_names_and_versions(rtc):
    """A template's mangled name, the library's version and its architectures can be had."""
    with nvrtc.Program("template <class T> __global__ void f(T* p) { *p = 1; }") as program:
        program.add_name("f<float>")
        program.compile(["-arch=compute_90"])
        name = program.lowered_name("f<float>")
        assert f".entry {name}(" in program.ptx
        assert program.handle
    assert rtc.version >= (12, 0)
    assert (9, 0) in rtc.architectures()
    with pytest.raises(ValueError, match="closed"):
        program.compile()


def test_header_texts_are_included(rtc):
    """Headers can be given as texts."""
    with nvrtc.Program(
        '#include "mine.h"\n__device__ int x = N;', headers={"mine.h": "#define N 5"}
    ) as p:
        p.compile(["-arch=compute_90", "-rdc=true"])
        assert "x = 5" in p.ptx


def test_unknown_file_name_is_refused(tmp_path):
    """A file whose kind its name does not tell is refused; one that is missing is an OSError."""
    linker = Linker("sm_80", "text")
    with pytest.raises(ValueError, match=r"none of .ptx"):
        linker.add_file_guess_ext(tmp_path / "code.xyz")
    with pytest.raises(OSError, match=r"code.ptx"):
        linker.add_file_guess_ext(tmp_path / "code.ptx")
    with pytest.raises(ValueError, match="nothing to link"):
        linker.link()


def test_file_is_added_by_its_name(tmp_path):
    """PTX files are joined as text, with one header."""
    linker = Linker("sm_80", "text")
    for name, text in (("caller.ptx", CALLER), ("twice.ptx", TWICE)):
        (tmp_path / name).write_text(text)
        linker.add_file_guess_ext(tmp_path / name)
    joined = linker.link().decode()
    assert joined.count(".version") == 1
    assert ".extern" not in joined


def test_binary_is_no_text():
    """What is not PTX cannot be joined as text."""
    linker = Linker("sm_80", "text")
    linker.add_cubin(b"\x7fELF....", "code.cubin")
    with pytest.raises(LinkError, match=r"code.cubin is not PTX"):
        linker.link()


def test_private_symbols_stay_apart():
    """Two modules may have a private function of the same name, and each calls its own."""
    private = TWICE.replace(".visible ", "").replace("twice", "helper")
    first = private + CALLER.split("64\n", 1)[1].replace("twice", "helper").replace(
        ".extern .func (.param .b32 r) helper(.param .b32 x);", ""
    )
    second = first.replace(".entry k(", ".entry k2(")
    joined = ptxlink.join({"one": first, "two": second})
    assert joined.count(".func (.param .b32 r) helper(") == 1
    assert joined.count(".func (.param .b32 r) helper$u1(") == 1
    assert joined.count("call (r0), helper$u1, (x0)") == 1


def test_joined_text_assembles(jitlink):
    """What joins PTX as text makes PTX that nvJitLink takes."""
    linker = Linker("sm_80")
    linker.add_ptx(ptxlink.join({"a": CALLER, "b": TWICE}))
    assert linker.link()


def test_strong_definition_wins_over_weak():
    """A weak function gives way to a visible one."""
    weak = TWICE.replace(".visible", ".weak").replace("add.s32", "sub.s32")
    joined = ptxlink.join({"weak": weak, "caller": CALLER, "strong": TWICE})
    assert "add.s32" in joined
    assert "sub.s32" not in joined


def test_driver_links_too():
    """The backend "driver" makes a cubin by cuLink..., with the options that it was given."""
    image = ctypes.create_string_buffer(b"\x7fELFcubin")

    def complete(state, out, size):
        store(size, ctypes.c_size_t, len(image))
        return store(out, ctypes.c_void_p, ctypes.addressof(image))

    fake = FakeDriver(
        cuCtxGetCurrent=lambda out: store(out, ctypes.c_void_p, 0x77),
        cuLinkCreate_v2=lambda n, names, values, out: store(out, ctypes.c_void_p, 0x55),
        cuLinkAddData_v2=lambda *arguments: 0,
        cuLinkComplete=complete,
        cuLinkDestroy=lambda state: 0,
    )
    with installed(fake):
        linker = cudadrv.Linker("sm_80", "driver", max_registers=32)
        linker.add_ptx(CALLER)
        linker.add_ptx(TWICE)
        assert linker.link() == image.raw
    assert len(fake.called("cuLinkAddData_v2")) == 2
    assert fake.called("cuLinkCreate_v2")[0][0] == 5
    assert fake.called("cuLinkDestroy")


def test_driver_takes_no_ltoir():
    """LTO-IR needs nvJitLink, and the error says so."""
    linker = Linker("sm_80", "driver")
    linker.add_ltoir(b"lto")
    with pytest.raises(LinkError, match="nvJitLink"):
        linker.link()


def test_unknown_backend_is_refused():
    """A backend of another name is a ValueError that lists them."""
    with pytest.raises(ValueError, match="nvjitlink, driver"):
        Linker("sm_80", "magic")


@pytest.mark.parametrize(
    ("find", "variable"), [(nvjitlink, "CUDADRV_NVJITLINK"), (nvrtc, "CUDADRV_NVRTC")]
)
def test_wrong_library_is_told(find, variable, monkeypatch):
    """A file that is another library is not used, and the error names it and the variable."""
    monkeypatch.setenv(variable, ctypes.util.find_library("c") or "libc.so.6")
    find.find.cache_clear()
    try:
        with pytest.raises(LibraryNotFound, match=variable) as caught:
            find.find()
    finally:
        find.find.cache_clear()
    assert "another library" in caught.value.tried[0]


@pytest.mark.parametrize(("version", "newest"), [((12, 4), "sm_90"), ((12, 9), "sm_121")])
def test_old_linker_is_not_asked_for_new_architectures(version, newest, jitlink, monkeypatch):
    """nvJitLink before CUDA 13 would end the process; the error names what it knows."""
    monkeypatch.setitem(jitlink.__dict__, "version", version)
    with pytest.raises(ValueError, match=f"{version[0]}.{version[1]} knows.*{newest}"):
        nvjitlink.Link(["-arch=sm_130"], jitlink)
    nvjitlink.Link([f"-arch={newest}a"], jitlink).close()


def test_cubins_are_checked(jitlink):
    """A symbol that nothing defines is found in a cubin, and a missing end as well."""
    linker = Linker("sm_80", "nvjitlink", options=["-r"])
    linker.add_ptx(CALLER)
    code = linker.link()
    assert cubin.undefined(code) == ["twice"]
    linker.add_ptx(TWICE)
    assert cubin.undefined(linker.link()) == []
    cubin.check(code)
    broken = bytearray(code)
    size_of_first = int.from_bytes(code[40:48], "little") + 64 + 32
    broken[size_of_first : size_of_first + 8] = len(code).to_bytes(8, "little")
    with pytest.raises(ValueError, match=f"cut short: section 1 .* of {len(code)}"):
        cubin.check(bytes(broken))
    assert cubin.undefined(CALLER.encode()) == []
