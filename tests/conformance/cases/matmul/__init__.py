"""Matrix products, and the prefetcher of their weights."""
