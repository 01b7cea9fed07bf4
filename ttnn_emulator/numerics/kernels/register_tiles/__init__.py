"""Innermost loops with sums in vector registers."""
