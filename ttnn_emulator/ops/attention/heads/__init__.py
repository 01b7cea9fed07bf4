"""Attention heads: split from projections and concatenated again."""
