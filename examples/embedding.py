"""A compiler of somebody else that uses the parts: its own LLVM IR, our functions, one launch.

It compiles a loop over an expression of its own tiny language. The functions that expressions call
are Python, typed and compiled by `compiler.compile`; code generation, linking, loading and
launching are ours; the context and the stream are the embedding program's.
"""

import sys

import numpy as np
from report import Report

import compiler as cuda
import cudadrv
from compiler.codegen import Target, ptx_version, select


def logistic(x):
    """A function in Python that expressions can call."""
    return cuda.float32(1) / (cuda.float32(1) + cuda.fast_exp(-x))


# Reads x[i], applies a chain of functions, writes out[i]: LLVM IR for the NVPTX target.
MODULE = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
{declarations}
define ptx_kernel void @apply(ptr addrspace(1) %out, ptr addrspace(1) %x, i32 %n) {{
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %first = mul i32 %block, %size
  %i = add i32 %first, %thread
  %inside = icmp ult i32 %i, %n
  br i1 %inside, label %work, label %end
work:
  %at = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v0 = load float, ptr addrspace(1) %at
{body}
  %to = getelementptr float, ptr addrspace(1) %out, i32 %i
  store float %v{last}, ptr addrspace(1) %to
  br label %end
end:
  ret void
}}
"""


def lower(expression: str) -> str:
    """LLVM IR for a chain such as "logistic . double . logistic", applied from the right."""
    lines, names = [], [name.strip() for name in expression.split(".")][::-1]
    for number, name in enumerate(names):
        if name == "double":
            lines.append(f"  %v{number + 1} = fadd float %v{number}, %v{number}")
        else:
            lines.append(f"  %v{number + 1} = call float @{name}(float %v{number})")
    used = sorted(set(names) - {"double"})
    declarations = "\n".join(f"declare float @{name}(float)" for name in used)
    return MODULE.format(declarations=declarations, body="\n".join(lines), last=len(names))


def build(expression: str) -> cudadrv.Library:
    """The loaded code of an expression, for the current context."""
    device = cudadrv.current_context().device
    reads = None if cudadrv.is_emulator() else ptx_version(cudadrv.driver_version())
    target = Target(device.compute_capability, reads)
    # (a) A module of LLVM IR that did not come from Python.
    linker = cudadrv.Linker()
    linker.add_ptx(select(target, "llvm").compile(lower(expression), target), "expression")
    # (b) A Python function with C's calling convention.
    ptx, returns = cuda.compile(logistic, "float32(float32)", cc=target.cc, codegen="llvm")
    assert returns == cuda.float32
    linker.add_ptx(ptx, "functions")
    return cudadrv.load(linker.link())


def main() -> bool:
    """Compile and run an expression; True if NumPy agrees."""
    n = 2**20
    x = np.random.default_rng(8).normal(size=n).astype(np.float32)
    report = Report(f"another compiler's kernel, {n:,} float32 elements")
    # (c) A context and a stream of the embedding program; torch's or CuPy's do as well.
    with cudadrv.Device(0).create_context() as context:
        stream = cudadrv.Stream(nonblocking=True)
        with build("logistic . double . logistic") as library:
            device_x = cudadrv.to_device(x, stream=stream)
            out = cudadrv.device_array_like(device_x)
            run = library["apply"].prepare("PPI", (n + 255) // 256, 256, stream=stream)
            run(out, device_x, n)
            stream.synchronize()
            half = 1 / (1 + np.exp(-x.astype(np.float64)))
            report.check(out.copy_to_host(), 1 / (1 + np.exp(-2 * half)), rtol=1e-5)
    context.close()
    return report.finish()


if __name__ == "__main__":
    sys.exit(not main())
