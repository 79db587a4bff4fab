"""First versions of driver functions whose plain names mean later ones in newer headers."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv import driver, library, raw
from cudadrv.context import current_context
from cudadrv.errors import NotSupportedByDriver
from cudadrv.raw import table, types


def call_first(name: str, *arguments: Any) -> None:
    """Call the first version of a function, which has its plain name as symbol.

    Args:
        arguments: all that it takes, results as pointers.

    Raises:
        NotSupportedByDriver: the driver has not even that.
    """
    current_context()
    raw.check_process()
    version, declared = table.FUNCTIONS[name]
    address = library.current().address(name, version)
    if not address:
        raise NotSupportedByDriver(name, raw.split_version(version), raw.driver_version())
    kinds = [types.ctype(spelled) for _, spelled, _ in types.split_parameters(declared)]
    call = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)
    driver.check(call(*arguments), name)
