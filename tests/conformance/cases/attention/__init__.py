"""Attention, its heads, caches and rotary embeddings."""
