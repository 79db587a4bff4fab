"""Functions that are defined elsewhere, in PTX or CUDA C++, and that kernels call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import types
from ..errors import TypingError
from ..lowering import cabi
from ..lowering.builder import Builder
from ..lowering.models import Value
from ..signature import normalize
from ..types import Array, Signature, Type
from ..typing.promotion import converts
from ..typing.registry import REGISTRY, Match
from .stub import Stub


class ExternFunction(Stub):
    """A function with C's calling convention; an array is passed as the address of its elements.

    Attributes:
        name: its symbol.
        signature: its types.
        link: the files or codes that define it.
    """

    def __init__(self, name: str, signature: Signature, link: Sequence[Any] = ()) -> None:
        super().__init__(name, f"{name}: {signature}")
        self.name = name
        self.signature = signature
        self.link = tuple(link)
        REGISTRY.function(self, rule=self._rule, name=name)(self._lower)

    def __repr__(self) -> str:
        return f"<extern function {self.name}: {self.signature}>"

    def _rule(self, *given: Type) -> Match:
        wanted = self.signature.args
        if len(given) != len(wanted):
            raise TypingError(f"{self.name} is declared {self.signature}: {len(given)} given")
        for have, want in zip(given, wanted, strict=True):
            if not _passes(have, want):
                raise TypingError(f"{self.name} is declared {self.signature}: {have} is no {want}")
        args = tuple(None if isinstance(ty, Array) else ty for ty in wanted)
        return Match(args, self.signature.returns or types.none, data=self)

    def _lower(self, b: Builder, match: Match, *given: Value) -> Value:
        return cabi.call(b, self.name, match.returns, given)


def _passes(given: Type, wanted: Type) -> bool:
    if isinstance(wanted, Array):
        return isinstance(given, Array) and given.dtype == wanted.dtype
    return converts(types.widen(given), wanted)


def declare_device(name: str, sig: Any, link: Any = None) -> ExternFunction:
    """Declare a device function that is defined elsewhere, for kernels to call.

    Args:
        name: its symbol, as C writes it (``extern "C"``).
        sig: its signature, such as "int32(int32, float32[:])"; arrays are passed as pointers.
        link: files (.ptx .cubin .fatbin .o .a .ltoir .bc .cu) or codes that define it, or one.

    Raises:
        TypeError: *sig* is no signature, or has a type that C lacks.
    """
    signature = normalize(sig)
    for ty in (*signature.args, signature.returns or types.none):
        if not isinstance(ty, types.Scalar | types.NoneType | Array):
            raise TypeError(f"{name}: C has no type {ty}; use numbers, bools and arrays")
    if isinstance(signature.returns, Array):
        raise TypeError(f"{name}: a C function cannot return an array; let it fill one")
    return ExternFunction(name, signature, sequence(link))


def declare_device_function(
    name: str, restype: Any, argtypes: Sequence[Any], link: Any = None
) -> ExternFunction:
    """As `declare_device`, with the result's and the arguments' types one by one."""
    returns = normalize((restype,)).args[0] if restype is not None else types.none
    return declare_device(name, Signature(returns, normalize(tuple(argtypes)).args), link)


def sequence(link: Any) -> tuple[Any, ...]:
    """What to link, as a tuple; None is nothing."""
    if link is None:
        return ()
    return tuple(link) if isinstance(link, tuple | list) else (link,)
