"""What LLVM's generator, which ends the process where it cannot go on, must not be given."""

from __future__ import annotations

import re

from .target import PtxVersion, Target

# Prefix of an intrinsic -> compute capability, suffix and PTX ISA that it needs (PTX ISA manual,
# "Target ISA Notes" of the instruction). The first prefix that fits counts.
_NEEDS: tuple[tuple[str, tuple[int, int], str, PtxVersion], ...] = (
    ("llvm.nvvm.redux.sync.f", (10, 0), "af", (8, 6)),
    ("llvm.nvvm.redux.sync.", (8, 0), "", (7, 0)),
    ("llvm.nvvm.cp.async.bulk.", (9, 0), "", (8, 0)),
    ("llvm.nvvm.cp.async.", (8, 0), "", (7, 0)),
    ("llvm.nvvm.mbarrier.", (8, 0), "", (7, 0)),
    ("llvm.nvvm.read.ptx.sreg.cluster", (9, 0), "", (7, 8)),
    ("llvm.nvvm.read.ptx.sreg.ncluster", (9, 0), "", (7, 8)),
    ("llvm.nvvm.is_explicit_cluster", (9, 0), "", (7, 8)),
    ("llvm.nvvm.barrier.cluster.", (9, 0), "", (7, 8)),
    ("llvm.nvvm.mapa", (9, 0), "", (7, 8)),
    ("llvm.nvvm.getctarank", (9, 0), "", (7, 8)),
    ("llvm.nvvm.griddepcontrol.", (9, 0), "", (7, 8)),
    ("llvm.nvvm.fence.proxy.", (9, 0), "", (8, 3)),
    ("llvm.nvvm.fence.sc.cluster", (9, 0), "", (7, 8)),
    ("llvm.nvvm.stmatrix.", (9, 0), "", (7, 8)),
    ("llvm.nvvm.elect.sync", (9, 0), "", (8, 0)),
    ("llvm.nvvm.setmaxnreg.", (9, 0), "af", (8, 0)),
    ("llvm.nvvm.wgmma.", (9, 0), "a", (8, 0)),
    ("llvm.nvvm.tcgen05.", (10, 0), "af", (8, 6)),
    ("llvm.nvvm.clusterlaunchcontrol.", (10, 0), "", (8, 6)),
    ("llvm.nvvm.tanh.approx.", (7, 5), "", (7, 0)),
    ("llvm.nvvm.ldmatrix.", (7, 5), "", (6, 5)),
)
_INTRINSIC = re.compile(r'@"?(llvm\.[\w.]+)')
# Of these functions the hardware has but approximations, of float32.
_FUNCTION = re.compile(
    r"\bcall\s+((?:[a-z]+\s+)*)\w+\s+@\"?"
    r"(llvm\.(?:a?(?:sin|cos|tan)h?|atan2|exp|exp10|log|log2|log10|log1p|powi?)\.f\d+)"
)
_APPROXIMATED = {"llvm.sin.f32", "llvm.cos.f32", "llvm.tanh.f32"}
_WIDE_EXCHANGE = re.compile(r"= cmpxchg [^\n]* i128 ")


def refusal(source: str, target: Target, ptx: PtxVersion) -> str | None:
    """Why LLVM has no instruction for something in the module; None where nothing is known.

    Args:
        target: with the architecture that code is generated for.
        ptx: the PTX ISA version.
    """
    for name in sorted(set(_INTRINSIC.findall(source))):
        needs = next((row[1:] for row in _NEEDS if name.startswith(row[0])), None)
        if needs and not _has(target, ptx, *needs):
            cc, suffixes, oldest = needs
            arch = Target(cc, suffix=suffixes[:1]).arch
            return f"{name} needs {arch} and PTX {oldest[0]}.{oldest[1]}"
    for flags, name in _FUNCTION.findall(source):
        if name not in _APPROXIMATED or not {"afn", "fast"} & set(flags.split()):
            return f"{name} has no instruction; call the function of libdevice, such as __nv_sin"
    if _WIDE_EXCHANGE.search(source) and (target.cc < (9, 0) or ptx < (8, 3)):
        return "cmpxchg of i128 needs sm_90 and PTX 8.3"
    return None


def _has(
    target: Target, ptx: PtxVersion, cc: tuple[int, int], suffixes: str, oldest: PtxVersion
) -> bool:
    specific = not suffixes or target.suffix in tuple(suffixes)
    return specific and target.cc >= cc and ptx >= oldest
