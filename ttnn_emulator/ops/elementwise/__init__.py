"""Elementwise operations of one, two and three tensors."""
