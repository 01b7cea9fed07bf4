"""The `moreh` operations."""
