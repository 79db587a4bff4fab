"""Special registers: %tid, %laneid, %clock64, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..layout import RESERVED_SHARED_BYTES

if TYPE_CHECKING:
    from ..frame import Frame


def _lane(frame: Frame) -> str:
    return frame.op("and i32 %thread, 31")


def _lane_mask(build: Callable[[Frame, str], str]) -> Callable[[Frame], str]:
    return lambda frame: build(frame, frame.op(f"shl i32 1, {_lane(frame)}"))


def _total_smem(frame: Frame) -> str:
    return frame.launch("shared_bytes")


def _clock(frame: Frame) -> str:
    return frame.call("llvm.readcyclecounter", "i64")


def _nanoseconds(frame: Frame) -> str:
    return frame.call("emulator.nanoseconds", "i64")


def _reserved(frame: Frame) -> str:
    """Where the reserved shared memory starts: behind the kernel's own."""
    return frame.op(f"and i32 {frame.op(f'add i32 {_total_smem(frame)}, 15')}, -16")


def _workspace(shift: int) -> Callable[[Frame], str]:
    def half(frame: Frame) -> str:
        whole = frame.op(f"lshr i64 {frame.launch('workspace')}, {shift}")
        return frame.op(f"trunc i64 {whole} to i32")

    return half


def _by_cluster(op: str, value: str, axis: str) -> Callable[[Frame], str]:
    """The grid's blocks, or the block *value*, counted in clusters or within one."""

    def build(frame: Frame) -> str:
        blocks = value or frame.launch(f"grid_{axis}")
        return frame.op(f"{op} i32 {blocks}, {frame.launch(f'cluster_{axis}')}")

    return build


def _cluster_size(frame: Frame) -> str:
    plane = frame.op(f"mul i32 {frame.launch('cluster_x')}, {frame.launch('cluster_y')}")
    return frame.op(f"mul i32 {plane}, {frame.launch('cluster_z')}")


def _cluster_rank(frame: Frame) -> str:
    x, y, z = (_by_cluster("urem", f"%ctaid.{axis}", axis)(frame) for axis in "xyz")
    row = frame.op(f"mul i32 {z}, {frame.launch('cluster_y')}")
    row = frame.op(f"mul i32 {frame.op(f'add i32 {row}, {y}')}, {frame.launch('cluster_x')}")
    return frame.op(f"add i32 {row}, {x}")


# Name: (how to compute it, its bits).
REGISTERS: dict[str, tuple[Callable[[Frame], str], int]] = {
    "%laneid": (_lane, 32),
    "%warpid": (lambda f: f.op("lshr i32 %thread, 5"), 32),
    "%lanemask_eq": (_lane_mask(lambda f, bit: bit), 32),
    "%lanemask_lt": (_lane_mask(lambda f, bit: f.op(f"sub i32 {bit}, 1")), 32),
    "%lanemask_ge": (_lane_mask(lambda f, bit: f.op(f"sub i32 0, {bit}")), 32),
    "%lanemask_gt": (
        _lane_mask(lambda f, bit: f.op(f"sub i32 {f.op(f'sub i32 0, {bit}')}, {bit}")),
        32,
    ),
    "%lanemask_le": (
        _lane_mask(lambda f, bit: f.op(f"or i32 {bit}, {f.op(f'sub i32 {bit}, 1')}")),
        32,
    ),
    "%clock": (lambda f: f.op(f"trunc i64 {_clock(f)} to i32"), 32),
    "%clock_hi": (lambda f: f.op(f"trunc i64 {f.op(f'lshr i64 {_clock(f)}, 32')} to i32"), 32),
    "%clock64": (_clock, 64),
    "%globaltimer": (_nanoseconds, 64),
    "%globaltimer_lo": (lambda f: f.op(f"trunc i64 {_nanoseconds(f)} to i32"), 32),
    "%dynamic_smem_size": (lambda f: f.launch("dynamic_bytes"), 32),
    "%total_smem_size": (_total_smem, 32),
    "%aggr_smem_size": (_total_smem, 32),
    "%gridid": (lambda f: f.launch("grid_id"), 64),
    "%smid": (lambda f: "0", 32),
    "%nsmid": (lambda f: "1", 32),
    "%nwarpid": (lambda f: "32", 32),
    # The barrier of a cooperative grid, as cooperative_groups finds it: high and low half.
    "%envreg1": (_workspace(32), 32),
    "%envreg2": (_workspace(0), 32),
    "%reserved_smem_offset_begin": (_reserved, 32),
    "%reserved_smem_offset_0": (_reserved, 32),
    "%reserved_smem_offset_1": (_reserved, 32),
    "%reserved_smem_offset_cap": (lambda f: str(RESERVED_SHARED_BYTES), 32),
    "%reserved_smem_offset_end": (
        lambda f: f.op(f"add i32 {_reserved(f)}, {RESERVED_SHARED_BYTES}"),
        32,
    ),
    "WARP_SZ": (lambda f: "32", 32),
}
for _axis in "xyz":
    REGISTERS[f"%tid.{_axis}"] = (lambda f, a=_axis: f"%tid.{a}", 32)  # type: ignore[misc]
    REGISTERS[f"%ctaid.{_axis}"] = (lambda f, a=_axis: f"%ctaid.{a}", 32)  # type: ignore[misc]
    REGISTERS[f"%ntid.{_axis}"] = (lambda f, a=_axis: f.launch(f"block_{a}"), 32)  # type: ignore[misc]
    REGISTERS[f"%nctaid.{_axis}"] = (lambda f, a=_axis: f.launch(f"grid_{a}"), 32)  # type: ignore[misc]
    # In a launch without clusters every block is a cluster of its own.
    REGISTERS[f"%clusterid.{_axis}"] = (_by_cluster("udiv", f"%ctaid.{_axis}", _axis), 32)
    REGISTERS[f"%nclusterid.{_axis}"] = (_by_cluster("udiv", "", _axis), 32)
    REGISTERS[f"%cluster_ctaid.{_axis}"] = (_by_cluster("urem", f"%ctaid.{_axis}", _axis), 32)
    REGISTERS[f"%cluster_nctaid.{_axis}"] = (lambda f, a=_axis: f.launch(f"cluster_{a}"), 32)  # type: ignore[misc]
REGISTERS["%cluster_ctarank"] = (_cluster_rank, 32)
REGISTERS["%cluster_nctarank"] = (_cluster_size, 32)


def special_register(frame: Frame, name: str) -> tuple[str, int] | None:
    """(value, bits) of the special register *name*; None if it is not one."""
    found = REGISTERS.get(name)
    return None if found is None else (found[0](frame), found[1])
