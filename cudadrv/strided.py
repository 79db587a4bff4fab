"""Copies between device arrays and NumPy arrays whose elements lie apart, in few driver calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cudadrv import driver, raw
from cudadrv.context import in_context
from cudadrv.copies import transfer
from cudadrv.layout import Piece, c_strides, plan
from cudadrv.stream import stream_handle

if TYPE_CHECKING:
    from cudadrv.array import DeviceArray

Host = npt.NDArray[Any]
HOST, DEVICE = 1, 2  # CUmemorytype
# More copies than this are slower than one copy of the gaps too, or than the way over the host.
MOST = 64
# Rows of fewer bytes are slow to read one by one; reading up to GAPS times as much at once is not.
NARROW, GAPS = 64, 16


def copy_pieces(kind: str, dst: int, src: int, pieces: Sequence[Piece], stream: object) -> None:
    """Make the copies of a plan, in the direction *kind* as for ``transfer``.

    C: cuMemcpy2DUnaligned_v2, cuMemcpy3D_v2, cuMemcpy2DAsync_v2, cuMemcpy3DAsync_v2
    """
    for piece in pieces:
        to, since = dst + piece.to, src + piece.since
        if piece.rows == piece.planes == 1:
            transfer(kind, to, since, piece.width, stream)
            continue
        flat = piece.planes == 1
        copy = raw.CUDA_MEMCPY2D() if flat else raw.CUDA_MEMCPY3D()
        copy.WidthInBytes, copy.Height = piece.width, piece.rows
        copy.srcPitch, copy.dstPitch = piece.since_pitch, piece.to_pitch
        copy.srcMemoryType, copy.dstMemoryType = (
            HOST if letter == "H" else DEVICE for letter in (kind[0], kind[3])
        )
        setattr(copy, "srcHost" if kind[0] == "H" else "srcDevice", since)
        setattr(copy, "dstHost" if kind[3] == "H" else "dstDevice", to)
        if not flat:
            copy.srcHeight, copy.dstHeight = piece.since_height, piece.to_height
            copy.Depth = piece.planes
        reference = ctypes.byref(copy)
        if stream is not None:
            function = driver.cuMemcpy2DAsync if flat else driver.cuMemcpy3DAsync
            in_context(function, reference, stream_handle(stream))
        else:
            in_context(driver.cuMemcpy2DUnaligned if flat else driver.cuMemcpy3D, reference)


def host_array(value: Any) -> Host:
    """*value* as a NumPy array.

    Raises:
        ValueError: it is masked: the mask would be lost without a word.
    """
    if isinstance(value, np.ndarray) and hasattr(value, "mask"):
        raise ValueError(
            "the array is masked: pass its filled(), or its data and its mask as two arrays"
        )
    return np.asarray(value)


def host_pointer(array: Host) -> int:
    """The address of a host array's first element."""
    return int(array.__array_interface__["data"][0])


def overlap(a: DeviceArray, b: DeviceArray) -> bool:
    """Whether the bytes from the first to the last of the two have some in common."""
    (low, high), (other_low, other_high) = a.extent, b.extent
    return a.handle + low < b.handle + other_high and b.handle + other_low < a.handle + high


def gather(source: DeviceArray, stream: object) -> Host:
    """The elements of a device array on the host, when the stream has got there."""
    itemsize = source.itemsize
    # What is repeated is fetched once, what runs backwards forwards, in the order of addresses.
    once = [slice(0, 1) if stride == 0 else slice(None) for stride in source.strides]
    turned = [slice(None, None, -1 if stride < 0 else 1) for stride in source.strides]
    order = sorted(range(source.ndim), key=lambda axis: -abs(source.strides[axis]))
    view = source.view_of(tuple(once)).view_of(tuple(turned)).transpose(order)
    low, high = view.extent
    packed = c_strides(view.shape, itemsize)
    pieces = plan(view.shape, packed, view.strides, itemsize, max(view.size, 1))
    assert pieces is not None
    narrow = len(pieces) > MOST or (pieces[0].width < NARROW and pieces[0].rows > 1)
    if narrow and high - low <= GAPS * view.nbytes:
        block = np.empty(high - low, np.uint8)
        transfer("DtoH", host_pointer(block), view.handle + low, block.nbytes, stream)
        host: Host = np.ndarray(view.shape, source.dtype, block, -low, view.strides)
    else:
        host = np.empty(view.shape, source.dtype)
        copy_pieces("DtoH", host_pointer(host), view.handle, pieces, stream)
    wait(stream)
    host = host.transpose(np.argsort(order))[tuple(turned)] if order else host
    return np.broadcast_to(host, source.shape)


def scatter(target: DeviceArray, source: Host, stream: object) -> None:
    """Copy a host array of the same shape and dtype into a device array.

    Raises:
        ValueError: the device array has several elements at one address.
    """
    itemsize = target.itemsize
    pieces = plan(target.shape, target.strides, source.strides, itemsize, MOST)
    rearranged = pieces is None
    if pieces is None:
        turned = [slice(None, None, -1 if stride < 0 else 1) for stride in target.strides]
        order = sorted(range(target.ndim), key=lambda axis: -abs(target.strides[axis]))
        target = target.view_of(tuple(turned)).transpose(order)
        source = np.array(source[tuple(turned)].transpose(order), order="C")
        pieces = plan(target.shape, target.strides, source.strides, itemsize, max(target.size, 1))
    if pieces is None:
        raise ValueError(
            f"a device array of shape {target.shape} and strides {target.strides} cannot be "
            "written to: it has several elements at one address"
        )
    copy_pieces("HtoD", target.handle, host_pointer(source), pieces, stream)
    if rearranged:
        wait(stream)


def move(target: DeviceArray, source: DeviceArray, stream: object) -> None:
    """Copy a device array into another one of the same shape and dtype; they may overlap.

    Raises:
        ValueError: the target has several elements at one address.
    """
    if overlap(target, source):
        if (target.handle, target.strides) != (source.handle, source.strides):
            with source.copy(stream) as temporary:
                place(target, temporary, stream)
                wait(stream)
        return
    place(target, source, stream)


def place(target: DeviceArray, source: DeviceArray, stream: object) -> None:
    """Copy a device array into another one that does not overlap it."""
    pieces = plan(target.shape, target.strides, source.strides, target.itemsize, MOST)
    if pieces is None:
        scatter(target, gather(source, stream), stream)
    else:
        copy_pieces("DtoD", target.handle, source.handle, pieces, stream)


def wait(stream: object) -> None:
    """Wait for a stream, if there is one.

    C: cuStreamSynchronize
    """
    if stream is not None:
        in_context(driver.cuStreamSynchronize, stream_handle(stream))
