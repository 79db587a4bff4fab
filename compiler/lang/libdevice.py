"""The functions of libdevice by their own names: ``libdevice.fast_sinf(x)`` is __nv_fast_sinf.

What a function writes through pointers it returns: ``s, c = libdevice.sincos(x)``.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .. import types
from ..errors import CompileError
from ..lowering import cabi
from ..lowering.builder import Builder
from ..lowering.models import I8, Value
from ..types import Array, Scalar, Type, number
from ..typing.registry import REGISTRY, Match
from . import libm
from .libdevice_table import SIGNATURES
from .stub import Stub

_LETTERS: dict[str, Type] = {
    "h": types.int16, "i": types.int32, "l": types.int64, "f": types.float32,
    "d": types.float64, "v": types.none,
}  # fmt: skip
_POINTERS = {"I": types.int32, "F": types.float32, "D": types.float64}
_UNSIGNED: dict[Type, Type] = {types.int32: types.uint32, types.int64: types.uint64}


def signature(name: str) -> tuple[Type, list[Type], list[Scalar]]:
    """The result, the arguments and the outputs of __nv_*name*.

    The lengths' functions norm, rnorm take an array instead of an output.
    """
    letters = SIGNATURES[f"__nv_{name}"]
    returns, taken = _LETTERS[letters[0]], letters[1:]
    args = [_LETTERS[letter] for letter in taken if letter in _LETTERS]
    outputs: list[Scalar] = [_POINTERS[letter] for letter in taken if letter in _POINTERS]
    if taken in ("iD", "iF"):
        args.append(Array(outputs.pop(), 1, "C"))
    source, _, result = name.partition("2")
    if _is_unsigned(source):
        args = [_UNSIGNED.get(ty, ty) for ty in args]
    if _is_unsigned(result or source) or name in ("float_as_uint", "sad"):
        returns = _UNSIGNED.get(returns, returns)
    return returns, args, outputs


def _is_unsigned(part: str) -> bool:
    first = part.partition("_")[0]
    return first.startswith(("uint", "ull", "umul", "umax", "umin", "uhadd", "urhadd", "usad"))


def _declare(name: str) -> Stub:
    returns, args, outputs = signature(name)
    results: tuple[Type, ...] = (*(() if returns == types.none else (returns,)), *outputs)
    result = types.Tuple(results) if len(results) > 1 else results[0]
    own = libm.FUNCTIONS.get(f"__nv_{name}")

    def rule(*given: Type) -> Match | None:
        if len(given) != len(args) or not all(map(_fits, given, args)):
            return None
        wanted = tuple(None if isinstance(ty, Array) else ty for ty in args)
        return Match(wanted, result, python=own, libdevice=own is not None)

    def lower(b: Builder, match: Match, *given: Value) -> Value:
        if not b.module.options.libdevice:
            raise CompileError(
                f"libdevice.{name} needs the file libdevice.10.bc, which was not found: install "
                f"the wheel nvidia-nvvm or set CUDADRV_LIBDEVICE"
            )
        return cabi.call(b, f"__nv_{name}", returns, given, outputs)

    shown = ", ".join(map(str, args))
    stub = Stub(name, f"__nv_{name}({shown}) -> {result}")
    REGISTRY.function(stub, rule=rule, name=f"libdevice.{name}")(lower)
    return stub


def _fits(given: Type, wanted: Type) -> bool:
    if isinstance(wanted, Array):
        return isinstance(given, Array) and given.dtype == wanted.dtype and given.layout == "C"
    ty = number(given)
    return ty is not None and (ty.dtype.kind != "f" or wanted.name.startswith("float"))


def _declare_nan(name: str, returns: Type) -> Stub:
    """The text that C's nan takes chooses nothing here, so it is left out."""

    def lower(b: Builder, match: Match) -> Value:
        empty = b.module.variable("tag", ir.ArrayType(I8, 1), "global", 1)
        empty.initializer = ir.Constant(empty.value_type, None)
        tag = Array(types.uint8, 1, "C", "global")
        return cabi.call(b, f"__nv_{name}", returns, [Value(tag, (b.untyped(empty),))])

    stub = Stub(name, f"__nv_{name}() -> {returns}")
    REGISTRY.function(stub, rule=lambda: Match((), returns), name=f"libdevice.{name}")(lower)
    return stub


def __getattr__(name: str) -> Any:
    """Make a function when it is first named: all of them would take a while."""
    if f"__nv_{name}" not in SIGNATURES:
        import difflib

        near = difflib.get_close_matches(name, _names(), 5)
        raise AttributeError(
            f"libdevice has no function {name!r}"
            + (f"; near to it are {', '.join(near)}" if near else "; dir(libdevice) lists all")
        )
    nans = {"nan": types.float64, "nanf": types.float32}
    stub = _declare_nan(name, nans[name]) if name in nans else _declare(name)
    return globals().setdefault(name, stub)


def __dir__() -> list[str]:
    return sorted({*globals(), *_names()})


def _names() -> list[str]:
    return [symbol.removeprefix("__nv_") for symbol in SIGNATURES]
