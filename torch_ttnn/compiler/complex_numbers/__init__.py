"""Complex values as pairs of real values."""
