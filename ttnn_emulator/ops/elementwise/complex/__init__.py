"""Complex tensors and their functions."""
