"""Gradients of elementwise operations."""
