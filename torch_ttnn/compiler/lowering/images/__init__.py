"""Lowerings of pools, resampling and unfold."""
