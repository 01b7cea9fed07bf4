"""Weights trained for the zoo of torch_ttnn, which finds them here; nothing needs to import this package."""
