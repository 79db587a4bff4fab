"""Kernels on a device: arrays, shared memory, barriers, atomics, device functions, errors."""

from __future__ import annotations

import numpy as np
import pytest

import compiler as cuda
from compiler import CompileError, float32, int32

GENERATORS = ["llvm", "nvvm"]


@cuda.jit
def times_ten(a, o):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            o[i, j] = a[i, j] * 10 + i


BASE = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize(
    "array",
    [BASE, np.asfortranarray(BASE), BASE[::2, ::-1], BASE.T, BASE[:, 1:4], BASE[1:1]],
    ids=["C", "F", "strided", "transposed", "columns", "empty"],
)
@pytest.mark.parametrize("where", ["host", "device"])
def test_every_layout_is_indexed_right(array, where):
    """C, Fortran, strided and empty arrays, from host or device memory."""
    out = np.zeros(array.shape)
    given = cuda.to_device(array) if where == "device" else array
    times_ten[1, 1](given, out)
    np.testing.assert_array_equal(out, array * 10 + np.arange(array.shape[0])[:, None])


def test_zero_dimensional_arrays():
    """x[()] reads and writes the one element."""

    @cuda.jit
    def double(x):
        x[()] = x[()] * 2

    x = np.array(21.0)
    double[1, 1](x)
    assert x == 42.0


def test_negative_indices_count_from_the_end():
    """A constant and a run-time negative index; an unsigned one is not wrapped."""

    @cuda.jit
    def last(m, k, o):
        i = cuda.grid(1)
        if i < m.shape[0]:
            o[i] = m[i, -1] + 100 * m[k, 0]

    m = np.arange(12.0).reshape(4, 3)
    out = np.zeros(4)
    last[1, 8](m, -2, out)
    np.testing.assert_array_equal(out, m[:, -1] + 100 * m[-2, 0])


def test_views_of_slices():
    """Row views, slices with steps and offsets, and views given to device functions."""

    @cuda.jit(device=True)
    def total(v):
        s = 0.0
        for x in v:
            s += x
        return s

    @cuda.jit
    def kernel(m, o):
        o[0] = total(m[1])
        o[1] = total(m[1:, 0])
        o[2] = total(m[::-2, 2])
        o[3] = total(m[0][4:1:-1])
        o[4] = m[2:][1, 3]
        o[5] = total(m[-1, -3:100])
        o[6] = m[1:3, ::2].shape[1]

    m = np.arange(30.0).reshape(5, 6)
    out = np.zeros(7)
    kernel[1, 1](m, out)
    expected = [
        m[1].sum(), m[1:, 0].sum(), m[::-2, 2].sum(), m[0][4:1:-1].sum(), m[2:][1, 3],
        m[-1, -3:100].sum(), 3,
    ]  # fmt: skip
    np.testing.assert_array_equal(out, expected)


def test_attributes_of_arrays():
    """shape, size, ndim, strides, T and len are NumPy's."""

    @cuda.jit
    def attributes(a, o):
        rows, columns = a.shape
        o[0], o[1], o[2], o[3] = rows, columns, a.size, a.ndim
        o[4], o[5] = a.strides
        o[6], o[7], o[8] = len(a), a.itemsize, a.T.shape[0]

    a = np.zeros((3, 5), np.float32)
    out = np.zeros(9, np.int64)
    attributes[1, 1](a, out)
    assert out.tolist() == [3, 5, 15, 2, *a.strides, 3, 4, 5]


