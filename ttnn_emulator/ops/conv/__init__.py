"""Convolutions: sharding, blocks, DRAM slices and prepared weights."""
