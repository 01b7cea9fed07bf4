"""Attention heads: split from columns, and put together again."""
