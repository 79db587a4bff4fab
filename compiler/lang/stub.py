"""The names that exist only inside kernels: calling one on the host is an error that says so."""

from __future__ import annotations

from typing import Any


class Stub:
    """A function of the kernel language. Its row in the registry gives its meaning."""

    def __init__(self, name: str, doc: str) -> None:
        self.__name__ = name
        self.__doc__ = doc

    def __repr__(self) -> str:
        return f"<kernel function {self.__name__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.__name__} works only inside a kernel, not on the host")


class Register:
    """A number that each thread has, such as threadIdx.x."""

    def __init__(self, name: str, register: str, limit: int) -> None:
        self.name, self.register, self.limit = name, register, limit

    def __repr__(self) -> str:
        return f"<kernel value {self.name}>"


class Dim3:
    """Three registers, x, y and z."""

    def __init__(self, name: str, register: str, limits: tuple[int, int, int], doc: str) -> None:
        self.__doc__ = doc
        self.name = name
        self.x = Register(f"{name}.x", f"{register}.x", limits[0])
        self.y = Register(f"{name}.y", f"{register}.y", limits[1])
        self.z = Register(f"{name}.z", f"{register}.z", limits[2])

    def __repr__(self) -> str:
        return f"<kernel value {self.name}>"
