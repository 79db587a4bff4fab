"""Names that translated functions share."""

from __future__ import annotations

# What every translated function gets besides its own parameters. %memory is null, but LLVM must not
# know: with all of memory as one array it sees which addresses are consecutive.
ENVIRONMENT = (
    "ptr %launch", "ptr %worker", "ptr %memory", "ptr %shared", "i32 %thread",
    "i32 %tid.x", "i32 %tid.y", "i32 %tid.z", "i32 %ctaid.x", "i32 %ctaid.y", "i32 %ctaid.z",
)  # fmt: skip

# For loads of what no thread writes while the kernel runs.
INVARIANT = ", !invariant.load !0"
