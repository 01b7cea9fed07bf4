"""Elementwise functions of one tensor."""
