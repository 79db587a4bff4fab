"""All functions of one kernel, each typed once for each list of argument types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..elements import captured_type
from ..errors import CompileError, TypingError
from ..types import Array, Type
from ..typing.registry import Registry
from .functions import LocalFunction
from .infer import Inference, Typed
from .internal import NeedsUnrollError
from .ir import Function
from .syntax import build

MAX_ROUNDS = 8
# Of the 64 KiB of constant memory that a module has at most.
CONSTANT_BYTES = 48 * 1024
MAX_DEPTH = 100
Key = tuple[Any, tuple[Type, ...]]


@dataclass(eq=False, slots=True)
class _Frame:
    """A function that is being typed.

    Attributes:
        assumed: the return type that recursive calls get; None: not known yet.
        recursive: whether there was such a call.
        lowest: the depth of the outermost function whose assumption the result rests on.
    """

    typed: Typed
    depth: int
    assumed: Type | None
    recursive: bool = False
    lowest: int = MAX_DEPTH


class Program:
    """All functions that one kernel consists of, each once a signature."""

    def __init__(
        self, registry: Registry, libdevice: bool = True, debug: bool = False, cc: int = 75
    ) -> None:
        self.registry = registry
        self.cc = cc
        self.debug = debug
        self.libdevice = libdevice
        self.captured: dict[int, Array] = {}
        self._constant_bytes = 0
        self.functions: dict[Key, Typed] = {}
        self._active: dict[Key, _Frame] = {}

    def captured_type(self, value: Any) -> Array:
        """The type of an array that the source names; small ones of the host are constant memory.

        Raises:
            TypingError: a kernel has no such elements.
        """
        found = self.captured.get(id(value))
        if found is None:
            nbytes = getattr(value, "nbytes", 0)
            space = "const" if self._constant_bytes + nbytes <= CONSTANT_BYTES else "global"
            try:
                found = self.captured[id(value)] = captured_type(value, space)
            except TypeError as error:
                raise TypingError(str(error)) from None
            if found.space == "const":
                self._constant_bytes += nbytes
        return found

    def specialize(self, function: Any, args: tuple[Type, ...]) -> Typed:
        """Type a Python function, or one defined inside another, and all that it calls.

        Raises:
            CompileError: it cannot be compiled; the error shows where.
        """
        return self.call(function, args)[0]

    def call(self, function: Any, args: tuple[Type, ...]) -> tuple[Typed, Type | None]:
        """As specialize, with the return type; None in a recursion where it is not known yet."""
        key = (function, args)
        if key in self.functions:
            typed = self.functions[key]
            return typed, typed.returns
        if key in self._active:
            return self._recurse(self._active[key])
        typed = self._settle(key, function, args)
        return typed, typed.returns

    def _recurse(self, frame: _Frame) -> tuple[Typed, Type | None]:
        frame.recursive = True
        for other in self._active.values():
            if other.depth > frame.depth:
                other.lowest = min(other.lowest, frame.depth)
        return frame.typed, frame.assumed

    def _settle(self, key: Key, function: Any, args: tuple[Type, ...]) -> Typed:
        """Type a function until what its recursive calls return is what was assumed."""
        assumed: Type | None = None
        depth = len(self._active)
        for _ in range(MAX_ROUNDS):
            form, frame, returns = self._round(key, function, args, assumed)
            if not frame.recursive or (returns is not None and returns == assumed):
                break
            if returns is None:
                raise TypingError(f"{form.name} calls itself on every path that returns", form.span)
            assumed = returns
        else:
            raise TypingError(f"what {form.name} returns does not settle", form.span)
        assert returns is not None
        frame.typed.returns = returns
        if frame.lowest >= depth:
            self.functions[key] = frame.typed
        return frame.typed

    def _round(
        self, key: Key, function: Any, args: tuple[Type, ...], assumed: Type | None
    ) -> tuple[Function, _Frame, Type | None]:
        unroll: dict[str, int] = {}
        while True:
            form = self._form(function, args, unroll)
            frame = _Frame(Typed(form, args, self.captured), len(self._active), assumed)
            self._active[key] = frame
            try:
                return form, frame, Inference(self, frame.typed).run()
            except NeedsUnrollError as loop:
                unroll = unroll | {loop.key: loop.count}
            finally:
                del self._active[key]

    def _form(self, function: Any, args: tuple[Type, ...], unroll: dict[str, int]) -> Function:
        is_local = isinstance(function, LocalFunction)
        form: Function = function.build(unroll) if is_local else build(function, unroll)
        names = form.parameters.names
        if len(args) != len(names):
            raise CompileError(
                f"{form.name} takes {len(names)} arguments ({', '.join(names)}), not {len(args)}",
                form.span,
            )
        if len(self._active) >= MAX_DEPTH:
            raise CompileError(f"calls nest deeper than {MAX_DEPTH} functions", form.span)
        return form
