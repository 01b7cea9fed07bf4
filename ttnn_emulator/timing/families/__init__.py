"""Pricers by family of operations; each module registers its own."""
