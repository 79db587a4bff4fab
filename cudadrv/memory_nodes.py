"""Nodes of graphs that copy, fill, allocate and free memory, or signal through it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from cudadrv import checks, fills, pitched, raw
from cudadrv.array_copy import copy_ends
from cudadrv.boxes import DEVICE, HOST, Box, End
from cudadrv.context import current_context
from cudadrv.copies import check_apart, copy_size, span
from cudadrv.graph import device_number
from cudadrv.node import Node, NodeParams
from cudadrv.stream import CONDITIONS, FLUSH, memory_operation


class MemcpyNode(NodeParams):
    """A copy of bytes."""

    KIND = "MEMCPY"

    def __init__(self, dst: Any, src: Any, nbytes: int | None = None) -> None:
        """Check a copy; see ``memcpy`` for what everything means.

        Raises:
            ValueError: more bytes than *dst* or *src* has, or none.
            TypeError: an end is no memory.

        C: cuGraphAddNode
        """
        target, source = span(dst, True), span(src, False)
        count = copy_size(target, source, nbytes)
        if not count:
            raise ValueError("a node cannot copy no bytes")
        if target.on_device and source.on_device:
            check_apart(target.address, source.address, count)
        box = Box(count, 1, 1, 1)
        to, since = (
            End(DEVICE if each.on_device else HOST, each.address, pitch=count, rows=1)
            for each in (target, source)
        )
        self._take(to, since, box, (dst, src, target.keep, source.keep))

    @classmethod
    def box(
        cls,
        dst: Any,
        src: Any,
        width: int,
        height: int,
        depth: int = 1,
        dst_pitch: int | None = None,
        src_pitch: int | None = None,
        dst_rows: int | None = None,
        src_rows: int | None = None,
        dst_at: Sequence[int] = (0, 0, 0),
        src_at: Sequence[int] = (0, 0, 0),
    ) -> MemcpyNode:
        """A copy of planes of rows of bytes; see ``memcpy_3d`` for what everything means.

        Raises:
            ValueError: the box leaves *dst* or *src*, or is empty.
        """
        lengths = [
            checks.size(value, name, 1)
            for value, name in ((width, "width"), (height, "height"), (depth, "depth"))
        ]
        box = Box(lengths[0], lengths[1], lengths[2], 3)
        to, since = pitched.rows_of(dst, True), pitched.rows_of(src, False)
        at = [
            pitched.point(given, 3, name)
            for given, name in ((dst_at, "dst_at"), (src_at, "src_at"))
        ]
        target = pitched.cut("dst", to, box, at[0], dst_pitch, dst_rows)
        source = pitched.cut("src", since, box, at[1], src_pitch, src_rows)
        pitched.check_apart(target, source, box)
        made = cls.__new__(cls)
        made._take(target, source, box, (dst, src, to.keep, since.keep))
        return made

    @classmethod
    def array(cls, dst: Any, src: Any) -> MemcpyNode:
        """A copy to or from a CUDA array or a part of one; see ``CudaArray.copy_from``.

        Raises:
            ValueError: shape or type differ, nothing is copied, or a layout is none for copies.
            TypeError: neither side is a CUDA array.
        """
        target, source, box = copy_ends(dst, src)
        if not box.width * box.height * box.depth:
            raise ValueError("a node cannot copy no elements")
        made = cls.__new__(cls)
        made._take(target, source, box, (dst, src))
        return made

    def _take(self, target: End, source: End, box: Box, keep: tuple[object, ...]) -> None:
        self._ends, self._box, self._keep = (target, source), box, keep

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        made = given.memcpy
        for end, side in zip(self._ends, ("dst", "src"), strict=True):
            end.fill(made.copyParams, side)
        made.copyParams.WidthInBytes, made.copyParams.Height = self._box.width, self._box.height
        made.copyParams.Depth = self._box.depth
        made.copyCtx = current_context().handle
        return self._keep


class MemsetNode(NodeParams):
    """A fill of device memory with a value, repeated."""

    KIND = "MEMSET"

    def __init__(
        self,
        dst: Any,
        value: int,
        nbytes: int | None = None,
        width: int = 1,
        height: int = 1,
        pitch: int | None = None,
    ) -> None:
        """Check a fill; see ``memset`` for what everything means.

        Args:
            nbytes: of a row; by default all of *dst*.
            width: of the value in bytes: 1, 2 or 4.
            height: how many rows.
            pitch: bytes from one row to the next; needed if there are several.

        Raises:
            ValueError: a number does not fit.
            TypeError: *dst* is host memory.

        C: cuGraphAddNode
        """
        target = fills.device_span(dst)
        count = target.nbytes if nbytes is None else checks.size(nbytes, "nbytes", 1)
        rows = checks.size(height, "height", 1)
        if not count or width not in fills.WIDTHS or count % width:
            raise ValueError(f"cannot fill {count} bytes with values of width {width} (1, 2 or 4)")
        step = count if pitch is None else checks.size(pitch, "pitch")
        if rows > 1 and (pitch is None or step < count or step % width):
            raise ValueError(f"pitch={pitch}: rows of {count} bytes need it, and as much at least")
        last = (rows - 1) * step + count
        if target.nbytes is not None and last > target.nbytes:
            raise ValueError(f"cannot fill up to byte {last}: the destination has {target.nbytes}")
        fills.check_aligned(target.address, width)
        pattern = fills.fitting(value, width)
        self._record = (
            target.address,
            step if rows > 1 else 0,
            pattern,
            width,
            count // width,
            rows,
        )
        self._keep = (dst, target.keep)

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        names = ("dst", "pitch", "value", "elementSize", "width", "height")
        for name, value in zip(names, self._record, strict=True):
            setattr(given.memset, name, value)
        given.memset.ctx = current_context().handle
        return self._keep


class AllocNode(NodeParams):
    """Memory that exists from this node on, at an address that is known already.

    The node's ``address`` tells it. A ``FreeNode``, or the end of the memory as that of any other,
    must come before the next launch. A graph with such a node cannot be copied or be a child.
    """

    KIND = "MEM_ALLOC"

    def __init__(self, nbytes: int, device: Any = None, peers: Sequence[Any] = ()) -> None:
        """Choose size and place.

        Args:
            device: where; by default the device of the current context.
            peers: other devices that can use it.

        Raises:
            TypeError: a device is none.
            ValueError: it has no bytes.

        C: cuGraphAddNode
        """
        self._nbytes = checks.size(nbytes, "nbytes", 1)
        self._device = device_number(device)
        self._peers = [device_number(each) for each in peers]

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        made, place = given.alloc, raw.CU_MEM_LOCATION_TYPE_DEVICE
        made.poolProps.allocType = raw.CU_MEM_ALLOCATION_TYPE_PINNED
        made.poolProps.location.type, made.poolProps.location.id = place, self._device
        made.bytesize = self._nbytes
        access = (raw.CUmemAccessDesc * len(self._peers))()
        for each, peer in zip(access, self._peers, strict=True):
            each.location.type, each.location.id = place, peer
            each.flags = raw.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        if access:
            made.accessDescs, made.accessDescCount = ctypes.addressof(access), len(access)
        return (access,) if access else ()


class FreeNode(NodeParams):
    """The end of memory that an ``AllocNode`` made."""

    KIND = "MEM_FREE"

    def __init__(self, memory: Node | int) -> None:
        """Take the node that allocated it, or its address.

        C: cuGraphAddNode
        """
        self._address = memory.address if isinstance(memory, Node) else checks.address(memory)

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        given.free.dptr = self._address
        return ()


class MemoryOperations(NodeParams):
    """Numbers in memory, written and waited for, in this order."""

    KIND = "BATCH_MEM_OP"

    def __init__(self) -> None:
        """Begin with none; ``write`` and ``wait`` add them.

        C: cuGraphAddNode
        """
        self._operations: list[Any] = []
        self._keep: list[object] = []

    def write(self, memory: Any, value: int, width: int = 4) -> MemoryOperations:
        """Write a number; see ``Stream.write_value``. Returns this object."""
        code = (raw.CU_STREAM_MEM_OP_WRITE_VALUE_32, raw.CU_STREAM_MEM_OP_WRITE_VALUE_64)
        return self._add("writeValue", code, memory, value, width, 0)

    def wait(
        self,
        memory: Any,
        value: int,
        width: int = 4,
        condition: str = ">=",
        flush: bool = False,
    ) -> MemoryOperations:
        """Wait for a number; see ``Stream.wait_value``. Returns this object."""
        flags = checks.choice(condition, CONDITIONS, "condition") | (FLUSH if flush else 0)
        code = (raw.CU_STREAM_MEM_OP_WAIT_VALUE_32, raw.CU_STREAM_MEM_OP_WAIT_VALUE_64)
        return self._add("waitValue", code, memory, value, width, flags)

    def _add(
        self, field: str, codes: tuple[int, int], memory: Any, value: int, width: int, flags: int
    ) -> MemoryOperations:
        address, number = memory_operation(memory, value, width)
        made = raw.CUstreamBatchMemOpParams()
        operation = getattr(made, field)
        operation.operation, operation.address = codes[width == 8], address
        setattr(operation, "value64" if width == 8 else "value", number)
        operation.flags = flags
        self._operations.append(made)
        self._keep.append(memory)
        return self

    @property
    def array(self) -> Any:
        """They as an array of CUstreamBatchMemOpParams.

        Raises:
            ValueError: there are none.
        """
        if not self._operations:
            raise ValueError("there are no operations: add some with write() and wait()")
        return (raw.CUstreamBatchMemOpParams * len(self._operations))(*self._operations)

    def fill(self, given: Any) -> tuple[object, ...]:
        """See NodeParams."""
        made = self.array
        given.memOp.ctx = current_context().handle
        given.memOp.count, given.memOp.paramArray = len(made), ctypes.addressof(made)
        return (made, *self._keep)
