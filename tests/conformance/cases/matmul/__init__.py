"""Products of matrices, and what delivers their weights."""
