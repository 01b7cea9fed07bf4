"""Norms, softmax and losses."""
