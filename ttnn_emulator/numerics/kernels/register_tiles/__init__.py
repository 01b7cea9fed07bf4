"""Innermost loops whose sums stay in vector registers."""
