"""Convolutions: planned in blocks and slices, sharded, with prepared weights."""
