"""Typed SSA form to LLVM IR, for both pointer dialects."""
