"""The attributes of streams and of kernel nodes, as mappings."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from cudadrv import raw
from cudadrv.attributes import UNKNOWN
from cudadrv.context import in_context
from cudadrv.errors import CudaError
from cudadrv.launch_attributes import PREFIX, TABLE, fill
from cudadrv.process_local import Named


class LaunchAttributes(Named, MutableMapping[str, Any]):
    """Attributes by the names of ``cudadrv.launch_attributes``.

    A value is set as the table there says, and read as a number or as the record of cuda.h; what
    the driver does not have, or not for this, is None.
    """

    def __init__(
        self, place: str, owner: Any, get: Callable[..., Any], change: Callable[..., Any]
    ) -> None:
        """Take what has the attributes, and the checked functions that ask and set one."""
        self._place, self._owner = place, owner
        self._get, self._set = get, change

    def __getitem__(self, name: str) -> Any:
        if name not in tuple(self):
            raise KeyError(f"a {self._place} has no attribute {name!r}")
        number = getattr(raw, PREFIX + name.upper())
        try:
            value = in_context(self._get, self._owner.handle, number)
        except CudaError as error:
            if error.code in UNKNOWN:
                return None
            raise
        found = getattr(value, TABLE[name].field)
        return type(found).from_buffer_copy(found) if isinstance(found, ctypes.Structure) else found

    def __setitem__(self, name: str, value: Any) -> None:
        made = raw.CUlaunchAttribute()
        fill(made, name, value, self._place)
        in_context(self._set, self._owner.handle, made.id, ctypes.byref(made.value))

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"an attribute of a {self._place} cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return (name for name, row in TABLE.items() if self._place in row.places)

    def __len__(self) -> int:
        return sum(1 for _ in self)
