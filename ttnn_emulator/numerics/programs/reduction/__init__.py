"""Scans, sorting and selection, as the chip computes them."""
