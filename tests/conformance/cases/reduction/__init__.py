"""Reductions, sorting and cumulative operations."""
