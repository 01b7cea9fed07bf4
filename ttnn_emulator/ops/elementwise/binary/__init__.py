"""Elementwise operations of two operands."""
