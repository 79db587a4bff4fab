"""External memory and semaphores, as far as there is no other API; profiler control."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import pytest

import cudadrv as cu
from cudadrv import profiler


@pytest.fixture
def file(context):
    """A file descriptor that is no memory of a device."""
    with tempfile.TemporaryFile() as opened:
        opened.write(bytes(4096))
        yield opened.fileno()


@pytest.mark.parametrize("kind", ["opaque_fd", "dmabuf_fd"])
def test_a_file_is_no_memory(file, kind):
    """The driver refuses another file by an error; it may have closed the descriptor."""
    with pytest.raises(cu.CudaError) as caught:
        cu.ExternalMemory(os.dup(file), 4096, kind)
    assert caught.value.function == "cuImportExternalMemory"


@pytest.mark.parametrize("kind", ["opaque_fd", "timeline_semaphore_fd"])
def test_a_file_is_no_semaphore(file, kind):
    """The driver refuses another file by an error, and the file stays open."""
    with pytest.raises(cu.CudaError) as caught:
        cu.ExternalSemaphore(file, kind)
    assert caught.value.function == "cuImportExternalSemaphore"
    os.fstat(file)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, 0), ValueError, "nbytes=0"),
        ((3, -1), ValueError, "nbytes=-1"),
        ((3, 1 << 64), ValueError, "of 64 bits"),
        ((3, 2.5), TypeError, "float"),
        ((-1, 4096), ValueError, "-1 is no file descriptor"),
        ((1 << 31, 4096), ValueError, "no file descriptor"),
        (("name", 4096), TypeError, "'name' of type str is no handle of kind 'opaque_fd'"),
        ((None, 4096), TypeError, "NoneType"),
        ((True, 4096), TypeError, "bool"),
        ((3, 4096, "vulkan"), ValueError, "kind='vulkan': there are opaque_fd, "),
    ],
)
def test_wrong_external_memory(context, arguments, error, message):
    """Sizes, kinds and handles are checked before the driver is asked."""
    with pytest.raises(error, match=message):
        cu.ExternalMemory(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1,), ValueError, "-1 is no file descriptor"),
        (("name",), TypeError, "no handle of kind 'opaque_fd'"),
        ((3, "fence"), ValueError, "kind='fence': there are opaque_fd, "),
        ((None, "nvscisync"), TypeError, "NoneType"),
    ],
)
def test_wrong_external_semaphores(context, arguments, error, message):
    """Kinds and handles are checked before the driver is asked."""
    with pytest.raises(error, match=message):
        cu.ExternalSemaphore(*arguments)


def test_profiling_starts_and_stops(context):
    """Both may be called without a profiler, and the block ends the recording also by an error."""
    with profiler.profile():
        cu.to_device(np.zeros(4))
    with pytest.raises(KeyError), profiler.profile():
        raise KeyError
    profiler.start()
    profiler.stop()
