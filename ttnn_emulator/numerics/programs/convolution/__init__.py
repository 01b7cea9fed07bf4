"""Convolutions as the chip computes them."""
