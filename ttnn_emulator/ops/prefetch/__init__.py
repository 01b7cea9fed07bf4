"""Weights read from DRAM ahead of the matmuls that use them."""
