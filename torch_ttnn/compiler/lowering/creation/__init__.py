"""Lowerings of operations that create tensors."""
