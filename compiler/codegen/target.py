"""What code is generated for: the target, its IR dialect, and PTX versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cudadrv.module import PTX_OF_CUDA

PtxVersion = tuple[int, int]


class CodegenError(Exception):
    """A code generator refused the IR.

    Attributes:
        generator: "nvvm" or "llvm".
        log: what it said.
        ir: the IR that it was given.
    """

    def __init__(self, generator: str, log: str, ir: str = "") -> None:
        self.generator = generator
        self.log = log
        self.ir = ir
        super().__init__(f"{generator} cannot compile this IR:\n{log}")


class NoCodegen(CodegenError):
    """No code generator fits the target; ``tried`` says for each why not."""

    def __init__(self, target: Target, tried: Sequence[str]) -> None:
        self.target = target
        self.tried = list(tried)
        reads = f" with PTX {target.ptx[0]}.{target.ptx[1]} or older" if target.ptx else ""
        lines = "\n".join(f"  {line}" for line in tried)
        super().__init__("select", lines)
        self.args = (f"no code generator makes {target.arch}{reads}; tried:\n{lines}",)


class Outdated(Exception):
    """The record of a code generator is no longer true; it is gone, so the next is."""


@dataclass(frozen=True)
class Target:
    """What to generate code for, and how.

    Attributes:
        cc: compute capability; an unknown one is served by the nearest lower.
        ptx: newest PTX ISA that the consumer reads, see `ptx_version`; None: any.
        suffix: "a" or "f": code for this very architecture, or its family.
        fma: may contract a multiplication and an addition to one rounding.
        fastmath: flushes denormals and approximates division, square root and functions.
        debug: full debug information, no optimisation.
        opt: optimisation level, 0 to 3.
        ftz, prec_div, prec_sqrt: one part of *fastmath* each; None: as *fastmath* says.
    """

    cc: tuple[int, int]
    ptx: PtxVersion | None = None
    suffix: str = ""
    fma: bool = True
    fastmath: bool = False
    debug: bool = False
    opt: int = 3
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None

    def __post_init__(self) -> None:
        if self.cc < (7, 5):
            raise ValueError(f"compute capability {self.cc}: 7.5 is the oldest supported")
        if self.suffix not in _SUFFIXES:
            raise ValueError(f"suffix {self.suffix!r}: must be '', 'a' or 'f'")
        if self.opt not in (0, 1, 2, 3):
            raise ValueError(f"opt {self.opt!r}: must be 0, 1, 2 or 3")

    @property
    def arch(self) -> str:
        """The architecture's name, such as "sm_90"."""
        return f"sm_{self.cc[0]}{self.cc[1]}{self.suffix}"

    @property
    def flushes(self) -> bool:
        """Whether float32 denormals become zero."""
        return self.fastmath if self.ftz is None else self.ftz

    @property
    def precise_div(self) -> bool:
        """Whether float32 division is correctly rounded."""
        return not self.fastmath if self.prec_div is None else self.prec_div

    @property
    def precise_sqrt(self) -> bool:
        """Whether the float32 square root is correctly rounded."""
        return not self.fastmath if self.prec_sqrt is None else self.prec_sqrt

    @property
    def level(self) -> int:
        """The optimisation level in force."""
        return 0 if self.debug else self.opt


class Dialect(NamedTuple):
    """How the IR must be written.

    Attributes:
        typed_pointers: LLVM 7 IR, whose pointers have element types ("i8*").
        nvvmir_version: the numbers of the metadata !nvvmir.version; None: it is not needed.
    """

    triple: str
    data_layout: str
    typed_pointers: bool = False
    nvvmir_version: tuple[int, ...] | None = None


# Oldest PTX ISA that knows an architecture (PTX ISA manual, "Release Notes").
ARCHITECTURES: dict[tuple[int, int], PtxVersion] = {
    (7, 5): (6, 3),
    (8, 0): (7, 0),
    (8, 6): (7, 1),
    (8, 7): (7, 4),
    (8, 8): (9, 0),
    (8, 9): (7, 8),
    (9, 0): (7, 8),
    (10, 0): (8, 6),
    (10, 3): (8, 8),
    (11, 0): (9, 0),
    (12, 0): (8, 7),
    (12, 1): (8, 8),
}


def ptx_version(cuda: tuple[int, int]) -> PtxVersion:
    """The newest PTX ISA that a driver, or toolkit, of CUDA version *cuda* reads.

    From CUDA 13 on the numbers go in step; for an unknown major version this is a lower bound.
    """
    if cuda[0] == 13:
        return (9, cuda[1])
    if cuda[0] > 13:
        return (9, 9)
    known = [ptx for version, ptx in PTX_OF_CUDA.items() if version <= cuda]
    if not known:
        raise ValueError(f"CUDA {cuda[0]}.{cuda[1]} is older than 10.0, the oldest supported")
    return max(known)


def nearest_lower(target: Target) -> Iterator[Target]:
    """*target*, then the same with each lower known compute capability from the nearest."""
    yield target
    if target.suffix != "a":
        for cc in sorted(ARCHITECTURES, reverse=True):
            if cc < target.cc and (not target.suffix or cc[0] == target.cc[0]):
                yield replace(target, cc=cc)


def oldest_ptx(target: Target) -> PtxVersion | None:
    """The oldest PTX ISA that knows the architecture of *target*; None where we do not know it."""
    oldest = ARCHITECTURES.get(target.cc)
    first_cc, first_ptx = _SUFFIXES[target.suffix]
    return max(oldest, first_ptx) if oldest and target.cc >= first_cc else None


# Suffix -> the oldest compute capability and PTX ISA that have it.
_SUFFIXES: dict[str, tuple[tuple[int, int], PtxVersion]] = {
    "": ((7, 5), (6, 3)),
    "a": ((9, 0), (8, 0)),
    "f": ((10, 0), (8, 8)),
}
