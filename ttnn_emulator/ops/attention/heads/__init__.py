"""Attention heads: splitting projections into heads and concatenating heads."""
