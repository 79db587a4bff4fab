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
    seen = _record("CUDA_RESOURCE_VIEW_DESC", view) if view else None
    return Texture(_record("CUDA_RESOURCE_DESC", resource), _record("CUDA_TEXTURE_DESC", how), seen)


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
    found = find(Texture, handle)
    require(found.view is not None)
    return found.view


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
