"""Lowerings of convolutions and their gradients."""
