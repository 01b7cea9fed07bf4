"""Loops compiled by numba. Nothing here knows an operation or a tensor's spec."""
