"""Collectives, and functions that only the library's tests use."""
