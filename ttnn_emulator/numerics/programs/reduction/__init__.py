"""Reductions, running totals and orders as the chip computes them."""
