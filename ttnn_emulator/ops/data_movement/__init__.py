"""Changes of layout, dtype, shape and memory, and parts of tensors joined or cut."""
