"""Other libraries in the same process: arrays, streams and memory shared with torch and CuPy."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import compiler as cuda
import cudadrv as cu

ROOT = Path(__file__).parents[2]
LIBRARIES = [name for name in ("torch", "cupy", "numba_cuda") if importlib.util.find_spec(name)]
N = 1 << 22


@cuda.jit
def fill_slowly(array, value, turns):
    """Write a value again and again, so that it takes a while."""
    i = cuda.grid(1)
    if i < array.size:
        for turn in range(turns):
            array[i] = value - turns + turn + 1


def there(name):
    """The library, or a skip."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return importlib.import_module(name)


@pytest.fixture(params=["torch", "cupy"])
def other(request):
    """Functions of a library: make an array, take one by DLPack, to NumPy, its address."""
    library = there(request.param)
    if request.param == "torch":
        return (
            lambda n: library.arange(n, dtype=library.float32, device="cuda"),
            library.from_dlpack,
            lambda array: array.cpu().numpy(),
            lambda array: array.data_ptr(),
        )
    return (
        lambda n: library.arange(n, dtype="f4"),
        library.from_dlpack,
        library.asnumpy,
        lambda array: array.data.ptr,
    )


def test_their_arrays_are_ours(other):
    """By the array interface and by DLPack: same address, same elements, and kernels take them."""
    make, _, to_numpy, address = other
    theirs = make(100)
    for ours in (cu.as_cuda_array(theirs), cu.from_dlpack(theirs)):
        assert ours.handle == address(theirs)
        np.testing.assert_array_equal(ours.copy_to_host(), np.arange(100, dtype=np.float32))
    fill_slowly[1, 128](theirs, np.float32(7), 1)
    cu.current_context().synchronize()
    assert set(to_numpy(theirs)) == {7}


def test_our_arrays_are_theirs(other):
    """They take ours by DLPack, whole arrays and views, and keep the memory."""
    _, take, to_numpy, address = other
    array = cu.to_device(np.arange(24, dtype=np.float32).reshape(4, 6))
    for view in (array, array[1:3, ::2], array.T):
        theirs = take(view)
        assert address(theirs) == view.handle
        np.testing.assert_array_equal(to_numpy(theirs), view.copy_to_host())
    del array, view
    assert to_numpy(theirs).sum() == 276


def test_their_data_is_waited_for(other):
    """What a stream of ours still writes is there for them, without a wait on the host."""
    _, take, to_numpy, _ = other
    stream = cu.Stream(nonblocking=True)
    array = cu.device_array(N, np.float32, stream=stream)
    fill_slowly[N // 256, 256, stream](array, np.float32(5), 2000)
    assert set(to_numpy(take(array))) == {5}


def test_types_that_both_have():
    """bfloat16 and bool go to torch and come back."""
    torch = there("torch")
    for dtype in (torch.bool, torch.bfloat16, torch.complex64, torch.uint8):
        theirs = torch.ones(8, dtype=dtype, device="cuda")
        ours = cu.from_dlpack(theirs)
        assert (ours.itemsize, ours.handle) == (theirs.element_size(), theirs.data_ptr())
    again = torch.from_dlpack(cu.to_device(np.array([True, False])))
    assert again.dtype == torch.bool and again.tolist() == [True, False]


@pytest.mark.filterwarnings("ignore:ExternalStream is deprecated")
@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_the_recipes_for_memory(name):
    """The documented manager allocates through the library, which sees the memory as its own."""
    library = there(name)
    text = (ROOT / "docs/interop.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    scope = {}
    exec(next(block for block in blocks if f"import {name}" in block), scope)
    used = (
        library.cuda.memory_allocated
        if name == "torch"
        else library.get_default_memory_pool().used_bytes
    )
    before = used()
    with cu.memory_manager(scope[f"{name.capitalize()}Manager"]):
        array = cu.to_device(np.arange(N, dtype=np.float32))
        assert used() >= before + array.nbytes
        assert array[-1] == N - 1
        array.close()
    assert used() == before


ORDERS = list(itertools.permutations(["cudadrv", *LIBRARIES]))
COPY = "assert {0}.to_device(numpy.arange(9)).copy_to_host()[8] == 8"
USE = {
    "cudadrv": "import numpy, cudadrv\n" + COPY.format("cudadrv"),
    "torch": "import torch\nassert torch.arange(9, device='cuda').sum().item() == 36",
    "cupy": "import cupy\nassert int(cupy.arange(9).sum()) == 36",
    "numba_cuda": "import numpy\nfrom numba import cuda\n" + COPY.format("cuda"),
}


@pytest.mark.parametrize("order", ORDERS, ids=["-".join(order) for order in ORDERS])
def test_every_order_of_imports(order, run_python):
    """Each library works before and after the others, and the process ends quietly."""
    code = [USE[name] for name in (*order, *order)]
    assert run_python("\n".join([*code, "print('end')"])).split()[-1] == "end"
