"""Turns the type names of the table into ctypes types, each when it is first asked for."""

from __future__ import annotations

import ctypes
import enum
import re

from cudadrv.raw import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BASIC: dict[str, Any] = {
    "void": None,
    "char": ctypes.c_char,
    "signed char": ctypes.c_byte,
    "unsigned char": ctypes.c_ubyte,
    "short": ctypes.c_short,
    "unsigned short": ctypes.c_ushort,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "long long": ctypes.c_longlong,
    "unsigned long long": ctypes.c_ulonglong,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}
_records: dict[str, Any] = {}
_enums: dict[str, type[enum.IntEnum]] = {}
_callbacks: dict[str, Any] = {}


def resolve(name: str) -> str:
    """The name behind typedefs: of a basic type, an enum, a record, a pointer or a function."""
    name = name.removeprefix("const ")
    while name in table.TYPEDEFS:
        name = table.TYPEDEFS[name].removeprefix("const ")
    return name


def ctype(name: str) -> Any:
    """The ctypes type for a C type; pointers, handles and functions are all c_void_p."""
    name = resolve(name)
    array = re.fullmatch(r"(.+?)\[(\d+)\](.*)", name)
    if array:
        return ctype(array[1] + array[3]) * int(array[2])
    if name.endswith(("*", ")")):
        return ctypes.c_void_p
    if name in table.ENUMS:
        return ctypes.c_int
    if name in BASIC:
        return BASIC[name]
    return record(name)


def record(name: str) -> Any:
    """The ctypes Structure or Union of a C record; a nameless member's fields are the record's."""
    if name not in _records:
        kind, fields = table.RECORDS[name]
        base: Any = ctypes.Structure if kind == "struct" else ctypes.Union
        namespace = {
            "_anonymous_": [field for field, _ in fields if field.startswith("_anonymous")],
            "_fields_": [(field, ctype(spelled)) for field, spelled in fields],
            "__module__": "cudadrv.raw",
        }
        _records[name] = type(base)(name, (base,), namespace)
    return _records[name]


def enumeration(name: str) -> type[enum.IntEnum]:
    """The IntEnum of a C enum; functions take plain ints as well, also unknown ones."""
    if name not in _enums:
        make: Any = enum.IntEnum
        _enums[name] = make(name, list(table.ENUMS[name].items()), module="cudadrv.raw")
    return _enums[name]


def callback(name: str) -> Any:
    """The CFUNCTYPE of a C function pointer type such as CUhostFn."""
    if name not in _callbacks:
        result, _, parameters = resolve(name).partition("(")
        types = [ctype(spelled) for _, spelled, _ in split_parameters(parameters.rstrip(")"))]
        make = ctypes.WINFUNCTYPE if hasattr(ctypes, "WINFUNCTYPE") else ctypes.CFUNCTYPE
        _callbacks[name] = make(ctype(result), *types)
    return _callbacks[name]


def split_parameters(text: str) -> list[tuple[bool, str, str]]:
    """Of each parameter: whether it is a result, its C type, its name."""
    parameters = []
    for item in text.split(", ") if text else ():
        spelled, _, name = item.removeprefix("out ").rpartition(" ")
        parameters.append((item.startswith("out "), spelled, name))
    return parameters
