"""cuTexObject... and cuSurfObject..."""

from __future__ import annotations

from typing import Any

from cudadrv.raw import types

from ..boundary import exported
from ..state import current, find
from ..status import require
from ..textures import Surface, Texture


def _record(name: str, address: int | None) -> Any:
    require(address)
    return types.record(types.resolve(name)).from_address(address)


@exported()
def cuTexObjectCreate(resource: int, how: int, view: int | None) -> Texture:
    current()
    require(not view, "NOT_SUPPORTED")
    return Texture(_record("CUDA_RESOURCE_DESC", resource), _record("CUDA_TEXTURE_DESC", how))


@exported()
def cuTexObjectDestroy(handle: int) -> None:
    find(Texture, handle).forget()


@exported()
def cuTexObjectGetResourceDesc(handle: int) -> Any:
    return find(Texture, handle).resource


@exported()
def cuTexObjectGetTextureDesc(handle: int) -> Any:
    return find(Texture, handle).how


@exported()
def cuTexObjectGetResourceViewDesc(handle: int) -> Any:
    """No texture has a view here."""
    find(Texture, handle)
    require(False)


@exported()
def cuSurfObjectCreate(resource: int) -> Surface:
    current()
    return Surface(_record("CUDA_RESOURCE_DESC", resource))


@exported()
def cuSurfObjectDestroy(handle: int) -> None:
    find(Surface, handle).forget()


@exported()
def cuSurfObjectGetResourceDesc(handle: int) -> Any:
    return find(Surface, handle).resource
