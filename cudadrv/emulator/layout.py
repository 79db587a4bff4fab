"""The records that Python and generated code share, each field written once."""

from __future__ import annotations

import ctypes

_CTYPES = {
    "ptr": ctypes.c_void_p, "i64": ctypes.c_uint64, "i32": ctypes.c_uint32, "i8": ctypes.c_uint8,
    "i16": ctypes.c_uint16, "float": ctypes.c_float,
}  # fmt: skip


class Record:
    """A struct: `%name = type { ... }` in LLVM, a ctypes.Structure in Python."""

    def __init__(self, name: str, fields: tuple[tuple[str, str], ...]) -> None:
        self.name = name
        self.types = dict(fields)
        self.index = {field: i for i, (field, _) in enumerate(fields)}
        members = []
        for field, kind in fields:
            count, _, element = kind.strip("[]").rpartition(" x ")
            ctype = _CTYPES[element]
            members.append((field, ctype * int(count) if count else ctype))
        self.ctype = type(name, (ctypes.Structure,), {"_fields_": members})

    @property
    def llvm(self) -> str:
        """Its definition as an LLVM type."""
        return f"%{self.name} = type {{ {', '.join(self.types.values())} }}"

    def address(self, base: str, field: str) -> str:
        """The operand of the instruction that computes the address of *field*."""
        return f"getelementptr inbounds %{self.name}, ptr {base}, i32 0, i32 {self.index[field]}"


# One launch. *next* is the next block to run, shared by all workers; blocks from *limit* on wait.
# *block* runs a block; for kernels of coroutines it is the scheduler, and *thread* starts a thread.
# *workspace* is the address of what a cooperative grid's barrier counts in, 0 for other launches.
# *ranges* are the allocations, in order, for kernels that check their accesses.
# *error* is a CUresult; beside it stand the block and thread that set it, the line of the PTX, and
# the address if it was one.
LAUNCH = Record(
    "launch",
    (
        ("params", "ptr"), ("memory", "ptr"), ("block", "ptr"), ("thread", "ptr"),
        ("workspace", "i64"), ("ranges", "ptr"), ("range_count", "i64"),
        ("next", "i64"), ("limit", "i64"), ("chunk", "i64"), ("grid_id", "i64"),
        ("grid_x", "i32"), ("grid_y", "i32"), ("grid_z", "i32"),
        ("block_x", "i32"), ("block_y", "i32"), ("block_z", "i32"),
        ("cluster_x", "i32"), ("cluster_y", "i32"), ("cluster_z", "i32"),
        ("shared_bytes", "i32"), ("dynamic_bytes", "i32"), ("has_warp_operations", "i32"),
        ("error", "i32"), ("error_block", "[3 x i32]"), ("error_thread", "[3 x i32]"),
        ("error_line", "i32"), ("error_address", "i64"),
    ),
)  # fmt: skip

# One worker thread of a launch: the memory of the block it is running. *state* is what the thread
# that just stopped waits for; *exiting* says that it ended inside a function.
WORKER = Record(
    "worker",
    (
        ("shared", "ptr"), ("threads", "ptr"), ("states", "ptr"), ("frames", "ptr"),
        ("count", "i32"), ("state", "i32"), ("exiting", "i32"),
        ("arrived", "[16 x i32]"), ("waiting", "[16 x i32]"), ("expected", "[16 x i32]"),
        ("ones", "[16 x i32]"),
    ),
)  # fmt: skip

# One thread of a block with barriers or warp operations. *key* is the member mask, barrier or
# instruction it waits with; *value* what it brings; the rest is what it gets when released.
THREAD = Record(
    "thread",
    (
        ("handle", "ptr"), ("key", "i32"), ("expected", "i32"), ("value", "i64"),
        ("published", "i64"), ("ballot", "i32"), ("members", "i32"),
    ),
)  # fmt: skip

# A range of addresses that may be accessed; *end* is the first behind it.
RANGE = Record("range", (("start", "i64"), ("end", "i64")))

# A level of an array, or linear memory, as textures and surfaces see it; lengths in texels.
LEVEL = Record(
    "level",
    (
        ("data", "i64"), ("width", "i64"), ("height", "i64"), ("depth", "i64"),
        ("pitch", "i64"), ("plane", "i64"),
    ),
)  # fmt: skip

# A texture or surface, whose handle is the address of this. *kind* says that it is one, and which.
# *element* is the bytes of a texel, *how* what its integers become, *mode_* how coordinates
# outside are taken; the colours of the border are bits.
TEXTURE = Record(
    "texture",
    (
        ("kind", "i64"), ("levels", "ptr"), ("count", "i32"), ("format", "i32"),
        ("channels", "i32"), ("element", "i32"), ("how", "i32"), ("linear", "i32"),
        ("normalized", "i32"), ("mode_x", "i32"), ("mode_y", "i32"), ("mode_z", "i32"),
        ("mip_linear", "i32"), ("bias", "float"), ("least", "float"), ("most", "float"),
        ("border", "[4 x i32]"),
    ),
)  # fmt: skip
TEXTURE_KIND, SURFACE_KIND = 0x7865_7420_6572_7574, 0x6661_7275_7320_6573

# What the emulator writes into the 128 bytes of a tensor map, lengths innermost first. *kind* says
# that it is one, and which: TILED, IM2COL or WIDE. Strides of all dimensions but the innermost.
# *box* of tiled maps; *lower*, *upper*, *channels* and *pixels* of the others; corners are signed.
TENSOR_MAP = Record(
    "tensor_map",
    (
        ("address", "i64"), ("strides", "[4 x i64]"), ("shape", "[5 x i32]"), ("kind", "i32"),
        ("box", "[5 x i16]"), ("lower", "[3 x i16]"), ("upper", "[3 x i16]"),
        ("channels", "i16"), ("pixels", "i16"), ("steps", "[5 x i8]"), ("type", "i8"),
        ("rank", "i8"), ("interleave", "i8"), ("swizzle", "i8"), ("promotion", "i8"),
        ("fill", "i8"), ("mode", "i8"),
    ),
)  # fmt: skip
TILED, IM2COL, WIDE = 0x7465_6E01, 0x7465_6E02, 0x7465_6E03

# What a thread of a block is doing: worker.state and the bytes of worker.states. AT_FULL is barrier
# 0 for all threads, which needs no record; AT_BARRIER is any other.
RUNNABLE, DONE, AT_FULL, AT_BARRIER, AT_WARP, GATHERING = range(6)

# Shared memory beyond the kernel's own that each block has, as devices from sm_90 on reserve.
RESERVED_SHARED_BYTES = 1024

# What a cooperative grid's barrier counts in.
WORKSPACE_BYTES = 256
