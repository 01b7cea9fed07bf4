"""Attention heads: split from columns, and concatenated."""
