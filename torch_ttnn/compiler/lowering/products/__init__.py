"""Lowerings of matrix products, attention, and fused operations."""