@pytest.mark.parametrize("codegen", GENERATORS)
def test_block_sums_with_barriers(codegen):
    """A tree sum in shared memory, and an atomic sum of the blocks'."""

    @cuda.jit(codegen=codegen)
    def block_sum(x, sums, total):
        part = cuda.shared.array(256, int32)
        t = cuda.threadIdx.x
        part[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        half = cuda.blockDim.x >> 1
        while half > 0:
            if t < half:
                part[t] += part[t + half]
            cuda.syncthreads()
            half >>= 1
        if t == 0:
            sums[cuda.blockIdx.x] = part[0]
            cuda.atomic.add(total, 0, part[0])

    x = np.arange(32 * 256, dtype=np.int32)
    sums, total = np.zeros(32, np.int64), np.zeros(1, np.int64)
    block_sum[32, 256](x, sums, total)
    np.testing.assert_array_equal(sums, x.reshape(32, 256).sum(1))
    assert total[0] == x.sum()


def test_dynamic_shared_memory():
    """shared.array(0, dtype) has the size that the launch asks for, beside a static array."""

    @cuda.jit
    def kernel(o):
        fixed = cuda.shared.array(16, int32)
        dynamic = cuda.shared.array(0, int32)
        t = cuda.threadIdx.x
        fixed[t] = 1
        dynamic[t] = 2
        dynamic[t + 16] = 3
        cuda.syncthreads()
        o[t] = fixed[15 - t] + 10 * dynamic[15 - t] + 100 * dynamic[31 - t] + 1000 * dynamic.size

    out = np.zeros(16, np.int32)
    kernel[1, 16, None, 128](out)
    assert out.tolist() == [32321] * 16


def test_shapes_by_expressions():
    """Globals, closure values, NumPy ints and arithmetic on them are constant shapes."""
    n = np.int64(4)

    @cuda.jit
    def kernel(o):
        a = cuda.shared.array(n * 2, float32)
        b = cuda.local.array((n, n + 1), float32)
        o[0] = a.size
        o[1] = b.shape[1]

    out = np.zeros(2)
    kernel[1, 1](out)
    assert out.tolist() == [8, 5]


def test_local_arrays_in_loops_and_calls():
    """A local array is one array, which a device function sees and changes."""

    @cuda.jit(device=True)
    def fill(t, v):
        for j in range(t.size):
            t[j] = v + j

    @cuda.jit
    def kernel(o):
        for k in range(100000):
            t = cuda.local.array(8, float32)
            if k % 50000 == 0:
                fill(t, k)
        o[0] = t[7]

    out = np.zeros(1)
    with pytest.warns(cuda.CompileWarning):
        kernel[1, 1](out)
    assert out[0] == 50007


ATOMICS = ["add", "sub", "max", "min", "and_", "or_", "xor", "exch"]


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("name", ATOMICS)
def test_atomics(name, dtype):
    """Each thread's operation counts once, whatever the order; the old value comes back."""
    operation = getattr(cuda.atomic, name)
    if np.dtype(dtype).kind == "f" and name not in ("add", "sub"):
        pytest.skip("not an operation on floats")

    @cuda.jit
    def kernel(x, r, old):
        i = cuda.grid(1)
        old[i] = operation(r, 0, x[i])

    rng = np.random.default_rng(7)
    x = rng.integers(0, 100, 256).astype(dtype)
    start = np.array([50], dtype)
    result, old = start.copy(), np.zeros_like(x)
    kernel[4, 64](x, result, old)
    everything = np.concatenate([start, x])
    expected = {
        "add": everything.sum, "max": everything.max, "min": everything.min,
        "sub": lambda: (start - x.sum(dtype=dtype))[0],
        "and_": lambda: np.bitwise_and.reduce(everything),
        "or_": lambda: np.bitwise_or.reduce(everything),
        "xor": lambda: np.bitwise_xor.reduce(everything),
    }  # fmt: skip
    if name == "exch":
        assert sorted([*old, result[0]]) == sorted(everything)
    else:
        assert result[0] == expected[name]()
        assert start[0] in old


def test_compare_and_swap():
    """Exactly one thread finds the expected value."""

    @cuda.jit
    def kernel(r, old):
        i = cuda.grid(1)
        old[i] = cuda.atomic.cas(r, 0, 7, 100 + i)

    result, old = np.array([7], np.int32), np.zeros(64, np.int32)
    kernel[2, 32](result, old)
    assert (old == 7).sum() == 1
    assert result[0] == 100 + int(np.flatnonzero(old == 7)[0])


def test_device_functions_defaults_keywords_and_tuples():
    """Arguments by position, keyword and default; a tuple comes back."""

    @cuda.jit(device=True)
    def combine(a, b=10, c=100):
        return a + b + c, a - b

    @cuda.jit
    def kernel(o):
        o[0], o[1] = combine(1)
        o[2], o[3] = combine(1, c=2)
        s, d = combine(b=5, a=o[0])
        o[4] = s
        o[5] = d

    out = np.zeros(6)
    kernel[1, 1](out)
    assert out.tolist() == [111, -9, 13, -9, 216, 106]


def test_device_function_with_a_signature():
    """Arguments convert to the declared types."""

    @cuda.jit("float32(float32, int32)", device=True)
    def scale(x, n):
        return x * n

    @cuda.jit
    def kernel(o):
        o[0] = scale(1.5, 3.9)

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 4.5


def test_factories_do_not_mix():
    """Two kernels from one factory keep their own closure values, frozen when compiled."""

    def make(c):
        @cuda.jit
        def kernel(o):
            o[0] = c

        return kernel

    two, three = make(2), make(3)
    out = np.zeros(1)
    for kernel, expected in ((two, 2), (three, 3), (two, 2)):
        kernel[1, 1](out)
        assert out[0] == expected


def test_signature_converts_arguments():
    """A declared signature decides: an int becomes float64, a float64 array is refused."""

    @cuda.jit("void(float32[:], float64)")
    def kernel(o, x):
        o[0] = x / 2

    out = np.zeros(1, np.float32)
    kernel[1, 1](out, 5)
    assert out[0] == 2.5
    with pytest.raises(TypeError, match=r"argument 0 \(o\).*float32.*float64"):
        kernel[1, 1](np.zeros(1), 5)


def test_every_scalar_type_is_passed():
    """NumPy scalars keep their type; Python's are weak; tuples are flattened."""

    @cuda.jit
    def kernel(o, a, b, c, d, e, t, n):
        o[0], o[1], o[2], o[3] = a, b, c, d
        if e and n is None:
            o[4] = t[0][0] + t[1]

    out = np.zeros(5)
    kernel[1, 1](
        out, np.int8(-3), np.uint16(65535), np.float32(1.5), 2**40, True, ((1, 2), 3), None
    )
    assert out.tolist() == [-3, 65535, 1.5, 2**40, 4]


@cuda.jit
def fill(o, v):
    i = cuda.grid(1)
    if i < o.size:
        o[i] = v


BAD_CALLS = {
    "too few": (lambda o: fill[1, 1](o), TypeError, r"takes 2 arguments \(o, v\), 1 given"),
    "too many": (lambda o: fill[1, 1](o, 1, 2), TypeError, "takes 2 arguments"),
    "unconfigured": (lambda o: fill(o, 1), ValueError, r"fill\[griddim, blockdim\]"),
    "list": (lambda o: fill[1, 1](o, [1]), TypeError, r"argument 1 \(v\): list is no kernel"),
    "huge int": (lambda o: fill[1, 1](o, 2**65), OverflowError, r"argument 1 \(v\).*64 bits"),
    "object array": (lambda o: fill[1, 1](np.array([None]), 1), TypeError, r"argument 0 \(o\)"),
    "zero grid": (lambda o: fill[0, 1](o, 1), ValueError, "griddim 0"),
    "zero block": (lambda o: fill[1, (1, 0)](o, 1), ValueError, "blockdim"),
    "float grid": (lambda o: fill[1.5, 1](o, 1), TypeError, "griddim 1.5"),
    "four dimensions": (lambda o: fill[(1, 1, 1, 1), 1](o, 1), ValueError, "one to three"),
    "one size": (lambda o: fill[1](o, 1), ValueError, "configure a kernel as"),
    "negative shared": (lambda o: fill[1, 1, None, -1](o, 1), ValueError, "sharedmem -1"),
    "block too large": (lambda o: fill[1, 1025](o, 1), ValueError, "1024"),
    "grid too large": (lambda o: fill[(1, 70000), 1](o, 1), ValueError, "65535"),
    "too much shared": (lambda o: fill[1, 1, None, 1 << 20](o, 1), ValueError, "smem=1048576"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_are_refused(name):
    """Nothing is launched; the error names the value and what to do."""
    call, kind, words = BAD_CALLS[name]
    out = np.zeros(4)
    with pytest.raises(kind, match=words):
        call(out)
    assert not out.any()


def test_a_freed_array_is_refused():
    """Launching with a closed array raises before anything runs."""
    array = cuda.to_device(np.zeros(4))
    array.close()
    with pytest.raises(ValueError, match=r"argument 0 \(o\).*closed"):
        fill[1, 1](array, 1)


SIGNATURE_ERRORS = {
    "dtype": (np.zeros((2, 2), "f8"), "float32"),
    "dimensions": (np.zeros(4, "f4"), "2 dimensions"),
    "layout": (np.zeros((4, 4), "f4")[::2, ::2], "contiguous"),
    "number": (3, "expected an array"),
    "none": (None, "expected an array"),
}


@pytest.mark.parametrize("name", SIGNATURE_ERRORS)
def test_signature_mismatches_are_refused(name):
    """An array that does not fit the declared type is never reinterpreted."""

    @cuda.jit("void(float32[:, ::1])")
    def kernel(a):
        a[0, 0] = 1

    value, words = SIGNATURE_ERRORS[name]
    with pytest.raises(TypeError, match=words):
        kernel[1, 1](value)


def test_read_only_arrays_are_read_only():
    """A kernel that writes to one does not compile; one that reads does, and nothing comes back."""
    frozen = np.ones(4)
    frozen.flags.writeable = False
    with pytest.raises(CompileError, match="read-only"):
        fill[1, 4](frozen, 2)

    @cuda.jit
    def copy(a, o):
        i = cuda.grid(1)
        o[i] = a[i]

    out = np.zeros(4)
    copy[1, 4](frozen, out)
    assert out.tolist() == [1] * 4


def test_launches_on_streams_and_events():
    """Work on a stream is complete after its synchronisation; events time it."""
    stream = cuda.stream()
    start, end = cuda.event(), cuda.event()
    array = cuda.to_device(np.zeros(1000), stream=stream)
    start.record(stream)
    fill[8, 128, stream](array, 3)
    end.record(stream)
    stream.synchronize()
    assert (array.copy_to_host() == 3).all()
    assert end.elapsed_ms(start) >= 0


def test_inspection_after_a_launch(capsys):
    """Each specialisation shows its types, its LLVM IR and its PTX."""
    array = np.zeros(4, np.float32)
    fill[1, 4](array, 1)
    (ptx,) = {text for args, text in fill.inspect_ptx().items() if args[0].dtype == float32}
    assert ".entry fill" in ptx
    assert "define void" in next(iter(fill.inspect_llvm().values()))
    fill.inspect_types()
    assert "i: int" in capsys.readouterr().out
