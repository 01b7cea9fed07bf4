"""Lowerings of reductions, sorting and losses."""
