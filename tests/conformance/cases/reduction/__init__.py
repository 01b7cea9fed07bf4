"""Reductions, orders and running totals."""
