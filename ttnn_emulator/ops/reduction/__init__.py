"""Reductions, cumulative operations, sorting and sampling."""
