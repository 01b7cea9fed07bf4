"""Elementwise functions as the vector unit's kernels compute them."""
