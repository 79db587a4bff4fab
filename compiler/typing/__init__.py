"""Which callables, operators and attributes exist, and the types that they give."""
