"""Functions of one, two and three tensors."""
