"""What only a real GPU does: it loses its context when a kernel goes astray."""

from __future__ import annotations


def test_a_lost_context_is_told(run_python):
    """After a kernel's illegal access the error is sticky, and cleaning up does not crash."""
    code = (
        "import cudadrv as cu\n"
        "from tests.device.driver_code import library\n"
        "keep = cu.mem_alloc(100)\n"
        "try:\n"
        "    library()['extents'].launch(1, 1, 256)\n"
        "    cu.current_context().synchronize()\n"
        "except cu.CudaError as error:\n"
        "    print(error.sticky, isinstance(error, cu.LaunchError))\n"
    )
    assert run_python(code).split() == ["True", "True"]
