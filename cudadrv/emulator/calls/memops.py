"""cuStreamWriteValue..., cuStreamWaitValue..., cuStreamBatchMemOp: numbers in memory as signals."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from cudadrv.raw import table, types

from ..boundary import exported
from ..state import Stream, current
from ..status import Status, require

_OPERATION = {
    name.removeprefix("CU_STREAM_MEM_OP_"): value
    for name, value in table.ENUMS["CUstreamBatchMemOpType"].items()
}
GEQ, EQ, AND, FLUSH = 0, 1, 2, 1 << 30
_NUMBERS: dict[int, Any] = {4: ctypes.c_uint32, 8: ctypes.c_uint64}
OPERATIONS = types.record(types.resolve("CUstreamBatchMemOpParams"))


def _number(address: int, width: int) -> Any:
    require(address and not address % width)
    return _NUMBERS[width].from_address(current().memory.check(address, width))


def write(address: int, value: int, flags: int, width: int) -> None:
    """Store a number."""
    require(not flags)
    _number(address, width).value = value


def wait(address: int, value: int, flags: int, width: int) -> None:
    """Nothing runs later here, so what is not true yet never comes true."""
    require(not flags & ~(3 | FLUSH))
    found = _number(address, width).value
    mask = (1 << 8 * width) - 1
    value &= mask
    condition = flags & 3
    if condition == GEQ:
        reached = (found - value) & mask < 1 << (8 * width - 1)
    elif condition == EQ:
        reached = found == value
    elif condition == AND:
        reached = bool(found & value)
    else:
        reached = bool(~(found | value) & mask)
    if not reached:
        print("cudadrv emulator: a stream would wait for a value for ever", file=sys.stderr)
        raise Status("NOT_SUPPORTED")


def run(operations: Any) -> None:
    """Do each of an array of CUstreamBatchMemOpParams."""
    for each in operations:
        kind = each.operation
        wide = kind in (_OPERATION["WAIT_VALUE_64"], _OPERATION["WRITE_VALUE_64"])
        if kind in (_OPERATION["WAIT_VALUE_32"], _OPERATION["WAIT_VALUE_64"]):
            given = each.waitValue
            wait(given.address, _value(given, wide), given.flags, 8 if wide else 4)
        elif kind in (_OPERATION["WRITE_VALUE_32"], _OPERATION["WRITE_VALUE_64"]):
            given = each.writeValue
            write(given.address, _value(given, wide), given.flags, 8 if wide else 4)
        else:
            done = (_OPERATION["BARRIER"], _OPERATION["FLUSH_REMOTE_WRITES"])
            require(kind in done, "NOT_SUPPORTED")


def _value(given: Any, wide: bool) -> int:
    return int(given.value64 if wide else given.value)


def copy(address: int, count: int) -> Any:
    """An array of operations, copied from *address*."""
    require(address and 0 < count <= 256)
    return (OPERATIONS * count).from_buffer_copy((OPERATIONS * count).from_address(address))


@exported("cuStreamWriteValue32")
def cuStreamWriteValue32_v2(stream: Stream, address: int, value: int, flags: int) -> None:
    write(address, value, flags, 4)


@exported("cuStreamWriteValue64")
def cuStreamWriteValue64_v2(stream: Stream, address: int, value: int, flags: int) -> None:
    write(address, value, flags, 8)


@exported("cuStreamWaitValue32")
def cuStreamWaitValue32_v2(stream: Stream, address: int, value: int, flags: int) -> None:
    wait(address, value, flags, 4)


@exported("cuStreamWaitValue64")
def cuStreamWaitValue64_v2(stream: Stream, address: int, value: int, flags: int) -> None:
    wait(address, value, flags, 8)


@exported("cuStreamBatchMemOp")
def cuStreamBatchMemOp_v2(stream: Stream, count: int, address: int, flags: int) -> None:
    require(not flags)
    run(copy(address, count))
