"""Attention operations, attention heads, key-value caches and rotary embeddings."""
