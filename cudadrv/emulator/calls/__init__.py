"""The driver functions, one module per noun; importing them registers them."""
