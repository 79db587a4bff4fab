"""The PTX fundamental types and their LLVM counterparts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    """A PTX type.

    Attributes:
        kind: b (bits), u, s (integers), f (floating point) or p (predicate).
        llvm: the type instructions work on; *lanes* elements for the packed types.
    """

    name: str
    kind: str
    bits: int
    llvm: str
    lanes: int = 1

    @property
    def bytes(self) -> int:
        """The size in memory."""
        return max(self.bits // 8, 1)

    @property
    def is_float(self) -> bool:
        """Whether it is a floating point type."""
        return self.kind == "f"

    @property
    def signed(self) -> bool:
        """Whether it is a signed integer type."""
        return self.kind == "s"

    @property
    def integer(self) -> str:
        """The LLVM integer of the same size."""
        return f"i{self.bits}"

    @property
    def suffix(self) -> str:
        """How an overloaded intrinsic names it: llvm.fabs.f32."""
        element = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
        base = element.get(self.llvm.split()[-1].rstrip(">"), f"i{self.bits // self.lanes}")
        return f"v{self.lanes}{base}" if self.lanes > 1 else base


def _types() -> dict[str, Type]:
    found = [Type("pred", "p", 1, "i1")]
    for bits in (8, 16, 32, 64, 128):
        for kind in "bus":
            found.append(Type(f"{kind}{bits}", kind, bits, f"i{bits}"))
    scalars = {
        "f16": ("half", 16),
        "bf16": ("bfloat", 16),
        "f32": ("float", 32),
        "f64": ("double", 64),
    }
    for name, (llvm, bits) in scalars.items():
        found.append(Type(name, "f", bits, llvm))
        if name != "f64":
            found.append(Type(f"{name}x2", "f", 2 * bits, f"<2 x {llvm}>", 2))
    for kind in "us":
        found.append(Type(f"{kind}16x2", kind, 32, "<2 x i16>", 2))
    return {t.name: t for t in found}


TYPES = _types()


def size_of(name: str) -> int:
    """Bytes of one element of the type *name*."""
    return TYPES[name].bytes
