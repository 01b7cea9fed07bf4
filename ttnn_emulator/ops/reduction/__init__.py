"""Reductions, running totals, sorting and sampling."""
