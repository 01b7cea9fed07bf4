"""Comparison mode: calls compared with their golden functions."""
