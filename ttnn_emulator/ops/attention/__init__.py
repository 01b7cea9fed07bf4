"""Attention in all its forms, its heads, caches and rotary embeddings."""
