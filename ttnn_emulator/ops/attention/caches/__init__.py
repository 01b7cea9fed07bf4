"""Key-value caches that are written in place, contiguous or in pages."""
