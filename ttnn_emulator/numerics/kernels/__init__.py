"""Loops compiled by numba, independent of operations and tensor specs."""
