"""Lowerings of norms and softmax."""
