"""The exceptions of cudadrv, one class per cause."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class CudaError(RuntimeError):
    """A driver function returned something else than CUDA_SUCCESS.

    Attributes:
        code: the CUresult.
        name: its name, such as "CUDA_ERROR_INVALID_VALUE".
        function: the exported function that returned it.
        description: what the driver says the code means.
        sticky: whether every later call on the context fails too; only a new process helps.
    """

    def __init__(
        self, code: int, name: str, function: str, description: str = "", hint: str = ""
    ) -> None:
        self.code = code
        self.name = name
        self.function = function
        self.description = description
        self.hint = hint
        self.sticky = code in STICKY
        parts = [f"{function} returned {name} ({code})"]
        parts += [f": {description}"] if description else []
        parts += [f"; {hint}"] if hint else []
        super().__init__("".join(parts))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.name, self.function, self.description, self.hint)


class OutOfMemory(CudaError, MemoryError):
    """The device, or the host for pinned memory, has no more memory to give."""


class InvalidContext(CudaError):
    """There is no current context, or it was destroyed, or a handle belongs to another one."""


class NotSupported(CudaError):
    """The device, or the emulator, does not do this."""


class LaunchError(CudaError):
    """A kernel could not start, or failed while it ran (then ``sticky``)."""


class JitError(CudaError):
    """The driver refused the code to load; ``log`` holds what its compiler said."""

    def __init__(
        self,
        code: int,
        name: str,
        function: str,
        description: str = "",
        hint: str = "",
        log: str = "",
    ) -> None:
        super().__init__(code, name, function, description, hint)
        self.log = log

    def __reduce__(self) -> tuple[object, ...]:
        made, arguments = super().__reduce__()
        return made, (*arguments, self.log)  # type: ignore[misc]


class DriverNotFound(RuntimeError):
    """No CUDA driver could be opened.

    Attributes:
        tried: every place looked at, with what was wrong there.
    """

    def __init__(self, tried: Iterable[str], hint: str) -> None:
        self.tried = tuple(tried)
        self.hint = hint
        super().__init__(
            "no CUDA driver found; tried\n" + "".join(f"  {place}\n" for place in self.tried) + hint
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.tried, self.hint)


class NotSupportedByDriver(RuntimeError):
    """The installed driver lacks a function.

    Attributes:
        name: the function.
        needs: the version of CUDA that introduced it.
        has: the version of the driver.
    """

    def __init__(self, name: str, needs: tuple[int, int], has: tuple[int, int] | None) -> None:
        self.name = name
        self.needs = needs
        self.has = has
        text = f"{name} needs driver {needs[0]}.{needs[1]}"
        if has is None:
            text += ", and the version of this driver is unknown"
        elif has < needs:
            text += f", this driver is {has[0]}.{has[1]}; install a newer one"
        else:
            text = f"{name} is missing from this driver ({has[0]}.{has[1]}; CUDA has it since "
            text += f"{needs[0]}.{needs[1]})"
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.name, self.needs, self.has)


class ForkError(RuntimeError):
    """CUDA was used in a process forked after the parent had used it."""

    def __init__(self, parent: int) -> None:
        self.parent = parent
        super().__init__(
            f"CUDA cannot be used in this process: it was forked from process {parent} after "
            "that had used CUDA; start workers with multiprocessing's 'spawn' method, or fork first"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.parent,)


class ClosedError(ValueError):
    """An object was used after its ``close()``."""


class NameNotFound(LookupError):
    """A library has no kernel or global of that name.

    Attributes:
        name: what was asked for.
        available: the names that there are, None where the driver cannot list them.
    """

    def __init__(self, kind: str, name: str, available: Iterable[str] | None) -> None:
        self.kind = kind
        self.name = name
        self.available = None if available is None else tuple(sorted(available))
        text = f"the library has no {kind} {name!r}"
        if self.available is not None:
            names = ", ".join(self.available) or "none"
            text += f"; its {kind}s are: {names}"
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.kind, self.name, self.available)


# The result codes after which the context is lost, by number: this file reads no table.
STICKY = frozenset({214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721})

KINDS: dict[int, type[CudaError]] = {
    2: OutOfMemory,
    200: JitError,
    201: InvalidContext,
    209: JitError,
    218: JitError,
    221: JitError,
    222: JitError,
    223: JitError,
    300: JitError,
    400: CudaError,
    701: LaunchError,
    709: InvalidContext,
    719: LaunchError,
    720: LaunchError,
    801: NotSupported,
} | dict.fromkeys((700, 702, 710, 714, 715, 716, 717, 718, 721), LaunchError)
