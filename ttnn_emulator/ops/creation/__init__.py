"""Tensors from a value, a range, a list or a random generator."""
