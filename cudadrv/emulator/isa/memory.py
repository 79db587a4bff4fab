"""Loads and stores, and hints about memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..frame_names import INVARIANT
from ..syntax import Address, Integer, Name, Operand, Vector
from ..types import TYPES as ALL_TYPES
from ..types import Type
from .table import Op, instruction

if TYPE_CHECKING:
    from ..frame import Frame

TYPES = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f16x2 bf16x2 f32 f64"
SPACES = "global shared shared::cta local const param param::entry param::func"
SCOPES = "cta cluster gpu sys"
ORDERS = "weak relaxed acquire release volatile mmio"
CACHE = (
    "ca cg cs lu cv wb wt nc v2 v4 v8 uni L1::evict_normal L1::evict_unchanged L1::evict_first "
    "L1::evict_last L1::no_allocate L2::64B L2::128B L2::256B L2::cache_hint L2::evict_last "
    "L2::evict_normal L2::evict_first"
)


U64 = ALL_TYPES["u64"]


def space(op: Op) -> str:
    """The state space that the flags name; "" for generic."""
    return op.one_of(SPACES).partition("::")[0]


def ordering(op: Op) -> tuple[str, str]:
    """("volatile" or "", the LLVM atomic ordering or "")."""
    if op.has("acquire"):
        return "", "acquire"
    if op.has("release"):
        return "", "release"
    if op.has("relaxed") or op.has("mmio"):
        return "", "monotonic"
    return ("volatile" if op.has("volatile") else ""), ""


@instruction("ld ldu", "x = x x?", TYPES, f"{SPACES} {SCOPES} {ORDERS} {CACHE}")
def ld(
    frame: Frame, op: Op, dest: Operand, address: Operand, policy: Operand | None = None
) -> None:
    where = space(op)
    items = dest.items if isinstance(dest, Vector) and op.one_of("v2 v4 v8") else (dest,)
    pointer = frame.access(where, address, op.type.bytes * len(items))
    volatile, order = ordering(op)
    kernel_param = where == "param" and _is_kernel_param(frame, address)
    for index, item in enumerate(items):
        at = _element(frame, pointer, op.type, index)
        if order:
            value = _atomic_load(frame, op.type, at, order)
        else:
            extra = INVARIANT if kernel_param else frame.group(where)
            extra = "" if volatile else extra
            align = f", align {op.type.bytes}"
            value = frame.op(f"load {volatile} {op.type.llvm}, ptr {at}{align}{extra}")
        frame.write(item, op.type, value)


def _is_kernel_param(frame: Frame, address: Operand) -> bool:
    if not isinstance(address, Address) or not isinstance(address.base, Name):
        return False
    found = frame.scopes.get(address.base.text)
    return getattr(found, "space", "") == "kernel param"


def _element(frame: Frame, pointer: str, type: Type, index: int) -> str:
    if not index:
        return pointer
    return frame.op(f"getelementptr i8, ptr {pointer}, i64 {index * type.bytes}")


def _atomic_load(frame: Frame, type: Type, pointer: str, order: str) -> str:
    kind = type.integer
    value = frame.op(f"load atomic {kind}, ptr {pointer} {order}, align {type.bytes}")
    return frame.cast("bitcast", kind, value, type.llvm)


@instruction("st", "= x x x?", TYPES, f"{SPACES} {SCOPES} {ORDERS} {CACHE}")
def st(
    frame: Frame, op: Op, address: Operand, source: Operand, policy: Operand | None = None
) -> None:
    where = space(op)
    items = source.items if isinstance(source, Vector) and op.one_of("v2 v4 v8") else (source,)
    pointer = frame.access(where, address, op.type.bytes * len(items))
    volatile, order = ordering(op)
    kind = op.type.llvm
    for index, item in enumerate(items):
        at = _element(frame, pointer, op.type, index)
        value = frame.read(item, op.type)
        align = f", align {op.type.bytes}"
        if order:
            bits = frame.cast("bitcast", kind, value, op.type.integer)
            frame.do(f"store atomic {op.type.integer} {bits}, ptr {at} {order}{align}")
        else:
            extra = "" if volatile else frame.group(where)
            frame.do(f"store {volatile} {kind} {value}, ptr {at}{align}{extra}")


@instruction("cp.async", "= x x x x? x?", "", f"{SPACES} {CACHE}")
def cp_async(frame: Frame, op: Op, target: Operand, source: Operand, *sizes: Operand) -> None:
    """`cp.async.ca.shared.global [to], [from], 16, n;` copies n bytes and zeroes the rest."""
    size = sizes[0].value if isinstance(sizes[0], Integer) else 16
    to, at = frame.access("shared", target, size), frame.access("global", source, size)
    whole = frame.read(sizes[0], U64)
    count = frame.read(sizes[1], U64) if len(sizes) == 2 else whole
    frame.call("llvm.memset.p0.i64", "void", f"ptr {to}", "i8 0", f"i64 {whole}", "i1 false")
    frame.call(
        "llvm.memcpy.p0.p0.i64", "void", f"ptr {to}", f"ptr {at}", f"i64 {count}", "i1 false"
    )


@instruction("cp.async.commit_group cp.async.wait_all", "=")
@instruction("cp.async.wait_group", "= x")
@instruction("prefetch prefetchu", "= x", "", f"{SPACES} L1 L2 L2::evict_last L2::evict_normal")
@instruction("applypriority discard", "= x x?", "", f"{SPACES} L2 L2::evict_normal")
def prefetch(frame: Frame, op: Op, *operands: Operand) -> None:
    """A hint, or a wait for what is done already: nothing to do."""


@instruction("membar", "=", "", "cta gl sys")
@instruction(
    "fence", "=", "", f"sc acq_rel acquire release proxy alias async mbarrier_init {SCOPES}"
)
def fence(frame: Frame, op: Op) -> None:
    frame.do("fence seq_cst")
