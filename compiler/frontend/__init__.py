"""Python source to typed SSA form: syntax.py builds it, infer.py types it."""
